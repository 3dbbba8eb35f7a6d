"""LangChain's models in a memory: chat models, embeddings, compressors and cross encoders, sync and async."""

from __future__ import annotations

import asyncio
import json
import sys
import tomllib
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from langchain_classic.retrievers.document_compressors.cross_encoder import BaseCrossEncoder
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from langchain_core.language_models import FakeListChatModel, FakeListLLM
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import RunnableLambda
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from pydantic import BaseModel, SecretStr

import mem0_langchain
from mem0_core import ConfigError, MissingExtraError, ModelError, rerank
from mem0_core.catalog import FRAMEWORK_PROVIDERS, ComponentKind
from mem0_core.components import build_component, module_of
from mem0_core.domain.records import Usage
from mem0_core.interfaces import Reply, Tool
from mem0_core.testing import HashEmbedder
from mem0_langchain import LangChainChat, LangChainEmbedder, LangChainReranker
from mem0_langchain.reranker_providers import RERANKERS
from mem0_langchain.vector_providers import VECTOR_STORES
from tests.frameworks.langchain.fakes import Chatbot
from tests.services.openai_server import OpenAIServer
from tests.support import open_memory, result_texts

ASKED = [{"role": "user", "content": "Input: I drink tea."}]
SAVE = Tool("save", "Save a fact.", {"type": "object", "properties": {"fact": {"type": "string"}}})


class Facts(BaseModel):
    """The facts."""

    facts: list[str]


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer() as running:
        yield running


def openai_chat(server: OpenAIServer, **options: Any) -> ChatOpenAI:
    return ChatOpenAI(model="m", base_url=server.base_url, api_key=SecretStr("k"), max_retries=0, **options)


Ask = Callable[..., Reply]


@pytest.fixture(params=["sync", "async"])
def ask(request: pytest.FixtureRequest) -> Iterator[Ask]:
    with asyncio.Runner() as runner:  # one loop for all calls of a test: clients keep their connections with it

        def call(chat: LangChainChat, **options: Any) -> Reply:
            options = {"task": "facts", **options}
            if request.param == "sync":
                return chat.complete(ASKED, **options)
            return runner.run(chat.acomplete(ASKED, **options))

        yield call


# --- chat ---------------------------------------------------------------------------------------------------------


def test_a_schema_is_sent_as_structured_output(server: OpenAIServer, ask: Ask) -> None:
    server.replies.append('{"facts": ["Drinks tea"]}')
    reply = ask(LangChainChat(openai_chat(server)), schema=Facts)
    assert (json.loads(reply.text), reply.usage) == ({"facts": ["Drinks tea"]}, Usage(11, 7))
    assert server.requests[-1].body["response_format"]["json_schema"]["schema"]["properties"]["facts"]


def test_an_item_that_breaks_the_schema_does_not_cost_the_others(server: OpenAIServer, ask: Ask) -> None:
    server.replies.append('{"facts": ["Drinks tea", 7]}')
    assert json.loads(ask(LangChainChat(openai_chat(server)), schema=Facts).text) == {"facts": ["Drinks tea", 7]}


def test_tools_are_sent_as_tools_and_broken_arguments_come_as_they_are(server: OpenAIServer, ask: Ask) -> None:
    call = {"id": "1", "type": "function", "function": {"name": "save", "arguments": '{"fact": "Drinks tea"}'}}
    broken = {**call, "id": "2", "function": {"name": "save", "arguments": '{"fact": '}}
    server.replies.append({"role": "assistant", "content": None, "tool_calls": [call, broken]})
    reply = ask(LangChainChat(openai_chat(server)), tools=[SAVE])
    assert [(made.name, made.arguments) for made in reply.tool_calls] == [
        ("save", {"fact": "Drinks tea"}),
        ("save", '{"fact": '),
    ]
    assert server.requests[-1].body["tools"][0]["function"]["parameters"] == SAVE.parameters


def test_a_server_that_refuses_a_form_is_asked_in_words_and_that_is_remembered(server: OpenAIServer, ask: Ask) -> None:
    server.refused_parameters = {"json_schema", "tools"}
    chat = LangChainChat(openai_chat(server))
    server.replies.extend(['{"facts": []}', '{"tool_calls": [{"name": "save", "arguments": {"fact": "Drinks tea"}}]}'])
    assert json.loads(ask(chat, schema=Facts).text) == {"facts": []}
    (call,) = ask(chat, tools=[SAVE]).tool_calls
    assert call.arguments == {"fact": "Drinks tea"}
    assert "save" in json.dumps(server.requests[-1].body["messages"])
    before = len(server.requests)
    ask(chat, schema=Facts)
    ask(chat, tools=[SAVE])
    assert len(server.requests) == before + 2, "a refusal is met once"


