"""Explicit checkpoints: the same promises whether they are kept in a journal, in memory or as plain files."""

from __future__ import annotations

import asyncio
import logging
import threading
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import apsw
import msgspec
import pytest

import surefoot as sf
import surefoot.aio as asf
from surefoot.store import generation_files, generation_journal
from surefoot.store.contract import RESERVED
from surefoot.store.open import close_all, open_store

NAME = "nightly-42"
JOURNAL = f"{RESERVED}checkpoint{RESERVED}{NAME}"


class Place:
    """A store for checkpoints, and ways to damage a generation in it."""

    url: str

    def checkpoint(self, name=NAME, **options):
        return sf.Checkpoint(name, store=self.url, **options)

    def filled(self, count=4, **options):
        """A checkpoint with that many generations: {"n": 1}, {"n": 2}, …"""
        ckpt = self.checkpoint(**options)
        assert ckpt.load() is None
        for n in range(1, count + 1):
            assert ckpt.save(self.state(n)) == n
        return ckpt

    def state(self, n):
        return {"n": n, "text": "word " * 300 * n}

    def leave(self):
        """As when the process ends."""


class SqlitePlace(Place):
    url = "sqlite:///runs.db"

    def leave(self):
        close_all()

    def sql(self, statement, *values):
        close_all()
        connection = apsw.Connection("runs.db")
        connection.execute(statement, values)
        connection.close()

    def truncate(self, number):
        self.sql("UPDATE entries SET body = substr(body, 1, 40) WHERE run = ? AND epoch = ?", JOURNAL, number)

    def drop(self, number):
        # The store's own anchor would notice if its very last record went: somebody else's comes after ours.
        other = self.checkpoint("another")
        other.load()
        other.save({"n": 0})
        self.sql("DELETE FROM entries WHERE run = ? AND epoch = ?", JOURNAL, number)

    def quarantined(self):
        return [record.epoch for record in open_store(self.url, create=False).quarantined(JOURNAL)]


class MemoryPlace(Place):
    url = "memory:checkpoints"

    @property
    def journal(self):
        return open_store(self.url, create=False)._journals[JOURNAL]

    def index(self, number):
        return [record.epoch for record in self.journal].index(number)

    def truncate(self, number):
        at = self.index(number)
        self.journal[at] = msgspec.structs.replace(self.journal[at], body=self.journal[at].body[:40])

    def drop(self, number):
        pytest.fail("a store in memory has no head of its own")

    def quarantined(self):
        return [record.epoch for record in open_store(self.url, create=False).quarantined(JOURNAL)]


class FilePlace(Place):
    def __init__(self, folder):
        self.folder = folder / "files" / NAME
        self.url = (folder / "files").as_uri()

    def truncate(self, number):
        path = self.folder / f"{number}.json"
        path.write_bytes(path.read_bytes()[:40])

    def drop(self, number):
        (self.folder / f"{number}.json").unlink()

    def quarantined(self):
        return [int(path.name.split(".")[0]) for path in (self.folder / "damaged").iterdir()]


@pytest.fixture(params=["sqlite", "memory", "file"])
def place(request, tmp_path):
    return (
        FilePlace(tmp_path)
        if request.param == "file"
        else {"sqlite": SqlitePlace, "memory": MemoryPlace}[request.param]()
    )


@pytest.fixture(params=["sqlite", "file"])
def durable(request, tmp_path):
    return FilePlace(tmp_path) if request.param == "file" else SqlitePlace()


def warnings_of(caplog):
    return [r.getMessage() for r in caplog.records if r.name == "surefoot" and r.levelno >= logging.WARNING]


def fallbacks(caplog):
    return [message for message in warnings_of(caplog) if "fell back" in message]


# --- saving and loading ------------------------------------------------------------------------------


def test_what_was_saved_is_loaded_with_its_types(place):
    """A hand-written loop goes on with what it had, not with something like it."""
    ckpt = place.checkpoint()
    state = {"done": {1, 2}, "at": datetime(2026, 1, 2, tzinfo=UTC), "pair": (1, "a"), 3: b"x"}
    assert ckpt.load() is None

    assert ckpt.save(state) == 1
    place.leave()

    found = place.checkpoint().load()
    assert found == state
    assert type(found["pair"]) is tuple


