"""What people say at the console: one entry each, by whoever is signed in, about the run as it was seen; or nothing."""

from __future__ import annotations

import concurrent.futures
import json

import pytest

import surefoot as sf
from surefoot.store.open import close_all
from tests.console.conftest import entries


def newest(run="r"):
    return sf.get_run(run).entries()[-1]


def form(who, run="r", **fields):
    seen = who.seen(run)
    return {"seen": f"{seen['seq']}.{seen['seal']}", **fields}


def test_a_form_records_one_entry_by_who_is_signed_in(browse):
    """Who is recorded comes from the session, never from the form."""
    who = browse(name="ann")
    found = who.send(
        "/runs/r/settle",
        **form(who, address="pay#1", how="happened", value='"re_1"', note="in the bank", by="eve"),
    )

    assert found.status_code == 303
    assert found.headers["location"].startswith("/runs/r?recorded=")
    data = newest().data
    assert (newest().kind, data["by"], data["note"], data["via"]) == ("EffectSettled", "ann", "in the bank", "console")
    assert data["value"] == "re_1"


@pytest.mark.parametrize(("how", "kind"), [("yes", True), ("no", False)])
def test_yes_and_no(ann, how, kind):
    asked = sf.get_run("q").state().question("approve#1")
    found = ann.send("/runs/q/answer", **{**form(ann, "q", question="approve#1", shown=asked.shown), "as": how})

    assert found.status_code == 303, found.text
    assert newest("q").data["value"] is kind
    assert newest("q").data["shown"] == asked.shown


def test_a_double_click_is_one_entry_and_both_see_it_done(ann):
    """The browser shows the answer to the second one."""
    fields = form(ann, address="pay#1", how="not_happened", key="once")
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda _: ann.send("/runs/r/settle", **fields), range(2)))

    assert [one.status_code for one in found] == [303, 303]
    assert found[0].headers["location"] == found[1].headers["location"]
    assert entries().count("EffectSettled") == 1


def test_the_same_key_for_something_else_is_refused(ann):
    seen = ann.seen()
    said = {"do": "settle", "address": "pay#1", "seen": seen, "key": "k"}

    assert ann.say(**said, not_happened=True).status_code == 200
    assert ann.say(**said, not_happened=True).status_code == 200
    assert ann.say(**said, failed=True).status_code == 400
    assert entries().count("EffectSettled") == 1


MOVED = [
    {"do": "settle", "address": "pay#1", "not_happened": True},
    {"do": "rewind", "at": "look#1"},
    {"do": "cancel"},
    {"do": "fork", "at": "look#1", "id": "f"},
    {"do": "acknowledge"},
    {"do": "retry", "failed": True},
    {"do": "event", "name": "n", "value": 1, "id": "e"},
    {"do": "release"},
    {"do": "match", "address": "look#1", "new": True},
    {"do": "answer", "question": "approve#1", "value": True, "shown": ""},
]


@pytest.mark.parametrize("said", MOVED, ids=[one["do"] for one in MOVED])
def test_what_has_moved_since_it_was_seen_records_nothing(ann, said):
    """409: between the look and the click somebody else has said something. The run is shown anew."""
    run = "q" if said["do"] == "answer" else "r"
    seen = ann.seen(run)
    sf.get_run(run).send_event("other", 1, id="other")
    before = entries(run)

    found = ann.say(run, **said, seen=seen)

    assert (found.status_code, found.json()["error"]["type"]) == (409, "Outdated")
    assert entries(run) == before
    with pytest.raises(sf.NotFound):
        sf.get_run("f")


def test_a_form_that_is_too_late_shows_its_page_again_with_the_note(ann):
    fields = form(ann, address="pay#1", how="not_happened", note="I asked the bank <b>twice</b>")
    fields |= {"back": "/runs/r?do=settle&call=pay%231"}
    sf.get_run("r").send_event("other", 1, id="other")

    found = ann.send("/runs/r/settle", **fields)

    assert found.status_code == 409
    assert found.headers["content-type"].startswith("text/html")
    assert "I asked the bank &lt;b&gt;twice&lt;/b&gt;" in found.text
    assert "EffectSettled" not in entries()


