"""Retention: what ended long ago goes and leaves a tombstone; nothing else is touched, whenever the process is killed."""

from __future__ import annotations

import signal
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

import surefoot as sf
from surefoot.engine.process import config
from surefoot.engine.upkeep import tombstones
from surefoot.engine.upkeep.verification import verify_store
from surefoot.store.open import close_all

DB = Path(".surefoot/runs.db")


@sf.step
def large(tag: str, n: int) -> str:
    return "".join(f"{tag} {n} {i:x} {i * 7919:x}, " for i in range(400))


@sf.workflow
def work(tag: str) -> int:
    return sum(len(large(tag, n)) for n in range(4))


@sf.workflow
def broken() -> None:
    raise ValueError("broken")


@sf.workflow
def waiting() -> str:
    return sf.wait_event("paid")


@pytest.fixture
def runtime():
    for n in range(3):
        work.using(labels={"team": "a"}).run(f"done-{n}", f"tag {n}")
    with pytest.raises(ValueError):
        broken.run("failed-1")
    with pytest.raises(sf.WaitingForAnswer):
        waiting.run("open-1")
    return config.runtime(create=False)


def found(runtime, **options):
    options = {"older_than_seconds": 0} | options
    return list(tombstones.candidates(runtime.store, runtime.clock, **options))


def prune(runtime, **options):
    for one in found(runtime, **options):
        assert isinstance(one, tombstones.Candidate)
        assert tombstones.bury(runtime.store, runtime.clock, one, by="ada", note="retention") is None
    return tombstones.sweep(runtime.store)


def test_only_runs_that_ended_long_enough_ago_may_go(runtime):
    """An open run is never retention's business, however old."""
    assert [one.run for one in found(runtime)] == ["failed-1", "done-2", "done-1", "done-0"]
    assert [one.run for one in found(runtime, statuses={"failed"})] == ["failed-1"]
    assert found(runtime, older_than_seconds=3600) == []


def test_looking_for_candidates_changes_nothing(runtime):
    before = runtime.store.changes()

    found(runtime)

    assert runtime.store.changes() == before
    assert work.run("done-1", "tag 1") > 0


def test_a_pruned_run_leaves_a_tombstone(runtime):
    """Never "never existed": the id stays taken, how it ended stays known, and it does not run again."""
    entries = len(sf.get_run("done-1").entries())

    swept = prune(runtime, statuses={"done"})

    assert swept.deleted > 20
    assert verify_store(runtime.store).flaws == []
    assert runtime.store.part_ids() == []
    run = sf.get_run("done-1")
    assert (run.status, run.workflow, run.labels) == ("done", "work", {"team": "a"})
    (left,) = run.entries()
    assert left.kind == "RunPruned"
    assert (left.data["entries"], left.data["by"], left.data["note"]) == (entries, "ada", "retention")
    with pytest.raises(sf.NotFound, match="was pruned on"):
        run.result()
    with pytest.raises(sf.NotFound, match="was pruned on"):
        work.run("done-1", "tag 1")
    with pytest.raises(sf.RunConflict, match="recorded: only their fingerprint is kept: the run was pruned\n"):
        work.run("done-1", "another tag")
    assert {one.id for one in sf.runs(status="done")} == {"done-0", "done-1", "done-2"}


def test_a_pruned_run_is_not_pruned_again(runtime):
    prune(runtime)

    assert found(runtime) == []


def test_parts_that_others_need_stay(runtime):
    """Two runs with the same large value share its parts."""
    work.run("twin", "tag 1")
    (twin,) = [one for one in found(runtime) if one.run == "done-1"]
    tombstones.bury(runtime.store, runtime.clock, twin)

    assert tombstones.sweep(runtime.store).deleted == 0
    assert verify_store(runtime.store).flaws == []
    assert sf.get_run("twin").steps()[0].result


def test_a_run_that_changed_since_it_was_looked_at_is_left_alone(runtime):
    """Compare and rewrite: nobody's entry is deleted unread."""
    (one,) = found(runtime, statuses={"failed"})
    tombstones.bury(runtime.store, runtime.clock, one)

    refused = tombstones.bury(runtime.store, runtime.clock, one)

    assert refused is not None
    assert "somebody has written" in refused.why
    assert verify_store(runtime.store).flaws == []


