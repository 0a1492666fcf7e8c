"""What people say of a run, as values; and the entry that each of them writes, or the reason why it is refused.

A verb of `Run` and a plan that supposes an answer (`supposing.py`) come here with the same value and the run as it is, so what
was foretold is what is recorded. An entry is held against the very state that it follows: whoever writes it asks again, if
somebody else was quicker.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, assert_never

import msgspec
from msgspec import UNSET, Raw, Struct

from surefoot.core import values
from surefoot.core.address import as_recorded
from surefoot.core.cure import command
from surefoot.core.entry import (
    Acknowledged,
    AnswerGiven,
    CallsReopened,
    CancelRequested,
    CodeMatched,
    Drift,
    DriftAccepted,
    EffectSettled,
    Entry,
    EventSent,
    QuarantineLifted,
    RunRewound,
)
from surefoot.core.expectation import UNSEEN
from surefoot.core.history import Past, PastEffect, PastQuestion, PastState
from surefoot.core.need import TO_KNOW
from surefoot.core.reopening import failed_undos, undo_again, undone_across, why_not
from surefoot.core.state import RunState
from surefoot.core.timer import remaining
from surefoot.core.visible import shorten, visible
from surefoot.engine.declare import drifts
from surefoot.engine.declare.registry import registry
from surefoot.engine.drive import claimant
from surefoot.engine.drive.outcome import refuse_ended
from surefoot.engine.operate import places
from surefoot.engine.operate.return_type import fitted
from surefoot.engine.session import questions
from surefoot.errors import Outdated, UsageError

if TYPE_CHECKING:
    from surefoot.engine.operate.handle import Run

_SETTLED: Final = (PastState.DONE, PastState.CLEARED, PastState.FAILED)


class Who(Struct, frozen=True):
    """Whose word it is."""

    by: str
    note: str = ""
    """Why; kept in the journal."""
    via: str = ""
    """By which way it came: a console, and who was signed in there."""
    groups: tuple[str, ...] = ()
    """Those that this person is in: a question may be for a group."""


# --- what can be said --------------------------------------------------------------------------------


class Said(
    Struct, frozen=True, tag_field="do", tag=lambda name: name.lower(), forbid_unknown_fields=True, kw_only=True
):
    """Something that a person can say of a run. As an object for programs, `do` tells which."""


class Settle(Said, frozen=True):
    address: str
    happened: Any = UNSET
    not_happened: bool = False
    failed: bool = False


class Match(Said, frozen=True):
    address: str
    is_: str | None = msgspec.field(default=None, name="is")
    new: bool = False
    keep: bool = False
    rerun: bool = False


class Retry(Said, frozen=True):
    failed: bool | None = None
    at: tuple[str, ...] = ()


class Answer(Said, frozen=True):
    question: str
    value: Any
    shown: str = ""


class Accept(Said, frozen=True):
    witness: str | None = None
    found: dict[str, str] | None = None
    """Part -> what was found there, as it was seen: these parts and no others, and only if they are still so."""


class Rewind(Said, frozen=True):
    at: str


class Fork(Said, frozen=True):
    at: str
    id: str


class Cancel(Said, frozen=True):
    pass


class Release(Said, frozen=True):
    pass


class SendEvent(Said, frozen=True, tag="event"):
    name: str
    value: Any = None
    id: str = ""


class Acknowledge(Said, frozen=True):
    about: tuple[str, ...] = ()
    """Which kinds of news. Empty: all that there is now."""


Action = Settle | Match | Retry | Answer | Accept | Rewind | Fork | Cancel | Release | SendEvent | Acknowledge


def action(given: Any) -> Action:
    """What was said, from an object as programs send it: `{"do": "settle", "address": "pay#1", "not_happened": true}`."""
    if isinstance(given, Said):
        return given  # type: ignore[return-value]
    try:
        return msgspec.convert(given, Action)  # type: ignore[no-any-return]
    except msgspec.ValidationError as error:
        raise UsageError(f"that is nothing that can be said of a run: {error}") from None


# --- what it writes ----------------------------------------------------------------------------------


def entry(run: Run, state: RunState, said: Action, who: Who) -> Entry | None:
    """What saying that writes into a run that is like this. None: nothing, it is so already."""
    match said:
        case Settle():
            return _settled(run, state, said, who)
        case Match():
            from surefoot.engine.operate import matches

            return _matched(run, state, said, matches, who)
        case Retry():
            from surefoot.engine.operate import retries

            chosen = retries.chosen(run, state, failed=said.failed, at=said.at)
            return CallsReopened(tuple(past.address for past in chosen), who.by, who.note, who.via)
        case Answer():
            return _answered(run, state, said, who)
        case Accept():
            return accepted(run, state, said, who)[0]
        case Rewind(at=at):
            claimant.refuse_driven(run.runtime, state, " End it first.")
            address = as_recorded(at)
            return RunRewound(address, who.by, who.note, way_back(state, address), who.via)
        case Fork():
            raise UsageError("a fork is a run of its own: it writes nothing into the one that it is made of")
        case Cancel():
            refuse_ended(state)
            return None if state.cancel is not None else CancelRequested(who.by, who.note, who.via)
        case Release():
            return _released(state, who)
        case SendEvent():
            refuse_ended(state)
            raw = Raw(values.encode(said.value))
            return None if state.has_event(said.id) else EventSent(said.name, raw, said.id, who.by, who.via)
        case Acknowledge(about=about):
            return _seen(state, about, who)
        case _:
            assert_never(said)


def _settled(run: Run, state: RunState, said: Settle, who: Who) -> EffectSettled:
    address = as_recorded(said.address)
    if (said.happened is not UNSET) + said.not_happened + said.failed != 1:
        raise UsageError("settle: say one of happened=VALUE, not_happened=True and failed=True")
    denied = said.not_happened or said.failed
    past = _doubtful(run, state, address, not_happened=denied)
    value = None if denied else fitted(run.id, address, said.happened)
    return EffectSettled(
        address, not denied, past.attempt, Raw(values.encode(value)), "person", who.by, who.note, failed=said.failed,
        via=who.via,
    )  # fmt: skip


def _doubtful(run: Run, state: RunState, address: str, *, not_happened: bool) -> PastEffect:
    past = state.effect(address)
    doubtful = ", ".join(past.address for past in state.in_doubt()) or "nothing"
    if past is None or past not in state.in_doubt():
        settled = "" if past is None else _told(run, past)
        raise UsageError(f"run {run.id}: {address} is not in doubt{settled}. In doubt: {doubtful}.")
    if claimant.is_driven(run.runtime, state):
        raise UsageError(
            f"run {run.id}: {address} is being executed by {claimant.described_living(run.runtime, state)}. "
            "Wait for it, or end that process first."
        )
    if not_happened and past.state is PastState.UNSTORABLE:
        raise UsageError(f"run {run.id}: {address} did happen; only its value is unknown. Settle it with a value.")
    return past


def _told(run: Run, past: PastEffect) -> str:
    """Who settled it before and how, and how to reverse that."""
    if not past.learned_by or past.state not in _SETTLED:
        return ""
    who = past.learned_by.removeprefix("person ")
    said = f": settled by {who} at {datetime.fromtimestamp(past.ended / 1e6, UTC):%Y-%m-%d %H:%M:%S} UTC as"
    if past.state is PastState.FAILED:
        return f"{said} not happened, so that it fails"
    if past.state is PastState.CLEARED or past.value is None:
        return f"{said} not happened, so that the next resume runs it"
    value = shorten(visible(bytes(run.whole(past.value)).decode()), 100)
    return f"{said} {value}; take it back: {command('runs rewind', run.id, at=past.address)}"


def _matched(run: Run, state: RunState, said: Match, matches: Any, who: Who) -> CodeMatched:
    claimant.refuse_driven(run.runtime, state)
    found: CodeMatched = matches.word(
        state, said.address, is_=said.is_, new=said.new, keep=said.keep, rerun=said.rerun, by=who.by, note=who.note
    )
    return msgspec.structs.replace(found, via=who.via)


def _answered(run: Run, state: RunState, said: Answer, who: Who) -> AnswerGiven:
    past = open_question(run, state, as_recorded(said.question), who)
    if not past.shown.startswith(said.shown):
        raise Outdated(f"run {run.id}: {past.address} asks something else than you saw. Look at it again.")
    given = questions.plain(past, said.value)
    questions.require_fit(past, given)
    return AnswerGiven(past.address, past.shown, Raw(values.encode(given)), who.by, who.note, who.groups, who.via)


def open_question(run: Run, state: RunState, address: str, who: Who) -> PastQuestion:
    past = state.question(address)
    names = [one.address for one in state.questions()]
    if past is None:
        raise UsageError(f"run {run.id} has no question {address!r}. Open: {', '.join(names) or 'none'}.")
    if past.state is PastState.DONE:
        raise UsageError(f"run {run.id}: {address} was answered by {past.learned_by} already; the first answer counts.")
    over = past.due is not None and remaining(past.due, run.runtime.clock.read()) <= 0
    if past.state is not PastState.OPEN or over:
        means = "the no, or what on_timeout= says," if past.form == "approve" else "that nobody answered"
        more = f" Resume the run: {means} is recorded then." if past.state is PastState.OPEN else ""
        raise UsageError(f"run {run.id}: the time to answer {address} is over.{more}")
    refuse_ended(state)
    if past.answerers and not {who.by, *who.groups} & set(past.answerers):
        raise UsageError(f"run {run.id}: {address} is for {', '.join(past.answerers)}, not for {who.by}.")
    return past


def _released(state: RunState, who: Who) -> QuarantineLifted:
    if not any(stop.reason == "Quarantined" for stop in state.stops):
        raise UsageError(f"run {state.run} is not quarantined: {state.status}.")
    return QuarantineLifted(who.by, who.note, who.via)


def _seen(state: RunState, about: tuple[str, ...], who: Who) -> Acknowledged | None:
    if unknown := set(about) - set(TO_KNOW):
        raise UsageError(f"about={', '.join(sorted(unknown))}: what is only to be known is {', '.join(TO_KNOW)}")
    there = {one.kind for one in state.to_know}
    kinds = tuple(kind for kind in TO_KNOW if kind in there and (not about or kind in about))
    return Acknowledged(who.by, who.note, kinds, who.via) if kinds else None


# --- the way back ------------------------------------------------------------------------------------


def way_back(state: RunState, address: str) -> int:
    """The first entry of that call. Refused if an earlier effect was undone since: it would count as done."""
    past = _recorded(state, address)
    one = undone_across(state, past.first)
    if one is not None and past in failed_undos(state):
        raise UsageError(
            f"run {state.run}: it cannot go back to before {address}: what was undone after it would be in doubt.\n"
            f"  only undo what is left?   {undo_again(state.run, [address], when='')}"
        )
    if one is not None:
        rewind = command("runs rewind", state.run, at=one.effect.address)
        raise UsageError(
            f"run {state.run}: it cannot go back to before {address}: {one.effect.address} came before that, and no "
            f"longer stands: {why_not(one)}\n  go back to before it?   {rewind}"
        )
    return past.first


def _recorded(state: RunState, address: str) -> Past:
    past = state.calls.get(address)
    if past is None:
        from surefoot.engine.operate import forks

        raise forks.unknown_call(state.run, address, list(state.calls))
    return past


# --- the world ---------------------------------------------------------------------------------------


def findings(run: Run, state: RunState) -> drifts.Findings:
    """What the witnesses of a run see now; what its stop recorded, where they must not be asked."""
    if not _looks(run, state):
        return places.as_recorded(state, places.recorded(state))
    definition = registry.known_for(state.created)
    return drifts.look(state.world, definition.watch if definition is not None else ())


def _looks(run: Run, state: RunState) -> bool:
    return run.looks_anywhere or places.is_here(state)


def accepted(run: Run, state: RunState, said: Accept, who: Who) -> tuple[DriftAccepted, list[Drift]]:
    """The entry, and each part that it accepts. Observed here, to compare with the very state that the entry follows."""
    claimant.refuse_driven(run.runtime, state)
    refuse_ended(state)
    seen = findings(run, state)
    if said.found is not None:
        _require_as_seen(state, seen.drift, said.found, said.witness)
    taken = _acceptable(state, seen.drift, said.witness, said.found)
    if not _looks(run, state):
        places.require_known(state, taken)
        seen = places.as_recorded(state, taken)
    wanted = {found.witness for found in taken}
    sights = tuple(sight for sight in seen.sights if sight.witness in wanted)
    unwatched = {found.witness: found.actual for found in taken if found.what == UNSEEN}
    return DriftAccepted(sights, who.by, who.note, unwatched, who.via), taken


def _require_as_seen(state: RunState, drift: Iterable[Drift], shown: dict[str, str], witness: str | None) -> None:
    """All that the witnesses of these parts see is accepted with them: nothing of it may be other than it was shown."""
    now = {found.part: found for found in drift if found.part}
    witnesses = {now[part].witness for part in shown if part in now}
    gone = [part for part, value in shown.items() if part not in now or now[part].actual != value]
    new = [part for part, found in now.items() if found.witness in witnesses and part not in shown]
    other = [part for part in shown if part in now and witness not in (None, now[part].witness)]
    if moved := [*gone, *new, *other]:
        raise Outdated(
            f"run {state.run}: the world has changed since you looked: {', '.join(sorted(moved)[:5])}. Nothing was "
            f"recorded. Look again: {command('runs show', state.run)}"
        )


def _acceptable(state: RunState, drift: list[Drift], witness: str | None, shown: dict[str, str] | None) -> list[Drift]:
    wanted = [found for found in drift if witness in (None, found.witness) and (shown is None or found.part in shown)]
    if not wanted:
        drifted = ", ".join(sorted({found.witness for found in drift})) or "nothing"
        what = "nothing" if witness is None else witness
        raise UsageError(f"run {state.run}: {what} has{' not' if witness else ''} drifted. Drifted: {drifted}.")
    seen = [found for found in wanted if found.what != UNSEEN]
    if seen:
        return seen
    lines = "; ".join(found.line() for found in wanted)
    if any(found.actual == drifts.CODE_NEEDED for found in wanted):
        try:
            registry.find_for(state.created)
        except UsageError as error:
            # An observation that only lacks the code does not stop the others.
            raise UsageError(f"run {state.run}: {lines}. {error}") from None
    if witness is None:
        raise UsageError(f"run {state.run}: {lines}. Name the witness, if the run shall no longer watch it")
    return wanted
