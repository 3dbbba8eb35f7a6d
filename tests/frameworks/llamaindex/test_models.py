"""LlamaIndex's models in a memory: LLMs, embeddings, and postprocessors that rerank, sync and async."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    CompletionResponse,
    CompletionResponseGen,
    ImageBlock,
    LLMMetadata,
    ToolCallBlock,
)
from llama_index.core.embeddings import MockEmbedding
from llama_index.core.llms import CustomLLM
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.llms.mock import MockFunctionCallingLLM, MockLLM
from llama_index.core.postprocessor import LLMRerank
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index.core.tools import BaseTool
from pydantic import BaseModel

from mem0_core import ConfigError, Memory, ModelError, rerank
from mem0_core.components import build_component
from mem0_core.domain.records import Usage
from mem0_core.interfaces import Reply, Tool
from mem0_core.testing import HashEmbedder
from mem0_llamaindex import LlamaIndexChat, LlamaIndexEmbedder, LlamaIndexReranker, Mem0Memory
from tests.support import open_memory, result_texts

from .conftest import texts_of

ASKED = [{"role": "system", "content": "Find {facts}."}, {"role": "user", "content": 'Input: {"tea": "oolong"}'}]
SAVE = Tool("save", "Save a fact.", {"type": "object", "properties": {"fact": {"type": "string", "minLength": 1}}})

Ask = Callable[..., Reply]


class Facts(BaseModel):
    """The facts."""

    facts: list[str]


@pytest.fixture(params=["sync", "async"])
def ask(request: pytest.FixtureRequest) -> Ask:
    def asked(chat: LlamaIndexChat, **options: Any) -> Reply:
        if request.param == "sync":
            return chat.complete(ASKED, task="facts", **options)
        return asyncio.run(chat.acomplete(ASKED, task="facts", **options))

    return asked


class Words(CustomLLM):
    """A model that only completes; it keeps what it was asked, and where."""

    answer: str = "It is oolong."
    asked: list[str] = []  # noqa: RUF012 - a pydantic field: each instance has its own
    threads: list[int] = []  # noqa: RUF012

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name="words")

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        self.asked.append(prompt)
        self.threads.append(threading.get_ident())
        if self.answer == "fail":
            raise ConnectionError("no such host")
        return CompletionResponse(text=self.answer)

    @llm_completion_callback()
    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponseGen:
        yield self.complete(prompt)


class Functions(MockFunctionCallingLLM):
    """LlamaIndex's double for models that call functions; in older releases that is not told of the functions."""

    answer: Any = None

    def _prepare_chat_with_tools(  # type: ignore[override]
        self, tools: Sequence[BaseTool], user_msg: Any = None, chat_history: Any = None, **kwargs: Any
    ) -> dict[str, Any]:
        return {"messages": list(chat_history or ()), "tools": tools}

    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        return ChatResponse(message=self.answer(messages, **kwargs))

    async def achat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        return self.chat(messages, **kwargs)


def functions(answer: Callable[..., ChatMessage]) -> Functions:
    made: Any = Functions  # whose fields are not all of its arguments
    llm: Functions = made(answer=answer)
    return llm


