"""A store as this format is on disk: whatever changes from here on must still read it, verify it, and go on with it.

`golden/store-format-1.zip` holds a run that is done, one that failed, one in doubt, one with a question and one whose process
was killed. It is written anew only while nothing is released: `python -m tests.store.test_golden_store`.
"""

from __future__ import annotations

import os
import signal
import tempfile
import zipfile
from pathlib import Path

import pytest
from msgspec.structs import replace

import surefoot as sf
from surefoot.engine.process import journal
from surefoot.engine.upkeep.verification import verify_store
from surefoot.store import inspection
from surefoot.store.contract import RunQuery
from surefoot.store.open import close_all
from surefoot.testing.conformance import assert_whole

GOLDEN = Path(__file__).parents[1] / "golden" / "store-format-1.zip"
FOUND = {
    "asked": ("waiting", "question"),
    "crashed": ("running", ""),
    "done": ("done", ""),
    "doubt": ("stopped", "in_doubt"),
    "failed": ("failed", "failed"),
}


@pytest.fixture
def golden(place):
    with zipfile.ZipFile(GOLDEN) as files:
        files.extractall(place.path.parent)
    for name in ("runs.db", "runs.db-anchor"):
        (place.path.parent / name).chmod(0o600)
    return place


def test_every_run_is_whole_and_listed_as_what_it_is(golden):
    store = golden.open(create=False)

    assert {one.run: (one.row.status, one.row.need) for one in store.runs(RunQuery())} == FOUND
    assert [one.run for one in store.runs(RunQuery(labels={"who": "ann"}))] == ["done"]
    assert [one.run for one in store.runs(RunQuery(need="*"))] == ["asked", "doubt", "failed"]
    assert verify_store(store).flaws == []
    for run in FOUND:
        assert_whole(store, run, store.read(run).head.seq)


def test_row_of_every_run_is_what_its_journal_deserves(golden):
    """The row is a cache: made anew from the journal it is the same, field for field."""
    store = golden.open(create=False)

    for one in store.runs(RunQuery()):
        state, _ = journal.load(store, one.run)
        assert journal.index_row(state) == replace(one.row, seq=state.seq)


def test_inspection_finds_it_sound(golden):
    seen = inspection.look(str(golden.path), lambda _: None)

    assert seen.sound
    assert seen.format == 1


def test_run_that_was_killed_goes_on(golden, monkeypatch):
    monkeypatch.setenv("SUREFOOT_STORE", f"sqlite:///{golden.path}")
    assert flows()["steady"].run("crashed", 3) == 6
    assert [one.run for one in golden.open(create=False).runs(RunQuery(status="done"))] == ["done", "crashed"]
    close_all()


# --- how it was made ---------------------------------------------------------------------------------------------


def flows(*, die: bool = False):
    @sf.step
    def double(n):
        return 2 * n

    @sf.step
    def deadly(n):
        if die:
            os.kill(os.getpid(), signal.SIGKILL)
        return n

    @sf.effect
    def pay(n):
        raise ConnectionResetError("cut off")

    @sf.workflow(name="steady")
    def steady(n):
        return deadly(double(n))

    @sf.workflow(name="broken")
    def broken(n):
        raise ValueError("no such order")

    @sf.workflow(name="doubtful")
    def doubtful(n):
        return pay(n)

    @sf.workflow(name="asking")
    def asking(n):
        return sf.approve("May I refund it?")

    return {"steady": steady, "broken": broken, "doubtful": doubtful, "asking": asking}


def make() -> None:
    with tempfile.TemporaryDirectory() as folder:
        sf.configure(store=f"sqlite:///{folder}/runs.db", in_flight="0s")
        if (child := os.fork()) == 0:
            flows(die=True)["steady"].run("crashed", 3)
        os.waitpid(child, 0)
        made = flows()
        for name, run in (("broken", "failed"), ("doubtful", "doubt"), ("asking", "asked")):
            try:
                made[name].run(run, 1)
            except Exception as error:
                print(run, type(error).__name__)  # noqa: T201 - a script
        made["steady"].using(labels={"who": "ann"}).run("done", 3)
        close_all()
        with zipfile.ZipFile(GOLDEN, "w", zipfile.ZIP_DEFLATED) as files:
            for name in ("runs.db", "runs.db-anchor"):
                files.write(Path(folder) / name, name)


if __name__ == "__main__":
    make()
