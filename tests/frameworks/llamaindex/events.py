"""What LlamaIndex's instrumentation was told while a test listened."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from llama_index.core.instrumentation import get_dispatcher  # type: ignore[attr-defined]
from llama_index.core.instrumentation.event_handlers.base import BaseEventHandler  # type: ignore[attr-defined]
from llama_index.core.instrumentation.span.simple import SimpleSpan  # type: ignore[attr-defined]
from llama_index.core.instrumentation.span_handlers.simple import SimpleSpanHandler  # type: ignore[attr-defined]


class Log(BaseEventHandler):
    """Events and spans, in the order of their beginning and end."""

    events: list[Any] = []  # noqa: RUF012 - a pydantic field: each instance has its own
    spans: Any = None

    def handle(self, event: Any, **kwargs: Any) -> None:
        self.events.append(event)

    def of(self, *kinds: type) -> list[Any]:
        return [event for event in self.events if isinstance(event, kinds)]

    def span(self, id: str | None) -> SimpleSpan:
        """The span of an event; it has ended."""
        spans: list[SimpleSpan] = [*self.spans.completed_spans, *self.spans.dropped_spans]
        return next(span for span in spans if span.id_ == id)


@contextmanager
def heard() -> Iterator[Log]:
    root = get_dispatcher()
    log = Log(spans=SimpleSpanHandler())
    events, spans = root.event_handlers, root.span_handlers
    root.event_handlers, root.span_handlers = [*events, log], [*spans, log.spans]
    try:
        yield log
    finally:
        root.event_handlers, root.span_handlers = events, spans
