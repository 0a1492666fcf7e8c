"""Workers with different code on one store: each drives its own runs, and leaves the others' alone."""

from __future__ import annotations

import logging
from types import SimpleNamespace

import msgspec
import pytest

import surefoot as sf
from surefoot.core.entry import RunCreated
from surefoot.engine.declare.registry import Definition, registry
from surefoot.engine.drive import acts, perform, start
from surefoot.engine.drive.conclusion import Suspended
from surefoot.engine.drive.takeover import Ended, LeftToOthers, PassedBy, Takeover, taking_up
from surefoot.engine.process import config, journal
from surefoot.engine.session.session import Session
from surefoot.store.contract import Serving, WorkerSeen
from tests.working import ended, kinds, wait_until


@sf.workflow
def process(x):
    return f"ours {x}"


def queue(run: str, module: str) -> None:
    runtime = config.runtime(create=True)
    plan = process.definition.plan(run, ("x",), {})
    created = RunCreated(plan.definition.name, msgspec.Raw(plan.args), plan.digest, module=module)
    journal.create(runtime.store, runtime.clock, run, created)


def test_worker_leaves_another_modules_workflow_alone_and_says_so_once(store, caplog):
    """They come first in the queue, and there are more of them than there is room: ours is driven all the same."""
    for n in range(25):
        queue(f"theirs-{n}", "their_module:process")
    run = process.start("ours", "x")

    with caplog.at_level(logging.WARNING, logger="surefoot"), sf.Worker(concurrency=4):
        assert run.result(timeout=30) == "ours x"

    assert all(kinds(f"theirs-{n}") == ["RunCreated"] for n in range(25))
    told = [record.getMessage() for record in caplog.records if "left to others" in record.getMessage()]
    assert len(told) == 1
    assert '@sf.workflow(was="their_module:process")' in told[0]


def test_two_workflows_of_one_name_in_one_worker_are_an_error_that_names_both(store):
    """It could not know which code a run is for; to serve neither without a word would be worse."""

    def twin() -> None: ...

    registry.add(Definition(twin, name="process"))

    with pytest.raises(sf.UsageError, match=r"test_other_code:process, .*twin"):
        sf.Worker().run()


def test_worker_takes_up_runs_of_the_name_a_workflow_had(store):
    """Renamed in a deploy, with runs in the queue."""

    def handle(x: str) -> str:
        return f"handled {x}"

    handle.__qualname__ = "handle"
    renamed = Definition(handle, was="former")
    runtime = config.runtime(create=True)
    created = RunCreated("former", msgspec.Raw(b'{"x":"y"}'), "", module=f"{__name__}:former")
    journal.create(runtime.store, runtime.clock, "former-1", created)
    registry.add(renamed)

    with sf.Worker():
        wait_until(ended("former-1"))

    assert sf.get_run("former-1").result() == "handled y"


# -- a new version is rolled out -------------------------------------------------------------------------


