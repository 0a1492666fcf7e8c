"""Explicit commit points for hand-written loops: `save` a whole state, `load` the newest that can be trusted.

"Nothing was ever saved" and "the saved state cannot be read" are always different answers: the first is None, the
second an exception or, if an older generation is sound, that one and a warning. A save goes after the generation that
this very object last loaded or saved; an object that has not read the newest generation cannot replace it.
"""

from __future__ import annotations

import inspect
import logging
import os
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, Protocol, TypeVar

from msgspec import Struct

from surefoot.core import values
from surefoot.core.cure import Advice, Edit
from surefoot.core.entry import Drift, Sight
from surefoot.core.expectation import UNSEEN, Expectation
from surefoot.core.generation import FEWEST, Saved, Seen, Shelved, Watch, retained
from surefoot.core.parts import Whole
from surefoot.engine.declare import drifts, rehearsal
from surefoot.engine.declare.drifts import OnDrift
from surefoot.engine.declare.plan import check_id
from surefoot.engine.operate.handle import whoami
from surefoot.engine.process.clock import SystemClock
from surefoot.engine.process.config import loud, runtime, store_url
from surefoot.errors import (
    CodecMissing,
    CorruptCheckpoint,
    Damaged,
    Drifted,
    Fenced,
    JournalCorrupt,
    NotFound,
    SchemaMismatch,
    UsageError,
    ValueRejected,
)
from surefoot.store.bucket import is_bucket
from surefoot.store.contract import RESERVED
from surefoot.store.generation_bucket import BucketShelf
from surefoot.store.generation_files import FileShelf, folder_of
from surefoot.store.generation_journal import JournalShelf
from surefoot.store.open import shown

log: Final = logging.getLogger("surefoot")

Migration = TypeVar("Migration", bound=Callable[[Any], Any])


class Witness(Protocol):
    """Something outside that can be observed."""

    @property
    def name(self) -> str: ...

    def fingerprint(self) -> dict[str, str]:
        """The present state: part -> hash."""


class Generation(Struct, frozen=True):
    """One complete saved state, as `Checkpoint.generations` finds it."""

    number: int
    at: datetime | None
    """When it was saved; None if that cannot be read."""
    size: int
    """Bytes of the state in its stored form."""
    writer: str
    schema: int
    valid: bool
    """Whether it can be trusted: its seal holds and its whole state was read."""
    why: str = ""
    """Why it cannot be trusted."""
    watch: Watch = {}
    accepted_by: str = ""
    """Who accepted the world as found then; empty for a state that was saved."""
    note: str = ""


class Prepared(Protocol):
    @property
    def number(self) -> int: ...

    @property
    def mark(self) -> bytes: ...


class Shelf(Protocol):
    """Where the generations of one checkpoint are kept: in a journal, or as files."""

    where: str

    def held(self) -> AbstractContextManager[None]: ...

    def look(self) -> Shelved | None: ...

    def state(self, seen: Seen) -> bytes: ...

    def check(self, seen: Seen) -> None: ...

    def adopted_since(self, found: Shelved | None) -> bool: ...

    def prepare(self, found: Shelved | None, new: Saved, kept: Sequence[Seen] | None) -> Any: ...

    def write(self, prepared: Any) -> bool: ...


