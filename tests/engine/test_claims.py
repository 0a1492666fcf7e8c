"""To find a run there, or taken, is an ordinary event: a value, and no trouble of anybody."""

from __future__ import annotations

import asyncio

import pytest

import surefoot as sf
from surefoot.core.claim import Claimed, Exists
from surefoot.core.entry import RunReleased
from surefoot.engine.declare.plan import Options, created_entry
from surefoot.engine.drive import acts, acts_async
from surefoot.engine.process import config, journal
from surefoot.engine.session.session import Session
from surefoot.engine.session.stops import Stops
from tests.working import kinds


@pytest.fixture
def troubles(monkeypatch):
    """Every trouble that any session remembers."""
    found = []
    misused = Stops.misused
    monkeypatch.setattr(Stops, "misused", lambda self, error: found.append(error) or misused(self, error))
    return found


@sf.step
def one() -> int:
    return 1


@sf.workflow
def asking_claims() -> int:
    one()
    return int(sf.ask("how many?", type=int))


@pytest.mark.usefixtures("own_folder")
def test_ordinary_resume_is_no_trouble(troubles):
    """It tries to create the run first, which is refused: `Exists`, and not an error that travels three floors up."""
    with pytest.raises(sf.WaitingForAnswer):
        asking_claims.run("r")
    sf.get_run("r").answer("ask#1", 2)

    assert asking_claims.run("r") == 2
    assert asking_claims.run("r") == 2
    assert troubles == []


@pytest.mark.usefixtures("own_folder")
@pytest.mark.parametrize("colour", ["blocking", "async"])
def test_creating_a_run_that_is_there_gives_exists(troubles, colour):
    with pytest.raises(sf.WaitingForAnswer):
        asking_claims.run("r")
    runtime = config.runtime(create=False)
    session = Session(runtime, journal.RunState("r"), None)
    created = created_entry(asking_claims.definition.plan("r", (), {}), Options())

    claim = asyncio.run(acts_async.claim(session, created)) if colour == "async" else acts.claim(session, created)

    assert isinstance(claim, Exists)
    assert not session.claim.live
    assert troubles == []


@pytest.mark.usefixtures("own_folder")
@pytest.mark.parametrize("place", ["at a call", "at its end"])
def test_run_that_another_claims_during_the_replay_is_waited_for(troubles, place):
    """Nothing was executed here, so nothing has happened: the code unwinds, and the run is looked at again."""
    runtime = config.runtime(create=True)
    began = []

    @sf.workflow(name="raced_claims")
    def raced() -> int:
        began.append(place)
        if len(began) == 1:
            raise KeyboardInterrupt
        if len(began) == 2:
            other = Session(runtime, *journal.load(runtime.store, "r"))
            assert isinstance(acts.claim(other), Claimed)
            other.journal.append(RunReleased("another process, which lets go of it at once"))
            runtime.discharge(other)
        if place == "at a call":
            one()
        return 7

    with pytest.raises(KeyboardInterrupt):
        raced.run("r")

    assert raced.run("r") == 7
    assert len(began) == 3
    assert troubles == []
    assert kinds("r").count("RunDone") == 1
