"""The API gives what the command line prints, byte for byte, and its description fits every answer."""

from __future__ import annotations

import json

import msgspec
import pytest

import surefoot as sf
from surefoot.cli.main import main
from surefoot.console.api import openapi, shapes
from surefoot.console.api.table import ROUTES
from tests.console.conftest import entries

SAME = [
    ("/api/v1/inbox", ["inbox"]),
    ("/api/v1/inbox?kind=question", ["inbox", "--kind", "question"]),
    ("/api/v1/inbox?limit=1", ["inbox", "--limit", "1"]),
    ("/api/v1/runs", ["runs"]),
    ("/api/v1/runs?status=stopped&limit=1", ["runs", "--status", "stopped", "--limit", "1"]),
    ("/api/v1/runs?need=*", ["runs", "--need", "*"]),
    ("/api/v1/runs/r", ["runs", "show", "r"]),
    ("/api/v1/runs/d", ["runs", "show", "d"]),
    ("/api/v1/runs/r/calls/pay%231", ["runs", "show", "r", "pay#1"]),
    ("/api/v1/diff?a=r&b=d", ["runs", "diff", "r", "d"]),
    ("/api/v1/runs/nix", ["runs", "show", "nix"]),
    ("/api/v1/runs/r/calls/nix%231", ["runs", "show", "r", "nix#1"]),
]


@pytest.fixture
def cli(capsys, ann):
    """What a command prints on standard output, for the store of the console."""

    def run(*words: str) -> str:
        capsys.readouterr()
        main([*words, "--json", "--store", ann.console.url])
        return capsys.readouterr().out

    return run


def test_an_answer_is_what_the_command_prints(ann, cli):
    """Whoever has a script for the one has it for the other."""
    for path, words in SAME:
        assert ann.get(path).text == cli(*words), path


def test_a_plan_is_what_the_command_prints(ann, cli):
    said = {"do": "settle", "address": "pay#1", "not_happened": True}

    told = ann.post("/api/v1/runs/r/plan", {"supposing": said})
    bare = ann.post("/api/v1/runs/r/plan", {})

    assert told.text == cli("runs", "plan", "r", "--supposing", json.dumps(said))
    assert bare.json()["plan"] == json.loads(cli("runs", "plan", "r"))


def test_a_word_says_what_the_command_says(ann, cli):
    """The same word of the same person, once here and once there."""
    here = ann.say("r", do="settle", address="pay#1", failed=True, note="n").json()

    @sf.workflow(name="console_twin")
    def twin() -> str:
        from tests.console.conftest import pay

        return pay(5)

    with pytest.raises(sf.InDoubt):
        twin.run("r2")
    there = json.loads(cli("settle", "r2", "pay#1", "--failed", "--note", "n", "--by", "ann"))

    assert json.dumps(here).replace('"r"', '"r2"').replace(" r ", " r2 ") == json.dumps(there)


def shape_of(path: str, method: str = "GET"):
    return openapi.ANSWERS[method, path][1]


def held(found, shape):
    """The answer as its type says, with nothing that the type does not have and nothing missing."""
    return msgspec.json.decode(found.content, type=shape)


def test_every_answer_is_as_the_description_says(ann):
    run = "/api/v1/runs/{run}"
    asked = {
        "/api/v1/inbox": "", "/api/v1/runs": "", run: "", f"{run}/calls": "?limit=1", f"{run}/lanes": "",
        f"{run}/entries": "?after=1&limit=2", f"{run}/world": "", "/api/v1/diff": "?a=r&b=d", "/api/v1/workers": "",
        "/api/v1/audit": "", "/api/v1/store": "", f"{run}/calls/{{address}}": "", f"{run}/at/{{seq}}": "",
    }  # fmt: skip
    ann.say("r", do="settle", address="pay#1", happened=1)
    for path, query in asked.items():
        for one in ("r", "q", "d"):
            address = {"r": "pay%231", "q": "approve%231", "d": "look%231"}[one]
            found = ann.get(path.format(run=one, address=address, seq=2) + query)
            assert found.status_code == 200, (path, one, found.text)
            held(found, shape_of(path))
    planned = ann.post("/api/v1/runs/r/plan", {"supposing": {"do": "rewind", "at": "pay#1"}})
    held(planned, shapes.Planned)
    held(ann.say("r", do="event", name="n", value=1), shapes.Recorded)
    held(ann.get("/api/v1/runs/nix"), shapes.Failure)
    held(ann.get("/api/v1/nix"), shapes.Failure)
    held(ann.say("d", do="cancel"), shapes.Failure)


