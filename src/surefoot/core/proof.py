"""What an exception of an effect proves. Failed means: nothing was done, for certain. Anything else is doubt.

Proofs are what user code says expressly, what `not_done=` names, what is known of the client, and a guard clause.
Whoever says `not_done=()` says that nothing but the express word counts.
"""

from __future__ import annotations

from surefoot.core.clients import Known, known
from surefoot.errors import Fatal, NotDone

NotDoneTypes = tuple[type[BaseException], ...] | None
"""What `not_done=` names; None: not given."""


def proves_not_done(error: BaseException, not_done: NotDoneTypes, *, guarded: bool = False) -> bool:
    """Whether an effect that ended with this exception certainly did nothing. `guarded`: it came from a guard clause."""
    if isinstance(error, Fatal | NotDone):
        return True
    if guarded and not_done != ():
        return True
    if isinstance(error, BaseExceptionGroup):
        return all(_says_so(one, not_done) for one in error.exceptions)
    if not isinstance(error, Exception) or not_done == ():
        return False
    if known(error) in (Known.NOT_SENT, Known.REFUSED) and not _came_after_doubt(error):
        return True
    return _is_named(error, not_done)


def _says_so(error: BaseException, not_done: NotDoneTypes) -> bool:
    """Of a group: others beside it may have got through, so that what is known of one request is no proof for all."""
    if isinstance(error, BaseExceptionGroup):
        return all(_says_so(one, not_done) for one in error.exceptions)
    return isinstance(error, Fatal | NotDone) or (isinstance(error, Exception) and _is_named(error, not_done))


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