def test_generations_are_numbered_and_old_ones_go_but_never_too_many(place):
    """`keep` is a promise about the least, and growth is bounded."""
    ckpt = place.filled(count=30)

    found = ckpt.generations()

    numbers = [one.number for one in found]
    assert numbers == list(range(30 - len(numbers) + 1, 31))
    assert 3 <= len(numbers) <= 6
    assert all(one.valid and one.why == "" and "on host" in one.writer and one.at is not None for one in found)
    assert found[-1].size > 30 * 1500


def test_reading_makes_nothing(durable, tmp_path):
    """A look must not leave a store behind that the next look finds."""
    assert durable.checkpoint().load() is None
    assert durable.checkpoint().generations() == []

    assert list(tmp_path.iterdir()) == []


def test_names_do_not_meet(place):
    """Each checkpoint is alone with its generations, and none of them is a run."""
    one, other = place.checkpoint("a/b"), place.checkpoint("a%2Fb")
    one.load()
    other.load()

    one.save({"n": 1})
    other.save({"n": 2})

    assert (one.load(), other.load()) == ({"n": 1}, {"n": 2})
    if not place.url.startswith("file:"):
        assert list(sf.runs(store=place.url)) == []


def test_a_state_that_cannot_be_stored_is_refused_and_nothing_is_written(place, tmp_path):
    """Quietly turned into a string it would come back as something else."""
    ckpt = place.filled()

    with pytest.raises(sf.ValueRejected) as caught:
        ckpt.save({"a": [1, object()]})
    with pytest.raises(sf.ValueRejected, match="nothing was ever saved"):
        ckpt.save(None)

    assert caught.value.path == "$.a[1]"
    assert [one.number for one in ckpt.generations()] == [1, 2, 3, 4]


@pytest.mark.parametrize(
    "options", [{"keep": 2}, {"keep": True}, {"keep": "3"}, {"schema": 0}, {"schema": True}, {"schema": 1.0}]
)
def test_settings_that_cannot_be_safe_are_refused(options):
    with pytest.raises(sf.UsageError):
        sf.Checkpoint("a", **options)


@pytest.mark.parametrize("name", ["", " a", "a\n", "../\0", "x" * 201, 7, "\x1fa", "e\u0301"])
def test_names_are_refused_as_run_ids_are(name):
    with pytest.raises(sf.UsageError):
        sf.Checkpoint(name)


def test_the_loaded_state_is_a_copy(place):
    """What the loop does to it afterwards is not what was saved."""
    ckpt = place.checkpoint()
    ckpt.load()
    state = {"items": [1]}
    ckpt.save(state)

    state["items"].append(2)
    found = ckpt.load()
    found["items"].append(3)

    assert ckpt.load() == {"items": [1]}


# --- fenced ------------------------------------------------------------------------------------------


def test_a_save_over_somebody_elses_generation_is_fenced(place):
    """Two processes on one task would take turns in undoing each other's work."""
    first, second = place.filled(), place.checkpoint()
    second.load()
    second.save({"n": "second"})

    with pytest.raises(sf.Fenced, match="generation 5, saved by pid"):
        first.save({"n": "first"})

    assert place.checkpoint().load() == {"n": "second"}
    assert first.load() == {"n": "second"}
    assert first.save({"n": "first"}) == 6


def test_an_object_that_never_looked_cannot_bury_what_is_there(place):
    """A process that forgot to load would start over in silence."""
    place.filled()
    place.leave()

    with pytest.raises(sf.Fenced, match=r"load\(\) first"):
        place.checkpoint().save({"n": 0})

    assert place.checkpoint().load()["n"] == 4


def test_threads_sharing_one_object_take_turns(place):
    ckpt = place.checkpoint()
    ckpt.load()
    numbers = []
    threads = [threading.Thread(target=lambda n=n: numbers.append(ckpt.save({"n": n}))) for n in range(8)]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(numbers) == list(range(1, 9))