def test_the_description_has_every_route_and_every_word(browse):
    found = browse(None).get("/api/v1/openapi.json").json()

    assert found["openapi"] == "3.1.0"
    assert {(method.upper(), path) for path, one in found["paths"].items() for method in one} == {
        (route.method, route.path) for route in ROUTES
    }
    names = {one["const"] for one in _tags(found["components"]["schemas"])}
    from surefoot.console.actions import SCOPES

    assert set(SCOPES) - {"repair"} <= names
    refs = set(_refs(found))
    assert refs <= {f"#/components/schemas/{name}" for name in found["components"]["schemas"]}


def _refs(found):
    if isinstance(found, dict):
        if isinstance(found.get("$ref"), str):
            yield found["$ref"]
        for one in found.values():
            yield from _refs(one)
    elif isinstance(found, list):
        for one in found:
            yield from _refs(one)


def _tags(schemas):
    for one in schemas.values():
        do = one.get("properties", {}).get("do", {})
        if "enum" in do:
            yield from ({"const": word} for word in do["enum"])
        if "const" in do:
            yield do


def test_a_value_is_a_file_of_a_fixed_type(ann):
    """A browser shows nothing of it: what a model has answered may be a page."""
    intent = next(one.seq for one in sf.get_run("r").entries() if one.kind == "EffectIntended")
    found = ann.get(f"/api/v1/runs/r/values/{intent}/args")

    assert found.status_code == 200, found.text
    assert found.headers["content-type"] == "application/octet-stream"
    assert found.headers["content-disposition"].startswith("attachment")
    for wrong in (f"{intent}/nix", f"{intent}/__class__", "999/args", "x/args", f"{intent}/address"):
        assert ann.get(f"/api/v1/runs/r/values/{wrong}").status_code == 404, wrong


def test_pages_of_entries_and_calls_follow_each_other(ann):
    first = ann.get("/api/v1/runs/r/entries?limit=2").json()
    second = ann.get(f"/api/v1/runs/r/entries?limit=100&after={first['next']}").json()

    assert [one["kind"] for one in [*first["entries"], *second["entries"]]] == entries()
    assert second["next"] is None
    assert ann.get("/api/v1/runs/r/calls?after=1").json()["calls"][0]["address"] == "pay#1"


def test_the_past_is_as_it_was(ann):
    """Nothing that came later is in it."""
    found = ann.get("/api/v1/runs/r/at/3").json()

    assert found["head"]["seq"] == 3
    assert len(found["calls"]) <= 1
    assert ann.get("/api/v1/runs/r/at/999").status_code == 404


def test_odd_numbers_are_refused(ann):
    for path in ("runs?limit=x", "runs?limit=-1", "runs?limit=9999999", "runs/r/entries?after=1e3", "inbox?limit=٣",
                 "inbox?cursor=nix", "inbox?kind=nix", "runs?status=nix", "runs?need=nix", "runs?label=x", "runs/r/lanes?from=x"):  # fmt: skip
        assert ann.get(f"/api/v1/{path}").status_code == 400, path


def test_who_did_what_is_in_the_audit(ann, browse):
    browse(name="bob").say("r", do="settle", address="pay#1", failed=True, note="gone")

    found = ann.get("/api/v1/audit?who=bob").json()["said"]

    assert [(one["run"], one["by"], one["entry"]["kind"], one["entry"]["data"]["note"]) for one in found] == [
        ("r", "bob", "EffectSettled", "gone")
    ]
    assert ann.get("/api/v1/audit?who=nobody").json()["said"] == []
