"""A person's declaration for one run: which calls of changed code and which recorded calls are the same.

A declaration has to match something: the call that a stop names, or recorded calls. `--keep` of recorded effects that a
stop names as not asked for means that the effects stand, and the code leaves them out. A pattern that matches nothing,
or a recorded call that could be two, is refused: such an answer would only seem to help.
"""

from __future__ import annotations

from surefoot.core.address import as_recorded, split
from surefoot.core.cure import command
from surefoot.core.entry import CodeMatched
from surefoot.core.history import Past, PastState, is_child
from surefoot.core.matching.answers import KEEP
from surefoot.core.matching.words import IDENTITY, UNASKED, fits
from surefoot.core.state import RunState
from surefoot.engine.drive.outcome import refuse_ended
from surefoot.errors import UsageError

HOW = ("is", "new", "keep", "rerun")


def word(
    state: RunState, address: str, *, is_: str | None, new: bool, keep: bool, rerun: bool, by: str, note: str
) -> CodeMatched:
    """The entry to record; refused with the reason if it answers nothing."""
    address = as_recorded(address)
    said = [name for name, given in zip(HOW, (is_ is not None, new, keep, rerun), strict=True) if given]
    if len(said) != 1:
        raise UsageError("match: say one of --is OLD, --new, --keep and --rerun.")
    refuse_ended(state)
    how = said[0]
    if how in ("keep", "rerun"):
        _require_recorded(state, address, how)
    else:
        _require_asked(state, address)
    if how == "new":
        _refuse_recorded(state, address)
    other = as_recorded(is_ or "")
    if how == "is":
        _require_one(state, address, other)
    # Which call it is does not depend on its arguments; what happens to its record does.
    return CodeMatched(address, how, by, other, note, () if how == "is" else _shown(state, address, how))


def _shown(state: RunState, address: str, how: str) -> tuple[str, ...]:
    """The subject of the declaration: the arguments with which the run stopped at that call, or that no call asks for
    it. A pattern is about any arguments.
    """
    facts = [stop.facts for stop in state.stops if stop.reason == "CodeChanged"]
    unasked = [one for found in facts if "unasked" in found for one in found["unasked"].split("\n")]
    calls = [found["call"] for found in facts if "call" in found]
    if how == KEEP and any(fits(address, one) for one in unasked) and not any(fits(address, one) for one in calls):
        return (UNASKED,)
    if "*" in address:
        return ()
    mine = [found for found in facts if address in (found.get("asked"), found.get("call"))]
    return tuple(dict.fromkeys(found["digest"] for found in mine if found.get("digest")))


def _calls(state: RunState) -> list[Past]:
    return [past for past in state.calls.values() if past.kind in ("step", "effect")]


def _asked(state: RunState) -> list[str]:
    """The calls of today's code that the stops of this run are about."""
    facts = [stop.facts for stop in state.stops if stop.reason == "CodeChanged"]
    return [found[name] for found in facts for name in ("asked", "call") if "#" in found.get(name, "")]


def _wait(state: RunState, address: str) -> Past | None:
    """The recorded wait for an event at that address. Only `--keep` applies to it."""
    past = state.calls.get(address)
    return past if past is not None and past.kind == "wait" else None


def _require_asked(state: RunState, address: str) -> None:
    """Require that the run stopped at this call, or that an earlier declaration about it is changed."""
    if _wait(state, address) is not None:
        raise UsageError(f"run {state.run}: {address} waits for an event, which is kept (--keep) or waited for anew.")
    asked = [one for one in _asked(state) if "{" not in one]
    earlier = (match.address for _, match in state.matches)
    if address not in earlier and not any(fits(address, one) for one in asked):
        known = ", ".join(dict.fromkeys(asked)) or "none: it does not stand at changed code"
        raise UsageError(f"run {state.run}: no call that it stands at is {address}. Those that it does: {known}.")


def _require_recorded(state: RunState, address: str, how: str) -> None:
    hit = [past for past in _calls(state) if fits(address, past.address)]
    is_wait = _wait(state, address) is not None
    if not hit and (how == "keep" if is_wait else any(fits(address, one) for one in _asked(state))):
        return
    if not hit:
        raise UsageError(f"run {state.run}: {address} hits no recorded step or effect.")
    effects = [past.address for past in hit if past.kind == "effect" or is_child(past)]
    if how == "rerun" and effects and "*" not in address:
        raise UsageError(
            f"run {state.run}: {effects[0]} is an effect, and was executed. To have it run again, send the run back to "
            f"before it ({command('runs rewind')}): then a person is asked."
        )
    if how == "keep":
        if split(address)[1].endswith(".undo") and address not in _asked(state):
            # Without the undo, the run would go on as if the effect were done.
            raise UsageError(
                f"run {state.run}: {address} is an undo, and belongs to its effect. Say what becomes of that one."
            )
        open_ = [past.address for past in hit if past.state is PastState.IN_DOUBT and "*" not in address]
        if open_:
            raise UsageError(f"run {state.run}: {open_[0]} is in doubt. Settle it first ({command('settle')}).")


def _refuse_recorded(state: RunState, address: str) -> None:
    """Refuse a pattern that also matches recorded calls: those would be executed again."""
    hit = [past.address for past in _calls(state) if "*" in address and fits(address, past.address)]
    if hit:
        raise UsageError(
            f"run {state.run}: {address} also hits {', '.join(hit[:3])}, which {'are' if len(hit) > 1 else 'is'} on record: "
            "said to be new, they would be made again. Name the calls that are new."
        )


def _require_one(state: RunState, address: str, other: str) -> None:
    """With a star on both sides, its text is carried over; without one, exactly one recorded call is meant."""
    hit = [past.address for past in _calls(state) if fits(other, past.address)]
    if not hit:
        raise UsageError(f"run {state.run}: {other} hits no recorded step or effect.")
    if "*" in other and address.count("*") != other.count("*"):
        raise UsageError(
            f"run {state.run}: {other} hits {len(hit)} recorded calls, {', '.join(hit[:3])} …: name one, or put as many "
            f"stars into the address ({address}) as into it."
        )
    if "*" not in other and "*" in address:
        raise UsageError(f"run {state.run}: {address} may be several calls, and {other} is one. Name one of them.")
    _require_free(state, address, other)


def _require_free(state: RunState, address: str, other: str) -> None:
    """One recorded call is one call of the code: a record given to another call cannot be given twice."""
    newest = {match.address: match for _, match in state.matches if match.how in IDENTITY}
    for match in newest.values():
        if match.how == "is" and match.other == other and match.address != address and "*" not in other:
            raise UsageError(
                f"run {state.run}: {other} is on record once, and {match.by} has said that it is {match.address}. If that was "
                f"wrong, say first what {match.address} is."
            )
