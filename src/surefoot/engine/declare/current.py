"""Which run, branch and call the code at hand is in: the context variable of places.

Control flow that surefoot opened (`gather`, `map`, `scope`) has a Place of its own. Code that merely
inherited a Place (a plain task, a thread) is refused: timing would decide the numbers of its calls.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, cast

from surefoot.core.address import Scope
from surefoot.errors import UsageError

if TYPE_CHECKING:
    from surefoot.engine.declare.context import Context
    from surefoot.engine.session.session import Session


class ForeignCall(UsageError):
    """A call from a task or thread that surefoot did not start: timing would decide its number."""


class Inside:
    """The call whose body is being executed."""

    __slots__ = ("address", "attempt", "digest", "key", "kind", "misuse", "rolled_back")

    def __init__(self, kind: str, address: str, key: str, attempt: int, digest: str = "") -> None:
        self.kind = kind
        self.address = address
        self.key = key
        self.digest = digest
        """Of its arguments, as recorded."""
        self.attempt = attempt
        self.misuse: UsageError | None = None
        """Misuse by its body; raised again when it ends, even if the body caught it."""
        self.rolled_back: BaseException | None = None
        """The exception with which it ends, if everything was rolled back, or never begun."""

    def misused(self, error: UsageError) -> UsageError:
        self.misuse = self.misuse or error
        return error


class Line:
    """Completed effects of one thread or task, in order. Those of branches are added when they are joined."""

    __slots__ = ("_forks", "_identity", "_joined", "_parent", "begun", "deeds", "leaving", "sagas", "strays", "struck")

    def __init__(
        self, leaving: Callable[[], BaseException] | None = None, sagas: int = 0, *, parent: Line | None = None,
        identity: object = None,
    ) -> None:  # fmt: skip
        self._forks: list[Line] = []
        self._parent = parent
        """The line that waits for this one."""
        self._joined = False
        self._identity = identity
        """Identifies a task or thread that opened a scope of its own: the same each time. None: this line itself."""
        self.sagas = sagas
        """How many sagas are open around the calls here."""
        self.struck = 0
        """How often its task was cancelled before its last call began or was cut off."""
        self.begun = 0
        """The same, before its last recorded call began."""
        self.leaving = leaving
        """In a saga that was cancelled before this process: what the first call without a record gets."""
        self.deeds: list[Any] = []
        """The effects that were done in this line, in order: those that can be undone; inside a saga all of them."""
        self.strays: dict[str, list[Any]] = {}
        """The same for tasks that opened a scope of their own inside it, by the scope: these lines are never joined."""

    def stray(self, path: str, identity: object) -> Line:
        line = Line(self.leaving, self.sagas, identity=identity)
        line.strays, line.deeds = self.strays, self.strays.setdefault(path, [])
        return line

    def fork(self) -> Line:
        line = Line(self.leaving, self.sagas, parent=self)
        self._forks.append(line)
        return line

    @property
    def is_stray(self) -> bool:
        """Whether it belongs to a task or thread with a scope of its own, which is never joined."""
        return self._identity is not None

    def is_part_of(self, other: Line) -> bool:
        """Whether that is this line, or one that waits for it. A joined line is part of the line that it joined."""
        while other._joined and other._parent is not None:
            other = other._parent
        line: Line | None = self
        meant = other._identity or other
        while line is not None and (line._identity or line) is not meant:
            line = line._parent
        return line is not None

    def join(self) -> None:
        for line in list(self._forks):
            self.join_one(line)

    def join_one(self, line: Line) -> None:
        if line in self._forks:
            self._forks.remove(line)
            line._joined = True
            self.deeds += line.deeds
            for _, deeds in sorted(line.strays.items()):
                self.deeds += deeds


class Place:
    """A point in a run from which calls are made, by one thread or task at a time."""

    __slots__ = (
        "_thread", "_trio", "called", "home", "inside", "lent_to", "line", "owner", "parent", "scope", "segment", "session",
        "stop", "undoing",
    )  # fmt: skip

    def __init__(
        self,
        session: Context,
        scope: Scope,
        owner: object,
        *,
        parent: Place | None = None,
        inside: Inside | None = None,
        line: Line | None = None,
    ) -> None:
        self.session = session
        """For this engine a Session, for another engine its own."""
        self.scope = scope
        self.segment: int = session.state.segment
        self.owner = owner
        """A task; or, in blocking code, the number of a thread."""
        self.home = None if inside is not None else running_loop()
        """The loop that was running here when the place was made: none, in most blocking code."""
        self._trio = None if inside is not None else trio_task()
        self._thread = this_thread() if isinstance(owner, int) else None
        self.parent = parent
        """The place that a stop of this one also stops at once, because it is not joined later."""
        self.inside = inside
        self.line = line or Line()
        self.called = ""
        """The address of the last call begun here: its owner makes one after the other."""
        self.lent_to: object = None
        """The thread to which its task gave a blocking call, while that call runs."""
        self.stop: BaseException | None = None
        self.undoing = False
        """Whether a saga is being undone here: then a cancelled run still makes calls."""

    def around(self) -> Iterator[Place]:
        """This place and its enclosing places, from the inside out."""
        at: Place | None = self
        while at is not None:
            yield at
            at = at.parent

    @property
    def is_leaving(self) -> bool:
        """Whether the code is leaving a cancelled saga: only undos begin there."""
        return self.line.leaving is not None and not self.undoing

    def misused(self, what: str, kind: type[UsageError] = UsageError) -> UsageError:
        """The error to raise when the code at this place misuses surefoot."""
        error = kind(f"run {self.session.run}: {what}")
        return self.session.stops.misused(error if self.inside is None else self.inside.misused(error))

    def require_owner(self) -> None:
        """Refuse to count calls for a task or thread that only inherited this place."""
        if "trio" in sys.modules:
            self.refuse_trio()
        me = self._caller()
        if me is not self.owner and not (self.is_owned_by(me) or self.is_lent(me)):
            raise self._foreign(me)

    def is_owned_by(self, me: object) -> bool:
        """A thread's number is used again after its end: the new thread is not the owner."""
        return me is self.owner or (me == self.owner and self._thread is this_thread())

    def is_lent(self, me: object) -> bool:
        """A blocking call given to a thread with asyncio.to_thread; its task waits for it."""
        return isinstance(me, int) and self.lent_to in (None, me) and waits_for_a_thread(self.owner)

    def refuse_trio(self) -> None:
        """Tasks of trio share one thread, and no asyncio task distinguishes them: they would be one caller.

        A blocking workflow that was started inside a task of trio is allowed: no other task runs meanwhile.
        """
        task = trio_task()
        if task is not None and task is not self._trio:
            raise self.misused(f"a call from a task of trio. {NO_TRIO}", ForeignCall)

    def _caller(self) -> object:
        """The caller, in the form of `owner`. Blocking code may be called where a loop runs (a notebook)."""
        if isinstance(self.owner, int) and running_loop() is self.home:
            return threading.get_ident()
        return whoami()

    def lend(self) -> bool:
        """Note the thread that a task has lent this place to, so that a second one is refused."""
        me = self._caller()
        if self.is_owned_by(me):
            return False
        self.lent_to = me
        return True

    def _foreign(self, me: object) -> UsageError:
        return self.misused(
            f"a call from a {'thread' if isinstance(me, int) else 'task'} that was not "
            "started by surefoot and opened no scope of its own, so its calls could not be numbered the same way "
            "twice. Use sf.gather(...) or sf.map(..., key=...) instead of asyncio.gather, TaskGroup or a pool, "
            'or open a scope first: with sf.scope("a name of its own"): ...',
            ForeignCall,
        )


