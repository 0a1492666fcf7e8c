"""Asking people: the question is stored, the run waits, and the answer may come days later from anywhere.

An answer is bound to a digest of everything that a person is shown. If the code now asks something else under the same
name, the old answer is void and the question is asked again. The first durable answer counts. When the time is over,
the question is over too; the entry that is recorded first decides.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import Raw, Struct

from surefoot.core import schema as schemas
from surefoot.core import values
from surefoot.core.address import approval_of
from surefoot.core.choice import OnTimeout, one_of
from surefoot.core.code_changes import changed
from surefoot.core.command import Append, Ending, Failed, Pause, Routine
from surefoot.core.doubt import unanswered
from surefoot.core.entry import NOTHING, QuestionAsked, QuestionExpired, Sight, Stop
from surefoot.core.history import Past, PastEffect, PastQuestion, PastState
from surefoot.core.masking import Mask
from surefoot.core.programs.calls import Call, denied
from surefoot.core.timer import Duration, after, remaining, seconds
from surefoot.core.visible import shorten, visible
from surefoot.engine.declare.call_spec import CallSpec
from surefoot.engine.declare.context import Context
from surefoot.engine.declare.current import Place
from surefoot.engine.declare.drifts import looked_around
from surefoot.engine.process.config import alert
from surefoot.errors import Denied, UsageError, ValueRejected

log = logging.getLogger("surefoot")


class Decision(Struct, frozen=True):
    """A person's yes or no. True when approved."""

    approved: bool
    by: str = ""
    note: str = ""
    at: datetime | None = None
    """When it was given; None: no answer came in time."""

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

    def masked(self, mask: Mask) -> Question:
        """As recorded and shown: without the known secrets."""
        if not mask:
            return self
        return msgspec.structs.replace(self, text=mask(self.text), details=values.masked(self.details, mask))


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


def asking(place: Place, address: str, asked: Question, wanted: Any = None) -> Routine[PastQuestion | None]:
    """Ask the question, and wait for its answer. None: the time is over."""
    begun = place.session.now()
    past = yield from _answer(place, address, asked, wanted)
    yield from looked_around(place, begun)
    return past


def _answer(place: Place, address: str, asked: Question, wanted: Any) -> Routine[PastQuestion | None]:
    session = place.session
    known: Past | None = session.state.calls.get(address)
    session.stops.meet_cancel(place, known)
    session.replay.matcher.asked.add(address)
    if known is not None and not isinstance(known, PastQuestion):
        raise session.stops.stopped(place, changed(session.run, address, f"a {known.kind}", f"sf.{asked.form}()"))
    if known is None or known.shown != asked.shown:
        void_of = known.learned_by if known is not None and known.state is PastState.DONE else None
        yield from _put(session, address, asked)
        if void_of is not None:  # The person who answered expects that the run goes on with the answer.
            log.warning(
                "run %s, %s: the answer given by %s is void: something else is shown now, so the question is put again.",
                session.run, address, visible(void_of),
            )  # fmt: skip
    patience = after(session.now(), session.wait_seconds)
    while True:
        past = session.state.question(address)
        if past is None:
            raise AssertionError(address)
        if past.state is PastState.DONE:
            why = _misfit(session, past, wanted)
            if not why:
                return past
            if not session.dry:
                log.warning("run %s, %s: the answer does not fit, it is asked again: %s", session.run, address, why)
            yield from _put(session, address, asked)
            past = session.state.question(address) or past
        if past.state is PastState.FAILED:
            return None
        if past.due is not None and remaining(past.due, session.now()) <= 0:
            session.stops.would_do(asked.form, address)
            yield Append(QuestionExpired(address))
            # An answer may have come while that was being written: the first on record counts.
        elif remaining(patience, session.now()) <= 0:
            raise session.stops.stopped(place, unanswered(session.run, past), past.due)
        else:
            tell_waiting(session, unanswered(session.run, past))
            yield Pause(after(session.now(), min(session.wait_seconds, 0.25)))


def tell_waiting(session: Context, stop: Stop) -> None:
    """People are alerted when the wait begins: once the time is over it would be too late."""
    if identity(stop) in session.notices.told:
        return
    session.notices.told.add(identity(stop))
    stop = session.mask.stop(stop)
    log.warning("%s Waiting %g s for it.", stop, session.wait_seconds)
    if identity(stop) not in map(identity, session.notices.earlier_stops):
        alert_of(session, stop)


def alert_of(session: Context, stop: Stop) -> None:
    store = session.runtime.store.url
    alert(f"{stop.reason}: {stop}", stop.cures, store=store, run=session.run, kind=stop.reason)


def identity(stop: Stop) -> tuple[str, str, str]:
    """Identifies a stop that occurred before: by its question, its failure, its drift too.

    Of drift only the findings count: on a later resume the message differs.
    """
    if stop.reason == "Drifted":
        return stop.reason, stop.address, str(stop).removeprefix(stop.message) or stop.message
    error = stop.facts.get("error", "") if stop.reason == "WorkflowFailed" else ""
    return stop.reason, stop.address, stop.facts.get("shown") or error


