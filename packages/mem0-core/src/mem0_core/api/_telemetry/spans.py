"""The spans of calls, of jobs and of the model calls below them. Imported only where the program uses OpenTelemetry."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from contextvars import Token
from types import TracebackType
from typing import Any, Literal, TypeVar

from opentelemetry import context, metrics, trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, Span, SpanKind, Status, StatusCode
from opentelemetry.trace.propagation import set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from mem0_core.api._call_log import call_arguments, describe_scope, method_of
from mem0_core.api._telemetry import attributes as named
from mem0_core.api._telemetry.metrics import Instruments, instruments_of
from mem0_core.config import TelemetryConfig
from mem0_core.flow import Call, Flow, arun, find_async_method, replace_calls, run
from mem0_core.interfaces import Job, MemoryStore
from mem0_core.interfaces.queue import TRACE_OPTION, trace_context

T = TypeVar("T")
_propagator = TraceContextTextMapPropagator()
_MODEL_OPERATIONS = {
    "complete": "chat",
    "embed": "embeddings",
    "score": "rerank",
    "score_passages": "rerank",
    "compare": "rerank",
}
_MODEL_KINDS = {"chat": ("LLM", "llm"), "embeddings": ("EMBEDDING", "embedding"), "rerank": ("RERANKER", "chain")}


def is_configured() -> bool:
    """Return True if the program has set a provider of tracers or of meters."""
    providers: tuple[object, ...] = (trace.get_tracer_provider(), metrics.get_meter_provider())
    return not all(type(provider).__name__.lstrip("_").startswith("Proxy") for provider in providers)


class SpanFactory:
    """Makes all spans of one memory."""

    def __init__(self, config: TelemetryConfig, store: MemoryStore, *, store_id: str, content: bool) -> None:
        self.tracer = trace.get_tracer("mem0_core", tracer_provider=config.tracer_provider)
        self.instruments: Instruments = instruments_of(config.meter_provider)
        self.store_id = store_id
        self.captures_content = content
        self.captures_ids = config.ids
        self.prices = config.prices
        self._models: dict[tuple[int, str], _Model] = {}
        self._observed = self.instruments.watch(store, store_id)

    def trace_call(self, flow: Flow[Any]) -> CallSpan:
        """Return the span of a method from its flow, which has not begun."""
        return CallSpan(self, method_of(flow), call_arguments(flow))

    def trace_jobs(self, jobs: list[Job]) -> JobsSpan:
        """Return the span of jobs that run together."""
        return JobsSpan(self, jobs)

    def replace_call(self, call: Call) -> Call:
        """Return a call of a model with its span; other calls as they are.

        A model that declares ``inline = True`` computes in microseconds, less than its span would take.
        """
        operation = _MODEL_OPERATIONS.get(getattr(call.method, "__name__", ""))
        if operation is None or call.inline:
            return call
        kind = ModelCall if find_async_method(call) is None else AsyncModelCall
        return Call(kind(self, operation, call).make, (), {})

    def describe_model(self, model: object, operation: str) -> _Model:
        known = self._models.get((id(model), operation))
        if known is None:
            known = self._models[id(model), operation] = _Model(model, operation, self.prices)
        return known


class _Model:
    """Attributes of the spans of a model's calls; made once, and keeps the model so that its id stays its own."""

    def __init__(self, model: object, operation: str, prices: Mapping[str, tuple[float, float]]) -> None:
        self.model = model
        described = named.describe_model(model)
        self.span_name = f"{operation} {described['gen_ai.request.model']}"
        self.span_kind = SpanKind.CLIENT if "server.address" in described else SpanKind.INTERNAL
        self.price = prices.get(described["gen_ai.request.model"])
        self.labels = {"gen_ai.operation.name": operation, **described}
        self.token_labels = {**self.labels, "gen_ai.token.modality": "unknown"}
        kind, langsmith = _MODEL_KINDS[operation]
        self.attributes = {**self.labels, "openinference.span.kind": kind, "langsmith.span.kind": langsmith}

    def find_new_dimensions(self, vectors: object) -> dict[str, Any]:
        """Return the length of the vectors, and let later spans begin with it; nothing if theirs do."""
        name, shape = "gen_ai.embeddings.dimension.count", getattr(vectors, "shape", ())
        if not shape or self.attributes.get(name) == shape[-1]:
            return {}
        found = {name: int(shape[-1])}
        self.attributes = {**self.attributes, **found}
        return found


