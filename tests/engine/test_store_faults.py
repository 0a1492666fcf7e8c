"""When the store fails: no effect starts without its intent on disk, and nothing acknowledged is lost."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

import surefoot as sf
from surefoot.core.entry import KIND_OF, EffectDone, EffectIntended, StepDone
from surefoot.engine.operate.handle import Run
from surefoot.engine.process import config
from surefoot.engine.process.commit import Committer, Ticket
from surefoot.store.contract import Extend
from surefoot.store.open import close_all
from surefoot.store.sqlite.store import SqliteStore


@contextmanager
def failing(entry: type, error: sf.SurefootError) -> Iterator[None]:
    """Appends that contain an entry of that kind fail, as on a full disk."""
    whole = SqliteStore.append

    def append(self, batch):
        if any(record.kind == KIND_OF[entry] for item in batch for record in item.records):
            raise error
        return whole(self, batch)

    SqliteStore.append = append
    try:
        yield
    finally:
        SqliteStore.append = whole


def test_an_effect_whose_intent_is_not_on_disk_does_not_run(ledger):
    """The first of the three questions: however user code catches, nothing happens outside."""

    @sf.effect
    def charge() -> None:
        ledger.write("charge")

    @sf.workflow
    def wf() -> str:
        try:
            charge()
        except Exception:
            charge()
        return "fine"

    with failing(EffectIntended, sf.StoreFull("no space left")), pytest.raises(sf.StoreFull):
        wf.run("r")
    assert ledger.lines == []

    assert wf.run("r") == "fine"
    assert ledger.lines == ["charge"]


def test_an_effect_whose_outcome_could_not_be_written_is_in_doubt(ledger):
    @sf.effect
    def charge() -> None:
        ledger.write("charge")

    @sf.workflow
    def wf() -> None:
        charge()

    with failing(EffectDone, sf.StoreUnavailable("disk error")), pytest.raises(sf.StoreUnavailable):
        wf.run("r")

    with pytest.raises(sf.InDoubt):
        wf.run("r")
    assert ledger.lines == ["charge"]


def test_a_step_that_could_not_be_recorded_is_not_reported_as_done(ledger):
    @sf.step
    def look() -> int:
        ledger.write("look")
        return 1

    @sf.workflow
    def wf() -> int:
        return look()

    with failing(StepDone, sf.StoreFull("no space left")), pytest.raises(sf.StoreFull):
        wf.run("r")

    assert wf.run("r") == 1
    assert ledger.lines == ["look", "look"]


def test_a_commit_whose_acknowledgement_was_lost_is_found_by_reading(monkeypatch, ledger):
    """The write is there, we were told it is not: a blind retry would stand in the journal twice."""
    whole = SqliteStore.append
    lost = []

    def append(self, batch):
        answers = whole(self, batch)
        if not lost and any(record.kind == KIND_OF[StepDone] for item in batch for record in item.records):
            lost.append(1)
            return whole(self, batch)
        return answers

    monkeypatch.setattr(SqliteStore, "append", append)

    @sf.step
    def look(i: int) -> int:
        return i

    @sf.workflow
    def wf() -> int:
        return look(1) + look(2)

    assert wf.run("r") == 3
    assert lost
    assert [entry.kind for entry in sf.get_run("r").entries()].count("StepDone") == 2


def test_a_long_step_is_visible_while_it_runs(kinds):
    """What was in flight must be known even if the process dies now."""
    seen = []

    @sf.step
    def long() -> None:
        runtime = config.runtime(create=False)
        for session in runtime.driven():
            session.journal.flush(runtime.clock.now())
        seen.append([(call.address, call.status) for call in sf.get_run("r").steps()])

    @sf.workflow
    def wf() -> None:
        long()

    wf.run("r")

    assert seen == [[("long#1", "started")]]
    assert kinds("r") == ["RunCreated", "RunAdopted", "StepStarted", "StepDone", "RunDone"]


def test_a_quick_step_costs_one_entry(kinds):
    @sf.step
    def quick() -> None: ...

    @sf.workflow
    def wf() -> None:
        quick()

    wf.run("r")

    assert kinds("r") == ["RunCreated", "RunAdopted", "StepDone", "RunDone"]


def test_a_store_in_memory_works_and_says_that_it_is_not_durable(caplog):
    @sf.step
    def look() -> int:
        return 1

    @sf.workflow
    def wf() -> int:
        return look()

    assert wf.using(store="memory:here").run("r") == 1
    assert wf.using(store="memory:here").run("r") == 1
    assert "not durable" in caplog.text


def test_creating_a_store_is_announced(caplog):
    @sf.workflow
    def wf() -> None: ...

    wf.run("r")

    assert "created store" in caplog.text


class Scribe:
    """A run's journal, as the committer sees it."""

    def __init__(self, run: str) -> None:
        self.run = run
        self.written = False

    def propose(self, tickets):
        return Extend(self.run, None, [])

    def accepted(self) -> None:
        self.written = True

    def catch_up(self, tickets) -> None:
        raise AssertionError