def _put(session: Context, address: str, asked: Question) -> Routine[None]:
    session.stops.would_do(asked.form, address)
    due = None if asked.due_seconds is None else after(session.now(), asked.due_seconds)
    entry = QuestionAsked(address, asked.form, asked.text, asked.shown, asked.details, asked.schema, asked.by, due)
    yield Append(entry)


def _given(session: Context, past: Past) -> Any:
    return None if past.value is None else session.decoded(past.value)


def _misfit(session: Context, past: Past, wanted: Any) -> str:
    """A schema cannot check everything (is this text a moment?): the rest is checked here, where the type is known."""
    if wanted is None:
        return ""
    try:
        msgspec.convert(_given(session, past), wanted)
    except msgspec.ValidationError as error:
        return visible(str(error))
    return ""


def decision(session: Context, past: PastQuestion | None, on_timeout: OnTimeout, address: str) -> Decision:
    if past is None:
        if on_timeout == "raise":
            raise TimeoutError(f"nobody answered {address} in time")
        return Decision(on_timeout == "approve", note="nobody answered in time")
    approved = _given(session, past) is True
    return Decision(approved, past.learned_by, past.why, datetime.fromtimestamp(past.ended / 1e6, UTC))


def checked_on_timeout(on_timeout: OnTimeout) -> OnTimeout:
    return one_of(on_timeout, OnTimeout, "sf.approve: on_timeout")


def taken(session: Context, past: Past | None, wanted: Any, address: str) -> Any:
    """The answer as the type that was asked for."""
    if past is None:
        raise TimeoutError(f"nobody answered {address} in time")
    answer = _given(session, past)
    return answer if wanted is None else msgspec.convert(answer, wanted)


def consent(
    place: Place, call: Call, name: str, sights: tuple[Sight, ...], attempt: int
) -> Routine[tuple[Ending | None, bool]]:
    """Ask for approval of this very call, with what it touches as it is now. No ending: it was approved.

    The second value: whether the run had to wait for the answer. Then the caller looks again at what the call touches.
    A further attempt needs no new approval, unless something else would be shown now. A refusal is recorded as the
    outcome of the call.
    """
    session = place.session
    address = approval_of(call.address)
    known = session.state.question(address)
    details = {"effect": name, "arguments": values.decode(call.args)}
    if call.defaults != NOTHING:
        details["defaults"] = values.decode(call.defaults)
    if call.touches:
        details["touches"] = {sight.witness: sight.parts for sight in sights}
    asked = question("approve", f"Run {call.address}?", details, None, None)
    at_once = known is not None and known.state is PastState.DONE and known.shown == asked.shown
    past = yield from asking(place, address, asked)
    given = decision(session, past, "deny", address)
    if given:
        session.stops.would_do("effect", call.address)
        return None, not at_once
    why = f": {given.note}" if given.note else ""
    message = visible(f"{call.address} was denied by {given.by}{why}")
    failure = Raw(values.encode_error(Denied(message, visible(given.by), visible(given.note))))
    if not session.dry:
        yield Append(denied(call, failure, attempt))
    return Failed(failure), False


def supervises(session: Context, spec: CallSpec, address: str) -> bool:
    """Whether a person has to approve. Also if a refusal is on record, and the code no longer asks."""
    if spec.kind != "effect" or session.approve == "never":
        return False
    if spec.approve or session.approve == "every":
        return True
    known = session.state.calls.get(approval_of(address))
    is_answered = known is not None and known.kind == "question" and known.state is PastState.DONE
    return is_answered and known is not None and _given(session, known) is not True


def needs_approval(session: Context, spec: CallSpec, address: str, past: PastEffect | None) -> bool:
    """An effect in progress was approved. After a rewind to before it, it needs a new approval."""
    if not supervises(session, spec, address):
        return False
    if past is not None and past.reopened:
        return past.state is PastState.CLEARED
    if past is None or not past.rewound:
        return past is None
    return past.state is PastState.CLEARED or (spec.on_crash == "retry" and not past.spent)


def require_fit(past: PastQuestion, answer: Any) -> None:
    """Refuse an answer that does not fit the question, with the reason."""
    if past.form == "approve":
        if not isinstance(answer, bool):
            found = shorten(repr(answer), 100)
            raise ValueRejected(f"{past.address} is a yes-or-no question: true or false, not {found}")
        return
    if past.schema:
        try:
            schemas.require(answer, msgspec.json.decode(past.schema))
        except schemas.Misfit as misfit:
            question = shorten(repr(past.question), 200)
            raise ValueRejected(
                f"{past.address}: that is no answer to {question}: {misfit}", path=misfit.path
            ) from None


def plain(past: PastQuestion, answer: Any) -> Any:
    """An answer as recorded: for a question with a type, its plain data."""
    if not past.schema:
        return answer
    try:
        return msgspec.to_builtins(answer)
    except (TypeError, RecursionError):
        return answer  # It cannot fit, and is refused with the reason.