class _OpenSpan:
    """A span that is current while its calls run: a context manager, entered and left in one thread or task."""

    def __init__(self, factory: SpanFactory) -> None:
        self._factory = factory
        self._method = ""
        self._operation = ""
        self._error: str | None = None

    def _open(self, attributes: dict[str, Any], parent: Context | None, links: list[Link] | None) -> None:
        self._span = self._factory.tracer.start_span(
            self._operation, parent, attributes=attributes, links=links, record_exception=False
        )
        self._context = set_span_in_context(self._span, parent)
        self._token = context.attach(self._context)
        self._trace_token: Token[Any] = trace_context.set(self._carrier)
        self._started = time.perf_counter()

    def _close(self, error: BaseException | None) -> None:
        seconds = time.perf_counter() - self._started
        with suppress(ValueError):  # closed by another task than the one that ran the flow
            trace_context.reset(self._trace_token)
        context.detach(self._token)
        if error is not None:
            self._fail(error)
        self._span.end()
        attributes = {"gen_ai.operation.name": self._operation, "mem0.method": self._method}
        if self._error is not None:
            attributes["error.type"] = self._error
        instruments = self._factory.instruments
        instruments.record(instruments.operation_duration, seconds, attributes, self._context)

    def _fail(self, error: BaseException) -> None:
        self._error = type(error).__name__
        set_error(self._span, error, content=self._factory.captures_content)

    def _carrier(self) -> Mapping[str, Any]:
        carrier: dict[str, Any] = {}
        _propagator.inject(carrier, self._context)
        return {**carrier, "at": time.time()}


def set_error(span: Span, error: BaseException, *, content: bool) -> None:
    """Set the status of a failed span; the message of an error may quote texts."""
    span.set_status(Status(StatusCode.ERROR, str(error) if content else None))
    span.set_attribute("error.type", type(error).__name__)
    if content:
        span.record_exception(error)


class CallSpan(_OpenSpan):
    """The span of a call of a method."""

    def __init__(self, factory: SpanFactory, method: str, arguments: Mapping[str, Any]) -> None:
        super().__init__(factory)
        self._method = method
        self._operation = named.operation_of(method, arguments)
        self._arguments = arguments

    def run(self, flow: Flow[T]) -> T:
        """Run the flow of the method to its end in this thread."""
        with self:
            result = run(replace_calls(flow, self._factory.replace_call))
            self._set_result(result)
        return result

    async def arun(self, flow: Flow[T]) -> T:
        """Run the flow of the method to its end in the current task."""
        with self:
            result = await arun(replace_calls(flow, self._factory.replace_call))
            self._set_result(result)
        return result

    def __enter__(self) -> CallSpan:
        ids = self._arguments.get("ids")
        attributes = named.call_attributes(self._method, self._operation, self._arguments, describe_scope(ids))
        attributes["gen_ai.memory.store.id"] = self._factory.store_id
        if self._factory.captures_ids:
            attributes |= named.id_attributes(ids)
        if self._factory.captures_content:
            attributes |= named.content_of_call(self._operation, self._arguments)
        self._open(attributes, None, None)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._close(error)

    def _set_result(self, result: object) -> None:
        is_search, is_recorded = self._operation == "search_memory", self._span.is_recording()
        if not is_search and not is_recorded:
            return
        attributes = named.result_attributes(result)
        if is_search and "gen_ai.memory.record.count" in attributes:
            labels, instruments = {"mem0.method": self._method}, self._factory.instruments
            found = attributes["gen_ai.memory.record.count"]
            instruments.record(instruments.results, found, labels, self._context)
            if named.SCORE in attributes:
                instruments.record(instruments.top_score, attributes[named.SCORE], labels, self._context)
        if is_recorded:
            if self._factory.captures_content:
                attributes |= named.content_of_result(result)
            self._span.set_attributes(attributes)


class JobsSpan(_OpenSpan):
    """The span of jobs that run together, in the trace of the call that enqueued the first of them.

    Each other trace that enqueued one of them gets a span of its own, which is linked with this one.
    """

    def __init__(self, factory: SpanFactory, jobs: list[Job]) -> None:
        super().__init__(factory)
        self._jobs = jobs
        self._method = jobs[0].kind
        self._operation = named.OPERATIONS.get(self._method, self._method)
        self._outcome = "done"

    def __enter__(self) -> JobsSpan:
        carriers = [carrier for job in self._jobs if isinstance(carrier := job.options.get(TRACE_OPTION), Mapping)]
        now = time.time()
        ages = [max(0.0, now - at) for carrier in carriers if isinstance(at := carrier.get("at"), (int, float))]
        parents = _read_parents(carriers)
        links = [Link(trace.get_current_span(parent).get_span_context()) for parent in parents[1:]]
        attributes = named.job_attributes(self._jobs, self._operation, ages)
        attributes["gen_ai.memory.store.id"] = self._factory.store_id
        scope = self._jobs[0].scope
        ids = (scope.user_id, scope.agent_id, scope.run_id)
        attributes["mem0.scope"] = describe_scope(ids)
        if self._factory.captures_ids:
            attributes |= named.id_attributes(ids)
        self._open(attributes, parents[0] if parents else Context(), links)
        link = Link(self._span.get_span_context())
        attributes["mem0.job.batched"] = True
        start = self._factory.tracer.start_span
        self._linked = [start(self._operation, parent, attributes=attributes, links=[link]) for parent in parents[1:]]
        for age in ages:
            instruments = self._factory.instruments
            instruments.record(instruments.queue_age, age, {"mem0.method": self._method}, self._context)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._close(error)
        for span in self._linked:
            if self._error is not None:
                span.set_status(Status(StatusCode.ERROR))
                span.set_attribute("error.type", self._error)
            span.end()
        outcome = "retry" if error is not None else self._outcome
        labels = {"mem0.method": self._method, "mem0.job.outcome": outcome}
        self._factory.instruments.jobs.add(len(self._jobs), labels)

    def watch(self, flow: Flow[None]) -> Flow[None]:
        """Return the flow with its model calls traced."""
        return replace_calls(flow, self._factory.replace_call)

    def set_failure(self, error: Exception, outcome: Literal["retry", "failed"]) -> None:
        """Record the error of a failed attempt."""
        self._outcome = outcome
        self._fail(error)
        self._span.set_attribute("mem0.job.outcome", outcome)


