"""Journals in a PostgreSQL database, for as many processes on as many hosts as wanted.

An append is one statement, and so one transaction and one round trip: a function on the server moves each run's head
if it is the expected one, and writes the records and the row. Nothing is held between two statements, neither locks nor
session state. So a paused client blocks no other, a pooler may be in between, and a statement that was delayed in the
network finds that the head it names has moved.

If the acknowledgement is lost, the same statement is sent again. A conflict may then be our own commit: then the record
at our last position has our seal.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import cached_property
from hashlib import sha256
from typing import Any, Final, TypeVar, cast

import msgspec

from surefoot.core.parts import Cut, Part
from surefoot.core.seal import GENESIS, Record, Sealer
from surefoot.core.urls import Url
from surefoot.errors import JournalCorrupt, StoreNotDurable, StoreUnavailable
from surefoot.store.anchor import Mark
from surefoot.store.anchors import Anchors, anchors_folder
from surefoot.store.backend import Announce
from surefoot.store.channel import Channel, Waits, explained
from surefoot.store.contract import (
    ANY,
    Conflict,
    Extend,
    Head,
    IndexRow,
    Listed,
    Reserved,
    Rewrite,
    RunQuery,
    Serving,
    Stored,
    Wanted,
    WorkerSeen,
)
from surefoot.store.derived import Derived
from surefoot.store.failure import Lost, Rejected
from surefoot.store.host import HostLock
from surefoot.store.lease import Lease, ServerClock
from surefoot.store.listener import Listener
from surefoot.store.pages import Placed, listed
from surefoot.store.place import Site
from surefoot.store.postgres import refusals, schema, wire
from surefoot.store.postgres.connection import Connection, Decoders, Params, Rows
from surefoot.store.postgres.refusals import explain
from surefoot.store.postgres.sightings import Moment, Sighting, Sightings
from surefoot.store.postgres.signs import Signs
from surefoot.store.postgres.wire import Param, boolean, integer, integers, raw, raws, storable, text, texts
from surefoot.store.rows import FIELDS, from_values, to_values
from surefoot.store.rules import between, check_positions
from surefoot.store.sound import Sound
from surefoot.store.wishes import PlaceTaken, Wish, grant, settled

_number, _number_or_none, _words, _bytes, _truth = (
    wire.to_int, wire.to_int_or_none, wire.to_text, wire.to_bytes, wire.to_bool,
)  # fmt: skip

_APPEND_ONE: Final = b"SELECT surefoot.append_one_1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)"
_APPEND: Final = b"SELECT * FROM surefoot.append_1(" + b", ".join(b"$%d" % n for n in range(1, 40)) + b")"
_REWRITE: Final = b"SELECT * FROM surefoot.rewrite_1(" + b", ".join(b"$%d" % n for n in range(1, 40)) + b")"
_REWRITTEN: Final = (_truth, _number_or_none, _truth)
_BEGIN: Final = (
    b"BEGIN",
    b"SET LOCAL idle_in_transaction_session_timeout = '30s'",  # else a paused client would block all others
    b"SET LOCAL lock_timeout = '10s'",
    b"LOCK TABLE surefoot.entries IN SHARE ROW EXCLUSIVE MODE",
)
_SKIP: Final = b"SELECT surefoot.skip_1($1)"
_WRITTEN: Final = b"SELECT pos FROM surefoot.entries WHERE run = $1 AND seq = $2 AND seal = $3"
_SWEPT: Final = b"SELECT swept FROM surefoot.meta"
_DISCARD: Final = b"SELECT surefoot.discard_1($1, $2, $3)"

_FIELDS: Final = b"seq, epoch, at, kind, schema, codec, key, body, seal"
_READ: Final = (
    b"(SELECT seq, NULL::bigint, NULL::bigint, NULL::int, NULL::int, NULL::int, NULL::int, NULL::bytea, seal "
    b"FROM surefoot.heads WHERE run = $1) UNION ALL (SELECT " + _FIELDS + b" FROM surefoot.entries "
    b"WHERE run = $1 AND seq > $2 ORDER BY seq LIMIT $3)"
)
_READ_ALL: Final = (  # by the index, run by run, even if the server's statistics are wrong
    b"SELECT r.n, j.* FROM unnest($1) WITH ORDINALITY r (run, n) CROSS JOIN LATERAL ("
    b"(SELECT seq, NULL::bigint, NULL::bigint, NULL::int, NULL::int, NULL::int, NULL::int, NULL::bytea, seal "
    b"FROM surefoot.heads WHERE run = r.run) UNION ALL (SELECT " + _FIELDS + b" FROM surefoot.entries "
    b"WHERE run = r.run ORDER BY seq)) j"
)
_HEAD_OR_RECORD: Final = (_number, *[_number_or_none] * 6, lambda value: value, _bytes)
_RECORD: Final = (*[_number] * 7, _bytes, _bytes)
_QUARANTINED: Final = b"SELECT " + _FIELDS + b" FROM surefoot.quarantine WHERE run = $1 ORDER BY n"
_NAMES: Final = b"SELECT run FROM surefoot.heads UNION SELECT run FROM surefoot.entries"
_NAMES_FROM: Final = (
    b"SELECT run FROM surefoot.heads WHERE run >= $1 AND run < $2 "
    b"UNION SELECT run FROM surefoot.entries WHERE run >= $1 AND run < $2"
)
_PARTS: Final = b"SELECT id, kind, codec, size, body FROM surefoot.parts WHERE id = ANY ($1)"
_PART: Final = (_bytes, _number, _number, _number, _bytes)
_PART_IDS: Final = b"SELECT id FROM surefoot.parts"
_SCAN_PARTS: Final = b"SELECT n, id, kind, codec, size, body FROM surefoot.parts WHERE n > $1 ORDER BY n LIMIT $2"

_NEWEST: Final = b"SELECT max(pos), pg_current_snapshot()::text FROM surefoot.entries"
_NEWS: Final = b"SELECT * FROM surefoot.news_1($1, $2)"
_SCAN: Final = b"SELECT pos, run, " + _FIELDS + b" FROM surefoot.entries WHERE pos > $1 ORDER BY pos LIMIT $2"
_SAID: Final = (
    b"SELECT pos, run, " + _FIELDS + b" FROM surefoot.entries "
    b"WHERE kind IN (7, 11, 12, 13, 14, 15, 16, 18, 27, 33, 35, 46, 51, 53, 61) "  # as in the index `entries_said`
    b"AND pos < $1 ORDER BY pos DESC LIMIT $2"
)
_SCAN_BETWEEN: Final = (
    b"SELECT pos, run, " + _FIELDS + b" FROM surefoot.entries "
    b"WHERE (xid >= $1 OR xid = ANY ($2)) AND xid < $4 AND xid <> ALL ($5) AND pos > $6 ORDER BY pos LIMIT $3"
)
_SCANNED: Final = (_number, _words, *_RECORD)
_KNOWN: Final = b"""
    SELECT (SELECT seal FROM surefoot.entries WHERE pos = $1) IS NOT DISTINCT FROM $2
        OR EXISTS (SELECT FROM surefoot.quarantine WHERE pos = $1 AND seal = $2)
        OR EXISTS (SELECT FROM surefoot.erased WHERE positions @> $1),
        coalesce((SELECT max(pos) FROM surefoot.entries), 0)"""
_INSTEAD: Final = b"""
    SELECT e.run, e.seq, e.epoch, e.at, e.kind, e.schema, e.codec, e.key, e.body, e.seal, b.seal
    FROM surefoot.entries e LEFT JOIN surefoot.entries b ON b.run = e.run AND b.seq = e.seq - 1 WHERE e.pos = $1"""
_SNAPSHOT: Final = b"SELECT pg_current_snapshot()::text"

_ROW: Final = ", ".join(f"r.{name}" for name in FIELDS[1:]).encode()
_LIST: Final = (
    b"SELECT h.n, h.run, r.run IS NOT NULL, " + _ROW + b" FROM surefoot.heads h LEFT JOIN surefoot.runs r "
    b"ON r.run = h.run WHERE h.n < $1 AND left(h.run, 1) <> E'\\x1f' ORDER BY h.n DESC LIMIT $2"
)
_FIND: Final = b"SELECT r.n, r.run, true, " + _ROW + b" FROM surefoot.runs r WHERE r.n < $1"
_FILTERS: Final = {"need": b"r.need = ", "queue": b"r.queue = ", "workflow": b"r.workflow = ", "status": b"r.status = "}
_PLACE: Final = b"SELECT n FROM surefoot.heads WHERE run = $1"
_maybe: Final = lambda value: None if value is None else value.decode()  # noqa: E731 - one of a table of decoders
_LISTED: Final = (
    _number, _words, _truth, *[_maybe] * 4, *[_number_or_none] * 3, *[_maybe] * 5, *[_number_or_none] * 2, _maybe,
)  # fmt: skip
_LOST_ROWS: Final = (
    b"SELECT h.n, h.run FROM surefoot.heads h WHERE left(h.run, 1) <> E'\\x1f' "
    b"AND NOT EXISTS (SELECT FROM surefoot.runs r WHERE r.run = h.run) ORDER BY h.n DESC"
)
_TALLY: Final = b"SELECT status, reason, count(*) FROM surefoot.runs GROUP BY status, reason"

_ALIVE: Final = b"SELECT $1 IN (SELECT surefoot.living_1($2))"
_ALIVE_UNTIL: Final = (  # after a restart of the server, no worker counts as dead before a lease has passed
    b"SELECT (extract(epoch FROM CASE WHEN expires > clock_timestamp() THEN expires "
    b"ELSE pg_postmaster_start_time() + $2 END) * 1000000)::bigint FROM surefoot.workers WHERE worker = $1"
)
_WORKERS: Final = (
    b"SELECT w.worker, w.host, w.pid, (extract(epoch FROM w.since) * 1000000)::bigint AS since, "
    b"(extract(epoch FROM w.expires - $1) * 1000000)::bigint, w.about "
    b"FROM surefoot.workers w WHERE w.worker IN (SELECT surefoot.living_1($1)) ORDER BY since, w.worker"
)
_BURY: Final = b"DELETE FROM surefoot.workers WHERE worker = ANY ($1)"
_LAST_HEARD: Final = (
    b"SELECT (extract(epoch FROM expires - $2) * 1000000)::bigint FROM surefoot.workers WHERE worker = $1"
)
_RESERVE: Final = b"SELECT * FROM surefoot.reserve_1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)"
_NOTE_TIMELINE: Final = b"UPDATE surefoot.meta SET timeline = $1 WHERE timeline <> $1"
_FOREIGN_XIDS: Final = b"UPDATE surefoot.entries SET xid = '1' WHERE xid >= pg_snapshot_xmax(pg_current_snapshot())"

_REGRESSED: Final = "SF001"
_UNIQUE: Final = "23505"
_WORKER: Final = re.compile(r"[0-9a-f]{32}\Z")
_ROWS_PER_LOOK: Final = 512
_TRIES: Final = 5
_QUICK_SECONDS: Final = 2

_LISTEN: Final = b"LISTEN surefoot_ready"

T = TypeVar("T")
log = logging.getLogger("surefoot")


class PostgresStore(Derived):
    """See the module's first lines, and `contract.Store` for what each verb promises."""

    def __init__(self, url: Url, waits: Waits) -> None:
        """Use `open`."""
        self.url = self.where = url.shown
        self.id = b""
        self._given = url
        self._adopting = False
        self._over = threading.Event()
        self._clock = ServerClock(self.url)
        self._waits = waits
        self._lease_length = wire.interval(waits.lease)
        signs = Signs(self._lease_length)
        self.lease = Lease(self._dial_quickly, signs, self.url, self._clock, waits.lease, lambda: self._host, refusals)
        self._writer = Channel(self._checked, self.url, waits, self._over, refusals)
        self._reader = Channel(self._checked, self.url, waits, self._over, refusals)
        self._listener = Listener(self._subscribed)
        self._writing = threading.RLock()
        self._folder = anchors_folder()
        self._anchors: Anchors
        self._buried: set[str] = set()
        """Dead workers of this host that are already deleted on the server."""
        self._sound = Sound()
        self._sightings = Sightings()
        self._looking = threading.Lock()
        self._newest = 0
        self._looked: Moment | None = None

    @classmethod
    def open(
        cls,
        url: Url,
        *,
        create: bool,
        announce: Announce | None = None,
        waits: Waits = Waits(),  # noqa: B008 - frozen
        adopting: bool = False,
    ) -> PostgresStore:
        """Open the store in this database, checked against the anchor; with `create`, make it if there is none.

        With `adopting`, also a store that is older than its anchor: only for `rewrite_together`, which makes it
        whole again.
        """
        store = cls(url, waits)
        store._adopting = adopting
        store._enter(create=create, announce=announce)
        return store

    @property
    def expected(self) -> int | None:
        """The last record that the store is known to have reached."""
        return self._floor() or None

    # --- appending ---------------------------------------------------------------------------------

    def append(self, batch: Sequence[Extend]) -> list[Conflict | None]:
        check_positions(batch)
        self._refuse_unless_usable()
        if not batch:
            return []
        with self._writing:
            if len(batch) == 1 and len(batch[0].records) == 1 and batch[0].row is None and not batch[0].cuts:
                return [self._append_one(batch[0])]
            return grant(batch, self._send)

    def _append_one(self, item: Extend) -> Conflict | None:
        head, (record,) = item.head, item.records
        params = (
            text(item.run), integer(head.seq if head else None), raw(head.seal if head else None),
            integer(record.seq), integer(record.epoch), integer(record.at), integer(record.kind),
            integer(record.schema), integer(record.codec), integer(record.key), raw(record.body), raw(record.seal),
            integer(self._floor()),
        )  # fmt: skip
        try:
            rows, doubtful = self._write(_APPEND_ONE, params, (_number,))
        except PlaceTaken:
            return Conflict(item.run)
        pos = rows[0][0] or (self._position(record) if doubtful else 0)
        if not pos:
            return Conflict(item.run)
        self._note(pos, record.seal)
        return None

    def _send(self, wishes: list[Wish]) -> list[bool]:
        records = [(at, record) for at, wish in enumerate(wishes, 1) for record in wish.records]
        params = [
            texts([wish.run for wish in wishes]),
            integers([wish.head.seq if wish.head else None for wish in wishes]),
            raws([wish.head.seal if wish.head else None for wish in wishes]),
            integers([wish.end.seq if wish.end else None for wish in wishes]),
            raws([wish.end.seal if wish.end else None for wish in wishes]),
            integers([at for at, _ in records]),
            *_by_column([record for _, record in records], _RECORD_FIELDS),
            *_row_params([(at, wish.row) for at, wish in enumerate(wishes, 1) if wish.row is not None]),
        ]
        cuts = [cut for wish in wishes for cut in wish.cuts]
        rows, doubtful = self._write_with_parts(_APPEND, params, (wire.to_list, _number_or_none, _truth), cuts)
        refused = {_number(place) for place in rows[0][0]}
        granted = [at not in refused for at in range(1, len(wishes) + 1)]
        if doubtful:
            granted = settled(wishes, granted, self._position)
        written = [
            wish.records[-1] for wish, is_granted in zip(wishes, granted, strict=True) if is_granted and wish.records
        ]
        if written:
            self._note(rows[0][1] or self._position(written[-1]), written[-1].seal)
        return granted

    def _position(self, record: Record) -> int:
        """Where exactly this record is; 0: it is not there."""
        params = (text(record.run), integer(record.seq), raw(record.seal))
        return self._asked_for_one(_WRITTEN, params, writing=True) or 0

    def rewrite(self, item: Rewrite) -> Conflict | None:
        check_positions([item])
        self._refuse_unless_usable()
        with self._writing:
            rows, doubtful = self._write_with_parts(_REWRITE, _rewrite_params(item), _REWRITTEN, item.cuts)
            conflict, pos, _ = rows[0]
            last = item.records[-1]
            if conflict:
                pos = self._position(last) if doubtful else 0
            if not pos:
                return Conflict(item.run)
            self._note(pos, last.seal)
        return None

    def rewrite_together(self, items: Sequence[Rewrite], *, beyond: int = 0) -> bool:
        """As in the contract; and positions up to far after `beyond` count as erased from then on."""
        check_positions(items)
        self._refuse_unless_usable()
        with self._writing, explained(self.url, refusals):
            with closing(self._dial()) as connection:  # the server rolls back uncommitted work
                newest = self._rewrite_all(connection, items, beyond)
            if newest:
                self._note(newest, items[-1].records[-1].seal)
        return newest > 0

    def _rewrite_all(self, connection: Connection, items: Sequence[Rewrite], beyond: int) -> int:
        """The position of the last record; 0: nothing was done."""
        silence = self._waits.slow
        for statement in _BEGIN:
            connection.ask(statement, silence=silence)
        if beyond:
            connection.ask(_SKIP, (integer(max(beyond, self._floor())),), (_number,), silence=silence)
        pos = 0
        for item in items:
            # No parts are deleted while the table is locked. All of them are sent; the server writes the missing ones.
            parts = {part.id: part for part in Sound().lacking(item.cuts, _none_of)}
            params = [
                *_rewrite_params(item),
                *_by_column(parts.values(), _PART_FIELDS),
                integer(None),
                integer(self._floor()),
            ]
            ((conflict, pos, _),) = connection.ask(_REWRITE, params, _REWRITTEN, silence=silence)
            if conflict:
                return 0
        connection.ask(b"COMMIT", silence=silence)
        return int(pos)

    def _write_with_parts(
        self, statement: bytes, params: list[Param], decoders: Decoders, cuts: Sequence[Cut]
    ) -> tuple[Rows, bool]:
        """Write with the parts that this handle has not read whole. The last column means: try again."""
        doubtful = False
        for _ in range(_TRIES):
            if cuts and self._sound.swept is None:
                self._sound.under(self._ask(_SWEPT, (), (_number,), writing=True)[0][0])
            missing = {part.id: part for part in self._sound.lacking(cuts, _none_of)}
            parts = _by_column([missing[name] for name in sorted(missing)], _PART_FIELDS)
            swept = integer(cast("int", self._sound.swept) if cuts else None)
            rows, again = self._write(statement, [*params, *parts, swept, integer(self._floor())], decoders)
            doubtful = doubtful or again
            if not (cuts and rows[0][-1]):
                self._sound.note(cuts)
                return rows, doubtful
            self._sound.under(None)  # another process has deleted parts: known parts may be gone
        raise StoreUnavailable(
            f"{self.url}: parts of values are being deleted all the time. Wait for it, and try again."
        )

    def _write(self, statement: bytes, params: Params, decoders: Decoders) -> tuple[Rows, bool]:
        try:
            return self._writer.ask_twice(lambda connection: connection.ask(statement, params, decoders))
        except Rejected as error:
            if error.code == _UNIQUE and error.constraint == "entries_pkey":
                raise PlaceTaken from None
            if error.code == _REGRESSED or (error.code == _UNIQUE and error.constraint == "entries_pos"):
                raise self._anchors.regressed(str(error)) from error
            raise explain(error, self.url) from error

    def _floor(self) -> int:
        mark = self._anchors.newest
        return mark.pos if mark is not None else 0

    def _note(self, pos: int, seal: bytes) -> None:
        self._anchors.note(pos, seal, adopted=self._adopting)

    # --- reading -----------------------------------------------------------------------------------

    def read(self, run: str, after: int = 0, limit: int | None = None) -> Stored:
        return _stored(run, self._ask(_READ, (text(run), integer(after), integer(limit)), _HEAD_OR_RECORD))

    def read_all(self, runs: Sequence[str]) -> list[Stored]:
        found: list[Rows] = [[] for _ in runs]
        for n, *row in self._ask(_READ_ALL, (texts(runs),), (_number, *_HEAD_OR_RECORD)):
            found[n - 1].append(tuple(row))
        return [_stored(run, rows) for run, rows in zip(runs, found, strict=True)]

    def parts(self, ids: Sequence[bytes]) -> dict[bytes, Part]:
        rows = self._ask(_PARTS, (raws(ids),), _PART)
        return {row[0]: Part(*row) for row in rows}

    def quarantined(self, run: str) -> list[Record]:
        return [Record(run, *row) for row in self._ask(_QUARANTINED, (text(run),), _RECORD)]

    def names(self, prefix: str = "") -> list[str]:
        if not prefix:
            return [run for (run,) in self._ask(_NAMES, (), (_words,), slow=True)]
        first, behind = between(prefix)
        return [run for (run,) in self._ask(_NAMES_FROM, (text(first), text(behind)), (_words,), slow=True)]

    def part_ids(self) -> list[bytes]:
        return [name for (name,) in self._ask(_PART_IDS, (), (_bytes,), slow=True)]

    def scan_parts(self, after: int, limit: int) -> list[tuple[int, Part]]:
        rows = self._ask(_SCAN_PARTS, (integer(after), integer(limit)), (_number, *_PART), slow=True)
        return [(row[0], Part(*row[1:])) for row in rows]

    def changes(self) -> int:
        """The highest position among the records that became visible since the last call: no number comes twice."""
        with self._looking:
            if self._looked is None:
                ((newest, moment),) = self._ask(_NEWEST, (), (_number_or_none, _words))
            else:
                ((newest, moment),) = self._ask(_NEWS, self._looked.params(), (_number_or_none, _words))
            self._looked = Moment.read(moment)
            if newest is not None:
                self._newest = newest
            self._sightings.note(self._newest, Sighting(self._looked))
            return self._newest

    def scan(self, after: int, limit: int) -> list[tuple[int, Record]]:
        """After a position that `changes` or `scan` gave this thread: records that were not visible at that time."""
        sighting = self._sightings.of(after)
        if sighting is None:
            rows = self._ask(_SCAN, (integer(after), integer(limit)), _SCANNED, slow=True)
        else:
            since, until, behind = sighting.since, sighting.until, after
            if until is None:
                until, behind = Moment.read(self._ask(_SNAPSHOT, (), (_words,))[0][0]), -1
            params = (*since.params(), integer(limit), *until.params(), integer(behind))
            rows = self._ask(_SCAN_BETWEEN, params, _SCANNED, slow=True)
            seen = Sighting(until) if len(rows) < limit else Sighting(since, until)
            self._sightings.note(rows[-1][0] if rows else after, seen)
        return [(row[0], Record(*row[1:])) for row in rows]

    def said(self, before: int, limit: int) -> list[tuple[int, Record]]:
        rows = self._ask(_SAID, (integer(before), integer(limit)), _SCANNED)
        return [(row[0], Record(*row[1:])) for row in rows]

    def discard(self, parts: Sequence[bytes], upto: int) -> bool:
        self._refuse_unless_usable()
        sighting = self._sightings.of(upto)
        if sighting is None or sighting.until is not None:
            return False  # not a position up to which this thread has read everything
        params = (raws(parts), *sighting.since.params())
        with self._writing:
            rows = self._ask(_DISCARD, params, (_truth,), slow=True, writing=True)
        return bool(rows[0][0])

    def runs(self, query: RunQuery) -> list[Listed]:
        return listed(query, self._place, self._page, self._found, self._rowless)

    def _place(self, run: str) -> int:
        return self._asked_for_one(_PLACE, (text(run),)) or 0

    def _page(self, before: int, many: int) -> list[Placed]:
        return _placed(self._ask(_LIST, (integer(before), integer(many)), _LISTED))

    def _found(self, query: RunQuery, before: int, many: int) -> list[Placed]:
        statement, params = _FIND, [integer(before)]
        for name, condition in _FILTERS.items():
            value = getattr(query, name)
            if (name, value) == ("need", ANY):
                statement += b" AND r.need > ''"
            elif value is not None:
                params.append(text(value))
                statement += b" AND %s$%d" % (condition, len(params))
        if query.claimed:
            statement += b" AND r.worker > ''"
        if query.labels:
            params.append(text(_labelled(query.labels)))
            statement += b" AND r.labelled <> '{}' AND r.labelled @> string_to_array($%d, ' ')" % len(params)
        params.append(integer(many))
        statement += b" ORDER BY r.n DESC LIMIT $%d" % len(params)
        return _placed(self._ask(statement, params, _LISTED))

    def _rowless(self) -> list[Placed]:
        rows = self._ask(_LOST_ROWS, (), (_number, _words), slow=True)
        return [Placed(n, Listed(run, None)) for n, run in rows]

    def lost_rows(self) -> list[str]:
        return [one.listed.run for one in self._rowless()]

    def tally(self) -> dict[tuple[str, str], int]:
        rows = self._ask(_TALLY, (), (_words, _words, _number))
        return {(status, reason): count for status, reason, count in rows}

    def vitals(self) -> dict[str, float]:
        return {
            "lease_losses": self.lease.losses,
            "lease_renewals": self.lease.renewals,
            "clock_difference_seconds": self._clock.difference,
        }

    def _ask(
        self, statement: bytes, params: Params, decoders: Decoders, *, slow: bool = False, writing: bool = False
    ) -> Rows:
        self._refuse_unless_usable()
        silence = self._waits.slow if slow else 0
        channel = self._writer if writing else self._reader
        try:
            return channel.ask(lambda connection: connection.ask(statement, params, decoders, silence=silence))
        except Rejected as error:
            raise explain(error, self.url) from error
        except UnicodeDecodeError as error:
            raise JournalCorrupt(f"{self.url}: a stored text is not what was written: {error}") from error

    def _asked_for_one(self, statement: bytes, params: Params, *, writing: bool = False) -> int | None:
        """The one number that is the answer; None: there is none."""
        rows = self._ask(statement, params, (_number,), writing=writing)
        return int(rows[0][0]) if rows else None

    # --- workers -----------------------------------------------------------------------------------

    @property
    def worker(self) -> str:
        self._refuse_unless_usable()
        return self.lease.join()

    def alive(self, worker: str) -> bool:
        self._refuse_unless_usable()
        if not _WORKER.match(worker) or self._host.is_gone(worker):
            return False  # no worker of such a store ever had that name; or it is dead, even with a running lease
        return bool(self._ask(_ALIVE, (text(worker), self._lease_length), (_truth,))[0][0])

    def alive_until(self, worker: str) -> int | None:
        return self._asked_for_one(_ALIVE_UNTIL, (text(worker), self._lease_length))

    def serve(self, serving: Serving | None) -> None:
        self._refuse_unless_usable()
        with storable():
            self.lease.say("" if serving is None else msgspec.json.encode(serving).decode())

    def workers(self) -> list[WorkerSeen]:
        rows = self._ask(_WORKERS, (self._lease_length,), (_words, _words, _number, _number, _number, _maybe))
        return [
            WorkerSeen(name, host, pid, since, heard, _serving(about))
            for name, host, pid, since, heard, about in rows
            if not self._host.is_gone(name)
        ]

    def proven_dead(self, worker: str) -> bool:
        return self._host.is_gone(worker)

    @cached_property
    def _host(self) -> HostLock:
        return HostLock(self.id)

    def _bury(self) -> None:
        """Delete the dead workers of this host on the server: their runs can be taken up at once."""
        if gone := [name for name in self._host.gone() if name not in self._buried]:
            self._ask(_BURY, (texts(gone),), ())
            self._buried.update(gone)

    def last_heard(self, worker: str) -> int | None:
        return self._asked_for_one(_LAST_HEARD, (text(worker), self._lease_length))

    def holds(self) -> bool:
        return self.usable and self.lease.holds()

    def now(self) -> int | None:
        return self._clock.now()

    def reserve(self, wanted: Wanted) -> Reserved:
        self._bury()
        limits = wanted.limits
        params = (
            text(wanted.worker), texts(wanted.workflows), texts(wanted.queues), texts(wanted.driven),
            integer(wanted.limit), wire.number(wanted.seconds), self._lease_length,
            texts([limit.queue for limit in limits]), integers([limit.concurrency for limit in limits]),
            integers([limit.starts for limit in limits]),
            integers([round(limit.seconds * 1_000_000) for limit in limits]),
            texts(wanted.only), integer(wanted.ready_before),
        )  # fmt: skip
        ((runs, next_wake),) = self._ask(_RESERVE, params, (wire.to_list, _number_or_none))
        return Reserved([_words(run) for run in runs], next_wake)

    def listen(self, seconds: float) -> None:
        self._refuse_unless_usable()
        self._listener.wait(seconds)

    def nudge(self) -> None:
        self._refuse_unless_usable()
        self._listener.nudge()

    # --- settings, opening, closing ----------------------------------------------------------------

    def durability(self) -> dict[str, str]:
        self._refuse_unless_usable()
        with explained(self.url, refusals), closing(self._dial()) as connection:
            server = schema.greet(connection, self.url)
        commit = server.synchronous_commit
        return {
            "backend": "postgresql",
            "url": self.url,
            "version": server.version,
            "fsync": server.fsync,
            "full_page_writes": server.full_page_writes,
            "synchronous_commit": "on for our commits (off by default here)" if commit == "off" else commit,
            "synchronous_standby_names": server.standbys or "none: what a failover loses is noticed by the anchor",
            "wal_level": server.wal_level,
            "wal_sync_method": server.wal_sync_method,
            "lease_seconds": f"{self._waits.lease:g}",
            "anchor": self._anchors.path,
        }

    def close(self) -> None:
        if not self._refusal:
            self._refusal = f"{self.url}: this store has been closed; open it again."
            self._over.set()
            self._listener.close()
            with self._writing:
                self.lease.leave()
                self._writer.close()
                self._reader.close()
                self._anchors.close()
            self._note_closed()

    def _enter(self, *, create: bool, announce: Announce | None) -> None:
        with explained(self.url, refusals), _closed_on_failure(self._dial()) as connection:
            if create:
                server, _ = self._greet(connection)
                is_new = schema.bring_up_to_date(connection, server, self.url)
                if is_new and announce:
                    announce(f"created store {self.url} (schema surefoot)")
            self._check(connection)
            if create:
                self._settle_in(connection)
        self._reader.connection = connection
        self._note_open()

    def _greet(self, connection: Connection) -> tuple[schema.Server, Site]:
        """The server. `JournalRegressed`, if it had a store and has none now."""
        place = Site(self._folder, connection.place, self.url)
        # Read the note first, then ask the server: otherwise a store that another process makes in between would count
        # as lost.
        was_here = self._adopting or self.id or place.noted() is not None
        server = schema.greet(connection, self.url)
        if was_here and not server.has_store:
            raise place.vanished()
        return server, place

    def _dial(self) -> Connection:
        return Connection(self._given, seconds=self._waits.connect, silence=self._waits.silence)

    def _dial_quickly(self) -> Connection:
        """A connection for the lease, which runs out meanwhile, and for listeners, which must not wait long."""
        return Connection(self._given, seconds=min(self._waits.connect, _QUICK_SECONDS), silence=_QUICK_SECONDS)

    def _subscribed(self) -> Connection:
        with _closed_on_failure(self._dial_quickly()) as connection:
            connection.ask(_LISTEN)
        return connection

    def _checked(self) -> Connection:
        """A new connection, checked: it is to the same store, which has lost nothing."""
        with _closed_on_failure(self._dial()) as connection:
            try:
                self._check(connection)
            except StoreNotDurable as error:
                if error.facts.get("replica"):  # perhaps about to be promoted: try again
                    raise Lost(error.summary) from error
                raise
        return connection

    def _check(self, connection: Connection) -> None:
        server, place = self._greet(connection)
        self._clock.note(server.now)
        if not server.has_store:
            raise refusals.no_store(self.url)
        found = schema.meta(connection, self.url)
        before = self.id or (None if self._adopting else place.noted())
        if before and found.store != before:
            raise place.replaced()
        if not self.id:
            self._anchors = Anchors(found.store, self.url, place)
            self.id = found.store
        if not self._adopting:
            self._anchors.check(lambda mark: self._known(connection, mark))

    def _known(self, connection: Connection, mark: Mark) -> tuple[bool, int]:
        """Whether the server has that record, or a valid reason not to: it was set aside, pruned, or is damaged."""
        ((known, found),) = connection.ask(_KNOWN, (integer(mark.pos), raw(mark.seal)), (_truth, _number))
        return known or self._is_damage(connection, mark), found

    def _is_damage(self, connection: Connection, mark: Mark) -> bool:
        """Another history has a record whose seal holds. A damaged record's does not: reading its run reports that."""
        decoders = (_words, *_RECORD, lambda value: value or GENESIS)
        rows = connection.ask(_INSTEAD, (integer(mark.pos),), decoders)
        if not rows:
            return False
        *fields, before = rows[0]
        record = Record(*fields)
        return not Sealer(self.id, record.run).holds(record, before)

    def _settle_in(self, connection: Connection) -> None:
        found = schema.timeline(connection)
        noted = schema.meta(connection, self.url).timeline
        if found and found != noted:
            if noted:
                log.warning(
                    "%s: another server has taken over since (timeline %s, before %s). With asynchronous replication the "
                    "newest records may be missing; what this place saw acknowledged is there.",
                    self.url, found, noted,
                )  # fmt: skip
            connection.ask(_NOTE_TIMELINE, (text(found),))
        # In a restored dump, transactions have the numbers of another server. They all ended long ago.
        connection.ask(_FOREIGN_XIDS, silence=self._waits.slow)


