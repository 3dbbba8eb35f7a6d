"""Names and values of span attributes: the GenAI conventions, OpenInference, LangSmith, and our own below ``mem0.``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from mem0_core.domain.records import Axis
from mem0_core.interfaces import Job, Reply

Attributes = dict[str, Any]

OPERATIONS = {
    "add": "upsert_memory",
    "add_many": "upsert_memory",
    "remember": "upsert_memory",
    "search": "search_memory",
    "context": "search_memory",
    "answer": "search_memory",
    "traverse": "search_memory",
    "query": "search_memory",
    "relations": "search_memory",
    "explain_missing": "search_memory",
    "nearest": "search_memory",
    "create_items": "create_memory",
    "update": "update_memory",
    "update_by_query": "update_memory",
    "replace_items": "update_memory",
    "pin": "update_memory",
    "feedback": "update_memory",
    "count_citations": "update_memory",
    "delete": "delete_memory",
    "delete_all": "delete_memory",
    "delete_by_query": "delete_memory",
    "delete_items": "delete_memory",
    "retract": "delete_memory",
    "erase": "delete_memory",
    "reset": "delete_memory_store",
}
"""``gen_ai.operation.name`` of methods and jobs; another method's name is its operation."""

SCORE = "mem0.search.top_score"
_KINDS = {"search_memory": ("RETRIEVER", "retriever")}
_LISTS = ("results", "memories")
_COUNTS = ("deleted", "updated", "added", "known", "tokens", "matched")
_PROVIDER_HOSTS = {
    "api.deepseek.com": "deepseek",
    "api.groq.com": "groq",
    "api.mistral.ai": "mistral_ai",
    "api.perplexity.ai": "perplexity",
    "api.x.ai": "x_ai",
    "api.moonshot.ai": "moonshot_ai",
}


def operation_of(method: str, arguments: Mapping[str, Any]) -> str:
    """Return the operation of a method; an add without inference creates the memories that the caller names."""
    if method.startswith("add") and arguments.get("infer") is False:
        return "create_memory"
    return OPERATIONS.get(method, method)


def call_attributes(method: str, operation: str, arguments: Mapping[str, Any], scope: str | None) -> Attributes:
    """Return the attributes of a call at its start; none has a text."""
    kind, langsmith = _KINDS.get(operation, ("CHAIN", "chain"))
    attributes: Attributes = {
        "gen_ai.operation.name": operation,
        "mem0.method": method,
        "openinference.span.kind": kind,
        "langsmith.span.kind": langsmith,
    }
    if scope is not None:
        attributes["mem0.scope"] = scope
    if isinstance(memory_id := arguments.get("memory_id"), str) and _is_id(memory_id):
        attributes["gen_ai.memory.record.id"] = memory_id
    if isinstance(limit := arguments.get("limit"), int):
        attributes["mem0.search.limit"] = limit
    for name in ("background", "dry_run", "purge", "rerank"):
        if arguments.get(name) is True:
            attributes[f"mem0.{name}"] = True
    return attributes


def id_attributes(ids: object) -> Attributes:
    """Return the ids of a scope under the names of the conventions."""
    if not isinstance(ids, tuple):
        return {}
    names = dict(zip(Axis, ("user.id", "gen_ai.agent.id", "gen_ai.conversation.id"), strict=True))
    given = {names[axis]: value for axis, value in zip(Axis, ids, strict=False) if isinstance(value, str)}
    return {**given, "session.id": given["gen_ai.conversation.id"]} if "gen_ai.conversation.id" in given else given


def result_attributes(result: object) -> Attributes:
    """Return the counts of a result."""
    if isinstance(result, bool):
        return {}
    if isinstance(result, int):
        return {"gen_ai.memory.record.count": result}
    if isinstance(result, list):
        return {"gen_ai.memory.record.count": len(result)}
    return dict(_count_entries(result)) if isinstance(result, Mapping) else {}