@pytest.mark.parametrize("written", [True, False])
def test_a_save_that_broke_off_can_be_tried_again(place, monkeypatch, written):
    """Whether it was written is not known; our own half-acknowledged write must not fence us off."""
    ckpt = place.filled()
    shelf = generation_files.FileShelf if place.url.startswith("file:") else generation_journal.JournalShelf
    write = shelf.write

    def breaks(self, prepared):
        if written:
            write(self, prepared)
        raise sf.StoreUnavailable("the line went dead")

    with monkeypatch.context() as patch, pytest.raises(sf.StoreUnavailable):
        patch.setattr(shelf, "write", breaks)
        ckpt.save({"n": 5})

    assert ckpt.save({"n": 6}) == (6 if written else 5)
    assert ckpt.load() == {"n": 6}


# --- damage ------------------------------------------------------------------------------------------


def test_a_truncated_newest_generation_is_stepped_back_from_loudly(place, caplog):
    """R16: the one before is used, and it is said which, and why."""
    place.filled()
    place.truncate(4)

    ckpt = place.checkpoint()
    assert ckpt.load() == place.state(3)

    (message,) = fallbacks(caplog)
    assert f"checkpoint {NAME}: fell back from generation 4 to 3: generation 4 is damaged" in message
    assert "saved 20" in message
    assert [(one.number, one.valid) for one in ckpt.generations()] == [(1, True), (2, True), (3, True), (4, False)]


def test_after_a_fallback_the_damaged_one_is_set_aside_and_its_number_never_given_again(place, caplog):
    """What is damaged is evidence, and generation 4 must not mean two things."""
    place.filled()
    place.truncate(4)
    ckpt = place.checkpoint()
    ckpt.load()

    assert ckpt.save({"n": "after"}) == 5

    assert 4 in place.quarantined()
    assert any("quarantined" in message and "generation 4 is damaged" in message for message in warnings_of(caplog))
    caplog.clear()
    assert place.checkpoint().load() == {"n": "after"}
    assert warnings_of(caplog) == []
    assert [(one.number, one.valid) for one in ckpt.generations()] == [(n, True) for n in (1, 2, 3, 5)]


def test_several_damaged_generations_are_stepped_over_together(place, caplog):
    place.filled()
    place.truncate(4)
    place.truncate(3)

    assert place.checkpoint().load() == place.state(2)

    (message,) = fallbacks(caplog)
    assert "fell back from generation 4 to 2: generation 4 is damaged" in message
    assert "generation 3 is damaged" in message


def test_if_none_is_sound_it_refuses_and_a_save_is_refused_too(place):
    """R19: a load failure never becomes a fresh start, not even by `except: state = {}`."""
    place.filled()
    for number in (1, 2, 3, 4):
        place.truncate(number)
    ckpt = place.checkpoint()

    with pytest.raises(sf.CorruptCheckpoint) as caught:
        ckpt.load()
    with pytest.raises(sf.CorruptCheckpoint):
        ckpt.save({"n": 0})

    assert caught.value.exit_code == 4
    assert set(caught.value.facts["generations"]) == {"1", "2", "3", "4"}
    assert [one.valid for one in ckpt.generations()] == [False] * 4


def test_a_process_that_knows_its_state_saves_it_though_all_on_disk_is_damaged(place, caplog):
    """Memory is then the only sound copy: to refuse would lose it."""
    ckpt = place.filled()
    for number in (1, 2, 3, 4):
        place.truncate(number)

    assert ckpt.save({"n": 5}) == 5

    assert place.checkpoint().load() == {"n": 5}
    assert any("quarantined" in message for message in warnings_of(caplog))


def test_a_failed_load_forgets_what_was_known(place):
    """Else `except CorruptCheckpoint: state = {}` would overwrite evidence with nothing."""
    ckpt = place.filled()
    for number in (1, 2, 3, 4):
        place.truncate(number)

    with pytest.raises(sf.CorruptCheckpoint):
        ckpt.load()
    with pytest.raises(sf.CorruptCheckpoint):
        ckpt.save({})


