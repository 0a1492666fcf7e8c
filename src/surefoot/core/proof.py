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
        return all(proves_not_done(one, not_done) for one in error.exceptions)
    if not isinstance(error, Exception) or not_done == ():
        return False
    found = known(error)
    if found in (Known.NOT_SENT, Known.REFUSED):
        return True
    # A broad class does not speak for what is known as unsure: that has to be named itself.
    named = not_done or ()
    return type(error) in named or (found is None and isinstance(error, named))
