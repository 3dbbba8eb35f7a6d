"""Instruments of one meter provider, shared by all memories of the process."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable, Mapping
from threading import Lock
from typing import Any
from weakref import WeakSet

from opentelemetry import metrics, trace
from opentelemetry.context import Context
from opentelemetry.metrics import CallbackOptions, Histogram, MeterProvider, Observation

from mem0_core.interfaces import MemoryStore

_log = logging.getLogger(__name__)

_SECONDS = tuple(0.01 * 2**power for power in range(14))  # the buckets that the conventions name
_FAST_SECONDS = (0.0005, 0.001, 0.0025, 0.005, *_SECONDS)  # a search without a model takes a millisecond
_AGES = (0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0, 3600.0, 86400.0)
_COUNTS = (0, 1, 2, 3, 5, 10, 20, 50, 100)
_SCORES = tuple(tenth / 10 for tenth in range(1, 10))
_MAX_WAITING = 32  # measurements: the last one pays for all, 0.3 ms


class Instruments:
    """Counters and histograms, and gauges that read the observed stores when a reader collects.

    The measurements of histograms wait for each other: recording one after the work of a call takes the SDK twice the
    CPU time of one after another. They are handed over when a reader collects, at the latest when `_MAX_WAITING` wait.
    """

    def __init__(self, provider: MeterProvider) -> None:
        self._waiting: deque[tuple[Histogram, float, Mapping[str, Any], trace.SpanContext]] = deque()
        meter = metrics.get_meter("mem0_core", meter_provider=provider)
        histogram, counter, gauge = meter.create_histogram, meter.create_counter, meter.create_observable_gauge
        self.operation_duration = histogram(
            "mem0.operation.duration",
            "s",
            "Duration of a call or a job of a memory.",
            explicit_bucket_boundaries_advisory=_FAST_SECONDS,
        )
        self.inference_duration = histogram(
            "gen_ai.client.inference.duration",
            "s",
            "Duration of a call of a chat model.",
            explicit_bucket_boundaries_advisory=_SECONDS,
        )
        self.embeddings_duration = histogram(
            "gen_ai.client.embeddings.duration",
            "s",
            "Duration of a call of an embedding model.",
            explicit_bucket_boundaries_advisory=_SECONDS,
        )
        self.input_tokens = counter("gen_ai.client.inference.usage.input_tokens", "{token}", "Input tokens used.")
        self.output_tokens = counter("gen_ai.client.inference.usage.output_tokens", "{token}", "Output tokens used.")
        self.cost = counter("mem0.cost", "{USD}", "Cost of model calls, by the configured prices.")
        self.jobs = counter("mem0.jobs", "{job}", "Attempts of background jobs, by outcome.")
        self.queue_age = histogram(
            "mem0.queue.age", "s", "Time from enqueueing to the attempt.", explicit_bucket_boundaries_advisory=_AGES
        )
        self.results = histogram(
            "mem0.search.results", "{memory}", "Memories found.", explicit_bucket_boundaries_advisory=_COUNTS
        )
        self.top_score = histogram(
            "mem0.search.top_score", "1", "Score of the best hit.", explicit_bucket_boundaries_advisory=_SCORES
        )
        # Readers call the functions of the gauges before they read the histograms.
        gauge("mem0.queue.jobs", [self._observe_jobs], "{job}", "Background jobs, by state.")
        gauge("mem0.memories", [self._observe_memories], "{memory}", "Memories, by the kinds of ids of their scope.")
        self._stores: WeakSet[_ObservedStore] = WeakSet()

    def record(self, histogram: Histogram, value: float, labels: Mapping[str, Any], context: Context) -> None:
        """Record a measurement of a histogram; `labels` are not copied.

        Of the context only the ids of its span are kept, for exemplars: a span may have texts and ids of a user.
        """
        span = trace.get_current_span(context).get_span_context()
        self._waiting.append((histogram, value, labels, span))
        if len(self._waiting) >= _MAX_WAITING:
            self._hand_over()

    def _hand_over(self) -> None:
        while True:
            try:
                histogram, value, labels, span = self._waiting.popleft()
            except IndexError:
                return
            histogram.record(value, labels, trace.set_span_in_context(trace.NonRecordingSpan(span), Context()))

    def watch(self, store: MemoryStore, store_id: str) -> _ObservedStore:
        """Return an object that keeps the gauges of a store alive."""
        observed = _ObservedStore(store, store_id)
        self._stores.add(observed)
        return observed

    def _observe_jobs(self, _: CallbackOptions) -> Iterable[Observation]:
        self._hand_over()
        return [each for store in list(self._stores) for each in store.observe("count_jobs_by_state", "mem0.job.state")]

    def _observe_memories(self, _: CallbackOptions) -> Iterable[Observation]:
        return [each for store in list(self._stores) for each in store.observe("count_memories_by_scope", "mem0.scope")]


class _ObservedStore:
    """A store with counts that are read when metrics are collected."""

    def __init__(self, store: MemoryStore, store_id: str) -> None:
        self._store = store
        self._id = store_id

    def observe(self, method: str, attribute: str) -> list[Observation]:
        try:
            counts: dict[str, int] = getattr(self._store.maintenance, method)()
        except Exception as error:  # noqa: BLE001 - a store that is closed, or without maintenance
            _log.debug("%s failed: %s", method, error)
            return []
        return [
            Observation(count, {attribute: each, "gen_ai.memory.store.id": self._id}) for each, count in counts.items()
        ]


_instruments: dict[int, tuple[Any, Instruments]] = {}
_lock = Lock()


def instruments_of(provider: MeterProvider | None) -> Instruments:
    """Return the instruments of a provider, by default of the program's; made once, as a meter takes a name once."""
    provider = provider or metrics.get_meter_provider()
    with _lock:
        known = _instruments.get(id(provider))
        if known is None:
            known = _instruments[id(provider)] = (provider, Instruments(provider))
        return known[1]
