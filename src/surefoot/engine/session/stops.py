"""What has stopped where: stops, waits, trouble, interruptions, and their effect on every further verb.

A stop is a state first. It is noted here and in its `Place`; every further verb there raises it again, and a value that
user code returns anyway is discarded. Nothing here reads or writes a journal: `conclude` records it when the function has ended.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from surefoot.core.claim import Refusal
from surefoot.core.entry import Due, Stop
from surefoot.core.history import Past, PastState
from surefoot.core.masking import Mask
from surefoot.core.parking import seconds_until
from surefoot.core.state import RunState
from surefoot.core.timer import after, remaining
from surefoot.engine.declare import current
from surefoot.engine.declare.current import Place
from surefoot.engine.declare.signals import (
    CancelSignal,
    ContinueSignal,
    HaltSignal,
    HandBackSignal,
    InterruptSignal,
    LostSignal,
    PlanSignal,
    RunSignal,
    StopSignal,
    SuspendSignal,
)
from surefoot.engine.process.clock import Clock
from surefoot.errors import SurefootError, Unavailable, UsageError

if TYPE_CHECKING:
    from surefoot.engine.drive.timeouts import Timeout

E = TypeVar("E", bound=SurefootError)
S = TypeVar("S", bound=RunSignal)


class Stops:
    """Everything that prevents a run, or a branch of it, from going on in this drive."""

    def __init__(
        self, state: RunState, mask: Mask, clock: Clock, *, dry: bool = False, unwind_seconds: float | None = None
    ) -> None:
        self._state = state
        self._mask = mask
        self._clock = clock
        self._dry = dry
        self._lock = threading.Lock()
        self.unwind_seconds = unwind_seconds
        """A longer wait ends this drive, and the run is taken up again after the wait. None: the drive waits."""
        self.found: list[Stop] = []
        self.dues: list[Due] = []
        """When stopped branches go on by themselves."""
        self.children: list[str] = []
        """Child runs that branches wait for."""
        self.parked_why = ""
        """Something that the workflow itself needs and cannot reach (`sf.Unavailable`)."""
        self.lost: Refusal | None = None
        """Another process has claimed the run before this one did: nothing was executed here."""
        self.trouble: SurefootError | None = None
        """Misuse, or a store that failed. The run has not failed."""
        self.own_damage: SurefootError | None = None
        """Damage in this very run, not in something that user code read."""
        self.interruption: BaseException | None = None
        """Ctrl-C and the like, once it has cut off a call: user code may catch it, the run does not go on."""
        self.continuation: ContinueSignal | None = None
        """The workflow has asked to continue as new; its later return value does not count."""
        self.handed_back = False
        """The worker is being stopped: no further call begins."""
        self.is_given_up: Callable[[], bool] = bool
        """Whether the caller that waits for this run was cancelled: then the run is released, and goes on later."""
        self.limits: list[Timeout] = []
        """Blocks with a limit of time (`sf.timeout`) that the code is in."""
        self.minds_cancel = not dry
        """Whether a run that is cancelled ends here. A rehearsal of its code goes on to what the code would do."""
        self.undoing = 0
        """How many sagas are being undone: then a cancelled run still makes calls."""
        self.planned: list[tuple[str, str]] = []
        """In a dry replay: (kind, address) of the calls that would be executed next."""

    # -- what a verb finds ------------------------------------------------------------------------------

    def meet(self, place: Place) -> None:
        """Every verb starts here: a stopped branch stays stopped."""
        if place.stop is not None:
            raise place.stop
        if self.trouble is not None:
            raise HaltSignal(self.trouble)
        if self.lost is not None:
            raise LostSignal
        if self.interruption is not None:
            raise InterruptSignal
        if self.handed_back and not self._dry:
            raise self.felt(place, self.handing_back())

    def meet_cancel(self, place: Place, past: Past | None) -> None:
        """A cancelled run begins nothing new. The records are replayed first, so that sagas know what to undo."""
        if past is not None and past.state in (PastState.DONE, PastState.FAILED):
            return
        if self.is_called_off(place):
            raise self.felt(place, CancelSignal())
        if place.line.leaving is not None and place.is_leaving:
            raise place.line.leaving()

    def is_called_off(self, place: Place) -> bool:
        """Whether the run was cancelled; undos are still made."""
        return self.minds_cancel and self._state.cancel is not None and not place.undoing

    def check_trouble(self) -> None:
        if self.trouble is not None:
            raise self.trouble
        if self.lost is not None:
            raise LostSignal

    @property
    def is_cut_off(self) -> bool:
        """Whether the run ends here for now: then an exception of a call is not its outcome."""
        return self.trouble is not None or self.interruption is not None or self.lost is not None

    def changed_code(self) -> Stop | None:
        """A branch of this drive found that the code has changed: from then on nothing more begins in any branch."""
        with self._lock:
            return next((stop for stop in self.found if stop.reason == "CodeChanged"), None)

    def would_do(self, kind: str, address: str) -> None:
        """In a dry replay: note what a resume would do next, and end this branch."""
        if self._dry:
            with self._lock:
                self.planned.append((kind, address))
            raise self.plan_ends()

    def plan_ends(self) -> PlanSignal:
        """A dry replay ends in the current branch, if that is a branch of its own."""
        place = current.get()
        mine = place is not None and place is not current.OUTSIDE and place.session.stops is self
        return self.felt(place, PlanSignal()) if mine else PlanSignal()

    def felt(self, place: Place, signal: S) -> S:
        """Neither the branch nor its enclosing branches go on, however user code handles the signal."""
        for at in place.around():
            at.stop = at.stop or signal
        return signal

    # -- stops and waits ----------------------------------------------------------------------------------

    def stopped(self, place: Place, stop: Stop, due: Due | None = None) -> StopSignal:
        """This branch stops; with `due`, only until then."""
        stop = self._mask.stop(stop)
        with self._lock:
            if stop not in self.found:
                self.found.append(stop)
            if due is not None:
                self.dues.append(due)
            if stop.reason == "WaitingForAnswer":
                self.dues += self.dues_around(place)
        return self.felt(place, StopSignal(stop))

    def dues_around(self, place: Place) -> list[Due]:
        """The deadlines of the blocks with a limit of time around this place."""
        return [limit.due for limit in self.limits if limit.due is not None and limit.is_around(place)]

    def suspended(self, place: Place, waits_for: Due | str) -> SuspendSignal:
        """This branch waits until then, or for that child. Other branches go on first."""
        with self._lock:
            if isinstance(waits_for, Due):
                self.dues.append(waits_for)
            elif waits_for not in self.children:
                self.children.append(waits_for)
        return self.felt(place, SuspendSignal())

    def outlasts(self, due: Due) -> bool:
        """Whether waiting until then is not worth keeping the run in memory."""
        return self.unwind_seconds is not None and remaining(due, self._clock.read()) > self.unwind_seconds

    def parked(self, place: Place, away: Unavailable) -> SuspendSignal:
        """The workflow's own code, in this branch, reports something away. Other branches go on first."""
        self.park(away)
        return self.felt(place, SuspendSignal())

    def park(self, away: Unavailable) -> None:
        with self._lock:
            self.dues.append(after(self._clock.read(), seconds_until(away, self._state.parks + 1)))
            self.parked_why = self.parked_why or self._mask(str(away))

    @property
    def waits(self) -> bool:
        """Whether a branch is suspended until it can go on."""
        return bool(self.dues or self.children)

    def hand_back(self) -> None:
        """Let calls in flight finish, begin nothing more, and let another worker go on."""
        self.handed_back = True

    def handing_back(self) -> HandBackSignal:
        """A branch of a run that is handed back could go on at once."""
        with self._lock:
            self.dues.append(after(self._clock.read(), 0.0))
        return HandBackSignal()

    def continuing(self, place: Place, signal: ContinueSignal) -> ContinueSignal:
        """Like a stop: user code that catches it cannot go on with this segment."""
        self.continuation = signal
        return self.felt(place, signal)

    # -- trouble and interruptions ------------------------------------------------------------------------

    def misused(self, error: E) -> E:
        """Remember: user code may catch it, but the run does not go on with the result."""
        self._mask.error(error)
        with self._lock:
            if self.trouble is None:
                self.trouble = error
        return error

    def misuse(self, why: str) -> UsageError:
        """The code of the workflow uses surefoot in a wrong way."""
        return self.misused(UsageError(why))

    def store_failed(self, error: E) -> E:
        """Our own reading or writing of this run failed."""
        self.own_damage = self.own_damage or error
        return self.misused(error)

    def interrupted_by(self, error: BaseException) -> None:
        """An exception that is no outcome cut off a wait. Ordinary exceptions and our own signals pass."""
        if not isinstance(error, Exception | RunSignal):
            self.cut_off(error)

    def struck_by(self, error: BaseException) -> None:
        """A step or an effect was cut off outside of its function, whose own exceptions are outcomes and do not come
        here.

        By Ctrl-C, or by an exception of a signal handler (a soft limit of time), even an ordinary one: treated as the
        effect's failure, it would let the code go on as if nothing had been done. Our own errors and signals pass.
        """
        if not isinstance(error, SurefootError | RunSignal):
            self.cut_off(error)

    def cut_off(self, error: BaseException) -> None:
        if self.interruption is None:
            self.interruption = error.__context__ if isinstance(error.__context__, KeyboardInterrupt) else error

    def given_up_by(self, cancelled: BaseException) -> None:
        """The caller that waited for the run was cancelled by this. It gets the same object back."""
        if isinstance(self.interruption, type(cancelled)):
            self.interruption = cancelled

    def while_undoing(self, task: Any, error: BaseException) -> None:
        """A saga is undone to its end, unless the run is given up for now: then the undoing goes on later."""
        if self.is_given_up():
            self.cut_off(error)
            task.cancel()

    def breaks_off(self, place: Place, error: BaseException) -> bool:
        """Whether a task is cancelled because the run ends here for now. Then it is intact, and nothing is undone; but
        nothing more is called in this branch either, however its code handles the cancellation.
        """
        if self.is_given_up():
            self.cut_off(error)
        elif self.found:
            self.felt(place, StopSignal(self.found[0]))
        elif self.continuation is not None:
            self.felt(place, self.continuation)
        else:
            return self.is_cut_off
        return True
