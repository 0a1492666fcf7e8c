"""A run as people see it: how it stands depends on its journal and on whether its process lives."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from msgspec import Raw

from surefoot import errors
from surefoot.core import values
from surefoot.core.cure import JSON, command
from surefoot.core.entry import KINDS, CancelRequested, Due, Progressed, RunAdopted, RunCreated, Stop
from surefoot.core.history import PastEffect, PastNote, PastState, PastStep
from surefoot.core.readiness import Standing
from surefoot.core.state import RunState
from surefoot.view import facts, listing, page, standing, timeline, trouble
from surefoot.view.standing import Stands, Wait

HOSTILE = "\x1b]0;owned\x07\u202e"


def run_state(status="running", *pasts, **fields):
    state = RunState("r-1")
    state.status = status
    state.created = RunCreated("work", Raw(b"{}"), "")
    state.calls = {past.address: past for past in pasts}
    for name, value in fields.items():
        setattr(state, name, value)
    return state


PASTS = {"step": PastStep, "effect": PastEffect, "note": PastNote}


def past(address="charge#1", kind="effect", state=PastState.IN_DOUBT, **fields):
    return PASTS[kind](address, state, **{"at": 1_000_000, **fields})


# --- how it stands ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "state", "driven", "shown"),
    [
        ("effect", PastState.IN_DOUBT, True, "under way"),
        ("effect", PastState.IN_DOUBT, False, "in doubt"),
        ("step", PastState.STARTED, True, "under way"),
        ("step", PastState.STARTED, False, "cut off"),
        ("effect", PastState.CLEARED, False, "not happened"),
        ("effect", PastState.UNSTORABLE, False, "value missing"),
        ("step", PastState.DONE, False, "done"),
    ],
)
def test_a_call_without_an_outcome_means_something_else_once_its_process_is_gone(kind, state, driven, shown):
    """The same record: nothing to worry about, or the very thing to worry about."""
    seen = page.page(run_state("running", past(kind=kind, state=state)), driven=driven, now=0)

    assert seen.calls[0].status == shown
    assert seen.calls[0].in_doubt == (shown in ("in doubt", "value missing"))


def test_an_effect_whose_process_lives_but_which_raised_is_in_doubt():
    doubted = past(error=Raw(values.encode_error(TimeoutError("late"))))

    assert page.page(run_state("running", doubted), driven=True, now=0).calls[0].status == "in doubt"


def test_a_run_whose_process_is_gone_says_what_helps():
    seen = page.page(run_state("sleeping"), driven=False, now=0, where="X")

    assert seen.stands == standing.ABANDONED
    assert seen.cures[0].do == "surefoot runs resume r-1 --app MODULE --store X"


def test_a_run_that_is_driven_needs_nothing():
    seen = page.page(run_state("running", claimant=RunAdopted("w" * 32, "host", 7, "claim")), driven=True, now=0)

    assert (seen.stands, seen.cures, seen.driver) == ("running", (), "worker wwwwwwww on host host (pid 7)")


def test_processes_are_numbered_in_the_order_they_appear():
    """Which calls were made before the crash, and which after?"""
    calls = [past(f"s#{n}", "step", PastState.DONE, claimant=who) for n, who in enumerate(("a", "b", "a", ""))]

    seen = page.page(run_state("done", *calls), driven=False, now=0)

    assert [call.process for call in seen.calls] == [1, 2, 1, 0]
    assert seen.processes == ("a", "b")


def test_a_page_has_nothing_raw_in_what_is_shown():
    call = past(f"[{HOSTILE}]/charge#1", args=Raw(values.encode(HOSTILE)), learned_by=HOSTILE)
    seen = page.page(
        run_state("running", call, progress=Progressed("p", 1, 2, HOSTILE), cancel=CancelRequested("ada")),
        driven=True,
        now=0,
    )

    shown = (seen.calls[0].address, seen.calls[0].args, seen.calls[0].learned_by, seen.progress, seen.headline)
    assert all(text.isprintable() for text in shown)
    assert seen.headline == "running, asked to cancel"


def test_a_failed_run_shows_type_and_message_without_reviving_the_exception():
    seen = page.page(run_state("failed", error=Raw(values.encode_error(ValueError("no\nway")))), driven=False, now=0)

    assert (seen.error, seen.headline) == (("ValueError", "no\nway"), "failed: ValueError: no\\nway")


def failed(message="no"):
    return Raw(values.encode_error(ValueError(message)))


@pytest.mark.parametrize(
    "calls",
    [
        [past("a#1", state=PastState.FAILED, error=failed(), first=2), past("b#1", state=PastState.DONE, first=4)],
        [past("a#1", "step", PastState.DONE, first=2), past("n", "note", PastState.DONE, first=4)],
        [],
        [
            past("[a]/book#1", state=PastState.DONE, first=2),
            past("[b]/pay#1", state=PastState.FAILED, error=failed(), first=4),
            past("[a]/book.undo#1", state=PastState.DONE, first=6),
        ],
    ],
)
def test_a_failed_run_has_tried_again_what_failed_and_nothing_else(calls):
    """Whoever goes back further does things again, or is asked about them, for nothing."""
    seen = page.page(run_state("failed", *calls, error=failed()), driven=False, now=0, where="X")

    assert [cure.do for cure in seen.cures] == ["surefoot runs retry r-1 --failed --store X"]


@pytest.mark.parametrize(
    "calls",
    [
        [
            past("book#1", state=PastState.DONE, first=2),
            past("book.undo#1", state=PastState.DONE, first=6),
        ],
        [
            past("book#1", state=PastState.DONE, first=2),
            past("pay#1", state=PastState.FAILED, error=failed(), first=4),
            past("book.undo#1", state=PastState.DONE, first=6),
        ],
    ],
)
def test_a_failed_run_does_not_go_on_after_what_was_undone(calls):
    """The booking is on record as done, and is gone: going on from there would be silently wrong."""
    seen = page.page(run_state("failed", *calls, error=failed()), driven=False, now=0)

    assert [cure.do for cure in seen.cures] == ["start it anew, under another id: this one stays failed"]


def test_calls_on_record_are_counted_without_notes_and_open_ones():
    calls = (
        past("a#1", "step", PastState.DONE),
        past("b#1", "effect", PastState.FAILED),
        past("c#1", "effect", PastState.IN_DOUBT),
        past("progress#1", "note", PastState.DONE),
    )

    assert page.calls_done(run_state("running", *calls)) == 2


def let_go(status, *, due=5_000_000, wake=5_000_000, **fields):
    """A run that nobody drives, as a worker left it."""
    return run_state(status, due=None if due is None else Due(due, "", 0), standing=Standing(wake), epoch=1, **fields)


@pytest.mark.parametrize(
    ("state", "stands", "headline"),
    [
        (let_go("sleeping"), "sleeping", "sleeping until 1970-01-01 00:00:05 UTC"),
        (let_go("waiting", children=("c-1",)), "waiting", "waiting for run c-1"),
        (let_go("waiting", children=("c-1",), due=None, wake=1_000_000), "waiting", "waiting for run c-1"),
        (let_go("waiting", children=tuple("abcde")), "waiting", "waiting for runs a, b, c and 2 more"),
        (
            run_state(
                "queued",
                created=RunCreated("w", Raw(b"{}"), "", due=Due(5_000_000, "", 0)),
                standing=Standing(5_000_000),
            ),
            "queued",
            "starts at 1970-01-01 00:00:05 UTC",
        ),
    ],
)
def test_a_run_that_a_worker_let_go_of_is_neither_cut_off_nor_anybodys_business(state, stands, headline):
    """Ten thousand sleeping runs must not hide the one that needs a person."""
    seen = page.page(state, driven=False, now=2_000_000)

    assert (seen.stands, seen.headline) == (stands, headline)
    assert (seen.needs_a_person, seen.reasons, seen.cures) == (False, (), ())


@pytest.mark.parametrize(
    "state",
    [
        let_go("sleeping", due=1_000_000, wake=1_000_000),
        let_go("queued", children=("c-2",), wake=1_500_000),
        let_go("sleeping", wake=1_500_000, newest_at=1_500_000),
    ],
    ids=["its time has come", "one of its children has ended", "somebody cancelled it"],
)
def test_a_run_whose_wait_is_over_is_ready_and_says_what_takes_it_up(state):
    """Where no worker is running, nothing will happen until somebody sees this."""
    seen = page.page(state, driven=False, now=2_000_000)

    assert (seen.stands, seen.headline, seen.needs_a_person) == ("ready", "ready to go on; nobody drives it", True)
    assert "surefoot worker MODULE" in [cure.do for cure in seen.cures]


def test_a_worker_that_died_while_its_run_slept_leaves_it_cut_off():
    """Only a run that was let go of is safe to be left alone."""
    asleep = run_state("sleeping", claimant=RunAdopted("w" * 32, "host", 7, "claim"))

    assert page.page(asleep, driven=False, now=0).stands == standing.ABANDONED


def test_a_question_of_a_run_that_also_sleeps_still_needs_a_person():
    stop = Stop("WaitingForAnswer", "m", "approve#1")
    seen = page.page(let_go("waiting", stops=(stop,)), driven=False, now=0)

    assert (seen.stands, seen.needs_a_person, seen.headline) == ("waiting", True, "waiting for an answer")


def test_a_call_that_waits_for_a_child_was_not_cut_off():
    waiting = let_go("waiting", children=("c-1",))
    waiting.calls = {"child#1": past("child#1", "step", PastState.STARTED)}

    assert page.page(waiting, driven=False, now=0).calls[0].status == "waiting"


def test_a_child_names_its_parent():
    child = run_state("done", created=RunCreated("w", Raw(b"{}"), "", child_of="p-1"))

    assert page.page(child, driven=False, now=0).child_of == "p-1"


# --- the list --------------------------------------------------------------------------------------------


def test_the_list_begins_with_damage_then_stops_then_what_is_cut_off():
    """Newest first, but never before what needs a person."""

    def seen(run, status, created, *stops, stands="", **more):
        return listing.Seen(run, "w", status, created, {}, Stands(stands or status, stops, **more))

    ordered = listing.ordered(
        [
            seen("new", "done", 9_000_000),
            seen("older", "done", 5_000_000),
            seen("alive", "running", 4_000_000),
            seen("gone", "running", 3_000_000, stands="cut off"),
            seen("sleeps", "sleeping", 2_500_000, wait=Wait(11_000_000)),
            seen("parent", "waiting", 2_400_000, wait=Wait(11_000_000, ("c-1", "c-2"))),
            seen("later", "queued", 2_300_000, wait=Wait(11_000_000, begins=True)),
            seen("asks", "waiting", 2_000_000, Stop("WaitingForAnswer", "m", "wait_event#1")),
            seen("stopped", "stopped", 1_000_000, Stop("InDoubt", "m", f"a{HOSTILE}#1")),
            seen("bad", "done", 1, stands="damaged", damage=f"JournalCorrupt: {HOSTILE}"),
        ]
    )
    rows = [listing.row(one, now=10_000_000) for one in ordered]

    needing, others = ["bad", "stopped", "asks", "gone"], ["new", "older", "alive", "sleeps", "parent", "later"]
    assert [row[1] for row in rows] == [*needing, *others]
    assert [one.stands.needs_a_person for one in ordered] == [True] * 4 + [False] * 6
    assert [row[-1] for row in rows[-3:]] == [
        "sleeping until 1970-01-01 00:00:11 UTC",
        "waiting for runs c-1, c-2",
        "starts at 1970-01-01 00:00:11 UTC",
    ]
    assert all(row[-1].isprintable() for row in rows)
    assert rows[3][-1] == "its process is gone; ready to go on"


# --- the story -------------------------------------------------------------------------------------------


def entry(kind, **data):
    return SimpleNamespace(seq=1, at=datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC), epoch=1, kind=kind, data=data)


def test_every_kind_of_entry_has_words():
    """A new kind of entry must not be shown as a name nobody knows."""
    assert {kind.__name__ for kind in KINDS.values()} == set(timeline._WORDS)


@pytest.mark.parametrize("kind", sorted(timeline._WORDS))
def test_every_kind_of_entry_can_be_told_with_as_little_as_it_may_hold(kind):
    """Fields with default values are left out of the journal."""
    least = {"done": 1.0} if kind == "Progressed" else {}

    line = timeline.line(entry(kind, **least))

    assert line.what
    assert line.detail.isprintable()


def test_a_settlement_tells_who_said_what_and_why():
    told = timeline.line(
        entry("EffectSettled", address="charge#1", happened=True, attempt=1, value="re_1", by="ada", note="seen")
    )

    assert told.at == "2026-01-02 03:04:05.678"
    assert (told.what, told.address) == ("effect settled", "charge#1")
    assert told.detail == 'happened, value "re_1"; said by ada: seen'


@pytest.mark.parametrize(
    ("kind", "data", "told"),
    [
        ("RunSuspended", {"due": {"at": 5_000_000}}, ("let go", "until 1970-01-01 00:00:05 UTC")),
        ("RunSuspended", {"due": {"at": 5_000_000}, "children": ["a", "b"]}, ("let go", "until one of these has ended: a, b")),
        ("ChildEnded", {"child": "a"}, ("child ended", "run a")),
        ("QuarantineLifted", {"by": "ada", "note": "mended"}, ("quarantine lifted", "by ada: mended")),
        (
            "RunCreated",
            {"workflow": "w", "args": {}, "child_of": "p", "due": {"at": 5_000_000}},
            ("run created", "workflow w with {}, child of p, starts at 1970-01-01 00:00:05 UTC"),
        ),
    ],
)  # fmt: skip
def test_what_workers_and_children_do_is_told_in_words(kind, data, told):
    line = timeline.line(entry(kind, **data))

    assert (line.what, line.detail) == told


def test_a_failure_in_the_story_has_its_type_message_and_attempt():
    error = {"$error": {"type": "ValueError", "message": HOSTILE}}
    told = timeline.line(entry("StepRaised", address="a#1", error=error, attempt=2, due={"at": 1}))

    assert told.detail == "ValueError: \\x1b]0;owned\\x07\\u202e, will be tried again (attempt 2)"


# --- trouble ---------------------------------------------------------------------------------------------


def test_an_error_cannot_pose_as_two():
    """A message may hold a line that looks like our own; indented, it deceives nobody."""
    lines = trouble.lines(errors.Fatal(f"no\nInDoubt: run x: pay me{HOSTILE}"))

    assert lines == ["Fatal: no", "  InDoubt: run x: pay me\\x1b]0;owned\\x07\\u202e"]


def test_every_stop_is_told_with_its_cures():
    first = errors.InDoubt(
        "run r, a#1: lost.",
        run_id="r",
        address="a#1",
        cures=(command("settle", "r", "a#1", happened=JSON, when="happened?"),),
    )
    second = errors.InDoubt("run r, b#1: lost.", run_id="r", address="b#1")
    first.stops = (first, second)

    assert trouble.lines(first) == [
        "InDoubt: run r, a#1: lost.",
        "  happened?   surefoot settle r 'a#1' --happened 'JSON'",
        "InDoubt: run r, b#1: lost.",
    ]
    told = facts.error(first, exit_code=3)
    assert (told["run"], told["address"], [stop["address"] for stop in told["stops"]]) == ("r", "a#1", ["a#1", "b#1"])
    line = "surefoot settle r 'a#1' --happened 'JSON'"
    arguments = {"run": "r", "address": "a#1", "happened": {"ask": "JSON"}}
    assert told["cures"] == [
        {"when": "happened?", "do": line, "verb": "settle", "arguments": arguments, "command": line}
    ]


def test_a_failure_that_could_not_come_back_keeps_its_recorded_name():
    assert trouble.lines(errors.StepFailed("Broken", "no more luck")) == ["Broken: no more luck"]


def test_an_exception_whose_text_cannot_be_made_is_shown_all_the_same():
    class Odd(Exception):
        def __str__(self):
            raise RuntimeError

    assert trouble.lines(Odd()) == ["Odd: <its __str__ raised RuntimeError>"]


def test_the_field_of_a_refused_value_is_told_to_programs():
    assert facts.error(errors.ValueRejected("no", path="$.a[3]"))["path"] == "$.a[3]"


# --- the list ----------------------------------------------------------------------------------------------


def hosted(run, thread, stands="done", created=0, workflow="LangGraph.pay", **more):
    labels = {"thread": thread, "task": "1f/6f"} if thread else {}
    return listing.Seen(run, workflow, "done", created, labels, Stands(stands, **more))


def test_hosted_runs_of_one_thread_are_one_line_and_those_that_need_a_person():
    """A graph of three nodes leaves three runs a turn: a chat of a day would fill the list."""
    stop = Stop("InDoubt", "", "charge#1")
    seen = listing.ordered(
        [
            hosted("chat:a:1", "chat", created=1_000_000),
            hosted("tick-81", ""),
            hosted("chat:b:2", "chat", "stopped", created=2_000_000, workflow="LangGraph.mail", stops=(stop,)),
            hosted("other:a:1", "other"),
        ]
    )

    shown = list(listing.rows(seen, 3_000_000))

    assert [line[:3] for line in shown] == [
        ("stopped", "thread chat", "LangGraph"),
        ("stopped", "  chat:b:2", "LangGraph.mail"),
        ("done", "other:a:1", "LangGraph.pay"),
        ("done", "tick-81", "LangGraph.pay"),
    ]
    assert [line[-1] for line in shown][:2] == ["2 runs, 1 to look at", "InDoubt charge#1"]


def test_a_thread_of_which_there_may_be_more_is_not_counted_as_if_it_were_whole():
    seen = [hosted("chat:a:1", "chat"), hosted("chat:b:2", "chat")]

    ((*_, told),) = listing.rows(seen, 0, is_cut=True)

    assert told == "2 or more runs, each with --label thread=chat"


def test_a_thread_cannot_act_on_a_terminal():
    seen = [hosted("chat:a:1", HOSTILE), hosted("chat:b:2", HOSTILE)]

    assert not any(char in cell for line in listing.rows(seen, 0) for cell in line for char in HOSTILE[:1])
