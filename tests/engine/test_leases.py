"""Before every effect: is this process still seen as alive? If it may have been taken for dead, it looks first."""

from __future__ import annotations

import asyncio

import pytest

import surefoot as sf
from surefoot.engine.drive import acts
from surefoot.engine.process import config, journal
from surefoot.engine.session.session import Session
from surefoot.store.open import close_all
from surefoot.store.sqlite.store import SqliteStore


class Lapse:
    """A lease that has run out: each look at it does the next thing, and then it runs again."""

    def __init__(self, *meanwhile) -> None:
        self.meanwhile = list(meanwhile)

    def holds(self) -> bool:
        if not self.meanwhile:
            return True
        self.meanwhile.pop(0)()
        return False


def nothing() -> None: ...


def take_over() -> None:
    """Another worker found this one dead."""
    runtime = config.runtime(create=False)
    acts.go_live(Session(runtime, *journal.load(runtime.store, "r")))


def blocking(ledger):
    @sf.effect
    def charge() -> int:
        ledger.write("charged")
        return 1

    @sf.workflow
    def wf() -> int:
        return charge()

    return lambda: wf.run("r")


def tasks(ledger):
    @sf.effect
    async def charge() -> int:
        ledger.write("charged")
        return 1

    @sf.workflow
    async def wf() -> int:
        return await charge()

    return lambda: asyncio.run(wf.run("r"))


@pytest.fixture(params=[blocking, tasks])
def run(request, ledger):
    return request.param(ledger)


def test_effect_begins_once_the_lease_runs_again(run, ledger, monkeypatch):
    lapse = Lapse(nothing, nothing, nothing)
    monkeypatch.setattr(SqliteStore, "holds", lapse.holds)

    assert run() == 1

    assert not lapse.meanwhile
    assert ledger.lines == ["charged"]


def test_effect_does_not_begin_if_the_run_was_taken_meanwhile(run, ledger, monkeypatch):
    """Its intent is durable, but it is another's to decide now."""
    monkeypatch.setattr(SqliteStore, "holds", Lapse(nothing, take_over).holds)

    with pytest.raises(sf.Fenced, match="another process has taken over"):
        run()

    assert ledger.lines == []
    assert [past.address for past in sf.get_run("r").state().in_doubt()] == ["charge#1"]


def test_effect_does_not_begin_if_the_lease_cannot_be_renewed(run, ledger, monkeypatch):
    monkeypatch.setattr("surefoot.engine.session.claim.REGAIN_SECONDS", 0.0)
    monkeypatch.setattr(SqliteStore, "holds", Lapse(*[nothing] * 10).holds)

    with pytest.raises(sf.Fenced, match="could not be renewed"):
        run()

    assert ledger.lines == []


def test_effect_does_not_begin_in_a_process_that_has_given_its_store_up(run, ledger, monkeypatch):
    """Another branch met an I/O error: there is nothing to wait for, and no outcome could be recorded."""
    monkeypatch.setattr("surefoot.engine.session.claim.REGAIN_SECONDS", 3600.0)
    monkeypatch.setattr(SqliteStore, "holds", Lapse(close_all, *[nothing] * 10).holds)

    with pytest.raises(sf.StoreUnavailable):
        run()

    assert ledger.lines == []