def _count_entries(result: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name in _LISTS:
        if isinstance(items := result.get(name), list):
            yield "gen_ai.memory.record.count", len(items)
            yield from _count_events(items)
            yield from _find_top_score(items)
    for name in _COUNTS:
        if isinstance(number := result.get(name), int) and not isinstance(number, bool):
            yield f"mem0.{name}", number
    for name in ("skipped", "pending"):
        if isinstance(items := result.get(name), list) and items:
            yield f"mem0.{name}", len(items)
    if isinstance(relations := result.get("relations"), list):
        yield "mem0.relations", len(relations)
    if isinstance(usage := result.get("usage"), Mapping) and usage.get("llm_calls"):
        yield "mem0.usage.llm_calls", usage["llm_calls"]
        yield "mem0.usage.input_tokens", usage["input_tokens"]
        yield "mem0.usage.output_tokens", usage["output_tokens"]
    if isinstance(job := result.get("job_id"), str):
        yield "mem0.job.id", job
    if "confidence" in result and "answer" in result:
        yield "mem0.answer.is_known", result["answer"] is not None
        yield "mem0.answer.confidence", result["confidence"]


def _count_events(items: Sequence[Any]) -> Iterator[tuple[str, int]]:
    if not (items and isinstance(items[0], dict) and "event" in items[0]):
        return
    events: dict[str, int] = {}
    for one in items:
        events[one["event"]] = events.get(one["event"], 0) + 1
    for event, count in events.items():
        yield f"mem0.changes.{str(event).lower()}", count


def _find_top_score(items: Sequence[Any]) -> Iterator[tuple[str, float]]:
    if items and isinstance(items[0], dict) and isinstance(score := items[0].get("score"), (int, float)):
        yield SCORE, float(score)


def job_attributes(jobs: Sequence[Job], operation: str, ages: Sequence[float]) -> Attributes:
    attributes: Attributes = {
        "gen_ai.operation.name": operation,
        "mem0.method": jobs[0].kind,
        "mem0.job.id": str(jobs[0].row),
        "mem0.job.count": len(jobs),
        "mem0.job.attempt": jobs[0].attempts + 1,
        "openinference.span.kind": "CHAIN",
        "langsmith.span.kind": "chain",
    }
    return {**attributes, "mem0.queue.age": max(ages)} if ages else attributes


def _is_id(text: str) -> bool:
    """Return True for the form of a UUID, so that no text is taken for an id."""
    return len(text) == 36 and text.count("-") == 4 and all(letter in "0123456789abcdef-" for letter in text)


# --- models ------------------------------------------------------------------------------------------------------


def describe_model(model: object) -> Attributes:
    """Return provider, name and server of a model."""
    inner = getattr(model, "model", None)
    name = next((each for each in _model_names(model, inner) if isinstance(each, str) and each), type(model).__name__)
    url = getattr(getattr(model, "_server", None), "url", None)
    server = urlsplit(url) if isinstance(url, str) else None
    provider = _provider_of(model if inner is None or isinstance(inner, str) else inner, server and server.hostname)
    attributes = {"gen_ai.provider.name": provider, "gen_ai.request.model": name}
    if server is not None and server.hostname:
        attributes["server.address"] = server.hostname
        return {**attributes, "server.port": server.port or (443 if server.scheme == "https" else 80)}
    return attributes


def _model_names(model: object, inner: object) -> Iterator[object]:
    yield inner
    for owner in (inner, model):
        for name in ("model_name", "model", "model_id", "name", "_model_name"):
            yield getattr(owner, name, None)


def _provider_of(model: object, host: str | None) -> str:
    if host is not None:
        if host.endswith(".openai.azure.com"):
            return "azure.ai.openai"
        return _PROVIDER_HOSTS.get(host, "openai")
    first, *further = type(model).__module__.split(".")
    if first == "llama_index" and len(further) > 1:  # llama_index.llms.openai.base
        return further[1]
    if first == "mem0_core" and further:  # mem0_core.providers.onnx
        return further[-1].strip("_")
    return first.removeprefix("langchain_")


def token_attributes(reply: object, price: tuple[float, float] | None) -> Attributes:
    """Return the tokens of a reply, as the server counted them, and their cost in US dollars if the price is known."""
    if not isinstance(reply, Reply) or reply.usage is None:
        return {}
    read, written = reply.usage.input_tokens, reply.usage.output_tokens
    attributes: Attributes = {
        "gen_ai.usage.input_tokens": read,
        "gen_ai.usage.output_tokens": written,
        "llm.token_count.prompt": read,
        "llm.token_count.completion": written,
        "llm.token_count.total": read + written,
    }
    if price is not None:
        costs = read * price[0] / 1e6, written * price[1] / 1e6
        attributes |= {"llm.cost.prompt": costs[0], "llm.cost.completion": costs[1], "llm.cost.total": sum(costs)}
    return attributes


# --- content, which is opted in ----------------------------------------------------------------------------------


def content_of_call(operation: str, arguments: Mapping[str, Any]) -> Attributes:
    """Return the query, the messages or the text of a call."""
    query = next((arguments[name] for name in ("query", "question") if isinstance(arguments.get(name), str)), None)
    if query is not None:
        return {"gen_ai.memory.query.text": query, "input.value": query}
    given = next((arguments[name] for name in ("messages", "data", "query") if arguments.get(name) is not None), None)
    return {} if given is None else {"input.value": given if isinstance(given, str) else to_json(given)}


def content_of_result(result: object) -> Attributes:
    """Return the memories of a result in the form of the conventions, and as OpenInference documents."""
    items = next(
        (items for name in _LISTS if isinstance(result, Mapping) and isinstance(items := result.get(name), list)), []
    )
    records = [record for item in items if isinstance(item, Mapping) and (record := _to_record(item))]
    attributes: Attributes = {"gen_ai.memory.records": to_json(records)} if records else {}
    for index, record in enumerate(records):
        document = f"retrieval.documents.{index}.document"
        attributes |= {f"{document}.{name}": record[name] for name in ("id", "content", "score") if name in record}
    text = result.get("text", result.get("answer")) if isinstance(result, Mapping) else None
    return {**attributes, "output.value": text} if isinstance(text, str) else attributes


def _to_record(item: Mapping[str, Any]) -> dict[str, Any]:
    if "memory" not in item:
        return {}
    record = {"content": item["memory"], "id": item.get("id"), "score": item.get("score")}
    if item.get("metadata"):
        record["metadata"] = item["metadata"]
    return {name: value for name, value in record.items() if value is not None}


def chat_content(arguments: tuple[Any, ...], result: object) -> Attributes:
    """Return the messages of a model call in the form of the conventions."""
    messages = [
        {"role": message.get("role", "user"), "parts": [{"type": "text", "content": to_text(message.get("content"))}]}
        for message in (arguments[0] if arguments else ())
    ]
    attributes = {"gen_ai.input.messages": to_json(messages)}
    if isinstance(result, Reply):
        parts: list[dict[str, Any]] = [{"type": "text", "content": result.text}] if result.text else []
        parts += [{"type": "tool_call", "name": call.name, "arguments": call.arguments} for call in result.tool_calls]
        reply = {"role": "assistant", "parts": parts, "finish_reason": "tool_call" if result.tool_calls else "stop"}
        attributes["gen_ai.output.messages"] = to_json([reply])
    return attributes


def to_text(content: object) -> str:
    return content if isinstance(content, str) else to_json(content)


def to_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
