"""Each function breaks one promise of surefoot, in the process that calls it, by replacing a piece of it.

They are what a tired author might write. Nothing in surefoot itself knows of them.
"""

# ruff: noqa: ARG005 - what is replaced keeps its signature

from __future__ import annotations

import contextlib
import os
import shutil
import uuid
from collections.abc import Callable
from typing import Any

from msgspec import Raw
from msgspec.structs import replace

from surefoot.core import encoder, lost, seal, state, values
from surefoot.core.command import Append
from surefoot.core.entry import (
    EffectDone,
    EffectDoubted,
    EffectIntended,
    EffectSettled,
    EventSent,
    RunRewound,
    StepDone,
    TimerSet,
)
from surefoot.core.forms import Secret
from surefoot.core.history import PastState
from surefoot.core.key import idempotency_key
from surefoot.core.matching.arguments import Arguments
from surefoot.core.programs import calls
from surefoot.core.verdict import Happened, NotHappened, Partial, Unknown
from surefoot.engine import checkpoint
from surefoot.engine.drive import acts, claimant, conclusion, fallback, start
from surefoot.engine.effects.databases import sqlite as user_sqlite
from surefoot.engine.operate import decisions, handle
from surefoot.engine.process import commit, config, journal
from surefoot.engine.process.runtime import driven_here
from surefoot.engine.session import losses, questions, replay, session
from surefoot.engine.upkeep import adoption, tombstones
from surefoot.engine.verbs import saga
from surefoot.errors import StoreUnavailable
from surefoot.store import disk
from surefoot.store.contract import Head, Stored
from surefoot.store.generation_files import _NOTE, FileShelf
from surefoot.store.open import open_store
from surefoot.store.sqlite import files as sqlite_file
from surefoot.store.sqlite import store as sqlite

ENGINES: dict[str, Callable[[], None]] = {}


def engine(break_: Callable[[], None]) -> Callable[[], None]:
    ENGINES[break_.__name__.replace("_", "-")] = break_
    return break_


# --- the order of things -----------------------------------------------------------------------------------------------


def _instead(kinds: tuple[type, ...], act: Callable[[Any, Any], None]) -> None:
    """Entries of these kinds are not appended; `act` is done instead."""
    real = acts.append

    def append(this: Any, *entries: Any) -> None:
        rest = tuple(entry for entry in entries if not isinstance(entry, kinds))
        for entry in entries:
            if isinstance(entry, kinds):
                act(this, entry)
        if rest:
            real(this, *rest)

    acts.append = append


@engine
def no_intent() -> None:
    _instead((EffectIntended,), lambda this, entry: None)


@engine
def intent_not_durable() -> None:
    _instead((EffectIntended,), lambda this, entry: this.journal.lazily(entry))


@engine
def outcome_not_durable() -> None:
    _instead((EffectDone,), lambda this, entry: this.journal.lazily(entry))


@engine
def step_not_durable() -> None:
    _instead((StepDone,), lambda this, entry: this.journal.lazily(entry))


@engine
def outcome_before_effect() -> None:
    real = acts.execute

    def execute(attempt: Any, number: int) -> Any:
        if attempt.spec.kind == "effect":
            acts.append(attempt.session, EffectDone(attempt.call.address, Raw(b"null"), number))
        return real(attempt, number)

    acts.execute = execute


@engine
def lazy_entries_dropped() -> None:
    real = journal.Journal._ticket

    def ticket(self: Any, entries: Any) -> Any:
        self._lazy.clear()
        return real(self, entries)

    journal.Journal._ticket = ticket


# --- the store -----------------------------------------------------------------------------------------------------------


def _with(pragma: str) -> None:
    real = sqlite._configure

    def configure(writer: Any, path: str) -> None:
        real(writer, path)
        writer.execute(pragma).fetchall()

    sqlite._configure = configure


@engine
def synchronous_off() -> None:
    _with("PRAGMA synchronous=OFF")


@engine
def synchronous_normal() -> None:
    _with("PRAGMA synchronous=NORMAL")


@engine
def no_folder_sync() -> None:
    disk.sync_name = lambda path: None


@engine
def anchor_before_commit() -> None:
    real = sqlite.SqliteStore._refuse_if_regressed

    def told_too_early(self: Any, newest: Any) -> None:
        real(self, newest)
        self._note(newest)

    sqlite.SqliteStore._refuse_if_regressed = told_too_early