def test_a_damaged_older_generation_is_told_and_the_newest_is_used(place, caplog):
    place.filled()
    place.truncate(2)

    assert place.checkpoint().load() == place.state(4)

    assert fallbacks(caplog) == []
    assert any("generation 2 is damaged" in message for message in warnings_of(caplog))


def test_a_lost_newest_generation_is_noticed(durable, caplog):
    """A deleted record or file is not "never saved": the note of the newest knows better."""
    durable.filled()
    durable.drop(4)

    ckpt = durable.checkpoint()
    assert ckpt.load() == durable.state(3)

    assert "fell back from generation 4 to 3: generation 4 is missing" in fallbacks(caplog)[0]
    assert ckpt.save({"n": 5}) == 5


def test_all_generations_lost_is_not_never_saved(durable):
    durable.filled()
    for number in (1, 2, 3, 4):
        durable.drop(number)

    with pytest.raises(sf.CorruptCheckpoint):
        durable.checkpoint().load()


def test_nothing_is_deleted_before_two_newer_ones_were_read_again(place):
    """A store that is going bad must not be thinned out on the word of an earlier day."""
    ckpt = place.filled(count=6)
    for number in (2, 3, 4, 5, 6):
        place.truncate(number)

    assert ckpt.save({"n": 7}) == 7

    assert [one.number for one in ckpt.generations() if one.valid] == [1, 7]


def test_deleting_steps_over_damaged_ones(place):
    """Two verified newer ones: a damaged one does not count."""
    ckpt = place.filled(count=6)
    place.truncate(5)

    ckpt.save({"n": 7})

    assert [one.number for one in ckpt.generations()] == [4, 6, 7]
    assert 5 in place.quarantined()


def test_numbers_do_not_come_back_after_damage_upon_damage(place):
    """Generations 3 and 4 are gone, then 5 is too: the next is 6, not 3."""
    ckpt = place.filled()
    place.truncate(3)
    place.truncate(4)
    assert ckpt.save(place.state(5)) == 5
    place.truncate(5)
    again = place.checkpoint()
    assert again.load() == place.state(2)

    assert again.save({"n": 6}) == 6


# --- damage only a database can have -----------------------------------------------------------------


def test_a_damaged_head_is_told_and_healed(caplog):
    """The head is a note of the newest. If it is wrong, nobody can tell whether anything was lost."""
    place = SqlitePlace()
    place.filled()
    place.sql("UPDATE heads SET seal = zeroblob(32) WHERE run = ?", JOURNAL)
    ckpt = place.checkpoint()

    assert ckpt.load() == place.state(4)
    assert "names another one" in warnings_of(caplog)[-1]

    assert ckpt.save({"n": 5}) == 5
    caplog.clear()
    assert place.checkpoint().load() == {"n": 5}
    assert warnings_of(caplog) == []


def test_records_without_a_head_are_not_nothing(caplog):
    place = SqlitePlace()
    place.filled()
    place.sql("DELETE FROM heads WHERE run = ?", JOURNAL)
    ckpt = place.checkpoint()

    assert ckpt.load() == place.state(4)
    assert "is missing" in warnings_of(caplog)[-1]
    assert ckpt.save({"n": 5}) == 5
    assert place.checkpoint().load() == {"n": 5}


def test_a_damaged_seal_costs_one_generation_and_not_the_next_as_well(caplog):
    """The next record knows what the seal before it was."""
    place = SqlitePlace()
    place.filled()
    place.sql("UPDATE entries SET seal = zeroblob(32) WHERE run = ? AND epoch = 3", JOURNAL)

    ckpt = place.checkpoint()

    assert ckpt.load() == place.state(4)
    assert [one.valid for one in ckpt.generations()] == [True, True, False, True]


def test_a_record_of_the_wrong_type_hides_only_itself(caplog):
    """The store will not give the records together; one by one all others are there."""
    place = SqlitePlace()
    place.filled()
    place.sql("UPDATE entries SET at = 'yesterday' WHERE run = ? AND epoch = 4", JOURNAL)

    assert place.checkpoint().load() == place.state(3)
    assert "fell back from generation 4 to 3" in fallbacks(caplog)[0]