class Checkpoint:
    """Saved states under one name: sealed generations, of which the newest sound one counts.

        ckpt = sf.Checkpoint("nightly-42")
        state = ckpt.load() or {"done": 0}
        for item in items[state["done"]:]:
            ...
            state["done"] += 1
            ckpt.save(state)

    `schema` is the version of the state's shape; older states go through the functions registered with
    `migration`. At least `keep` generations are kept. `store` is a store's URL, `file:///folder` for plain files, or `s3://bucket/prefix`.
    `on_drift` says what `load` does if the witnesses given to `save` see something else now: `"stop"`, `"warn"`,
    `"accept"`, or a function that is given the differences and answers with one of these.
    """

    def __init__(
        self, name: str, *, schema: int = 1, keep: int = FEWEST, store: str | None = None, on_drift: OnDrift = "stop"
    ) -> None:
        _check_name(name)
        if type(schema) is not int or not 1 <= schema < 2**31:
            raise UsageError(
                f"checkpoint {name}: schema={schema!r}: the version of a state is a number from 1 upwards."
            )
        if type(keep) is not int or keep < FEWEST:
            raise UsageError(
                f"checkpoint {name}: keep={keep!r}: at least {FEWEST} generations are kept, so that a damaged one can "
                "be stepped back from."
            )
        self.name = name
        self.schema = schema
        self.keep = keep
        self._store = store
        self._on_drift = drifts.checked_on_drift(on_drift)
        self._witnesses: dict[str, Any] = {}
        """The witnesses given to this object, by name: some can be observed by their own code only."""
        self._migrations: dict[int, Callable[[Any], Any]] = {}
        self._clock = SystemClock()
        self._lock = threading.Lock()
        self._known: bytes | None = None
        """The history that we last loaded or saved; None: none is known, and none is expected."""
        self._tried: bytes | None = None
        """A save of ours that broke off: it is unknown whether it was written."""
        self._whole = Whole()
        self._in_bucket: BucketShelf | None = None
        """It knows what was saved last, so a save reads nothing that it wrote itself."""

    def __repr__(self) -> str:
        return f"Checkpoint({self.name!r}, schema={self.schema}, keep={self.keep}, store={shown(store_url(self._store))!r})"

    def migration(self, schema: int) -> Callable[[Migration], Migration]:
        """Register the function that turns a state of that schema into one of the next: it returns the new state."""
        if type(schema) is not int or not 1 <= schema < self.schema:
            raise UsageError(
                f"checkpoint {self.name}: migration({schema!r}) leads to no schema that is used: migrations start "
                f"from 1 and end at schema={self.schema}."
            )

        def add(fn: Migration) -> Migration:
            if inspect.iscoroutinefunction(fn):
                raise UsageError(f"checkpoint {self.name}: a migration is a plain function of the state.")
            if schema in self._migrations:
                raise UsageError(f"checkpoint {self.name}: there are two migrations from schema {schema}.")
            self._migrations[schema] = fn
            return fn

        return add

    # --- loading -----------------------------------------------------------------------------------------

    def load(self, *, watch: Iterable[Witness] = ()) -> Any:
        """The newest state that can be trusted. None only if nothing was ever saved.

        Stepping back over a damaged generation is a warning on the logger `surefoot`; if none is sound,
        `CorruptCheckpoint`. `Drifted` if the world is not as it was when the state was saved; `watch` names
        witnesses that only your code can look at.
        """
        with self._lock:
            self._know(watch)
            self._known = self._tried = None  # after a failed load nothing is known
            shelf = self._shelf(create=False)
            found = None if shelf is None else self._look(shelf)
            if shelf is None:
                return None
            if found is None:
                self._tell_if_adopted(shelf)
                return None
            one, state = self._newest(shelf, found)
            self._verify(one)
            self._known = found.mark
            return self._migrated(state, one)

    def _newest(self, shelf: Shelf, found: Shelved) -> tuple[Seen, Any]:
        """The newest generation that can be trusted, and its state as it was saved."""
        passed: list[tuple[int, str]] = []
        for one in reversed(found.seen):
            if one.unknown is not None:
                raise one.unknown
            why = one.why
            if not why:
                try:
                    raw = shelf.state(one)
                    self._require_path(one)
                    state = values.decode(raw)
                except CodecMissing:
                    raise
                except Damaged as error:
                    why = f"is damaged: {_brief(error)}"
                else:
                    self._tell(shelf, found, one, passed)
                    return one, state
            passed.append((one.number, why))
        raise self._unreadable(shelf, found, passed)

    # --- the world ---------------------------------------------------------------------------------------

    def _know(self, witnesses: Iterable[Witness]) -> None:
        self._witnesses.update((witness.name, witness) for witness in checked_witnesses(self.name, witnesses))

    def _findings(self, one: Seen) -> drifts.Findings:
        """The present observations of a generation's witnesses."""
        expected = Expectation()
        sights = [Sight(name, parts, one.specs.get(name, {})) for name, parts in one.watch.items()]
        expected.see(sights, f"generation {one.number}", 0)
        return drifts.look(expected, [known for name, known in self._witnesses.items() if name in one.watch])

    def _verify(self, one: Seen) -> None:
        """Check that the world is as it was when this state was saved, or that a difference is allowed."""
        drift = self._findings(one).drift if one.watch else []
        if not drift:
            return
        verdict = drifts.verdict(drift, self._on_drift)
        told = "\n  ".join(found.line() for found in drift[: drifts.SHOWN])
        message = (
            f"checkpoint {self.name}: the world is not as it was when generation {one.number} was saved.\n  {told}"
        )
        if verdict == drifts.STOP:
            raise Drifted(
                message,
                drift=drifts.found_here(drift),
                cures=(
                    Advice("it is all right?", 'ckpt.accept_drift(note="why"), then load() again'),
                    Advice("it is not?", "put it back as it was, then load() again"),
                ),
            )
        if verdict == drifts.WARN:
            self._loud(message.partition(": ")[2])

    def accept_drift(self, witness: str | None = None, *, by: str | None = None, note: str = "") -> list[str]:
        """Accept the world as it is found now, for this witness or for all that have drifted. What was accepted.

        It is on record as a generation of its own, with the same state.
        """
        rehearsal.would_do("checkpoint", self.name)
        with self._lock:
            shelf = self._shelf(create=False)
            if shelf is None or (found := self._look(shelf)) is None:
                raise UsageError(f"checkpoint {self.name}: nothing was ever saved, so nothing has drifted.")
            loaded = self._known == found.mark
            with shelf.held():
                accepted = self._accept(shelf, self._look(shelf) or found, witness, by or whoami(), note)
            if not loaded:
                self._known = None  # This object has not read that state yet.
        return accepted

    def _accept(self, shelf: Shelf, found: Shelved, witness: str | None, by: str, note: str) -> list[str]:
        one, _ = self._newest(shelf, found)
        findings = self._findings(one)
        accepted = self._acceptable(findings.drift, witness)
        seen = {sight.witness: sight.parts for sight in findings.sights if sight.witness in accepted}
        new = Saved(
            one.schema, self._clock.now(), os.uname().nodename, os.getpid(), {**one.watch, **seen},
            bytes(shelf.state(one)), one.specs, by, note,
        )  # fmt: skip
        self._write(shelf, found, new)
        return sorted(accepted)

    def _acceptable(self, drift: list[Drift], witness: str | None) -> set[str]:
        names = {found.witness for found in drift}
        if not names or witness not in (None, *names):
            listed = ", ".join(sorted(names)) or "nothing"
            raise UsageError(f"checkpoint {self.name}: {witness or 'nothing'} has not drifted. Drifted: {listed}.")
        wanted = names if witness is None else {witness}
        for found in drift:
            if found.what == UNSEEN and found.witness in wanted:
                raise UsageError(f"checkpoint {self.name}: what cannot be observed cannot be accepted: {found.line()}")
        return wanted

    def _tell(self, shelf: Shelf, found: Shelved, used: Seen, passed: list[tuple[int, str]]) -> None:
        """Report what was wrong before the sound state is used."""
        behind = f"generation {used.number}, saved {_moment(used.at)} by {_writer(used)}"
        if shelf.adopted_since(found):
            log.warning(
                "checkpoint %s: fell back to an older state: %s was adopted after it was saved, so newer generations "
                "may be lost. Going on from %s.",
                self.name, shelf.where, behind,
            )  # fmt: skip
        if found.doubt:
            self._loud(f"{found.doubt}, so whether a newer generation was lost cannot be told. Going on from {behind}.")
        if passed:
            steps = f"from generation {passed[0][0]} to {used.number}"
            self._loud(f"fell back {steps}: {_listed(passed)}. Going on from {behind}.")
        older = [(one.number, one.why) for one in found.seen if one.why and one.number < used.number]
        if older:
            log.warning("checkpoint %s: %s. Going on from %s, which is sound.", self.name, _listed(older), behind)

    def _tell_if_adopted(self, shelf: Shelf) -> None:
        """There is no generation. In a store that lost records, that does not mean that nothing was ever saved."""
        if shelf.adopted_since(None):
            log.warning(
                "checkpoint %s: there is nothing under this name, but %s was adopted when it had lost records: whatever "
                "was saved here since that older state is gone. Starting afresh.",
                self.name, shelf.where,
            )  # fmt: skip

    def _require_path(self, one: Seen) -> None:
        """Check that migrations lead from the stored schema to ours, before anything is decoded."""
        if one.schema > self.schema:
            raise SchemaMismatch(
                f"checkpoint {self.name}: generation {one.number} has schema {one.schema}, newer than the code's "
                f"schema={self.schema}. It was saved {_moment(one.at)} by {_writer(one)}.",
                facts={"checkpoint": self.name, "stored": one.schema, "code": self.schema},
                cures=(Advice("older code?", "use the code that saved it"),),
            )
        missing = [schema for schema in range(one.schema, self.schema) if schema not in self._migrations]
        if missing:
            raise SchemaMismatch(
                f"checkpoint {self.name}: generation {one.number} has schema {one.schema}, the code has "
                f"schema={self.schema}, and there is no migration from {', '.join(map(str, missing))}.",
                facts={"checkpoint": self.name, "stored": one.schema, "code": self.schema, "missing": missing},
                cures=tuple(Edit("write", f"@checkpoint.migration({schema})") for schema in missing),
            )

    def _migrated(self, state: Any, one: Seen) -> Any:
        for schema in range(one.schema, self.schema):
            try:
                state = self._migrations[schema](state)
            except Exception as error:
                raise self._misled(one, schema, f"raised {type(error).__name__}: {error}") from error
            if state is None:
                raise self._misled(one, schema, "returned None; it has to return the new state")
        return state

    def _misled(self, one: Seen, schema: int, why: str) -> SchemaMismatch:
        return SchemaMismatch(
            f"checkpoint {self.name}: generation {one.number} could not be migrated: the migration from schema "
            f"{schema} {why}. What is stored was not changed.",
            facts={"checkpoint": self.name, "stored": one.schema, "code": self.schema, "migration": schema},
            cures=(Advice("mend", f"the function under @checkpoint.migration({schema})"),),
        )

    # --- saving ------------------------------------------------------------------------------------------

    def save(self, state: Any, *, watch: Iterable[Witness] = ()) -> int:
        """Save a state as the next generation and return its number: durable, and read back, on return.

        `Fenced` if somebody else saved since this object last loaded or saved. An object that did neither expects
        that nothing is there: load first, even if only to start over.
        """
        return self.keep_encoded(self.encoded(state), checked_witnesses(self.name, watch))

    def encoded(self, state: Any) -> bytes:
        if state is None:
            raise ValueRejected(
                f"checkpoint {self.name}: None cannot be a state: load() says None for 'nothing was ever saved'. "
                "Save an empty dict."
            )
        return values.encode(state)

    def keep_encoded(self, raw: bytes, witnesses: list[Witness]) -> int:
        rehearsal.would_do("checkpoint", self.name)
        watch = {each.name: _checked_fingerprint(self.name, each.name, each.fingerprint()) for each in witnesses}
        specs = {each.name: dict(spec) for each in witnesses if (spec := getattr(each, "spec", {}))}
        new = Saved(self.schema, self._clock.now(), os.uname().nodename, os.getpid(), watch, raw, specs)
        with self._lock:
            self._know(witnesses)
            shelf = self._shelf(create=self._known is None)
            if shelf is None:
                raise self._vanished(shown(store_url(self._store)))
            with shelf.held():
                found = self._look(shelf)
                self._require_ours(shelf, found)
                if found is None:
                    self._tell_if_adopted(shelf)
                number = self._write(shelf, found, new)
        if found is not None:
            self._tell_quarantined(found)
        return number

    def _write(self, shelf: Shelf, found: Shelved | None, new: Saved) -> int:
        kept = None if found is None else retained(found.seen, self.keep, partial(_fault, shelf))
        prepared: Prepared = shelf.prepare(found, new, kept)
        self._tried = prepared.mark
        if not shelf.write(prepared):
            self._tried = None
            raise self._fenced(shelf.look())
        self._known, self._tried = prepared.mark, None
        return prepared.number

    def _require_ours(self, shelf: Shelf, found: Shelved | None) -> None:
        """Check that the stored history is the one that we know."""
        if found is None:
            if self._known is not None:
                raise self._vanished(shelf.where)
            return
        for one in found.seen:
            if one.unknown is not None:
                raise one.unknown
        if found.mark in (self._known, self._tried):
            return
        if not any(one.sound for one in found.seen):
            raise self._unreadable(shelf, found, [(one.number, one.why) for one in reversed(found.seen)])
        raise self._fenced(found)

    def _tell_quarantined(self, found: Shelved) -> None:
        bad = [(one.number, one.why) for one in found.seen if one.why]
        if bad:
            self._loud(f"quarantined what is left of damaged generations: {_listed(bad)}.")

    def _loud(self, what: str) -> None:
        loud(f"checkpoint {self.name}: {what}", kind="checkpoint")

    # --- looking -----------------------------------------------------------------------------------------

    def generations(self) -> list[Generation]:
        """What there is, the oldest first, each read whole: damaged ones and lost ones with what is wrong."""
        with self._lock:
            shelf = self._shelf(create=False)
            found = None if shelf is None else self._look(shelf)
            if shelf is None or found is None:
                return []
            if not found.seen:
                raise self._unreadable(shelf, found, [])
            return [_shown(one, _fault(shelf, one)) for one in found.seen]

    def _shelf(self, *, create: bool) -> Shelf | None:
        """The place of the generations. None: there is no such store, and reading does not make one."""
        url = store_url(self._store)
        if url[:5].lower() == "file:":
            return FileShelf(folder_of(url), self.name)
        if is_bucket(url):
            self._in_bucket = self._in_bucket or BucketShelf(url, self.name)
            return self._in_bucket
        try:
            return JournalShelf(runtime(url, create=create).store, self.name, self._whole)
        except NotFound:
            return None

    def _look(self, shelf: Shelf) -> Shelved | None:
        try:
            return shelf.look()
        except JournalCorrupt as error:
            why = f"its generations in {shelf.where} cannot be read: {_brief(error)}"
            raise self._corrupt(shelf.where, why) from error

    # --- refusing ----------------------------------------------------------------------------------------

    def _unreadable(self, shelf: Shelf, found: Shelved, passed: list[tuple[int, str]]) -> CorruptCheckpoint:
        what = _listed(passed) if passed else found.doubt
        why = f"something was saved in {shelf.where}, but no generation of it can be trusted: {what}. Nothing was changed."
        return self._corrupt(shelf.where, why, generations={str(number): fault for number, fault in passed})

    def _vanished(self, where: str) -> CorruptCheckpoint:
        why = f"what this process loaded or saved is gone: {where} has nothing under this name. Nothing was written."
        return self._corrupt(where, why)

    def _corrupt(self, where: str, why: str, **facts: Any) -> CorruptCheckpoint:
        return CorruptCheckpoint(
            f"checkpoint {self.name}: {why}",
            facts={"checkpoint": self.name, **facts},
            cures=(
                Advice("a copy?", f"put {where} back from it"),
                Advice("start over?", "use another name; this one stays as it is"),
            ),
        )

    def _fenced(self, found: Shelved | None) -> Fenced:
        newest = found.seen[-1] if found is not None and found.seen else None
        there = "nothing" if newest is None else f"generation {newest.number}, saved by {_writer(newest)}"
        if self._known is None:
            return Fenced(
                f"checkpoint {self.name}: there is {there} already, which this object has not loaded. Nothing was "
                "written. Call load() first: it shows what the new state would replace."
            )
        return Fenced(
            f"checkpoint {self.name}: there is {there}: somebody else saved since this object last loaded or saved. "
            "Nothing was written. If two processes work on the same task, end one; else load() and go on from there."
        )