class Dormant(Place):
    """The place of a unit that may make no call at all: what drives its run is made when it is first asked for."""

    __slots__ = ("_lock", "_wake", "awake")

    def __init__(self, wake: Callable[[], Context], owner: object) -> None:
        self._wake, self._lock = wake, threading.Lock()
        self.awake: Context | None = None
        """What drives the run, once there is something to drive."""
        self.scope, self.segment, self.owner = Scope(), 1, owner  # Its run is new, so this is its first segment.
        self.home, self._trio = running_loop(), trio_task()
        self._thread = this_thread() if isinstance(owner, int) else None
        self.parent = self.inside = self.stop = None
        self.line, self.called, self.lent_to, self.undoing = Line(), "", None, False

    @property
    def session(self) -> Context:  # type: ignore[override]
        if self.awake is None:
            with self._lock:
                if self.awake is None:  # Another thread may have been quicker.
                    self.awake = self._wake()
        return self.awake


def session_of(place: Place) -> Session:
    """For modules of the embedded engine, which know that they made the place."""
    return cast("Session", place.session)


OUTSIDE: Any = object()
"""Set by `sf.outside()`: the call is outside on purpose."""

_place: ContextVar[Any] = ContextVar("surefoot_place", default=None)
get = _place.get
set_place = _place.set
reset = _place.reset


def inside() -> Inside:
    """The call whose body is being executed here. Outside of every call: one without a key."""
    place = get()
    found: Inside | None = None if place is None or place is OUTSIDE else place.inside
    return found or Inside("", "", "", 1)