def test_the_second_of_two_people_is_told(browse):
    ann, bob = browse(name="ann"), browse(name="bob")
    seen = ann.seen()

    assert ann.say(do="settle", address="pay#1", happened="a", seen=seen).status_code == 200
    assert bob.say(do="settle", address="pay#1", failed=True, seen=seen).status_code == 409
    assert [one.data["by"] for one in sf.get_run("r").entries() if one.kind == "EffectSettled"] == ["ann"]


def test_a_word_without_what_was_seen_is_refused(ann):
    before = entries()
    for said in (
        {"do": "settle", "address": "pay#1", "failed": True},
        {"do": "cancel"},
        {"do": "rewind", "at": "look#1"},
    ):
        assert ann.post("/api/v1/runs/r/actions", said).status_code == 400
    assert ann.send("/runs/r/cancel").status_code == 400
    assert entries() == before


def test_a_word_needs_its_scope_also_at_the_api(browse):
    """The route of all words is for whoever decides; what ends or sets aside takes more."""
    who = browse("decide")
    before = entries()
    for said in ({"do": "cancel"}, {"do": "rewind", "at": "look#1"}, {"do": "fork", "at": "look#1", "id": "f"}):
        assert who.say(**said).status_code == 403
    assert entries() == before
    assert who.say(do="settle", address="pay#1", failed=True).status_code == 200


def test_odd_words_are_refused_with_their_reason(ann):
    for said in ({}, {"do": "nix"}, {"do": ["settle"]}, {"do": "settle"}, {"do": "settle", "address": "pay#1", "by": "eve"},
                 {"do": "settle", "address": 7}, {"do": "settle", "address": "pay#1", "happened": 1, "failed": True}):  # fmt: skip
        found = ann.say(**said)
        assert found.status_code == 400, said
        assert found.json()["error"]["type"] == "UsageError"
    for body in (b"", b"{", b"[]", b"1", b"[" * 100_000, b"\xff"):
        found = ann.http.post(
            "/api/v1/runs/r/actions", content=body,
            headers={"Origin": "http://127.0.0.1:4747", "Content-Type": "application/json"},
        )  # fmt: skip
        assert found.status_code == 400, body[:10]


def test_a_cancellation_is_recorded_and_nothing_is_driven_here(ann):
    """The console drives no run: whoever does finds the request, undoes what has to be undone, and ends the run."""
    found = ann.say(do="cancel", note="no longer needed")

    assert found.status_code == 200, found.text
    assert found.json()["recorded"]["cancelled"] is False
    assert entries()[-1] == "CancelRequested"
    assert found.json()["status"] != "cancelled"


def test_a_fork_is_a_run_of_its_own(ann):
    found = ann.say(do="fork", at="pay#1", id="again")

    assert found.status_code == 200, found.text
    assert found.json()["recorded"]["parent"] == "r"
    assert sf.get_run("again").state().created.parent == "r"


def test_rewind_and_what_it_leaves_in_doubt(ann):
    planned = ann.post("/api/v1/runs/r/plan", {"supposing": {"do": "rewind", "at": "look#1"}}).json()
    found = ann.say(do="rewind", at="look#1", seen=planned["seen"])

    assert found.status_code == 200, found.text
    assert found.json()["recorded"]["in_doubt"] == [one["address"] for one in planned["supposed"]["in_doubt"]]
    assert entries()[-1] == "RunRewound"


def test_what_is_foretold_is_refused_like_the_word_itself(ann):
    wrong = {"do": "settle", "address": "mail#1", "failed": True}
    planned, said = ann.post("/api/v1/runs/r/plan", {"supposing": wrong}), ann.say(**wrong)

    assert (planned.status_code, planned.json()) == (said.status_code, said.json())


def test_a_question_for_others_is_not_answered(browse, console):
    @sf.workflow(name="console_for_release")
    def asking() -> str:
        return str(bool(sf.approve("Ship?", by=["release"])))

    with pytest.raises(sf.WaitingForAnswer):
        asking.run("s")
    shown = sf.get_run("s").state().question("approve#1").shown
    said = {"do": "answer", "question": "approve#1", "value": True, "shown": shown}

    assert browse(name="ann").say("s", **said).status_code == 400
    assert browse(name="ann", groups=("release",)).say("s", **said).status_code == 200
    assert newest("s").data["groups"] == ["release"]