class Book:
    """What was executed."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.tries = 0
        """How often the new code was replayed or run."""


def versions(book: Book):
    """Old code, which has executed `mail`, and new code that calls it another name."""

    @sf.effect
    def mail() -> str:
        book.lines.append("mail")
        return "sent"

    @sf.effect
    def notify() -> str:
        book.lines.append("notify")
        return "sent"

    def old() -> str:
        mail()
        sf.wait_event("go")
        return mail()

    def new() -> str:
        book.tries += 1
        notify()
        sf.wait_event("go")
        return notify()

    return [Definition(fn, name="rolled") for fn in (old, new)]


def half_done(old: Definition) -> None:
    runtime = config.runtime(create=True)
    with pytest.raises(sf.WaitingForAnswer):
        start.run_blocking(runtime, old.plan("r", (), {}), "r", start.Options())
    sf.send_event("r", "go", None)


def take_up(definition: Definition, run: str = "r") -> Takeover:
    runtime = config.runtime(create=False)
    found = journal.load(runtime.store, run)
    assert found is not None
    outcome = perform.run(taking_up(runtime, definition.resume_plan(), run, found))
    if isinstance(outcome, Ended) and outcome.error is not None:
        raise outcome.error
    return outcome


def other_worker(monkeypatch, **serving) -> None:
    """Beside this process another one is known to live."""
    said = {"workflows": ("rolled",), "code": "other", **serving}
    seen = WorkerSeen("f" * 16, "elsewhere", 1, 1, None, Serving(**said))
    store = config.runtime(create=False).store
    monkeypatch.setattr(type(store), "workers", lambda _: [seen])


def taken_up_in_vain(monkeypatch, digest: str) -> None:
    """A worker with that code has claimed it, and died before anything was recorded."""
    monkeypatch.setattr("surefoot.engine.declare.code.digest", lambda: digest)
    runtime = config.runtime(create=False)
    found = journal.load(runtime.store, "r")
    assert found is not None
    dying = Session(runtime, *found)
    acts.claim(dying)
    runtime.discharge(dying)
    monkeypatch.setattr("surefoot.engine.declare.code.digest", lambda: "ours")


@pytest.mark.parametrize("is_taken_up", [False, True], ids=["handed out", "taken up in vain"])
def test_run_that_the_code_here_cannot_go_on_with_is_left_to_workers_with_other_code(store, monkeypatch, is_taken_up):
    """In the middle of a deploy: it is not stopped, nor touched, as long as the old code may take it up. Also if the deploy
    has killed an old worker right after it had taken the run up.
    """
    book = Book()
    old, new = versions(book)
    half_done(old)
    other_worker(monkeypatch)
    if is_taken_up:
        taken_up_in_vain(monkeypatch, "other")
    before = kinds("r")

    assert isinstance(take_up(new), LeftToOthers)

    assert kinds("r") == before
    assert book.lines == ["mail"]
    take_up(old)
    assert book.lines == ["mail", "mail"]


@pytest.mark.parametrize("case", ["same code", "nobody else", "long ago"])
def test_run_that_may_kill_its_workers_leaves_a_trace_before_its_code_runs(store, monkeypatch, case):
    """Else it would go on killing them for ever: after five traces it is quarantined."""
    old, _ = versions(Book())
    half_done(old)
    taken_up_in_vain(monkeypatch, "ours" if case == "same code" else "other")
    if case != "nobody else":
        other_worker(monkeypatch)
    if case == "long ago":
        monkeypatch.setattr("surefoot.engine.drive.deploys.PATIENCE_SECONDS", 0.0)
    seen = []

    def deadly() -> None:
        seen.append(kinds("r").count("RunAdopted"))

    before = kinds("r").count("RunAdopted")
    with pytest.raises(sf.CodeChanged):
        take_up(Definition(deadly, name="rolled"))

    assert seen[0] == before + 1


@pytest.mark.parametrize("case", ["just ready", "ready for a while", "for a while, and other code serves it"])
def test_run_that_may_have_been_handed_out_before_is_claimed_before_it_is_rehearsed(store, monkeypatch, case):
    """Whoever had it may have died in the rehearsal, of which nothing is known: from now on it is counted."""
    monkeypatch.setattr("surefoot.engine.declare.code.digest", lambda: "other")
    old, _ = versions(Book())
    half_done(old)
    monkeypatch.setattr("surefoot.engine.declare.code.digest", lambda: "ours")
    if case != "just ready":
        monkeypatch.setattr("surefoot.engine.drive.takeover.HELD_SECONDS", 0.0)
    if "other code" in case:
        other_worker(monkeypatch)
    seen = []

    def deadly() -> None:
        seen.append([entry.data.get("rehearses") for entry in sf.get_run("r").entries() if entry.kind == "RunAdopted"])

    if "other code" in case:
        assert isinstance(take_up(Definition(deadly, name="rolled")), LeftToOthers)
    else:
        with pytest.raises(sf.CodeChanged):
            take_up(Definition(deadly, name="rolled"))

    assert seen[0] == ([None, True] if case == "ready for a while" else [None])


def test_run_that_was_claimed_to_be_rehearsed_is_handed_back_to_workers_with_other_code(store, monkeypatch):
    """A backlog of more than ten minutes, in the middle of a deploy."""
    monkeypatch.setattr("surefoot.engine.declare.code.digest", lambda: "other")
    old, new = versions(Book())
    half_done(old)
    monkeypatch.setattr("surefoot.engine.declare.code.digest", lambda: "ours")
    other_worker(monkeypatch)
    before = kinds("r")
    with monkeypatch.context() as late:
        late.setattr("surefoot.engine.drive.takeover.HELD_SECONDS", 0.0)
        late.setattr("surefoot.engine.drive.deploys.tries_first", lambda *_: False)
        assert isinstance(take_up(new), LeftToOthers)
    assert kinds("r") == [*before, "RunAdopted", "RunReleased"]

    assert isinstance(take_up(new), LeftToOthers)

    assert kinds("r") == [*before, "RunAdopted", "RunReleased"], "ready again just now: nobody touches it"
    assert sf.get_run("r").state().starts == 0


@pytest.mark.parametrize(
    "serving",
    [{"code": ""}, {"workflows": ("another",)}, {"queues": ("another",)}],
    ids=["same code", "workflow", "queue"],
)
def test_run_that_nobody_else_can_go_on_with_is_stopped(store, monkeypatch, serving):
    monkeypatch.setattr("surefoot.engine.declare.code.digest", lambda: "")
    old, new = versions(Book())
    half_done(old)
    other_worker(monkeypatch, **serving)

    with pytest.raises(sf.CodeChanged):
        take_up(new)

    assert sf.get_run("r").status == "stopped"


def test_run_that_nobody_took_up_within_ten_minutes_is_stopped(store, monkeypatch):
    """So long a rollout may take; what nobody could go on with by then needs a person."""
    old, new = versions(Book())
    half_done(old)
    other_worker(monkeypatch)
    passed = [1000.0]
    monkeypatch.setattr("surefoot.engine.drive.deploys.time", SimpleNamespace(monotonic=lambda: passed[0]))
    before = kinds("r")
    for moment in (1000.0, 1300.0, 1599.0):
        passed[0] = moment
        assert isinstance(take_up(new), LeftToOthers)
    assert kinds("r") == before

    passed[0] = 1600.0
    with pytest.raises(sf.CodeChanged):
        take_up(new)

    assert sf.get_run("r").status == "stopped"


def test_worker_that_starts_tries_what_stands_still_for_its_code(store, monkeypatch):
    """A mended deploy goes on by itself; one that is not mended writes nothing."""
    book = Book()
    old, new = versions(book)
    half_done(old)
    with pytest.raises(sf.CodeChanged):
        take_up(new)
    before = kinds("r")
    registry.add(new)
    book.tries = 0
    with sf.Worker() as worker:
        wait_until(lambda: worker.ended.get("passed by"))
        assert process.start("another", "x").result(timeout=30) == "ours x"  # It has looked for work again since.
    assert book.tries == 1
    assert kinds("r") == before

    monkeypatch.setattr(registry, "_known", {"rolled": {old.origin: old}})
    with sf.Worker():
        wait_until(ended("r"))
    assert book.lines == ["mail", "mail"]


def test_word_of_a_person_is_heard_though_the_children_are_parked(store):
    """What it waits for may be away for hours; whoever says that its steps run again does not wait for that."""
    asked: list[str] = []

    @sf.step
    def read(prompt: str) -> str:
        asked.append(prompt)
        return prompt

    @sf.workflow
    def kid() -> None:
        raise sf.Unavailable("the bank is closed", retry_after="1h")

    def parent(prompt: str) -> None:
        sf.gather(lambda: [read(f"{prompt} {n}") for n in range(12)], lambda: sf.child(kid, "kid"))

    def old_code() -> None:
        parent("old")

    def new_code() -> None:
        parent("new")

    old, new = (Definition(fn, name="rolled") for fn in (old_code, new_code))
    runtime = config.runtime(create=True)
    created = start.created_entry(old.plan("r", (), {}), start.Options())
    journal.create(runtime.store, runtime.clock, "r", created)
    for definition, run in ((old, "r"), (kid.definition, "kid")):
        assert isinstance(take_up(definition, run), Suspended)
    assert sf.get_run("kid").status == "sleeping"
    assert isinstance(take_up(new), PassedBy)
    before = kinds("kid")

    sf.get_run("r").match("*", rerun=True)
    assert isinstance(take_up(new), Suspended)

    assert [f"new {n}" for n in range(12)] == asked[12:]
    assert kinds("kid") == before
    assert sf.get_run("r").status == "waiting"
