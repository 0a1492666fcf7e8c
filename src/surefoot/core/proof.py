"""What an exception of an effect proves. "Failed" means: certainly nothing was done. Anything else is doubt.

Proofs are: an explicit statement of user code, the classes in `not_done=`, what is known of the client, a guard clause.
With `not_done=()` only the explicit statement counts. All of this holds for exceptions that the effect's own code
raises. An exception from a call inside it, or from another run, is about that call: the effect may have acted before.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import TracebackType
from typing import Final

from surefoot.core.clients import Known, is_caught_in_client, known
from surefoot.errors import Fatal, NotDone

NotDoneTypes = tuple[type[BaseException], ...] | None
"""What `not_done=` names; None: not given."""
_WAYS_OUT: Final = frozenset(
    {
        ("surefoot.engine.drive.perform", "call"),
        ("surefoot.engine.drive.perform_async", "call"),
        ("surefoot.engine.drive.outcome", "answer"),
        ("surefoot.engine.drive.outcome", "recorded_end"),
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
        return _says_so(error, not_done)
    if not isinstance(error, Exception) or not_done == ():
        return False
    if known(error) in (Known.NOT_SENT, Known.REFUSED) and not _came_after_doubt(error):
        return True
    return _is_named(error, not_done)


def is_secondhand(error: BaseException) -> bool:
    """Whether the exception, or one of a group, left a call inside the effect, or another run. Raising it again changes
    nothing; a new exception `from` it is the effect's own statement.
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
    """A group, and its members. A group is about several requests. It names those that failed and none of those that
    succeeded, whatever made it. So what is known of a request is no proof here: the code has to declare it, for each
    member or for the group.
    """
    if isinstance(error, BaseExceptionGroup):
        declared = type(error) in (not_done or ()) and not _leaves_doubt(error)
        return declared or all(_says_so(one, not_done) for one in error.exceptions)
    return isinstance(error, Fatal | NotDone) or (isinstance(error, Exception) and _is_named(error, not_done))


def _leaves_doubt(error: BaseException) -> bool:
    """Whether it, or a member, is known as unsure, or has cut off something at any point."""
    if isinstance(error, BaseExceptionGroup):
        return any(map(_leaves_doubt, error.exceptions))
    return not isinstance(error, Exception) or known(error) is Known.UNSURE


def _is_named(error: Exception, not_done: NotDoneTypes) -> bool:
    """A broad class does not cover an exception that is unsure or caused by an unsure one: that needs its own class."""
    named = not_done or ()
    if type(error) in named:
        return True
    return isinstance(error, named) and known(error) is None and not _came_after_doubt(error)


def _came_after_doubt(error: BaseException) -> bool:
    """Whether something unsure caused it, or was being handled: an earlier request may have got through."""
    # An exception still being handled is the workflow's own: `except TimeoutError: pay()`. It was there before the
    # effect.
    seen, rest = {id(error), id(sys.exception())}, [error]
    for one in rest:
        for earlier in _before(one):
            if id(earlier) not in seen:
                if _is_unsure(earlier) and not _is_named_by_client(earlier, one):
                    return True
                seen.add(id(earlier))
                rest.append(earlier)
    return False


def _is_unsure(error: BaseException) -> bool:
    return _was_raised(error) if isinstance(error, BaseExceptionGroup) else known(error) is Known.UNSURE


def _is_named_by_client(error: BaseException, later: BaseException) -> bool:
    """Whether the client itself caught this time-out, and reports that it struck while connecting: nothing was sent."""
    return type(error) is TimeoutError and known(later) is Known.NOT_SENT and is_caught_in_client(error)


def _before(error: BaseException) -> Iterator[BaseException]:
    inside = error.exceptions if isinstance(error, BaseExceptionGroup) else ()
    return (one for one in (error.__cause__, error.__context__, *inside) if one is not None)


def _was_raised(group: BaseExceptionGroup[BaseException]) -> bool:
    """A group that was never raised only lists the outcomes of one request: anyio lists the addresses that it tried."""
    return group.__traceback__ is not None