def _read_parents(carriers: list[Mapping[str, Any]]) -> list[Context]:
    """Return the contexts of the calls that enqueued jobs, one for each trace."""
    parents: dict[int, Context] = {}
    for carrier in carriers:
        strings = {name: value for name, value in carrier.items() if isinstance(value, str)}
        parent = _propagator.extract(strings, Context())
        span = trace.get_current_span(parent).get_span_context()
        if span.is_valid:
            parents.setdefault(span.trace_id, parent)
    return list(parents.values())


class ModelCall:
    """A call of a model, and its span, which is current while the call runs; `make` replaces the method of the call."""

    def __init__(self, factory: SpanFactory, operation: str, call: Call) -> None:
        self._factory = factory
        self._operation = operation
        self._call = call
        self._model = factory.describe_model(getattr(call.method, "__self__", call.method), operation)

    def make(self) -> Any:
        """Make the call in this thread."""
        with self:
            return self.set_result(self._call.execute())

    def __enter__(self) -> ModelCall:
        call, model = self._call, self._model
        attributes = model.attributes.copy()
        if self._operation == "chat":
            attributes["mem0.task"] = str(call.kwargs.get("task", ""))
            attributes["gen_ai.output.type"] = "text" if call.kwargs.get("schema") is None else "json"
        else:
            attributes["mem0.texts"] = len(call.args[-1]) if call.args else 0
        self._span = self._factory.tracer.start_span(
            model.span_name, kind=model.span_kind, attributes=attributes, record_exception=False
        )
        self._context = set_span_in_context(self._span)
        self._token = context.attach(self._context)
        self._started = time.perf_counter()
        return self

    def set_result(self, result: T) -> T:
        """Record the tokens and sizes of a result, and return it."""
        attributes = {}
        if self._operation == "chat":
            attributes = named.token_attributes(result, self._model.price)
            self._count_tokens(attributes)
        elif self._operation == "embeddings":
            attributes = self._model.find_new_dimensions(result)
        if self._span.is_recording():
            if self._factory.captures_content and self._operation == "chat":
                attributes |= named.chat_content(self._call.args, result)
            elif self._factory.captures_content:
                attributes["input.value"] = named.to_json(self._call.args)
            if attributes:
                self._span.set_attributes(attributes)
        return result

    def _count_tokens(self, attributes: Mapping[str, Any]) -> None:
        labels = self._model.token_labels
        instruments = self._factory.instruments
        instruments.input_tokens.add(attributes.get("gen_ai.usage.input_tokens", 0), labels)
        instruments.output_tokens.add(attributes.get("gen_ai.usage.output_tokens", 0), labels)
        if "llm.cost.total" in attributes:
            instruments.cost.add(attributes["llm.cost.total"], self._model.labels)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        seconds = time.perf_counter() - self._started
        context.detach(self._token)
        labels = self._model.labels
        if error is not None:
            labels = {**labels, "error.type": type(error).__name__}
            set_error(self._span, error, content=self._factory.captures_content)
        self._span.end()
        instruments = self._factory.instruments
        durations = {"chat": instruments.inference_duration, "embeddings": instruments.embeddings_duration}
        duration = durations.get(self._operation, instruments.operation_duration)
        instruments.record(duration, seconds, labels, self._context)


class AsyncModelCall(ModelCall):
    """A call of a model with an async counterpart."""

    async def amake(self) -> Any:
        """Await the call."""
        method = find_async_method(self._call)
        assert method is not None  # chosen by `SpanFactory.replace_call`
        with self:
            return self.set_result(await method(*self._call.args, **self._call.kwargs))