@contextmanager
def _closed_on_failure(connection: Connection) -> Iterator[Connection]:
    try:
        yield connection
    except BaseException:
        connection.close()
        raise


# --- rows --------------------------------------------------------------------------------------------


_Make = Callable[[Sequence[Any]], Param]
_RECORD_FIELDS: Final[dict[str, _Make]] = {
    "seq": integers, "epoch": integers, "at": integers, "kind": integers, "schema": integers, "codec": integers,
    "key": integers, "body": raws, "seal": raws,
}  # fmt: skip
_ROW_FIELDS: Final[dict[str, _Make]] = {
    "workflow": texts, "status": texts, "queue": texts, "labels": texts, "created": integers, "seq": integers,
    "wake": integers, "worker": texts, "reason": texts, "need": texts, "address": texts, "brief": texts,
    "until": integers, "since": integers, "marks": texts,
}  # fmt: skip
_PART_FIELDS: Final[dict[str, _Make]] = {
    "id": raws, "kind": integers, "codec": integers, "size": integers, "body": raws,
}  # fmt: skip


def _by_column(items: Iterable[object], fields: dict[str, _Make]) -> list[Param]:
    items = list(items)
    return [make([getattr(item, name) for item in items]) for name, make in fields.items()]


def _row_params(rows: Sequence[tuple[int, IndexRow]]) -> list[Param]:
    """Each row with the number of its item."""
    with storable():
        values = [to_values(row) for _, row in rows]
    columns = [make([value[name] for value in values]) for name, make in _ROW_FIELDS.items()]
    return [integers([at for at, _ in rows]), *columns, texts([_labelled(row.labels) for _, row in rows])]


