"""What was found by attack, tried in every form in which a call can be made: the promise is the same in all of them."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from pathlib import Path

import pytest

import surefoot as sf
from surefoot import aio, effects, witness
from tests.working import kinds, wait_until

FORMS = ["plain", "async", "map", "gather", "child", "worker"]


def made(form, call, awaited):
    """A workflow that makes the call in that form, and how it is run. `r` is the run."""
    if form == "async":

        @sf.workflow(name="wf")
        async def wf():
            return await awaited()

        return lambda: asyncio.run(wf.run("r"))

    @sf.workflow(name="kid")
    def kid():
        return call()

    @sf.workflow(name="wf")
    def wf():
        match form:
            case "map":
                return sf.map(lambda _: call(), ["one"], key=str)
            case "gather":
                return sf.gather(call)
            case "child":
                return sf.child(kid, "kid")
        return call()

    if form != "worker":
        return lambda: wf.run("r")

    def work():
        wf.start("r")
        with sf.Worker(workflows=[wf]):
            wait_until(lambda: sf.get_run("r").status not in ("queued", "running"))
        return sf.get_run("r").result() if sf.get_run("r").status == "done" else None

    return work


def tried(run):
    """What came of it; None if it stands still, for whichever reason."""
    try:
        return run()
    except (sf.Stopped, sf.StepFailed, KeyboardInterrupt):
        return None


@pytest.mark.parametrize("form", FORMS)
def test_a_deed_that_ends_in_an_exception_is_not_repeated(ledger, form):
    """01: reading the answer raised after the charge. Nothing but a person's word, or a rewind that asks, helps."""

    def charge() -> None:
        ledger.write("charge")
        raise KeyError("id")

    async def charge_async() -> None:
        charge()

    run = made(form, sf.effect(name="charge")(charge), sf.effect(name="charge")(charge_async))

    assert tried(run) is None
    if form != "worker":
        assert tried(run) is None

    assert ledger.lines == ["charge"]
    assert sf.get_run("r").status not in ("done", "failed")


@pytest.mark.parametrize("form", ["plain", "async", "map", "gather", "child"])
def test_what_is_on_its_way_is_waited_for(ledger, sf_clock, form):
    """05: the process died and its request lands four seconds later."""
    lands: list[float] = []

    def push() -> int:
        ledger.write("begun")
        lands.append(sf_clock.now() + 4e6)
        raise KeyboardInterrupt

    async def push_async() -> int:
        return push()

    blocking, awaited = (sf.effect(name="push", in_flight="30s")(fn) for fn in (push, push_async))
    for one in (blocking, awaited):
        one.check(lambda: sf.happened(7) if lands[0] <= sf_clock.now() else sf.not_happened())
    run = made(form, blocking, awaited)

    assert tried(run) is None
    assert tried(run) in (7, [7])
    assert ledger.lines == ["begun"]


def test_an_undo_that_is_on_its_way_is_waited_for(ledger, sf_clock):
    lands: list[float] = []

    @sf.effect(in_flight="30s")
    def pay() -> None:
        ledger.write("pay")

    @pay.undo
    def _(result):
        ledger.write("undo")
        lands.append(sf_clock.now() + 4e6)
        raise KeyboardInterrupt

    @pay.undo.check
    def _(result):
        return sf.happened() if lands[0] <= sf_clock.now() else sf.not_happened()

    @sf.workflow
    def wf():
        with sf.saga():
            pay()
            raise ValueError("so undo it")

    with pytest.raises(KeyboardInterrupt):
        wf.run("r")
    with pytest.raises(ValueError, match="so undo it"):
        wf.run("r")

    assert ledger.lines == ["pay", "undo"]


@pytest.mark.parametrize("kind", ["write_file", "delete_file", "own", "async", "transaction", "map"])
def test_a_foreign_edit_is_not_overwritten_by_any_kind_of_effect(kind):
    """08: somebody has worked on the file since the run saw it."""
    Path("c.txt").write_text("original")
    touches = [witness.file]

    @sf.step
    def think() -> None:
        Path("c.txt").write_text("Ann's")

    def own(path: str) -> None:
        Path(path).write_text("mine")

    async def own_async(path: str) -> None:
        own(path)

    def own_rows(db, path: str) -> None:
        own(path)

    calls = {
        "write_file": lambda: effects.write_file("c.txt", "mine"),
        "delete_file": lambda: effects.delete_file("c.txt"),
        "own": lambda: write("c.txt"),
        "transaction": lambda: rows("c.txt"),
        "map": lambda: sf.map(write, ["c.txt"], key=str),
    }
    write = sf.effect(touches=touches)(own)
    rows = sf.transaction("sqlite:///a.db", touches=touches)(own_rows)
    awaited = sf.effect(touches=touches)(own_async)

    @sf.workflow(watch=[witness.file("c.txt")])
    def blocking():
        think()
        calls[kind]()

    @sf.workflow(watch=[witness.file("c.txt")])
    async def in_task():
        await asyncio.to_thread(think)
        await awaited("c.txt")

    for _ in range(2):
        with pytest.raises(sf.Drifted):
            asyncio.run(in_task.run("r")) if kind == "async" else blocking.run("r")
        assert Path("c.txt").read_text() == "Ann's"


