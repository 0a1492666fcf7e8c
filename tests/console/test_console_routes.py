"""Role by route by mode, made from the route table: a route that is new is in it, or these fail."""

from __future__ import annotations

import re
from pathlib import Path

import surefoot.console
from surefoot.console import routes
from surefoot.console.jobs import Job
from surefoot.console.options import Options
from surefoot.console.principals import OPEN, SCOPES, Principal
from tests.console.conftest import BASE, ROLES, entries

IDS = {
    "run": "r", "address": "pay%231", "seq": "1", "field": "args", "job": "none", "file": "none", "name": "none",
}  # fmt: skip
STREAM = "/api/v1/events"


def path(route):
    return re.sub(r"{(\w+)}", lambda found: IDS[found[1]], route.path)


def asked(who, route, **headers):
    if route.method == "GET":
        return who.get(path(route), headers=headers)
    return who.send(path(route), **headers)


def test_every_route_names_a_scope():
    assert {route.scope for route in routes.ALL} <= {OPEN, *SCOPES}
    assert len({(route.method, route.path) for route in routes.ALL}) == len(routes.ALL)


def test_each_role_gets_what_its_scope_has_and_nothing_else(browse, console, monkeypatch):
    """The whole matrix. What is let in may still be refused by what it asks for; what is not, is 403 before anything."""
    monkeypatch.setattr(console.jobs, "start", lambda what, by: Job("1", what, by, 1))
    for may in ROLES:
        who = browse(may)
        for route in routes.ALL:
            if route.path == STREAM or route.scope == OPEN:
                continue  # The one does not end; the other is for everybody.
            found = asked(who, route)
            may_not = SCOPES.index(may) < SCOPES.index(route.scope)
            assert (found.status_code == 403 and "may not" in found.text) == may_not, (may, route.method, route.path)


def test_nobody_gets_anything_but_what_is_open(browse):
    nobody = browse(None)
    for route in routes.ALL:
        if route.scope == OPEN:
            continue
        found = asked(nobody, route)
        if route.method == "GET" and not route.path.startswith("/api/"):
            assert (found.status_code, found.headers["location"].partition("?")[0]) == (303, "/sign-in"), route.path
        else:
            assert found.status_code in (401, 403), route.path
        assert "pay#1" not in found.text


def test_no_post_passes_without_the_token_of_its_session(browse, stopped):
    """A page of somebody else's can make a browser send a form, and does not know the token."""
    who, other = browse(), browse()
    before = entries()
    for route in routes.ALL:
        if route.method != "POST" or route.scope == OPEN:
            continue
        for token in ("", "x", other.token, who.token[:-1]):
            found = who.send(path(route), token=token, at="look#1", how="failed", seen="1.00")
            assert found.status_code == 403, (route.path, token)
    assert entries() == before


def test_a_read_only_console_has_no_route_that_writes(consoles, browse, stopped):
    console = consoles(read_only=True)
    who = browse(at=console)

    assert {route.path for route in console.table if route.method == "POST"} == {"/sign-in", "/sign-out"}
    for route in routes.ALL:
        if route.method == "POST" and not route.signs_in:
            assert asked(who, route).status_code in (404, 405), route.path
    assert who.get("/api/v1/runs/r").status_code == 200


def test_a_mounted_console_does_not_sign_people_in():
    mounted = routes.table(Options(identify=lambda _: Principal("ann")))

    assert not [route for route in mounted if "sign" in route.path]


def test_what_is_not_in_the_table_does_not_exist(ann):
    for odd in ("/nix", "/runs/r/nix", "//", "/runs//", "/runs/%", "/runs/%ff", "/runs/r/%2e%2e/nix", "/api/v1"):
        assert ann.http.get(f"{BASE}{odd}").status_code in (404, 400), odd
    assert ann.send("/runs").status_code == 405


def test_an_id_is_one_segment_whatever_is_in_it(ann):
    """Ids are percent-encoded, the slash too: none of them reaches another route."""
    for run in ("a/b", "../r", "r/journal", "a%2Fb", "?", "#", " ", "é"):
        from urllib.parse import quote

        found = ann.get(f"/api/v1/runs/{quote(run, safe='')}")
        assert found.status_code in (400, 404), run
        assert found.json()["error"]["type"] in ("NotFound", "UsageError"), run


def test_an_option_that_is_accepted_is_used():
    """What is accepted and does nothing is a promise that is not kept: `hide` was one."""
    source = "\n".join(one.read_text() for one in Path(surefoot.console.__file__).parent.rglob("*.py"))

    idle = [one for one in Options.__struct_fields__ if not re.search(rf"""options(\.{one}\b|, "{one}")""", source)]

    assert idle == []
