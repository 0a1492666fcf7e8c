"""Who somebody is: links that sign in once, sessions, named tokens, a proxy, another app."""

from __future__ import annotations

import os
import stat

import pytest

import surefoot as sf
from surefoot.console.principals import Principal
from surefoot.console.sessions import Sessions
from surefoot.console.tokens import Tokens
from tests.console.conftest import BASE, Browser


def test_a_link_is_used_up_by_its_button_not_by_a_look(browse, console):
    """Link checkers of mail and chat follow links; they press no buttons."""
    token = console.sessions.link(Principal("ann", "admin", via="console"))
    nobody = browse(None)

    for _ in range(3):
        assert nobody.get(f"/sign-in?token={token}").status_code == 200
    done = nobody.http.post("/sign-in", data={"token": token}, headers={"Origin": BASE})

    assert done.status_code == 303
    cookie = done.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert "path=/" in cookie
    assert nobody.get("/api/v1/inbox").status_code == 200
    assert browse(None).http.post("/sign-in", data={"token": token}, headers={"Origin": BASE}).status_code == 403


def test_signing_in_goes_on_where_somebody_wanted_to_be(browse, console):
    nobody = browse(None)
    sent = nobody.get("/runs/r?do=settle").headers["location"]
    assert sent == "/sign-in?then=%2Fruns%2Fr%3Fdo%3Dsettle"
    for then, leads in [("/runs/r?do=settle", "/runs/r?do=settle"), ("//evil", "/"), ("https://evil", "/")]:
        token = console.sessions.link(Principal("ann", "admin"))
        done = nobody.http.post("/sign-in", data={"token": token, "then": then}, headers={"Origin": BASE})
        assert done.headers["location"] == leads


def test_a_session_ends(ann):
    assert ann.get("/api/v1/inbox").status_code == 200
    cookie = ann.http.cookies["surefoot-4747"]
    ann.send("/sign-out")
    ann.http.cookies.set("surefoot-4747", cookie)

    assert ann.get("/api/v1/inbox").status_code == 401


def test_links_and_sessions_are_over_in_time():
    now = [0.0]
    sessions = Sessions(lambda: now[0])
    link, session = sessions.link(Principal("ann")), sessions.begin(Principal("ann"))

    now[0] = 301.0
    assert sessions.take(link) is None
    assert sessions.of(session) is not None
    now[0] = 12 * 3600 + 1.0
    assert sessions.of(session) is None


def test_other_tokens_are_nobody(browse, monkeypatch):
    monkeypatch.setattr("surefoot.console.signing.DELAY_SECONDS", 0.0)
    for token in ("", "x", "sft_", "é", "\x00", "a" * 10_000):
        require_nobody(browse(None), token)


def require_nobody(nobody, token):
    nobody.http.cookies.set("surefoot-4747", token.encode("unicode_escape").decode())
    assert nobody.get("/api/v1/inbox").status_code == 401
    assert nobody.http.post("/sign-in", data={"token": token}, headers={"Origin": BASE}).status_code == 403
    bearer = {"Authorization": "Bearer " + token.encode("unicode_escape").decode()}
    assert nobody.get("/api/v1/inbox", headers=bearer).status_code == 401


def test_named_tokens_are_shown_once_and_kept_as_digests(tmp_path):
    tokens = Tokens(tmp_path / "deep" / "tokens.json")
    made = tokens.add("ann", "decide", ("release",), 60.0)

    assert made not in tokens.path.read_text()
    assert stat.S_IMODE(os.stat(tokens.path).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(tokens.path.parent).st_mode) == 0o700
    found = Tokens(tokens.path).of(made)
    assert (found.principal.name, found.principal.may, found.principal.groups) == ("ann", "decide", ("release",))
    assert found.principal.via == "console, token ann"
    with pytest.raises(sf.UsageError, match="already"):
        tokens.add("ann", "view")


def test_a_token_ends_when_it_is_revoked_or_over(tmp_path):
    now = [1_000.0]
    tokens = Tokens(tmp_path / "t.json", lambda: now[0])
    reader = Tokens(tmp_path / "t.json", lambda: now[0])
    one, two = tokens.add("one", "view", seconds=60), tokens.add("two", "view")

    assert reader.of(one)
    assert reader.of(two)
    now[0] = 1_061.0
    assert reader.of(one) is None
    tokens.revoke("two")
    assert reader.of(two) is None
    with pytest.raises(sf.NotFound):
        tokens.revoke("two")


def test_a_token_file_that_others_can_write_makes_nobody(tmp_path, consoles, browse, stopped):
    """Who can write it could make people who may approve."""
    console = consoles()
    token = console.tokens.add("ann", "admin")
    nobody = browse(None, at=console)
    bearer = {"Authorization": f"Bearer {token}"}
    assert nobody.get("/api/v1/inbox", headers=bearer).status_code == 200

    os.chmod(console.tokens.path, 0o644)
    console.tokens._read = None
    with pytest.raises(sf.UsageError, match="chmod 600"):
        console.tokens.of(token)
    os.rename(console.tokens.path, tmp_path / "elsewhere")
    os.symlink(tmp_path / "elsewhere", console.tokens.path)
    assert nobody.get("/api/v1/inbox", headers=bearer).status_code != 200