@pytest.mark.parametrize("options", [{}, {"schema": Facts}, {"tools": [SAVE]}], ids=["plain", "schema", "tools"])
def test_a_failing_model_is_a_model_error_that_names_the_task(
    server: OpenAIServer, ask: Ask, options: dict[str, Any]
) -> None:
    chat = LangChainChat(openai_chat(server))
    server.failures.append(500)
    with pytest.raises(ModelError, match="'facts'") as caught:
        ask(chat, **options)
    assert caught.value.__cause__ is not None
    server.replies.append("fine again")
    assert ask(chat).text == "fine again", "a failure is no refusal: nothing is remembered of it"
    assert not chat._forms._refused


def test_a_model_without_tools_is_told_of_them_in_words(ask: Ask) -> None:
    model = FakeListChatModel(responses=['{"facts": []}', '{"tool_calls": [{"name": "save", "arguments": {}}]}'])
    chat = LangChainChat(model)
    assert chat.supports == frozenset()
    assert ask(chat, schema=Facts).text == '{"facts": []}'
    assert [call.name for call in ask(chat, tools=[SAVE]).tool_calls] == ["save"]


def test_a_schema_kept_by_a_tool_call_is_read_from_the_call(ask: Ask) -> None:
    def answer(messages: list[BaseMessage]) -> AIMessage:
        return AIMessage("", tool_calls=[{"name": "Facts", "args": {"facts": ["Drinks tea"]}, "id": "1"}])

    chat = LangChainChat(Chatbot(answer=answer))
    assert chat.supports == {"schema", "tools"}
    assert json.loads(ask(chat, schema=Facts).text) == {"facts": ["Drinks tea"]}


@pytest.mark.parametrize(
    "model",
    [
        FakeListLLM(responses=["hello"]),
        FakeListChatModel(responses=["hello"]).with_retry(),
        FakeListChatModel(responses=["hello"]).with_fallbacks([FakeListChatModel(responses=["fallback"])]),
        FakeListChatModel(responses=["hello"]).bind(stop=["x"]),
        RunnableLambda(lambda messages: AIMessage("hello")),
    ],
    ids=["completions", "with_retry", "with_fallbacks", "bind", "lambda"],
)
def test_runnables_made_of_models_serve_too(model: Any, ask: Ask) -> None:
    chat = LangChainChat(model)
    assert ask(chat).text == ask(chat, schema=Facts).text == ask(chat, tools=[SAVE]).text == "hello"


def test_images_reach_the_model(server: OpenAIServer) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    server.replies.append("A cat.")
    LangChainChat(openai_chat(server)).complete([{"role": "user", "content": [image]}], task="describe_image")
    assert server.requests[-1].body["messages"][0]["content"][0]["image_url"]["url"].startswith("data:image/png")


def test_calls_are_runs_that_name_the_task_and_stay_out_of_message_streams(ask: Ask) -> None:
    seen: list[tuple[str, list[str], str]] = []

    class Watch(BaseCallbackHandler):
        def on_chat_model_start(self, serialized: Any, messages: Any, **kwargs: Any) -> None:
            seen.append((kwargs["name"], kwargs["tags"], kwargs["metadata"]["mem0_task"]))

    ask(LangChainChat(FakeListChatModel(responses=["x"], callbacks=[Watch()])))
    ((name, tags, task),) = seen
    assert (name, task) == ("mem0.facts", "facts")
    assert "nostream" in tags


def test_no_key_is_shown() -> None:
    assert "sk-secret" not in repr(LangChainChat(ChatOpenAI(model="gpt-4o-mini", api_key="sk-secret")))  # type: ignore[arg-type]
    assert "gpt-4o-mini" in repr(LangChainChat(ChatOpenAI(model="gpt-4o-mini", api_key="sk-secret")))  # type: ignore[arg-type]


# --- embeddings ---------------------------------------------------------------------------------------------------


