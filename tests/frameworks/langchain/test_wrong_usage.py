"""Wrong usages of the LangChain classes: each message names the argument, the value, what is accepted, a next step."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.base import InvalidNamespaceError
from pydantic import ValidationError

from mem0_core import ArgumentError, Mem0Error, Memory
from mem0_langchain import (
    LangChainChat,
    LangChainEmbedder,
    Mem0ChatMessageHistory,
    Mem0Compressor,
    Mem0Memory,
    Mem0Retriever,
    Mem0VectorStore,
    MemoryMiddleware,
    MemoryVectors,
    VectorStoreIndex,
    memory_tools,
)
from mem0_langchain.langgraph import Mem0Store, RecallNode, RememberNode
from tests.support import check_four_parts, open_memory

MISTAKES: dict[str, Callable[..., Any]] = {
    "retriever": lambda memory: Mem0Retriever(memory=memory, usr_id="u"),  # type: ignore[call-arg]
    "compressor": lambda memory: Mem0Compressor(usr_id="u"),  # type: ignore[call-arg]
    "classic memory": lambda memory: Mem0Memory(memory=memory, usr_id="u"),  # type: ignore[call-arg]
    "middleware": lambda memory: MemoryMiddleware(memory, usr_id="u"),  # type: ignore[call-arg]
    "tools": lambda memory: memory_tools(memory, usr_id="u"),  # type: ignore[call-arg]
    "history": lambda memory: Mem0ChatMessageHistory(memory, usr_id="u"),  # type: ignore[call-arg]
    "recall node": lambda memory: RecallNode(memory, usr_id="u"),  # type: ignore[call-arg]
    "store": lambda memory: Mem0Store(memory, usr_id="u"),  # type: ignore[call-arg]
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_misspelled_argument_is_explained(tmp_path: Path, mistake: str) -> None:
    with open_memory(tmp_path) as memory, pytest.raises(TypeError) as raised:
        MISTAKES[mistake](memory)
    step = "accepted" if mistake in ("compressor", "store") else "did you mean 'user_id'?"  # these have no user_id
    check_four_parts(str(raised.value), ("usr_id", "usr_id='u'", "accepted: ", step))


@pytest.mark.parametrize("wrap", [MemoryMiddleware, RecallNode, Mem0Store])
def test_an_object_that_is_no_memory_is_explained(wrap: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError) as raised:
        wrap("data")
    check_four_parts(str(raised.value), ("memory", "'data'", "mem0_core.Memory", "Memory('data')"))


Parts = tuple[str, str, str, str]


def _build(kind: Callable[..., Any], options: dict[str, Any]) -> Callable[[Memory], Any]:
    return lambda memory: kind(memory, **options)


WRONG: dict[str, tuple[Callable[[Memory], Any], Parts]] = {
    "retriever without memory": (
        lambda memory: Mem0Retriever(),  # type: ignore[call-arg]
        ("Mem0Retriever()", "'memory'", "accepted: name", "pass it by name"),
    ),
    "retriever with a memory by position": (
        lambda memory: Mem0Retriever(memory),  # type: ignore[call-arg, arg-type]
        ("Mem0Retriever()", "<Memory", "accepted: name", "memory=..."),
    ),
    "retriever of nothing": (
        lambda memory: Mem0Retriever(memory=memory, k=0),
        ("k", "not 0", "greater than or equal to 1", "leave k out"),
    ),
    "retriever with a threshold in percent": (
        lambda memory: Mem0Retriever(memory=memory, threshold=40),
        ("threshold", "not 40", "less than or equal to 1", "leave threshold out"),
    ),
    "retriever with a name of other libraries": (
        lambda memory: Mem0Retriever(memory=memory, top_k=3),  # type: ignore[call-arg]
        ("'top_k'", "top_k=3", "memory, user_id", "did you mean 'k'?"),
    ),
    "classic memory without ids": (
        lambda memory: Mem0Memory(memory=memory),
        ("user_id", "none was given", "user_id, agent_id, run_id", "user_id='alice'"),
    ),
    "middleware with a limit": (
        lambda memory: MemoryMiddleware(memory, limit=3),  # type: ignore[call-arg]
        ("'limit'", "limit=3", "memory, k", "did you mean 'k'?"),
    ),
    "middleware with a word as switch": (
        lambda memory: MemoryMiddleware(memory, background="yes"),  # type: ignore[arg-type]
        ("background", "'yes'", "True or False", "pass background=True"),
    ),
    "middleware of nothing": (
        lambda memory: MemoryMiddleware(memory, k=0, on_error="log"),
        ("k", "not 0", "a positive whole number", "k=10"),
    ),
    "middleware with a threshold in percent": (
        lambda memory: MemoryMiddleware(memory, threshold=40),
        ("threshold", "not 40", "a number in [0, 1]", "threshold=0.3"),
    ),
    "middleware with an unknown way to keep": (
        lambda memory: MemoryMiddleware(memory, keep="none"),  # type: ignore[arg-type]
        ("keep", "'none'", "accepted: all, statements", "pass one of them"),
    ),
    "middleware with an unknown way to fail": (
        lambda memory: MemoryMiddleware(memory, on_error="ignore"),  # type: ignore[arg-type]
        ("on_error", "'ignore'", "accepted: raise, log", "pass one of them"),
    ),
    "recall node of a word": (
        lambda memory: RecallNode(memory, k="2"),  # type: ignore[arg-type]
        ("k", "not '2'", "a positive whole number", "k=10"),
    ),
    "remember node with an unknown way to keep": (
        lambda memory: RememberNode(memory, keep="none"),  # type: ignore[arg-type]
        ("keep", "'none'", "accepted: all, statements", "pass one of them"),
    ),
    "history of a word": (
        lambda memory: Mem0ChatMessageHistory(memory, user_id="u", limit="5"),  # type: ignore[arg-type]
        ("limit", "not '5'", "a whole number", "limit=100"),
    ),
    "store with one field": (
        lambda memory: Mem0Store(memory, fields="text"),
        ("fields", "'text'", "a list of texts", "fields=['text']"),
    ),
    "word as namespace": (
        lambda memory: Mem0Store(memory).search("notes"),  # type: ignore[arg-type]
        ("namespace", "'notes'", "a tuple of labels", "pass ('notes',)"),
    ),
    "word as time to live": (
        lambda memory: Mem0Store(memory).put(("a",), "k", {}, ttl="x"),  # type: ignore[arg-type]
        ("ttl", "'x'", "a number of minutes", "ttl=60"),
    ),
    "compressor of nothing": (
        lambda memory: Mem0Compressor(top_n=0),
        ("top_n", "not 0", "greater than or equal to 1", "leave top_n out"),
    ),
    "tool of a number": (
        lambda memory: memory_tools(memory, user_id=1),  # type: ignore[arg-type]
        ("user_id", "not 1", "a valid string", "leave user_id out"),
    ),
    "text as item": (
        lambda memory: Mem0Store(memory).put(("a",), "k", "text"),  # type: ignore[arg-type]
        ("value of ('a',) 'k'", "'text'", "a mapping", "{'text': ...}"),
    ),
    "word as limit of items": (
        lambda memory: Mem0Store(memory).search(("a",), limit="x"),  # type: ignore[arg-type]
        ("limit", "'x'", "whole numbers", "limit=10"),
    ),
    "vector store without memory": (
        lambda memory: Mem0VectorStore(),  # type: ignore[call-arg]
        ("Mem0VectorStore()", "'memory'", "accepted: memory", "pass it first or by name"),
    ),
    "vectors of a word": (
        lambda memory: MemoryVectors("x"),  # type: ignore[arg-type]
        ("dims", "'x'", "a whole number", "for example 384"),
    ),
    **{
        f"{name} of {kind.__name__}": (_build(kind, options), parts)
        for kind in (MemoryMiddleware, RecallNode)
        for name, options, parts in (
            ("list of filters", {"filters": ["x"]}, ("filters", "['x']", "a mapping", "filters={'topic': 'work'}")),
            ("recipe", {"recipe": "hybird"}, ("recipe", "'hybird'", "mem0, paper", "did you mean 'hybrid'?")),
            ("scope", {"scope": "maya"}, ("scope", "'maya'", "mem0_core.Scope", "pass Scope(user_id=...)")),
        )
    },
    "budget of words": (
        lambda memory: MemoryMiddleware(memory, max_tokens="many"),  # type: ignore[arg-type]
        ("max_tokens", "'many'", "a positive whole number", "max_tokens=2000"),
    ),
    "compressor with a misspelled reranker": (
        lambda memory: Mem0Compressor(reranker="coheer"),
        ("reranker", "'coheer'", "providers: aws_bedrock", "did you mean 'cohere'?"),
    ),
    "compressor with a number": (
        lambda memory: Mem0Compressor(reranker=3),
        ("reranker", "3 has no method", "'score'", "pass 'provider:model'"),
    ),
    "call of a retriever": (
        lambda memory: Mem0Retriever(memory=memory, user_id="maya").invoke("tea", limit=3),
        ("Mem0Retriever.invoke()", "limit=3", "accepted: k, filters", "did you mean 'k'?"),
    ),
    "run with a misspelled id": (
        lambda memory: Mem0Retriever(memory=memory).invoke("tea", {"configurable": {"userId": "maya"}}),
        ("user_id", "'userId'", "agent_id or run_id", "did you mean 'user_id'?"),
    ),
    "text as texts": (
        lambda memory: Mem0VectorStore(memory, user_id="maya").add_texts("tea"),
        ("texts", "'tea'", "a list of texts", "texts=['tea']"),
    ),
    "number as ttl": (
        lambda memory: Mem0Store(memory, ttl=5),  # type: ignore[arg-type]
        ("ttl", "5", "a mapping", "{'default_ttl': 60}"),
    ),
    "number as query of a store": (
        lambda memory: Mem0Store(memory).search(("maya",), query=3),  # type: ignore[arg-type]
        ("query", "3", "one text", "query='music'"),
    ),
    "name as chat model": (
        lambda memory: LangChainChat("gpt-4o"),  # type: ignore[arg-type]
        ("model", "'gpt-4o'", "Runnable", "ChatOpenAI"),
    ),
    "name as embeddings": (
        lambda memory: LangChainEmbedder("text-embedding-3-small"),  # type: ignore[arg-type]
        ("embeddings", "'text-embedding-3-small'", "Embeddings", "OpenAIEmbeddings"),
    ),
    "index over a word": (
        lambda memory: VectorStoreIndex("x", source=memory.store),  # type: ignore[arg-type]
        ("store", "'x'", "a vector store of LangChain", "InMemoryVectorStore"),
    ),
}


@pytest.mark.parametrize("usage", WRONG)
def test_a_wrong_usage_is_explained(tmp_path: Path, usage: str) -> None:
    call, parts = WRONG[usage]
    with open_memory(tmp_path) as memory, pytest.raises((Mem0Error, InvalidNamespaceError)) as raised:
        call(memory)
    check_four_parts(str(raised.value), parts)


@pytest.mark.parametrize(
    "call",
    [
        lambda store: store.put("maya", "tea", {"likes": True}),
        lambda store: store.list_namespaces(prefix="maya"),
    ],
)
def test_a_text_is_no_namespace_of_its_letters(tmp_path: Path, call: Callable[[Mem0Store], Any]) -> None:
    with open_memory(tmp_path) as memory, pytest.raises(InvalidNamespaceError) as raised:
        call(Mem0Store(memory))
    check_four_parts(str(raised.value), ("namespace", "'maya'", "a tuple of labels", "pass ('maya',)"))


def test_a_subclass_may_take_arguments_of_its_own(tmp_path: Path) -> None:
    class Tagged(MemoryMiddleware):
        def __init__(self, memory: Memory, *, tag: str) -> None:
            super().__init__(memory, user_id="alice")
            self.tag = tag

    with open_memory(tmp_path) as memory:
        assert Tagged(memory, tag="x").tag == "x"


def test_a_name_of_another_module_is_led_there() -> None:
    with pytest.raises(ImportError, match=r"write `from mem0_langchain.langgraph import Mem0Store`"):
        exec("from mem0_langchain import Mem0Store", {})


def test_a_tool_that_a_program_calls_with_wrong_arguments_explains_them(tmp_path: Path) -> None:
    with open_memory(tmp_path) as memory:
        search = memory_tools(memory, user_id="u")[0]
        with pytest.raises(ArgumentError) as raised:
            search.invoke({"q": "tea"})
        check_four_parts(str(raised.value), ("'q'", "q='tea'", "accepted: query", "did you mean 'query'?"))
        with pytest.raises(ArgumentError, match=r"query must be a valid string, not 3; pass such a value$"):
            search.invoke({"query": 3})
        with pytest.raises(ArgumentError, match=r"search_memory\(\) is missing the required argument 'query'; pass it"):
            search.invoke({})
        with pytest.raises(ArgumentError, match=r"query must be a valid string, not 3; pass such a value$"):
            search.invoke({"query": 3, "lang": "en"})


def test_a_tool_that_handles_wrong_arguments_itself_does_so_when_a_program_calls_it(tmp_path: Path) -> None:
    with open_memory(tmp_path) as memory:
        search = memory_tools(memory, user_id="u")[0]
        search.handle_validation_error = "Ask with a query."
        assert search.invoke({"query": 3}) == "Ask with a query."


def test_a_model_that_calls_a_tool_with_wrong_arguments_gets_langchains_answer(tmp_path: Path) -> None:
    with open_memory(tmp_path) as memory:
        search = memory_tools(memory, user_id="u")[0]
        with pytest.raises(ValidationError):
            search.invoke({"type": "tool_call", "id": "1", "name": "search_memory", "args": {"q": "tea"}})


def test_a_node_can_be_called_like_a_function(tmp_path: Path) -> None:
    with open_memory(tmp_path) as memory:
        memory.add("I like tea", user_id="u")
        assert RecallNode(memory, user_id="u", threshold=0)({"messages": "tea"})["memories"]


def test_a_store_method_without_its_key_is_explained(tmp_path: Path) -> None:
    with open_memory(tmp_path) as memory:
        store = Mem0Store(memory)
        for call in (store.get, store.aget, store.delete):
            with pytest.raises(ArgumentError, match=r"missing the required argument 'key'; .*accepted: namespace, key"):
                call(("u",))  # type: ignore[call-arg]
