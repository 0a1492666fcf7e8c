"""Journals in Redis or Valkey, for many hosts that have no PostgreSQL.

An append is one script, and so one transaction: it moves each run's head if it is the expected one, and writes the
records and the row. Redis has no notion of a store that lost something: it may be flushed, evict keys, start from an
older log, or fail over to a server that knows less. So every script, and every read, first proves the past: the store is
ours, it has as many heads as it should, a journal is as long as its head says, and the newest record that was acknowledged
here stands on the trail of all positions. Else it is `JournalRegressed`, never "nothing there".

What was written is acknowledged once the server says that it is on disk. If the acknowledgement is lost, the same script
is sent again. A conflict may then be our own commit: then the record at our last position has our seal.
"""

from __future__ import annotations

import logging
import re
import secrets
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import cached_property, partial
from typing import Any, Final, TypeVar

import msgspec
from msgspec.structs import replace

from surefoot.core.cure import Advice
from surefoot.core.parts import Cut, Part
from surefoot.core.seal import Record
from surefoot.errors import JournalCorrupt, JournalRegressed, StoreNotDurable, StoreUnavailable, UsageError
from surefoot.store.anchors import Anchors, anchors_folder
from surefoot.store.backend import Announce
from surefoot.store.channel import Channel, Waits, explained
from surefoot.store.contract import (
    Conflict,
    Extend,
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
from surefoot.store.failure import Lost, Rejected, newer_format
from surefoot.store.host import HostLock
from surefoot.store.lease import Lease, ServerClock
from surefoot.store.listener import Listener
from surefoot.store.pages import NEWEST, Placed, collect, listed
from surefoot.store.place import Site
from surefoot.store.redis import checks, refusals, scripts
from surefoot.store.redis.address import FSYNC, NONE, Address
from surefoot.store.redis.connection import Command, Connection, Reply, Route
from surefoot.store.redis.forms import (
    SEAL_BYTES,
    head_bytes,
    lists_for,
    name_bytes,
    part_bytes,
    record_bytes,
    row_bytes,
    to_head,
    to_part,
    to_record,
    to_records,
    to_row,
)
from surefoot.store.redis.scripts import Script
from surefoot.store.redis.signs import Sign, Signs
from surefoot.store.rules import between, check_positions, micros
from surefoot.store.sound import Sound
from surefoot.store.wishes import Wish, grant, settled

FORMAT: Final = 1

_WORKER: Final = re.compile(r"[0-9a-f]{32}\Z")
_PARTS_PER_LOOK: Final = 500
_SCAN_PER_LOOK: Final = 1000
_TRIES: Final = 5
_QUICK_SECONDS: Final = 2
_LOST_WORDS: Final = {
    b"heads": "it has {0} of {1} journals",
    b"mark": "the database ends at record {0}, or has another one there",
    b"records": "run {2} has {0} of {1} records",
}
_LOST_HOW: Final = "Was it flushed, did it evict keys, or is this another server than before?"

T = TypeVar("T")
log = logging.getLogger("surefoot")


class RedisStore(Derived):
    """See the module's first lines, and `contract.Store` for what each verb promises."""

    def __init__(self, address: Address, waits: Waits) -> None:
        """Use `open`."""
        self.url = self.where = address.shown
        self.id = b""
        self._address = address
        self._waits = waits if address.lease is None else replace(waits, lease=address.lease)
        self._route = Route(address)
        self._adopting = False
        self._over = threading.Event()
        self._clock = ServerClock(self.url)
        self._lease_length = _number(micros(self._waits.lease))
        signs = Signs(lambda: self.id, self._lease_length)
        seconds = self._waits.lease
        self.lease = Lease(self._dial_quickly, signs, self.url, self._clock, seconds, lambda: self._host, refusals)
        self._writer = Channel(self._checked, self.url, self._waits, self._over, refusals)
        self._reader = Channel(self._checked, self.url, self._waits, self._over, refusals)
        self._listener = Listener(self._subscribed)
        self._writing = threading.RLock()
        self._place = Site(anchors_folder(), address.place, self.url, how=_LOST_HOW)
        self._anchors: Anchors
        self._guard: tuple[Command, ...] = ()
        """What is asked behind every write: whether it is on disk, and on the replicas."""
        self._buried: set[str] = set()
        """Dead workers of this host that are already deleted on the server."""
        self._sound = Sound()

    @classmethod
    def open(
        cls,
        address: Address,
        *,
        create: bool,
        announce: Announce | None = None,
        waits: Waits = Waits(),  # noqa: B008 - frozen
        adopting: bool = False,
    ) -> RedisStore:
        """Open the store, checked against the anchor; with `create`, make it if there is none.

        With `adopting`, also a store that is older than its anchor: only for `rewrite_together`, which makes it
        whole again.
        """
        store = cls(address, waits)
        store._adopting = adopting
        store._enter(create=create, announce=announce)
        return store

    @property
    def expected(self) -> int | None:
        """The last record that the store is known to have reached."""
        mark = self._anchors.newest
        return mark.pos if mark is not None and mark.pos else None

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
        (record,) = item.records
        args = (name_bytes(item.run), head_bytes(item.head), record_bytes(record))
        reply, doubtful = self._write(scripts.APPEND_ONE, args)
        pos = reply[1] or (self._position(record) if doubtful else 0)
        if not pos:
            return Conflict(item.run)
        self._note(pos, record.seal, confirm=not reply[1])
        return None

    def _send(self, wishes: list[Wish]) -> list[bool]:
        args = [_number(len(wishes))]
        for wish in wishes:
            args += (name_bytes(wish.run), head_bytes(wish.head), _number(len(wish.records)))
            args += map(record_bytes, wish.records)
            args += row_bytes(wish.row)
        reply, doubtful = self._write_with_parts(scripts.APPEND, args, [cut for wish in wishes for cut in wish.cuts])
        refused = set(reply[2:])
        granted = [at not in refused for at in range(1, len(wishes) + 1)]
        if doubtful:
            granted = settled(wishes, granted, self._position)
        written = [
            wish.records[-1] for wish, is_granted in zip(wishes, granted, strict=True) if is_granted and wish.records
        ]
        if written:
            self._note(reply[1] or self._position(written[-1]), written[-1].seal, confirm=not reply[1])
        return granted

    def _position(self, record: Record) -> int:
        """Where exactly this record is; 0: it is not there."""
        question = (b"position", name_bytes(record.run), _number(record.seq), record.seal)
        pos: int = self._look(*question, writing=True)[0]
        return pos

    def rewrite_together(self, items: Sequence[Rewrite], *, beyond: int = 0) -> bool:
        """As in the contract; and positions up to far after `beyond` are given up from then on."""
        check_positions(items)
        self._refuse_unless_usable()
        args = [_number(self._adopting), _number(max(beyond, self.expected or 0) if beyond else 0), _number(len(items))]
        for item in items:
            args += (name_bytes(item.run), head_bytes(item.found), _number(item.keep))
            args += (_number(item.archive), _number(item.forget), _number(len(item.records)))
            args += map(record_bytes, item.records)
            args += row_bytes(item.row)
        with self._writing:
            reply, doubtful = self._write_with_parts(
                scripts.REWRITE, args, [cut for item in items for cut in item.cuts]
            )
            last = items[-1].records[-1]
            pos = reply[1] or (self._position(last) if doubtful else 0)
            if pos:
                self._note(pos, last.seal, confirm=not reply[1])
        return bool(pos)

    def _write_with_parts(self, script: Script, args: list[bytes], cuts: Sequence[Cut]) -> tuple[list[Any], bool]:
        """Write with the parts that this handle has not read whole."""
        doubtful = False
        for _ in range(_TRIES):
            if cuts and self._sound.swept is None:
                self._sound.under(self._look(b"swept", writing=True)[0])
            missing = {part.id: part for part in self._sound.lacking(cuts, lambda _: {})}
            parts = [each for name, part in missing.items() for each in (name, part_bytes(part))]
            swept = self._sound.swept if cuts else b""
            assert isinstance(swept, bytes)  # noqa: S101 - read above
            reply, again = self._write(script, [swept, *args, _number(len(missing)), *parts])
            doubtful = doubtful or again
            if reply[0] != b"stale":
                self._sound.note(cuts)
                return reply, doubtful
            self._sound.under(None)  # another process has deleted parts: known parts may be gone
        raise StoreUnavailable(
            f"{self.url}: parts of values are being deleted all the time. Wait for it, and try again."
        )

    def _write(self, script: Script, args: Sequence[bytes]) -> tuple[list[Any], bool]:
        """The answer, once what was written is on disk; and whether it may have been written before."""

        def write(connection: Connection) -> list[Any]:
            replies = connection.run(script, (*self._past(), *args), *self._guard)
            if replies[0][0] == b"ok":
                self._refuse_unless_kept(connection, replies[1:])
            found: list[Any] = replies[0]
            return found

        with self._answers_explained():
            reply, doubtful = self._writer.ask_twice(write)
        self._refuse_if_lost(reply)
        return reply, doubtful

    def _note(self, pos: int, seal: bytes, *, confirm: bool) -> None:
        """What was written is acknowledged. `confirm`: it was written by an earlier try, whose answer was lost."""
        if confirm and self._guard:
            # A server says only of what this connection wrote whether it is on disk: so write something behind it.
            touch = (b"HINCRBY", f"{self._address.prefix}meta".encode(), b"touched", b"1")

            def ask(connection: Connection) -> None:
                replies = connection.ask(touch, *self._guard)
                connection.accepted(replies[0])
                self._refuse_unless_kept(connection, replies[1:])

            with self._answers_explained():
                self._writer.ask(ask)
        self._anchors.note(pos, seal, adopted=self._adopting)

    def _refuse_unless_kept(self, connection: Connection, replies: Sequence[Reply]) -> None:
        for (command, *words), reply in zip(self._guard, replies, strict=True):
            if command == b"CONFIG":
                value = connection.accepted(reply)
                if value and value[1] not in (b"always", b"yes"):
                    raise checks.setting_changed(self._address, value[0].decode(), value[1].decode())
            elif command == b"WAITAOF":
                if isinstance(reply, Rejected):
                    raise checks.setting_changed(self._address, "appendonly", "off")
                if reply[0] < 1:
                    connection.close()
                    raise Lost("the server has not written the records to its disk in time")
            elif connection.accepted(reply) < int(words[0]):
                connection.close()
                raise Lost(f"{reply} of {self._address.replicas} replicas have the records")

    # --- what is known of the past -----------------------------------------------------------------

    def _past(self) -> tuple[bytes, bytes, bytes]:
        """What the server has to have: our store, and the newest record that was acknowledged here."""
        if self._adopting:
            return b"", b"0", b""
        mark = self._anchors.newest
        if mark is None or not mark.pos:
            return self.id, b"0", b""
        return self.id, _number(mark.pos), mark.seal[:SEAL_BYTES]

    def _refuse_if_lost(self, reply: Sequence[Any]) -> None:
        if reply[0] != b"lost":
            return
        what, *facts = reply[1:]
        if what == b"vanished":
            raise self._place.vanished()
        if what == b"replaced":
            raise self._place.replaced()
        told = [fact.decode("utf-8", "replace") if isinstance(fact, bytes) else fact for fact in facts]
        raise self._anchors.regressed(_LOST_WORDS[what].format(*told))

    @contextmanager
    def _answers_explained(self) -> Iterator[None]:
        try:
            yield
        except Rejected as error:
            raise refusals.explain(error, self.url) from error
        except UnicodeDecodeError as error:
            raise JournalCorrupt(f"{self.url}: a stored text is not what was written: {error}") from error

    # --- reading -----------------------------------------------------------------------------------

    def read(self, run: str, after: int = 0, limit: int | None = None) -> Stored:
        first, last = (after, -1) if limit is None else (after, after + limit - 1)
        if limit is not None and limit <= 0:
            first, last = 1, 0
        return self._journals([run], first, last)[0]

    def read_all(self, runs: Sequence[str]) -> list[Stored]:
        return self._journals(runs, 0, -1)

    def _journals(self, runs: Sequence[str], first: int, last: int) -> list[Stored]:
        args = (_number(first), _number(last), *map(name_bytes, runs))
        reply = self._asked(scripts.READ, args)
        found = zip(runs, reply[0::2], reply[1::2], strict=True)
        return [Stored(to_records(run, records), to_head(run, head)) for run, head, records in found]

    def _asked(self, script: Script, args: Sequence[bytes], *, slow: bool = False, writing: bool = False) -> list[Any]:
        """What the script answers, without the word `ok`."""
        self._refuse_unless_usable()
        channel = self._writer if writing else self._reader
        silence = self._waits.slow if slow else 0

        def ask(connection: Connection) -> list[Any]:
            found: list[Any] = connection.run(script, (*self._past(), *args), silence=silence)[0]
            return found

        with self._answers_explained():
            reply = channel.ask(ask)
        self._refuse_if_lost(reply)
        return reply[1:]

    def _look(self, *question: bytes, slow: bool = False, writing: bool = False) -> list[Any]:
        return self._asked(scripts.LOOK, question, slow=slow, writing=writing)

    def parts(self, ids: Sequence[bytes]) -> dict[bytes, Part]:
        found: dict[bytes, Part] = {}
        self._refuse_unless_usable()
        for at in range(0, len(ids), _PARTS_PER_LOOK):
            names = ids[at : at + _PARTS_PER_LOOK]
            reply = self._look(b"parts", *names)
            read = ((name, to_part(name, stored)) for name, stored in zip(names, reply, strict=True))
            found.update({name: part for name, part in read if part is not None})
        return found

    def quarantined(self, run: str) -> list[Record]:
        return to_records(run, self._look(b"quarantined", name_bytes(run))[0])

    def names(self, prefix: str = "") -> list[str]:
        first, behind = between(prefix) if prefix else ("", "")
        found = self._look(b"names", name_bytes(first), name_bytes(behind), slow=True)
        with self._answers_explained():
            return list(dict.fromkeys(name.decode() for names in found for name in names))

    def part_ids(self) -> list[bytes]:
        found: list[bytes] = self._look(b"part_ids", slow=True)[0]
        return found

    def changes(self) -> int:
        pos: int = self._look(b"pos")[0]
        return pos

    def scan(self, after: int, limit: int) -> list[tuple[int, Record]]:
        return self._gathered(limit, lambda many, at: self._look(b"scan", _number(at), _number(many), slow=True), after)

    def said(self, before: int, limit: int) -> list[tuple[int, Record]]:
        return self._gathered(limit, lambda many, at: self._look(b"said", _number(at), _number(many)), before)

    def _gathered(self, limit: int, look: Callable[[int, int], list[Any]], start: int) -> list[tuple[int, Record]]:
        """Records from one look after the other: positions whose records were rewritten are empty."""
        found: list[tuple[int, Record]] = []
        while True:
            start, *reply = look(min(limit - len(found), _SCAN_PER_LOOK), start)
            with self._answers_explained():
                found += [to_record(run.decode(), stored) for run, stored in zip(reply[0::2], reply[1::2], strict=True)]
            if not start or len(found) >= limit:
                return found[:limit]

    def discard(self, parts: Sequence[bytes], upto: int) -> bool:
        return bool(self._look(b"discard", _number(upto), *parts, writing=True)[0])

    # --- the run list ------------------------------------------------------------------------------

    def runs(self, query: RunQuery) -> list[Listed]:
        self._refuse_unless_usable()
        lists = lists_for(query)
        if lists:
            page = partial(self._page, lists=lists)
            return listed(query, self._place_of, self._page, lambda _, before, many: page(before, many), self._rowless)
        return collect(query, self._place_of(query.before) if query.before else NEWEST, self._page)

    def _place_of(self, run: str) -> int:
        n: int = self._look(b"place", name_bytes(run))[0]
        return n

    def _page(self, before: int, many: int, lists: Sequence[bytes] = ()) -> list[Placed]:
        found = self._look(b"page", _number(before), _number(many), *lists)
        pages = zip(found[0::3], found[1::3], found[2::3], strict=True)
        with self._answers_explained():
            return [Placed(int(n), Listed(run.decode(), to_row(row))) for run, n, row in pages]

    def _rowless(self) -> list[Placed]:
        found = self._look(b"rowless", slow=True)
        with self._answers_explained():
            return [Placed(int(n), Listed(run.decode(), None)) for run, n in zip(found[0::2], found[1::2], strict=True)]

    def lost_rows(self) -> list[str]:
        return [one.listed.run for one in self._rowless()]

    def tally(self) -> dict[tuple[str, str], int]:
        (found,) = self._look(b"tally")
        counted = zip(found[0::2], found[1::2], strict=True)
        return {msgspec.json.decode(name, type=tuple[str, str]): int(count) for name, count in counted}

    def vitals(self) -> dict[str, float]:
        return {
            "lease_losses": self.lease.losses,
            "lease_renewals": self.lease.renewals,
            "clock_difference_seconds": self._clock.difference,
        }

    # --- workers -----------------------------------------------------------------------------------

    @property
    def worker(self) -> str:
        self._refuse_unless_usable()
        return self.lease.join()

    def _life(self, *question: bytes) -> list[Any]:
        return self._asked(scripts.LIFE, question)

    def alive(self, worker: str) -> bool:
        self._refuse_unless_usable()
        if not _WORKER.match(worker) or self._host.is_gone(worker):
            return False  # no worker of such a store ever had that name; or it is dead, even with a running lease
        return bool(self._life(b"alive", self._lease_length, worker.encode())[0])

    def alive_until(self, worker: str) -> int | None:
        ends, up, now = self._life(b"lease", name_bytes(worker))
        if not ends:
            return None
        after: int = up + micros(self._waits.lease)
        return ends if ends > now else after

    def last_heard(self, worker: str) -> int | None:
        ends: int = self._life(b"lease", name_bytes(worker))[0]
        return ends - micros(self._waits.lease) if ends else None

    def serve(self, serving: Serving | None) -> None:
        self._refuse_unless_usable()
        about = b"" if serving is None else msgspec.json.encode(serving)
        self.lease.say(about.decode())

    def workers(self) -> list[WorkerSeen]:
        found = self._life(b"all", self._lease_length)
        seen = zip(found[0::4], found[1::4], found[2::4], found[3::4], strict=True)
        known = [self._seen(name.decode(), ends, sign, since) for name, ends, sign, since in seen]
        return sorted((one for one in known if not self._host.is_gone(one.worker)), key=lambda one: one.since)

    def _seen(self, name: str, ends: int, stored: bytes, since: int) -> WorkerSeen:
        heard = ends - micros(self._waits.lease)
        try:
            sign = msgspec.json.decode(stored, type=Sign)
            serving = msgspec.json.decode(sign.about, type=Serving) if sign.about else None
        except msgspec.MsgspecError:
            return WorkerSeen(name, "", 0, since, heard, None)
        return WorkerSeen(name, sign.host, sign.pid, since, heard, serving)

    def proven_dead(self, worker: str) -> bool:
        return self._host.is_gone(worker)

    @cached_property
    def _host(self) -> HostLock:
        return HostLock(self.id)

    def _bury(self) -> None:
        """Delete the dead workers of this host on the server: their runs can be taken up at once."""
        if gone := [name for name in self._host.gone() if name not in self._buried]:
            self._life(b"leave", *map(str.encode, gone))
            self._buried.update(gone)

    def holds(self) -> bool:
        return self.usable and self.lease.holds()

    def now(self) -> int | None:
        return self._clock.now()

    def reserve(self, wanted: Wanted) -> Reserved:
        self._bury()
        args = [
            name_bytes(wanted.worker), _number(wanted.limit), _number(micros(wanted.seconds)), self._lease_length,
            b"" if wanted.ready_before is None else _number(wanted.ready_before),
        ]  # fmt: skip
        for names in (wanted.workflows, wanted.queues, wanted.driven, wanted.only):
            args += (_number(len(names)), *map(name_bytes, names))
        args.append(_number(len(wanted.limits)))
        for limit in wanted.limits:
            numbers = (limit.concurrency, limit.starts, micros(limit.seconds))
            args += (name_bytes(limit.queue), *(b"" if each is None else _number(each) for each in numbers))
        next_wake, *runs = self._asked(scripts.RESERVE, args)
        return Reserved([run.decode() for run in runs], next_wake or None)

    def listen(self, seconds: float) -> None:
        self._refuse_unless_usable()
        self._listener.wait(seconds)

    def nudge(self) -> None:
        self._refuse_unless_usable()
        self._listener.nudge()

    # --- settings, opening, closing ----------------------------------------------------------------

    def durability(self) -> dict[str, str]:
        server = self.server()
        settings = server.settings or {"appendfsync": f"unknown: durability={self._address.durability}"}
        waits = "yes" if server.can_wait_for_disk else "this server has no WAITAOF: the setting is asked"
        return {
            "backend": "redis",
            "url": self.url,
            "version": server.shown,
            **settings,
            "durability": self._address.durability,
            "asked behind every append": waits if self._address.durability == FSYNC else "no",
            "maxmemory-policy": server.info.get("maxmemory_policy", "unknown"),
            "replicas": f"{self._address.replicas} have every record before it is acknowledged",
            "lease_seconds": f"{self._waits.lease:g}",
            "anchor": self._anchors.path,
        }

    def server(self) -> checks.Server:
        """The server's description of itself, asked now."""
        self._refuse_unless_usable()
        with explained(self.url, refusals), closing(self._dial()) as connection:
            return checks.ask(connection)

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
        with explained(self.url, refusals):
            try:
                connection = self._entered(create=create, announce=announce)
            except Lost:
                if not self._route.is_elsewhere:
                    raise
                connection = self._entered(create=create, announce=announce)
        self._reader.connection = connection
        self._note_open()
        if self._address.durability == NONE:
            log.warning("%s: opened with durability=none: this server may lose what it acknowledged.", self.url)

    def _entered(self, *, create: bool, announce: Announce | None) -> Connection:
        with _closed_on_failure(self._dial()) as connection:
            if create and self._greet(connection) is None:
                self._make(connection, announce)
            self._check(connection)
        return connection

    def _make(self, connection: Connection, announce: Announce | None) -> None:
        reply = connection.run(scripts.CREATE, (_number(FORMAT), secrets.token_bytes(16)))[0]
        if reply[1] and announce:
            announce(f"created store {self.url} (keys {self._address.prefix}*)")

    def _greet(self, connection: Connection) -> dict[bytes, bytes] | None:
        """The store's description of itself; None: there is none, and there never was one, as far as can be known."""
        # Read the note first, then ask the server: otherwise a store that another process makes in between would count
        # as lost.
        was_here = self._adopting or self.id or self._place.noted() is not None
        server = checks.ask(connection)
        checks.refuse_if_not_durable(server, self._address)
        if server.version < checks.OLDEST:
            raise UsageError(f"{self.url}: {server.shown} is too old; Redis 6.2 or newer, or Valkey, is needed.")
        self._guard = _guard(server, self._address, self._waits.silence)
        found = self._described(connection)
        if found:
            return found
        if was_here:
            raise self._place.vanished()
        remains = self._remains(connection)
        if not remains:
            return None
        # They may be of a store that another process has made since.
        found = self._described(connection)
        if not found:
            raise self._incomplete(remains)
        return found

    def _described(self, connection: Connection) -> dict[bytes, bytes]:
        flat = connection.ask_one(b"HGETALL", f"{self._address.prefix}meta".encode())
        return dict(zip(flat[0::2], flat[1::2], strict=True))

    def _remains(self, connection: Connection) -> list[bytes]:
        """Some keys of a store without its description: what is left of one."""
        cursor, pattern = b"0", f"{self._address.prefix}*".encode()
        keys: list[bytes] = []
        while not keys:
            scan = (b"SCAN", cursor, b"MATCH", pattern, b"COUNT", b"1000")
            cursor, keys = connection.ask_one(*scan, silence=self._waits.slow)
            if cursor == b"0":
                break
        return keys

    def _incomplete(self, keys: Sequence[bytes]) -> JournalRegressed:
        prefix = self._address.prefix
        return JournalRegressed(
            f"{self.url}: the server has keys that begin with {prefix}, but not {prefix}meta, which says what store it is. "
            f"{_LOST_HOW} Nothing was changed.",
            facts={"keys": [key.decode("utf-8", "replace") for key in keys[:3]]},
            cures=(
                Advice("have a backup?", "restore it there"),
                Advice("none of that is needed?", f"delete the keys {prefix}*, or name another store with ?name="),
            ),
        )

    def _dial(self) -> Connection:
        waits = self._waits
        return Connection(self._address, self._route, seconds=waits.connect, silence=waits.silence)

    def _dial_quickly(self) -> Connection:
        """A connection for the lease, which runs out meanwhile, and for listeners, which must not wait long."""
        seconds = min(self._waits.connect, _QUICK_SECONDS)
        return Connection(self._address, self._route, seconds=seconds, silence=_QUICK_SECONDS)

    def _subscribed(self) -> Connection:
        with _closed_on_failure(self._dial_quickly()) as connection:
            connection.ask_one(b"SUBSCRIBE", f"{self._address.prefix}ready".encode())
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
        found = self._greet(connection)
        if found is None:
            raise refusals.no_store(self.url, self._address.prefix)
        number, store = found.get(b"format", b""), found.get(b"store", b"")
        if not number.isdigit() or len(store) != 16:
            raise JournalCorrupt(
                f"{self.url}: the store's description of itself ({self._address.prefix}meta) is damaged."
            )
        if int(number) > FORMAT:
            raise newer_format(f"{self.url}: this store", int(number), FORMAT)
        before = self.id or (None if self._adopting else self._place.noted())
        if before and store != before:
            raise self._place.replaced()
        if not self.id:
            self._anchors = Anchors(store, self.url, self._place)
            self.id = store
        self._refuse_if_lost(connection.run(scripts.LOOK, (*self._past(), b"pos"))[0])
        seconds, part = map(int, connection.ask_one(b"TIME"))
        self._clock.note(seconds * 1_000_000 + part)


@contextmanager
def _closed_on_failure(connection: Connection) -> Iterator[Connection]:
    try:
        yield connection
    except BaseException:
        connection.close()
        raise


def _guard(server: checks.Server, address: Address, silence: float) -> tuple[Command, ...]:
    """What is asked behind every write. `WAITAOF` alone would not do: some servers say yes without having synced."""
    wait = _number(max(int(silence * 300), 1))
    asked: list[Command] = []
    if address.durability == FSYNC:
        asked.append((b"CONFIG", b"GET", b"appendfsync"))
        asked.append((b"WAITAOF", b"1", b"0", wait) if server.can_wait_for_disk else (b"CONFIG", b"GET", b"appendonly"))
    if address.replicas:
        asked.append((b"WAIT", _number(address.replicas), wait))
    return tuple(asked)


def _number(value: int) -> bytes:
    return b"%d" % value
