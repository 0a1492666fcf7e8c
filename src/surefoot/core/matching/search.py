"""The decision about a record that was found for a call: the same call, kept with differences, or a stop."""

from __future__ import annotations

from surefoot.core import values
from surefoot.core.history import Past, PastCall, PastState, is_child
from surefoot.core.matching.answers import KEEP, NOTED, Answer, Asked, Changed, Kept, Same
from surefoot.core.matching.holdings import Holdings
from surefoot.core.matching.records import Records
from surefoot.core.matching.words import Words

ENDED = (PastState.DONE, PastState.FAILED)


class Search:
    """What the search for a step (`steps.py`) and for an effect (`effects.py`) have in common."""

    def __init__(self, records: Records, words: Words) -> None:
        self._records = records
        self._arguments = records.arguments
        self._words = words
        self._holdings = Holdings(records)

    def as_recorded(self, asked: Asked, past: Past) -> Answer:
        past = self._records.today(past)
        if not isinstance(past, PastCall) or past.kind != asked.kind:
            return Changed(past)
        if not past.digest or self._arguments.same(past, asked) or past.kept == asked.digest:
            return Kept(past, NOTED) if self._differs_as_noted(past, asked) else Same(past)
        if past.state is PastState.CLEARED:
            return Same(past)  # It did not happen: it runs with today's arguments.
        return self._with_others(asked, past)

    def _with_others(self, asked: Asked, past: PastCall) -> Answer:
        how, by = self._manner(asked, past)
        if how == KEEP and (past.state in ENDED or self._is_same_workflow(past, asked)):
            return Kept(past, by)
        return Changed(past)

    def _manner(self, asked: Asked, past: PastCall) -> tuple[str, str]:
        """What happens to a record whose arguments differ now, and who decided that."""
        person = self._words.manner(asked, past)
        return (asked.on_change, "on_change") if person is None else (person.how, f"said by {person.by}")

    def _differs_as_noted(self, past: PastCall, asked: Asked) -> bool:
        """Whether a done effect stands for one with other noted values: it is not made, which must be reported."""
        is_done = asked.fenced and bool(asked.noted) and past.state in ENDED
        return is_done and past.kept != asked.whole and self._arguments.is_loose(past, asked)

    def _is_same_workflow(self, past: PastCall, asked: Asked) -> bool:
        """Of a child run that has not ended: whether the workflow that is asked for can go on with it."""
        recorded = self._arguments.recorded(past) if is_child(past) else None
        return recorded is not None and recorded.get("workflow") == values.again(asked.args).get("workflow")
