"""Spans and metrics of the framework: what a replay only repeats is not exported again (`adapters/spans.py`).

The framework makes all its spans with the OpenTelemetry tracer of its settings. In a run, the settings give one whose spans
are made when they are released, with the time at which they began.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from opentelemetry import trace
from opentelemetry.context import Context, get_current
from opentelemetry.trace import Span, SpanContext, SpanKind, Tracer
from pydantic_ai.models.instrumented import InstrumentationSettings

from surefoot.adapters import spans, versions
from surefoot.adapters.pydantic_ai import EXTRA, PACKAGES
from surefoot.engine.seams import in_run

_FIELDS = InstrumentationSettings.__dataclass_fields__
versions.require_names(
    EXTRA,
    PACKAGES,
    [f"InstrumentationSettings.{name}" for name, known in (("tracer", _FIELDS), ("record_metrics", vars(InstrumentationSettings)))
     if name not in known],
)  # fmt: skip
_goes_on: ContextVar[bool] = ContextVar("surefoot_pydantic_ai_span_goes_on", default=True)
"""Whether the span that has just ended was told of: the framework counts tokens right after it."""


class HeldSpan(spans.Held, Span):
    """A span that is made when something in it is executed. Until then it keeps what it is told."""

    def __init__(self, tracer: Tracer, name: str, context: Context | None, options: dict[str, Any]) -> None:
        around = trace.get_current_span(context)
        super().__init__(around if isinstance(around, HeldSpan) else None)
        self._tracer, self._name = tracer, name
        self._options = {"start_time": time.time_ns(), **options}
        self._options["attributes"] = dict(options.get("attributes") or {})
        self._context = get_current() if context is None else context
        self._kept: list[Callable[[Span], None]] = []
        self._made: Span | None = None
        self._has_ended = False

    @property
    def attributes(self) -> Mapping[str, Any]:
        """The framework reads them, where the span that is made has them."""
        return self._options["attributes"] if self._made is None else getattr(self._made, "attributes", {})

    def begin(self) -> None:
        self._made = self._tracer.start_span(self._name, self._context, **self._options)
        for told in self._kept:
            told(self._made)
        self._kept.clear()

    def end(self, end_time: int | None = None) -> None:
        if self._has_ended:
            return
        goes_on = self.goes_on()
        _goes_on.set(goes_on)
        if goes_on:
            self.release()
            self._tell(lambda made: made.end(end_time))
        self._has_ended = True

    def get_span_context(self) -> SpanContext:
        """Somebody else's span or line in a log is to be found under this one: then it has to be there."""
        if self._made is None and (self._has_ended or self.is_rehearsed):
            return trace.INVALID_SPAN_CONTEXT
        self.release()
        return self._made.get_span_context() if self._made is not None else trace.INVALID_SPAN_CONTEXT

    def is_recording(self) -> bool:
        if self._made is not None:
            return self._made.is_recording()
        return not (self._has_ended or self.is_rehearsed)

    def set_attributes(self, attributes: Mapping[str, Any]) -> None:
        if self._made is None:
            self._options["attributes"].update(attributes)
        else:
            self._made.set_attributes(attributes)

    def set_attribute(self, key: str, value: Any) -> None:
        self.set_attributes({key: value})

    def update_name(self, name: str) -> None:
        self._name = name
        if self._made is not None:
            self._made.update_name(name)

    def add_event(self, name: str, attributes: Any = None, timestamp: int | None = None) -> None:
        at = timestamp or time.time_ns()
        self._tell(lambda made: made.add_event(name, attributes, at))

    def add_link(self, context: SpanContext, attributes: Any = None) -> None:
        self._tell(lambda made: made.add_link(context, attributes))

    def set_status(self, status: Any, description: str | None = None) -> None:
        self._tell(lambda made: made.set_status(status, description))

    def record_exception(
        self, exception: BaseException, attributes: Any = None, timestamp: int | None = None, escaped: bool = False
    ) -> None:
        at = timestamp or time.time_ns()
        self._tell(lambda made: made.record_exception(exception, attributes, at, escaped))

    def _tell(self, what: Callable[[Span], None]) -> None:
        if self._made is not None:
            what(self._made)
        elif not self._has_ended:
            self._kept.append(what)


class HeldTracer(Tracer):
    """A tracer in a run."""

    def __init__(self, inner: Tracer) -> None:
        self._inner = inner

    def start_span(
        self,
        name: str,
        context: Context | None = None,
        kind: SpanKind = SpanKind.INTERNAL,
        attributes: Any = None,
        links: Any = None,
        start_time: int | None = None,
        record_exception: bool = True,
        set_status_on_exception: bool = True,
    ) -> Span:
        options = {"kind": kind, "attributes": attributes, "links": links, "record_exception": record_exception,
                   "set_status_on_exception": set_status_on_exception}  # fmt: skip
        if start_time is not None:
            options["start_time"] = start_time
        spans.listen(_here)
        return HeldSpan(self._inner, name, context, options)

    @contextmanager
    def start_as_current_span(self, name: str, *args: Any, end_on_exit: bool = True, **options: Any) -> Iterator[Span]:  # type: ignore[override]
        span = self.start_span(name, *args, **options)
        told = {key: options[key] for key in ("record_exception", "set_status_on_exception") if key in options}
        with trace.use_span(span, end_on_exit=end_on_exit, **told):
            yield span


class _TracerOf:
    """`InstrumentationSettings.tracer`: in a run, one that holds back."""

    def __get__(self, settings: Any, _: type | None = None) -> Any:
        if settings is None:
            return self
        tracer = vars(settings)["tracer"]
        return HeldTracer(tracer) if in_run() else tracer

    def __set__(self, settings: Any, tracer: Any) -> None:
        vars(settings)["tracer"] = tracer._inner if isinstance(tracer, HeldTracer) else tracer


def hold_back() -> None:
    """From here on the framework's spans in runs are held back, and tokens counted once. Else nothing changes."""
    settings: Any = InstrumentationSettings
    if isinstance(vars(settings).get("tracer"), _TracerOf):
        return
    record = settings.record_metrics

    def record_metrics(self: Any, *args: Any, **options: Any) -> None:
        if not in_run() or _goes_on.get():
            record(self, *args, **options)

    settings.tracer, settings.record_metrics = _TracerOf(), record_metrics


def answered() -> None:
    """A call has its outcome. If nothing was executed in the span at hand, the journal gave it."""
    held = _here()
    if held is not None:
        held.answer()


def _here() -> HeldSpan | None:
    found = trace.get_current_span()
    return found if isinstance(found, HeldSpan) else None
