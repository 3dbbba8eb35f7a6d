"""`OpenAIChat` and `OpenAIEmbedder` against a real HTTP server on the loopback interface."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from pydantic import BaseModel

from mem0_core.domain.records import Usage
from mem0_core.errors import ConfigError, MissingExtraError, ModelError
from mem0_core.flow import arun, do, run
from mem0_core.interfaces import ChatModel, Embedder, Reply, Tool, ToolCall
from mem0_core.providers.openai import OpenAIChat, OpenAIEmbedder
from tests.services.openai_server import OpenAIServer

pytest.importorskip("openai")

HELLO = [{"role": "system", "content": "Answer in JSON."}, {"role": "user", "content": "hello"}]
SECRET = "sk-very-secret-0123456789"


class Facts(BaseModel):
    facts: list[str]


class Other(BaseModel):
    event: str
    old_memory: str | None = None


EXTRACT = Tool(
    "extract_entities",
    "Extract the entities.",
    {"type": "object", "properties": {"names": {"type": "array", "items": {"type": "string"}}}, "required": ["names"]},
)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAIServer]:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    with OpenAIServer() as server:
        yield server


@pytest.fixture(params=["sync", "async"])
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def ask(chat: OpenAIChat, mode: str, messages: Sequence[Mapping[str, Any]] = HELLO, **kwargs: Any) -> Reply:
    kwargs.setdefault("task", "facts")
    if mode == "sync":
        return chat.complete(messages, **kwargs)
    return asyncio.run(chat.acomplete(messages, **kwargs))


def embed(embedder: Any, mode: str, texts: Sequence[str]) -> Any:
    return embedder.embed(texts) if mode == "sync" else asyncio.run(embedder.aembed(texts))


# --- chat --------------------------------------------------------------------------------------------------------


def test_a_plain_call_sends_the_messages_and_reads_text_and_usage(server: OpenAIServer, mode: str) -> None:
    chat = OpenAIChat("m", base_url=server.base_url, temperature=0.0, max_tokens=50, top_p=0.5)
    assert isinstance(chat, ChatModel)
    server.replies.append("hi")
    assert ask(chat, mode) == Reply(text="hi", usage=Usage(11, 7))
    (body,) = server.bodies()
    assert body == {"model": "m", "messages": HELLO, "temperature": 0.0, "max_tokens": 50, "top_p": 0.5}


def test_options_that_are_none_are_not_sent_and_usage_may_be_missing(server: OpenAIServer) -> None:
    server.usage = False
    reply = OpenAIChat("m", base_url=server.base_url, temperature=None).complete(HELLO, task="facts")
    assert reply == Reply(text="hello", usage=None)
    assert server.bodies()[0].keys() == {"model", "messages"}


def test_a_schema_is_sent_in_strict_form(server: OpenAIServer, mode: str) -> None:
    chat = OpenAIChat("m", base_url=server.base_url)
    server.replies.append('{"facts": []}')
    assert ask(chat, mode, schema=Facts).text == '{"facts": []}'
    form = server.bodies()[0]["response_format"]
    assert form["type"] == "json_schema"
    assert form["json_schema"]["name"] == "Facts"
    assert form["json_schema"]["strict"] is True
    assert form["json_schema"]["schema"]["additionalProperties"] is False
    ask(chat, mode, schema=Other)
    assert server.bodies()[1]["response_format"]["json_schema"]["schema"]["required"] == ["event", "old_memory"]


@pytest.mark.parametrize(
    ("refused", "first_forms", "later_form"),
    [
        ({"json_schema"}, ["json_schema", "json_object"], "json_object"),
        ({"json_schema", "json_object"}, ["json_schema", "json_object", None], None),
    ],
)
def test_a_refused_schema_is_asked_for_more_simply_and_what_worked_is_remembered(
    server: OpenAIServer, mode: str, refused: set[str], first_forms: list[str | None], later_form: str | None
) -> None:
    server.refused_parameters = refused
    chat = OpenAIChat("m", base_url=server.base_url)
    assert ask(chat, mode, schema=Facts).text == "hello"
    assert ask(chat, mode, schema=Facts).text == "hello"
    forms = [body.get("response_format", {}).get("type") for body in server.bodies()]
    assert forms == [*first_forms, later_form]


def test_one_refused_schema_says_nothing_of_another(server: OpenAIServer) -> None:
    chat = OpenAIChat("m", base_url=server.base_url)
    server.failures.append(400)
    chat.complete(HELLO, task="facts", schema=Facts)
    chat.complete(HELLO, task="operations", schema=Other)
    chat.complete(HELLO, task="facts", schema=Facts)
    forms = [body["response_format"]["type"] for body in server.bodies()]
    assert forms == ["json_schema", "json_object", "json_schema", "json_object"]


def test_an_error_in_every_form_is_raised_and_nothing_is_learnt_from_it(server: OpenAIServer, mode: str) -> None:
    chat = OpenAIChat("m", base_url=server.base_url)
    server.failures.extend([400, 400, 400])
    with pytest.raises(ModelError, match="scripted failure"):
        ask(chat, mode, schema=Facts)
    ask(chat, mode, schema=Facts)
    assert server.bodies()[-1]["response_format"]["type"] == "json_schema"


def test_tools_go_out_as_tools_and_calls_come_back(server: OpenAIServer, mode: str) -> None:
    chat = OpenAIChat("m", base_url=server.base_url)
    calls = [
        {"id": "1", "type": "function", "function": {"name": "extract_entities", "arguments": '{"names": ["Zoë"]}'}},
        {"id": "2", "type": "function", "function": {"name": "extract_entities", "arguments": '{"names": ["Z'}},
        {"id": "3", "type": "function", "function": {"name": "extract_entities", "arguments": "[1]"}},
    ]
    server.replies.append({"content": None, "tool_calls": calls})
    strict = Tool("other", "Another.", {"type": "object", "properties": {}}, strict=True)
    reply = ask(chat, mode, task="entities", tools=[EXTRACT, strict], schema=Facts)
    assert reply.text == ""
    assert list(reply.tool_calls) == [
        ToolCall("extract_entities", {"names": ["Zoë"]}),
        ToolCall("extract_entities", '{"names": ["Z'),
        ToolCall("extract_entities", "[1]"),
    ]
    (body,) = server.bodies()
    assert "response_format" not in body
    first, second = (tool["function"] for tool in body["tools"])
    assert first == {"name": EXTRACT.name, "description": EXTRACT.description, "parameters": EXTRACT.parameters}
    assert second["strict"] is True


def test_a_model_without_tools_is_told_of_them_in_words(server: OpenAIServer, mode: str) -> None:
    server.refused_parameters = {"tools"}
    chat = OpenAIChat("m", base_url=server.base_url)
    arguments = {"names": ["Bob"]}
    answer = json.dumps({"tool_calls": [{"name": EXTRACT.name, "arguments": arguments}]})
    server.replies.extend([f"Sure:\n```json\n{answer}\n```", '{"names": ["Bob"]}', "no"])
    reply = ask(chat, mode, tools=[EXTRACT])
    assert list(reply.tool_calls) == [ToolCall(EXTRACT.name, arguments)]
    bare = ask(chat, mode, tools=[EXTRACT])
    assert (bare.text, bare.tool_calls) == ('{"names": ["Bob"]}', ())
    assert ask(chat, mode, tools=[EXTRACT]).text == "no"
    refused, described, *rest = server.bodies()
    assert "tools" in refused
    assert len(rest) == 2
    assert not any("tools" in body for body in [described, *rest])
    system = described["messages"][0]
    assert system["role"] == "system"
    assert system["content"].startswith("Answer in JSON.")
    assert EXTRACT.name in system["content"]
    assert described["messages"][1:] == HELLO[1:]
    ask(chat, mode, HELLO[1:], tools=[EXTRACT])
    assert [message["role"] for message in server.bodies()[-1]["messages"]] == ["system", "user"]


def test_an_option_the_model_does_not_support_is_left_out_from_then_on(server: OpenAIServer, mode: str) -> None:
    server.refused_parameters = {"temperature", "max_tokens"}
    chat = OpenAIChat("gpt-5", base_url=server.base_url, max_tokens=99)
    ask(chat, mode)
    ask(chat, mode)
    *_, first, second = server.bodies()
    assert len(server.requests) == 4
    for body in (first, second):
        assert body.keys() == {"model", "messages", "max_completion_tokens"}
        assert body["max_completion_tokens"] == 99


def test_a_refusal_to_answer_is_the_text(server: OpenAIServer) -> None:
    server.replies.append({"content": None, "refusal": "I cannot help with that."})
    chat = OpenAIChat("m", base_url=server.base_url)
    assert chat.complete(HELLO, task="facts").text == "I cannot help with that."


@pytest.mark.parametrize("status", [429, 500, 503])
def test_passing_failures_are_retried(server: OpenAIServer, mode: str, status: int) -> None:
    server.failures.extend([status, status])
    assert ask(OpenAIChat("m", base_url=server.base_url, max_retries=2), mode).text == "hello"
    assert len(server.requests) == 3


def test_failures_beyond_the_retries_are_model_errors(server: OpenAIServer, mode: str) -> None:
    server.failures.extend([500, 500])
    with pytest.raises(ModelError) as caught:
        ask(OpenAIChat("some-model", base_url=server.base_url, max_retries=1), mode)
    assert len(server.requests) == 2
    for part in ("some-model", server.base_url, "500", "facts", "scripted failure"):
        assert part in str(caught.value)
    assert type(caught.value.__cause__).__name__ == "InternalServerError"


def test_a_wrong_key_is_neither_retried_nor_asked_more_simply(server: OpenAIServer) -> None:
    server.failures.append(401)
    with pytest.raises(ModelError, match="401"):
        OpenAIChat("m", api_key=SECRET, base_url=server.base_url).complete(HELLO, task="facts", schema=Facts)
    assert len(server.requests) == 1


def test_a_slow_server_times_out(server: OpenAIServer, mode: str) -> None:
    server.delay = 5
    with pytest.raises(ModelError, match=r"(?i)timed out after 0.1 seconds; raise timeout, or check that the server"):
        ask(OpenAIChat("m", base_url=server.base_url, timeout=0.1, max_retries=0), mode)


def test_a_server_that_is_not_there(server: OpenAIServer, mode: str) -> None:
    with OpenAIServer() as gone:
        url = gone.base_url
    with pytest.raises(ModelError, match="Connection") as caught:
        ask(OpenAIChat("m", base_url=url, max_retries=0), mode)
    assert url in str(caught.value)


@pytest.mark.parametrize(
    "answer", [b"{", b"", b"[]", b"null", b'"text"', b'{"error": {"message": "boom"}}', b'{"choices": []}']
)
def test_an_answer_that_is_no_completion(server: OpenAIServer, mode: str, answer: bytes) -> None:
    server.failures.append(answer)
    with pytest.raises(ModelError, match="'m' at http"):
        ask(OpenAIChat("m", base_url=server.base_url), mode)


def test_errors_that_are_plain_text_are_told(server: OpenAIServer) -> None:
    server.failures.append(400)
    server.error = "'response_format.type' must be 'json_schema'"
    with pytest.raises(ModelError, match=r"response_format\.type"):
        OpenAIChat("m", base_url=server.base_url).complete(HELLO, task="facts")


def test_a_base_url_without_v1_is_hinted_at(server: OpenAIServer) -> None:
    with pytest.raises(ModelError, match="ends in /v1"):
        OpenAIChat("m", base_url=server.base_url.removesuffix("/v1")).complete(HELLO, task="facts")


def test_the_key_is_sent_and_never_told(server: OpenAIServer, mode: str, caplog: pytest.LogCaptureFixture) -> None:
    server.failures.extend([400, 401])
    server.error = {"message": f"Incorrect API key provided: {SECRET}"}
    chat = OpenAIChat("m", api_key=SECRET, base_url=server.base_url)
    with pytest.raises(ModelError) as caught:
        ask(chat, mode, schema=Facts)
    assert server.requests[0].headers["authorization"] == f"Bearer {SECRET}"
    told = repr(chat) + caplog.text + "".join(traceback.format_exception(caught.value))
    assert SECRET not in told
    assert "***" in told
    url = server.base_url.replace("127.0.0.1", f"user:{SECRET}@127.0.0.1")
    assert SECRET not in repr(OpenAIChat("m", base_url=url))


def test_a_server_of_ones_own_needs_no_key(server: OpenAIServer, monkeypatch: pytest.MonkeyPatch) -> None:
    OpenAIChat("m", openai_base_url=server.base_url).complete(HELLO, task="facts")
    assert server.requests[-1].headers["authorization"] == "Bearer no-key"
    monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    OpenAIChat("m").complete(HELLO, task="facts")
    assert server.requests[-1].headers["authorization"] == f"Bearer {SECRET}"


@pytest.mark.parametrize(
    "kwargs",
    [
        {},
        {"base_url": "localhost:11434/v1"},
        {"base_url": "http://a/v1", "openai_base_url": "http://b/v1"},
        {"api_key": "sk-\n-x"},
    ],
)
def test_settings_that_cannot_work(server: OpenAIServer, kwargs: dict[str, Any]) -> None:
    for model in (OpenAIChat, OpenAIEmbedder):
        with pytest.raises(ConfigError):
            model("m", **kwargs)


def test_it_works_in_one_event_loop_after_another_and_under_both_drivers(server: OpenAIServer) -> None:
    chat = OpenAIChat("m", base_url=server.base_url)
    embedder = OpenAIEmbedder("e", base_url=server.base_url)

    async def both() -> tuple[Any, ...]:
        return tuple(await asyncio.gather(chat.acomplete(HELLO, task="facts"), embedder.aembed(["a"])))

    for _ in range(3):
        reply, vectors = asyncio.run(both())
        assert reply.text == "hello"
        assert vectors.shape == (1, 8)
    assert run(do(chat.complete, HELLO, task="facts")).text == "hello"
    assert asyncio.run(arun(do(chat.complete, HELLO, task="facts"))).text == "hello"


async def test_async_calls_run_side_by_side_and_can_be_cancelled(server: OpenAIServer) -> None:
    chat = OpenAIChat("m", base_url=server.base_url)
    server.delay = 0.2
    await asyncio.gather(*(chat.acomplete(HELLO, task="facts") for _ in range(10)))
    assert server.max_concurrent > 1
    server.delay = 30
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await chat.acomplete(HELLO, task="facts")
    await chat.aclose()


def test_the_library_is_imported_only_when_a_model_is_built() -> None:
    code = (
        "import sys, mem0_core.providers.openai as m; assert 'openai' not in sys.modules; sys.modules['openai'] = None\n"  # noqa: E501
        "try: m.OpenAIChat('m', base_url='http://127.0.0.1:1/v1')\n"
        "except m.MissingExtraError as error: print(error)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert str(MissingExtraError("openai", "openai")) in result.stdout


# --- embeddings --------------------------------------------------------------------------------------------------


def test_embeddings_are_normalised_in_input_order_and_batched(server: OpenAIServer, mode: str) -> None:
    server.shuffle = True
    embedder: Embedder = OpenAIEmbedder("e", base_url=server.base_url)
    texts = ["x" * (n % 50) for n in range(600)]
    vectors = embed(embedder, mode, texts)
    expected = np.array([[max(n % 50, 1) + 1, *[3] * 7] for n in range(600)], np.float32)  # "" is sent as a space
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, expected, rtol=1e-6)
    bodies = server.bodies("/v1/embeddings")
    assert [len(body["input"]) for body in bodies] == [256, 256, 88]
    assert bodies[0].keys() == {"model", "input", "encoding_format"}
    assert "" not in bodies[0]["input"]
    assert (embedder.dims, embedder.name) == (8, "e")


def test_no_texts_cost_no_request_once_the_length_is_known(server: OpenAIServer, mode: str) -> None:
    embedder = OpenAIEmbedder("text-embedding-3-small", base_url=server.base_url)
    assert embed(embedder, mode, []).shape == (0, 1536)
    assert server.requests == []
    unknown = OpenAIEmbedder("nomic-embed-text", base_url=server.base_url)
    assert embed(unknown, mode, []).shape == (0, 8)
    assert unknown.dims == 8
    assert len(server.requests) == 1


def test_long_texts_are_cut_and_large_batches_split_by_size(server: OpenAIServer) -> None:
    embedder = OpenAIEmbedder("e", base_url=server.base_url)
    embedder.embed(["é" * 5_000_000, *["y" * 30_000] * 40, "\ud800 lone"])
    bodies = server.bodies("/v1/embeddings")
    assert len(bodies[0]["input"][0]) == 12_000
    assert [len(body["input"]) for body in bodies] == [25, 17]
    assert bodies[-1]["input"][-1] == "? lone"


def test_dimensions_are_asked_for_where_that_is_meant(server: OpenAIServer) -> None:
    server.refused_parameters = {"dimensions"}
    OpenAIEmbedder("nomic-embed-text", base_url=server.base_url, embedding_dims=8).embed(["a"])
    server.dims = 1536
    OpenAIEmbedder("text-embedding-3-small", base_url=server.base_url, embedding_dims=1536).embed(["a"])
    server.refused_parameters = set()
    short = OpenAIEmbedder("text-embedding-3-small", base_url=server.base_url, embedding_dims=256)
    assert short.embed(["a"]).shape == (1, 256)
    asked = OpenAIEmbedder("other", base_url=server.base_url, embedding_dims=16, send_dimensions=True)
    assert asked.embed(["a"]).shape == (1, 16)
    assert [body.get("dimensions") for body in server.bodies("/v1/embeddings")] == [None, None, 256, 16]
    with pytest.raises(ConfigError):
        OpenAIEmbedder("other", base_url=server.base_url, send_dimensions=True)


def test_vectors_of_another_length_than_declared(server: OpenAIServer, mode: str) -> None:
    with pytest.raises(ConfigError, match="8 dimensions, not the 768"):
        embed(OpenAIEmbedder("e", base_url=server.base_url, embedding_dims=768), mode, ["a"])
    with pytest.raises(ModelError, match="8 dimensions, not the 1536"):
        embed(OpenAIEmbedder("text-embedding-3-small", base_url=server.base_url), mode, ["a"])


@pytest.mark.parametrize(
    "vector", [[0.0] * 8, [float("nan")] * 8, [], ["a"], None], ids=["zero", "nan", "empty", "words", "null"]
)
def test_vectors_that_are_none(server: OpenAIServer, mode: str, vector: Any) -> None:
    server.embedding = lambda text: vector
    with pytest.raises((ModelError, ConfigError), match="'e' at http"):
        embed(OpenAIEmbedder("e", base_url=server.base_url, embedding_dims=8), mode, ["a", "b"])


@pytest.mark.parametrize("answer", [b"{", b'{"data": []}', b'{"error": "x"}', b'{"data": [{"embedding": [1.0]}]}'])
def test_an_answer_that_is_no_embeddings(server: OpenAIServer, mode: str, answer: bytes) -> None:
    server.failures.append(answer)
    with pytest.raises(ModelError, match="'e' at http"):
        embed(OpenAIEmbedder("e", base_url=server.base_url), mode, ["a", "b"])


def test_embedding_failures_are_retried_and_then_told(server: OpenAIServer, mode: str) -> None:
    embedder = OpenAIEmbedder("e", base_url=server.base_url, max_retries=1)
    server.failures.append(429)
    assert embed(embedder, mode, ["a"]).shape == (1, 8)
    server.failures.extend([500, 500])
    with pytest.raises(ModelError, match="500"):
        embed(embedder, mode, ["a"])
