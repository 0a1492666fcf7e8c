"""The site as a reader gets it: it builds without a warning, and asks nobody else for anything."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[3]
QUIET = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync")  # fmt: skip
SHOWN = ("index.html", "quickstart.html", "reference.html", "errors.html", "changelog.html")


class _Handler(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        """The server of a test has nothing to say."""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    mkdocs = Path(sys.executable).parent / "mkdocs"
    built = subprocess.run(
        [mkdocs, "build", "--strict", "--quiet", "-f", ROOT / "docsite" / "mkdocs.yml", "-d", folder],
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


@pytest.fixture
def served(site):
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, directory=str(site)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join(10)
    server.server_close()


def chromium():
    """`CHROMIUM`, one on the PATH, or playwright's own (None)."""
    return os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")


def test_every_page_of_the_docs_is_in_the_site(site):
    """A page that is in no menu is read by nobody. mkdocs is strict: such a page, or a dead link, ends the build."""
    pages = {path.with_suffix(".html").name for path in (ROOT / "docs").glob("*.md")}

    assert pages <= {path.name for path in site.glob("*.html")}


def test_pages_ask_nobody_else_for_anything(served):
    """Fonts and scripts from elsewhere tell others who reads what, and fail where there is no network."""
    foreign = []
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium(), args=list(QUIET))
        page = browser.new_page()
        page.on(
            "request",
            lambda request: None if request.url.startswith((served, "data:")) else foreign.append(request.url),
        )
        for name in SHOWN:
            assert page.goto(served + name).ok, name
            page.wait_for_load_state("networkidle")
        browser.close()

    assert foreign == []


def test_search_finds_an_error_by_its_name(served):
    """At night one has the name of an error, and nothing else."""
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium(), args=list(QUIET))
        page = browser.new_page()
        page.goto(served + "index.html")
        page.wait_for_load_state("networkidle")
        page.locator("input[name=query]").click()
        page.keyboard.type("JournalRegressed")
        page.locator(".md-search-result__link").first.wait_for(timeout=20_000)
        found = page.locator(".md-search-result__list").inner_text()
        browser.close()

    assert "JournalRegressed" in found