def test_a_damaged_run_stays_and_then_no_parts_go(runtime):
    """What a damaged entry needs is not known, so whatever is there may be needed."""
    close_all()
    with closing(sqlite3.connect(DB)) as connection, connection:
        connection.execute("UPDATE entries SET at = at + 1 WHERE run = 'done-1' AND seq = 4")
    runtime = config.runtime(create=False)
    parts = set(runtime.store.part_ids())

    going = found(runtime)
    (left,) = [one for one in going if isinstance(one, tombstones.Refusal)]
    for one in going:
        if isinstance(one, tombstones.Candidate):
            tombstones.bury(runtime.store, runtime.clock, one)
    swept = tombstones.sweep(runtime.store)

    assert left.run == "done-1"
    assert "entry 4" in left.why
    assert (swept.deleted, [flaw.journal for flaw in swept.flaws]) == (0, ["done-1"])
    assert set(runtime.store.part_ids()) == parts


def test_what_was_set_aside_keeps_its_parts_and_goes_with_its_run(runtime):
    """Quarantined entries are evidence: their values must still be there. With the run they go, and so do the parts."""
    from surefoot.engine.drive.fallback import fall_back

    close_all()
    with closing(sqlite3.connect(DB)) as connection, connection:
        connection.execute("UPDATE entries SET at = at + 1 WHERE run = 'done-1' AND seq = 2")
    runtime = config.runtime(create=False)
    fall_back(runtime.store, runtime.clock, "done-1")
    assert runtime.store.quarantined("done-1")

    assert tombstones.sweep(runtime.store).deleted == 0
    work.run("done-1", "tag 1")
    prune(runtime)

    assert runtime.store.quarantined("done-1") == []
    assert runtime.store.part_ids() == []


def test_sweeping_a_store_in_use_deletes_nothing_that_is_needed(runtime):
    """Values come and go while parts are collected; every run that was acknowledged stays whole."""
    prune(runtime, statuses={"done"})
    ended = threading.Event()

    def drive():
        try:
            for n in range(10):
                work.run(f"busy-{n}", f"tag {n}")
        finally:
            ended.set()

    thread = threading.Thread(target=drive)
    thread.start()
    while not ended.is_set():
        tombstones.sweep(runtime.store)
    thread.join()

    assert verify_store(runtime.store).flaws == []
    assert {work.run(f"busy-{n}", f"tag {n}") for n in range(10)}


PRUNE = """
import os, signal, sys
from surefoot.engine.process import config
from surefoot.engine.upkeep import tombstones
runtime = config.runtime(create=False)
store = runtime.store
store.durability()  # opens the writer
execute, left = store._execute, int(sys.argv[1])
def counted(*words):
    global left
    left -= 1
    if left < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return execute(*words)
if left:
    store._execute = counted
else:  # committed, and the anchor not told yet
    store._note = lambda newest: os.kill(os.getpid(), signal.SIGKILL)
for one in list(tombstones.candidates(store, runtime.clock, older_than_seconds=0)):
    tombstones.bury(store, runtime.clock, one)
print(tombstones.sweep(store).deleted)
"""


def test_killed_at_any_statement_the_store_verifies_and_the_next_prune_ends_it(runtime, program):
    """Each run is fully there or fully gone; at worst parts stay until the next sweep."""
    close_all()
    program.write(PRUNE, "prune.py")
    kills = 0
    for statements in (0, 0, *range(1, 200, 3)):
        ended = program.run(str(statements), name="prune.py")
        if ended.returncode == 0:
            break
        assert ended.returncode == -signal.SIGKILL, ended.stderr
        kills += 1
        store = config.runtime(create=False).store
        assert verify_store(store).flaws == []
        for name in ("done-0", "done-1", "done-2"):
            assert len(sf.get_run(name).entries()) in (1, 7)
        close_all()
    assert kills > 5
    store = config.runtime(create=False).store
    assert {len(sf.get_run(name).entries()) for name in ("done-0", "done-1", "done-2", "failed-1")} == {1}
    assert store.part_ids() == []
    assert sf.get_run("open-1").status == "waiting"
