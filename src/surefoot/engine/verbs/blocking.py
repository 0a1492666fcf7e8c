"""The verbs of blocking code inside a run. Those that do not wait serve async code too (`aio.py`)."""

from __future__ import annotations

import contextvars
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Literal, NoReturn, TypeVar, Unpack, overload

from surefoot.core import values
from surefoot.core.address import escape
from surefoot.core.choice import OnError, OnTimeout
from surefoot.core.code_changes import changed, other_event
from surefoot.core.command import Append, Pause, Routine, Verify
from surefoot.core.cure import Advice
from surefoot.core.entry import (
    Due,
    EventTaken,
    Progressed,
    Published,
    Stop,
    TimerFired,
    TimerSet,
    ValueNoted,
    WaitExpired,
    WaitStarted,
)
from surefoot.core.history import PastQuestion, PastState, PastTimer, PastWait
from surefoot.core.timer import Duration, after, remaining, seconds, until
from surefoot.engine.declare import current, drifts, lines
from surefoot.engine.declare.context import Context
from surefoot.engine.declare.current import Place
from surefoot.engine.declare.drifts import looked_around
from surefoot.engine.declare.signals import ContinueSignal
from surefoot.engine.drive.perform import run, verb
from surefoot.engine.session import moved, questions
from surefoot.engine.session.frame import Frame
from surefoot.engine.session.questions import Decision
from surefoot.engine.verbs import branches
from surefoot.engine.verbs.branches import Ends, MapOptions, MapResult
from surefoot.engine.verbs.tally import Tally
from surefoot.errors import UsageError

T = TypeVar("T")
R = TypeVar("R")

# -- about the call at hand -------------------------------------------------------------------------


def key() -> str:
    """The idempotency key of the effect being executed: the same over attempts, resumes and workers."""
    place = current.require_place("key")
    if place.inside is None or place.inside.kind not in ("effect", "check"):
        raise UsageError("sf.key() belongs to an effect: call it inside one, or inside its check or undo")
    return place.inside.key


def run_id() -> str:
    """The id of the run this code is part of."""
    return str(current.require_place("run_id").session.run)


def attempt() -> int:
    """Which attempt of the step or effect this is, counted from 1 over all crashes."""
    place = current.require_place("attempt")
    if place.inside is None:
        raise UsageError("sf.attempt() belongs to a step or an effect: call it inside one")
    return place.inside.attempt


@contextmanager
def outside() -> Iterator[None]:
    """Calls in this block are no part of any run: "I mean it"."""
    token = current.set_place(current.OUTSIDE)
    try:
        yield
    finally:
        current.reset(token)


# -- recorded values -----------------------------------------------------------------------------------


def _noted(verb: str, name: str | None, make: Callable[[Context], object]) -> Any:
    place = current.require_branch(verb)
    session = place.session
    return session.note(place, pinned(verb, name), lambda: make(session), ValueNoted)


def pinned(verb: str, name: str | None) -> str:
    """What a verb without arguments is called on record: its own name tells it from others, else only its number."""
    if name is None:
        return verb
    if not name or "/" in name:
        raise UsageError(f"sf.{verb}(name={name!r:.40}): a name has at least one character, and no slash")
    return f"{verb}({escape(name)})"


def now(*, name: str | None = None) -> datetime:
    """The time, recorded: replay gets the same. `name` pins it: it keeps its value also if others are put in front of it."""
    return _noted("now", name, lambda session: datetime.fromtimestamp(session.clock.now() / 1e6, UTC))  # type: ignore[no-any-return]


def random(*, name: str | None = None) -> float:
    """A number from 0 to 1, recorded. `name` pins it, as in `sf.now`."""
    return _noted("random", name, lambda session: session.clock.random())  # type: ignore[no-any-return]


def uuid4(*, name: str | None = None) -> uuid.UUID:
    """A random id, recorded. `name` pins it, as in `sf.now`."""
    return _noted("uuid4", name, lambda session: session.clock.uuid4())  # type: ignore[no-any-return]


def patched(change: str) -> bool:
    """Whether this run takes the new way: false for one that had passed here with the old code.

    The first answer for a name holds for the whole run, in loops and branches too; after `sf.continue_as_new`, anew.
    """
    place = current.require_branch("patched")
    session = place.session
    name = f"patched({change})"
    found = session.note(place, name, lambda: session.replay.takes_new_way(name, session.decoded), ValueNoted)
    return bool(found)


