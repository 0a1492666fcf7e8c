"""Asking people: the question is stored, the run stands still, and the answer may come days later from anywhere.

An answer is bound to a digest of everything a person is shown. If the code now asks something else under the same name,
the old answer is void and the question is put again. The first durable answer counts; when the time is over, so is the
question, whichever of the two is recorded first.
"""

from __future__ import annotations

import shlex
from collections.abc import Generator, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import Raw, Struct

from surefoot.core import schema as schemas
from surefoot.core import values
from surefoot.core.command import Append, Ending, Failed, Pause, Program
from surefoot.core.entry import QuestionAsked, QuestionExpired, Stop
from surefoot.core.history import Past, PastState, changed
from surefoot.core.programs.calls import Call
from surefoot.core.timer import Duration, after, remaining, seconds
from surefoot.engine.current import Place
from surefoot.errors import Fatal, UsageError, ValueRejected

DENY, APPROVE, RAISE = "deny", "approve", "raise"
ON_TIMEOUT = (DENY, APPROVE, RAISE)

Asking = Generator[Append | Pause, Any, Past | None]


class Decision(Struct, frozen=True):
    """A person's yes or no. True when approved."""

    approved: bool
    by: str = ""
    note: str = ""
    at: datetime | None = None
    """When it was given; None: nobody answered in time."""

    def __bool__(self) -> bool:
        return self.approved


class Question(Struct, frozen=True):
    """What a person is shown. All of it is bound to the answer."""

    form: str
    text: str
    details: Raw
    schema: str = ""
    by: tuple[str, ...] = ()
    due_seconds: float | None = None

    @property
    def shown(self) -> str:
        return values.digest([self.form, self.text, bytes(self.details), self.schema, list(self.by)])


def question(
    form: str,
    text: object,
    details: object,
    by: str | Sequence[str] | None,
    timeout: Duration | None,
    wanted: Any = None,
) -> Question:
    if not isinstance(text, str) or not text.strip():
        raise UsageError(f"sf.{form}() needs a question: a text that a person understands, not {text!r}")
    try:
        raw = Raw(values.encode(details))
    except ValueRejected as error:
        raise ValueRejected(f"sf.{form}(details=…): {error}", path=error.path) from error
    names = (by,) if isinstance(by, str) else tuple(by or ())
    if not all(names):
        raise UsageError(f"sf.{form}(by={by!r}): the names of those who may answer")
    return Question(form, text, raw, _schema(wanted), names, None if timeout is None else seconds(timeout))


def _schema(wanted: Any) -> str:
    if wanted is None:
        return ""
    try:
        return msgspec.json.encode(msgspec.json.schema(wanted)).decode()
    except TypeError as error:
        raise UsageError(
            f"sf.ask(type={wanted!r}): an answer is plain data, so it must be a plain type, a dataclass or a Struct "
            f"({error})"
        ) from None


def asking(place: Place, address: str, asked: Question) -> Asking:
    """Put the question, and wait for its answer. None: the time is over."""
    session = place.session
    past: Past | None = session.state.calls.get(address)
    if past is not None:
        past.asked = True
        if past.kind != "question":
            raise session.stopped(place, changed(session.run, address, f"a {past.kind}", f"sf.{asked.form}()"))
    if past is None or past.shown != asked.shown:
        session.would_do(asked.form, address)
        due = None if asked.due_seconds is None else after(session.now(), asked.due_seconds)
        entry = QuestionAsked(address, asked.form, asked.text, asked.shown, asked.details, asked.schema, asked.by, due)
        yield Append(entry)
        past = session.state.ask(entry, session.clock.now())
    patience = after(session.now(), session.wait_seconds)
    while True:
        if past.state is PastState.DONE:
            return past
        if past.state is PastState.FAILED:
            return None
        if past.due is not None and remaining(past.due, session.now()) <= 0:
            session.would_do(asked.form, address)
            yield Append(QuestionExpired(address))
            # Somebody may have answered while that was being written: whoever was first is right.
            return past if past.state is PastState.DONE else None
        if remaining(patience, session.now()) <= 0:
            raise session.stopped(place, unanswered(session.run, past))
        yield Pause(after(session.now(), min(session.wait_seconds, 0.25)))


def unanswered(run: str, past: Past) -> Stop:
    quoted, name = shlex.quote(run), shlex.quote(past.address)
    who = f" (for {', '.join(past.answerers)})" if past.answerers else ""
    if past.form == "approve":
        cures: tuple[tuple[str, str], ...] = (
            ("yes:", f"surefoot approve {quoted} {name}"),
            ("no:", f"surefoot deny {quoted} {name}"),
        )
    else:
        cures = (("answer:", f"surefoot answer {quoted} {name} 'JSON'"),)
    message = f"run {run}, {past.address}: waiting for an answer{who}: {past.question}"
    return Stop("WaitingForAnswer", message, past.address, {"question": past.question, "form": past.form}, cures)


def decision(session: Any, past: Past | None, on_timeout: str, address: str) -> Decision:
    if past is None:
        if on_timeout == RAISE:
            raise TimeoutError(f"nobody answered {address} in time")
        return Decision(on_timeout == APPROVE, note="nobody answered in time")
    approved = session.decoded(past.value) is True
    return Decision(approved, past.learned_by, past.why, datetime.fromtimestamp(past.ended / 1e6, UTC))


def checked_on_timeout(on_timeout: str) -> str:
    if on_timeout not in ON_TIMEOUT:
        raise UsageError(f"on_timeout={on_timeout!r}: must be one of {', '.join(map(repr, ON_TIMEOUT))}")
    return on_timeout


def taken(session: Any, place: Place, past: Past | None, wanted: Any, address: str) -> Any:
    """The answer as the type that was asked for."""
    if past is None:
        raise TimeoutError(f"nobody answered {address} in time")
    answer = session.decoded(past.value)
    if wanted is None:
        return answer
    try:
        return msgspec.convert(answer, wanted)
    except msgspec.ValidationError as error:
        raise session.stopped(
            place, changed(session.run, address, f"answered {str(answer)[:100]!r}", f"an answer that fits: {error}")
        ) from None


def supervised(place: Place, call: Call, name: str, program: Program) -> Program:
    """An effect that a person has to agree to first. What is shown is what will run."""
    session = place.session
    address = f"{call.address}.approval"
    details = {"effect": name, "arguments": values.decode(call.args)}
    past = yield from asking(place, address, question("approve", f"Run {call.address}?", details, None, None))
    given = decision(session, past, DENY, address)
    if given:
        return (yield from program)
    why = f": {given.note}" if given.note else ""
    return denied(f"{call.address} was denied by {given.by}{why}")


def denied(message: str) -> Ending:
    return Failed(Raw(values.encode_error(Fatal(message))))


def require_fit(past: Past, answer: Any) -> None:
    """Refuse an answer that is not what was asked for, with the reason."""
    if past.form == "approve":
        if not isinstance(answer, bool):
            raise UsageError(f"{past.address} is a yes-or-no question: true or false, not {answer!r}")
        return
    if past.schema:
        try:
            schemas.require(answer, msgspec.json.decode(past.schema))
        except schemas.Misfit as misfit:
            raise UsageError(f"{past.address}: that is no answer to {past.question!r}: {misfit}") from None
