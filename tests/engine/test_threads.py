"""Threads for adapters, without a framework: what is unreadable is never nothing, and a thread has one line."""

from __future__ import annotations

import pytest

from surefoot.engine.threads import Found, Given, Threads
from surefoot.errors import CorruptCheckpoint, Fenced, UsageError
from surefoot.store.contract import Rewrite
from surefoot.store.open import close_all, open_store
from surefoot.store.threads import PREFIX, Key


@pytest.fixture
def url(tmp_path):
    yield f"sqlite:///{tmp_path}/threads.db"
    close_all()


def save(threads, id_, parent="", *, ns="", state=b'{"x":1}'):
    threads.save("t", ns, id_, parent, state=state, meta=b"{}")


def test_nothing_is_nothing_and_makes_no_store(url, tmp_path):
    threads = Threads(url)

    assert threads.newest("t", "") is None
    assert threads.one("t", "", "1") is None
    assert threads.listed("t") == threads.names() == []
    assert not list(tmp_path.iterdir())


def test_newest_is_the_last_that_was_saved_and_not_the_highest_id(url):
    """Ids come from clocks, and the next host's may be behind."""
    threads = Threads(url)
    save(threads, "9")
    save(threads, "1", "9", state=b'{"x":2}')
    save(threads, "5", ns="sub")
    threads.write("t", "", "1", task="a", path="p", value=b"[]")

    found = Threads(url).newest("t", "")

    assert found == Found("t", "", "1", "9", b'{"x":2}', b"{}", (Given("a", "p", b"[]"),))
    assert [(one.ns, one.id) for one in threads.listed("t")] == [("sub", "5"), ("", "1"), ("", "9")]


def test_checkpoint_behind_one_that_is_no_longer_the_newest_is_fenced(url):
    one, other = Threads(url), Threads(url)
    save(one, "1")
    assert other.newest("t", "").id == "1"
    save(one, "2", "1")

    with pytest.raises(Fenced, match="checkpoint 2, saved"):
        save(other, "3", "1")
    assert other.one("t", "", "1").id == "1"  # named: from here on a fork is meant
    save(other, "3", "1")


def test_large_states_share_what_they_have_in_common(url):
    threads = Threads(url)
    text = "".join(chr(97 + number % 23) for number in range(20_000))
    for number in range(40):
        state = f'{{"a":"{text}","n":{number}}}'.encode()
        save(threads, str(number), str(number - 1) if number else "", state=state)

    store = open_store(url, create=False)
    assert sum(len(part.body) for part in store.parts(store.part_ids()).values()) < 40_000
    assert Threads(url).newest("t", "").state == state


def damaged(url, seq):
    """A record whose body is another, under the old seal."""
    import apsw

    close_all()
    connection = apsw.Connection(url.removeprefix("sqlite:///"), flags=apsw.SQLITE_OPEN_READWRITE)
    connection.execute("UPDATE entries SET body = CAST(body || ' ' AS BLOB) WHERE seq = ?", (seq,)).fetchall()
    connection.close()


def test_damaged_record_is_stepped_over_and_set_aside_by_the_next_write(url, caplog):
    threads = Threads(url)
    for number in "123":
        save(threads, number, str(int(number) - 1) if number > "1" else "")
    damaged(url, 3)

    fresh = Threads(url)
    assert fresh.newest("t", "").id == "2"
    assert "fell back to checkpoint 2" in caplog.text
    save(fresh, "4", "2")

    assert [one.id for one in Threads(url).listed("t")] == ["4", "2", "1"]
    assert "quarantined" in caplog.text
    assert len(open_store(url, create=False).quarantined(PREFIX + "t")) == 4


def test_nothing_is_buried_that_nobody_can_read(url):
    save(Threads(url), "1")
    damaged(url, 1)

    with pytest.raises(CorruptCheckpoint):
        Threads(url).newest("t", "")
    with pytest.raises(CorruptCheckpoint):
        save(Threads(url), "2")


def test_thread_that_was_rewritten_by_others_is_read_anew(url):
    one, other = Threads(url), Threads(url)
    save(one, "1")
    save(one, "2", "1")
    assert other.newest("t", "").id == "2"
    one.keep("t", "pruned", lambda found: {Key(found[0].ns, found[0].id)})

    assert [each.id for each in other.listed("t")] == ["2"]
    save(other, "3", "2")
    assert one.newest("t", "").id == "3"


def test_cleared_thread_says_why_and_is_empty(url):
    threads = Threads(url)
    save(threads, "1")
    threads.delete("t", "no longer wanted")

    assert threads.newest("t", "") is None
    (record,) = open_store(url, create=False).read(PREFIX + "t").records
    assert record.body == b'{"why":"no longer wanted"}'


def test_older_store_that_was_adopted_is_told(url, caplog):
    """Newer checkpoints may be gone: the newest that is there need not be the newest that was saved."""
    from surefoot.core.entry import StoreAdopted
    from surefoot.core.seal import Sealer

    save(Threads(url), "1")
    store = open_store(url, create=False)
    record, _ = Sealer(store.id, "\x1fstore").entry(StoreAdopted("ann", "a copy", 9, 5), at=1)
    assert store.rewrite(Rewrite("\x1fstore", None, 0, [record], archive=False)) is None

    fresh = Threads(url)
    assert fresh.newest("t", "").id == "1"
    assert "was adopted" in caplog.text
    save(fresh, "2", "1")
    caplog.clear()
    assert Threads(url).newest("t", "").id == "2"
    assert "adopted" not in caplog.text


@pytest.mark.parametrize("thread", ["", "a\x1fb", "x" * 501, 7, None])
def test_thread_needs_an_id_that_people_can_read(url, thread):
    with pytest.raises(UsageError, match="thread id"):
        Threads(url).newest(thread, "")