def progress(done: float, total: float | None = None, note: str = "") -> None:
    """Tell people how far the run is. Costs no write of its own."""
    place = current.require_place("progress")
    told = place.session.mask(note) if place.session.mask else note
    if place.inside is None:
        place.session.note(place, "progress", lambda: None, lambda address, _: Progressed(address, done, total, told))


def publish(name: str, value: object) -> None:
    """Let others see a value of the run while it goes on."""
    place = current.require_branch("publish")
    mask = place.session.mask
    place.session.note(
        place, "publish", lambda: value, lambda address, raw: Published(address, mask(name), values.masked(raw, mask))
    )


# -- scopes and branches ------------------------------------------------------------------------------


@contextmanager
def scope(label: str, *, was: str | None = None) -> Iterator[None]:
    """Calls in this block are counted under a name of their own: `[label]/write#1`.

    The label belongs to the task, thread or branch that opens it first: it may open it again, any other is refused.
    `was` is the label it had before; with `was=""` its calls were made in the scope around it.
    """
    with lines.entered(lines.opened(current.require_branch("scope"), str(label), None if was is None else str(was))):
        yield


def gather(*thunks: Callable[[], Any], was: str | None = None) -> list[Any]:
    """Run functions without arguments side by side, each in a branch of its own. Results in order.

    `was=""` says that their calls were made one after the other before, in the scope around it.
    """
    place = _branching("gather")
    for thunk in thunks:
        if not callable(thunk):
            raise place.session.stops.misused(
                UsageError(
                    "sf.gather takes functions: sf.gather(lambda: a(1), lambda: b(2)); in async code use surefoot.aio"
                )
            )
    scopes = branches.gather_scopes(place, len(thunks), was)
    ends = _side_by_side(Ends(place, scopes), list(thunks), len(thunks))
    ends.raise_first()
    return ends.values


@overload
def map(  # noqa: A001 - the settled public name
    fn: Callable[[T], R], items: Iterable[T], *, on_error: Literal["raise"] = ..., **options: Unpack[MapOptions[T]]
) -> list[R]: ...
@overload
def map(  # noqa: A001 - the settled public name
    fn: Callable[[T], R], items: Iterable[T], *, on_error: Literal["collect"], **options: Unpack[MapOptions[T]]
) -> MapResult[R]: ...
def map(  # noqa: A001 - the settled public name
    fn: Callable[[T], R],
    items: Iterable[T],
    *,
    key: Callable[[T], object] | None = None,
    concurrency: int | None = None,
    on_error: OnError = "raise",
    was: branches.Was = None,
) -> list[R] | MapResult[R]:
    """Call `fn` for each item, some side by side, each in a branch of its own. Results in order.

    `was` is the key function it had before, or `""` where the items were gone through in a plain loop.
    """
    place = _branching("map")
    width = branches.checked_width(concurrency, on_error)
    todo = list(items)
    scopes, names = branches.map_scopes(place, todo, key, was)
    ends = Ends(place, scopes, Tally(place.session, len(todo)))
    ends = _side_by_side(ends, [lambda item=item: fn(item) for item in todo], width)  # type: ignore[misc]
    return branches.collected(ends, names, on_error)  # type: ignore[no-any-return]


def _branching(verb: str) -> Place:
    place = current.require_blocking(verb)
    place.session.enter_verb(place)
    return place


def _side_by_side(ends: Ends, thunks: list[Callable[[], Any]], width: int) -> Ends:
    numbers = iter(range(len(thunks)))
    taking = threading.Lock()

    def work() -> None:
        while True:
            with taking:
                index = next(numbers, None)
            if index is None:
                return
            with ends.branch(index, threading.get_ident()):
                ends.values[index] = thunks[index]()

    threads = [
        threading.Thread(target=contextvars.copy_context().run, args=(work,), name="surefoot-branch", daemon=True)
        for _ in range(min(width, len(thunks)))
    ]
    try:
        _run_all(ends.place.session, threads)
    finally:
        ends.close()
    ends.place.line.join()
    ends.join()
    return ends