def checked_witnesses(name: str, witnesses: Iterable[Witness]) -> list[Witness]:
    """The witnesses in watch=, checked: each has a name of its own."""
    found: dict[str, Witness] = {}
    try:
        todo = list(witnesses)
    except TypeError:
        raise _no_witness(name, witnesses) from None
    for witness in todo:
        called = getattr(witness, "name", None)
        look = getattr(witness, "fingerprint", None)
        if isinstance(witness, type) or not isinstance(called, str) or not called or not callable(look):
            raise _no_witness(name, witness)
        if called.startswith(RESERVED):
            raise UsageError(f"checkpoint {name}: the name of witness {called!r} begins with a control character.")
        if called in found:
            raise UsageError(f"checkpoint {name}: two witnesses are called {called!r}.")
        found[called] = witness
    return list(found.values())


def _checked_fingerprint(name: str, witness: str, found: object) -> dict[str, str]:
    if not isinstance(found, dict) or not all(type(k) is str and type(v) is str for k, v in found.items()):
        raise UsageError(f"checkpoint {name}: the fingerprint of witness {witness!r} is no dict of texts.")
    return dict(found)


def _no_witness(name: str, given: object) -> UsageError:
    return UsageError(
        f"checkpoint {name}: watch= takes a list of witnesses (a name, and a fingerprint() that returns part -> hash), "
        f"not {type(given).__name__}."
    )