class Words(Embeddings):
    """Documents and queries of one space, told apart; and trouble, where it is asked for."""

    def __init__(self, model: str | None = None) -> None:
        self.inner = HashEmbedder(16)
        self.asked: list[tuple[str, list[str]]] = []
        self.rows: Callable[[list[list[float]]], Any] = lambda rows: rows
        if model:
            self.model = model

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.asked.append(("document", texts))
        rows: list[list[float]] = self.rows((self.inner.embed(texts) * 3).tolist())
        return rows

    def embed_query(self, text: str) -> list[float]:
        self.asked.append(("query", [text]))
        return list((self.inner.embed([text])[0] * 5).tolist())


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_embeddings_are_normalised_and_queries_are_embedded_as_queries(mode: str) -> None:
    words = Words()
    embedder = LangChainEmbedder(words)

    def embed(wanted: Sequence[str], **options: Any) -> Any:
        return embedder.embed(wanted, **options) if mode == "sync" else asyncio.run(embedder.aembed(wanted, **options))

    vectors = embed(["green tea", "black tea"])
    assert vectors.shape == (2, 16) == (2, embedder.dims)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1)
    assert np.allclose(embed(["green tea"], kind="query"), vectors[:1], atol=1e-6)
    assert embed([]).shape == (0, 16)
    assert [kind for kind, _ in words.asked] == ["document", "query"]


def test_dims_are_told_by_the_object_or_by_a_first_call(server: OpenAIServer) -> None:
    told = OpenAIEmbeddings(
        model="text-embedding-3-small", dimensions=256, api_key=SecretStr("k"), base_url=server.base_url
    )
    assert LangChainEmbedder(told).dims == 256
    assert server.requests == []
    assert LangChainEmbedder(Words()).dims == 16
    assert LangChainEmbedder(Words()).embed([]).shape == (0, 16)


def test_the_space_is_named_by_the_model() -> None:
    assert LangChainEmbedder(Words("m-1")).name == "m-1"
    assert LangChainEmbedder(Words()).name == "Words"
    assert LangChainEmbedder(Words("m-1"), name="mine").name == "mine"
    assert LangChainEmbedder(OpenAIEmbeddings(model="text-embedding-3-small", api_key=SecretStr("k"))).name == (
        build_component("embedder", {"provider": "openai", "config": {"api_key": "k"}}).name
    ), "one space, whichever client asks for it"


def test_a_cache_of_langchain_is_of_the_space_of_what_it_caches() -> None:
    from langchain_classic.embeddings import CacheBackedEmbeddings
    from langchain_core.stores import InMemoryByteStore

    cached = CacheBackedEmbeddings.from_bytes_store(Words("m-1"), InMemoryByteStore(), key_encoder="sha256")
    assert LangChainEmbedder(cached).name == "m-1"


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        (lambda rows: rows[:-1], "shape"),
        (lambda rows: [[0.0] * 16 for _ in rows], "zero"),
        (lambda rows: [[float("nan")] * 16 for _ in rows], "not finite"),
        (lambda rows: [rows[0], rows[1][:3]], "one length"),
        (lambda rows: [row[:8] for row in rows], "8 dimensions"),
        (lambda rows: 1 / 0, "ZeroDivisionError"),
    ],
    ids=["too few", "zero", "nan", "ragged", "short", "raises"],
)
def test_embeddings_that_cannot_be_are_a_model_error(rows: Any, problem: str) -> None:
    words = Words()
    embedder = LangChainEmbedder(words)
    assert embedder.dims == 16
    words.rows = rows
    with pytest.raises(ModelError, match=problem):
        embedder.embed(["a", "b"])


# --- rerankers ----------------------------------------------------------------------------------------------------


class Overlap(BaseCrossEncoder):
    """Words shared, as a probability or as a logit."""

    def __init__(self, scale: float = 0.1, shift: float = 0.0) -> None:
        self.scale, self.shift = scale, shift

    def score(self, text_pairs: list[tuple[str, str]]) -> list[float]:
        shared = [len(set(query.split()) & set(text.split())) for query, text in text_pairs]
        return [self.scale * count + self.shift for count in shared]


class Compressor(BaseDocumentCompressor):
    top: int = 2
    scored: bool = True
    foreign: bool = False

    def compress_documents(self, documents: Sequence[Document], query: str, callbacks: Any = None) -> list[Document]:
        if self.foreign:
            return [Document("mine")]
        scores = Overlap().score([(query, document.page_content) for document in documents])
        ranked = sorted(zip(scores, documents, strict=True), key=lambda pair: -pair[0])[: self.top]
        return [
            Document(d.page_content, metadata={**d.metadata, **({"relevance_score": score} if self.scored else {})})
            for score, d in ranked
        ]