def _run_all(session: Context, threads: list[threading.Thread]) -> None:
    """Start and wait for all. Interrupted: no branch begins another call, but those in flight are let finish."""
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    except BaseException as error:
        # No user code runs in this thread here, so it is an interruption even where the standard library turns
        # Ctrl-C into an error of its own (a lock in Thread.start that was not taken yet).
        session.stops.cut_off(error)
        for thread in threads:
            if thread.ident is not None:
                thread.join()
        raise


# -- waiting: the logic once, as generators ------------------------------------------------------------


def sleeping(place: Place, called: str, make_due: Callable[[Context], Due]) -> Routine[Any]:
    session = place.session
    session.enter_verb(place)
    address, past = session.recall(place, called)
    if past is not None:
        if not isinstance(past, PastTimer):
            raise session.stops.stopped(place, changed(session.run, address, f"a {past.kind}", "sf.sleep()"))
        if past.state is PastState.DONE:
            return
    session.stops.would_do("sleep", address)
    due = past.due if past is not None else None
    if due is None:
        due = make_due(session)
        yield Append(TimerSet(address, due))
    begun = session.now()
    yield Pause(due)
    session.record(TimerFired(address))
    yield from looked_around(place, begun)


def waiting_for_event(place: Place, name: str, timeout: Duration | None) -> Routine[Any]:
    session = place.session
    session.enter_verb(place)
    address, past = session.recall(place, "wait_event", lambda past: isinstance(past, PastWait) and past.name == name)
    due: Due | None
    if past is None:
        require_no_secret(session, name)
        session.stops.would_do("wait_event", address)
        due = None if timeout is None else after(session.now(), seconds(timeout))
        yield Append(WaitStarted(address, name, due))
    else:
        if not isinstance(past, PastWait):
            raise session.stops.stopped(
                place, changed(session.run, address, f"a {past.kind}", f"waiting for event {name!r}")
            )
        due = past.due
        if past.name != name and session.replay.matcher.words.keeps(past, values.digest(name)):
            name = past.name
        elif past.name != name:
            if past.state is not PastState.OPEN or session.state.event_for(past.name) is not None:
                raise session.stops.stopped(place, other_event(session.run, past, name))
            # Nothing has come: it is waited for by its new name, as long as the code says now.
            require_no_secret(session, name)
            due = None if timeout is None else after(session.now(), seconds(timeout))
            if not session.dry:
                yield Append(WaitStarted(address, name, due))
        if past.state is PastState.DONE and past.value is not None:
            return past.value
        if past.state is PastState.FAILED:
            raise _expired(name)
    begun = session.now()
    patience = after(begun, session.wait_seconds)
    while True:
        event = session.replay.take_event(name)
        if event is not None:
            session.stops.would_do("wait_event", address)
            session.record(EventTaken(address, event.id))
            yield from looked_around(place, begun)
            return event.value
        if due is not None and remaining(due, session.now()) <= 0:
            session.stops.would_do("wait_event", address)
            yield Append(WaitExpired(address))
            yield from looked_around(place, begun)
            raise _expired(name)
        if remaining(patience, session.now()) <= 0:
            raise session.stops.stopped(place, _waiting(session.run, address, name), due)
        questions.tell_waiting(session, _waiting(session.run, address, name))
        yield Pause(after(session.now(), min(session.wait_seconds, 0.25)))


def require_no_secret(session: Context, name: str) -> None:
    """Not masked: an event is known by its name, and two secrets would become one name."""
    if session.mask and (shown := session.mask(name)) != name:
        raise session.stops.misused(
            UsageError(
                f"run {session.run}: the event {shown!r} has a secret in its name, which would be recorded and shown. Take "
                "another name that both sides know, for example a digest of it (hashlib.sha256)."
            )
        )


def _expired(name: str) -> TimeoutError:
    return TimeoutError(f"no event {name!r} came in time")


def _waiting(run: str, address: str, name: str) -> Stop:
    message = f"run {run}, {address}: waiting for event {name!r}."
    send = f'sf.send_event("{run}", "{name}", value), then run it again'
    return Stop("WaitingForAnswer", message, address, {"event": name}, (Advice("send it:", send),))


def sleep(duration: Duration, *, name: str | None = None) -> None:
    """Sleep; the deadline is recorded, so a crash does not start the wait again. `name` pins it, as in `sf.now`."""
    wait_seconds, called = seconds(duration), pinned("sleep", name)
    place = current.require_blocking("sleep")
    verb(place, sleeping(place, called, lambda session: after(session.now(), wait_seconds)))