def rolled_back(error: BaseException) -> BaseException:
    """Called by our own effects when they know that nothing was done, with any exception."""
    inside().rolled_back = error
    return error


def running_loop() -> Any:
    """The event loop that runs in this thread, without importing asyncio."""
    asyncio = sys.modules.get("asyncio.events")
    return None if asyncio is None else asyncio._get_running_loop()


_here = threading.local()


def this_thread() -> object:
    """A value that identifies the current thread, and never another one."""
    try:
        return _here.token
    except AttributeError:
        token = _here.token = object()
        return token


NO_TRIO = (
    "surefoot works in asyncio and in blocking code: start the workflow with asyncio.run(...), or with "
    'anyio.run(..., backend="asyncio"); from trio, call a blocking workflow in a thread: '
    "await trio.to_thread.run_sync(workflow.run, run_id)."
)


def require_asyncio(what: str) -> None:
    """An async workflow is driven by asyncio. Another loop is named, instead of an internal error of asyncio."""
    if running_loop() is None and trio_task() is not None:
        raise UsageError(f"{what}() was awaited in a task of trio. {NO_TRIO}")


def trio_task() -> Any:
    """The task of trio that runs here, without importing trio."""
    trio = sys.modules.get("trio.lowlevel")
    if trio is None:
        return None
    try:
        return trio.current_task()
    except RuntimeError:
        return None


def whoami() -> object:
    """The task that runs here, else the number of the thread."""
    loop = running_loop()
    if loop is None:
        return threading.get_ident()
    return sys.modules["asyncio"].current_task(loop) or threading.get_ident()


_HANDING_OVER = frozenset({"to_thread", "run_sync_in_worker_thread", "run_in_executor"})
"""The coroutines of asyncio, anyio and LangChain that run a function in a thread with a copy of the context."""
_LOOKS = 200


def waits_for_a_thread(owner: Any) -> bool:
    """Whether the task itself, and not one it started, is waiting for a function it gave to a thread.

    The thread may be faster than the task, which then is not waiting yet: this waits a moment for the task.
    """
    if isinstance(owner, int):
        return False
    moment = threading.Event()
    for _ in range(_LOOKS):
        handing_over, at_rest = _what_it_awaits(owner.get_coro())
        if handing_over or at_rest:
            return handing_over
        moment.wait(0.001)
    return False


def _what_it_awaits(coroutine: Any) -> tuple[bool, bool]:
    """(it gives something to a thread, it is at rest); both false while it runs."""
    while hasattr(coroutine, "cr_await"):
        if coroutine.cr_code.co_name in _HANDING_OVER:
            return True, True
        if coroutine.cr_await is None:
            return False, False
        coroutine = coroutine.cr_await
    return False, True


def require_place(verb: str) -> Place:
    """The place of a verb that makes sense only inside a run."""
    place = get()
    if place is None or place is OUTSIDE:
        raise UsageError(f"sf.{verb}() works only inside a run: call it from a workflow started with .run or .start")
    return place  # type: ignore[no-any-return]


def require_branch(verb: str) -> Place:
    """The place of a verb that may not be used inside a step or an effect."""
    place = require_place(verb)
    if place.inside is not None:
        raise place.misused(
            f"sf.{verb}() inside {place.inside.kind} {place.inside.address}. "
            f"A {place.inside.kind} is one recorded call; move sf.{verb}() out into the workflow."
        )
    return place


def require_task(verb: str) -> Place:
    """The place of a verb of `surefoot.aio`, which is entered there."""
    place = require_branch(verb)
    if isinstance(place.owner, int):
        raise place.misused(
            f"surefoot.aio's {verb}() inside a blocking workflow. "
            f"Use `import surefoot as sf` and sf.{verb}(...), or make the workflow `async def`."
        )
    place.session.enter_verb(place)
    return place


def require_blocking(verb: str) -> Place:
    """The place of a verb that blocks: in a task it would block the loop and all its other tasks.

    In a thread that the task has handed a blocking function to, it blocks only that task, which waits for it.
    """
    place = require_branch(verb)
    if not isinstance(place.owner, int) and (running_loop() is not None or not place.is_lent(threading.get_ident())):
        raise place.misused(
            f"sf.{verb}() blocks, and this workflow is async. "
            f"Use `import surefoot.aio as sf` and `await sf.{verb}(...)`."
        )
    return place


class Driven:
    """How many runs this process is driving: the reason why a stray effect is refused."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.count = 0

    def __enter__(self) -> None:
        with self._lock:
            self.count += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self.count -= 1


driven = Driven()