@storable()
def _labelled(labels: dict[str, str]) -> str:
    """A digest of each label, for the index: a digest can always be stored."""
    return " ".join(sha256(msgspec.json.encode([name, value])).hexdigest()[:16] for name, value in labels.items())


def _rewrite_params(item: Rewrite) -> list[Param]:
    return [
        text(item.run),
        integer(item.found.seq if item.found else None),
        raw(item.found.seal if item.found else None),
        integer(item.keep),
        boolean(item.archive),
        boolean(item.forget),
        *_by_column(item.records, _RECORD_FIELDS),
        *_row_params([(1, item.row)] if item.row is not None else []),
    ]


def _stored(run: str, rows: Rows) -> Stored:
    head = None
    if rows and rows[0][1] is None:
        head = Head(rows[0][0], rows[0][8])
        del rows[0]
    return Stored([Record(run, *row) for row in rows], head)


def _placed(rows: Rows) -> list[Placed]:
    return [Placed(n, Listed(run, from_values((run, *row)) if there else None)) for n, run, there, *row in rows]


def _none_of(ids: Iterable[bytes]) -> dict[bytes, Part]:
    """The server knows its own parts. Here every part that this handle has not sent counts as missing."""
    return {}


def _serving(about: str | None) -> Serving | None:
    """A worker's description of itself; None: there is none, or it cannot be read."""
    try:
        return msgspec.json.decode(about, type=Serving) if about else None
    except msgspec.DecodeError:
        return None