def _check_name(name: object) -> None:
    try:
        check_id(name)
    except UsageError as error:
        raise UsageError(f"Checkpoint({name!r}): a name follows the rules of run ids: {error}") from None


def _fault(shelf: Shelf, one: Seen) -> str:
    """What is wrong with a generation, read again and whole."""
    if not one.sound:
        return one.why or str(one.unknown)
    try:
        shelf.check(one)
    except Damaged as error:
        return f"is damaged: {_brief(error)}"
    return ""


def _shown(one: Seen, why: str) -> Generation:
    at, writer = (_when(one.at), _writer(one)) if one.sound else (None, "")
    return Generation(one.number, at, one.size, writer, one.schema, not why, why, one.watch, one.by, one.note)


def _listed(faults: Iterable[tuple[int, str]]) -> str:
    return "; ".join(f"generation {number} {why}" for number, why in faults)


def _brief(error: Damaged) -> str:
    """The first line of an error, without internal names."""
    return "".join(char if char.isprintable() else " " for char in error.summary).rstrip(".")


def _writer(one: Seen) -> str:
    host = one.host if one.host.isprintable() else ascii(one.host)
    return f"pid {one.pid} on host {host}" if host else "somebody"


def _when(at: int) -> datetime | None:
    try:
        return datetime.fromtimestamp(at / 1e6, UTC)
    except (OverflowError, ValueError, OSError):
        return None


def _moment(at: int) -> str:
    when = _when(at)
    return "at an unknown time" if when is None else when.isoformat(" ", "seconds")