class Caller:
    """A model that calls functions, as it is told; it keeps what tools it was given."""

    def __init__(self, *answers: ChatMessage | Exception) -> None:
        self._answers = list(answers)
        self.tools: list[Sequence[BaseTool]] = []
        self.messages: list[Sequence[ChatMessage]] = []
        self.llm = functions(self._answer)

    def _answer(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatMessage:
        self.tools.append(kwargs.get("tools") or ())
        self.messages.append(list(messages))
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def call(name: str, arguments: dict[str, Any] | str) -> ChatMessage:
    return ChatMessage(role="assistant", blocks=[ToolCallBlock(tool_name=name, tool_kwargs=arguments)])


def refusal(status: int = 400) -> Exception:
    error: Any = RuntimeError("tools are not supported" if status == 400 else "down")
    error.status_code = status
    return error  # type: ignore[no-any-return]


# --- chat ---------------------------------------------------------------------------------------------------------


def test_plain_words_come_and_go_as_they_are(ask: Ask) -> None:
    llm = Words()
    assert ask(LlamaIndexChat(llm)) == Reply("It is oolong.")
    assert "Find {facts}." in llm.asked[0]
    assert 'Input: {"tea": "oolong"}' in llm.asked[0]


def test_tools_are_called_with_our_own_schemas(ask: Ask) -> None:
    caller = Caller(call("save", {"fact": "Likes oolong"}))
    reply = ask(LlamaIndexChat(caller.llm), tools=[SAVE])
    assert [(made.name, made.arguments) for made in reply.tool_calls] == [("save", {"fact": "Likes oolong"})]
    (given,) = caller.tools[0]
    assert given.metadata.to_openai_tool()["function"] == {
        "name": "save",
        "description": "Save a fact.",
        "parameters": dict(SAVE.parameters),
    }


def test_a_schema_is_asked_for_as_a_function_and_read_item_by_item(ask: Ask) -> None:
    caller = Caller(call("answer", {"facts": ["Likes oolong", 7]}))  # not of the form: no reason to lose the first
    assert json.loads(ask(LlamaIndexChat(caller.llm), schema=Facts).text) == {"facts": ["Likes oolong", 7]}
    (given,) = caller.tools[0]
    assert given.metadata.get_parameters_dict()["properties"].keys() == {"facts"}


def test_a_model_with_a_structured_predict_of_its_own_is_asked_by_it(ask: Ask) -> None:
    class Structured(Words):
        def structured_predict(self, output_cls: Any, prompt: Any, llm_kwargs: Any = None, **more: Any) -> Any:
            self.asked.append("\n".join(str(message.content) for message in prompt.format_messages()))
            if self.answer == "wrong":
                return output_cls(facts=[7])  # raises what pydantic raises
            if self.answer == "refused":
                raise NotImplementedError
            return output_cls(facts=["Likes oolong"])

        async def astructured_predict(self, *args: Any, **kwargs: Any) -> Any:
            return self.structured_predict(*args, **kwargs)

    llm = Structured()
    assert json.loads(ask(LlamaIndexChat(llm), schema=Facts).text) == {"facts": ["Likes oolong"]}
    assert llm.asked == ['Find {facts}.\nInput: {"tea": "oolong"}']  # braces and all
    assert "1 validation error for Facts" in ask(LlamaIndexChat(Structured(answer="wrong")), schema=Facts).text
    refusing = Structured(answer="refused")
    chat = LlamaIndexChat(refusing)
    for _ in range(2):
        assert ask(chat, schema=Facts).text == "refused"  # in words, as it can
    assert len(refusing.asked) == 3  # it was asked for the form once only


def test_a_model_without_tools_is_told_of_them_in_words(ask: Ask) -> None:
    llm = Words(answer='{"tool_calls": [{"name": "save", "arguments": {"fact": "Likes oolong"}}]}')
    reply = ask(LlamaIndexChat(llm), tools=[SAVE])
    assert [made.arguments for made in reply.tool_calls] == [{"fact": "Likes oolong"}]
    assert "Save a fact." in llm.asked[0]


def test_a_refusal_of_tools_is_met_once(ask: Ask) -> None:
    said = ChatMessage(role="assistant", content='{"tool_calls": [{"name": "save", "arguments": {"fact": "x"}}]}')
    caller = Caller(refusal(), said, said)
    chat = LlamaIndexChat(caller.llm)
    for _ in range(2):
        assert [made.name for made in ask(chat, tools=[SAVE]).tool_calls] == ["save"]
    assert [len(tools) for tools in caller.tools] == [1, 0, 0]


@pytest.mark.parametrize("options", [{}, {"tools": [SAVE]}, {"schema": Facts}])
def test_a_model_that_fails_is_named_and_its_error_chained(ask: Ask, options: dict[str, Any]) -> None:
    chat = LlamaIndexChat(Caller(refusal(503)).llm)
    with pytest.raises(ModelError, match=r"LlamaIndexChat\(Functions.*failed at 'facts'.*down") as raised:
        ask(chat, **options)
    assert isinstance(raised.value.__cause__, RuntimeError)
    with pytest.raises(ModelError, match="no such host"):
        ask(LlamaIndexChat(Words(answer="fail")), **options)


def test_images_reach_a_model_that_sees(ask: Ask) -> None:
    caller = Caller(ChatMessage(role="assistant", content="A fig."))
    part = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    linked = {"type": "image_url", "image_url": {"url": "https://example.org/fig.png"}}
    asked = [{"role": "user", "content": [{"type": "text", "text": "Look."}, part, linked]}]
    assert LlamaIndexChat(caller.llm).complete(asked, task="describe_image").text == "A fig."
    _, shown, other = caller.messages[0][0].blocks
    assert isinstance(shown, ImageBlock)
    assert (shown.image_mimetype, shown.resolve_image().read()) == ("image/png", b"\x89PNG\r\n\x1a\n")
    assert isinstance(other, ImageBlock)
    assert str(other.url) == "https://example.org/fig.png"


@pytest.mark.parametrize(
    "more",
    [
        {"additional_kwargs": {"prompt_tokens": 11, "completion_tokens": 7}},
        {"raw": {"usage": {"input_tokens": 11, "output_tokens": 7}}},
        {"raw": type("Raw", (), {"usage": type("U", (), {"prompt_tokens": 11, "completion_tokens": 7})})()},
    ],
)
def test_tokens_are_counted_where_integrations_say_them(ask: Ask, more: dict[str, Any]) -> None:
    class Counting(Words):
        def chat(self, messages: Any, **kwargs: Any) -> ChatResponse:
            return ChatResponse(message=ChatMessage(role="assistant", content="x"), **more)

    assert ask(LlamaIndexChat(Counting())).usage == Usage(11, 7)


async def test_a_model_that_is_only_sync_is_called_in_a_thread() -> None:
    llm = Words()
    await LlamaIndexChat(llm).acomplete(ASKED, task="facts")
    assert threading.get_ident() not in llm.threads


# --- embeddings ---------------------------------------------------------------------------------------------------


class Hashed(BaseEmbedding):
    """Embeds as `HashEmbedder` does, three times as long, and queries by a word of their own."""

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(f"query {query}")

    async def _aget_query_embedding(self, query: str) -> list[float]:
        raise AssertionError("it would compute on the loop")

    def _get_text_embedding(self, text: str) -> list[float]:
        rows: list[list[float]] = (3 * HashEmbedder(32).embed([text])).tolist()
        return rows[0]


def test_vectors_have_norm_one_and_queries_are_embedded_as_queries() -> None:
    embedder = LlamaIndexEmbedder(Hashed(model_name="hashed"))
    assert (embedder.name, embedder.dims) == ("hashed", 32)
    made = embedder.embed(["I like figs", "Tea"])
    assert made.dtype == np.float32
    assert np.allclose(made, HashEmbedder(32).embed(["I like figs", "Tea"]), atol=1e-6)
    assert np.allclose(embedder.embed(["Tea"], kind="query"), HashEmbedder(32).embed(["query Tea"]), atol=1e-6)
    assert embedder.embed([]).shape == (0, 32)


def test_embeddings_that_are_none_are_errors() -> None:
    with pytest.raises(ConfigError, match="5 dimensions, not the 8"):
        LlamaIndexEmbedder(MockEmbedding(embed_dim=5), dims=8).embed(["x"])
    assert LlamaIndexEmbedder(MockEmbedding(embed_dim=5)).name == "MockEmbedding"

    class Broken(Hashed):
        def _get_text_embedding(self, text: str) -> list[float]:
            if text == "zero":
                return [0.0] * 32
            raise ConnectionError("no such host")

    with pytest.raises(ModelError, match="zero or not finite"):
        LlamaIndexEmbedder(Broken()).embed(["zero"])
    with pytest.raises(ModelError, match="no such host"):
        LlamaIndexEmbedder(Broken()).embed(["x"])


# --- rerankers ----------------------------------------------------------------------------------------------------


class Judge(BaseNodePostprocessor):
    """Keeps the nodes it has a score for, best first."""

    scores: dict[str, float | None]

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        assert query_bundle is not None
        kept = [node for node in nodes if node.node.get_content() in self.scores]
        for node in kept:
            node.score = self.scores[node.node.get_content()]
        return sorted(kept, key=lambda node: -(node.score or 0))


def test_scores_are_those_of_the_nodes_in_the_order_of_the_texts() -> None:
    reranker = LlamaIndexReranker(Judge(scores={"b": 0.25, "c": 0.75}))
    assert reranker.score("q", ["a", "b", "c"]) == [0.0, 0.25, 0.75]
    assert reranker.score("q", []) == []
    logits = LlamaIndexReranker(Judge(scores={"a": -4.0, "b": 0.0}))
    assert logits.score("q", ["b", "a"]) == pytest.approx([0.5, 0.018], abs=1e-3)
    assert LlamaIndexReranker(Judge(scores={"a": None, "c": None})).score("q", ["a", "b", "c"]) == [1.0, 0.0, 2 / 3]


def test_an_llm_that_reranks_gives_points_of_ten() -> None:
    points = LLMRerank(llm=Words(answer="Doc: 2, Relevance: 9\nDoc: 1, Relevance: 4"))
    assert LlamaIndexReranker(points).score("q", ["a", "b", "c"]) == [0.4, 0.9, 0.0]


def test_a_postprocessor_serves_the_rerank_stage_as_it_is() -> None:
    assert rerank("q", ["a", "b"], reranker=Judge(scores={"b": 1.0}), scores=[0.5, 0.5], weight=1)[0] == (1, 1.0)  # type: ignore[arg-type]
    with pytest.raises(ModelError, match=r"Judge.*failed"):
        LlamaIndexReranker(Judge.model_construct(scores=None)).score("q", ["a"])


# --- in a memory --------------------------------------------------------------------------------------------------


def answer(messages: Sequence[ChatMessage], **kwargs: Any) -> ChatMessage:
    """A model that finds one fact in everything, and says so in a function call."""
    if "facts" in kwargs["tools"][0].metadata.get_parameters_dict()["properties"]:
        return call("answer", {"facts": ["Likes oolong"]})
    facts = json.loads(str(messages[-1].content))["facts"]
    return call("answer", {"memory": [{"id": "new", "text": fact, "event": "ADD"} for fact in facts]})


@pytest.mark.parametrize("way", ["instances", "config"])
async def test_a_memory_takes_them_as_they_are(tmp_path: Path, way: str) -> None:
    parts: dict[str, Any] = {
        "llm": functions(answer),
        "embedder": Hashed(model_name="hashed"),
        "reranker": Judge(scores={"Likes oolong": 0.9}),
    }
    config = {"path": str(tmp_path), **(parts if way == "config" else {})}
    core = Memory(config, **(parts if way == "instances" else {}))
    memory = Mem0Memory.from_defaults(core, user_id="maya")
    await memory.aput_messages(
        [
            ChatMessage(role="user", content="I like oolong."),
            ChatMessage(role="assistant", content="Noted."),
        ]
    )
    assert await texts_of(core, user_id="maya") == ["Likes oolong"]
    (found,) = (await core.asearch("What tea?", user_id="maya", recipe="mem0"))["results"]
    assert found["score"] == pytest.approx(0.9)  # the reranker has the last word
    await core.aclose()


def test_what_is_no_model_of_that_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="embedder: MockLLM is not a LlamaIndex object"):
        open_memory(tmp_path, embedder=MockLLM())
    with pytest.raises(ConfigError, match="llm: MockEmbedding"):
        open_memory(tmp_path, llm=MockEmbedding(embed_dim=4))


