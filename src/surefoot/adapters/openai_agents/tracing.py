"""Spans of the SDK: what a replay only repeats is not exported again.

On replay the SDK's loop goes through every turn once more, and makes a span for each turn, tool and guardrail, although the
journal answers. So a span that is made in a run is held back until something in it is really executed; then it goes on to
the SDK's processors, with those around it. One that ends with nothing but recorded answers in it goes nowhere.

A span in which nothing was asked for at all (a handoff, arguments that the SDK refuses) does what the one around it does.
"""

from __future__ import annotations

import threading
from typing import Any

from agents.tracing import TracingProcessor, get_current_span, get_trace_provider

from surefoot.engine.seams import Observer, hear, in_run, replays

_HELD = "_surefoot_held"
_releasing = threading.RLock()


class Held(TracingProcessor):
    """Stands between one span, or one trace, and the processors that it is for."""

    def __init__(self, made: Any, around: Held | None) -> None:
        self._to: TracingProcessor = made._processor
        self._around = around
        self._is_rehearsed = replays()
        self._is_trace = not hasattr(made, "span_id")
        self._begun: Any = None
        self._is_released = False
        self._is_answered = False

    def on_trace_start(self, trace: Any) -> None:
        self._begin(trace)

    def on_span_start(self, span: Any) -> None:
        self._begin(span)

    def on_trace_end(self, trace: Any) -> None:
        self._end(trace)

    def on_span_end(self, span: Any) -> None:
        self._end(span)

    def shutdown(self) -> None:
        """The processors are shut down by their provider."""

    def force_flush(self) -> None:
        self._to.force_flush()

    def _begin(self, made: Any) -> None:
        self._begun = made
        if self._is_released:
            self._tell("start", made)

    def _end(self, made: Any) -> None:
        if self._goes_on():
            self.release()
            self._tell("end", made)
        self._begun = None

    def _tell(self, what: str, made: Any) -> None:
        getattr(self._to, f"on_{'trace' if self._is_trace else 'span'}_{what}")(made)

    def _goes_on(self) -> bool:
        at: Held | None = self
        while at is not None:
            if at._is_released:
                return True
            if at._is_answered or at._is_rehearsed:
                return False
            at = at._around
        return True

    def release(self) -> None:
        """Something in it is executed."""
        with _releasing:  # Blocking calls side by side may be the first in a span, each in its thread.
            if self._is_released:
                return
            self._is_released = True
            if self._around is not None:
                self._around.release()
            if self._begun is not None:
                self._tell("start", self._begun)

    def answer(self) -> None:
        """Something in it came from the journal."""
        at: Held | None = self
        while at is not None:
            at._is_answered = True
            at = at._around


class _Live(Observer):
    """The engine tells of calls that are really made, where they are made. Of a replay it tells nothing."""

    def call_began(self, call: Any) -> None:
        held = _here()
        if held is not None:
            held.release()


_live = _Live()
_hearing: list[Observer] = []


def answered() -> None:
    """A call has its outcome. If nothing was executed in the span at hand, the journal gave it."""
    held = _here()
    if held is not None:
        held.answer()


def hold_back() -> None:
    """From here on the SDK's spans in runs are held back. Outside of a run, and with tracing disabled, nothing changes."""
    provider: Any = get_trace_provider()
    if getattr(provider, _HELD, False) or not hasattr(provider, "__dict__"):
        return
    create_trace, create_span = provider.create_trace, provider.create_span

    def trace(*args: Any, **options: Any) -> Any:
        return _held(create_trace(*args, **options), None)

    def span(*args: Any, **options: Any) -> Any:
        parent = options["parent"] if "parent" in options else args[2] if len(args) > 2 else None
        return _held(create_span(*args, **options), _of(parent) or _here())

    provider.create_trace, provider.create_span = trace, span
    setattr(provider, _HELD, True)


def _held(made: Any, around: Held | None) -> Any:
    if in_run() and isinstance(getattr(made, "_processor", None), TracingProcessor):
        if not _hearing:
            _hearing.append(_live)
            hear(_live)
        made._processor = Held(made, around)
    return made


def _here() -> Held | None:
    return _of(get_current_span()) or _of(get_trace_provider().get_current_trace())


def _of(made: Any) -> Held | None:
    found = getattr(made, "_processor", None)
    return found if isinstance(found, Held) else None
