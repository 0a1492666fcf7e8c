"""Threads for adapters: checkpoints of a framework that keeps its own state, in a store of ours.

"Nothing was ever saved" and "what was saved cannot be read" are different answers. The newest checkpoint that can be read
counts; stepping back over one that cannot be is loud, and if none can be read it is `CorruptCheckpoint`, never nothing.

Two processes on one thread: what is written goes behind the record that the writer knows (the store compares), and a
checkpoint goes behind the newest one of its namespace, if its parent was handed out or written here as the newest. Else it
is `Fenced`. Whoever names a checkpoint means it, and may fork from there.
"""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Final, TypeVar

from msgspec import Raw, Struct

from surefoot.core.choice import OnCorruption
from surefoot.core.cure import Advice, Cures
from surefoot.core.entry import ThreadSaved, ThreadWrote
from surefoot.core.visible import visible
from surefoot.engine.declare import rehearsal
from surefoot.engine.process import config
from surefoot.engine.process.runtime import Runtime
from surefoot.engine.process.whereabouts import at
from surefoot.errors import CodecMissing, CorruptCheckpoint, Damaged, Fenced, NotFound, StoreUnavailable, UsageError
from surefoot.store import threads
from surefoot.store.contract import Store
from surefoot.store.open import shown
from surefoot.store.threads import Folded, Key, Saved, ThreadJournal

__all__ = ["LONGEST_ID", "Found", "Given", "Key", "Listed", "Threads", "check_id"]

T = TypeVar("T")

LONGEST_ID: Final = 500
_MOST_OPEN: Final = 128
"""So many threads are kept in memory; of any other the journal is read again."""
_MOST_HANDED: Final = 10_000
_TRIES: Final = 100
_LONGEST_WAIT: Final = 60.0
_LOOK_AGAIN: Final = 1.0
"""Another process may have saved what is waited for."""


class Given(Struct, frozen=True):
    """What a task wrote, as recorded."""

    task: str
    path: str
    value: bytes


class Found(Struct, frozen=True):
    """One checkpoint, read whole."""

    thread: str
    ns: str
    id: str
    parent: str
    state: bytes
    meta: bytes
    wrote: tuple[Given, ...] = ()


class Listed(Struct, frozen=True):
    """A checkpoint among others of its thread. Its values are read when they are asked for."""

    thread: str
    ns: str
    id: str
    parent: str
    at: int
    _journal: ThreadJournal
    _saved: Saved

    def meta(self) -> bytes:
        return self._journal.value(self._saved.entry.meta)

    def state(self) -> bytes:
        return self._journal.value(self._saved.entry.state)


