"""Looking at a whole store: what is damaged is found and named, what is whole is not accused, nothing is changed."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

import surefoot as sf
from surefoot.engine.process import config
from surefoot.engine.upkeep.verification import UNKNOWN, verify_run, verify_store
from surefoot.store.open import close_all

DB = Path(".surefoot/runs.db")


@sf.step
def fetch(n: int) -> dict:
    return {"n": n}


@sf.step
def grow(history: list, n: int) -> list:
    return [*history, f"message {n} " + f"{n:x}" * 900]


@sf.workflow
def chat(n: int) -> int:
    history: list = []
    for i in range(n):
        fetch(i)
        history = grow(history, i)
    return len(history)


@sf.workflow
def waiting() -> str:
    return sf.wait_event("paid")


def store():
    return config.runtime(create=False).store


def verdict(*names):
    return verify_store(store(), names or None)


def behind_its_back(*statements: str) -> int:
    """Change rows as a broken disk would: with nobody looking."""
    close_all()
    with closing(sqlite3.connect(DB)) as connection, connection:
        changed = sum(connection.execute(statement).rowcount for statement in statements)
        connection.commit()
    close_all()
    return changed


@pytest.fixture
def runs():
    for name in ("first", "victim", "last"):
        chat.run(name, 8)
    with pytest.raises(sf.WaitingForAnswer):
        waiting.run("open")
    sf.Checkpoint("nightly").save({"rows": ["x" * 5000]})
    close_all()


def only_flaw(found, journal="victim"):
    named = [flaw for flaw in found.flaws if flaw.journal]
    assert [flaw.journal for flaw in named] == [journal], found.flaws
    return named[0]


def test_a_whole_store_is_whole(runs):
    """Four runs, one of them open, a checkpoint, values by parts."""
    found = verdict()

    assert found.flaws == []
    assert (found.runs, found.journals) == (4, 5)
    assert found.entries == sum(len(sf.get_run(name).entries()) for name in ("first", "victim", "last", "open")) + 1
    assert found.parts > 10
    assert found.bytes > 8 * 900
    assert found.unneeded == 0
    assert verify_run(store(), "victim") == len(sf.get_run("victim").entries())


def test_looking_changes_nothing(runs):
    """Evidence must not be touched by whoever looks for it."""
    before = {path.name: path.read_bytes() for path in DB.parent.glob("runs.db*") if path.is_file()}

    assert verdict().flaws == []
    close_all()

    after = {path.name: path.read_bytes() for path in DB.parent.glob("runs.db*") if path.is_file()}
    assert {name: data for name, data in after.items() if not name.endswith("-shm")} == {
        name: data for name, data in before.items() if not name.endswith("-shm")
    }


def test_a_changed_entry_is_named_with_what_is_safe(runs):
    """Which entry of how many, why, what is safe now."""
    count = verify_run(store(), "victim")
    assert behind_its_back("UPDATE entries SET at = at + 1 WHERE run = 'victim' AND seq = 7") == 1

    flaw = only_flaw(verdict())

    assert (flaw.entry, flaw.entries, flaw.valid) == (7, count, 6)
    assert str(flaw).startswith(f"run victim: entry 7 of {count}: its seal does not hold (")
    assert str(flaw).endswith("; entries 1 to 6 are whole")
    assert ("go on before it", "surefoot repair victim") in flaw.error().cures
    with pytest.raises(sf.JournalCorrupt, match=r"entry 7 of .* Nothing was changed"):
        verify_run(store(), "victim")
    assert verify_run(store(), "last") == count


def test_a_lost_entry_is_missed(runs):
    behind_its_back("DELETE FROM entries WHERE run = 'victim' AND seq = 5")

    flaw = only_flaw(verdict())

    assert (flaw.entry, flaw.valid) == (5, 4)
    assert "is missing, the next one found is 6" in flaw.why


def test_a_lost_tail_is_missed(runs):
    """The chain alone would hold: the head knows that there was more."""
    behind_its_back("DELETE FROM entries WHERE run = 'victim' AND seq > 5")

    flaw = only_flaw(verdict())

    assert (flaw.entry, flaw.valid, flaw.why) == (
        6,
        5,
        "it is missing: the journal ends at 5, but its head says 19",
    )


def test_entries_without_a_head_are_found(runs):
    """Strays: they belong to no run that anybody would list."""
    behind_its_back("DELETE FROM heads WHERE run = 'victim'")

    flaw = only_flaw(verdict())

    assert (flaw.entries, "head is missing" in flaw.why) == (UNKNOWN, True)


def test_entries_behind_the_head_are_found(runs):
    """A head that was set back hides what came after it."""
    behind_its_back(
        "UPDATE heads SET seq = 4, seal = (SELECT seal FROM entries WHERE run = 'victim' AND seq = 4) "
        "WHERE run = 'victim'"
    )

    flaw = only_flaw(verdict())

    assert (flaw.entry, flaw.valid) == (5, 4)
    assert "lie behind the head" in flaw.why


def test_a_head_of_another_entry_is_found(runs):
    behind_its_back("UPDATE heads SET seal = zeroblob(32) WHERE run = 'victim'")

    assert only_flaw(verdict()).why == "it is not the one that the head names"


@pytest.mark.parametrize("table", ["entries", "heads"])
def test_a_row_of_the_wrong_type_is_an_entry_that_cannot_be_read(runs, table):
    """A flipped bit turns a number into a text as easily; the other entries are still told apart."""
    behind_its_back(f"UPDATE {table} SET seal = 'text' WHERE run = 'victim' AND seq >= 9")

    flaw = only_flaw(verdict())

    assert (flaw.entry, flaw.valid) == ((9, 8) if table == "entries" else (1, 0))
    assert "cannot be read" in flaw.why


def test_an_entry_of_another_run_is_not_taken_for_its_own(runs):
    behind_its_back(
        "UPDATE entries SET (epoch, at, kind, body, seal) = (SELECT epoch, at, kind, body, seal FROM entries "
        "WHERE run = 'first' AND seq = 6) WHERE run = 'victim' AND seq = 6"
    )

    assert only_flaw(verdict()).entry == 6


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        ("DELETE FROM parts WHERE id = (SELECT min(id) FROM parts)", "is missing"),
        ("UPDATE parts SET body = zeroblob(length(body)) WHERE id = (SELECT min(id) FROM parts)", ""),
        ("UPDATE parts SET size = size + 1 WHERE id = (SELECT min(id) FROM parts)", "but its content is shorter"),
        ("UPDATE parts SET kind = 3 - kind WHERE id = (SELECT min(id) FROM parts)", ""),
    ],
    ids=["missing", "zeroed", "size", "kind"],
)
def test_every_run_that_needs_a_damaged_part_is_named(runs, damage, why):
    """Parts are shared: one lost row may hit many values, and each run has to be told."""
    behind_its_back(damage)

    found = verdict()

    flaws = {flaw.journal: flaw for flaw in found.flaws if flaw.journal}
    assert set(flaws) in ({"first", "victim", "last"}, {"\x1fcheckpoint\x1fnightly"})
    for flaw in flaws.values():
        assert "a value of it is damaged: part " in flaw.why
        assert why in flaw.why
        assert flaw.valid == flaw.entry - 1
    assert [flaw.journal for flaw in verify_store(store(), ["open"]).flaws] == []


def test_parts_nobody_needs_are_counted_and_are_no_damage(runs):
    behind_its_back(
        "INSERT INTO parts (id, kind, codec, size, body) SELECT zeroblob(32), kind, codec, size, body FROM parts LIMIT 1"
    )

    found = verdict()

    assert (found.flaws, found.unneeded) == ([], 1)


def test_a_line_of_the_list_that_is_wrong_is_found(runs):
    """The list is a cache, but people look at it first."""
    behind_its_back("UPDATE runs SET status = 'failed' WHERE run = 'victim'")

    flaw = only_flaw(verdict())

    assert (flaw.entry, flaw.valid) == (0, flaw.entries)
    assert "list of runs" in str(flaw)


def test_a_damaged_checkpoint_is_named_as_people_know_it(runs):
    behind_its_back("UPDATE entries SET body = CAST(body || ' ' AS BLOB) WHERE run > char(31) AND run < ' '")

    flaw = only_flaw(verdict(), "\x1fcheckpoint\x1fnightly")

    assert str(flaw).startswith("checkpoint nightly: entry 1 of 1: its seal does not hold")


def test_every_flip_in_the_name_of_a_run_is_found_wherever_it_is_stored(runs):
    """Tables and indexes both hold it. Read through one of them, the other's damage does not show."""
    close_all()
    whole = DB.read_bytes()
    at = [n for n in range(len(whole)) if whole.startswith(b"victim", n)]
    assert len(at) > 20
    for place in at:
        DB.write_bytes(whole[:place] + b"w" + whole[place + 1 :])
        try:
            assert verdict().flaws, f"byte {place}"
        except sf.JournalCorrupt:
            pass  # found on opening
        finally:
            close_all()
    DB.write_bytes(whole)