@engine
def anchor_not_read() -> None:
    sqlite_file._hold_against = lambda *_: None


@engine
def empty_store_is_new() -> None:
    real = sqlite_file._make_sure_it_is_there

    def made(path: str, **more: Any) -> Any:
        if not os.path.exists(path):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path + "-anchor")
        return real(path, **more)

    sqlite_file._make_sure_it_is_there = made


@engine
def unreadable_is_nothing_there() -> None:
    real = sqlite.SqliteStore.read

    def read(self: Any, run: str, after: int = 0, limit: int | None = None) -> Any:
        found = real(self, run, after, limit)
        sealer = seal.Sealer(self.id, run)
        if not after and limit is None and seal.verify(sealer, found.records) < len(found.records):
            return Stored([], None)
        return found

    sqlite.SqliteStore.read = read


@engine
def lost_tail_not_noticed() -> None:
    """The head is not held against the journal, neither on reading nor on writing."""
    real = sqlite.SqliteStore.read

    def read(self: Any, run: str, after: int = 0, limit: int | None = None) -> Any:
        found = real(self, run, after, limit)
        if found.records:
            last = found.records[-1]
            self._commit(lambda: head_set(self, run, last))
            return Stored(found.records, Head(last.seq, last.seal))
        return found

    def head_set(self: Any, run: str, last: Any) -> Any:
        self._execute("UPDATE heads SET seq = ?, seal = ? WHERE run = ?", (last.seq, last.seal, run))
        return None, None, []

    sqlite.SqliteStore.read = read


@engine
def parts_after_record() -> None:
    real = sqlite.SqliteStore._transact

    def transact(self: Any, write: Any) -> Any:
        later: list[Any] = []

        def without_parts() -> Any:
            answer, newest, cuts = write()
            later.extend(cuts)
            return answer, newest, []

        answer = real(self, without_parts)
        if later:
            real(self, lambda: (None, None, later))
        return answer

    sqlite.SqliteStore._transact = transact


@engine
def sweep_without_condition() -> None:
    real = sqlite.SqliteStore._discard
    sqlite.SqliteStore._discard = lambda self, parts, upto: real(self, parts, 1 << 60)


@engine
def prune_without_tombstone() -> None:
    def bury(store: Any, clock: Any, found: Any, **_: Any) -> None:
        def write() -> Any:
            for table in ("entries", "heads", "runs"):
                store._execute(f"DELETE FROM {table} WHERE run = ?", (found.run,))
            store._execute("UPDATE meta SET value = 1000000 WHERE key = 'rewritten'")
            return None, None, []

        store._commit(write)

    tombstones.bury = bury


@engine
def half_a_prune() -> None:
    """The journal goes first, the tombstone follows."""

    def bury(store: Any, clock: Any, found: Any, **_: Any) -> None:
        kind, body, _cuts = seal.checked_body(found.tombstone)
        record = seal.Sealer(store.id, found.run).seal(
            seq=1, epoch=0, at=clock.now(), kind=kind, body=body, previous=seal.GENESIS
        )

        def clear() -> Any:
            store._execute("DELETE FROM entries WHERE run = ?", (found.run,))
            store._execute("UPDATE meta SET value = (SELECT max(pos) + 100 FROM entries) WHERE key = 'rewritten'")
            return None, None, []

        def put() -> Any:
            store._execute("UPDATE heads SET seq = 1, seal = ? WHERE run = ?", (record.seal, found.run))
            return None, store._insert([record]), []

        store._commit(clear)
        store._commit(put)

    tombstones.bury = bury


# --- seals, codecs, values -------------------------------------------------------------------------------------------------


def _sealed_with(change: Callable[[dict[str, Any]], None]) -> None:
    real = seal.Sealer._digest
    names = ("seq", "epoch", "at", "kind", "schema", "codec", "key", "previous", "body")

    def digest(self: Any, *fields: Any) -> bytes:
        given = dict(zip(names, fields, strict=True))
        change(given)
        return real(self, **given)

    seal.Sealer._digest = digest


@engine
def seal_without_run_id() -> None:
    real = seal.Sealer.__init__

    def made(self: Any, store_id: bytes, run: str) -> None:
        real(self, store_id, "")
        self.run = run

    seal.Sealer.__init__ = made


@engine
def seal_without_seq() -> None:
    _sealed_with(lambda given: given.update(seq=0))


@engine
def seal_without_epoch() -> None:
    _sealed_with(lambda given: given.update(epoch=0))