def test_a_lost_part_is_a_fallback_and_the_next_save_brings_it_back(caplog):
    """Generations share parts. What a save relies on is read back; what is gone is written again from memory."""
    place = SqlitePlace()
    ckpt = place.checkpoint()
    ckpt.load()
    for n in range(1, 5):
        ckpt.save([f"message {k} " * 200 for k in range(n)])
    place.sql("DELETE FROM parts WHERE n = (SELECT max(n) FROM parts)")
    again = place.checkpoint()

    assert len(again.load()) == 3
    assert "fell back from generation 4 to 3: generation 4 is damaged: part" in fallbacks(caplog)[0]
    again.save([f"message {k} " * 200 for k in range(4)])

    assert [one.valid for one in again.generations()] == [True] * 5


def test_a_part_that_goes_bad_while_the_store_is_open_is_noticed_and_written_again():
    """Presence is not health: the store trusts what it has seen, so every save reads back the whole state."""
    place = SqlitePlace()
    ckpt = place.checkpoint()
    ckpt.load()
    state = [f"message {k} " * 200 for k in range(4)]
    ckpt.save(state)
    store = open_store(place.url, create=False)
    with store._writing:
        store._execute("UPDATE parts SET body = zeroblob(length(body)) WHERE n = 1")

    ckpt.save([*state, "more"])

    assert ckpt.load() == [*state, "more"]
    assert all(one.valid for one in ckpt.generations())


def test_generations_that_share_a_lost_part_are_not_given_up_before_it_is_written_again():
    """Sharing costs independence: one lost part hits all of them, and one save heals them all."""
    place = SqlitePlace()
    ckpt = place.checkpoint()
    ckpt.load()
    shared = [f"message {k} " * 200 for k in range(4)]
    for n in range(6):
        ckpt.save([*shared, n])
    place.sql("DELETE FROM parts WHERE n = 1")
    assert not any(one.valid for one in ckpt.generations())

    assert ckpt.save([*shared, 6]) == 7

    assert [(one.number, one.valid) for one in ckpt.generations()] == [(n, True) for n in range(1, 8)]


def test_a_number_that_was_set_aside_is_not_given_again_though_its_successor_was_lost():
    """Generations 3 and 4 are in the quarantine, and 5, the only one that told of them, is gone."""
    place = SqlitePlace()
    ckpt = place.filled()
    place.truncate(3)
    place.truncate(4)
    assert ckpt.save(place.state(5)) == 5
    place.drop(5)
    again = place.checkpoint()
    assert again.load() == place.state(2)

    assert again.save({"n": 6}) == 6


def test_what_does_not_read_back_is_not_acknowledged(place, monkeypatch):
    """A disk that returns other bytes than it was given is found out by the save, not by the next crash."""
    ckpt = place.filled()
    shelf = generation_files.FileShelf if place.url.startswith("file:") else generation_journal.JournalShelf

    with monkeypatch.context() as patch, pytest.raises(sf.CorruptCheckpoint, match="does not read back"):
        patch.setattr(shelf, "state", lambda *_: b'"something else"')
        ckpt.save({"n": 5})

    assert [one.valid for one in ckpt.generations()][:4] == [True] * 4


# --- schemas -----------------------------------------------------------------------------------------


def test_migrations_are_chained(place):
    place.filled(schema=1)
    ckpt = place.checkpoint(schema=3)

    @ckpt.migration(2)
    def _(state):
        return {**state, "path": [*state["path"], 2]}

    @ckpt.migration(1)
    def _(state):
        return {**state, "path": [1]}

    assert ckpt.load() == {**place.state(4), "path": [1, 2]}
    assert ckpt.save({"n": "new"}) == 5
    assert [one.schema for one in ckpt.generations()] == [1, 1, 1, 1, 3]