class _Open:
    """A thread that this process works on."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.journal: ThreadJournal | None = None
        self.handed: OrderedDict[Key, None] = OrderedDict()
        """Checkpoints that were newest when they were handed out or written here. Without id: there was none."""
        self.lost: dict[Key, str] = {}
        """Checkpoints whose records hold, but whose values cannot be put together, and why."""
        self.told: set[str] = set()
        self.fell_back = False
        """Whether a newest one that was handed out is older than what was saved, or may be."""

    def hand_out(self, key: Key) -> None:
        self.handed[key] = None
        while len(self.handed) > _MOST_HANDED:
            self.handed.popitem(last=False)

    def newest(self, folded: Folded, ns: str) -> Saved | None:
        return next((one for one in reversed(folded.saved.get(ns, {}).values()) if one.key not in self.lost), None)


class Threads:
    """All threads of one store. Thread-safe; a saver and its copies share one."""

    def __init__(self, store: str | None = None, on_corruption: OnCorruption | None = None) -> None:
        self._url = store
        self._on_corruption = None if on_corruption is None else config.checked_policy(on_corruption)
        self._lock = threading.Lock()
        self._open: OrderedDict[str, _Open] = OrderedDict()
        self._adopted: tuple[Store, str] | None = None
        self._last: tuple[str, Runtime] | None = None
        self._moved = threading.Condition()
        """Told when a checkpoint was saved here, or could not be."""
        self._refused: dict[str, BaseException] = {}
        """Why the last checkpoint of a thread could not be saved. Those that follow it are not tried."""
        self._read: OrderedDict[tuple[str, str], None] = OrderedDict()
        """Checkpoints, by thread and id, that were read here."""

    @property
    def url(self) -> str | None:
        """As it was given; None: as configured."""
        return self._url

    @property
    def where(self) -> str:
        return shown(config.store_url(self._url))

    # --- reading -----------------------------------------------------------------------------------------

    def newest(self, thread: str, ns: str) -> Found | None:
        """The newest checkpoint of a namespace that can be read. None only if nothing was ever saved there."""
        if not ns:  # So a graph begins: what could not be saved before is no matter of what it saves.
            with self._moved:
                self._refused.pop(thread, None)
        with self._reading(thread) as opened:
            if opened is None:
                self._known(thread).hand_out(Key(ns, ""))
                return None
            one, journal, folded = opened
            self._tell_of_damage(one, journal, folded)
            found = self._newest(one, journal, folded, ns)
            one.fell_back |= self._may_be_older(one, folded, ns)
            one.hand_out(Key(ns, "" if found is None else found.id))
            return found

    def one(self, thread: str, ns: str, id_: str) -> Found | None:
        """The checkpoint that is named. `CorruptCheckpoint`, if it may be among those that cannot be read."""
        with self._reading(thread) as opened:
            if opened is None:
                return None
            one, journal, folded = opened
            self._tell_of_damage(one, journal, folded)
            saved = folded.get(Key(ns, id_))
            if saved is None:
                if folded.damaged:
                    raise self._corrupt(
                        thread, f"checkpoint {visible(id_)} is not among those that can be read", folded
                    )
                return None
            self._let_fork(one, folded, saved.key)
            one.fell_back = False  # It was named: that is no fallback.
            try:
                return self._found(one, journal, folded, saved)
            except CodecMissing:
                raise
            except Damaged as error:
                raise self._corrupt(thread, f"checkpoint {visible(id_)} is damaged: {_brief(error)}", folded) from error

    def listed(self, thread: str) -> list[Listed]:
        """The checkpoints of a thread that can be read, the newest first."""
        with self._reading(thread) as opened:
            if opened is None:
                return []
            one, journal, folded = opened
            self._tell_of_damage(one, journal, folded)
            if folded.damaged and not folded.saved:
                raise self._corrupt(thread, "no checkpoint of it can be read", folded)
            return [
                Listed(thread, saved.entry.ns, saved.entry.id, saved.entry.parent, saved.record.at, journal, saved)
                for saved in reversed(folded.checkpoints())
            ]

    def load(self, listed: Listed) -> Found | None:
        """One of a list, whole. None: it was deleted since. Where it cannot be put together: loud, and left out."""
        with self._reading(listed.thread) as opened:
            if opened is None:
                return None
            one, journal, folded = opened
            saved = folded.get(Key(listed.ns, listed.id))
            try:
                return None if saved is None else self._found(one, journal, folded, saved)
            except CodecMissing:
                raise
            except Damaged as error:
                why = f"checkpoint {visible(listed.id)} is damaged: {_brief(error)}"
                if self._stops:
                    raise self._corrupt(listed.thread, why, folded) from error
                self._tell(one, listed.thread, f"{why}. It is left out of the list.")
                return None

    def replayed(self, thread: str, ns: str, id_: str) -> None:
        """A checkpoint (none: no id) was chosen to go on from as part of a replay: a fork is meant."""
        with self._reading(thread) as opened:
            if opened is not None:
                self._let_fork(opened[0], opened[2], Key(ns, id_))

    def names(self) -> list[str]:
        """Every thread of the store; also those of which nothing is left but that they were deleted."""
        runtime = self._runtime(create=False)
        return [] if runtime is None else threads.threads(runtime.store.names(threads.PREFIX))

    def fell_back(self, thread: str) -> bool:
        """Whether an older checkpoint than was saved, or perhaps an older one, was handed out as the newest."""
        return self._known(thread).fell_back

    def unreadable(self, thread: str, ids: Collection[str]) -> set[str]:
        """Which of these checkpoints were saved and cannot be read, where the graph does not stand behind them already."""
        with self._reading(thread) as opened:
            if opened is None or not ids:
                return set()
            one, journal, folded = opened
            found = {saved.entry.id: saved for saved in folded.checkpoints()}
            gone = {id_ for id_ in ids if id_ in found and self._is_passed_over(one, journal, folded, found[id_])}
            if not one.fell_back:
                return gone
            # What was deleted is on no record: there, what is older than the newest counts as deleted.
            newest = one.newest(folded, "")
            floor = newest.entry.id if folded.others and newest is not None else ""
            return gone | {id_ for id_ in ids if id_ not in found and id_ > floor}

    def _is_passed_over(self, one: _Open, journal: ThreadJournal, folded: Folded, saved: Saved) -> bool:
        newest = one.newest(folded, saved.entry.ns)
        if newest is not None and newest.record.seq > saved.record.seq:
            return False
        try:
            journal.check(saved.entry.state)
        except CodecMissing:
            raise
        except Damaged:
            return True
        return saved.key in one.lost

    def _may_be_older(self, one: _Open, folded: Folded, ns: str) -> bool:
        newest = one.newest(folded, ns)
        seq = 0 if newest is None else newest.record.seq
        lost = (folded.get(key) for key in one.lost)
        return (
            bool(folded.doubt)
            or any(unread.seq > seq for unread in folded.unread)
            or any(saved is not None and saved.record.seq > seq for saved in lost)
        )

    def _newest(self, one: _Open, journal: ThreadJournal, folded: Folded, ns: str) -> Found | None:
        passed: list[str] = []
        for saved in reversed(list(folded.saved.get(ns, {}).values())):
            try:
                found = self._found(one, journal, folded, saved)
            except CodecMissing:
                raise
            except Damaged as error:
                one.lost[saved.key] = _brief(error)
                passed.append(f"checkpoint {visible(saved.entry.id)} is damaged: {_brief(error)}")
                continue
            one.lost.pop(saved.key, None)
            self._tell_passed(one, journal, folded, passed, saved)
            return found
        self._require_nothing(one, journal, folded, ns, passed)
        return None

    def _require_nothing(self, one: _Open, journal: ThreadJournal, folded: Folded, ns: str, passed: list[str]) -> None:
        """No checkpoint of a namespace can be read. That there is none is said only if nothing speaks against it."""
        if passed or (folded.damaged and (self._stops or not folded.saved)):
            raise self._corrupt(journal.thread, "; ".join(passed) or "no checkpoint of it can be read", folded)
        if folded.damaged:
            what = f"what cannot be read may be checkpoints of {visible(ns) or 'the outermost graph'}, of which none is left"
            self._tell(one, journal.thread, f"{what}: it begins anew.")

    def _found(self, one: _Open, journal: ThreadJournal, folded: Folded, saved: Saved) -> Found:
        entry = saved.entry
        self._read[journal.thread, entry.id] = None
        while len(self._read) > _MOST_HANDED:
            self._read.popitem(last=False)
        wrote = tuple(self._wrote(one, journal, folded, saved.key))
        return Found(
            journal.thread,
            entry.ns,
            entry.id,
            entry.parent,
            journal.value(entry.state),
            journal.value(entry.meta),
            wrote,
        )

    def _wrote(self, one: _Open, journal: ThreadJournal, folded: Folded, key: Key) -> Iterator[Given]:
        for wrote in folded.wrote.get(key, ()):
            try:
                value = journal.value(wrote.entry.value)
            except CodecMissing:
                raise
            except Damaged as error:
                self._lost_writes(
                    one, journal.thread, folded, f"a write of checkpoint {visible(key.id)} is damaged", error
                )
            else:
                yield Given(wrote.entry.task, wrote.entry.path, value)

    def _lost_writes(self, one: _Open, thread: str, folded: Folded, why: str, error: Damaged) -> None:
        if self._stops:
            raise self._corrupt(thread, f"{why}: {_brief(error)}", folded) from error
        self._tell(one, thread, f"fell back: {why}: {_brief(error)}. Its task runs again.")

    def _tell_passed(self, one: _Open, journal: ThreadJournal, folded: Folded, passed: list[str], used: Saved) -> None:
        """Say what was stepped over, before anybody relies on what is right."""
        behind = [unread for unread in folded.unread if unread.seq > _before(folded, used)]
        doubt = [folded.doubt] if folded.doubt and self._stops else []
        if not passed and not behind and not doubt:
            return
        listed = "; ".join([*passed, *(f"record {unread.seq} {unread.why}" for unread in behind[:5]), *doubt])
        if self._stops:
            raise self._corrupt(journal.thread, listed, folded)
        kind = "checkpoints, or writes of tasks, which then run again" if behind else "a checkpoint"
        self._tell(
            one,
            journal.thread,
            f"fell back to {_described(used)}, over {kind}: {listed}.",
        )

    def _tell_of_damage(self, one: _Open, journal: ThreadJournal, folded: Folded) -> None:
        if folded.doubt:
            self._tell(one, journal.thread, f"{folded.doubt}, so whether newer ones were lost cannot be told.")
        elif folded.damaged:
            self._tell(one, journal.thread, f"its journal is damaged: {folded.flaws}.")

    # --- writing -----------------------------------------------------------------------------------------

    def save(self, thread: str, ns: str, id_: str, parent: str, *, state: bytes, meta: bytes) -> None:
        """A checkpoint, durable on return. `Fenced`, if its parent is no longer the newest, but was when we knew it."""
        with self._writing(thread) as (one, journal, runtime):
            entry = ThreadSaved(
                ns, id_, parent, Raw(state), Raw(meta), os.uname().nodename, os.getpid(), self._adoption(runtime.store)
            )

            def ours(folded: Folded) -> None:
                self._require_readable(journal, folded)
                self._require_newest(one, journal, folded, entry)

            self._append(one, journal, runtime, entry, ours)
            one.fell_back = False
            one.hand_out(Key(ns, id_))

    def was_found(self, thread: str, id_: str) -> bool:
        """Whether that checkpoint was read here. Any other was made here, and is saved, or is about to be."""
        return (thread, id_) in self._read

    def settle(self, thread: str, error: BaseException | None = None) -> None:
        """Say that a checkpoint of a thread was saved, or why it could not be."""
        with self._moved:
            self._refused.pop(thread, None)
            if error is not None:
                self._refused[thread] = error
                while len(self._refused) > _MOST_OPEN:
                    self._refused.pop(next(iter(self._refused)))
            self._moved.notify_all()

    def wait_for(self, thread: str, id_: str) -> None:
        """Return once a checkpoint is durable. What is executed before has a name that may be lost.

        `StoreUnavailable`, if it could not be saved, or has not been for a long time; `Fenced`, if it must not be.
        """
        until = time.monotonic() + _LONGEST_WAIT
        with self._moved:
            while not self._is_saved(thread, id_):
                refused = self._refused.get(thread)
                left = until - time.monotonic()
                if refused is not None or left <= 0:
                    why = (
                        f"could not be saved: {str(refused).rstrip('.')}"
                        if refused is not None
                        else f"was not saved within {_LONGEST_WAIT:g} s"
                    )
                    # Whoever is fenced is told so, however it came to be known.
                    raise (Fenced if isinstance(refused, Fenced) else StoreUnavailable)(
                        f"thread {visible(thread)}: checkpoint {visible(id_)} {why}. Nothing was executed in the node that it names."
                    ) from refused
                self._moved.wait(min(left, _LOOK_AGAIN))

    def _is_saved(self, thread: str, id_: str) -> bool:
        runtime = self._runtime(create=False)
        if runtime is None:
            return False
        with self._held(thread, runtime) as (_, journal):
            return any(id_ in ids for ids in journal.known.saved.values()) or any(
                id_ in ids for ids in journal.refresh().saved.values()
            )

    def write(self, thread: str, ns: str, id_: str, *, task: str, path: str, value: bytes) -> None:
        """What a task gave, durable on return."""
        with self._writing(thread) as (one, journal, runtime):
            entry = ThreadWrote(ns, id_, task, path, Raw(value))
            self._append(one, journal, runtime, entry, lambda folded: self._require_readable(journal, folded))

    def delete(self, thread: str, why: str = "deleted") -> None:
        """Everything of a thread. What is left says that it was deleted, and when."""
        if self._is_there(thread):
            with self._writing(thread) as (one, journal, runtime):
                self._repeat(journal, lambda: journal.keep(why, [], runtime.clock.now(), forget=True))
                one.handed.clear()
                one.lost.clear()

    def keep(self, thread: str, why: str, choose: Callable[[Sequence[Listed]], Collection[Key]]) -> None:
        """Delete all checkpoints but those that are chosen, which keep what their tasks wrote."""
        if not self._is_there(thread):
            return
        with self._writing(thread) as (_, journal, runtime):

            def rewrite() -> bool:
                folded = journal.refresh()
                if folded.damaged:
                    raise self._corrupt(thread, "what cannot be read would be deleted unseen", folded)
                stay = set(choose(self.listed(thread)))
                if stay.issuperset(one.key for one in folded.checkpoints()):
                    return True
                kept = [saved.record for saved in folded.checkpoints() if saved.key in stay]
                kept += [wrote.record for key in stay for wrote in folded.wrote.get(key, ())]
                return journal.keep(why, sorted(kept, key=lambda record: record.seq), runtime.clock.now())

            self._repeat(journal, rewrite)

    def copy(self, source: str, target: str) -> None:
        """All checkpoints of a thread and what their tasks wrote, under another id, under which there must be nothing."""
        if source == target:
            raise UsageError(f"thread {visible(source)} cannot be copied onto itself.")
        if not self._is_there(source):
            return
        # In the order of their names: two that copy in opposite directions would else wait for each other.
        first, second = sorted((source, target))
        with self._writing(first) as (_, one, runtime), self._writing(second) as (_, other, _):
            journal, copied = (one, other) if first == source else (other, one)
            folded = journal.refresh()
            if folded.damaged:
                raise self._corrupt(source, "a copy would not say what is missing", folded)
            if copied.refresh().saved or copied.known.wrote or copied.known.damaged:
                raise UsageError(f"thread {visible(target)} is not empty: copy to another id, or delete it first.")
            for saved in folded.checkpoints():
                journal.check(saved.entry.state)
            self._repeat(copied, lambda: copied.copy_from(journal, runtime.clock.now()))

    def fill(self, thread: str, found: Sequence[Found]) -> bool:
        """Checkpoints from elsewhere, the oldest first, with what their tasks wrote: all of them, or none.

        False: the thread has checkpoints already, and is left as it is.
        """
        with self._writing(thread) as (_, journal, runtime):
            adopted = self._adoption(runtime.store)
            entries: list[ThreadSaved | ThreadWrote] = []
            for one in found:
                entries.append(
                    ThreadSaved(
                        one.ns,
                        one.id,
                        one.parent,
                        Raw(one.state),
                        Raw(one.meta),
                        os.uname().nodename,
                        os.getpid(),
                        adopted,
                    )
                )
                entries += [
                    ThreadWrote(one.ns, one.id, given.task, given.path, Raw(given.value)) for given in one.wrote
                ]

            def fill() -> bool:
                folded = journal.refresh()
                self._require_readable(journal, folded)
                return bool(folded.saved or folded.wrote) or journal.fill(entries, runtime.clock.now())

            there = journal.refresh()
            if there.saved or there.wrote:
                return False
            self._repeat(journal, fill)
            return True

    def check(self, thread: str) -> int:
        """Read all that a thread consists of. How many checkpoints there are; `Damaged`, if something is not whole."""
        with self._reading(thread) as opened:
            if opened is None:
                return 0
            _, journal, folded = opened
            if folded.damaged:
                raise self._corrupt(thread, "it is not whole", folded)
            for saved in folded.checkpoints():
                journal.check(saved.entry.state)
                journal.check(saved.entry.meta)
            return len(folded.checkpoints())

    def _is_there(self, thread: str) -> bool:
        with self._reading(thread) as opened:
            return opened is not None and (opened[2].head is not None or opened[2].damaged)

    def _append(
        self,
        one: _Open,
        journal: ThreadJournal,
        runtime: Runtime,
        entry: ThreadSaved | ThreadWrote,
        check: Callable[[Folded], None],
    ) -> None:
        def append() -> bool:
            folded = journal.known
            check(folded)
            if folded.damaged:
                self._tell(one, journal.thread, f"quarantined what is left of damaged records: {folded.flaws}.")
            return journal.append(entry, runtime.clock.now())

        self._repeat(journal, append)

    def _repeat(self, journal: ThreadJournal, write: Callable[[], bool]) -> None:
        """Until it is written: whoever writes in between makes us look again."""
        for _ in range(_TRIES):
            if write():
                return
            journal.refresh()
        raise StoreUnavailable(f"thread {visible(journal.thread)}: too many write to it at once. Nothing was written.")

    def _require_readable(self, journal: ThreadJournal, folded: Folded) -> None:
        """Whoever cannot know what is there does not bury it."""
        if folded.damaged and not folded.saved:
            raise self._corrupt(journal.thread, "no checkpoint of it can be read", folded)

    def _require_newest(self, one: _Open, journal: ThreadJournal, folded: Folded, entry: ThreadSaved) -> None:
        parent = Key(entry.ns, entry.parent)
        if parent not in one.handed or folded.get(Key(entry.ns, entry.id)) is not None:
            return
        newest = one.newest(folded, entry.ns)
        if (newest.entry.id if newest is not None else "") == entry.parent:
            return
        there = "nothing any more" if newest is None else _described(newest)
        raise Fenced(
            f"thread {visible(journal.thread)}: there is {there}: somebody else went on from where this graph did. Nothing "
            "was written. If two processes work on the thread, end one; invoking the graph again goes on from the newest."
        )

    def _let_fork(self, one: _Open, folded: Folded, key: Key) -> None:
        newest = one.newest(folded, key.ns)
        if newest is None or newest.key != key:
            one.handed.pop(key, None)

    # --- what is open ------------------------------------------------------------------------------------

    def _runtime(self, *, create: bool) -> Runtime | None:
        """The store, once opened the same for as long as it can be used: asking where it is costs as much as writing."""
        url = config.store_url(self._url)
        if self._last is not None and self._last[0] == url and self._last[1].store.usable:
            return self._last[1]
        try:
            runtime = config.runtime(url, create=create)
        except NotFound:
            return None
        self._last = url, runtime
        return runtime

    @contextmanager
    def _reading(self, thread: str) -> Iterator[tuple[_Open, ThreadJournal, Folded] | None]:
        """A thread, read up to now. None: there is no such store, and reading does not make one."""
        check_id(thread)
        runtime = self._runtime(create=False)
        if runtime is None:
            yield None
            return
        with self._held(thread, runtime) as (one, journal):
            yield one, journal, self._look(one, journal)

    @contextmanager
    def _writing(self, thread: str) -> Iterator[tuple[_Open, ThreadJournal, Runtime]]:
        check_id(thread)
        rehearsal.would_do("thread", thread)
        runtime = self._runtime(create=True) or config.runtime(self._url, create=True)
        with self._held(thread, runtime) as (one, journal):
            yield one, journal, runtime

    def _known(self, thread: str) -> _Open:
        with self._lock:
            one = self._open.setdefault(thread, _Open())
            self._open.move_to_end(thread)
            while len(self._open) > _MOST_OPEN:
                self._open.popitem(last=False)
            return one

    @contextmanager
    def _held(self, thread: str, runtime: Runtime) -> Iterator[tuple[_Open, ThreadJournal]]:
        one = self._known(thread)
        with one.lock, at(runtime.store.url):
            if one.journal is None or one.journal.store is not runtime.store:
                one.journal = ThreadJournal(runtime.store, thread)
                self._tell_if_adopted(one, one.journal, runtime.store)
            yield one, one.journal

    def _look(self, one: _Open, journal: ThreadJournal) -> Folded:
        try:
            return journal.refresh()
        except CodecMissing:
            raise
        except Damaged as error:
            raise self._corrupt(journal.thread, f"it cannot be read: {_brief(error)}", Folded()) from error

    def _adoption(self, store: Store) -> str:
        known = self._adopted
        if known is None or known[0] is not store:
            known = self._adopted = store, threads.adoption(store)
        return known[1]

    def _tell_if_adopted(self, one: _Open, journal: ThreadJournal, store: Store) -> None:
        """In a store that has lost records, the newest that is there need not be the newest that was saved."""
        adopted = self._adoption(store)
        if adopted and all(saved.entry.adopted != adopted for saved in self._look(one, journal).checkpoints()):
            what = (
                "was adopted when it had lost records, so newer checkpoints may be gone. Going on from what is there."
            )
            self._tell(one, journal.thread, f"fell back to an older state: {store.url} {what}")
            one.fell_back = True

    # --- what is said ------------------------------------------------------------------------------------

    @property
    def _stops(self) -> bool:
        return (self._on_corruption or config.settings.on_corruption) != config.FALLBACK

    def _tell(self, one: _Open, thread: str, what: str) -> None:
        """Once in this process: a graph looks at its thread many times."""
        if what not in one.told:
            one.told.add(what)
            config.loud(f"thread {visible(thread)}: {what}", kind="thread")

    def _corrupt(self, thread: str, why: str, folded: Folded) -> CorruptCheckpoint:
        flaws = f" ({folded.flaws})" if folded.flaws and folded.flaws not in why else ""
        return CorruptCheckpoint(
            f"thread {visible(thread)} in {self.where}: {why}{flaws}. Nothing was changed.",
            facts={"thread": thread, "why": why},
            cures=_CURES,
        )


_CURES: Final[Cures] = (
    Advice("a copy?", "put the store back from it"),
    Advice("start over?", "use another thread id; this one stays as it is"),
    Advice("not needed?", "delete the thread"),
)


def check_id(thread: object) -> None:
    """Thread ids are the users' own; what cannot be shown, or told from another, is refused."""
    if not isinstance(thread, str):
        raise UsageError(f"a thread id is a string, not {type(thread).__name__}.")
    if not thread or len(thread) > LONGEST_ID:
        raise UsageError(f"a thread id has 1 to {LONGEST_ID} characters: {thread[:40]!r}")
    if not thread.isprintable():
        raise UsageError(f"a thread id holds printable characters only, no control characters: {thread[:40]!r}")


def _before(folded: Folded, used: Saved) -> int:
    """Behind this position there may be writes of a checkpoint: a task may write before its checkpoint is saved."""
    parent = folded.get(Key(used.entry.ns, used.entry.parent))
    return 0 if parent is None else parent.record.seq


def _brief(error: Damaged) -> str:
    """The first line of an error, without names that are not for people."""
    return "".join(char if char.isprintable() else " " for char in error.summary).rstrip(".")


def _described(saved: Saved) -> str:
    entry = saved.entry
    writer = f"pid {entry.pid} on host {visible(entry.host)}"
    return f"checkpoint {visible(entry.id)}, saved {_moment(saved.record.at)} by {writer}"


def _moment(at: int) -> str:
    try:
        return datetime.fromtimestamp(at / 1e6, UTC).isoformat(" ", "seconds")
    except (OverflowError, ValueError, OSError):
        return "at an unknown time"
