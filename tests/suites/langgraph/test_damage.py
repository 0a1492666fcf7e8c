"""What is damaged is found, and an older state is never given without a word."""

from __future__ import annotations

import logging

import apsw
import pytest
from langgraph.types import Command

from surefoot.core.entry import KINDS
from surefoot.engine.upkeep.verification import verify_store
from surefoot.errors import CorruptCheckpoint, JournalRegressed
from surefoot.langgraph import Saver
from surefoot.store.open import close_all, open_store
from tests.langgraph_threads import THREAD, Flips, begun, chat, into_one_file

FLIPS = 60


@pytest.fixture
def database(tmp_path):
    yield tmp_path / "threads.db"
    close_all()


@pytest.fixture
def before(database):
    """The checkpoints of a chat, the newest first; the store is closed."""
    found = begun(f"sqlite:///{database}")
    into_one_file(database)
    return found


def change(database, statement, *values):
    close_all()
    connection = apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READWRITE)
    connection.execute(statement, values).fetchall()
    connection.close()


def saver(database, **options):
    return Saver(store=f"sqlite:///{database}", **options)


def numbers(database, kind):
    """Positions of the records of a kind, the newest first."""
    number = next(number for number, cls in KINDS.items() if cls.__name__ == kind)
    connection = apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READONLY)
    found = connection.execute("SELECT seq FROM entries WHERE kind = ? ORDER BY seq DESC", (number,)).fetchall()
    connection.close()
    return [seq for (seq,) in found]


def test_no_flipped_bit_in_the_newest_checkpoint_is_silently_wrong(tmp_path, caplog):
    """A msgpack blob with one flipped bit often still loads: as another state."""
    flips = Flips(tmp_path)

    outcomes = {flips.flip(seed, caplog) for seed in range(FLIPS)}

    assert not {one for one in outcomes if one.startswith("WRONG")}, flips.outcomes
    assert flips.outcomes.get("fell back", 0) + flips.outcomes.get("refused", 0) > FLIPS // 3


def test_chat_goes_on_from_the_checkpoint_before_a_damaged_one(database, before, caplog):
    """The graph comes to the same pause again, and the thread is whole afterwards."""
    newest = numbers(database, "ThreadSaved")[0]
    change(database, "UPDATE entries SET body = CAST(body || ' ' AS BLOB) WHERE seq = ? AND kind = 70", newest)
    with caplog.at_level(logging.WARNING, "surefoot"):
        found = saver(database).get_tuple(THREAD)

    assert found.checkpoint == before[1].checkpoint
    assert "fell back" in caplog.text
    graph = chat(saver(database))
    assert graph.invoke(None, THREAD)["__interrupt__"][0].value["seen"] == 5
    assert graph.invoke(Command(resume="yes"), THREAD)["asked"] == ["yes"]
    assert "quarantined" in caplog.text
    store = open_store(f"sqlite:///{database}", create=False)
    assert verify_store(store).flaws == []
    assert store.quarantined("\x1fthread\x1fchat")


def test_newest_checkpoint_that_is_lost_is_missed(database, before, caplog):
    """SqliteSaver goes on from an older one without a word when a row is gone."""
    change(database, "DELETE FROM entries WHERE seq = (SELECT max(seq) FROM entries WHERE kind = 70) AND kind = 70")

    found = saver(database).get_tuple(THREAD)

    assert found.checkpoint["id"] in [one.checkpoint["id"] for one in before[1:]]
    assert "fell back" in caplog.text


def test_lost_write_of_a_task_is_told(database, before, caplog):
    """Without its write a task runs again: that must not happen unseen."""
    saver(database).copy_thread("chat", "other")
    change(database, "DELETE FROM entries WHERE seq = (SELECT max(seq) FROM entries) AND run LIKE '%chat'")

    found = saver(database).get_tuple(THREAD)

    assert found.checkpoint == before[0].checkpoint
    assert "which then run again" in caplog.text


def test_last_record_of_the_store_cannot_be_lost_at_all(database, before):
    """Its anchor remembers how far the store has reached."""
    change(database, "DELETE FROM entries WHERE seq = (SELECT max(seq) FROM entries)")

    with pytest.raises(JournalRegressed):
        saver(database).get_tuple(THREAD)


def test_stop_instead_of_a_fallback(database, before):
    change(
        database,
        "UPDATE entries SET body = CAST(body || ' ' AS BLOB) WHERE seq = (SELECT max(seq) FROM entries WHERE kind = 70)",
    )

    with pytest.raises(CorruptCheckpoint, match="seal does not hold"):
        saver(database, on_corruption="stop").get_tuple(THREAD)


def test_thread_of_which_nothing_can_be_read_is_never_empty(database, before):
    """None would start the chat over, and bury what a person may still save."""
    change(database, "UPDATE entries SET body = CAST(body || ' ' AS BLOB)")

    with pytest.raises(CorruptCheckpoint):
        saver(database).get_tuple(THREAD)
    with pytest.raises(CorruptCheckpoint):
        list(saver(database).list(THREAD))
    with pytest.raises(CorruptCheckpoint):
        chat(saver(database)).invoke({"messages": ["hello"], "asked": []}, THREAD)


def test_damaged_part_of_the_newest_state_is_stepped_over(database, before, caplog):
    """Large states are kept by parts: the record is whole, and what it names is not."""
    change(
        database, "UPDATE parts SET body = zeroblob(length(body)) WHERE n = (SELECT max(n) FROM parts WHERE kind = 1)"
    )

    found = saver(database).get_tuple(THREAD)

    assert found.checkpoint["id"] in [one.checkpoint["id"] for one in before[1:]]
    assert "fell back" in caplog.text


def test_checkpoint_that_is_named_and_unreadable_is_no_none(database, before):
    newest = before[0].config
    change(
        database,
        "UPDATE entries SET body = CAST(body || ' ' AS BLOB) WHERE seq = (SELECT max(seq) FROM entries WHERE kind = 70)",
    )

    with pytest.raises(CorruptCheckpoint, match="not among those that can be read"):
        saver(database).get_tuple(newest)
    unknown = {"configurable": {"thread_id": "other", "checkpoint_ns": "", "checkpoint_id": "none"}}
    assert saver(database).get_tuple(unknown) is None


def test_deleting_a_damaged_thread_makes_room_for_a_new_one(database, before):
    change(database, "UPDATE entries SET body = CAST(body || ' ' AS BLOB)")
    mine = saver(database)

    mine.delete_thread("chat")

    assert mine.get_tuple(THREAD) is None
    assert begun(f"sqlite:///{database}")


def test_pruning_never_deletes_what_nobody_has_seen(database, before):
    change(database, "UPDATE entries SET body = CAST(body || ' ' AS BLOB) WHERE seq = 3")

    with pytest.raises(CorruptCheckpoint, match="unseen"):
        saver(database).prune(["chat"])