class Picky:
    """A store that cannot take one of the runs."""

    def append(self, batch):
        if "bad" in [item.run for item in batch]:
            raise ValueError("not to be stored")
        return [None] * len(batch)


def test_what_cannot_be_stored_spoils_no_other_runs_commit():
    """Many runs share one transaction; the mistake of one must not put the others in doubt."""
    scribes = [Scribe("good"), Scribe("bad"), Scribe("better")]
    tickets = [Ticket(scribe, [("entry",)]) for scribe in scribes]

    Committer(Picky())._write(tickets)

    assert [scribe.written for scribe in scribes] == [True, False, True]
    assert [ticket.error is None for ticket in tickets] == [True, False, True]
    assert all(ticket.done for ticket in tickets)


@pytest.mark.parametrize(
    "option", [{"queue": "a\0b"}, {"queue": "\ud800"}, {"labels": {"k": "\ud800"}}, {"queue": "x" * 300}]
)
def test_words_that_no_index_can_hold_are_refused_where_they_are_given(option):
    @sf.workflow
    def wf() -> None: ...

    with pytest.raises(sf.UsageError, match="characters"):
        wf.using(**option)


ELSEWHERE = "sqlite:///elsewhere.db"


@sf.workflow(name="kept elsewhere")
def kept_elsewhere() -> int:
    return 1


def _damaged(path: str) -> None:
    close_all()
    with closing(sqlite3.connect(path)) as connection, connection:
        assert connection.execute("UPDATE entries SET at = at + 1 WHERE run = 'r' AND seq = 2").rowcount == 1


@pytest.mark.parametrize(
    "look",
    [
        lambda: sf.get_run("r", store=ELSEWHERE),
        lambda: Run(config.runtime(ELSEWHERE, create=False), "r").entries(),
        lambda: Run(config.runtime(ELSEWHERE, create=False), "r").verify(),
        lambda: Run(config.runtime(ELSEWHERE, create=False), "r").plan(),
        lambda: Run(config.runtime(ELSEWHERE, create=False), "r").cancel(),
    ],
)
def test_what_helps_a_damaged_run_names_the_store_it_is_in(look):
    """Pasted without it, `surefoot repair r` would go to another store, perhaps to another run of that name."""
    kept_elsewhere.using(store=ELSEWHERE).run("r")
    _damaged("elsewhere.db")

    with pytest.raises(sf.JournalCorrupt) as met:
        look()

    assert ("go on before it", f"surefoot repair r --store {ELSEWHERE}") in met.value.cures
    assert str(met.value).count("--store") == len([do for _, do in met.value.cures if "inspect" not in do])


def test_what_helps_a_damaged_run_names_the_store_when_it_may_not_step_back(monkeypatch):
    monkeypatch.setattr(config.settings, "store", ELSEWHERE)
    monkeypatch.setattr(config.settings, "on_corruption", "stop")
    kept_elsewhere.run("r")
    _damaged("elsewhere.db")

    with pytest.raises(sf.JournalCorrupt) as met:
        kept_elsewhere.run("r")
    assert ("go on before it", f"surefoot repair r --store {ELSEWHERE}") in met.value.cures


def test_what_helps_a_store_that_is_older_than_it_was_names_it(tmp_path):
    """`surefoot adopt` accepts a loss: it must not do so for another store."""
    kept_elsewhere.using(store=ELSEWHERE).run("r")
    close_all()
    older = (tmp_path / "elsewhere.db").read_bytes()
    kept_elsewhere.using(store=ELSEWHERE).run("r2")
    close_all()
    (tmp_path / "elsewhere.db").write_bytes(older)

    with pytest.raises(sf.JournalRegressed) as met:
        sf.get_run("r", store=ELSEWHERE)
    assert ("really lost?", f"surefoot adopt --reason TEXT --store {ELSEWHERE}") in met.value.cures


def test_what_helps_a_run_in_the_default_store_needs_no_name_even_if_a_run_elsewhere_met_it(monkeypatch):
    """Whoever looks from another store must not put that one's name on the cure."""
    kept_elsewhere.run("r")
    _damaged(".surefoot/runs.db")

    @sf.workflow(name="looks around")
    def looks_around() -> None:
        sf.get_run("r")

    with pytest.raises(sf.JournalCorrupt) as met:
        looks_around.using(store=ELSEWHERE).run("other")
    assert ("go on before it", "surefoot repair r") in met.value.cures
