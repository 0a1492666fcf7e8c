"""What a run asks a person: how an in-doubt effect ended, or an answer to a question of its own."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from surefoot.core import values
from surefoot.core.cure import JSON, NEW_ID, Advice, Ask, Command, Cures, command
from surefoot.core.entry import NOTHING, Kept, Stop, Value
from surefoot.core.history import PastEffect, PastQuestion, PastState
from surefoot.core.key import idempotency_key
from surefoot.core.state import CANCELLED, ENDED, RunState
from surefoot.core.visible import shorten, visible
from surefoot.errors import StepFailed

QUESTION_WIDTH = 500
ARGUMENTS_WIDTH = 200


class Doubt(Struct, frozen=True):
    """What is known about an effect whose outcome is unknown."""

    run: str
    address: str
    known: str
    args: Value | None = None
    """The arguments: a person needs the number of an order to look for it."""
    raised: str = ""
    """The exception it ended with, by name; empty: it was cut off. A call that raised may well raise again."""
    nameable: bool = True
    """Whether `not_done=` would be believed about it."""

    def stop(self, why_now: str) -> Stop:
        message = f"run {self.run}, {self.address}: {self.known}, and {why_now}.{_called_with(self.args)}"
        cures = _answers(self.run, self.address, self.raised, nameable=self.nameable)
        return Stop("InDoubt", message, self.address, {"known": self.known}, cures)

    def spent(self) -> Stop:
        """Only a fork has another key: the answer "it did not happen" sends the same key again."""
        stop = self.stop("under the same key the other side would do nothing, and answer as it did then")
        when = "did not, and do it under a new key?"
        fork = command("runs fork", self.run, at=self.address, id=NEW_ID, when=when)
        happened, again, *others = stop.cures
        return replace(stop, cures=(happened, fork, replace(again, when="send the same key?"), *others))

    def because(self, why: str) -> Doubt:
        return replace(self, known=f"{self.known} ({why})")

    def failure(self) -> Raw:
        """For `on_crash="fail"`: the call fails, and its error says that the outcome is unknown."""
        return Raw(values.encode_error(StepFailed("InDoubt", f"{self.address}: {self.known}")))


def recorded(run: str, past: PastEffect) -> Doubt:
    """The effect was left in doubt by an earlier process."""
    args = called_with(past.args, past.defaults)
    if past.suspected:
        return lost(run, past.address, args)
    if past.rewound:
        known = "it may have been executed before the run was sent back to before it"
        return Doubt(run, past.address, known + (f", and {past.spent} since" if past.spent else ""), args)
    started = datetime.fromtimestamp(past.at / 1e6, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    known = f"started {started} by {past.claimant}, "
    if past.outcome_lost:
        return Doubt(run, past.address, known + "and entries that were recorded after that are lost", args)
    if past.landed is not None:
        said = f"which says that it executed it too late to be recorded ({past.landed.outcome})"
        return Doubt(run, past.address, known + said, args)
    if past.error is None:
        return Doubt(run, past.address, known + "no outcome recorded", args)
    kind, text = values.error_summary(past.error)
    return Doubt(run, past.address, known + f"raised {kind}: {text}, {_PROVES_NOTHING}", args, kind)


def lost(run: str, address: str, args: Value | None = None) -> Doubt:
    known = "it may have been executed before: entries of this run are lost, perhaps its own"
    return Doubt(run, address, known, args)


def on_resume(policy: str, spent: str = "") -> str:
    """What a resume would do about an effect in doubt. `spent`: what may have undone it later, under the same key."""
    if spent and policy == "retry":
        return f"{_ASK}, unless its check finds it: {spent}"
    return _ON_RESUME.get(policy, _ASK)


def would_do(state: RunState, past: PastEffect) -> str:
    """The same of an effect that is in doubt in this run."""
    if past.state is PastState.UNSTORABLE:
        return "stop: its value must be given by a person"
    if past.policy == "retry" and past.rewound and past.key != _own_key(state, past.address):
        return _ASK  # It was executed by the run that this one was forked from, under a key of that one.
    return on_resume(past.policy, past.spent)


def _own_key(state: RunState, address: str) -> str:
    namespace = state.created.namespace if state.created is not None else ""
    return idempotency_key(namespace, state.run, state.segment, address)


_ASK: Final = "stop and ask a person"
_ON_RESUME: Final = {
    "retry": "run again with the same key",
    "fail": "fail the call",
    "check": "ask its check, which decides",
}


def open_questions(state: RunState) -> tuple[Stop, ...]:
    """What a person has to answer before the run can go on, even if no process has met the question yet."""
    if state.status == CANCELLED:
        return tuple(left_behind(state.run, past) for past in state.in_doubt())
    if state.stops or state.status in ENDED:
        return state.stops
    return (*open_doubts(state), *(unanswered(state.run, past) for past in state.questions()))


def open_doubts(state: RunState) -> tuple[Stop, ...]:
    """The effects in doubt that only a person can settle."""
    return tuple(
        open_question(state.run, past, "it has no check")
        for past in state.in_doubt()
        if past.state is PastState.UNSTORABLE or past.policy == "ask"
    )


def open_question(run: str, past: PastEffect, why_now: str) -> Stop:
    if past.state is PastState.UNSTORABLE:
        return unstorable(run, past.address, past.why, called_with(past.args, past.defaults))
    return recorded(run, past).stop(why_now)


def left_behind(run: str, past: PastEffect) -> Stop:
    """An effect of a cancelled run that was not undone: it is not known whether, or with which result, it happened."""
    if past.state is PastState.UNSTORABLE:
        why = f"{past.why.rstrip('.')}, and the run was cancelled. It is not undone"
        stop = unstorable(run, past.address, why, called_with(past.args, past.defaults))
    else:
        stop = recorded(run, past).stop("the run was cancelled. If it happened, it is not undone")
    look = Advice("look:", "see outside what became of it, and put that right by hand")
    return replace(stop, cures=(look, *(replace(cure, when=f"then note it, {cure.when}") for cure in stop.cures)))


def unanswered(run: str, past: PastQuestion) -> Stop:
    """An open question. Its text may come from anywhere, so it is made unable to act on the terminal that shows it."""
    who = f" (for {visible(', '.join(past.answerers))})" if past.answerers else ""
    by = _as_whom(past.answerers)
    if past.form == "approve":
        cures: Cures = (
            command("approve", run, past.address, by=by, when="yes:"),
            command("deny", run, past.address, by=by, when="no:"),
        )
    else:
        cures = (command("answer", run, past.address, value=JSON, by=by, when="answer:"),)
    details = _in_short(past.args)
    about = "" if details in ("", "null") else f" {details}"
    message = f"run {run}, {past.address}: waiting for an answer{who}: {shorten(past.question, QUESTION_WIDTH)}{about}"
    facts = {"question": past.question, "form": past.form, "shown": past.shown}
    return Stop("WaitingForAnswer", message, past.address, facts, cures)


def _as_whom(answerers: tuple[str, ...]) -> str | Ask:
    """Without it the name of the operating-system user is used, which is seldom the one asked for."""
    if not answerers:
        return ""
    named = len(answerers) == 1 and answerers[0].isprintable()
    return answerers[0] if named else Ask("NAME")


def did_nothing(run: str, address: str, error: str, args: Value | None) -> Doubt:
    known = f"its last attempt did nothing ({error}), but an earlier one may have happened"
    return Doubt(run, address, known, args)


def raised(run: str, address: str, error: str, args: Value | None, *, nameable: bool = True) -> Doubt:
    """`error`: the exception as recorded, its name first."""
    kind = error.partition(":")[0]
    return Doubt(run, address, f"raised {error}, {_PROVES_NOTHING}", args, kind, nameable)


def unstorable(run: str, address: str, why: str, args: Value | None) -> Stop:
    """The effect happened, so the only question is its value; the effect is never run again."""
    message = (
        f"run {run}, {address}: it happened, but its result could not be stored: {why.rstrip('.')}.{_called_with(args)}"
    )
    cure = command("settle", run, address, happened=JSON, when="give its value")
    return Stop("InDoubt", message, address, {"happened": "yes"}, (cure,))


def called_with(args: Value | None, defaults: Value | None) -> Value | None:
    """The arguments of an effect, for people: what was passed, and the defaults of what was not."""
    if not isinstance(args, Raw) or not isinstance(defaults, Raw) or defaults == NOTHING:
        return args
    passed = msgspec.json.decode(args, type=dict[str, Raw])
    return Raw(msgspec.json.encode({**passed, **msgspec.json.decode(defaults, type=dict[str, Raw])}))


def _called_with(args: Value | None) -> str:
    shown = _in_short(args)
    return "" if shown in ("", "{}") else f" Its arguments: {shown}"


def _in_short(value: Value | None) -> str:
    """On one line that cannot act on a terminal. An `sf.Secret` is recorded, and so shown, as ***."""
    if isinstance(value, Kept):
        return f"{value.reference.size} bytes"
    return shorten(bytes(value or b"").decode("utf-8", "replace"), ARGUMENTS_WIDTH)


def _answers(run: str, address: str, raised: str, *, nameable: bool) -> Cures:
    if not raised:
        return settling(run, address, "happened?", "did not?")
    fail = command("settle", run, address, failed=True, when="did not, let it fail?")
    answers = (*settling(run, address, "happened?", "did not, try again?"), fail)
    if not nameable or raised in _NOT_NAMEABLE or any(word in raised for word in _NO_PROOF):
        return answers
    name = address.rpartition("/")[2].partition("#")[0]
    declare = f"@sf.effect(not_done={raised}) on {name}, or raise sf.NotDone"
    return (*answers, Advice("such an exception proves it?", declare))


def settling(run: str, address: str, happened: str, did_not: str) -> tuple[Command, Command]:
    """The two answers that a person can give about an effect in doubt."""
    return (
        command("settle", run, address, happened=JSON, when=happened),
        command("settle", run, address, not_happened=True, when=did_not),
    )


_PROVES_NOTHING: Final = "which does not tell whether it happened"
_NO_PROOF: Final = ("Timeout", "Connection", "Disconnected", "IncompleteRead", "Unavailable", "Unsure")
"""Exceptions of these names prove nothing, whatever the effect is: no cure suggests declaring them."""
_NOT_NAMEABLE: Final = (
    *("NotDone", "Fatal", "RetryAfter", "ExceptionGroup", "BaseExceptionGroup"),
    *("CancelledError", "KeyboardInterrupt", "SystemExit"),
)
"""No cure suggests naming these in `not_done=`. Some prove it by themselves and were not believed, because they came
from another call; the last ones cut off any call. For both, naming would change nothing. A group says nothing
about what succeeded."""