def sleep_until(moment: datetime, *, name: str | None = None) -> None:
    """Sleep until a moment of the wall clock. `name` pins it, as in `sf.now`."""
    wall, called = wall_micros(moment), pinned("sleep", name)
    place = current.require_blocking("sleep_until")
    verb(place, sleeping(place, called, lambda session: until(session.now(), wall)))


def wall_micros(moment: datetime) -> int:
    if moment.tzinfo is None:
        raise UsageError("sf.sleep_until needs a datetime with a time zone, e.g. datetime(..., tzinfo=UTC)")
    return round(moment.timestamp() * 1_000_000)


def wait_event(name: str, timeout: Duration | None = None) -> Any:
    """Wait for `sf.send_event(run_id, name, value)`. TimeoutError once `timeout` has passed."""
    place = current.require_blocking("wait_event")
    raw = verb(place, waiting_for_event(place, name, timeout))
    return place.session.decoded(raw)


# -- going on ------------------------------------------------------------------------------------------


def continue_as_new(*args: Any, **kwargs: Any) -> NoReturn:
    """End this segment of the run and start the next with these arguments; history begins anew."""
    place = current.require_branch("continue_as_new")
    place.session.enter_verb(place)
    place.session.stops.meet_cancel(place, None)
    if place.scope.path:
        raise place.misused(
            f"sf.continue_as_new() inside {place.scope.path.rstrip('/')}: "
            "call it from the workflow itself, outside of scopes and branches"
        )
    raise place.session.stops.continuing(place, ContinueSignal(args, kwargs))


# -- people ---------------------------------------------------------------------------------------------


def approve(
    question: str,
    *,
    details: object = None,
    by: str | Sequence[str] | None = None,
    timeout: Duration | None = None,
    on_timeout: OnTimeout = "deny",
) -> Decision:
    """Ask a person for a yes or a no. The run stands still until then; the process may end."""
    questions.checked_on_timeout(on_timeout)
    current.require_blocking("approve")
    place, address, asked = asked_for("approve", question, details, by, timeout)
    past = verb(place, questions.asking(place, address, asked))
    return questions.decision(place.session, past, on_timeout, address)


@overload
def ask(
    question: str, *, type: type[T], details: object = ..., by: str | Sequence[str] | None = ...,
    timeout: Duration | None = ...,
) -> T: ...  # fmt: skip
@overload
def ask(
    question: str, *, details: object = ..., by: str | Sequence[str] | None = ..., timeout: Duration | None = ...
) -> Any: ...
def ask(
    question: str,
    *,
    type: Any = None,  # noqa: A002 - the settled public name
    details: object = None,
    by: str | Sequence[str] | None = None,
    timeout: Duration | None = None,
) -> Any:
    """Ask a person for an answer of this type. An answer that does not fit is refused when it is given."""
    current.require_blocking("ask")
    place, address, asked = asked_for("ask", question, details, by, timeout, type)
    past = verb(place, questions.asking(place, address, asked, type))
    return questions.taken(place.session, past, type, address)


def asked_for(
    verb: str, text: str, details: object, by: str | Sequence[str] | None, timeout: Duration | None, wanted: Any = None
) -> tuple[Place, str, questions.Question]:
    place = current.require_branch(verb)
    session = place.session
    session.enter_verb(place)
    try:
        asked = questions.question(verb, text, details, by, timeout, wanted).masked(session.mask)
    except UsageError as error:
        raise session.stops.misused(error) from None
    address, _ = moved.recorded(place, verb, lambda past: isinstance(past, PastQuestion) and past.shown == asked.shown)
    return place, address, asked


# -- the world ------------------------------------------------------------------------------------------


def verifying(place: Place) -> Routine[None]:
    place.session.enter_verb(place)
    if (stop := (yield Verify())) is not None:
        raise place.session.stops.stopped(place, stop)


def watch(witness: Any) -> Any:
    """Look at something outside and rely on it from here on. Gives what was seen, recorded; drift stops a resume."""
    place = current.require_blocking("watch")
    return run(drifts.watching(place, witness), Frame(place.session, place))


def verify() -> None:
    """Look at the whole world of this run again, now. Drift stops the run, or whatever `on_drift` says."""
    place = current.require_blocking("verify")
    run(verifying(place), Frame(place.session, place))
