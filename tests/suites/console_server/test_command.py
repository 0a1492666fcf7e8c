"""`surefoot console` as a process: its link, its tokens, its worker; and what it refuses."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

pytestmark = pytest.mark.timeout(200)
ROOT = Path(__file__).parents[3]
SHOP = """
import surefoot as sf

@sf.effect
def mail(text: str) -> str:
    return text

@mail.undo
def _(text: str, result: str) -> None:
    open("undone", "a").write(text)

@sf.workflow
def asking() -> str:
    with sf.saga():
        mail("hello")
        return mail("yes") if sf.approve("Go on?") else "no"
"""


@pytest.fixture
def env(tmp_path, monkeypatch):
    (tmp_path / "shop.py").write_text(SHOP)
    return {
        **os.environ,
        "PYTHONPATH": str(tmp_path),
        "SUREFOOT_TOKENS": str(tmp_path / "tokens.json"),
        "PYTHONUNBUFFERED": "1",
    }


@pytest.fixture
def surefoot(env):
    def run(*words):
        return subprocess.run(
            [sys.executable, "-m", "surefoot", *words], env=env, capture_output=True, text=True, check=False
        )

    return run


@pytest.fixture
def serve(env):
    going = []

    def start(*words):
        made = subprocess.Popen(
            [sys.executable, "-m", "surefoot", "console", "--port", "0", *words], env=env, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        going.append(made)
        link = made.stdout.readline().strip()
        return made, link.partition("sign-in")[0].rstrip("/"), link

    yield start
    for one in going:
        one.send_signal(signal.SIGINT)
        one.communicate(timeout=60)


def api(base, path, token, body=None, method=None):
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{base}/api/v1/{path}", data, headers, method=method)
    with urllib.request.urlopen(request) as found:
        return json.load(found)


def test_a_story_through_curl(surefoot, serve):
    """A question is found, answered for the group, and a worker that the console has started goes on."""
    assert surefoot("run", "shop:asking", "--id", "a").returncode == 3
    token = surefoot("console", "token", "add", "bot", "--may", "admin", "--for", "1d").stdout
    assert re.fullmatch(r"sft_[\w-]{43}\n", token)
    token = token.strip()
    listed = json.loads(surefoot("console", "token", "list", "--json").stdout)["tokens"]
    assert [(one["name"], one["may"]) for one in listed] == [("bot", "admin")]
    assert token not in surefoot("console", "token", "list").stdout
    _, base, _ = serve("--app", "shop", "--with-worker")

    (item,) = api(base, "inbox", token)["items"]
    assert (item["kind"], item["address"]) == ("question", "approve#1")
    seen = api(base, "runs/a", token)["head"]
    said = {"do": "answer", "question": "approve#1", "value": True}
    foretold = api(base, "runs/a/plan", token, {"supposing": said})["supposed"]["next"]
    assert foretold == [{"kind": "effect", "address": "mail#2"}]
    done = api(base, "runs/a/actions", token, {**said, "seen": seen, "note": "fine"})
    assert done["recorded"]["answer"] is True
    while api(base, "runs/a", token)["status"] != "done":
        pass
    entry = next(one for one in api(base, "audit", token)["said"] if one["run"] == "a")
    assert (entry["by"], entry["entry"]["data"]["via"]) == ("bot", "console, token bot")

    assert surefoot("console", "token", "revoke", "bot").returncode == 0
    with pytest.raises(urllib.error.HTTPError, match="401"):
        api(base, "inbox", token)


def test_a_cancellation_is_carried_out_by_a_worker_with_its_undos(surefoot, serve, tmp_path):
    """What a run did is taken back by the code that did it, wherever that is; never by the console."""
    assert surefoot("run", "shop:asking", "--id", "c").returncode == 3
    token = surefoot("console", "token", "add", "bot", "--may", "admin").stdout.strip()
    _, base, _ = serve("--app", "shop")
    seen = api(base, "runs/c", token)["head"]
    foretold = api(base, "runs/c/plan", token, {"supposing": {"do": "cancel"}})["supposed"]["next"]
    assert foretold == [{"kind": "effect", "address": "mail.undo#1"}]

    api(base, "runs/c/actions", token, {"do": "cancel", "seen": seen, "note": "not wanted"})
    assert api(base, "runs/c", token)["cancel_asked_by"] == "bot: not wanted"
    assert not (tmp_path / "undone").exists()

    surefoot("runs", "resume", "c", "--app", "shop", "--yes")
    assert api(base, "runs/c", token)["status"] == "cancelled"
    assert (tmp_path / "undone").read_text() == "hello"


def test_it_ends_with_ctrl_c_and_takes_its_children_with_it(surefoot, serve, tmp_path):
    surefoot("run", "shop:asking", "--id", "a")
    made, _, link = serve("--app", "shop", "--with-worker")
    with urllib.request.urlopen(link) as page:
        assert page.status == 200

    made.send_signal(signal.SIGINT)
    _, told = made.communicate(timeout=60)

    assert made.returncode == 0, told
    assert "Traceback" not in told
    assert "sign-in?token" not in told


REFUSED = {
    "elsewhere in the open": ["--host", "0.0.0.0"],
    "a header without a secret": ["--user-header", "X-User"],
    "a secret without a header": ["--proxy-secret-file", "nix"],
    "memory": ["--store", "memory:"],
    "a worker without code": ["--with-worker"],
    "another engine of nothing": ["--store", "nix://x"],
}


@pytest.mark.parametrize("how", REFUSED)
def test_what_is_not_safe_does_not_start(surefoot, how):
    found = surefoot("console", "--port", "0", *REFUSED[how])

    assert found.returncode == 2, found.stderr
    assert "Traceback" not in found.stderr