TEAS = ["coffee", "green tea of Ana", "tea"]


def score(model: Any, mode: str = "sync", **options: Any) -> list[float]:
    ranker = LangChainReranker(model, **options)
    if mode == "sync":
        return ranker.score("green tea", TEAS)
    return asyncio.run(ranker.ascore("green tea", TEAS))


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_rerankers_score_each_text_in_its_place(mode: str) -> None:
    assert score(Overlap(), mode) == pytest.approx([0, 0.2, 0.1])
    assert score(Compressor(), mode) == pytest.approx([0, 0.2, 0.1])
    assert score(Compressor(scored=False), mode) == pytest.approx([0, 1, 2 / 3])
    assert LangChainReranker(Overlap()).score("tea", []) == []


def test_logits_become_numbers_between_0_and_1_in_the_same_order() -> None:
    coffee, green, tea = score(Overlap(scale=4, shift=-4))
    assert 0 < coffee < tea < green < 1
    assert tea == pytest.approx(0.5)
    ranker = LangChainReranker(Overlap(scale=4, shift=-4))
    ranker.score("green tea", TEAS)
    assert ranker.score("coffee", ["coffee"]) == [0.5], "what once gave logits always does"
    assert LangChainReranker(Overlap(), logits=True).score("x", ["y"]) == [0.5]


def test_a_reranker_that_fails_or_answers_with_something_else_is_a_model_error() -> None:
    with pytest.raises(ModelError, match="not given"):
        score(Compressor(foreign=True))

    class Short(BaseCrossEncoder):
        def score(self, text_pairs: list[tuple[str, str]]) -> list[float]:
            return [1.0]

    with pytest.raises(ModelError, match="1 scores for 3 texts"):
        score(Short())

    class Broken(BaseCrossEncoder):
        def score(self, text_pairs: list[tuple[str, str]]) -> list[float]:
            raise RuntimeError("no GPU")

    with pytest.raises(ModelError, match="no GPU"):
        score(Broken())


def test_the_rerank_stage_takes_langchains_models() -> None:
    (best, _), *_ = rerank("green tea", TEAS, reranker=Overlap())  # type: ignore[arg-type]
    assert TEAS[best] == "green tea of Ana"


# --- in a memory --------------------------------------------------------------------------------------------------


def test_langchains_models_just_work_in_a_memory(tmp_path: Path, server: OpenAIServer) -> None:
    server.embedding = lambda text: HashEmbedder(8).embed([text])[0].tolist()
    server.replies.append('{"facts": ["Drinks green tea"]}')
    embeddings = OpenAIEmbeddings(
        model="e",
        base_url=server.base_url,
        api_key=SecretStr("k"),
        check_embedding_ctx_length=False,
    )
    with open_memory(tmp_path, llm=openai_chat(server), embedder=embeddings, reranker=Overlap()) as memory:
        result = memory.add("I drink green tea.", user_id="ana")
        assert [entry["memory"] for entry in result["results"]] == ["Drinks green tea"]
        assert (result["usage"]["llm_calls"], result["usage"]["input_tokens"]) == (1, 11)
        assert result_texts(memory.search("green tea", user_id="ana", rerank=True)) == ["Drinks green tea"]
        assert result_texts(asyncio.run(memory.asearch("green tea", user_id="ana"))) == ["Drinks green tea"]
    assert {request.path for request in server.requests} == {"/v1/chat/completions", "/v1/embeddings"}


def test_a_store_refuses_embeddings_of_another_space(tmp_path: Path) -> None:
    with open_memory(tmp_path, embedder=Words("m-1")) as memory:
        memory.add("I drink tea.", user_id="ana")
    with open_memory(tmp_path, embedder=Words("m-2")) as memory, pytest.raises(ConfigError, match="m-1"):
        memory.add("I drink coffee.", user_id="ana")