def test_a_token_may_do_what_it_says(browse, console):
    token = console.tokens.add("glancer", "glance")
    nobody = browse(None)
    bearer = {"Authorization": f"Bearer {token}"}

    assert nobody.get("/api/v1/workers", headers=bearer).status_code == 200
    assert nobody.get("/api/v1/runs/r", headers=bearer).status_code == 403


@pytest.fixture
def proxied(tmp_path, consoles, stopped):
    from surefoot.console.proxies import Proxy

    secret, roles = tmp_path / "secret", tmp_path / "roles.json"
    secret.write_text("s" * 40 + "\n")
    roles.write_text('{"ann": {"may": "decide", "groups": ["release"]}}')
    return consoles(identify=Proxy("X-User", secret, roles, ("testclient",)))


def test_a_proxy_is_believed_with_its_secret_only(proxied):
    who = Browser(proxied, None)
    good = {"X-User": "ann", "X-Surefoot-Proxy": "s" * 40}

    assert who.get("/api/v1/inbox", headers=good).status_code == 200
    for wrong in ({"X-User": "ann"}, {**good, "X-Surefoot-Proxy": "s" * 39}, {"X-Surefoot-Proxy": "s" * 40},
                  {**good, "X-User": ""}, {**good, "X-Surefoot-Proxy": ""}):  # fmt: skip
        assert who.get("/api/v1/inbox", headers=wrong).status_code == 401
    twice = [*good.items(), ("X-User", "eve")]
    assert who.http.get("/api/v1/inbox", headers=twice).status_code == 401


def test_who_is_not_in_the_roles_may_look(proxied):
    who = Browser(proxied, None)
    bob = {"X-User": "bob", "X-Surefoot-Proxy": "s" * 40}
    ann = {**bob, "X-User": "ann"}
    seen = who.get("/api/v1/runs/r", headers=bob).json()["head"]
    said = {"do": "settle", "address": "pay#1", "failed": True, "seen": seen}

    assert who.post("/api/v1/runs/r/actions", said, **bob).status_code == 403
    assert who.post("/api/v1/runs/r/actions", said, **ann).status_code == 200
    data = sf.get_run("r").entries()[-1].data
    assert (data["by"], data["via"]) == ("ann", "console, proxy")


def test_a_proxy_from_elsewhere_is_not_believed(tmp_path, consoles, stopped):
    from surefoot.console.proxies import Proxy

    (tmp_path / "s").write_text("s" * 40)
    who = Browser(consoles(identify=Proxy("X-User", tmp_path / "s", None, ("10.0.0.1",))), None)
    assert who.get("/api/v1/inbox", headers={"X-User": "ann", "X-Surefoot-Proxy": "s" * 40}).status_code == 401
    (tmp_path / "short").write_text("short")
    with pytest.raises(sf.UsageError, match="at least 32"):
        Proxy("X-User", tmp_path / "short", None, ())


def test_mounted_in_another_app(stopped):
    """All links are below the mount, and who somebody is says the app around it."""
    from fastapi import FastAPI
    from starlette.testclient import TestClient

    import surefoot.console

    async def who(request):
        return Principal("ann", "admin") if request.headers.get("x-me") == "ann" else None

    outer = FastAPI()
    mounted = surefoot.console.app(identify=who, hosts=("shop.example",))
    outer.mount("/x/y", mounted)
    http = TestClient(outer, base_url="https://shop.example", follow_redirects=False)
    me = {"x-me": "ann"}
    try:
        assert http.get("/x/y/api/v1/inbox").status_code == 401
        assert http.get("/x/y/api/v1/inbox", headers=me).status_code == 200
        page = http.get("/x/y/runs/r", headers=me)
        assert page.status_code == 200
        import re

        links = re.findall(r'(?:href|src|action)="([^"]*)"', page.text)
        assert links
        assert [one for one in links if not one.startswith(("/x/y/", "#", "?"))] == []
        for one in {one for one in links if "/static/" in one}:
            assert http.get(one).status_code == 200, one
        token = mounted.csrf(b"name\0ann")
        seen = http.get("/x/y/api/v1/runs/r", headers=me).json()["head"]
        form = {"token": token, "address": "pay#1", "how": "failed", "seen": f"{seen['seq']}.{seen['seal']}"}
        done = http.post("/x/y/runs/r/settle", data=form, headers={**me, "Origin": "https://shop.example"})
        assert done.status_code == 303
        assert done.headers["location"].startswith("/x/y/runs/r?")
        assert sf.get_run("r").entries()[-1].data["by"] == "ann"
    finally:
        mounted.close()