def test_a_store_in_use_is_not_accused(runs):
    """A run that goes on while it is looked at is not damaged; nor is the list that is a moment behind."""
    ended = threading.Event()

    def work():
        try:
            for n in range(12):
                chat.run(f"busy-{n}", 3)
        finally:
            ended.set()

    worker = threading.Thread(target=work)
    worker.start()
    looks = 0
    while not ended.is_set() or not looks:
        assert verdict().flaws == []
        looks += 1
    worker.join()
    assert verdict().runs == 16


def test_a_store_in_memory_can_be_verified():
    store = config.runtime("memory:verified", create=True).store
    chat.using(store="memory:verified").run("r", 5)

    assert verify_store(store).flaws == []


def test_run_that_fell_back_is_whole_again_and_what_was_set_aside_is_counted(runs):
    """Quarantine is where damage ends: it must not be reported for ever."""
    behind_its_back("UPDATE entries SET at = at + 1 WHERE run = 'victim' AND seq = 7")
    from surefoot.engine.drive.fallback import fall_back

    runtime = config.runtime(create=False)
    fall_back(runtime.store, runtime.clock, "victim")

    found = verdict()

    assert found.flaws == []
    assert found.quarantined > 3
    assert found.unneeded == 0


def test_what_was_set_aside_is_decoded_only_if_its_seal_holds(runs, monkeypatch):
    """Quarantine is full of bytes that nobody vouches for."""
    from surefoot.core.seal import from_record
    from surefoot.engine.drive.fallback import fall_back
    from surefoot.engine.upkeep import verification

    behind_its_back("UPDATE entries SET at = at + 1 WHERE run = 'victim' AND seq = 7")
    runtime = config.runtime(create=False)
    fall_back(runtime.store, runtime.clock, "victim")
    aside = [record.seq for record in runtime.store.quarantined("victim")]
    behind_its_back("UPDATE quarantine SET at = at + 1 WHERE run = 'victim' AND seq = 9")
    decoded = []

    def counted(record):
        decoded.append(record.seq)
        return from_record(record)

    monkeypatch.setattr(verification, "from_record", counted)
    verification.aside(config.runtime(create=False).store, ["victim"])

    standing_for = aside.count(7) - 1
    assert standing_for == 1, "a copy of the record that took its place is set aside as well, and that one holds"
    assert sorted(decoded) == sorted([7, *(seq for seq in aside if seq not in (7, 9))])