@pytest.mark.parametrize(
    "parts",
    [
        {"llm": Words()},
        {"embedder": FakeListChatModel(responses=[])},
        {"reranker": DeterministicFakeEmbedding(size=8)},
        {"index": FakeListChatModel(responses=[])},
    ],
    ids=["llm", "embedder", "reranker", "index"],
)
def test_one_kind_does_not_pass_for_another(tmp_path: Path, parts: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="is not a LangChain object of this kind"):
        open_memory(tmp_path, **parts)


def test_models_by_the_names_of_their_providers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    assert isinstance(build_component("llm", "langchain:openai:gpt-4o-mini").model, ChatOpenAI)
    assert build_component("embedder", "langchain:openai:text-embedding-3-small").name == "text-embedding-3-small"
    mem0s = {"provider": "langchain", "config": {"model": FakeListChatModel(responses=["x"])}}
    assert isinstance(build_component("llm", mem0s), LangChainChat)
    assert isinstance(
        build_component("reranker", {"provider": "langchain", "config": {"model": Overlap()}}), LangChainReranker
    )
    azure = build_component(
        "llm",
        {
            "provider": "azure_openai",
            "config": {"model": "gpt-4o", "azure_endpoint": "https://x.example", "api_version": "1", "api_key": "k"},
        },
    )
    assert type(azure.model).__name__ == "AzureChatOpenAI"
    with pytest.raises(MissingExtraError, match="pip install langchain-anthropic"):
        build_component("llm", "anthropic:claude-sonnet-4-5")
    with pytest.raises(ConfigError, match="cannot make"):
        build_component("llm", "langchain:nobody:knows")


def test_every_entry_point_leads_somewhere() -> None:
    package = Path(mem0_langchain.__file__).parents[2]
    project = tomllib.loads((package / "pyproject.toml").read_text())["project"]
    targets = [target for entries in project["entry-points"].values() for target in entries.values()]
    assert len(targets) == 7
    for target in targets:
        module, _, name = target.partition(":")
        assert callable(getattr(import_module(module), name))


@pytest.mark.parametrize("kind", sorted(FRAMEWORK_PROVIDERS))
def test_every_named_provider_has_a_builder_and_says_what_to_install(kind: ComponentKind) -> None:
    assert set(VECTOR_STORES) == set(FRAMEWORK_PROVIDERS["vector_store"])
    assert set(RERANKERS) == set(FRAMEWORK_PROVIDERS["reranker"])
    for provider, packages in FRAMEWORK_PROVIDERS[kind].items():
        missing = [package for package in packages.split() if find_spec(module_of(package)) is None]
        if not missing:
            continue
        with pytest.raises(MissingExtraError, match=rf"'{provider}' needs .*pip install .*{missing[-1]}"):
            build_component(kind, provider)


COHERE = """
from langchain_core.documents import BaseDocumentCompressor

class CohereRerank(BaseDocumentCompressor):
    model_config = {"extra": "forbid"}
    model: str
    cohere_api_key: str | None = None
    top_n: int | None = 3

    def compress_documents(self, documents, query, callbacks=None):
        for document in documents:
            document.metadata["relevance_score"] = float(query in document.page_content)
        return list(documents)[: self.top_n]
"""
ZERO_ENTROPY = """
from types import SimpleNamespace

class ZeroEntropy:
    def __init__(self, api_key=None):
        self.key = api_key
        self.models = SimpleNamespace(rerank=self.rerank)

    def rerank(self, *, model, query, documents):
        scored = [SimpleNamespace(index=n, relevance_score=float(query in text)) for n, text in enumerate(documents)]
        return SimpleNamespace(results=scored[::-1])
"""


@pytest.mark.parametrize(
    ("provider", "module", "source"),
    [("cohere", "langchain_cohere", COHERE), ("zero_entropy", "zeroentropy", ZERO_ENTROPY)],
)
def test_rerankers_by_mem0s_names_and_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, provider: str, module: str, source: str
) -> None:
    (tmp_path / f"{module}.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    keys = {"api_key": "k", "top_k": 2} if provider == "cohere" else {"api_key": "k", "model": "zerank-1"}
    built = build_component("reranker", {"provider": provider, "config": keys})
    texts = ["coffee", "black tea", "milk", "green tea", "water"]
    assert built.score("tea", texts) == [0, 1, 0, 1, 0]
    with pytest.raises(ConfigError, match=rf"reranker\.config \({provider}\): .*modle"):
        build_component("reranker", {"provider": provider, "config": {"modle": "m"}})
    sys.modules.pop(module)  # it would be found after this test