def test_acknowledged_is_off_the_list(ann):
    @sf.workflow(name="console_failing")
    def failing() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        failing.run("x")
    assert "x" in [item["run"] for item in ann.get("/api/v1/inbox").json()["items"]]

    assert ann.send("/runs/x/acknowledge", **form(ann, "x")).status_code == 303

    assert "x" not in [item["run"] for item in ann.get("/api/v1/inbox").json()["items"]]


def test_two_consoles_on_one_store_do_not_get_in_each_others_way(consoles, browse, stopped):
    one, two = browse(at=consoles()), browse(at=consoles())
    seen = one.seen()

    assert two.say(do="settle", address="pay#1", failed=True, seen=seen).status_code == 200
    assert one.say(do="settle", address="pay#1", failed=True, seen=seen).status_code == 409
    assert one.seen() == two.seen()


def test_a_typed_answer_is_refused_with_the_place_and_kept(ann):
    import msgspec

    class Address(msgspec.Struct):
        street: str
        number: int

    @sf.workflow(name="console_typed")
    def typed() -> str:
        return sf.ask("Where to?", type=Address).street

    with pytest.raises(sf.WaitingForAnswer):
        typed.run("t")
    shown = sf.get_run("t").state().question("ask#1").shown
    fields = form(
        ann, "t", question="ask#1", shown=shown, **{"as": "fields", "value.street": "Main", "value.number": "x"}
    )

    wrong = ann.send("/runs/t/answer", **fields)
    assert wrong.status_code == 422
    assert "number" in wrong.text
    odd = ann.say("t", do="answer", question="ask#1", shown=shown, value={"street": "Main", "number": "x"})
    assert (odd.status_code, odd.json()["error"]["path"]) == (422, "$.number")

    right = ann.send("/runs/t/answer", **{**fields, "value.number": "7"})
    assert right.status_code == 303, right.text
    assert newest("t").data["value"] == {"street": "Main", "number": 7}


def test_where_a_form_leads_is_inside_the_console(ann):
    for then in (
        "https://evil.example/",
        "//evil.example",
        "/\\evil",
        "javascript:alert(1)",
        "/%0d%0aX: y",
        "/x\r\nX: y",
    ):
        sf.get_run("r").send_event("n", 1, id=then)
        found = ann.send("/runs/r/event", **form(ann, name="n", value="1", id=f"to {then}", then=then))
        assert found.status_code == 303
        location = found.headers["location"]
        assert location.startswith("/"), then
        assert not location.startswith(("//", "/\\")), then
        assert "x" not in found.headers


def test_a_store_that_is_away_says_so(ann, monkeypatch):
    def away():
        raise sf.StoreUnavailable("the store is away")

    seen = ann.seen()
    monkeypatch.setattr(ann.console, "runtime", away)
    for path in ("/api/v1/inbox", "/api/v1/runs/r", "/api/v1/store"):
        found = ann.get(path)
        assert (found.status_code, found.json()["error"]["type"]) == (503, "StoreUnavailable")
    assert ann.say(do="cancel", seen=seen).status_code == 503


def test_a_store_in_memory_has_no_console(consoles):
    with pytest.raises(sf.UsageError, match="in memory"):
        consoles(store="memory:")


def test_json_of_a_refusal_is_that_of_the_command_line(ann, capsys):
    from surefoot.cli.main import main

    found = ann.get("/api/v1/runs/nix")
    main(["runs", "show", "nix", "--json"])
    told = capsys.readouterr()

    assert found.status_code == 404
    assert json.loads(told.out or told.err) == found.json()
    close_all()


def test_without_the_code_nobody_says_that_a_cancelled_run_ends_at_once(ann, monkeypatch):
    from surefoot.engine.declare.registry import registry

    known = ann.post("/api/v1/runs/r/plan", {"supposing": {"do": "cancel"}}).json()["plan"]
    monkeypatch.setattr(type(registry), "known_for", lambda *_: None)
    ann.console.planner._kept.clear()
    unknown = ann.post("/api/v1/runs/r/plan", {"supposing": {"do": "cancel"}}).json()["plan"]

    assert known["next"] is not None
    assert unknown["next"] is None
    assert not unknown["ending"]