@engine
def seal_without_chain() -> None:
    _sealed_with(lambda given: given.update(previous=bytes(32)))


@engine
def unknown_codec_accepted() -> None:
    real = seal.from_record

    def from_record(record: Any) -> Any:
        return real(replace(record, codec=seal.CODEC_JSON))

    state.from_record = from_record


@engine
def duplicate_keys_accepted() -> None:
    values._refuse_duplicates = lambda data: None


@engine
def secrets_recorded() -> None:
    encoder._TAGGERS[Secret] = lambda walk, value, room: value.reveal()


@engine
def tuple_read_as_a_list() -> None:
    real = values.decode

    def decode(raw: Any) -> Any:
        found = real(raw)
        return list(found) if type(found) is tuple else found

    values.decode = decode


# --- checkpoints -----------------------------------------------------------------------------------------------------------


def _before_the_first_look(act: Callable[[Any], None]) -> None:
    """Done once in a process, to the folder of a checkpoint in files."""
    real = FileShelf.look
    looked: list[Any] = []

    def look(self: Any) -> Any:
        if not looked and os.path.isdir(self.where):
            act(self)
        looked.append(self)
        return real(self)

    FileShelf.look = look


@engine
def checkpoint_begun_anew() -> None:
    _before_the_first_look(lambda shelf: shutil.rmtree(shelf.where))


@engine
def newest_generation_lost() -> None:
    """The newest generation goes, and with it the note that knew of it."""

    def lose(shelf: Any) -> None:
        found = real(shelf)
        for name in (f"{found.newest}.json", _NOTE) if found is not None else ():
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(shelf.where, name))

    real = FileShelf.look
    _before_the_first_look(lose)


@engine
def checkpoint_one_step_back() -> None:
    """What another process saved last is taken for cut off, and nobody is told."""
    real = checkpoint.Checkpoint._newest

    def newest(self: Any, shelf: Any, found: Any) -> Any:
        if len(found.seen) > 1 and found.seen[-1].pid != os.getpid():
            found = replace(found, seen=found.seen[:-1])
        return real(self, shelf, found)

    checkpoint.Checkpoint._newest = newest


# --- keys, checks, policies ----------------------------------------------------------------------------------------------


@engine
def new_key_per_attempt() -> None:
    replay.Replay.key_of = lambda self, address: uuid.uuid4().hex


@engine
def key_without_run_id() -> None:
    replay.idempotency_key = lambda namespace, run, segment, address: idempotency_key(namespace, "", segment, address)


@engine
def key_without_segment() -> None:
    replay.idempotency_key = lambda namespace, run, segment, address: idempotency_key(namespace, run, 0, address)


@engine
def fork_shares_keys() -> None:
    def key(self: Any, address: str) -> str:
        created, run = self._state.created, self._state.run
        namespace, parent = ("", "") if created is None else (created.namespace, created.parent)
        return idempotency_key(namespace, parent or run, self._state.segment, address)

    replay.Replay.key_of = key


def _seen_as(wrong: Callable[[Any], Any]) -> None:
    real = acts.look
    acts.look = lambda attempt: wrong(real(attempt))


@engine
def unknown_is_not_happened() -> None:
    _seen_as(lambda verdict: NotHappened() if isinstance(verdict, Unknown) else verdict)


@engine
def partial_is_done() -> None:
    _seen_as(lambda verdict: Happened(Raw(b"null")) if isinstance(verdict, Partial) else verdict)


@engine
def partial_is_not_happened() -> None:
    _seen_as(lambda verdict: NotHappened() if isinstance(verdict, Partial) else verdict)


@engine
def failing_check_is_a_no() -> None:
    _seen_as(lambda v: NotHappened() if isinstance(v, Unknown) and v.why.startswith("it raised") else v)


@engine
def doubt_is_retried() -> None:
    """Every effect in doubt runs again, whatever its policy says."""
    calls._retries = lambda call: True
    real = calls._in_doubt

    def in_doubt(call: Any, *more: Any) -> Any:
        if call.policy == "ask":
            return None
        return (yield from real(call, *more))

    calls._in_doubt = in_doubt


@engine
def doubt_is_done() -> None:
    """Every effect in doubt counts as done."""
    real = calls._in_doubt

    def in_doubt(call: Any, question: Any, attempt: int, *more: Any) -> Any:
        if call.policy != "ask":
            return (yield from real(call, question, attempt, *more))
        yield Append(EffectSettled(call.address, True, attempt, Raw(b'"?"'), "check"))
        return calls.Done(Raw(b'"?"'))

    calls._in_doubt = in_doubt


