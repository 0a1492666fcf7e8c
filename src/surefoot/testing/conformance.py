"""The store contract as a test suite, for any backend.

    class TestMyStore(StoreContract):
        def make_store(self, tmp_path):
            return MyStore(tmp_path)

Inherit, define how a new, empty store is made, and run pytest. Every promise of `surefoot.store.contract` that can
be seen from within one process is here; what a backend promises beyond it (other processes, power cuts, full
disks) it must test itself.
"""

# ruff: noqa: S101 - asserting is what a test suite does

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from surefoot.core.entry import KIND_OF, Acknowledged, CancelRequested, StepDone
from surefoot.core.parts import Cut, cut, expand, reachable
from surefoot.core.seal import GENESIS, Record, Sealer, verify
from surefoot.errors import StoreUnavailable, UsageError
from surefoot.store.contract import (
    RESERVED,
    Conflict,
    Extend,
    Head,
    IndexRow,
    Limit,
    Rewrite,
    RunQuery,
    Serving,
    Store,
    Stored,
    Wanted,
)
from surefoot.store.pages import NEWEST

ODD_RUN_IDS = (
    "päivä-Ω-漢字-🦶",
    'it\'s "quoted"; DROP TABLE entries; --',
    "../../etc/passwd",
    "a/b\\c",
    "with space\tand\nnewline",
    "%00 %s {} $1 ?",
    "x" * 500,
    "Case",
    "case",
)
_THREADS = 8
_APPENDS_PER_THREAD = 12
_A_LOT = 1_000_000
_LONG_AGO, _FAR_OFF = 1_000_000, 4_102_444_800_000_000
"""1970 and 2100: the present of any store's clock is between."""
_DEAD = "0123456789abcdef"
"""The name of a worker without a process."""
_SOON_SECONDS = 20


class Writer:
    """Seals records for one run and remembers where its journal ends."""

    def __init__(self, store: Store, run: str, *, head: Head | None = None, epoch: int = 1) -> None:
        self.run = run
        self.head = head
        self.kind = KIND_OF[StepDone]
        self._sealer = Sealer(store.id, run)
        self._epoch = epoch

    def records(self, *bodies: bytes) -> list[Record]:
        """Records that continue the run; the writer does not advance."""
        seq, seal = (self.head.seq, self.head.seal) if self.head else (0, GENESIS)
        records = []
        for body in bodies:
            seq += 1
            record = self._sealer.seal(
                seq=seq, epoch=self._epoch, at=1_000_000 + seq, kind=self.kind, body=body, previous=seal
            )
            seal = record.seal
            records.append(record)
        return records

    def append(self, *bodies: bytes, row: IndexRow | None = None, cuts: Sequence[Cut] = ()) -> Extend:
        """The request to append these. The writer advances as if it succeeds."""
        head, records = self.head, self.records(*bodies)
        self.head = Head(records[-1].seq, records[-1].seal)
        return Extend(self.run, head, records, row, cuts)

    def rewrite(self, keep: int, kept: Head | None, *bodies: bytes, **more: Any) -> Rewrite:
        """The request to put these after `kept`, the record at that position, in place of all that is there."""
        found, self.head = self.head, kept
        records = self.records(*bodies)
        self.head = Head(records[-1].seq, records[-1].seal)
        return Rewrite(self.run, found, keep, records, **more)


def begun(store: Store, run: str, *bodies: bytes, **more: Any) -> Writer:
    """The writer of a new run that has these records."""
    writer = Writer(store, run)
    assert store.append([writer.append(*bodies, **more)]) == [None]
    return writer


def index_row(run: str, **changed: Any) -> IndexRow:
    fields: dict[str, Any] = {
        "workflow": "refactor", "status": "running", "queue": "", "labels": {}, "created": 1_000_000, "seq": 1,
    }  # fmt: skip
    return IndexRow(run=run, **(fields | changed))


def put(store: Store, *rows: IndexRow) -> None:
    """A new run for each of these rows."""
    assert store.append([Writer(store, row.run).append(b"1", row=row) for row in rows]) == [None] * len(rows)


def listed(store: Store, **query: Any) -> list[str]:
    return [item.run for item in store.runs(RunQuery(**query))]


def due(run: str, **changed: Any) -> IndexRow:
    """The row of a run that has been ready for a while."""
    return index_row(run, **({"status": "queued", "wake": _LONG_AGO} | changed))


def taken(store: Store, **changed: Any) -> list[str]:
    """The runs that a worker with the code of `refactor` gets."""
    return store.reserve(wish(store, **changed)).runs


def wish(store: Store, **changed: Any) -> Wanted:
    fields: dict[str, Any] = {
        "worker": store.worker, "workflows": ["refactor"], "limit": 100, "now": time.time_ns() // 1000,
    }  # fmt: skip
    return Wanted(**(fields | changed))


def assert_whole(store: Store, run: str, count: int) -> Stored:
    """The run has `count` records, its chain holds from the first to the last, and its head is the last."""
    stored = store.read(run)
    assert [record.seq for record in stored.records] == list(range(1, count + 1))
    assert verify(Sealer(store.id, run), stored.records) == count
    assert stored.head == Head(count, stored.records[-1].seal)
    return stored


def large_value(seed: int, pieces: int = 30) -> Cut:
    """A value that is kept by parts; values with different seeds share none of them."""
    return cut(b",".join(b'"%d-%d-%s"' % (seed, n, b"%x" % (seed * 7919 + n) * 60) for n in range(pieces)))


