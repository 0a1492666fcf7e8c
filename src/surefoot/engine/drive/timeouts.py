"""`async with sf.timeout("30s")`: a block that is cut off when its time is over, and goes the same way on replay.

The deadline is recorded when the block is entered, so a crash does not start the time again; and so is whether it
was over. A block that ended in time is never cut off by a replay, however slow. A block that was cut off is cut off
again at the same place: when everything recorded in the block until then has been asked for, and before anything new
begins.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from msgspec import Raw

from surefoot.core import values
from surefoot.core.address import approval_of
from surefoot.core.code_changes import changed
from surefoot.core.entry import Due, TimerFired, TimerSet, ValueNoted
from surefoot.core.history import Past, PastState, PastTimer
from surefoot.core.timer import Duration, after, remaining, seconds
from surefoot.engine.declare import current
from surefoot.engine.declare.current import Place, session_of
from surefoot.engine.declare.signals import RunSignal
from surefoot.engine.session.turns import LOOK_SECONDS, SLACK_SECONDS
from surefoot.errors import UsageError

if TYPE_CHECKING:
    import asyncio

    from surefoot.engine.session.session import Session

_IN_TIME: Final = Raw(values.encode("ended in time"))


def timeout(duration: Duration) -> Timeout:
    """`async with sf.timeout("30s"):` raises TimeoutError when the block takes longer. Recorded: replay goes the same way.

    A step in the block is cut off. An effect is not: it is waited for until it has answered, or until its own `timeout=`
    is over, and then the block raises. So the effect may have been carried out.
    """
    return Timeout(seconds(duration))


class Timeout:
    """One block with a limit of time."""

    def __init__(self, limit_seconds: float) -> None:
        self._seconds = limit_seconds
        self._address = ""
        self.due: Due | None = None
        """None: the limit never strikes."""
        self.is_over = False
        self._is_known = False
        """Whether the end of the block is on record."""
        self._seq: int | None = None
        """The entry that records that the time was over."""
        self._struck = False
        self._place: Place | None = None
        self._inner: asyncio.Timeout | None = None
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> Self:
        why = (
            "sf.timeout() cuts off what is awaited: use `async with sf.timeout(...)` in an async workflow "
            "(import surefoot.aio as sf). Blocking code cannot be cut off: give its calls a limit of their own, "
            '@sf.step(timeout="30s"), @sf.effect(timeout="30s").'
        )
        place = current.get()
        raise UsageError(why) if place is None or place is current.OUTSIDE else place.session.stops.misuse(why)

    def __exit__(self, *_: object) -> None:
        """Never reached."""

    async def __aenter__(self) -> Self:
        import asyncio

        from surefoot.engine.drive import acts_async

        place = self._place = current.require_task("timeout")
        session = session_of(place)
        address, past = session.recall(place, "timeout")
        self._address = address
        if past is not None:
            if not isinstance(past, PastTimer):
                raise session.stops.stopped(place, changed(session.run, address, f"a {past.kind}", "sf.timeout()"))
            self.due = past.due if past.state is PastState.OPEN else None
            self._is_known = past.state is PastState.DONE
            self.is_over = self._is_known and past.value is None
            self._seq = past.seq if self.is_over else None
        elif not session.dry:
            self.due = after(session.now(), self._seconds)
            await acts_async.go_live(session)
            await acts_async.append(session, TimerSet(address, self.due))
        self._inner = asyncio.timeout(None)
        await self._inner.__aenter__()
        if self.is_over or self.due is not None:
            session.stops.limits.append(self)
            self._look()
        return self

    @property
    def is_pending(self) -> bool:
        """Its time is over, and it has not struck yet: the records of the block have to be replayed first."""
        return self.is_over and self._inner is not None and not self._inner.expired()

    def is_around(self, place: Place) -> bool:
        return self._place is not None and place.scope.path.startswith(self._place.scope.path)

    def ended_before(self, past: Past) -> bool:
        """Whether it was on record that its time was over before that call began."""
        return self._seq is not None and past.first > self._seq

    def is_behind(self, place: Place, address: str = "") -> bool:
        """Whether the code has yet to ask for recorded effects of the block."""
        return session_of(place).backlog.is_behind(place, self._seq, address)

    def _lets_catch_up(self, session: Session, now: float) -> bool:
        """Whether a call that was inserted in front of recorded effects is being made, or was just made."""
        is_made = session.flight.calls or now < session.flight.made_at + SLACK_SECONDS
        return bool(is_made) and self._place is not None and self.is_behind(self._place)

    def _look(self) -> None:
        import asyncio

        if self._inner is None or self._place is None or self._struck:
            return
        loop, session = asyncio.get_running_loop(), session_of(self._place)
        left = 0.0 if self.due is None else remaining(self.due, session.now())
        self.is_over = self.is_over or left <= 0
        if not self.is_over:
            self._timer = loop.call_later(min(max(session.clock.nap(left), LOOK_SECONDS), 3600.0), self._look)
        elif self._lets_catch_up(session, loop.time()) or next(
            session.backlog.to_come(self._seq, self._place.scope.path), None
        ):
            self._timer = loop.call_later(LOOK_SECONDS, self._look)
        else:
            self._struck = True
            self._inner.reschedule(loop.time())

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        from surefoot.engine.drive.cancellations import dealt_with

        inner, place = self._inner, self._place
        if inner is None or place is None:
            return
        self._inner = None
        if self in place.session.stops.limits:
            place.session.stops.limits.remove(self)
        if self._timer is not None:
            self._timer.cancel()
        cut_off = False
        try:
            await inner.__aexit__(kind, error, trace)
        except TimeoutError:
            cut_off = True
        if self._struck:
            dealt_with(place)
        self._note(place, error)
        # In a replay, an await that is no call of ours may be faster than before: the block was still cut off.
        was_over = self._seq is not None and not self._struck and (error is None or isinstance(error, Exception))
        if cut_off or was_over:
            raise TimeoutError(f"{self._address}: not done within {self._seconds:g} s") from error

    def _note(self, place: Place, error: BaseException | None) -> None:
        if self._struck:
            self.note_struck()
        elif not self._is_known and not isinstance(error, RunSignal) and not self._breaks_off(place):
            session_of(place).journal.lazily(ValueNoted(self._address, _IN_TIME))

    def note_struck(self) -> None:
        """Recorded after the call that it cut off, and before anything that the code does about it."""
        place = self._place
        struck = self._struck and (self._inner is None or self._inner.expired())
        if place is not None and struck and not self._is_known and not self._breaks_off(place):
            self._is_known = True
            session_of(place).journal.lazily(TimerFired(self._address))

    def _breaks_off(self, place: Place) -> bool:
        from surefoot.engine.drive.cancellations import is_unwinding

        return place.session.dry or is_unwinding(place)


def on_record(place: Place, address: str) -> Past | None:
    """The record at that address. Not one made after an enclosing block was cut off: a later call has that."""
    matcher = place.session.replay.matcher
    past = matcher.past(address) or matcher.past(approval_of(address))
    is_later = past is not None and any(limit.ended_before(past) for limit in _pending(place))
    return None if is_later else past


async def held(place: Place, address: str = "") -> None:
    """In a block whose time is over, a new call does not begin, and a call that has not ended does not go on."""
    import asyncio

    past, asked = on_record(place, address), place.session.replay.matcher.asked
    if past is not None and _has_ended(place, address, past):
        return
    # The call goes on if recorded effects of the block come after it: without it they are not found.
    while pending(place) and not all(limit.is_behind(place, address) for limit in _pending(place)):
        if past is not None:
            asked.add(past.address)  # Nothing else in the block is waited for: it is cut off.
        place.session.stops.check_trouble()
        await asyncio.sleep(LOOK_SECONDS)
    if past is not None:  # The call goes on, and is asked for now. Else it would count as another call.
        asked.discard(past.address)


def _has_ended(place: Place, address: str, past: Past) -> bool:
    """An approval of an effect is not its end; a refusal is."""
    if past.state is PastState.DONE and past.address != address:
        return past.value is None or place.session.decoded(past.value) is not True
    return past.state in (PastState.DONE, PastState.FAILED)


def earliest(place: Place, due: Due) -> Due:
    """When a branch that waits until `due` has to be checked again."""
    return min([due, *place.session.stops.dues_around(place)], key=lambda one: one.at)


def pending(place: Place) -> bool:
    """Whether the time of an enclosing block is over, and the block is not cut off yet."""
    return any(True for _ in _pending(place))


def _pending(place: Place) -> Iterator[Timeout]:
    return (limit for limit in place.session.stops.limits if limit.is_pending and limit.is_around(place))