@engine
def replay_without_comparison() -> None:
    Arguments.same = lambda *_: True


@engine
def settled_answer_reused() -> None:
    """An answer to one attempt answers the next one, too."""
    real = state._HANDLERS[EffectDoubted]

    def doubted(this: Any, entry: Any, record: Any) -> None:
        real(this, entry, record)
        if (past := this.calls[entry.address]).cleared_by:
            this.calls[entry.address] = replace(past, state=PastState.CLEARED)

    state._HANDLERS[EffectDoubted] = doubted


# --- time, people, maintenance ---------------------------------------------------------------------------------------------


@engine
def timer_armed_again() -> None:
    state._HANDLERS[TimerSet] = lambda this, entry, record: None


@engine
def approval_not_bound() -> None:
    real = questions._answer

    def answer(place: Any, address: str, asked: Any, wanted: Any) -> Any:
        past = place.session.state.calls.get(address)
        if past is not None and past.kind == "question":
            place.session.state.calls[address] = replace(past, shown=asked.shown)
        return (yield from real(place, address, asked, wanted))

    questions._answer = answer


@engine
def second_answer_taken() -> None:
    """A question that was answered can be answered again."""
    real = handle.Run.answer

    def answer(self: Any, *args: Any, **more: Any) -> None:
        real(self, *args, **more)
        real(self, *args, **more)

    decisions.open_question = lambda run, found, address, who: found.calls[address]
    handle.Run.answer = answer


@engine
def approval_reusable() -> None:
    """A yes from before the run was sent back is good for a second execution."""
    real = state._HANDLERS[RunRewound]

    def rewound(this: Any, entry: Any, record: Any) -> None:
        given = {address: past for address, past in this.calls.items() if address.endswith(".approval")}
        real(this, entry, record)
        this.calls.update(given)

    state._HANDLERS[RunRewound] = rewound


@engine
def no_approval_after_a_crash() -> None:
    real = questions.supervises

    def supervises(this: Any, spec: Any, address: str) -> bool:
        return bool(real(this, spec, address)) and this.state.epoch < 2

    questions.supervises = supervises


@engine
def rewind_forgets_effects() -> None:
    real = state._HANDLERS[RunRewound]

    def forgetful(this: Any, entry: Any, record: Any) -> None:
        for address in [address for address, past in this.calls.items() if past.first >= entry.seq]:
            del this.calls[address]
        real(this, entry, record)

    state._HANDLERS[RunRewound] = forgetful


@engine
def cancel_without_undo() -> None:
    saga._compensates = lambda place, error: False


@engine
def blind_stretch_ignored() -> None:
    lost.Blindness.covers = lambda self, address, recorded: False
    losses.suspected = lambda call, attempt: None


@engine
def adopted_without_doubt() -> None:
    real = adoption._fallen_back

    def forgiving(store: Any, found: Any, *more: Any) -> Any:
        item = real(store, found, *more)
        keep = item.records[0].seq - 1
        entry = adoption.FellBack(keep, 0, 0, "nothing was lost", 0)
        after = (keep, found.records[keep - 1].seal)
        record, _ = adoption.Sealer(store.id, item.run).entry(entry, at=0, epoch=found.state.epoch, after=after)
        return adoption.Rewrite(item.run, item.found, item.keep, [record], item.row)

    adoption._fallen_back = forgiving


@engine
def fallback_in_silence() -> None:
    """A damaged run goes on from its valid part as if nothing had been there."""

    def fall_back(store: Any, clock: Any, run: str, **_: Any) -> None:
        found = fallback.examined(store, run)
        keep = found.state.seq
        last = found.records[keep - 1]

        def write() -> Any:
            store._execute("DELETE FROM entries WHERE run = ? AND seq > ?", (run, keep))
            store._execute("UPDATE heads SET seq = ?, seal = ? WHERE run = ?", (keep, last.seal, run))
            store._execute("UPDATE meta SET value = 1000000 WHERE key = 'rewritten'")
            return None, None, []

        store._commit(write)

    fallback.fall_back = fall_back


@engine
def transaction_without_marker() -> None:
    user_sqlite.SqliteWork.mark = lambda self, key, digest, at: None
    user_sqlite.SqliteWork.finish = lambda self, key, value: None
    user_sqlite.SqliteDatabase.find = lambda self, *_: None


