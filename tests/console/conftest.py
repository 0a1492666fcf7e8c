"""A console over a store with runs that wait, asked through ASGI: no server, no browser."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

import surefoot as sf
from surefoot.console.application import Console
from surefoot.console.options import Options
from surefoot.console.principals import Principal

BASE = "http://127.0.0.1:4747"
ROLES = ("glance", "view", "decide", "admin")


@sf.step
def look() -> int:
    return 1


@sf.effect
def pay(n: int) -> str:
    raise ConnectionError("lost")


@sf.effect
def mail(text: str) -> str:
    return f"sent {text}"


@sf.workflow(name="console_paying")
def paying(n: int) -> str:
    look()
    return mail(pay(n))


@sf.workflow(name="console_asking")
def asking() -> str:
    return mail("yes") if sf.approve("Go on?", details={"cents": 5}) else "no"


@sf.workflow(name="console_working")
def working(n: int) -> int:
    return look() + n


class Browser:
    """Somebody who is signed in, at the pages and at the API."""

    def __init__(self, console: Console, principal: Principal | None) -> None:
        self.console = console
        self.http = TestClient(console, base_url=BASE, follow_redirects=False)
        self.token = ""
        if principal is not None:
            session = console.sessions.begin(principal)
            self.http.cookies.set("surefoot-4747", session)
            from surefoot.console.sessions import digest

            self.token = console.csrf(digest(session))

    def get(self, path: str, **more):
        return self.http.get(path, **more)

    def send(self, path: str, *, token: str | None = None, headers: dict | None = None, **form):
        """A form, as a page of ours sends it."""
        form = {"token": self.token if token is None else token, **form}
        return self.http.post(path, data=form, headers={"Origin": BASE, **(headers or {})})

    def post(self, path: str, body: object = None, **headers):
        """JSON, as the script of our pages sends it."""
        return self.http.post(path, json=body or {}, headers={"Origin": BASE, **headers})

    def seen(self, run: str = "r") -> dict:
        return self.get(f"/api/v1/runs/{quote(run, safe='')}").json()["head"]

    def say(self, run: str = "r", **said):
        """A word through the API, about the run as it is now."""
        said = said if "seen" in said else {**said, "seen": self.seen(run)}
        key = said.pop("key", "")
        headers = {"Idempotency-Key": key} if key else {}
        return self.post(f"/api/v1/runs/{quote(run, safe='')}/actions", said, **headers)


@pytest.fixture
def consoles(monkeypatch, tmp_path):
    """Consoles by their options."""
    monkeypatch.setenv("SUREFOOT_TOKENS", str(tmp_path / "settings" / "tokens.json"))
    made = []

    def make(**options) -> Console:
        made.append(Console(Options(**options)))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def console(consoles, stopped):
    return consoles()


@pytest.fixture
def browse(console):
    """Somebody at the console, by role; None: nobody is signed in."""

    def of(may: str | None = "admin", name: str = "ann", groups: tuple[str, ...] = (), at: Console | None = None):
        principal = None if may is None else Principal(name, may, groups, via="console")
        return Browser(at or console, principal)

    return of


@pytest.fixture
def ann(browse):
    return browse()


@pytest.fixture
def stopped():
    """A run with a payment in doubt (`r`), one that asks (`q`), and one that is done (`d`)."""
    with pytest.raises(sf.InDoubt):
        paying.run("r", 5)
    with pytest.raises(sf.WaitingForAnswer):
        asking.run("q")
    working.run("d", 1)


def entries(run: str = "r") -> list[str]:
    return [one.kind for one in sf.get_run(run).entries()]


def plain(text: str) -> object:
    return json.loads(text)
