"""Traces and metrics: the spans of calls, jobs and model calls, by the GenAI conventions and without any text."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, Span, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from mem0_core import InputError, Memory, ModelError
from mem0_core.api._telemetry.metrics import instruments_of
from mem0_core.domain.records import Usage
from mem0_core.interfaces import Reply
from mem0_core.testing import HashEmbedder
from tests.support import MODES, MemoryDriver, Mode, open_memory
from tests.unit.api.test_call_log import WORDS, call_everything

ROOT = Path(__file__).parents[3]


class Recorder:
    """Providers of a program, and what they received."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.tracers = TracerProvider()
        self.tracers.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.reader = InMemoryMetricReader()
        self.meters = MeterProvider([self.reader])

    def config(self, **options: Any) -> dict[str, Any]:
        return {"telemetry": {"tracer_provider": self.tracers, "meter_provider": self.meters, **options}}

    @property
    def spans(self) -> tuple[ReadableSpan, ...]:
        return self.exporter.get_finished_spans()

    def one(self, name: str, **attributes: Any) -> ReadableSpan:
        """Return the only span of a name with these attributes, whose dots are written as two underscores."""
        wanted = {key.replace("__", "."): value for key, value in attributes.items()}
        [found] = [each for each in self.spans if each.name == name and wanted.items() <= values_of(each).items()]
        return found

    def points(self) -> dict[str, list[tuple[dict[str, Any], Any]]]:
        data = self.reader.get_metrics_data()
        return {
            metric.name: [
                (dict(point.attributes or {}), getattr(point, "count", getattr(point, "value", None)))
                for point in metric.data.data_points
            ]
            for resource in (data.resource_metrics if data else ())
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    made = Recorder()
    yield made
    made.tracers.shutdown()
    made.meters.shutdown()


class WaitingEmbedder(HashEmbedder):
    """An embedder that does not promise to compute in microseconds, like all real ones."""

    inline = False


def values_of(span: ReadableSpan) -> Mapping[str, Any]:
    return span.attributes or {}


def trace_id_of(span: ReadableSpan) -> int:
    assert span.context is not None
    return int(span.context.trace_id)


def is_child(span: ReadableSpan, parent: ReadableSpan) -> bool:
    return span.parent is not None and parent.context is not None and span.parent.span_id == parent.context.span_id


def all_texts(spans: tuple[ReadableSpan, ...]) -> str:
    return "\n".join(span.to_json() for span in spans).lower()


def reply_by_task(task: str, _: Any) -> Reply:
    text = '{"facts": ["Alice moved to Porto"]}' if task == "facts" else "{}"
    return Reply(text=text, usage=Usage(input_tokens=120, output_tokens=8))


@pytest.mark.parametrize("mode", MODES)
def test_a_turn_and_what_is_learned_from_it_are_one_trace(mode: Mode, tmp_path: Path, recorder: Recorder) -> None:
    with open_memory(tmp_path, reply_by_task, config=recorder.config()) as memory:
        driver = MemoryDriver(memory, mode)
        added = driver.add("I moved to Porto.", user_id="alice", background=True)
        if mode == "sync":
            assert memory.flush(30)
        else:  # each call of the driver has an event loop, and so workers, of its own
            assert driver.flush(30)
    turn = recorder.one("upsert_memory", mem0__method="add")
    job = recorder.one("upsert_memory", mem0__method="remember")
    facts = recorder.one("chat ScriptedChat", mem0__task="facts")
    assert is_child(job, turn)
    assert is_child(facts, job)
    assert turn.parent is None
    assert values_of(turn)["mem0.job.id"] == values_of(job)["mem0.job.id"] == added["job_id"]
    assert values_of(job)["mem0.queue.age"] >= 0
    assert all(trace_id_of(each) == trace_id_of(turn) for each in recorder.spans if "flush" not in each.name)


@pytest.mark.parametrize("mode", MODES)
def test_a_search_has_the_names_and_attributes_of_the_conventions(
    mode: Mode, tmp_path: Path, recorder: Recorder
) -> None:
    with open_memory(tmp_path, config=recorder.config(), embedder=WaitingEmbedder()) as memory:
        driver = MemoryDriver(memory, mode)
        driver.add("I live in Oslo.", user_id="alice")
        driver.search("Where do I live?", user_id="alice", run_id=None)
    search = recorder.one("search_memory")
    values = values_of(search)
    assert values["gen_ai.operation.name"] == "search_memory"
    assert values["gen_ai.memory.record.count"] == 1
    assert values["mem0.scope"] == "user"
    assert 0 < values["mem0.search.top_score"] <= 1
    assert len(values["gen_ai.memory.store.id"]) == 16
    assert search.status.status_code is trace.StatusCode.UNSET
    query, *_ = [each for each in recorder.spans if each.name == "embeddings hash-384" and is_child(each, search)]
    assert values_of(query)["gen_ai.operation.name"] == "embeddings"
    assert values_of(query)["gen_ai.provider.name"] == "tests"  # the package of the class
    assert values_of(query)["gen_ai.request.model"] == "hash-384"
    assert values_of(query)["gen_ai.embeddings.dimension.count"] == 384


def test_a_model_that_computes_in_microseconds_has_no_span_of_its_own(tmp_path: Path, recorder: Recorder) -> None:
    with open_memory(tmp_path, config=recorder.config()) as memory:
        memory.add("I live in Oslo.", user_id="alice")
        memory.search("Where do I live?", user_id="alice")
    assert {each.name for each in recorder.spans} == {"upsert_memory", "search_memory"}


def test_a_chat_call_has_its_tokens_and_its_cost(tmp_path: Path, recorder: Recorder) -> None:
    config = recorder.config(prices={"ScriptedChat": (1.0, 10.0)})
    with open_memory(tmp_path, reply_by_task, config=config) as memory:
        memory.add("I moved to Porto.", user_id="alice")
    chat = values_of(recorder.one("chat ScriptedChat", mem0__task="facts"))
    assert chat["gen_ai.usage.input_tokens"] == chat["llm.token_count.prompt"] == 120
    assert chat["gen_ai.usage.output_tokens"] == chat["llm.token_count.completion"] == 8
    assert chat["llm.cost.total"] == pytest.approx(200e-6)
    points = recorder.points()
    calls = sum(1 for each in recorder.spans if each.name.startswith("chat"))
    assert sum(count for _, count in points["gen_ai.client.inference.usage.input_tokens"]) == 120 * calls
    assert sum(count for _, count in points["mem0.cost"]) == pytest.approx(200e-6 * calls)


@pytest.mark.parametrize("mode", MODES)
def test_no_span_has_a_text_or_the_id_of_a_user(mode: Mode, tmp_path: Path, recorder: Recorder) -> None:
    with open_memory(tmp_path / "data", config=recorder.config()) as memory:
        call_everything(MemoryDriver(memory, mode), tmp_path)
    names = {each.name for each in recorder.spans}
    assert {"upsert_memory", "search_memory", "update_memory", "delete_memory", "delete_memory_store"} <= names
    texts = all_texts(recorder.spans)
    assert [word for word in WORDS if word in texts] == []
    labels = str(recorder.points()).lower()
    assert [word for word in WORDS if word in labels] == []


def test_content_is_recorded_once_it_is_opted_in(
    tmp_path: Path, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true")
    with open_memory(tmp_path, reply_by_task, config=recorder.config(ids=True)) as memory:
        memory.add("I moved to Porto.", user_id="alice", run_id="r1")
        memory.search("Where do I live?", user_id="alice")
    search = values_of(recorder.one("search_memory"))
    assert search["gen_ai.memory.query.text"] == "Where do I live?"
    assert '"content": "Alice moved to Porto"' in search["gen_ai.memory.records"]
    assert search["retrieval.documents.0.document.content"] == "Alice moved to Porto"
    assert search["user.id"] == "alice"
    add = values_of(recorder.one("upsert_memory"))
    assert add["gen_ai.conversation.id"] == "r1"
    assert (
        "I moved to Porto." in values_of(recorder.one("chat ScriptedChat", mem0__task="facts"))["gen_ai.input.messages"]
    )


@pytest.mark.parametrize("mode", MODES)
def test_a_failure_sets_the_status_without_its_message(mode: Mode, tmp_path: Path, recorder: Recorder) -> None:
    def fail(task: str, _: Any) -> Any:
        raise ValueError("zanzibar")

    with open_memory(tmp_path, fail, config=recorder.config()) as memory:
        driver = MemoryDriver(memory, mode)
        with pytest.raises(ModelError):
            driver.add("I moved to Porto.", user_id="alice")
        with pytest.raises(InputError):
            driver.search("Porto", user_id="alice", limit=-1)
    for name, error in (("chat ScriptedChat", "ValueError"), ("upsert_memory", "ModelError")):
        span = recorder.one(name)
        assert span.status.status_code is trace.StatusCode.ERROR
        assert span.status.description is None
        assert values_of(span)["error.type"] == error
    assert values_of(recorder.one("search_memory"))["error.type"] == "InputError"
    assert "zanzibar" not in all_texts(recorder.spans)
    errors = [labels.get("error.type") for labels, _ in recorder.points()["mem0.operation.duration"]]
    assert sorted(filter(None, errors)) == ["InputError", "ModelError"]


def test_jobs_of_several_traces_that_run_together_are_linked(tmp_path: Path, recorder: Recorder) -> None:
    config = {**recorder.config(), "background": {"workers": 1}}
    turns = ("I moved to Porto.", "I like tea.", "I play chess.")
    with open_memory(tmp_path, reply_by_task, config=config) as memory:
        memory._background.stop()  # so that all turns are queued before a worker runs
        for turn in turns:
            memory.add(turn, user_id="alice", run_id="r1", background=True)
    with open_memory(tmp_path, reply_by_task, config=config) as memory:
        assert memory.flush(30)
    adds = [each for each in recorder.spans if values_of(each).get("mem0.method") == "add"]
    jobs = [each for each in recorder.spans if values_of(each).get("mem0.method") == "remember"]
    assert len({trace_id_of(each) for each in adds}) == 3
    assert {trace_id_of(each) for each in jobs} == {trace_id_of(each) for each in adds}
    [main] = [each for each in jobs if not values_of(each).get("mem0.job.batched")]
    assert values_of(main)["mem0.job.count"] == 3
    assert len(main.links) == 2
    others = [link.context.span_id for each in jobs if each is not main for link in each.links]
    assert main.context is not None
    assert others == [main.context.span_id] * 2


def test_a_job_that_fails_is_counted_and_its_retry_stays_in_the_trace(tmp_path: Path, recorder: Recorder) -> None:
    broken = True

    def reply(task: str, messages: Any) -> Any:
        if broken:
            raise ModelError("the server is down")
        return reply_by_task(task, messages)

    config = {**recorder.config(), "background": {"tries": 1, "backoff": 0.01, "workers": 1}}
    with open_memory(tmp_path, reply, config=config) as memory:
        job = memory.add("I moved to Porto.", user_id="alice", background=True)["job_id"]
        assert memory.flush(60)
        assert {"mem0.job.state": "failed"}.items() <= dict(recorder.points()["mem0.queue.jobs"][2][0]).items()
        broken = False
        memory.retry(job)
        assert memory.flush(60)
    turn = recorder.one("upsert_memory", mem0__method="add")
    attempts = [each for each in recorder.spans if values_of(each).get("mem0.method") == "remember"]
    assert {trace_id_of(each) for each in attempts} == {trace_id_of(turn)}
    assert attempts[0].status.status_code is trace.StatusCode.ERROR
    assert attempts[-1].status.status_code is trace.StatusCode.UNSET
    outcomes = {labels["mem0.job.outcome"]: count for labels, count in recorder.points()["mem0.jobs"]}
    assert outcomes["failed"] == outcomes["done"] == 1


def test_metrics_have_the_queue_the_memories_and_the_durations(tmp_path: Path, recorder: Recorder) -> None:
    with open_memory(tmp_path, config=recorder.config()) as memory:
        memory.add("I live in Oslo.", user_id="alice")
        memory.add("I am on holiday.", user_id="alice", run_id="r1")
        memory.search("Oslo", user_id="alice")
        points = recorder.points()
        memories = {labels["mem0.scope"]: count for labels, count in points["mem0.memories"]}
        assert memories == {"user": 1, "user+run": 1}
        jobs = {labels["mem0.job.state"]: count for labels, count in points["mem0.queue.jobs"]}
        assert jobs == {"waiting": 0, "leased": 0, "failed": 0}
        durations = {labels["mem0.method"]: count for labels, count in points["mem0.operation.duration"]}
        assert durations == {"add": 2, "search": 1}
        assert points["mem0.search.top_score"][0][1] == 1
    assert "mem0.memories" not in recorder.points()  # a closed memory is not observed


def test_measurements_wait_for_each_other_and_none_is_lost(tmp_path: Path, recorder: Recorder) -> None:
    waiting = instruments_of(recorder.meters)._waiting
    most = 0
    with open_memory(tmp_path, config=recorder.config()) as memory:
        for number in range(40):
            memory.search(f"Oslo {number}", user_id="alice")
            most = max(most, len(waiting))
    assert 1 < most < 40  # a program without a reader does not collect them for ever
    points = recorder.points()
    assert [count for _, count in points["mem0.operation.duration"]] == [40]
    assert [count for _, count in points["mem0.search.results"]] == [40]
    assert not waiting


def test_a_waiting_measurement_keeps_the_ids_of_its_span_and_none_of_its_texts(
    tmp_path: Path, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true")
    with open_memory(tmp_path, config=recorder.config()) as memory:
        memory.search("Where is Zanzibarium?", user_id="alice")
        assert instruments_of(recorder.meters)._waiting
        gc.collect()
        alive = [str(one.attributes) for one in gc.get_objects() if isinstance(one, Span)]
        assert not [attributes for attributes in alive if "Zanzibarium" in attributes]
    data: Any = recorder.reader.get_metrics_data()
    metrics = data.resource_metrics[0].scope_metrics[0].metrics
    [duration] = [one.data.data_points[0] for one in metrics if one.name == "mem0.operation.duration"]
    assert [exemplar.span_id for exemplar in duration.exemplars] == [recorder.one("search_memory").context.span_id]


def test_each_span_of_an_embedder_has_the_length_of_its_vectors(tmp_path: Path, recorder: Recorder) -> None:
    with open_memory(tmp_path, config=recorder.config(), embedder=WaitingEmbedder()) as memory:
        memory.add("I live in Oslo.", user_id="alice")
        memory.search("Where do I live?", user_id="alice")
    spans = [values_of(each) for each in recorder.spans if each.name == "embeddings hash-384"]
    assert len(spans) > 1
    assert {each["gen_ai.embeddings.dimension.count"] for each in spans} == {384}


def test_the_log_of_calls_names_the_trace(tmp_path: Path, recorder: Recorder, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "mem0_core"), open_memory(tmp_path, config=recorder.config()) as memory:
        memory.search("Oslo", user_id="alice")
    span = recorder.one("search_memory")
    assert span.context is not None
    ids = f"trace_id={span.context.trace_id:032x} span_id={span.context.span_id:016x}"
    assert [line for line in caplog.messages if line.startswith("search") and line.endswith(ids)]


def test_spans_nest_below_the_span_of_the_caller(tmp_path: Path, recorder: Recorder) -> None:
    async def run_turn(memory: Memory) -> None:
        with recorder.tracers.get_tracer("app").start_as_current_span("turn"):
            await asyncio.gather(memory.asearch("Oslo", user_id="alice"), memory.acontext("Porto", user_id="alice"))
            await memory.aadd("I live in Oslo.", user_id="alice")
        await memory.aclose()

    with open_memory(tmp_path, config=recorder.config()) as memory:
        asyncio.run(run_turn(memory))
    turn = recorder.one("turn")
    assert len({trace_id_of(each) for each in recorder.spans}) == 1
    below = [values_of(each)["mem0.method"] for each in recorder.spans if is_child(each, turn)]
    assert sorted(below) == ["add", "context", "search"]


def test_the_dashboard_asks_for_metrics_that_exist(tmp_path: Path, recorder: Recorder) -> None:
    config = recorder.config(prices={"ScriptedChat": (1.0, 10.0)})
    with open_memory(tmp_path, reply_by_task, config=config, embedder=WaitingEmbedder()) as memory:
        memory.add("I moved to Porto.", user_id="alice", background=True)
        assert memory.flush(60)
        memory.search("Porto", user_id="alice")
        points = recorder.points()
    names = {name.replace(".", "_") for name in points}
    labels = {label.replace(".", "_") for each in points.values() for values, _ in each for label in values}
    dashboard = json.loads((ROOT / "deploy/grafana-dashboard.json").read_text(encoding="utf-8"))
    queries = " ".join(target["expr"] for panel in dashboard["panels"] for target in panel["targets"])
    asked = {
        re.sub(r"(_seconds)?(_bucket|_count|_total)?$", "", name)
        for name in set(re.findall(r"\b(?:mem0|gen_ai)_\w+", queries)) - labels
    }
    assert asked == names


def test_telemetry_that_is_off_records_nothing(tmp_path: Path, recorder: Recorder) -> None:
    with open_memory(tmp_path, config=recorder.config(enabled=False)) as memory:
        memory.add("I live in Oslo.", user_id="alice")
    assert recorder.spans == ()


_ISOLATED = """
import sys, tempfile
from mem0_core import Memory
from mem0_core.testing import HashEmbedder
def is_loaded(): return any(name.partition(".")[0] == "opentelemetry" for name in sys.modules)
with Memory({"path": tempfile.mkdtemp()}, embedder=HashEmbedder()) as memory:
    memory.add("I live in Oslo.", user_id="alice")
    memory.search("Where do I live?", user_id="alice")
    assert not is_loaded()
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
    memory.search("Where do I live now?", user_id="alice")
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    memory.search("Where do I live today?", user_id="alice")
    assert [span.name for span in exporter.get_finished_spans()] == ["search_memory"]
"""


def test_nothing_is_imported_until_the_program_configures_an_sdk() -> None:
    subprocess.run([sys.executable, "-c", _ISOLATED], check=True, timeout=120)
