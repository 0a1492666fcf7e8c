"""Spans of the SDK: what a replay only repeats is not exported again (`adapters/spans.py`).

The SDK gives each span and each trace the processors that it is for. In a run, something stands in between.
"""

from __future__ import annotations

from typing import Any

from agents.tracing import TracingProcessor, get_current_span, get_trace_provider

from surefoot.adapters import spans
from surefoot.engine.seams import in_run

_HELD = "_surefoot_held"


class Held(spans.Held, TracingProcessor):
    """Stands between one span, or one trace, and the processors that it is for."""

    def __init__(self, made: Any, around: Held | None) -> None:
        super().__init__(around)
        self._to: TracingProcessor = made._processor
        self._is_trace = not hasattr(made, "span_id")
        self._begun: Any = None

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

    def begin(self) -> None:
        if self._begun is not None:
            self._tell("start", self._begun)

    def _begin(self, made: Any) -> None:
        self._begun = made
        if self.is_released:
            self.begin()

    def _end(self, made: Any) -> None:
        if self.goes_on():
            self.release()
            self._tell("end", made)
        self._begun = None

    def _tell(self, what: str, made: Any) -> None:
        getattr(self._to, f"on_{'trace' if self._is_trace else 'span'}_{what}")(made)


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
        spans.listen(_here)
        made._processor = Held(made, around)
    return made


def _here() -> Held | None:
    return _of(get_current_span()) or _of(get_trace_provider().get_current_trace())


def _of(made: Any) -> Held | None:
    found = getattr(made, "_processor", None)
    return found if isinstance(found, Held) else None
