"""Traces and metrics of a memory in two files, as a collector would write them; no server and no key.

A turn is remembered in the background: its span and those of the background job are one trace.

    pip install mem0-core[otel] opentelemetry-sdk
    python examples/traced_memory.py
"""

import json
import tempfile
from pathlib import Path

from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import ConsoleMetricExporter, PeriodicExportingMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter

from mem0_core import Memory


def main() -> None:
    folder = Path(tempfile.mkdtemp(prefix="mem0-traces-"))
    spans, values = folder / "spans.jsonl", folder / "metrics.jsonl"
    with spans.open("w", encoding="utf-8") as span_file, values.open("w", encoding="utf-8") as metric_file:
        tracers = TracerProvider()
        exporter = ConsoleSpanExporter(out=span_file, formatter=lambda span: span.to_json(indent=None) + "\n")
        tracers.add_span_processor(BatchSpanProcessor(exporter))
        trace.set_tracer_provider(tracers)
        reader = PeriodicExportingMetricReader(ConsoleMetricExporter(out=metric_file))
        meters = MeterProvider([reader])
        metrics.set_meter_provider(meters)

        with Memory({"path": folder / "memory"}) as memory:
            with trace.get_tracer("example").start_as_current_span("turn of an agent"):
                memory.context("Where does my sister live?", user_id="ana")
                memory.add("My sister Anna moved to Porto in May.", user_id="ana", background=True)
            memory.flush(timeout=60)
            memory.search("Where does Anna live?", user_id="ana")
            meters.force_flush()
        tracers.shutdown()
        meters.shutdown()

    for line in spans.read_text(encoding="utf-8").splitlines():
        span = json.loads(line)
        print(span["context"]["trace_id"][-6:], span["name"], span["attributes"].get("mem0.method", ""))
    print(f"spans in {spans}, metrics in {values}")


if __name__ == "__main__":
    main()
