"""One console and one browser for the whole session: real processes, a real store, a real Chromium."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from tests import console_stores

FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
NAMES = ("chromium", "chromium-browser", "google-chrome")
DESK, PHONE = {"width": 1440, "height": 1000}, {"width": 390, "height": 844}
PICTURES = console_stores.ROOT / "docs" / "pictures" / "console"
FONTS = """<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd"><fontconfig>
<include ignore_missing="yes">/etc/fonts/fonts.conf</include>
<match target="pattern"><test name="family"><string>system-ui</string></test><edit name="family" mode="prepend" binding="strong"><string>Inter</string></edit></match>
<match target="pattern"><test name="family"><string>sans-serif</string></test><edit name="family" mode="prepend" binding="strong"><string>Inter</string></edit></match>
<match target="pattern"><test qual="all" name="family" compare="not_eq"><string>JetBrains Mono</string></test><test qual="all" name="family" compare="not_eq"><string>monospace</string></test><edit name="family" mode="append" binding="weak"><string>Inter</string></edit></match></fontconfig>"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The first test of a session makes a store with a dozen killed and restarted processes."""
    for item in items:
        if item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(600))


def chromium(own: str) -> str:
    """`CHROMIUM`, the PATH, playwright's own. None of them is a failure: a console that no browser has shown is not tested."""
    found = [os.environ.get("CHROMIUM", ""), *(shutil.which(name) or "" for name in NAMES), own]
    for one in found:
        if one and Path(one).exists():
            return one
    pytest.exit("no Chromium: apt-get install chromium, or name one in CHROMIUM", returncode=1)


class Served:
    """A console over the store of a folder."""

    def __init__(self, folder: Path, url: str, link: str) -> None:
        self.folder, self.url, self.link = folder, url.rstrip("/"), link
        self.state: dict[str, object] | None = None

    def surefoot(self, *words: str, **more: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "surefoot", *words, "--store", console_stores.STORE], cwd=self.folder,
            env=console_stores.environment(**more), capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        return done.stdout + done.stderr

    def entries(self, run: str) -> list[dict[str, object]]:
        import json

        code = "import sys, json, surefoot as sf\nprint(json.dumps([{'kind': e.kind, 'seq': e.seq, **e.data} for e in sf.get_run(sys.argv[1]).entries()]))"
        return list(json.loads(console_stores.python(self.folder, code, run)))


@contextmanager
def serving(folder: Path, *words: str) -> Iterator[Served]:
    """`surefoot console`, as a person starts it."""
    child = subprocess.Popen(
        [sys.executable, "-m", "surefoot", "console", "--app", "tests.console_app", "--port", "0", "--as", "ann", "--store", console_stores.STORE, *words],
        cwd=folder, env=console_stores.environment(PYTHON_TARGET="3.12"), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    assert child.stdout is not None
    try:
        link = child.stdout.readline().strip()
        yield Served(folder, link.partition("/sign-in")[0], link)
    finally:
        child.terminate()
        child.wait(timeout=30)
        child.stdout.close()


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Everything at once that can wait for a person. It is only looked at."""
    folder = tmp_path_factory.mktemp("shop")
    console_stores.make(folder)
    with serving(folder) as served:
        yield served


@pytest.fixture(scope="session")
def practice(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A store of its own, in which things are decided."""
    folder = tmp_path_factory.mktemp("practice")
    console_stores.practice(folder)
    with serving(folder) as served:
        yield served


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    fonts = tmp_path_factory.mktemp("fonts") / "fonts.conf"
    fonts.write_text(FONTS)
    with sync_playwright() as playwright:
        path = chromium(playwright.chromium.executable_path)
        made = playwright.chromium.launch(
            executable_path=path, args=FLAGS, headless=True, env={**os.environ, "FONTCONFIG_FILE": str(fonts)}
        )
        yield made
        made.close()


class Watched:
    """A context whose pages may ask only their own origin, and must be silent."""

    def __init__(self, context: BrowserContext, served: Served) -> None:
        self.context, self.served = context, served
        self.noise: list[str] = []
        context.on("request", lambda request: self._request(request.url))
        context.on("console", lambda message: self._said(f"{message.type}: {message.text}"))
        context.on("weberror", lambda error: self.noise.append(f"error: {error.error}"))
        context.on("dialog", lambda dialog: (self.noise.append(f"dialog: {dialog.message}"), dialog.dismiss()))

    def _said(self, line: str) -> None:
        if not re.search(r"responded with a status of 4(00|04|09|22)", line):  # What was refused, a browser says aloud.
            self.noise.append(line)

    def _request(self, url: str) -> None:
        if not url.startswith(f"{self.served.url}/"):
            self.noise.append(f"request: {url}")

    def open(self, path: str) -> Page:
        page = self.context.pages[0] if self.context.pages else self.context.new_page()
        page.goto(self.served.url + path, wait_until="load")
        return page


def signed_in(browser: Browser, served: Served) -> dict[str, object]:
    """The cookie of a browser that has used the link: once, for all of them."""
    if served.state is None:
        context = browser.new_context()
        page = context.new_page()
        page.goto(served.link)
        page.get_by_role("button", name="Sign in").press("Enter")
        # To the inbox; or to the store, if that is refused.
        page.wait_for_url(lambda url: not url.startswith(f"{served.url}/sign-in"))
        served.state = dict(context.storage_state())
        context.close()
    return served.state


@pytest.fixture
def visit(browser: Browser):
    """`visit(served)`: a signed-in window. Whatever it says or asks outside of its origin fails the test."""
    made: list[Watched] = []

    def window(served: Served, **options: object) -> Watched:
        given = {"viewport": DESK, "storage_state": signed_in(browser, served), "reduced_motion": "reduce", **options}
        watched = Watched(browser.new_context(**given), served)  # type: ignore[arg-type]
        made.append(watched)
        return watched

    yield window
    noise = [one for watched in made for one in watched.noise]
    for watched in made:
        watched.context.close()
    assert noise == []