@pytest.mark.parametrize("colour", ["blocking", "async"])
@pytest.mark.parametrize("kind", ["write_file", "delete_file"])
def test_a_yes_to_a_ready_made_effect_is_void_once_the_file_is_another(kind, colour):
    """07: it changes while the process waits for the answer."""
    Path("plan.txt").write_text("safe")

    def act():
        effects.write_file("plan.txt", "mine") if kind == "write_file" else effects.delete_file("plan.txt")

    @sf.workflow(approve="every")
    def blocking():
        act()

    @sf.workflow(approve="every")
    async def in_task():
        await asyncio.to_thread(act)

    def boss():
        wait_until(lambda: [run for run in _runs() if "QuestionAsked" in kinds(run.id)])
        Path("plan.txt").write_text("EVIL")
        sf.get_run("r").answer(f"{kind}#1.approval", True)

    person = threading.Thread(target=boss)
    person.start()
    with pytest.raises(sf.WaitingForAnswer):
        if colour == "async":
            asyncio.run(in_task.using(wait="1s").run("r"))
        else:
            blocking.using(wait="1s").run("r")
    person.join()

    assert Path("plan.txt").read_text() == "EVIL"
    assert kinds("r").count("QuestionAsked") == 2


def _runs():
    try:
        return sf.runs()
    except sf.NotFound:
        return []


@pytest.mark.parametrize("form", ["retry", "repair", "undo by hand", "transaction", "child"])
def test_what_is_executed_looked_for_and_undone_has_the_recorded_defaults(ledger, form):
    """13: a default was changed between two starts, and nobody was asked."""
    moods = ["cut"]
    sqlite3.connect("a.db").execute("CREATE TABLE t (n)").connection.close()

    def version(amount: int):
        def pay(who: str, cents: int = amount) -> int:
            ledger.write(f"pay {cents}")
            if form in ("retry", "repair") and moods:
                moods.pop()
                raise KeyboardInterrupt
            return cents

        def in_database(db, who: str, cents: int = amount) -> int:
            return pay(who, cents)

        def undo(who: str, cents: int, result: int) -> None:
            ledger.write(f"undo {cents}")

        def undo_rows(db, who: str, cents: int, result: int) -> None:
            undo(who, cents, result)

        def half(who: str, cents: int):
            return sf.partial(f"half of {cents}")

        if form == "transaction":
            paid = sf.transaction("sqlite:///a.db", name="pay")(in_database)
            paid.undo(undo_rows)
        else:
            paid = sf.effect(name="pay", on_crash="retry" if form == "retry" else "ask")(pay)
            paid.undo(undo)
        if form == "repair":
            paid.check(half)

        @sf.workflow(name="kid")
        def kid(who: str, cents: int = amount) -> int:
            sf.wait_event("go")
            return pay(who, cents)

        @sf.workflow(name="wf")
        def wf():
            if form == "child":
                return sf.child(kid, "kid", "ann")
            given = paid("ann")
            if form in ("undo by hand", "transaction"):
                sf.wait_event("go")
                sf.undo(paid)
            return given

        return wf

    assert tried(lambda: version(100).run("r")) is None
    if form not in ("retry", "repair"):
        sf.send_event("kid" if form == "child" else "r", "go")

    assert version(9999).run("r") == 100
    assert ledger.lines
    assert "9999" not in "".join(ledger.lines)


@pytest.mark.parametrize("form", ["async saga", "nested sagas", "map", "by hand", "child"])
def test_what_is_left_in_doubt_is_told_in_every_form(ledger, form):
    """14: a failure that may have happened is not undone, and nobody may take the end for the whole story."""
    heard: list[str] = []
    sf.configure(alerts=[lambda alert: heard.append(str(alert))])

    def book() -> None:
        ledger.write("hotel")
        raise TimeoutError("no answer")

    async def book_async() -> None:
        book()

    hotel, awaited = (sf.effect(name="hotel", on_crash="fail")(fn) for fn in (book, book_async))

    def undo(result) -> None:
        ledger.write("cancel hotel")

    for one in (hotel, awaited):
        one.undo(undo)

    @sf.workflow
    def kid():
        with sf.saga():
            hotel()

    @sf.workflow
    def blocking():
        try:
            match form:
                case "by hand":
                    hotel()
                case "child":
                    sf.child(kid, "kid")
                case "map":
                    with sf.saga():
                        sf.map(lambda _: hotel(), ["one"], key=str)
                case _:
                    with sf.saga(), sf.saga():
                        hotel()
        except Exception:  # as code does that wants to go on
            sf.undo(hotel)
        return "rolled back"

    @sf.workflow
    async def in_task():
        try:
            async with aio.saga():
                await awaited()
        except sf.StepFailed:
            return "rolled back"

    try:
        ended = asyncio.run(in_task.run("r")) if form == "async saga" else blocking.run("r")
    finally:
        sf.configure(alerts=[])

    assert ended == "rolled back"
    assert ledger.lines == ["hotel"]
    assert [line for line in heard if "hotel#1" in line]
    left = sf.get_run("kid" if form == "child" else "r").state().left
    assert [address for address in left if address.endswith("hotel#1")]
