"""What earlier processes recorded about each call, and whether the code still asks for the same.

A recorded value is only ever given to the call it was recorded for: same address, same kind of call,
same arguments. Anything else is `CodeChanged`, with both sides shown.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from enum import Enum

from msgspec import Raw, Struct

from surefoot.core.cure import JSON, Advice, Command, Cure, Cures, Edit, command
from surefoot.core.entry import Due, EffectLandedLate, Kept, RunAdopted, Stop, Value
from surefoot.errors import Stopped

_TAKEN_OUT, _MOST_TAKEN_OUT = "taken out, this run only?", 3
_MOST_NAMES = 5


class PastState(Enum):
    STARTED = "started"
    """A step that was cut off, or is running now."""
    RETRYING = "retrying"
    IN_DOUBT = "in doubt"
    CLEARED = "cleared"
    """In doubt once, then settled as not happened: it may run again, with the same key."""
    UNSTORABLE = "unstorable"
    OPEN = "open"
    """A timer that has not fired, a wait that has not ended."""
    DONE = "done"
    FAILED = "failed"


class Past(Struct, frozen=True, gc=False):
    """One recorded call, folded from its entries. A value: a further entry makes another one (`replace`)."""

    address: str
    kind: str
    """`step`, `effect`, `value`, `timer`, `wait`, `question`, `sight`, `saga` or `note`."""
    state: PastState
    at: int
    """When it started, microseconds since 1970."""
    digest: str = ""
    args: Value | None = None
    defaults: Value | None = None
    """Of an effect: what the parameters that were not passed had as defaults."""
    value: Value | None = None
    error: Raw | None = None
    attempt: int = 0
    failures: int = 0
    """How many attempts of an effect ended, as against being cut off: only those use up its retries."""
    parked: bool = False
    """It waits because what it needs is away (`sf.Unavailable`)."""
    parks: int = 0
    """How many attempts ended so: they use up no retries."""
    due: Due | None = None
    deadline: Due | None = None
    """Of an effect: when its attempt has used up its time."""
    lands: Due | None = None
    """Of an effect: until when its attempt may still be on its way, if it was cut off."""
    marked: str = ""
    """Of an effect: the database in which every attempt that may have happened has left its marker; empty: none has to."""
    origin: str = ""
    """Of an effect: where it was defined, unless its name says that (`EffectIntended.origin`)."""
    taken_from: RunAdopted | None = None
    """Of an effect in doubt: the claimant that began it, if others took the run from it without a word of its own."""
    landed: EffectLandedLate | None = None
    """Of an effect in doubt: the word of a process which had lost its claim by then that it executed this attempt."""
    runs_in: str = ""
    """Of an effect in doubt: the worker in whose process its last attempt may still be running."""
    ended: int = 0
    seconds: float = 0.0
    """Of a saga: how long the code had been running when the saga was cancelled."""
    key: str = ""
    expires: Due | None = None
    """Until when a retry under its key is safe."""
    policy: str = ""
    name: str = ""
    why: str = ""
    learned_by: str = ""
    """Who told what became of it, where that is not the call itself: `person ann`, `check`."""
    cleared_by: str = ""
    """Who said, before its last attempt, that it had not happened."""
    claimant: str = ""
    """Who made it; of an effect, who began its last attempt, whoever recorded what became of that."""
    epoch: int = 0
    seq: int = 0
    """Its newest entry."""
    first: int = 0
    """Its first entry."""
    rewound: bool = False
    """An effect that was executed before a person sent the run back to before it: in doubt, with the same key."""
    executed_with: str = ""
    """Of an effect that was rewound, or is tried again: the digest of the arguments it was executed with."""
    spent: str = ""
    """Of a rewound effect: how what it did was reversed since, in words. Under its key it would not be done again."""
    before: Value | None = None
    """Of a rewound effect: what it had noted as being there before it (`X.before#1` belongs to `X#1`)."""
    gave_up: bool = False
    """An effect that failed because it was in doubt (`on_crash="fail"`): it may have happened all the same."""
    reopened: bool = False
    """An effect that failed, and that a person has tried again (`runs retry`): cleared, or in doubt if it gave up."""
    form: str = ""
    """Of a question: `approve` or `ask`."""
    shown: str = ""
    """Of a question: the digest of what is shown, to which an answer is bound."""
    answerers: tuple[str, ...] = ()
    schema: str = ""
    question: str = ""
    suspected: bool = False
    """In doubt only because its record may be among entries that were lost."""
    unproven: bool = False
    """An earlier attempt may have happened; a later one that certainly did nothing does not change that."""
    outcome_lost: bool = False
    """In doubt, and entries that were recorded after it are lost."""
    visited: int = 0
    """Of an effect: the entry in which somebody else last changed how it stands."""
    asked_as: int = 0
    """Of a step: the number that the code asked for it by, if its address has another one."""
    kept: str = ""
    """The digest of other arguments with which it was asked for since, and what it gave was kept."""

    @property
    def is_limit(self) -> bool:
        """The deadline of a block (`sf.timeout`) that has not ended."""
        name = self.address.rpartition("/")[2].partition("#")[0]
        return self.kind == "timer" and self.state is PastState.OPEN and name == "timeout"


def names_of(pasts: Sequence[Past]) -> str:
    return _first_few([past.address for past in pasts])


def _first_few(names: list[str]) -> str:
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more


def no_longer_asked(
    run: str, pasts: list[Past], in_use: frozenset[str] = frozenset(), unknown: frozenset[str] = frozenset()
) -> Stop:
    """Recorded effects which the code, now at its end, did not ask for. `in_use`: effects that it asks for; `unknown`:
    those that no loaded code has.
    """
    names = names_of(pasts)
    message = (
        f"run {run}: the code came to its end without asking for {names}, "
        f"but {'these effects were' if len(pasts) > 1 else 'this effect was'} executed before."
    ) + perhaps_plain(name for past in pasts if (name := _name(past.address)) in unknown)
    called = dict.fromkeys(_name(past.address) for past in pasts if past.kind == "effect")
    gone = ", ".join(f'"{name}"' for name in called if name not in in_use)
    told = (Edit("gone for good?", f"sf.removed({gone})", "in the module"),) if gone else ()
    facts = {"recorded": names, "asked": "nothing", "unasked": "\n".join(past.address for past in pasts)}
    return Stop(
        "CodeChanged",
        message,
        pasts[0].address,
        facts,
        (*_settle(run, pasts), *taken_out(run, pasts), *told, *cures(run)),
    )


def _settle(run: str, pasts: list[Past]) -> Cures:
    """Whether it happened has to be said first."""
    doubtful = next((past.address for past in pasts if past.state in (PastState.IN_DOUBT, PastState.UNSTORABLE)), "")
    return settling(run, doubtful, f"{doubtful} happened?", "it did not?") if doubtful else ()


def settling(run: str, address: str, happened: str, did_not: str) -> tuple[Command, Command]:
    """The two things that a person can say of an effect in doubt."""
    return (
        command("settle", run, address, happened=JSON, when=happened),
        command("settle", run, address, not_happened=True, when=did_not),
    )


def taken_out(run: str, pasts: list[Past]) -> Cures:
    """What a person may say of recorded effects that the code goes on without. Doubt is settled first."""
    known = [past.address for past in pasts if past.state in (PastState.DONE, PastState.FAILED)]
    return tuple(command("match", run, address, keep=True, when=_TAKEN_OUT) for address in known[:_MOST_TAKEN_OUT])


def perhaps_plain(names: Iterable[str]) -> str:
    """What nobody can rule out of effects that no loaded code has: as plain functions they would be called in a replay."""
    listed = " or ".join(dict.fromkeys(names))
    return f" If {listed} has lost its decorator, the replay has called it as a plain function: look." if listed else ""


def _name(address: str) -> str:
    return address.rpartition("/")[2].rpartition("#")[0].removesuffix(".undo")


def not_asked_yet(run: str, pasts: list[Past], at: str) -> Stop:
    """Recorded effects which the code has not asked for where the replay ends. It may ask for them later on."""
    names = names_of(pasts)
    were, have, them = ("were", "have", "them") if len(pasts) > 1 else ("was", "has", "it")
    message = (
        f"run {run}: {names} {were} executed before and {have} not been asked for when {at}. "
        f"If the code no longer asks for {them}, the run stops before its next new effect, or else at its end."
    )
    later = Advice("comes later?", f"then all is well: calls were put in front of {them}")
    return Stop("CodeChanged", message, pasts[0].address, {"recorded": names, "asked": at}, (later, *cures(run)))


def not_known_yet(run: str, addresses: list[str], step: str) -> Stop:
    """Recorded effects which the code asks for with something that a step gives which has not run."""
    names = _first_few(addresses)
    message = (
        f"run {run}: {names} {'are' if len(addresses) > 1 else 'is'} on record, and asked for with what {step} gives, which "
        "would run first. If that is not what was passed before, the run stops there, before anything else is executed."
    )
    same = Advice("gives the same?", "then all is well")
    return Stop("CodeChanged", message, addresses[0], {"recorded": names, "asked": step}, (same, *cures(run)))


def located(error: Stopped, run: str, where: str) -> Stopped:
    """The same stop, with the run and the call it belongs to. One that names its run stays as it is."""
    if error.run_id:
        return error
    told = f"run {run}, {where}: {error.summary}" if where else f"run {run}: {error.summary}"
    return type(error)(told, run_id=run, address=where if "#" in where else "", facts=error.facts, cures=error.remedies)


def cures(run: str) -> Cures:
    return (
        run_again("old code:", "put it back", run),
        Advice("new code:", 'keep the old way for runs in flight: if sf.patched("what-changed"): … else: …'),
    )


def run_again(when: str, first: str, run: str) -> Cure:
    return Advice(when, f"{first} and run {shlex.quote(run)} again")


def changed(run: str, address: str, recorded: str, asked: str) -> Stop:
    message = (
        f"run {run}, {address}: the code no longer matches the journal.\n  recorded: {recorded}\n  asked now: {asked}"
    )
    return Stop("CodeChanged", message, address, {"recorded": recorded, "asked": asked}, cures(run))


def shown(raw: Value | bytes | None) -> str:
    if isinstance(raw, Kept):
        return f"{raw.reference.size} bytes with SHA-256 {raw.reference.digest.hex()}"
    text = bytes(raw or b"").decode("utf-8", "replace")
    return text if len(text) <= 400 else text[:400] + f" … ({len(text)} characters)"
