"""Wrong usages of the LlamaIndex classes: each message names the argument, the value, what is accepted, a next step."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mem0_core import Memory
from mem0_core.errors import Mem0Error
from mem0_llamaindex import (
    LlamaIndexChat,
    LlamaIndexEmbedder,
    Mem0ChatStore,
    Mem0Memory,
    Mem0MemoryBlock,
    Mem0Rerank,
    Mem0Retriever,
    Mem0VectorStore,
    memory_tools,
)
from tests.support import check_four_parts, open_memory

CONFIG = {"embedder": "hash"}
Parts = tuple[str, str, str, str]

MISTAKES: dict[str, tuple[Callable[[Memory, Path], Any], Parts]] = {
    "retriever": (
        lambda memory, folder: Mem0Retriever(memory, usr_id="u"),  # type: ignore[call-arg]
        ("usr_id", "usr_id='u'", "accepted: memory", "did you mean 'user_id'?"),
    ),
    "query": (
        lambda memory, folder: Mem0Retriever(memory, user_id="u").retrieve(3),  # type: ignore[arg-type]
        ("query", "not 3", "a text or a QueryBundle", "pass such a value"),
    ),
    "async query": (
        lambda memory, folder: asyncio.run(Mem0Retriever(memory, user_id="u").aretrieve(3)),  # type: ignore[arg-type]
        ("query", "not 3", "a text or a QueryBundle", "pass such a value"),
    ),
    "argument of a tool": (
        lambda memory, folder: memory_tools(memory, user_id="u")[0].call(query=3),
        ("search_memory(): query", "not 3", "a valid string", "pass such a value"),
    ),
    "unknown argument of a tool": (
        lambda memory, folder: memory_tools(memory, user_id="u")[0].call(q="tea"),
        ("'q'", "q='tea'", "accepted: query", "did you mean 'query'?"),
    ),
    "tools": (
        lambda memory, folder: memory_tools(memory, usr_id="u"),  # type: ignore[call-arg]
        ("usr_id", "usr_id='u'", "accepted: memory", "did you mean 'user_id'?"),
    ),
    "memory": (
        lambda memory, folder: Mem0Memory(memory, user_id="u", token_limt=3),
        ("token_limt", "token_limt=3", "insert_method, token_limit", "did you mean 'token_limit'?"),
    ),
    "no memory": (
        lambda memory, folder: Mem0Memory("data", user_id="u"),  # type: ignore[arg-type]
        ("memory", "'data'", "mem0_core.Memory", "Memory('data')"),
    ),
    "hosted service": (
        lambda memory, folder: Mem0Memory.from_client(context={"user_id": "u"}, api_key="k"),
        ("from_client", "api_key=...", "Mem0Memory.from_defaults", "call Mem0Memory.from_config"),
    ),
    "key of a context": (
        lambda memory, folder: Mem0Memory.from_config({"path": str(folder), **CONFIG}, context={"user": "u"}),
        ("context", "'user'", "accepted: user_id", "did you mean 'user_id'?"),
    ),
    "context": (
        lambda memory, folder: Mem0Memory.from_config(
            {"path": str(folder), **CONFIG},
            context="u",  # type: ignore[arg-type]
        ),
        ("context", "'u'", "a mapping of ids", "{'user_id': 'alice'}"),
    ),
    "context of another constructor": (
        lambda memory, folder: Mem0Memory(memory, context={"user_id": "u"}),
        ("context", "{'user_id': 'u'}", "pass the ids by name", "user_id='alice'"),
    ),
    "budget of nothing": (
        lambda memory, folder: Mem0Memory(memory, user_id="u", token_limit=0),
        ("token_limit", "not 0", "greater than or equal to 1", "leave token_limit out"),
    ),
    "threshold in percent": (
        lambda memory, folder: Mem0Memory(memory, user_id="u", threshold=40),
        ("threshold", "not 40", "less than or equal to 1", "leave threshold out"),
    ),
    "one tool without a list": (
        lambda memory, folder: memory_tools(memory, user_id="u", only="search_memory"),
        ("only", "'search_memory'", "a list of texts", "pass only=['search_memory']"),
    ),
    "number as question": (
        lambda memory, folder: Mem0Memory(memory, user_id="u").get(5),  # type: ignore[arg-type]
        ("input", "not 5", "a QueryBundle or messages", "for example, 'tea'"),
    ),
    "text as message": (
        lambda memory, folder: Mem0Memory(memory, user_id="u").put("hi"),  # type: ignore[arg-type]
        ("message", "'hi'", "ChatMessage", "pass such a value"),
    ),
    "retriever with a name of LlamaIndex": (
        lambda memory, folder: Mem0Retriever(memory, user_id="u", similarity_top_k=3),  # type: ignore[call-arg]
        ("similarity_top_k", "similarity_top_k=3", "run_id, k", "did you mean 'k'?"),
    ),
    "block without memory": (
        lambda memory, folder: Mem0MemoryBlock(user_id="u"),
        ("Mem0MemoryBlock()", "missing", "memory or config", "pass memory=Memory('data')"),
    ),
    "block": (
        lambda memory, folder: Mem0MemoryBlock(memory=memory, usr_id="u"),
        ("usr_id", "usr_id='u'", "accepted: name", "did you mean 'user_id'?"),
    ),
    "text as number": (
        lambda memory, folder: Mem0Retriever(memory, user_id="u", k="4"),  # type: ignore[arg-type]
        ("k", "'4'", "a positive whole number", "k=10"),
    ),
    "recipe": (
        lambda memory, folder: Mem0VectorStore(memory, user_id="u", recipe="hybird"),
        ("recipe", "'hybird'", "mem0, paper", "did you mean 'hybrid'?"),
    ),
    "number of nodes": (
        lambda memory, folder: Mem0Rerank(top_n=0),
        ("top_n", "not 0", "greater than or equal to 1", "leave top_n out"),
    ),
    "option of a reranker": (
        lambda memory, folder: Mem0Rerank(topn=3),
        ("topn", "topn=3", "accepted: callback_manager, top_n", "did you mean 'top_n'?"),
    ),
    "text as names": (
        lambda memory, folder: memory_tools(memory, user_id="u", only="search_memory"),
        ("only", "'search_memory'", "a list of texts", "only=['search_memory']"),
    ),
    "texts as messages": (
        lambda memory, folder: Mem0ChatStore(memory).set_messages("k", ["hi"]),  # type: ignore[list-item]
        ("messages", "['hi']", "a list of ChatMessage", "pass such a value"),
    ),
    "name as model": (
        lambda memory, folder: LlamaIndexChat("gpt-4o"),  # type: ignore[arg-type]
        ("llm", "'gpt-4o'", "an object of the class LLM", "OpenAI(model=...)"),
    ),
    "name as embeddings": (
        lambda memory, folder: LlamaIndexEmbedder("text-embedding-3-small"),  # type: ignore[arg-type]
        ("model", "'text-embedding-3-small'", "an object of the class BaseEmbedding", "OpenAIEmbedding"),
    ),
    "no configuration": (
        lambda memory, folder: Mem0Memory.from_config(context={"user_id": "u"}),
        ("config", "is missing", "YAML or JSON file", "pass a mapping"),
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_wrong_usage_is_explained(tmp_path: Path, mistake: str) -> None:
    call, parts = MISTAKES[mistake]
    with open_memory(tmp_path / "data") as memory, pytest.raises(Mem0Error) as raised:
        call(memory, tmp_path / "other")
    check_four_parts(str(raised.value), parts)


def test_a_context_names_the_owner_as_in_llamaindexs_own_class(tmp_path: Path) -> None:
    memory = Mem0Memory.from_config({"path": str(tmp_path), **CONFIG}, context={"user_id": "maya"})
    assert memory.user_id == "maya"
    memory.long_term.close()
