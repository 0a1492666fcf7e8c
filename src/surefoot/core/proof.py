"""What an exception of an effect proves. Failed means: nothing was done, for certain. Anything else is doubt.

Proofs are what user code says expressly, what `not_done=` names, what is known of the client, and a guard clause.
Whoever says `not_done=()` says that nothing but the express word counts. All of this holds for what the effect's own code
raises. What leaves a call inside of it, or another run, speaks of that one: the effect may have acted before.
"""

from __future__ import annotations

from types import TracebackType
from typing import Final

from surefoot.core.clients import Known, known
from surefoot.errors import Fatal, NotDone

NotDoneTypes = tuple[type[BaseException], ...] | None
"""What `not_done=` names; None: not given."""
_WAYS_OUT: Final = frozenset(
    {
        ("surefoot.engine.drive", "call"),
        ("surefoot.engine.drive_async", "call"),
        ("surefoot.engine.start", "answer"),
        ("surefoot.engine.start", "recorded_end"),
    }
)
"""Module and function through which an exception leaves a step, an effect outside of the run, or another run."""


def proves_not_done(error: BaseException, not_done: NotDoneTypes, *, guarded: bool = False) -> bool:
    """Whether an effect that ended with this exception certainly did nothing. `guarded`: it came from a guard clause."""
    if guarded and not_done != ():
        return True
    if is_secondhand(error):
        return False
    if isinstance(error, Fatal | NotDone):
        return True
    if isinstance(error, BaseExceptionGroup):
        proves = _says_so if _is_of_tasks(error) else proves_not_done
        return all(proves(one, not_done) for one in error.exceptions)
    if not isinstance(error, Exception) or not_done == ():
        return False
    if known(error) in (Known.NOT_SENT, Known.REFUSED) and not _came_after_doubt(error):
        return True
    return _is_named(error, not_done)


def is_secondhand(error: BaseException) -> bool:
    """Whether it, or one of a group, left a call inside of the effect, or another run. To raise it again changes nothing;
    a new exception `from` it is the effect's own word.
    """
    if isinstance(error, BaseExceptionGroup) and any(map(is_secondhand, error.exceptions)):
        return True
    trace: TracebackType | None = error.__traceback__
    while trace is not None:
        frame = trace.tb_frame
        if (frame.f_globals.get("__name__"), frame.f_code.co_name) in _WAYS_OUT:
            return True
        trace = trace.tb_next
    return False


def _says_so(error: BaseException, not_done: NotDoneTypes) -> bool:
    """Of tasks side by side: others may have got through, so that what is known of one request is no proof for all."""
    if isinstance(error, BaseExceptionGroup):
        return all(_says_so(one, not_done) for one in error.exceptions)
    return isinstance(error, Fatal | NotDone) or (isinstance(error, Exception) and _is_named(error, not_done))


def _is_of_tasks(group: BaseExceptionGroup[BaseException]) -> bool:
    """Whether a TaskGroup or a nursery made it: it names the tasks that failed, and none of those that succeeded."""
    return "TaskGroup" in group.message or "nursery" in group.message


def _is_named(error: Exception, not_done: NotDoneTypes) -> bool:
    """A broad class does not speak for what is known as unsure: that has to be named itself."""
    named = not_done or ()
    return type(error) in named or (known(error) is None and isinstance(error, named))


def _came_after_doubt(error: BaseException) -> bool:
    """Whether it was raised while something unsure was handled: a request before this one may have got through."""
    seen: set[int] = set()
    earlier = error.__context__
    while earlier is not None and id(earlier) not in seen:
        seen.add(id(earlier))
        if isinstance(earlier, BaseExceptionGroup) or known(earlier) is Known.UNSURE:
            return True
        earlier = earlier.__context__
    return False