def test_without_a_path_it_stops_and_names_what_is_missing(place):
    place.filled()
    ckpt = place.checkpoint(schema=4)
    ckpt.migration(2)(lambda state: state)

    with pytest.raises(sf.SchemaMismatch, match="no migration from 1, 3") as caught:
        ckpt.load()

    assert caught.value.exit_code == 3
    with pytest.raises(sf.Fenced):
        ckpt.save({})


def test_a_newer_state_is_refused_and_not_stepped_over(place):
    """Old code that went back to an older generation would undo what new code did."""
    place.filled()
    newer = place.checkpoint(schema=2)
    newer.migration(1)(lambda state: state)
    newer.load()
    newer.save({"n": 5})

    with pytest.raises(sf.SchemaMismatch, match="newer than the code's"):
        place.checkpoint().load()


@pytest.mark.parametrize("fails", [lambda state: state["no such key"], lambda _: None])
def test_a_migration_that_fails_is_a_mismatch_with_its_cause(place, fails):
    place.filled()
    ckpt = place.checkpoint(schema=2)
    ckpt.migration(1)(fails)

    with pytest.raises(sf.SchemaMismatch, match="migration from schema 1") as caught:
        ckpt.load()

    assert isinstance(caught.value.__cause__, KeyError | None)


def test_migrations_that_cannot_be_meant_are_refused_when_registered():
    ckpt = sf.Checkpoint("a", schema=3)
    ckpt.migration(1)(lambda state: state)

    with pytest.raises(sf.UsageError, match="two migrations"):
        ckpt.migration(1)(lambda state: state)
    for wrong in (0, 3, True, "1"):
        with pytest.raises(sf.UsageError):
            ckpt.migration(wrong)
    with pytest.raises(sf.UsageError):

        @ckpt.migration(2)
        async def _(state):
            return state


# --- witnesses ---------------------------------------------------------------------------------------


@dataclass
class Fake:
    name: str
    found: object

    def fingerprint(self):
        return self.found


def test_what_witnesses_saw_is_kept_beside_the_state(place):
    ckpt = place.filled()

    ckpt.save({"n": 5}, watch=[Fake("files", {"a.txt": "01"}), Fake("git", {"HEAD": "02"})])

    assert ckpt.generations()[-1].watch == {"files": {"a.txt": "01"}, "git": {"HEAD": "02"}}
    assert ckpt.load() == {"n": 5}


@pytest.mark.parametrize(
    "watch",
    [
        ["a.txt"],
        7,
        [Fake("", {})],
        [Fake("a", {"x": 1})],
        [Fake("a", "text")],
        [Fake("a", {}), Fake("a", {})],
        [Fake],
        [Fake("a", {"\ud800": "1"})],
    ],
)
def test_what_is_no_witness_is_refused_and_nothing_is_written(place, watch):
    ckpt = place.filled()

    with pytest.raises(sf.UsageError):
        ckpt.save({"n": 5}, watch=watch)

    assert ckpt.load()["n"] == 4


# --- the rest ----------------------------------------------------------------------------------------


def test_tasks_await_the_same_words(place):
    """`surefoot.aio` has the same checkpoint; the state is taken as it is when save is called."""

    async def main():
        ckpt = asf.Checkpoint(NAME, store=place.url, schema=2)
        assert await ckpt.load() is None
        state = {"n": 1}
        saving = asyncio.ensure_future(ckpt.save(state))
        await asyncio.sleep(0)
        state["n"] = 2
        assert await saving == 1
        return await ckpt.load(), [one.number for one in await ckpt.generations()]

    assert asyncio.run(main()) == ({"n": 1}, [1])


def test_the_store_of_the_process_is_the_default():
    sf.Checkpoint("a").load()
    sf.Checkpoint("a").save({"n": 1})

    assert Path(".surefoot/runs.db").exists()


def test_a_store_that_vanished_under_us_is_not_made_anew(durable, tmp_path):
    """The process has seen generation 4. A fresh store would begin with 1 and call it the whole truth."""
    ckpt = durable.filled()
    durable.leave()
    for path in sorted(tmp_path.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()

    with pytest.raises(sf.SurefootError):
        ckpt.save({"n": 5})
    assert durable.checkpoint().load() is None