@engine
def epoch_not_raised() -> None:
    """Whoever takes a run over writes under the number of the one before."""
    real = journal.Journal.claim

    def claim(self: Any, adopted: Any, created: Any = None) -> Any:
        ticket = real(self, adopted, created)
        if created is None:
            self.epoch -= 1
            ticket.entries = [
                (entry, kind, body, at, epoch - 1, cuts) for entry, kind, body, at, epoch, cuts in ticket.entries
            ]
        return ticket

    journal.Journal.claim = claim


@engine
def living_process_taken_over() -> None:
    claimant.is_driven = lambda runtime, this: driven_here(runtime.store, this.run)


@engine
def fenced_writer_goes_on() -> None:
    """A writer that lost its claim reads what is new and writes behind it."""

    def meet(self: Any, record: Any, tickets: Any) -> None:
        return None

    journal.Journal._meet = meet


@engine
def lost_acknowledgement_retried() -> None:
    """A commit of which nobody heard back is written once more, without a look at what is there."""
    real = commit.Committer._write

    def write(self: Any, batch: Any) -> None:
        real(self, batch)
        failed = [ticket for ticket in batch if isinstance(ticket.error, StoreUnavailable) and ticket.entries]
        if failed:
            self.store = open_store(config.store_url(), create=False)
        for ticket in failed:
            last = self.store.read(ticket.journal.run).records[-1]
            ticket.journal.head = Head(last.seq, last.seal)
            self.store.append([ticket.journal.propose([ticket])])
            ticket.journal.accepted()
            ticket.error = None

    commit.Committer._write = write


# --- found by somebody who tried what the lab would not notice --------------------------------------------------------------


def _begun_with(change: Callable[[Any, str, Any], None]) -> None:
    """What a session knows of a call is changed before it is begun."""
    real = session.Session.begin

    def begin(self: Any, place: Any, spec: Any, *more: Any, **named: Any) -> Any:
        address = f"{place.scope.path}{spec.name}#{place.scope.count(spec.name) + 1}"
        past = self.state.calls.get(address)
        if past is not None:
            change(self, address, past)
        return real(self, place, spec, *more, **named)

    session.Session.begin = begin


@engine
def undo_retried_blindly() -> None:
    """An undo in doubt runs again, whatever its check would say."""
    real = session.effect
    session.effect = lambda call, past: real(replace(call, policy="retry") if "undo" in call.address else call, past)


@engine
def done_effect_repeated() -> None:
    """What may be repeated after a crash is repeated though it is on record."""

    def change(self: Any, address: str, past: Any) -> None:
        if past.kind == "effect" and past.policy == "retry" and past.state is PastState.DONE:
            self.state.calls[address] = replace(past, state=PastState.CLEARED)

    _begun_with(change)


@engine
def failure_forgotten() -> None:
    """A call that failed for good is made again."""

    def change(self: Any, address: str, past: Any) -> None:
        if past.state is PastState.FAILED:
            again = PastState.CLEARED if past.kind == "effect" else PastState.STARTED
            self.state.calls[address] = replace(past, state=again)

    _begun_with(change)


@engine
def fail_is_retried() -> None:
    real = calls._in_doubt

    def in_doubt(call: Any, *more: Any) -> Any:
        if call.policy == "fail":
            return None
        return (yield from real(call, *more))

    calls._in_doubt = in_doubt


@engine
def event_taken_twice() -> None:
    def take(self: Any, name: str) -> Any:
        return next((event for event in self._state.events if event.name == name), None)

    replay.Replay.take_event = take


@engine
def event_ids_not_compared() -> None:
    real = state._HANDLERS[EventSent]

    def sent(this: Any, entry: Any, record: Any) -> None:
        this._event_ids.discard(entry.id)
        real(this, entry, record)

    state._HANDLERS[EventSent] = sent
    state.RunState.has_event = lambda self, event_id: False


@engine
def other_arguments_accepted() -> None:
    start.require_same = lambda *_: None


@engine
def dropped_effect_ignored() -> None:
    conclusion._unsettled = lambda *_: ()


@engine
def failing_store_answers_nothing() -> None:
    """A run whose store fails has the result None."""
    real = start.run_blocking

    def run_blocking(*args: Any) -> Any:
        with contextlib.suppress(StoreUnavailable):
            return real(*args)
        return None

    start.run_blocking = run_blocking
