"""The request of a call: its arguments and the defaults in force, as recorded.

A retry repeats the request. An effect whose key was used is made again with the recorded arguments and defaults, even
if the code has another default by now, or passes another value for a parameter in `noted=`. So is a child run that has
not ended. Only unrecorded values, secrets and parameters in `ignore=`, come from the present code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Raw, Struct

from surefoot.core import values
from surefoot.core.code_changes import cures
from surefoot.core.cure import Advice
from surefoot.core.entry import NOTHING, Stop
from surefoot.core.history import Past, PastCall, PastEffect, PastState, is_child
from surefoot.core.masking import FEW, MANY, Mask, secrets_in
from surefoot.core.members import changed_members
from surefoot.engine.declare.context import Args, Context, Kwargs
from surefoot.engine.declare.defaults import Gone, Unrepeatable, hides

if TYPE_CHECKING:
    from surefoot.engine.declare.call_spec import CallSpec

_UNDER_WAY = frozenset({PastState.IN_DOUBT, PastState.RETRYING, PastState.UNSTORABLE})


class Request(Struct, frozen=True):
    args: Raw
    digest: str
    defaults: Raw = NOTHING


def as_asked(spec: CallSpec, args: Args, kwargs: Kwargs, raw: bytes, digest: str) -> Request:
    """The request as the code makes it now. A step records no defaults: its result is its only trace."""
    return Request(Raw(raw), digest, spec.binder.left_out(args, kwargs) if spec.kind == "effect" else NOTHING)


def repeated(session: Context, past: PastCall, request: Request) -> Request:
    """The recorded request, if this call goes on with it; else the one that the code makes now."""
    goes_on = _goes_on(past, request.digest) if isinstance(past, PastEffect) else is_child(past)
    if past.args is None or not goes_on:
        return request
    defaults = recorded_defaults(session, past)
    if past.state is PastState.CLEARED and changed_members(defaults):
        return request  # The effect did not happen, and a default is an enum's member with another value now.
    return Request(session.whole(past.args), past.made_with, defaults)


def _goes_on(past: PastEffect, digest: str) -> bool:
    """An effect settled as not happened may be asked for with other arguments: then it is a new request.

    A rewound effect is a new request too, unless it is in doubt and asked for again with the same arguments.
    """
    if past.rewound:
        return past.state is PastState.IN_DOUBT and past.executed_with == digest
    made_with = past.executed_with if past.reopened else past.digest
    return past.state in _UNDER_WAY or (past.state is PastState.CLEARED and made_with == digest)


def recorded_defaults(session: Context, past: Past) -> Raw:
    defaults = past.defaults if isinstance(past, PastEffect) else None
    return NOTHING if defaults is None else session.whole(defaults)


def cannot_be_repeated(run: str, address: str, why: Unrepeatable) -> Stop:
    names = ", ".join(why.names)
    if isinstance(why, Gone):
        what = f"it was called with a default for {names}, and the code no longer has that parameter"
        helps = Advice("renamed?", f"give the new parameter the default that {names} had: then it is the same call")
    else:
        what = f"a secret, which is not recorded, was in {names} at a place where the code has none now"
        helps = Advice("the same secret?", f"pass it where it was in {names}: then it is the same call")
    message = (
        f"run {run}, {address}: {what}, so that the same call cannot be made again, looked for or undone. "
        "Nothing was executed."
    )
    return Stop("CodeChanged", message, address, {"recorded": names, "asked": "nothing"}, (helps, *cures(run)))


def encoded(spec: CallSpec, args: Args, kwargs: Kwargs, mask: Mask) -> tuple[bytes, str]:
    """The arguments as recorded, and the digest of those that are compared. The mask learns their secrets."""
    bound = spec.binder.bind(args, kwargs)
    raw, digest = values.encode_args(bound)
    if spec.noted:
        digest = values.digest({name: value for name, value in bound.items() if name not in spec.noted})
    if (hidden := hides(raw)) or spec.binder.may_hide:
        mask.learn(secrets_in(args, kwargs, spec.binder.secrets, most=MANY if hidden else FEW))
    return raw, digest
