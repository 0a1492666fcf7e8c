"""Effects that were done, and what is needed to undo them. A saga has to name those that cannot be undone.

An effect that failed in doubt (`on_crash="fail"`) is not undone either: whether it happened, and with which result, is
unknown. It is still remembered, for the saga to name and for the record of how the run ended.
"""

from __future__ import annotations

from typing import Any

from msgspec import Raw, Struct

from surefoot.core import values
from surefoot.core.command import Done, Ending, Failed
from surefoot.core.entry import NOTHING, Stop
from surefoot.core.programs.calls import Call
from surefoot.core.state import was_in_doubt
from surefoot.engine.declare.call_spec import CallSpec
from surefoot.engine.declare.context import Args, Context, Kwargs
from surefoot.engine.declare.current import Place
from surefoot.engine.declare.defaults import Unrepeatable
from surefoot.engine.declare.request import cannot_be_repeated, recorded_defaults
from surefoot.engine.session.repetition import another_undo


class Deed(Struct, eq=False):
    """An effect that was done, and what is needed to undo it: copies, since the workflow may change its own."""

    address: str
    spec: CallSpec
    args: Args
    kwargs: Kwargs
    result: Any
    in_doubt: bool = False
    stop: Stop | None = None
    """Why the code at hand cannot undo it, if an undo is needed."""
    undone: bool = False
    """Whether it is undone, or being undone; if it stays done: whether that was reported."""
    undo_failed: str = ""
    """The undo that failed for good. No other saga tries it."""

    def undo(self) -> tuple[CallSpec, Args, Kwargs]:
        """The compensation to call, with the arguments and the result."""
        if self.spec.undo is None:
            raise AssertionError(self.spec.name)
        self.undone = True  # Before the call: a saga that is cut off in the undo does not undo again.
        return self.spec.undo, *self.spec.undoing(self.args, self.kwargs, self.result)

    def stays(self, undo: str) -> None:
        """The undo, that call, failed for good."""
        self.undone, self.undo_failed = False, undo


def note(place: Place, spec: CallSpec, args: Args, kwargs: Kwargs, ending: Ending, made: Call | None) -> None:
    """A call was done. It is remembered if this run did it, and a saga may have to undo or to name it.

    `made` is the call as it was made; None if the journal answered at once: then it was made as recorded.
    """
    line = place.line
    if type(ending) is Failed and spec.kind == "effect" and was_in_doubt(ending.raw):
        place.session.notices.left_behind[place.called] = False
        if line.sagas:
            line.deeds.append(Deed(place.called, spec, (), {}, None, in_doubt=True))
        return
    named = line.sagas and spec.kind == "effect" and spec.undoes is None
    if isinstance(ending, Done) and (spec.undo is not None or named) and place.session.replay.did(ending):
        session = place.session
        address = place.called
        asked, defaults = _recorded(session, address, ending) if made is None else (made.args, made.defaults)
        if asked is None:
            asked = Raw(values.encode_args(spec.binder.bind(args, kwargs))[0])
        stop = None
        try:
            args, kwargs = spec.own(args, kwargs, asked, defaults, recorded=made is None)
        except Unrepeatable as why:
            stop = cannot_be_repeated(session.run, address, why)
        result = session.decoded(ending.raw)
        if spec.undo is not None and stop is None:
            stop = another_undo(session.run, address, asked, defaults, session.whole(ending.raw))
        line.deeds.append(Deed(address, spec, args, kwargs, result, stop=stop))


def _recorded(session: Context, address: str, ending: Done) -> tuple[Raw | None, Raw]:
    """The recorded arguments and defaults of the call."""
    past = session.state.calls.get(address)
    if past is None or past.value is not ending.raw:
        past = next((past for past in list(session.state.calls.values()) if past.value is ending.raw), None)
    if past is None or past.args is None:
        return None, NOTHING
    return session.whole(past.args), recorded_defaults(session, past)
