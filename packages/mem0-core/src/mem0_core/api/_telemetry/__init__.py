"""Traces and metrics of one memory: imports OpenTelemetry only where the program uses it.

Every call of a method passes `MemoryRuntime._run`, and every job the workers; each asks here for its span. The model
calls below them are found among the calls of the flow. `spans` makes all spans, `metrics` all instruments,
`attributes` all names and values, by the GenAI semantic conventions of OpenTelemetry.
"""

from __future__ import annotations

import hashlib
import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mem0_core.config import TelemetryConfig
from mem0_core.errors import MissingExtraError
from mem0_core.flow import Flow
from mem0_core.interfaces import Job, MemoryStore

if TYPE_CHECKING:
    from mem0_core.api._telemetry.spans import CallSpan, JobsSpan, SpanFactory

__all__ = ["Telemetry"]

_CONTENT_VARIABLE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_CONTENT_VALUES = frozenset({"true", "1", "span_only", "span_and_event"})
_SDK_MODULES = ("opentelemetry.sdk.trace", "opentelemetry.sdk.metrics")


class Telemetry:
    """Decides whether calls are traced: a lookup in a dictionary while no OpenTelemetry SDK is loaded.

    Raises:
        MissingExtraError: tracing is required, and the OpenTelemetry API is not installed.
    """

    def __init__(self, config: TelemetryConfig, store: MemoryStore, database: Path) -> None:
        self._config = config
        self._store = store
        self._database = database
        self._is_required = config.enabled is True or not (config.tracer_provider is config.meter_provider is None)
        self._is_off = config.enabled is False
        self._factory: SpanFactory | None = None
        if config.enabled and find_spec("opentelemetry") is None:
            raise MissingExtraError("opentelemetry", "otel")

    def trace_call(self, flow: Flow[Any]) -> CallSpan | None:
        """Return the span of a method from its flow, which has not begun; None if nothing is traced."""
        factory = self._factory or self._find_factory()
        return None if factory is None else factory.trace_call(flow)

    def trace_jobs(self, jobs: list[Job]) -> JobsSpan | None:
        """Return the span of jobs that run together; None if nothing is traced."""
        factory = self._factory or self._find_factory()
        return None if factory is None else factory.trace_jobs(jobs)

    def _find_factory(self) -> SpanFactory | None:
        if self._is_off or not (self._is_required or any(name in sys.modules for name in _SDK_MODULES)):
            return None
        from mem0_core.api._telemetry import spans

        if self._is_required or spans.is_configured():
            location = str(getattr(self._store, "where", self._database))
            self._factory = spans.SpanFactory(
                self._config,
                self._store,
                store_id=hashlib.sha256(location.encode()).hexdigest()[:16],
                content=self._captures_content(),
            )
        return self._factory

    def _captures_content(self) -> bool:
        if self._config.content is not None:
            return self._config.content
        return os.environ.get(_CONTENT_VARIABLE, "").strip().lower() in _CONTENT_VALUES