class StoreContract:
    """Inherit and override `make_store`."""

    def make_store(self, tmp_path: Path) -> Store:
        """A new, empty store."""
        raise NotImplementedError

    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[Store]:
        made = self.make_store(tmp_path)
        yield made
        made.close()

    # --- identity --------------------------------------------------------------------------------

    def test_store_has_an_identity_of_its_own(self, store: Store, tmp_path: Path) -> None:
        """The id is part of every seal: two stores with the same id could swap records unnoticed."""
        (tmp_path / "other").mkdir()
        other = self.make_store(tmp_path / "other")

        assert len(store.id) == 16
        assert store.id != other.id
        other.close()

    def test_own_worker_is_alive_and_keeps_its_name(self, store: Store) -> None:
        """A run whose claimant lives must not be taken over."""
        assert store.worker == store.worker
        assert store.alive(store.worker)

    def test_unknown_worker_is_not_alive(self, store: Store) -> None:
        """A run whose claimant is gone must not wait for ever; and a name from a journal is not a path."""
        for name in ("", "0123456789abcdef", "../../etc/passwd", "nobody", "\0"):
            assert not store.alive(name)

    def test_living_process_is_not_proven_dead(self, store: Store) -> None:
        """A call of it may be under way: what is not there yet may still come."""
        assert not store.proven_dead(store.worker)
        for name in ("", "../../etc/passwd", "\0"):
            store.proven_dead(name)  # a name from a journal is not a path
        assert store.last_heard("nobody") is None

    def test_worker_is_listed_with_what_it_serves(self, store: Store) -> None:
        """Who rolls out new code asks which workers run the old."""
        serving = Serving(("refactor", "größer"), ("mail",), "digest")
        store.serve(serving)

        (seen,) = [one for one in store.workers() if one.worker == store.worker]

        assert seen.serving == serving
        assert (seen.pid, seen.host) == (os.getpid(), socket.gethostname())
        assert 0 < seen.since < _FAR_OFF
        assert seen.heard is None or 0 < seen.heard < _FAR_OFF
        store.serve(None)
        assert [one.serving for one in store.workers() if one.worker == store.worker] == [None]

    def test_durability_is_said_in_words(self, store: Store) -> None:
        """`doctor` prints it."""
        settings = store.durability()

        assert settings
        assert all(isinstance(value, str) for value in settings.values())

    # --- appending and reading -------------------------------------------------------------------

    def test_unknown_run_is_empty(self, store: Store) -> None:
        """Missing is an answer, not an error; unreadable would be an error."""
        assert store.read("nobody") == Stored([], None)
        assert store.runs(RunQuery()) == []

    def test_what_was_appended_comes_back_equal(self, store: Store) -> None:
        """Every field is sealed: one that comes back changed is a damaged record."""
        writer = Writer(store, "r", epoch=7)
        wish = writer.append(b'{"a":1}', b"", b"\x00\xff\xfe")

        assert store.append([wish]) == [None]

        assert store.read("r") == Stored(list(wish.records), writer.head)

    def test_run_continues_behind_its_head(self, store: Store) -> None:
        """The ordinary case."""
        writer = Writer(store, "r")

        for n in range(5):
            assert store.append([writer.append(b"%d" % n)]) == [None]

        assert_whole(store, "r", 5)

    def test_read_after_a_position_gives_the_rest_and_the_head(self, store: Store) -> None:
        """A writer that lost a race reads only what is new."""
        writer = begun(store, "r", b"1", b"2", b"3")

        assert [record.body for record in store.read("r", after=1).records] == [b"2", b"3"]
        assert [record.body for record in store.read("r", after=1, limit=1).records] == [b"2"]
        assert store.read("r", after=3) == Stored([], writer.head)
        assert store.read("r", after=99) == Stored([], writer.head)

    def test_journals_read_together_are_those_read_alone(self, store: Store) -> None:
        """A worker takes up hundreds of runs at once: whatever is asked along with it, each gets its own journal."""
        for run in ("one", "two", "it's", "größe"):
            writer = Writer(store, run)
            for n in range(3 + len(run)):
                assert store.append([writer.append(b"%d" % n)]) == [None]
        runs = ["one", "two", "it's", "größe", "one", "unknown"]

        together = store.read_all(runs)

        assert together == [store.read(run) for run in runs]
        assert [len(stored.records) for stored in together] == [6, 6, 7, 8, 6, 0]
        assert store.read_all([]) == []

    def test_new_run_conflicts_if_it_exists(self, store: Store) -> None:
        """Two processes start the same run: one of them must learn that it was second."""
        store.append([Writer(store, "r").append(b"first")])

        assert store.append([Writer(store, "r").append(b"second")]) == [Conflict("r")]

        assert assert_whole(store, "r", 1).records[0].body == b"first"

    def test_continuing_a_run_that_is_not_there_conflicts(self, store: Store) -> None:
        """A run that vanished must not begin in the middle."""
        ghost = Writer(store, "r", head=Head(3, bytes(32)))

        assert store.append([ghost.append(b"4")]) == [Conflict("r")]

        assert store.read("r") == Stored([], None)

    def test_old_head_conflicts(self, store: Store) -> None:
        """A writer that was overtaken must not write over, or behind, what it has not read."""
        writer = begun(store, "r", b"1")
        late = Writer(store, "r", head=writer.head)
        store.append([writer.append(b"2", b"3")])

        assert store.append([late.append(b"2")]) == [Conflict("r")]

        assert_whole(store, "r", 3)

    def test_other_seal_at_the_same_position_conflicts(self, store: Store) -> None:
        """The position alone does not tell two histories apart."""
        begun(store, "r", b"1")
        stranger = Writer(store, "r", head=Head(1, b"\x01" * 32))

        assert store.append([stranger.append(b"2")]) == [Conflict("r")]

        assert_whole(store, "r", 1)

    def test_innocent_runs_of_a_batch_go_through(self, store: Store) -> None:
        """Strangers share a commit; one that lost a race must not take the others down."""
        store.append([Writer(store, "taken").append(b"1")])
        old, new = Writer(store, "old"), Writer(store, "new")
        store.append([old.append(b"1")])

        answers = store.append([old.append(b"2"), Writer(store, "taken").append(b"x"), new.append(b"1", b"2")])

        assert answers == [None, Conflict("taken"), None]
        assert_whole(store, "old", 2)
        assert_whole(store, "taken", 1)
        assert_whole(store, "new", 2)

    def test_batch_judges_each_head_by_position_and_seal(self, store: Store) -> None:
        """The quick way of a large batch must be as strict as the way of a single append."""
        real = begun(store, "real", b"1", b"2")
        ghost = Writer(store, "ghost", head=Head(3, bytes(32)))
        stranger = Writer(store, "real", head=Head(2, b"\x01" * 32))
        skipper = Writer(store, "real", head=Head(7, real.head.seal if real.head else b""))
        new = Writer(store, "new")

        for loser in (ghost, stranger, skipper):
            other = Writer(store, f"beside-{loser.run}-{loser.head}")
            assert store.append([other.append(b"1"), loser.append(b"x")]) == [None, Conflict(loser.run)]
        assert store.append([new.append(b"1"), real.append(b"3")]) == [None, None]

        assert_whole(store, "real", 3)
        assert store.read("ghost") == Stored([], None)

    def test_conflicting_run_leaves_no_index_row(self, store: Store) -> None:
        """Nothing of it is written, the run list included."""
        store.append([Writer(store, "r").append(b"1", row=index_row("r", status="done"))])

        store.append([Writer(store, "r").append(b"1", row=index_row("r", status="failed"))])

        assert [item.row for item in store.runs(RunQuery())] == [index_row("r", status="done")]

    def test_batch_may_continue_one_run_twice(self, store: Store) -> None:
        """Two callers of one run may wait in the same queue."""
        writer = Writer(store, "r")

        assert store.append([writer.append(b"1"), writer.append(b"2"), writer.append(b"3")]) == [None] * 3

        assert_whole(store, "r", 3)

    def test_large_batch_is_whole(self, store: Store) -> None:
        """Group commit: hundreds of runs, new and old, some with many records, in one transaction."""
        writers = [Writer(store, f"run-{n}") for n in range(230)]
        store.append([writer.append(b"1") for writer in writers[:115]])

        answers = store.append([w.append(*[b"%d" % n for n in range(1 + i % 3)]) for i, w in enumerate(writers)])

        assert answers == [None] * 230
        for i, writer in enumerate(writers):
            assert_whole(store, writer.run, 1 + i % 3 + (i < 115))

    def test_large_batch_with_conflicts_tells_them_apart(self, store: Store) -> None:
        """The answers are in the order asked."""
        for n in range(0, 120, 7):
            store.append([Writer(store, f"run-{n}").append(b"taken")])

        answers = store.append([Writer(store, f"run-{n}").append(b"mine") for n in range(120)])

        assert answers == [Conflict(f"run-{n}") if n % 7 == 0 else None for n in range(120)]
        for n in range(120):
            assert assert_whole(store, f"run-{n}", 1).records[0].body == (b"mine" if n % 7 else b"taken")

    def test_empty_batch_is_nothing(self, store: Store) -> None:
        """A queue may have been emptied by somebody else."""
        before = store.changes()

        assert store.append([]) == []
        assert store.changes() == before

    def test_records_with_a_hole_are_refused(self, store: Store) -> None:
        """A writer that miscounts is a bug that must not reach the disk."""
        writer = Writer(store, "r")
        first, second, third = writer.records(b"1", b"2", b"3")

        for records in ([second], [first, third], [second, first], []):
            with pytest.raises(UsageError):
                store.append([Extend("r", None, records)])
        with pytest.raises(UsageError):
            store.append([Extend("other", None, [first])])

        assert store.read("r") == Stored([], None)

    def test_large_body_comes_back(self, store: Store) -> None:
        """A model's whole context may be one value."""
        body = bytes(range(256)) * (_A_LOT // 256)
        store.append([Writer(store, "r").append(b"small", body, b"small")])

        assert assert_whole(store, "r", 3).records[1].body == body

    @pytest.mark.parametrize("run", ODD_RUN_IDS)
    def test_odd_run_id_is_a_run_like_any_other(self, store: Store, run: str) -> None:
        """People choose run ids."""
        writer = begun(store, run, b"1", row=index_row(run))
        store.append([writer.append(b"2")])

        assert_whole(store, run, 2)
        assert listed(store) == [run]

    def test_run_ids_are_told_apart_exactly(self, store: Store) -> None:
        """Neither case nor Unicode forms are folded."""
        names = ("run", "Run", "run ", "r\u00e9sum\u00e9", "re\u0301sume\u0301")
        for name in names:
            assert store.append([Writer(store, name).append(name.encode())]) == [None]

        for name in names:
            assert store.read(name).records[0].body == name.encode()

    def test_changes_moves_when_something_was_appended(self, store: Store) -> None:
        """Waiting processes look at this number instead of reading."""
        writer = Writer(store, "r")
        seen = {store.changes()}
        for n in range(4):
            store.append([writer.append(b"%d" % n)])
            assert store.changes() == store.changes()
            seen.add(store.changes())

        assert len(seen) == 5

    # --- the run list ----------------------------------------------------------------------------

    def test_runs_are_listed_newest_first_and_paged(self, store: Store) -> None:
        """By creation: a later entry of an old run does not move it."""
        writers = [begun(store, f"run-{n}", b"1", row=index_row(f"run-{n}")) for n in range(7)]
        store.append([writers[0].append(b"2", row=index_row("run-0", status="done", seq=2))])

        assert listed(store) == [f"run-{n}" for n in range(6, -1, -1)]
        assert listed(store, limit=2, before="run-4") == ["run-3", "run-2"]
        assert store.runs(RunQuery(before="run-0")) == []
        assert store.runs(RunQuery(before="unknown")) == []
        assert store.runs(RunQuery(limit=0)) == []

    def test_row_is_the_newest_one_given(self, store: Store) -> None:
        """Status changes ride along with the entry that made them; other entries leave the row alone."""
        writer = begun(store, "r", b"1", row=index_row("r"))
        labels = {"team": "a", "ä": "\U0001f9b6"}
        news = {"wake": _LONG_AGO, "worker": _DEAD, "reason": "InDoubt", "need": "in_doubt", "address": "[ä]/pay#1",
                "brief": "InDoubt \U0001f9b6", "until": _FAR_OFF, "marks": ("fell_back", "left")}  # fmt: skip
        done = index_row("r", status="done", queue="q", labels=labels, seq=2, **news)
        store.append([writer.append(b"2", row=done)])
        store.append([writer.append(b"3")])

        assert [item.row for item in store.runs(RunQuery())] == [done]

    def test_row_may_be_renewed_without_records(self, store: Store) -> None:
        """The list is a cache and can be rebuilt; only behind the head it was built from."""
        writer = begun(store, "r", b"1")

        assert store.append([Extend("r", writer.head, [], index_row("r"))]) == [None]
        assert store.append([Extend("r", Head(9, bytes(32)), [], index_row("r", status="no"))]) == [Conflict("r")]

        assert [item.row for item in store.runs(RunQuery())] == [index_row("r")]

    def test_runs_are_filtered(self, store: Store) -> None:
        """All conditions must hold, labels exactly."""
        put(
            store,
            index_row("a", status="done", labels={"team": "x", "tier": "1"}),
            index_row("b", status="done", workflow="other", labels={"team": "x"}),
            index_row("c", status="running", labels={"team": "xx"}),
        )
        found = partial(listed, store)

        assert found(status="done") == ["b", "a"]
        assert found(workflow="refactor") == ["c", "a"]
        assert found(labels={"team": "x"}) == ["b", "a"]
        assert found(labels={"team": "x", "tier": "1"}) == ["a"]
        assert found(status="done", labels={"team": "xx"}) == []
        assert found(status="done", limit=1, before="b") == ["a"]

    def test_what_waits_for_a_person_is_found_by_kind(self, store: Store) -> None:
        """An inbox of a store with a hundred thousand runs that are done."""
        put(
            store,
            index_row("a", status="stopped", need="in_doubt"),
            index_row("b", status="waiting", need="question", queue="mail", labels={"team": "x"}),
            index_row("c", status="done"),
            index_row("d", status="waiting", need="question", queue="mail", workflow="other"),
        )
        found = partial(listed, store)

        assert found(need="*") == ["d", "b", "a"]
        assert found(need="question") == ["d", "b"]
        assert found(need="question", limit=1, before="d") == ["b"]
        assert found(need="*", workflow="refactor", status="waiting") == ["b"]
        assert found(queue="mail") == ["d", "b"]
        assert found(queue="") == ["c", "a"]
        assert found(queue="mail", labels={"team": "x"}) == ["b"]
        assert found(need="drift") == []

    def test_claimed_runs_are_found_whether_their_worker_lives_or_not(self, store: Store) -> None:
        """Runs whose process is gone are among them: somebody may have to start a worker."""
        put(
            store,
            index_row("a", status="running", worker="0" * 32),
            index_row("b", status="running", worker=store.worker, workflow="other"),
            index_row("c", status="done"),
        )
        found = partial(listed, store, claimed=True)

        assert found() == ["b", "a"]
        assert found(limit=1, before="b") == ["a"]
        assert found(workflow="other") == ["b"]
        assert found(status="done") == []

    def test_filter_goes_by_the_newest_row(self, store: Store) -> None:
        """A question that was answered is in no inbox any more."""
        writer = begun(store, "r", b"1", row=index_row("r", status="waiting", need="question"))
        store.append([writer.append(b"2", row=index_row("r", status="queued", seq=2))])

        assert store.runs(RunQuery(need="*")) == []
        assert store.runs(RunQuery(status="waiting")) == []
        assert listed(store, status="queued") == ["r"]

    def test_pages_of_a_filter_meet_every_run_once(self, store: Store) -> None:
        """Rows that are missing are between them, where they belong, and on one page only."""
        for n in range(12):
            row = None if n % 5 == 0 else index_row(f"run-{n}", status="done" if n % 2 else "running")
            store.append([Writer(store, f"run-{n}").append(b"1", row=row)])
        found: list[str] = []

        while page := store.runs(RunQuery(status="done", limit=2, before=found[-1] if found else "")):
            found += [item.run for item in page]

        assert found == ["run-11", "run-10", "run-9", "run-7", "run-5", "run-3", "run-1", "run-0"]

    def test_run_without_a_row_is_listed_whatever_the_filter(self, store: Store) -> None:
        """A lost cache row must not hide a run: the caller reads its journal and decides."""
        store.append([Writer(store, "bare").append(b"1")])
        store.append([Writer(store, "other").append(b"1", row=index_row("other"))])

        assert [(item.run, item.row) for item in store.runs(RunQuery(status="done"))] == [("bare", None)]

    def test_audit_is_what_people_did_newest_first(self, store: Store) -> None:
        """Of all journals, in the order written; ordinary entries are not in it."""
        ordinary, asked, said = (KIND_OF[kind] for kind in (StepDone, CancelRequested, Acknowledged))
        for run in ("a", "b"):
            writer = Writer(store, run)
            for writer.kind in (ordinary, asked, ordinary, said):
                store.append([writer.append(b"x")])

        found = store.said(NEWEST, 10)

        assert [(one.run, one.seq) for _, one in found] == [("b", 4), ("b", 2), ("a", 4), ("a", 2)]
        assert store.said(found[1][0], 1) == [found[2]]
        assert store.said(found[3][0], 10) == []
        assert set(found) <= set(store.scan(0, 100))

    # --- parts -------------------------------------------------------------------------------------

    def test_parts_come_with_the_record_that_needs_them(self, store: Store) -> None:
        """A record whose value cannot be put together again is a lost record."""
        value = large_value(1)
        assert value.leaves

        assert store.append([Writer(store, "r").append(b"1", cuts=[value])]) == [None]

        assert len(expand(value.reference, store.parts)) == value.reference.size
        assert set(store.part_ids()) == {*value.leaves, *value.nodes}
        scanned = [part for at in range(0, 10_000, 7) for _, part in store.scan_parts(at, 7)]
        assert {part.id: part for part in scanned} == store.parts(store.part_ids())

    def test_parts_of_a_refused_append_are_not_needed_by_anybody(self, store: Store) -> None:
        """The loser of the race has written nothing that counts; the winner's values are whole."""
        mine, theirs = large_value(1), large_value(2)
        store.append([Writer(store, "r").append(b"1", cuts=[mine])])

        answers = store.append(
            [Writer(store, "other").append(b"1", cuts=[theirs]), Writer(store, "r").append(b"1", cuts=[large_value(3)])]
        )

        assert answers == [None, Conflict("r")]
        assert expand(mine.reference, store.parts)
        assert expand(theirs.reference, store.parts)

    def test_parts_are_stored_once(self, store: Store) -> None:
        """A value that grows costs what is new."""
        value = large_value(1, pieces=40)
        writer = begun(store, "r", b"1", cuts=[value])
        before = set(store.part_ids())

        store.append([writer.append(b"2", cuts=[value, large_value(1, pieces=41)])])

        ids = store.part_ids()
        assert len(ids) == len(set(ids))
        assert len(set(ids) - before) < len(before)

    def test_unknown_parts_are_left_out_of_the_answer(self, store: Store) -> None:
        """What is missing is for the reader to say; however many are asked for."""
        value = large_value(1)
        store.append([Writer(store, "r").append(b"1", cuts=[value])])
        name = next(iter(value.leaves))

        assert store.parts([]) == {}
        assert list(store.parts([bytes(32), name])) == [name]
        assert list(store.parts([name, *(n.to_bytes(32, "big") for n in range(3_000))])) == [name]

    # --- rewriting ---------------------------------------------------------------------------------

    def test_rewrite_puts_records_in_the_place_of_others(self, store: Store) -> None:
        """A fallback: the run goes on from its valid prefix, and what was behind it is kept for inspection."""
        writer = begun(store, "r", b"1", b"2", b"3", b"4", row=index_row("r"))
        before = store.read("r").records
        kept = Head(2, before[1].seal)

        assert store.rewrite(writer.rewrite(2, kept, b"3 again", row=index_row("r", status="queued", seq=3))) is None

        stored = assert_whole(store, "r", 3)
        assert [record.body for record in stored.records] == [b"1", b"2", b"3 again"]
        assert store.quarantined("r") == [*before[2:], stored.records[2]], "and a copy of what says so"
        assert [item.row for item in store.runs(RunQuery())] == [index_row("r", status="queued", seq=3)]
        assert store.append([writer.append(b"4")]) == [None]

    def test_rewrite_may_delete_what_was_there(self, store: Store) -> None:
        """Retention: what is pruned is gone, and only the tombstone stays."""
        writer = begun(store, "r", b"1", b"2", b"3")

        assert store.rewrite(writer.rewrite(0, None, b"tombstone", archive=False)) is None

        assert [record.body for record in assert_whole(store, "r", 1).records] == [b"tombstone"]
        assert store.quarantined("r") == []
        assert [record.body for _, record in store.scan(0, 10)] == [b"tombstone"]

    def test_rewrite_forgets_what_was_archived_only_when_told(self, store: Store) -> None:
        """Evidence goes with the run it belongs to, and with no other."""
        writers = [begun(store, name, b"1", b"2") for name in ("r", "other")]
        for writer in writers:
            store.rewrite(writer.rewrite(0, None, b"again"))

        store.rewrite(writers[0].rewrite(0, None, b"once more", archive=False))
        assert [record.body for record in store.quarantined("r")] == [b"1", b"2", b"again"]
        store.rewrite(writers[0].rewrite(0, None, b"tombstone", archive=False, forget=True))

        assert store.quarantined("r") == []
        assert len(store.quarantined("other")) == 3

    def test_rewrite_behind_another_head_is_a_conflict_and_changes_nothing(self, store: Store) -> None:
        """Somebody wrote to the run after it was judged: the judgement no longer counts."""
        writer = begun(store, "r", b"1", b"2", row=index_row("r"))
        late = Writer(store, "r", head=writer.head)
        store.append([writer.append(b"3")])

        for wish in (
            late.rewrite(0, None, b"x", row=index_row("r", status="no"), forget=True),
            Rewrite("r", None, 0, Writer(store, "r").records(b"x")),
        ):
            assert store.rewrite(wish) == Conflict("r")

        assert_whole(store, "r", 3)
        assert store.quarantined("r") == []
        assert [item.row for item in store.runs(RunQuery())] == [index_row("r")]

    def test_rewrite_with_a_hole_is_refused(self, store: Store) -> None:
        writer = begun(store, "r", b"1", b"2", b"3")

        with pytest.raises(UsageError):
            store.rewrite(Rewrite("r", writer.head, 1, Writer(store, "r").records(b"1")))

        assert_whole(store, "r", 3)

    def test_rewrite_leaves_other_runs_alone(self, store: Store) -> None:
        writers = [begun(store, name, b"1", b"2") for name in ("a", "r", "z")]

        store.rewrite(writers[1].rewrite(0, None, b"again"))

        for writer, count in zip(writers, (2, 1, 2), strict=True):
            assert_whole(store, writer.run, count)

    def test_rewrite_brings_its_parts(self, store: Store) -> None:
        value = large_value(1)
        writer = begun(store, "r", b"1")

        store.rewrite(writer.rewrite(0, None, b"again", cuts=[value]))

        assert expand(value.reference, store.parts)

    def test_rewrites_together_are_all_done_or_none(self, store: Store) -> None:
        """A store that is adopted is whole again, or refused as before."""
        first, second = (begun(store, run, b"1", b"2") for run in ("first", "second"))
        kept = {run: Head(1, store.read(run).records[0].seal) for run in ("first", "second")}
        stale = Rewrite("second", Head(2, GENESIS), 1, Writer(store, "second", head=kept["second"]).records(b"new"))
        items = [first.rewrite(1, kept["first"], b"new"), second.rewrite(1, kept["second"], b"new")]

        assert not store.rewrite_together([items[0], stale])
        assert [b"1", b"2"] == [record.body for record in store.read("first").records]
        assert store.rewrite_together(items)

        for run in ("first", "second"):
            assert [b"1", b"new"] == [record.body for record in assert_whole(store, run, 2).records]

    def test_rewrites_together_go_beyond_what_was_lost(self, store: Store) -> None:
        """A reader that saw a position acknowledged must never find another record there."""
        writer = begun(store, "r", b"1")
        before = store.changes()

        assert store.rewrite_together([writer.rewrite(1, writer.head, b"new")], beyond=before + 1000)

        assert store.changes() > before + 1000
        store.append([writer.append(b"next")])
        assert_whole(store, "r", 3)

    def test_store_tells_what_it_is_in(self, store: Store) -> None:
        """What is for files is offered only where there is one; a new store has no flaw."""
        assert isinstance(store.file, str)
        assert store.flaws() == []
        assert store.anchor_flaw() == ""

    def test_positions_of_the_store_never_go_back(self, store: Store) -> None:
        """Waiting processes look at the position, and lost history is found by it."""
        writer = begun(store, "r", b"1", b"2", b"3")
        before = store.changes()

        store.rewrite(writer.rewrite(0, None, b"again", archive=False))

        assert store.changes() > before
        assert [record.body for _, record in store.scan(before, 10)] == [b"again"]

    # --- looking at everything -----------------------------------------------------------------------

    def test_scan_gives_the_records_of_all_journals_in_the_order_written(self, store: Store) -> None:
        """Marking what is needed must not miss a record."""
        a, b, other = Writer(store, "a"), Writer(store, "b"), Writer(store, f"{RESERVED}other")
        for n, writer in enumerate((a, b, other, a, b, b)):
            store.append([writer.append(b"%d" % n)])

        found = store.scan(0, 100)

        assert [record.body for _, record in found] == [b"0", b"1", b"2", b"3", b"4", b"5"]
        assert [record.run for _, record in found] == ["a", "b", other.run, "a", "b", "b"]
        positions = [pos for pos, _ in found]
        assert positions == sorted(set(positions))
        assert positions[-1] == store.changes()
        assert store.scan(positions[2], 2) == found[3:5]
        assert store.scan(positions[-1], 10) == []

    def test_journals_that_are_no_runs_are_named_but_not_listed(self, store: Store) -> None:
        """Checkpoints share the store with runs; nobody can resume or cancel one."""
        hidden = Writer(store, f"{RESERVED}checkpoint{RESERVED}nightly")
        store.append([hidden.append(b"1"), Writer(store, "r").append(b"1", row=index_row("r"))])

        assert sorted(store.names()) == sorted([hidden.run, "r"])
        assert listed(store) == ["r"]
        assert_whole(store, hidden.run, 1)

    def test_names_with_a_prefix_are_those_that_begin_so(self, store: Store) -> None:
        """Threads of an adapter are found among thousands of runs, without reading their names."""
        begin = f"{RESERVED}thread{RESERVED}"
        threads = [begin, f"{begin}a", f"{begin}\U0010ffff", f"{begin}%", f"{begin}_"]
        others = ["thread", f"{RESERVED}thread", f"{RESERVED}thread{chr(ord(RESERVED) + 1)}", f"{RESERVED}store", "r"]
        store.append([Writer(store, name).append(b"1") for name in [*threads, *others]])

        assert sorted(store.names(begin)) == sorted(threads)
        assert store.names(f"{begin}b") == []
        assert sorted(store.names("")) == sorted(store.names()) == sorted([*threads, *others])

    def test_runs_without_a_row_are_told(self, store: Store) -> None:
        """Workers look for work in the index, and would never find them."""
        hidden = Writer(store, f"{RESERVED}checkpoint{RESERVED}nightly")
        store.append([Writer(store, "listed").append(b"1", row=index_row("listed"))])
        store.append([Writer(store, "lost").append(b"1"), hidden.append(b"1")])

        assert store.lost_rows() == ["lost"]

    def test_discard_deletes_what_is_named(self, store: Store) -> None:
        """Space comes back; what is needed stays whole."""
        keep, drop = large_value(1), large_value(2)
        begun(store, "r", b"1", cuts=[keep, drop])
        needed = reachable([keep.reference], store.parts)

        assert store.discard(sorted(set(store.part_ids()) - needed), store.changes())

        assert set(store.part_ids()) == needed
        assert expand(keep.reference, store.parts)

    def test_discard_is_refused_if_anything_was_appended_meanwhile(self, store: Store) -> None:
        """A new record may rely on a part that was found to be needed by nobody."""
        value = large_value(1)
        writer = begun(store, "r", b"1", cuts=[value])
        upto = store.changes()
        store.append([writer.append(b"2", cuts=[value])])

        assert not store.discard(store.part_ids(), upto)

        assert expand(value.reference, store.parts)

    def test_what_was_discarded_is_stored_again_when_it_is_needed_again(self, store: Store) -> None:
        """A store remembers which parts it has seen; it must not believe itself after they were deleted."""
        value = large_value(1)
        writer = begun(store, "r", b"1", cuts=[value])
        assert store.discard(store.part_ids(), store.changes())

        store.append([writer.append(b"2", cuts=[value])])

        assert expand(value.reference, store.parts)

    # --- workers -----------------------------------------------------------------------------------

    def test_open_store_is_known_to_hold_its_worker(self, store: Store) -> None:
        """Asked before every effect: a worker that others may take for dead must not begin one."""
        assert store.worker
        assert store.holds()

    def test_clock_of_a_store_is_a_clock_or_none(self, store: Store) -> None:
        now = store.now()

        assert now is None or _LONG_AGO < now < _FAR_OFF

    def test_run_is_handed_out_once_its_time_has_come(self, store: Store) -> None:
        """Queued, delayed, sleeping; and one that waits for a person, or has ended, and is nobody's."""
        put(store, due("now"), due("later", wake=_FAR_OFF), due("never", wake=None))

        assert taken(store) == ["now"]

    def test_those_that_have_been_ready_longest_come_first(self, store: Store) -> None:
        """No starvation: new runs do not overtake old ones, and a crashed one has waited before."""
        crashed = index_row("crashed", worker=_DEAD)
        put(store, due("c", wake=_LONG_AGO + 2), due("a"), due("d", wake=_LONG_AGO + 3), crashed)
        put(store, due("b", wake=_LONG_AGO + 1, workflow="other", queue="q"))
        both = ["refactor", "other"]

        assert taken(store, workflows=both, limit=3) == ["crashed", "a", "b"]
        assert taken(store, workflows=both, limit=3) == ["c", "d"]

    def test_nobody_else_is_given_a_run_that_is_reserved(self, store: Store) -> None:
        """Else all workers would read the same journals."""
        put(store, due("a"), due("b"), index_row("c", worker=_DEAD))

        assert taken(store, limit=1) == ["c"]
        assert taken(store, limit=1, worker=_DEAD[::-1]) == ["a"]
        assert taken(store) == ["b"]
        assert taken(store) == []

    def test_reservation_ends_when_the_row_is_written(self, store: Store) -> None:
        """The worker that took the run up has released it: it may go on at once."""
        a, b = (begun(store, run, b"1", row=due(run)) for run in ("a", "b"))
        assert taken(store) == ["a", "b"]

        store.append([a.append(b"2")])
        assert taken(store) == [], "an entry alone says nothing about who may take the run up"
        store.append([a.append(b"3", row=due("a", seq=3))])
        assert taken(store) == ["a"]
        store.rewrite(b.rewrite(0, None, b"again", row=due("b")))
        assert taken(store) == ["b"]

    def test_reservation_ends_by_itself(self, store: Store) -> None:
        """A worker that dies before it claims what it was given must not keep the run from the others."""
        put(store, due("a"), index_row("b", worker=_DEAD))

        assert taken(store, seconds=0.0) == ["b", "a"]
        assert taken(store, seconds=0.0) == ["b", "a"]

    def test_runs_of_the_dead_are_handed_out_and_those_of_the_living_are_not(self, store: Store) -> None:
        """Crash recovery; and two that drive the same run."""
        put(store, index_row("mine", worker=store.worker), index_row("orphan", worker=_DEAD))

        assert taken(store, worker="another") == ["orphan"]

    def test_claim_that_this_process_gave_up_is_handed_out_to_it(self, store: Store) -> None:
        """It lives, so nobody else will take the run up; and it does not drive it any more."""
        put(store, index_row("driven", worker=store.worker), index_row("given up", worker=store.worker))

        assert taken(store, driven=["driven"]) == ["given up"]

    def test_worker_is_given_only_what_it_can_drive(self, store: Store) -> None:
        """Workflows whose code it has, from queues that it serves."""
        put(store, due("a"), due("b", queue="mail"), due("c", queue="slow"), due("d", workflow="other"))
        put(store, index_row("e", worker=_DEAD, queue="mail"), index_row("f", worker=_DEAD, workflow="other"))

        assert taken(store, workflows=[]) == []
        assert taken(store, queues=["mail", "none"], seconds=0.0) == ["e", "b"]
        assert taken(store, queues=[""], seconds=0.0) == ["a"]
        assert taken(store, workflows=["other"], seconds=0.0) == ["f", "d"]
        assert sorted(taken(store, workflows=["other", "refactor", "third"])) == ["a", "b", "c", "d", "e", "f"]

    def test_worker_that_names_runs_is_given_no_others(self, store: Store) -> None:
        """So it asks for the admission of one run to its queue: what the queue allows counts as ever."""
        put(store, *(due(run, queue="q") for run in ("a", "b", "c")), index_row("orphan", worker=_DEAD))
        put(store, index_row("later", wake=_FAR_OFF), due("other", workflow="other"))
        limits = [Limit("q", concurrency=2)]

        assert taken(store, only=["b", "unknown", "other"], limits=limits) == ["b"]
        assert taken(store, only=["b"], limits=limits) == [], "it is reserved"
        assert taken(store, only=["a", "c"], limits=limits, limit=1) == ["a"]
        assert taken(store, only=["c"], limits=limits) == [], "its queue is full"
        assert taken(store, only=["orphan"]) == ["orphan"]
        answer = store.reserve(wish(store, only=["later"]))
        assert (answer.runs, answer.next_wake) == ([], _FAR_OFF)
        assert taken(store) == ["c"]

    def test_runs_that_nobody_takes_up_are_told_from_those_that_just_became_ready(self, store: Store) -> None:
        """A sweep finds what was announced to nobody, and leaves alone what others are about to take up."""
        put(store, due("old"), due("new", wake=_LONG_AGO + 500), index_row("orphan", worker=_DEAD))

        assert taken(store, ready_before=_LONG_AGO, seconds=0.0) == ["orphan"]
        assert taken(store, ready_before=_LONG_AGO + 500, seconds=0.0) == ["orphan", "old"]
        assert taken(store, ready_before=_LONG_AGO + 500, only=["new", "old"], seconds=0.0) == ["old"]
        assert taken(store, ready_before=_FAR_OFF) == ["orphan", "old", "new"]

    def test_queue_is_driven_by_no_more_than_it_allows(self, store: Store) -> None:
        """Over all workers: what is claimed counts, and what is about to be. Other queues go on."""
        a = begun(store, "a", b"1", row=index_row("a", queue="q", worker=store.worker))
        put(store, *(due(run, queue="q") for run in ("b", "c", "d")), due("z", wake=_LONG_AGO + 9))
        limits = [Limit("q", concurrency=2), Limit("none", concurrency=1)]

        assert taken(store, limits=limits, driven=["a"]) == ["b", "z"]
        assert taken(store, limits=limits, driven=["a"]) == []
        assert taken(store, limits=limits, worker="another") == []
        store.append([a.append(b"2", row=index_row("a", queue="q", status="done"))])
        assert taken(store, limits=limits) == ["c"]
        assert taken(store) == ["d"]

    def test_claims_that_nobody_drives_take_no_place_in_their_queue(self, store: Store) -> None:
        """Else a queue for one run at a time would be shut for ever by a crash."""
        crashed, left = index_row("a", queue="q", worker=_DEAD), index_row("b", queue="q", worker=store.worker)
        limits = [Limit("q", concurrency=1)]
        put(store, crashed, left)

        first = taken(store, limits=limits)
        assert first in (["a"], ["b"])
        assert taken(store, limits=limits) == []

    def test_queue_is_taken_from_no_quicker_than_it_allows(self, store: Store) -> None:
        """What was taken up counts for the whole time, whether or not it has ended. Other queues go on."""
        put(store, *(due(run, queue="q") for run in ("a", "b", "c", "d")), due("z", wake=_LONG_AGO + 9))
        hourly = [Limit("q", starts=2, seconds=3600.0)]

        assert taken(store, limits=hourly, seconds=0.0, limit=1) == ["a"]
        assert taken(store, limits=hourly) == ["a", "z"]
        assert taken(store, limits=hourly) == []
        assert taken(store, limits=[Limit("q", starts=2, seconds=1e-6)]) == ["b", "c"], "its time is over"

    def test_time_of_the_next_run_is_told(self, store: Store) -> None:
        """A worker may rest until then."""
        assert store.reserve(wish(store)).next_wake is None
        put(store, due("a", wake=_FAR_OFF + 2), due("b", wake=_FAR_OFF + 1), due("c", wake=None), due("d"))
        put(store, due("other's", workflow="other", wake=_FAR_OFF), due("elsewhere", queue="q", wake=_FAR_OFF))

        reserved = store.reserve(wish(store, queues=[""]))

        assert (reserved.runs, reserved.next_wake) == (["d"], _FAR_OFF + 1)
        assert store.reserve(wish(store)).next_wake == _FAR_OFF

    def test_listener_hears_of_a_run_that_became_ready(self, store: Store) -> None:
        """Also of one that came between its last look and its listening."""
        store.listen(0)
        assert taken(store) == []
        put(store, due("a"))
        _soon(lambda: store.listen(600))
        assert taken(store) == ["a"]

        listening = _in_background(lambda: store.listen(600))
        put(store, due("b"))
        listening.join(_SOON_SECONDS)

        assert not listening.is_alive()
        assert taken(store) == ["b"]

    def test_listening_ends_after_its_time_and_when_nudged(self, store: Store) -> None:
        """A worker that is told to stop does not sit there."""
        _soon(lambda: store.listen(0.01))

        def listen() -> None:
            for _ in range(3):
                store.listen(600)

        listening = _in_background(listen)
        until = time.monotonic() + _SOON_SECONDS
        while listening.is_alive() and time.monotonic() < until:
            store.nudge()
            listening.join(0.05)

        assert not listening.is_alive()

    def test_runs_are_counted_by_status_and_reason(self, store: Store) -> None:
        """For metrics: how many stand where, and why."""
        assert store.tally() == {}
        put(store, index_row("a"), index_row("b"), index_row("c", status="stopped", reason="InDoubt"))
        put(store, index_row("d", status="stopped", reason="Drift"), index_row("e", status="stopped", reason="Drift"))

        assert store.tally() == {("running", ""): 2, ("stopped", "InDoubt"): 1, ("stopped", "Drift"): 2}

    def test_threads_that_reserve_at_once_share_out_the_work(self, store: Store) -> None:
        """Each run to one of them, and all to somebody."""
        names = [f"run-{n:02}" for n in range(3 * _THREADS)]
        put(store, *(due(name) for name in names))
        given: list[str] = []

        _in_threads(lambda _: given.extend(taken(store, limit=3)))

        assert sorted(given) == names

    # --- many threads ------------------------------------------------------------------------------

    def test_threads_with_runs_of_their_own_do_not_disturb_each_other(self, store: Store) -> None:
        """Stores are shared by all threads of a process."""

        def work(n: int) -> None:
            writer = Writer(store, f"run-{n}")
            for k in range(_APPENDS_PER_THREAD):
                assert store.append([writer.append(b"%d" % k)]) == [None]
                assert store.read(writer.run).head == writer.head

        _in_threads(work)

        for n in range(_THREADS):
            assert_whole(store, f"run-{n}", _APPENDS_PER_THREAD)

    def test_threads_that_fight_for_one_run_make_one_gapless_chain(self, store: Store) -> None:
        """Compare-and-append: each append is granted exactly once, and the losers have written nothing."""
        granted: list[bytes] = []

        def work(n: int) -> None:
            for k in range(_APPENDS_PER_THREAD):
                body = b"%d-%d" % (n, k)
                while store.append([Writer(store, "r", head=store.read("r").head).append(body)]) != [None]:
                    pass
                granted.append(body)

        _in_threads(work)

        stored = assert_whole(store, "r", _THREADS * _APPENDS_PER_THREAD)
        assert sorted(record.body for record in stored.records) == sorted(granted)

    def test_reader_never_sees_the_head_of_another_moment(self, store: Store) -> None:
        """Records and head are one look: a head that is ahead of its records means damage to the engine."""
        writer = begun(store, "r", b"0")
        finished = threading.Event()

        def work(n: int) -> None:
            if n == 0:
                for k in range(150):
                    store.append([writer.append(b"%d" % k)])
                finished.set()
            elif n == 1:
                while not finished.is_set():
                    stored = store.read("r")
                    last = stored.records[-1]
                    assert stored.head == Head(last.seq, last.seal)

        _in_threads(work)

        assert_whole(store, "r", 151)

    # --- the end -----------------------------------------------------------------------------------

    def test_closed_store_is_unavailable(self, store: Store) -> None:
        """Not empty, not new: unavailable."""
        writer = begun(store, "r", b"1")
        worker = store.worker

        store.close()
        store.close()

        uses: tuple[Callable[[], object], ...] = (
            lambda: store.append([writer.append(b"2")]),
            lambda: store.read("r"),
            lambda: store.runs(RunQuery()),
            lambda: store.alive(worker),
            store.changes,
            store.durability,
            lambda: store.worker,
            lambda: store.rewrite(Rewrite("r", writer.head, 0, Writer(store, "r").records(b"x"))),
            lambda: store.quarantined("r"),
            store.names,
            lambda: store.scan(0, 1),
            lambda: store.said(1, 1),
            store.part_ids,
            lambda: store.parts([bytes(32)]),
            lambda: store.discard([], 99),
            lambda: store.reserve(Wanted(worker, ["refactor"], 1, _LONG_AGO)),
            lambda: store.listen(0),
            store.nudge,
            store.tally,
        )
        assert not store.holds()
        for use in uses:
            with pytest.raises(StoreUnavailable):
                use()


def _in_background(work: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def _soon(work: Callable[[], object]) -> None:
    """It comes to an end, long before the time it was given."""
    thread = _in_background(work)
    thread.join(_SOON_SECONDS)
    assert not thread.is_alive()


def _in_threads(work: Callable[[int], None]) -> None:
    """Run it in all threads at once; the first failure is raised here."""
    start = threading.Barrier(_THREADS)

    def together(n: int) -> None:
        start.wait()
        work(n)

    with ThreadPoolExecutor(_THREADS) as threads:
        list(threads.map(together, range(_THREADS)))
