"""A rehearsal that goes on behind calls that have not been made, to see which calls would follow.

A step that has not run, or an effect that is declared new, ends nothing here: its result is a placeholder, which may be
passed on, and the rehearsal ends where the code looks into it. So a preflight sees further; and before a resume, a stop
*behind* an effect that is declared new comes before that effect is executed.
"""

from __future__ import annotations

from typing import Any, Final, NoReturn

from msgspec import Raw

from surefoot.core.address import split
from surefoot.core.command import Done, Ending, Failed, Returned
from surefoot.core.entry import NOTHING, Stop, Value
from surefoot.core.history import CHILD, PastCall
from surefoot.core.matching.learned import Learned
from surefoot.core.state import RunState
from surefoot.engine.declare import placeholder
from surefoot.engine.declare.call_spec import CallSpec
from surefoot.engine.declare.context import Args, Kwargs
from surefoot.engine.declare.current import Place
from surefoot.engine.drive import gate
from surefoot.engine.process.runtime import Runtime
from surefoot.engine.session import questions
from surefoot.engine.session.attempt import Attempt, recorded_ending
from surefoot.store.contract import Head

NOT_KNOWN: Final = Raw(b'"not known yet"')
"""Stands for the result of a call that has not been made."""
MOST_PASSED: Final = 1000
"""The limit before a resume: code may make new calls without end."""
_SOMETHING: Final = b'{"not known yet":"not known yet"}'


class Lookahead(gate.Rehearsal):
    """A rehearsal that goes on behind calls that have not been made, and remembers failures from the journal."""

    def __init__(
        self, runtime: Runtime, state: RunState, head: Head | None, *, learned: Learned | None = None,
        passes_on: bool = True, as_none: bool = False, most: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__(runtime, state, head, learned=learned)
        self._recorded_failures: list[BaseException] = []
        self._passes_on = passes_on
        self._as_none = as_none
        """Their results are None: a placeholder cannot notice an `is None` test."""
        self._most = most
        self.passed: list[tuple[str, str]] = []
        """Kind and address of the calls that would be made, and behind which the rehearsal went on."""
        self.blurred: list[str] = []
        """Recorded effects that are asked for with values that are not known yet."""
        self.looked = False
        """Whether the code reached a place where it needs the result of such a call."""

    # -- calls that have not been made --------------------------------------------------------------

    def begin(
        self, place: Place, spec: CallSpec, args: Args, kwargs: Kwargs, *, entered: bool = False
    ) -> Ending | Attempt:
        if not self.passed:
            return super().begin(place, spec, args, kwargs, entered=entered)
        try:
            with placeholder.opaque():
                return super().begin(place, spec, args, kwargs, entered=entered)
        except placeholder.Opaque:
            return self._with_unknown_arguments(place, spec)

    def _begin(
        self, place: Place, address: str, spec: CallSpec, args: Args, kwargs: Kwargs,
        raw_args: bytes, digest: str, past: PastCall | None,
    ) -> Ending | Attempt:  # fmt: skip
        is_known = past is not None and recorded_ending(past) is not None
        is_step = spec.kind == "step" and spec.name != CHILD
        if not is_known and self._may_pass() and (
            is_step or (address in self.fence.declared and not questions.supervises(self, spec, address))
        ):  # fmt: skip
            return self._passed_by(spec.kind, address)
        return super()._begin(place, address, spec, args, kwargs, raw_args, digest, past)

    def _may_pass(self) -> bool:
        enough = self._most is not None and len(self.passed) >= self._most
        return self._passes_on and not enough and not self.state.reopenings

    def _passed_by(self, kind: str, address: str) -> Done:
        self.passed.append((kind, address))
        return Done(NOT_KNOWN)

    def _with_unknown_arguments(self, place: Place, spec: CallSpec) -> Ending:
        """Only its number identifies the recorded call: enough for a step; for an effect the question stays open."""
        asked = self.lookup.asked(place, spec, place.called, _SOMETHING, "not known yet")
        past = self.replay.matcher.records.at(asked)
        if past is not None:
            self.replay.matcher.asked.add(past.address)
        passes = asked.is_new and self._may_pass() and not questions.supervises(self, spec, asked.address)
        if not asked.fenced or (past is None and passes):
            return self._passed_by(spec.kind, asked.address)
        if past is None:
            self.fence.meets(asked)
        else:
            self.blurred.append(past.address)
        self.stops.would_do(spec.kind, asked.address)
        raise AssertionError(asked.address)

    def decoded(self, value: Value) -> Any:
        if value is not NOT_KNOWN:
            return super().decoded(value)
        return None if self._as_none else placeholder.Placeholder(self._looked_into)

    def _looked_into(self) -> NoReturn:
        self.looked = True
        raise self.stops.plan_ends()

    def result(self, value: object) -> Returned:
        try:
            with placeholder.opaque():
                return super().result(value)
        except placeholder.Opaque:
            return Returned(NOTHING, 0)

    # -- how it ends --------------------------------------------------------------------------------

    def learnt(self) -> Learned:
        # Asked for by their number alone, these effects do not prove earlier answers right.
        self.replay.matcher.asked.difference_update(self.blurred)
        return super().learnt()

    def hides_what_follows(self) -> bool:
        return self.looked or super().hides_what_follows()

    def hidden(self) -> frozenset[str]:
        return super().hidden() | frozenset(split(address)[0] for _, address in self.passed)

    def _at_the_end(self, outcome: Returned | BaseException) -> list[Stop]:
        """Some functions refuse a placeholder without reading it: that is no end of the code's own."""
        refused = bool(self.passed) and isinstance(outcome, Exception) and not self.failed_before(outcome)
        return [] if refused else super()._at_the_end(outcome)

    def revive(self, ending: Failed) -> BaseException:
        error = super().revive(ending)
        if error is not self.stops.trouble:
            self._recorded_failures.append(error)
        return error

    def failed_before(self, error: BaseException) -> bool:
        """Whether it is a recorded failure, or was raised because of one: then it is nothing new."""
        seen: list[BaseException] = []
        story: BaseException | None = error
        while story is not None and story not in seen:
            if any(story is one for one in self._recorded_failures):
                return True
            seen.append(story)
            story = story.__cause__ or story.__context__
        return False
