"""The cost of traces and metrics: adds and searches without telemetry, with an unused SDK, and with all signals.

The states take turns, so that other work on the machine affects all alike, and each uses every memory in turn, so that
no memory's place on the heap counts. CPU time of the whole process counts, so that the threads of the exporters count
too. A further state makes one span without attributes and records one duration around each call: the SDK's own share,
measured where its code is as cold as in a program.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from benchmarks.corpus import memos, take
from benchmarks.plan import Plan
from benchmarks.report import Bar, Report, median
from mem0_core import Memory
from mem0_core.api._telemetry import Telemetry
from mem0_core.config import TelemetryConfig
from mem0_core.flow import Flow, run
from mem0_core.interfaces import Embedder
from mem0_core.testing import HashEmbedder

__all__ = ["measure"]

USER = "the user"
_BLOCK = 20  # calls in one timed block
_DECISIONS = 10_000
_OFF, _UNUSED = "off", "SDK loaded, not configured"
_LEAST, _PRESENT = "one empty span and one duration", "spans and metrics"


class _NullExporter(SpanExporter):
    """Drops spans: the cost of a network is the exporter's."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        return SpanExportResult.SUCCESS


def measure(plan: Plan) -> Report:
    report = Report("tracing")
    embedders: tuple[tuple[str, Embedder | None], ...] = (("default embedder", None), ("HashEmbedder", HashEmbedder()))
    for name, embedder in embedders:
        _measure_embedder(report, plan, name, embedder)
    section = "while no SDK is configured"
    report.add(section, "decision of a call", _decision_nanoseconds(), "ns")
    return report


def _measure_embedder(report: Report, plan: Plan, name: str, embedder: Embedder | None) -> None:
    tracers, meters = TracerProvider(), MeterProvider([InMemoryMetricReader()])
    tracers.add_span_processor(BatchSpanProcessor(_NullExporter()))
    present = TelemetryConfig(tracer_provider=tracers, meter_provider=meters)
    with ExitStack() as opened:
        memories = [opened.enter_context(_open(opened, embedder)) for _ in range(4)]
        states: dict[str, Sequence[Any]] = {
            _OFF: [_telemetry(memory, TelemetryConfig(enabled=False)) for memory in memories],
            _UNUSED: [_telemetry(memory, TelemetryConfig()) for memory in memories],
            _LEAST: [_LeastTelemetry(tracers, meters) for _ in memories],
            _PRESENT: [_telemetry(memory, present) for memory in memories],
        }
        blocks = max(len(states), plan.queries // _BLOCK)
        for verb, call in (("add", _add), ("search", _search)):
            took = _alternate(memories, states, call, blocks)
            section = f"{verb}, {name}"
            base = median(took[_OFF])
            report.add(section, f"CPU of a call, {_OFF}", 1e6 * base / _BLOCK, "us")
            for state in (_UNUSED, _LEAST, _PRESENT):
                extra = median([one - other for one, other in zip(took[state], took[_OFF], strict=True)])
                bar = Bar("<=", 5) if embedder is None and state != _LEAST else None
                report.add(section, f"extra CPU, {state}", 100 * extra / base, "%", bar)
    tracers.shutdown()
    meters.shutdown()


def _open(opened: ExitStack, embedder: Embedder | None) -> Memory:
    folder = opened.enter_context(tempfile.TemporaryDirectory(prefix="mem0-bench-"))
    memory = Memory({"path": Path(folder), "durability": "process"}, embedder=embedder)
    for number, memo in enumerate(take(memos(), 100)):
        memory.add(memo.text, user_id=USER, infer=False, run_id=f"run {number // 20}")
    memory.search("warm up", user_id=USER)
    return memory


def _telemetry(memory: Memory, config: TelemetryConfig) -> Telemetry:
    return Telemetry(config, memory._store, memory.config.database)


class _LeastTelemetry:
    """Makes a span without attributes and records a duration for each call, and traces nothing else."""

    def __init__(self, tracers: TracerProvider, meters: MeterProvider) -> None:
        self._tracer = tracers.get_tracer("least")
        self._duration = meters.get_meter("least").create_histogram("least.duration", "s")

    def trace_call(self, flow: Flow[Any]) -> _LeastTelemetry:
        return self

    def trace_jobs(self, jobs: object) -> None:
        return None

    def run(self, flow: Flow[Any]) -> Any:
        span = self._tracer.start_span("least")
        try:
            return run(flow)
        finally:
            span.end()
            self._duration.record(0.001, {"mem0.method": "search"})


def _add(memory: Memory, number: int) -> None:
    memory.add(f"In week {number} I walked {number} miles along the river.", user_id=USER)


def _search(memory: Memory, number: int) -> None:
    memory.search(f"How far did I walk in week {number}?", user_id=USER)


def _alternate(
    memories: Sequence[Memory],
    states: Mapping[str, Sequence[Any]],
    call: Callable[[Memory, int], None],
    blocks: int,
) -> dict[str, list[float]]:
    """Return the CPU seconds of the blocks of each state; order and memories change from block to block."""
    took: dict[str, list[float]] = {state: [] for state in states}
    order = list(states)
    for block in range(blocks):
        for place, state in enumerate(order):
            memory = memories[place]
            memory._telemetry = states[state][place]
            started = time.process_time()
            for number in range(block * _BLOCK, (block + 1) * _BLOCK):
                call(memory, number)
            took[state].append(time.process_time() - started)
        order.append(order.pop(0))
    return took


def _decision_nanoseconds() -> float:
    """Return the time in which a call without telemetry learns that it has none."""
    with (
        tempfile.TemporaryDirectory(prefix="mem0-bench-") as folder,
        Memory({"path": Path(folder)}, embedder=HashEmbedder()) as memory,
    ):
        telemetry, flow, rounds = Telemetry(TelemetryConfig(), memory._store, Path(folder)), memory._reset_flow(), []
        for _ in range(5):
            started = time.perf_counter()
            for _ in range(_DECISIONS):
                telemetry.trace_call(flow)
            rounds.append((time.perf_counter() - started) / _DECISIONS)
        flow.close()
    return 1e9 * min(rounds)