def test_they_are_made_by_name_so_that_a_configuration_can_be_restored(tmp_path: Path) -> None:
    named = {"provider": "llamaindex", "config": {"model": "llama_index.core.embeddings.MockEmbedding", "embed_dim": 6}}
    config = {"path": str(tmp_path), "embedder": named}
    memory = Mem0Memory.from_config(config, user_id="maya", keep="all", background=False)
    memory.put_messages([ChatMessage(role="user", content="Hi."), ChatMessage(role="assistant", content="Hello.")])
    memory.long_term.close()
    again = Mem0Memory.from_dict(json.loads(json.dumps(memory.to_dict())))
    assert result_texts(again.long_term.get_all(user_id="maya")) == ["Hi.", "Hello."]
    again.long_term.close()
    assert isinstance(build_component("llm", {"provider": "llamaindex", "config": {"model": Words()}}), LlamaIndexChat)
    with pytest.raises(ConfigError, match=r"embedder: LlamaIndex cannot make 'llama_index.core.embeddings.NoSuch'"):
        build_component(
            "embedder", {"provider": "llamaindex", "config": {"model": "llama_index.core.embeddings.NoSuch"}}
        )
    with pytest.raises(ConfigError, match="reranker: MockLLM is not"):
        build_component(
            "reranker", {"provider": "llamaindex", "config": {"model": "llama_index.core.llms.mock.MockLLM"}}
        )
