"""Wrong usages: each message names the argument as written, the value, what is accepted, and the next step."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mem0_core import AsyncMemory, Memory
from mem0_core.cli import main
from mem0_core.errors import ConfigError, Mem0Error
from mem0_core.interchange import read_chats
from mem0_core.testing import HashEmbedder, ScriptedChat
from tests.support import check_four_parts


class EmbedderWithoutKind:
    """An embedder whose `embed` does not know the argument `kind`."""

    name, dims = "mine", 3

    def embed(self, texts: list[str]) -> list[list[float]]:
        return [[1.0, 0.0, 0.0] for _ in texts]


@dataclass
class Desk:
    """Everything that a wrong call needs."""

    folder: Path
    memory: Memory
    memory_id: str

    def open(self, config: Any = None, **parts: Any) -> None:
        """Open a memory and search in it."""
        given = {"path": str(self.folder / "other"), **config} if isinstance(config, dict) else config
        if config is None:
            given = {"path": str(self.folder / "other")}
        with Memory(given, **{"embedder": HashEmbedder(), **parts}) as opened:
            opened.search("tea", user_id="alice")

    def open_without_key(self, **parts: Any) -> None:
        os.environ.pop("OPENAI_API_KEY")
        self.open(**parts)


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    with Memory({"path": str(tmp_path / "data")}, embedder=HashEmbedder()) as memory:
        (added,) = memory.add("I like tea", user_id="alice")["results"]
        yield Desk(tmp_path, memory, added["id"])


def _write(file: Path, text: str) -> str:
    file.write_text(text)
    return str(file)


Parts = tuple[str, str, str, str]
"""The argument as written, the given value, an accepted one, and the next step, each as it is in the message."""

CONSTRUCTOR: dict[str, tuple[Callable[[Desk], Any], Parts]] = {
    "folder for path": (
        lambda desk: Memory(folder="data"),  # type: ignore[call-arg]
        ("folder", "'data'", "path, llm, embedder", "did you mean 'path'?"),
    ),
    "a misspelled embedder": (
        lambda desk: Memory(emebdder="hash"),  # type: ignore[call-arg]
        ("emebdder", "'hash'", "llm, embedder, reranker", "did you mean 'embedder'?"),
    ),
    "a key of the configuration": (
        lambda desk: Memory(vector_store={"provider": "qdrant"}),  # type: ignore[call-arg]
        ("vector_store", "'qdrant'", "accepted: config, path", "pass Memory({'vector_store': ...})"),
    ),
    "a key of a model": (
        lambda desk: Memory(api_key="sk-1"),  # type: ignore[call-arg]
        ("api_key", "(api_key)", "accepted: config, path", "pass llm={'provider': 'openai'"),
    ),
    "two values": (
        lambda desk: Memory({}, "data"),  # type: ignore[call-arg]
        ("Memory()", "'data' is one too many", "accepted: config, path", "path='data'"),
    ),
    "a number as path": (
        lambda desk: Memory(path=7),  # type: ignore[arg-type]
        ("path", "not 7", "text or Path", "path='data'"),
    ),
    "a URL as path": (
        lambda desk: Memory(path="postgresql://me:secret@host/db"),
        ("path", "'postgresql://me:***@host/db'", "a folder is required", "pass it as store="),
    ),
    "an empty folder": (
        lambda desk: Memory(""),
        ("config", "not ''", "a folder, a YAML or JSON file", "Memory('data')"),
    ),
    "a number as configuration": (
        lambda desk: Memory(7),  # type: ignore[arg-type]
        ("config", "not 7", "accepted: version, path", "{'path': 'data'}"),
    ),
    "a missing file": (
        lambda desk: Memory(desk.folder / "missing.yaml"),
        ("config", "missing.yaml: No such file", "YAML or JSON file", "pass an existing"),
    ),
    "a store of another database": (
        lambda desk: Memory(store="mysql://me:secret@host/db"),
        ("store", "'mysql://me:***@host/db'", "the path of a SQLite file", "pass postgresql://"),
    ),
    "a number as store": (
        lambda desk: desk.open(store=7),
        ("store", "7 lacks", "RecordStore", "pass a URL such as postgresql://"),
    ),
    "an unknown model": (
        lambda desk: desk.open(llm="gptt"),
        ("llm", "'gptt'", "ollama, openai", "write 'provider:model'"),
    ),
    "a misspelled provider": (
        lambda desk: desk.open(llm="olama:llama3"),
        ("llm", "'olama'", "ollama, openai", "did you mean 'ollama'?"),
    ),
    "a provider without its package": (
        lambda desk: desk.open(llm="claude-sonnet-4-5"),
        ("llm", "'anthropic'", "langchain-anthropic", "pip install langchain-anthropic"),
    ),
    "an object as model": (
        lambda desk: desk.open(llm=object()),
        ("llm", "<object object", "no method 'complete'", "pass 'provider:model'"),
    ),
    "a number as embedder": (
        lambda desk: desk.open(embedder=42),
        ("embedder", "42", "no method 'embed'", "pass 'provider:model'"),
    ),
    "an embedder without kind": (
        lambda desk: desk.open(embedder=EmbedderWithoutKind()),
        ("embedder", "EmbedderWithoutKind.embed()", 'kind="document"', "def embed(self, texts, *, kind="),
    ),
    "a class as embedder": (
        lambda desk: desk.open(embedder=HashEmbedder),
        ("embedder", "the class HashEmbedder", "an instance is required", "call it first"),
    ),
    "a misspelled reranker": (
        lambda desk: desk.open(reranker="qwne"),
        ("reranker", "'qwne'", "cohere, flashrank", "did you mean 'qwen'?"),
    ),
    "a reranker without its package": (
        lambda desk: desk.open(reranker="cohere"),
        ("reranker", "'cohere'", "langchain-cohere", "pip install langchain-cohere"),
    ),
    "a misspelled graph": (
        lambda desk: desk.open(graph="neo4"),
        ("graph_store", "'neo4'", "ladybug", "did you mean 'neo4j'?"),
    ),
    "a graph without its address": (
        lambda desk: desk.open(graph="neo4j"),
        ("graph_store.config", "'url' is required and missing", "accepted: url, username", "add it"),
    ),
    "a file as folder": (
        lambda desk: Memory(path=_write(desk.folder / "notes.txt", "tea")),
        ("cannot make the folder", "notes.txt: it is a file", "a folder that can be made", "pass path="),
    ),
    "a folder as file": (
        lambda desk: desk.open({"path": None, "history_db_path": str(desk.folder)}),
        ("cannot open", "unable to open database file", "read and write", "its folder as path="),
    ),
    "a text as database": (
        lambda desk: desk.open({"path": None, "history_db_path": _write(desk.folder / "x.toml", "tea" * 2000)}),
        ("cannot open", "x.toml", "not a database", "pass another file"),
    ),
    "a faulty file": (
        lambda desk: Memory(_write(desk.folder / "bad.yaml", "llm: [")),
        ("config", "bad.yaml", "not valid YAML", "correct the file"),
    ),
    "a name as index": (
        lambda desk: desk.open(index="qdrant"),
        ("index", "'qdrant'", "an object is required", "Memory({'vector_store': {'provider': 'qdrant'}})"),
    ),
    "a model without a key": (
        lambda desk: desk.open_without_key(llm="gpt-4o-mini"),
        ("llm.config (openai)", "api_key is missing", "base_url", "set OPENAI_API_KEY"),
    ),
    "a server without scheme": (
        lambda desk: desk.open({"llm": {"provider": "ollama", "config": {"ollama_base_url": "127.0.0.1:1"}}}),
        ("llm.config (ollama)", "'127.0.0.1:1/v1'", "http:// or https://", "base_url must begin"),
    ),
    "a number as graph": (
        lambda desk: desk.open(graph=3),
        ("graph", "3 has no method", "see mem0_core.interfaces", "pass 'provider:model'"),
    ),
    "a number as index": (
        lambda desk: desk.open(index=3),
        ("index", "3 has no method", "see mem0_core.interfaces", "pass 'provider:model'"),
    ),
    "a number as policy": (
        lambda desk: desk.open(policy=3),
        ("policy", "not 3", "a function of a text", "pass a function"),
    ),
    "a number as on_step": (
        lambda desk: desk.open(on_step=3),
        ("on_step", "not 3", "a function of a step record", "pass a function"),
    ),
    "no configuration": (
        lambda desk: Memory.from_config(),
        ("from_config", "config_dict is not given", "a mapping of keys", "pass a mapping"),
    ),
    "a folder as configuration file": (
        lambda desk: Memory.from_config(str(desk.folder)),
        ("config", "is a folder", "YAML or JSON file", "open Memory('"),
    ),
    "a misspelled length of vectors": (
        lambda desk: desk.open(embedder={"provider": "openai", "config": {"dims": 1536}}),
        ("embedder.config (openai)", "'dims'", "accepted: model", "did you mean 'embedding_dims'?"),
    ),
    "a word as length of vectors": (
        lambda desk: desk.open(embedder={"provider": "openai", "config": {"embedding_dims": "many"}}),
        ("embedder.config.embedding_dims", "'many'", "int or None", "for the default None"),
    ),
    "a user": (
        lambda desk: Memory(user_id="alice"),  # type: ignore[call-arg]
        ("user_id", "'alice'", "accepted: config, path", "memory.add(..., user_id=...)"),
    ),
    "a database": (
        lambda desk: Memory(db="x.db"),  # type: ignore[call-arg]
        ("db", "'x.db'", "reranker, store", "did you mean 'store'?"),
    ),
    "the URL of another server": (
        lambda desk: Memory("redis://host:6379"),
        ("store", "'redis://host:6379'", "the path of a SQLite file", "pass postgresql://"),
    ),
    "a store without provider": (
        lambda desk: desk.open(store={}),
        ("store.provider", "none is given", "providers: postgres, sqlite", "a name is required"),
    ),
    "a class as model": (
        lambda desk: desk.open(llm=ScriptedChat),
        ("llm", "the class ScriptedChat", "an instance is required", "call it first"),
    ),
    "a list as model": (
        lambda desk: desk.open(llm=["gpt-4o"]),
        ("llm", "['gpt-4o']", "no method 'complete'", "pass 'provider:model'"),
    ),
    "an empty model": (lambda desk: desk.open(llm=""), ("llm", "''", "providers: anthropic", "write 'provider:model'")),
    "a number as keys": (
        lambda desk: desk.open(keys=3),
        ("keys", "not 3", "a mapping of tenants to keys", "Keyring('keys')"),
    ),
    "an empty folder of keys": (
        lambda desk: desk.open(keys=""),
        ("keys", "not ''", "a path as text or Path", "keys='data'"),
    ),
    "a missing file by name": (
        lambda desk: Memory.from_config("settings"),
        ("config", "settings: No such file", "YAML or JSON file", "open Memory('settings')"),
    ),
    "two configurations": (
        lambda desk: Memory.from_config({}, {"path": "x"}),  # type: ignore[call-arg]
        ("Memory.from_config()", "{'path': 'x'} is one too many", "accepted: config_dict", "config={'path': 'x'}"),
    ),
}

CONFIG: dict[str, tuple[dict[str, Any], Parts]] = {
    "a key of another type": (
        {"llm": {"provider": "openai", "config": {"api_key": 123}}},
        ("llm.config.api_key", "not int", "str or None", "leave it out for the default"),
    ),
    "a misspelled key of a model": (
        {"llm": {"provider": "openai", "config": {"modle": "gpt-4o"}}},
        ("llm.config (openai)", "'modle'", "accepted: model, api_key", "did you mean 'model'?"),
    ),
    "a text as temperature": (
        {"llm": {"provider": "openai", "config": {"model": "m", "temperature": "hot"}}},
        ("llm.config.temperature", "'hot'", "float or None", "for the default 0.1"),
    ),
    "a model without provider": (
        {"llm": {"config": {}}},
        ("llm.provider", "none is given", "ollama, openai", "a name is required"),
    ),
    "a misspelled part of a component": (
        {"llm": {"provider": "openai", "confg": {}}},
        ("llm.confg", "unknown key", "accepted: provider, config", "did you mean 'config'?"),
    ),
    "a text as the keys of a model": (
        {"llm": {"provider": "openai", "config": "gpt-4o"}},
        ("llm.config", "not a value of type str", "a mapping of the provider's keys", "{'model': ...}"),
    ),
    "a model's key beside its provider": (
        {"llm": {"provider": "openai", "model": "gpt-4o"}},
        ("llm.model", "unknown key", "accepted: provider, config", "belong in llm.config"),
    ),
    "a provider in capitals": (
        {"llm": {"provider": "OpenAI"}},
        ("llm", "'OpenAI'", "ollama, openai", "did you mean 'openai'?"),
    ),
    "an unknown vector store": (
        {"vector_store": {"provider": "lancedb"}},
        ("vector_store", "'lancedb'", "providers: azure_ai_search, cassandra, chroma", "Memory(index=store)"),
    ),
    "a vector store without its package": (
        {"vector_store": {"provider": "chroma", "config": {"path": "db"}}},
        ("vector_store", "'chroma'", "langchain-chroma", "pip install langchain-chroma"),
    ),
    "a misspelled graph": (
        {"graph_store": "memgrah"},
        ("graph_store", "'memgrah'", "ladybug, memgraph", "did you mean 'memgraph'?"),
    ),
    "an unknown graph": (
        {"graph_store": {"provider": "falkordb"}},
        ("graph_store", "'falkordb'", "providers: kuzu", "pass one of them"),
    ),
    "a graph without its address": (
        {"graph_store": {"provider": "neo4j"}},
        ("graph_store.config (neo4j)", "is required and missing", "accepted: url", "add it"),
    ),
    "a web address of a graph": (
        {"graph_store": {"provider": "memgraph", "config": {"url": "http://localhost:7687"}}},
        ("graph_store.config.url", "'http://localhost:7687'", "bolt:// or neo4j://", "bolt://localhost:7687"),
    ),
    "an option of the graph among the keys of its provider": (
        {"graph_store": {"provider": "neo4j", "config": {"url": "bolt://localhost:1", "threshold": 0.75}}},
        ("graph_store.config (neo4j)", "'threshold'", "accepted: url", "pass graph_store={'threshold': ...}"),
    ),
    "a switch of mem0's service": (
        {"enable_graph": False},
        ("enable_graph", "unknown key", "accepted: version, path", "graph_store='none'"),
    ),
    "instructions of mem0 2.x": (
        {"custom_instructions": "Only food"},
        ("custom_instructions", "unknown key", "accepted: version, path", "as custom_fact_extraction_prompt"),
    ),
    "a number as file": (
        {"history_db_path": 5},
        ("history_db_path", "not 5", "a path is required", "'data/memory.db'"),
    ),
    "a switch for background": (
        {"background": True},
        ("background", "not True", "{'workers': ...}", "pass one"),
    ),
    "a switch for the reranker": (
        {"reranker": True},
        ("reranker", "True", "no method 'score'", "pass 'provider:model'"),
    ),
    "a reranker without its package": (
        {"reranker": {"provider": "zero_entropy"}},
        ("reranker", "'zero_entropy'", "zeroentropy", "pip install zeroentropy"),
    ),
    "a vector store without a class": (
        {"vector_store": {"provider": "baidu"}},
        ("vector_store", "'baidu'", "providers: azure_ai_search", "as Memory(index=store)"),
    ),
    "a misspelled vector store": (
        {"vector_store": {"provider": "qdrnt"}},
        ("vector_store", "'qdrnt'", "pinecone, qdrant", "did you mean 'qdrant'?"),
    ),
    "a misspelled key of a vector store": (
        {"vector_store": {"provider": "faiss", "config": {"pth": "x"}}},
        ("vector_store.config (faiss)", "'pth'", "accepted: exact_limit", "did you mean 'path'?"),
    ),
    "a misspelled key": ({"embeder": "hash"}, ("embeder", "unknown key", "llm, embedder", "did you mean 'embedder'?")),
    "a number out of range": (
        {"neighbours": 0},
        ("neighbours", "not 0", "greater than or equal to 1", "for the default 10"),
    ),
    "an unknown version": ({"version": "v2"}, ("version", "'v2'", "accepted: v1.0, v1.1", "for the default 'v1.1'")),
    "a misspelled recipe": ({"recipe": "hybird"}, ("recipe", "'hybird'", "mem0, paper", "did you mean 'hybrid'?")),
    "a misspelled key of a recipe": (
        {"recipe": {"name": "hybrid", "hopps": 3}},
        ("recipe", "'hopps'", "pool, hops", "did you mean 'hops'?"),
    ),
    "another choice": (
        {"on_bad_reply": "ignore"},
        ("on_bad_reply", "'ignore'", "accepted: skip, raise", "for the default 'skip'"),
    ),
    "a misspelled limit": (
        {"limits": {"msgs": 3}},
        ("limits.msgs", "unknown key", "message_chars, messages", "did you mean 'messages'?"),
    ),
    "a misspelled store": (
        {"store": {"provider": "postgress", "config": {}}},
        ("store", "'postgress'", "postgres, sqlite", "did you mean 'postgres'?"),
    ),
    "a number as logging": ({"logging": 3}, ("logging", "not 3", "a level, a file or a mapping", "'INFO'")),
    "a list as vector store": (
        {"vector_store": ["qdrant"]},
        ("vector_store", "['qdrant']", '{"provider": ..., "config": {...}}', "pass one"),
    ),
    "a database as vector store": (
        {"vector_store": "postgres"},
        ("vector_store", "'postgres'", "pgvector, pinecone", "did you mean 'pgvector'?"),
    ),
    "a misspelled key of pgvector": (
        {"vector_store": {"provider": "pgvector", "config": {"hots": "x"}}},
        ("vector_store.config (pgvector)", "'hots'", "accepted: exact_limit, path, dbname", "did you mean 'host'?"),
    ),
    "another vector store without its package": (
        {"vector_store": {"provider": "opensearch", "config": {"host": "x"}}},
        ("vector_store", "'opensearch'", "langchain-community", "pip install langchain-community"),
    ),
    "a number as address of a graph": (
        {"graph_store": {"provider": "neo4j", "config": {"url": 5, "username": "n", "password": "p"}}},
        ("graph_store.config.url", "not 5", "expected str", "pass str"),
    ),
    "a threshold of the graph out of range": (
        {"graph_store": {"threshold": 2}},
        ("graph_store.threshold", "not 2", "less than or equal to 1", "for the default 0.7"),
    ),
    "a misspelled threshold of the graph": (
        {"graph_store": {"treshold": 0.5}},
        ("graph_store.treshold", "unknown key", "accepted: provider", "did you mean 'threshold'?"),
    ),
    "a word as window": ({"window": "ten"}, ("window", "'ten'", "a valid integer", "for the default 10")),
    "a half life of nothing": ({"half_life": 0}, ("half_life", "not 0", "greater than 0", "pass such a value")),
    "another way to extract": (
        {"extraction": "fast"},
        ("extraction", "'fast'", "accepted: staged, fused, triplets", "for the default 'staged'"),
    ),
    "no workers": (
        {"background": {"workers": 0}},
        ("background.workers", "not 0", "greater than or equal to 1", "for the default 2"),
    ),
    "weights beyond one": (
        {"traverse": {"recency": 0.6, "evidence": 0.6}},
        ("traverse", "not 0.6 + 0.6", "recency and evidence together must be less than 1", "leave one out"),
    ),
    "a misspelled key of telemetry": (
        {"telemetry": {"contents": True}},
        ("telemetry.contents", "unknown key", "accepted: enabled, content", "did you mean 'content'?"),
    ),
    "a number as recipe": ({"recipe": 5}, ("recipe", "not 5", "a Recipe or a mapping", "for example, 'hybrid'")),
    "an unknown recipe": ({"recipe": "best"}, ("recipe", "'best'", "accepted: hybrid, mem0", "pass one of them")),
    "words as switch": (
        {"enable_vision": "yes please"},
        ("enable_vision", "'yes please'", "a valid boolean", "for the default False"),
    ),
    "a number as key": (
        {1: "x"},  # type: ignore[dict-item]
        ("config", "not 1", "keys are texts", "rename it"),
    ),
}

VERBS: dict[str, tuple[Callable[[Desk], Any], Parts]] = {
    "a misspelled id": (
        lambda desk: desk.memory.add("x", usr_id="u"),  # type: ignore[call-arg]
        ("usr_id", "'u'", "accepted: messages, user_id", "did you mean 'user_id'?"),
    ),
    "async memory in a plain with": (
        lambda desk: AsyncMemory(memory=desk.memory).__enter__(),
        ("AsyncMemory", "'with'", "'async with'", "write, for example"),
    ),
    "a misspelled id, async": (
        lambda desk: AsyncMemory(memory=desk.memory).add("x", usr_id="u"),  # type: ignore[call-arg]
        ("AsyncMemory.add() got an unexpected keyword argument 'usr_id'", "'u'", "messages, user_id", "did you mean"),
    ),
    "no id": (
        lambda desk: desk.memory.add("x"),
        ("user_id", "none was given", "user_id, agent_id, run_id", "user_id='alice'"),
    ),
    "a number as id": (
        lambda desk: desk.memory.add("x", user_id=3),  # type: ignore[arg-type]
        ("user_id", "int: 3", "a string", "user_id='3'"),
    ),
    "an id by position": (
        lambda desk: desk.memory.add("x", "u"),  # type: ignore[call-arg]
        ("Memory.add()", "'u' is one too many", "accepted: messages, user_id", "user_id='u'"),
    ),
    "no message": (
        lambda desk: desk.memory.add(user_id="u"),  # type: ignore[call-arg]
        ("'messages'", "is missing", "accepted: messages", "pass it first or by name"),
    ),
    "a number as message": (
        lambda desk: desk.memory.add(7, user_id="u"),  # type: ignore[arg-type]
        ("messages", "not 7", "a text, a message or a list", "{'role': 'user'"),
    ),
    "an unknown role": (
        lambda desk: desk.memory.add([{"role": "asistant", "content": "x"}], user_id="u"),
        ("messages[0]", "'asistant'", "assistant, developer", "did you mean 'assistant'?"),
    ),
    "a message without content": (
        lambda desk: desk.memory.add([{"role": "user"}], user_id="u"),
        ("messages[0]", "no content", "'content'", "add the key"),
    ),
    "a text as metadata": (
        lambda desk: desk.memory.add("x", user_id="u", metadata="work"),  # type: ignore[arg-type]
        ("metadata", "'work'", "a mapping", "metadata={'topic': 'work'}"),
    ),
    "a text as flag": (
        lambda desk: desk.memory.add("x", user_id="u", infer="no"),  # type: ignore[arg-type]
        ("infer", "'no'", "True or False", "pass infer=True"),
    ),
    "a word as time": (
        lambda desk: desk.memory.add("x", user_id="u", timestamp="yesterday"),
        ("timestamp", "'yesterday'", "a datetime, or Unix seconds", "pass ISO 8601 text"),
    ),
    "a word as ttl": (
        lambda desk: desk.memory.add("x", user_id="u", ttl="soon"),  # type: ignore[arg-type]
        ("ttl", "'soon'", "seconds or a timedelta", "timedelta(days=30)"),
    ),
    "an unknown kind of memory": (
        lambda desk: desk.memory.add("x", user_id="u", memory_type="episodic"),
        ("memory_type", "'episodic'", "procedural_memory", "leave it out"),
    ),
    "nothing as question": (
        lambda desk: desk.memory.answer(None, user_id="alice"),  # type: ignore[arg-type]
        ("question", "None", "one text", "question="),
    ),
    "an empty question": (
        lambda desk: desk.memory.traverse("", user_id="alice"),
        ("question", "''", "pass a text", "get_all"),
    ),
    "a query without content": (
        lambda desk: desk.memory.context({"role": "user", "text": "tea"}, user_id="alice"),
        ("query[0]", "'text': 'tea'", "'content'", "add the key"),
    ),
    "a chunk of nothing": (
        lambda desk: desk.memory.add_many(["tea"], user_id="alice", chunk=0),
        ("chunk", "not 0", "a positive whole number", "chunk=256"),
    ),
    "a misspelled id in filters": (
        lambda desk: desk.memory.search("tea", filters={"userId": "alice"}),
        ("user_id", "'userId'", "agent_id, run_id", "did you mean 'user_id'?"),
    ),
    "a word as time in filters": (
        lambda desk: desk.memory.search("tea", user_id="alice", filters={"created_at": {"gte": "last week"}}),
        ("created_at", "'last week'", "a time", "pass ISO 8601 text"),
    ),
    "a number as new text": (
        lambda desk: desk.memory.update_by_query("tea", 3, user_id="alice"),  # type: ignore[arg-type]
        ("data", "3", "a text or a function", "pass the new text"),
    ),
    "a text as names": (
        lambda desk: desk.memory.merge(user_id="alice", names="Anna"),
        ("names", "'Anna'", "a list of texts", "names=['Anna']"),
    ),
    "a list of queries": (
        lambda desk: desk.memory.search(["x"], user_id="u"),  # type: ignore[arg-type]
        ("query", "['x']", "one text", "search for each text"),
    ),
    "an empty query": (
        lambda desk: desk.memory.search(" ", user_id="u"),
        ("query", "' '", "a text", "list all memories with get_all"),
    ),
    "k for limit": (
        lambda desk: desk.memory.search("x", user_id="u", k=3),  # type: ignore[call-arg]
        ("'k'", "k=3", "limit, top_k", "did you mean 'limit'?"),
    ),
    "an empty user": (
        lambda desk: desk.memory.add("x", user_id=""),
        ("user_id", "not ''", "a non-empty text", "user_id='alice'"),
    ),
    "several users": (
        lambda desk: desk.memory.search("x", user_id=["a", "b"]),  # type: ignore[arg-type]
        ("user_id", "['a', 'b']", "a string", "pass, for example"),
    ),
    "a switch of mem0's service in a call": (
        lambda desk: desk.memory.add("x", user_id="u", enable_graph=False),  # type: ignore[call-arg]
        ("enable_graph", "enable_graph=False", "accepted: messages, user_id", "leave it out"),
    ),
    "a page of results": (
        lambda desk: desk.memory.get_all(user_id="u", page=2),  # type: ignore[call-arg]
        ("'page'", "page=2", "accepted: user_id", "leave it out"),
    ),
    "an unknown class of trust": (
        lambda desk: desk.memory.add("x", user_id="u", trust="admin"),  # type: ignore[arg-type]
        ("trust", "'admin'", "'user', 'assistant'", "pass one of them"),
    ),
    "a depth of nothing": (
        lambda desk: desk.memory.traverse("x", user_id="u", depth=0),
        ("depth", "not 0", "1..12", "depth=2"),
    ),
    "a list of memories to delete": (
        lambda desk: desk.memory.delete([desk.memory_id]),  # type: ignore[arg-type]
        ("memory_id", "['", "a non-empty string", "pass the 'id' of a result"),
    ),
    "an argument of mem0 2.x": (
        lambda desk: desk.memory.update(desk.memory_id, text="x"),  # type: ignore[call-arg]
        ("'text'", "text='x'", "memory_id, data", "did you mean 'data'?"),
    ),
    "a file of a configuration by another name": (
        lambda desk: Memory.from_config(config_path="x.yaml"),  # type: ignore[call-arg]
        ("config_path", "'x.yaml'", "accepted: config_dict", "did you mean 'config_dict'?"),
    ),
    "a text as limit": (
        lambda desk: desk.memory.search("x", user_id="u", limit="10"),  # type: ignore[arg-type]
        ("limit", "'10'", "a positive whole number", "limit=10"),
    ),
    "a threshold out of range": (
        lambda desk: desk.memory.search("x", user_id="u", threshold=7),
        ("threshold", "not 7", "[0, 1]", "threshold=0.3"),
    ),
    "words as day": (
        lambda desk: desk.memory.search("x", user_id="u", as_of="last year"),
        ("as_of", "'last year'", "a datetime", "pass ISO 8601 text"),
    ),
    "a missing id": (
        lambda desk: desk.memory.get(None),  # type: ignore[arg-type]
        ("memory_id", "None", "a non-empty string", "pass the 'id' of a result"),
    ),
    "content for data": (
        lambda desk: desk.memory.update(desk.memory_id, content="x"),  # type: ignore[call-arg]
        ("content", "'x'", "memory_id, data", "did you mean 'data'?"),
    ),
    "an empty update": (
        lambda desk: desk.memory.update(desk.memory_id, ""),
        ("data", "not ''", "a non-empty string", "pass the new text"),
    ),
    "an unknown memory": (
        lambda desk: desk.memory.delete("nope"),
        ("id", "'nope'", "get_all", "lists the memories"),
    ),
    "hops for depth": (
        lambda desk: desk.memory.traverse("x", user_id="u", hops=9),  # type: ignore[call-arg]
        ("hops", "hops=9", "limit, depth", "did you mean 'depth'?"),
    ),
    "a misspelled graph query": (
        lambda desk: desk.memory.query("MTCH (a) RETURN a", user_id="u"),
        ("'MTCH'", "position 0", "expected EXPLAIN or MATCH", "nearest accepted form"),
    ),
    "an unknown format": (
        lambda desk: desk.memory.export(desk.folder / "e", format="xml"),  # type: ignore[arg-type]
        ("format", "'xml'", "jsonl, csv", "pass one of them"),
    ),
    "no reason of an erasure": (
        lambda desk: desk.memory.erase(user_id="u"),  # type: ignore[call-arg]
        ("Memory.erase()", "'reason'", "accepted: user_id", "pass it by name"),
    ),
    "no reason of an erasure, async": (
        lambda desk: AsyncMemory(memory=desk.memory).erase(user_id="u"),  # type: ignore[call-arg]
        ("AsyncMemory.erase()", "'reason'", "accepted: user_id", "pass it by name"),
    ),
    "a text as purge": (
        lambda desk: desk.memory.delete(desk.memory_id, purge="no"),  # type: ignore[arg-type]
        ("purge", "'no'", "True or False", "pass purge=True"),
    ),
    "a text as rerank": (
        lambda desk: desk.memory.search("x", user_id="u", rerank="yes"),  # type: ignore[arg-type]
        ("rerank", "'yes'", "True or False", "pass rerank=True"),
    ),
    "a year as day": (
        lambda desk: desk.memory.search("x", user_id="u", as_of=2021),
        ("as_of", "2021", "Unix seconds", "write '2021-01-01'"),
    ),
    "a message of another shape": (
        lambda desk: desk.memory.add({"user": "hi"}, user_id="u"),
        ("messages[0]", "{'user': 'hi'}", "roles: assistant", "add the key 'role'"),
    ),
    "a number as key of metadata": (
        lambda desk: desk.memory.add("x", user_id="u", metadata={1: 2}),  # type: ignore[dict-item]
        ("metadata", "a string, 1", "texts as keys", "for example '1'"),
    ),
    "an object in metadata": (
        lambda desk: desk.memory.add("x", user_id="u", metadata={"a": object()}),
        ("metadata", "at 'a'", "text, numbers, booleans", "pass text"),
    ),
    "a text as messages of an import": (
        lambda desk: desk.memory.add_many("x", user_id="u"),
        ("messages", "not 'x'", "a list of texts or messages", "['I like tea']"),
    ),
    "an unknown trust of a search": (
        lambda desk: desk.memory.search("x", user_id="u", min_trust="high"),  # type: ignore[arg-type]
        ("min_trust", "'high'", "'user', 'assistant'", "pass one of them"),
    ),
    "tokens for max_tokens": (
        lambda desk: desk.memory.context("x", user_id="u", tokens=5),  # type: ignore[call-arg]
        ("'tokens'", "tokens=5", "run_id, max_tokens", "did you mean 'max_tokens'?"),
    ),
    "a budget of nothing": (
        lambda desk: desk.memory.context("x", user_id="u", max_tokens=-1),
        ("max_tokens", "not -1", "a positive whole number", "for example, 2000"),
    ),
    "a number as graph query": (
        lambda desk: desk.memory.query(5, user_id="u"),  # type: ignore[arg-type]
        ("query", "not 5", "a text", "MATCH (a)-[r]->(b) RETURN a, r, b"),
    ),
    "a number as file of an export": (
        lambda desk: desk.memory.export(5),  # type: ignore[arg-type]
        ("path", "not 5", "a path as text or Path", "path='data'"),
    ),
    "an unknown merge": (
        lambda desk: desk.memory.unmerge("x"),
        ("merge", "'x'", "merges lists the merges", "with their ids"),
    ),
    "a word as timeout": (
        lambda desk: desk.memory.flush(timeout="x"),  # type: ignore[arg-type]
        ("timeout", "'x'", "float or None", "leave timeout out"),
    ),
    "a filter to delete all": (
        lambda desk: desk.memory.delete_all(filters={"a": 1}),  # type: ignore[call-arg]
        ("filters", "filters={'a': 1}", "accepted: user_id", "leave it out"),
    ),
}

FILTERS: dict[str, tuple[Any, Parts]] = {
    "a misspelled operator": ({"age": {"gtt": 3}}, ("'age'", "'gtt'", "gt, gte", "did you mean 'gt'?")),
    "an operator of MongoDB": ({"age": {"$gt": 3}}, ("'age'", "'$gt'", "gt, gte", "did you mean 'gt'?")),
    "a text": ("a=1", ("filters", "'a=1'", "a mapping", "filters={'topic': 'work'}")),
    "in without a list": ({"a": {"in": 3}}, ("in on 'a'", "not 3", "a list", "{'a': {'in': [...]}}")),
    "a group in lower case": ({"or": [{"a": 1}]}, ("'or'", "not {'a': 1}", "text, numbers", "did you mean 'OR'?")),
    "a group of no filters": ({"NOT": "a"}, ("NOT", "'a'", "a list of filters", "{'NOT': [{'topic': 'work'}]}")),
    "another user": ({"user_id": "bob"}, ("user_id", "'bob'", "'alice'", "pass it once")),
    "an empty filter of a field": ({"a": {}}, ("the filter on 'a'", "{}", "a value or an operator", "{'gte': 3}")),
    "a number as field": ({3: 1}, ("filters", "not 3", "a string", "filters={'3': ...}")),
    "a group of MongoDB": ({"$and": [{"a": 1}]}, ("'$and'", "not {'a': 1}", "text, numbers", "did you mean 'AND'?")),
    "a group of MongoDB with a mapping": (
        {"$or": {"a": 1}},
        ("$or", "{'a': 1}", "a list of filters", "pass {'OR': [...]}"),
    ),
    "a day that does not exist": (
        {"created_at": {"gte": "2026-02-30"}},
        ("gte on 'created_at'", "'2026-02-30'", "takes a time", "pass ISO 8601 text"),
    ),
    "an id under OR": ({"OR": [{"user_id": "bob"}]}, ("user_id='bob'", "under OR", "one scope", "pass user_id= to")),
    "several ids": ({"user_id": ["a", "b"]}, ("user_id", "['a', 'b']", "one id", "one call for each id")),
    "a range": ({"a": {"between": [1, 2]}}, ("'a'", "'between'", "gt, gte", "pass one of them")),
}

COMMANDS: dict[str, tuple[tuple[str, ...], Parts]] = {
    "a misspelled command": (
        ("serch", "tea"),
        ("COMMAND", "'serch'", "accepted: prompt, add", "did you mean 'search'?"),
    ),
    "a misspelled option": (
        ("search", "tea", "--usr", "alice"),
        ("search", "unknown option '--usr'", "accepted: --help, --path", "did you mean '--user'?"),
    ),
    "a word as limit": (
        ("search", "tea", "--user", "alice", "--limit", "many"),
        ("--limit", "'many'", "a number is required", "for example 10"),
    ),
    "no user": (("search", "tea"), ("no memory is named", "add --user NAME", "--agent, --run", "MEM0_USER")),
    "an unknown backend": (
        ("--llm-backend", "gpu", "stats"),
        ("--llm-backend", "'gpu'", "accepted: auto, gguf", "--help"),
    ),
    "a missing file to import": (
        ("import", "missing.json", "--user", "alice"),
        ("missing.json", "No such file", "a file that exists", "pass a file"),
    ),
    "a missing folder to adopt": (
        ("adopt", "missing"),
        ("missing", "is not a folder", "Qdrant's or FAISS's files", "pass the folder"),
    ),
    "an unknown id": (("get", "123"), ("id", "'123'", "`mem0-core list --user NAME`", "lists them")),
    "a word as day": (
        ("search", "tea", "--user", "alice", "--as-of", "lately"),
        ("--as-of", "'lately'", "a datetime", "pass ISO 8601 text"),
    ),
    "no text": (("add",), ("add", "required: text", "--help` lists", "example: mem0-core add")),
    "an option without value": (
        ("add", "x", "--user"),
        ("--user", "expected one argument", "--help` lists", "example: mem0-core add"),
    ),
    "an option of another command": (
        ("search", "tea", "--user", "alice", "--threshold", "3"),
        ("search", "'--threshold'", "accepted: --help", "example: mem0-core search"),
    ),
    "an option of another name": (
        ("add", "x", "--user", "alice", "--timestamp", "2025"),
        ("add", "'--timestamp'", "accepted: --help", "did you mean '--at'?"),
    ),
    "an option of the kind --top": (
        ("search", "tea", "--user", "alice", "--top", "3"),
        ("search", "'--top'", "accepted: --help", "did you mean '--limit'?"),
    ),
    "a word too many": (("stats", "extra"), ("stats", "'extra'", "--help` lists", "leave the word out")),
    "another name of a command": (
        ("remove", "123"),
        ("COMMAND", "'remove'", "accepted: prompt", "did you mean 'delete'?"),
    ),
    "a limit of nothing": (
        ("search", "tea", "--user", "alice", "--limit", "0"),
        ("--limit", "not 0", "a positive whole number", "--limit 10"),
    ),
    "a depth of nothing": (
        ("traverse", "who?", "--user", "alice", "--depth", "0"),
        ("--depth", "not 0", "1..12", "--depth 2"),
    ),
    "an unknown merge": (("unmerge", "zzz"), ("merge", "'zzz'", "`mem0-core merges --user NAME`", "lists them")),
    "an unknown format": (
        ("export", "out", "--format", "xml"),
        ("--format", "'xml'", "accepted: jsonl, csv", "example: mem0-core export"),
    ),
    "no name of a user": (
        ("add", "tea", "--user", ""),
        ("--user", "''", "a non-empty text", "pass, for example, --user"),
    ),
    "an empty query": (("search", "", "--user", "alice"), ("query", "''", "pass a text", "`mem0-core list`")),
    "an impossible port": (("serve", "--port", "99999"), ("--port", "99999", "1..65535", "--port 8765")),
    "an unknown host": (
        ("serve", "--host", "192.0.2.1"),
        ("--host", "'192.0.2.1'", "no address of this machine", "pass 127.0.0.1"),
    ),
    "a key without name": (("keys", "--create", ""), ("name of a key", "''", "a text", "'laptop'")),
    "a word as port": (("serve", "--port", "abc"), ("--port", "'abc'", "a number is required", "for example 10")),
}


@pytest.mark.parametrize("case", [*CONSTRUCTOR.items(), *VERBS.items()], ids=lambda case: case[0].replace(" ", "-"))
def test_a_wrong_call_is_explained(desk: Desk, case: tuple[str, tuple[Callable[[Desk], Any], Parts]]) -> None:
    call, parts = case[1]
    with pytest.raises(Mem0Error) as raised:
        call(desk)
    check_four_parts(str(raised.value), parts)


@pytest.mark.parametrize("case", CONFIG.items(), ids=lambda case: case[0].replace(" ", "-"))
def test_a_wrong_configuration_is_explained(desk: Desk, case: tuple[str, tuple[dict[str, Any], Parts]]) -> None:
    config, parts = case[1]
    with pytest.raises(Mem0Error) as raised:
        desk.open(config)
    check_four_parts(str(raised.value), parts)


@pytest.mark.parametrize("case", FILTERS.items(), ids=lambda case: case[0].replace(" ", "-"))
def test_a_wrong_filter_is_explained(desk: Desk, case: tuple[str, tuple[Any, Parts]]) -> None:
    filters, parts = case[1]
    with pytest.raises(Mem0Error) as raised:
        desk.memory.search("tea", user_id="alice", filters=filters)
    check_four_parts(str(raised.value), parts)


@pytest.mark.parametrize("case", COMMANDS.items(), ids=lambda case: case[0].replace(" ", "-"))
def test_a_wrong_command_is_explained(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], case: tuple[str, tuple[tuple[str, ...], Parts]]
) -> None:
    config = tmp_path / "config.json"
    config.write_text(f'{{"path": "{tmp_path.as_posix()}", "embedder": "hash"}}')
    words, parts = case[1]
    try:
        code: Any = main(["--config", str(config), *words])
    except SystemExit as stopped:
        code = stopped.code
    assert code
    check_four_parts(capsys.readouterr().err, parts)


def test_at_least_a_hundred_and_sixty_usages_are_checked() -> None:
    assert len(CONSTRUCTOR) + len(CONFIG) + len(VERBS) + len(FILTERS) + len(COMMANDS) >= 160


@pytest.mark.parametrize("words", [("help",), ("help", "add"), ("version",)])
def test_help_and_version_are_commands_too(capsys: pytest.CaptureFixture[str], words: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(words)
    assert stopped.value.code == 0
    assert "mem0-core" in capsys.readouterr().out


def test_a_port_in_use_is_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as used:
        port = str(used.getsockname()[1])
        assert main(["--path", str(tmp_path), "serve", "--no-keys", "--port", port]) == 2
    check_four_parts(capsys.readouterr().err, ("--port", port, "in use", "pass another --port"))


MISSPELLED_METHODS = {"getAll": "get_all", "Search": "search", "chat": "answer", "batch_update": "update"}


@pytest.mark.parametrize("written", MISSPELLED_METHODS)
def test_an_unknown_method_names_the_nearest_one(desk: Desk, written: str) -> None:
    for memory in (desk.memory, AsyncMemory(memory=desk.memory)):
        with pytest.raises(AttributeError, match=rf"'{written}'; did you mean '{MISSPELLED_METHODS[written]}'\?"):
            getattr(memory, written)


def test_a_probe_for_an_attribute_finds_none(desk: Desk) -> None:
    assert not hasattr(desk.memory, "as_retriever")
    with pytest.raises(AttributeError) as raised:
        desk.memory._x  # type: ignore[attr-defined]  # noqa: B018
    assert "did you mean" not in str(raised.value)


@pytest.mark.parametrize(("written", "meant"), [("MemoryClient", "Memory"), ("Memroy", "Memory")])
def test_an_unknown_name_in_an_import_names_the_nearest_one(written: str, meant: str) -> None:
    import mem0_core

    with pytest.raises(ImportError, match=rf"cannot import '{written}' from 'mem0_core'; did you mean '{meant}'\?"):
        exec(f"from mem0_core import {written}", {})
    with pytest.raises(AttributeError, match=rf"has no attribute '{written}'; did you mean '{meant}'\?"):
        getattr(mem0_core, written)
    assert not hasattr(mem0_core, written)


def test_a_packaged_model_in_place_of_a_provider_is_named() -> None:
    for given in ({"provider": "minilm"}, "mem0-minilms"):
        with pytest.raises(ConfigError, match=r"did you mean the model 'mem0-minilm', as embedder='mem0-minilm'\?"):
            Memory(embedder=given)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder that takes no files")
@pytest.mark.parametrize("write", ["export", "backup"])
def test_a_file_that_cannot_be_written_is_named_and_no_temporary_one(desk: Desk, write: str) -> None:
    with pytest.raises(Mem0Error) as raised:
        getattr(desk.memory, write)("/proc/copy")
    check_four_parts(str(raised.value), ("/proc/copy", "takes no files", "may write", "choose another path"))
    assert ".mem0-core-" not in str(raised.value)


def test_a_file_in_the_place_of_a_folder_is_explained(desk: Desk) -> None:
    (desk.folder / "taken").touch()
    with pytest.raises(Mem0Error, match=r"copy cannot be written: its folder is a file; choose another path"):
        desk.memory.export(desk.folder / "taken" / "copy")


def test_a_text_in_the_place_of_json_leads_to_the_format(desk: Desk) -> None:
    chat = _write(desk.folder / "chat.txt", "hi")
    with pytest.raises(Mem0Error, match=r"chat\.txt is not valid JSON: .*; correct the file, or pass format="):
        list(read_chats(chat, "chatgpt")[1])


@pytest.mark.parametrize("provider", ["neo4j", "memgraph"])
def test_a_graph_server_without_its_url_is_refused_at_once(tmp_path: Path, provider: str) -> None:
    with pytest.raises(ConfigError, match=rf"graph_store.config \({provider}\): the key 'url' is required and missing"):
        Memory({"path": str(tmp_path)}, graph=provider)
    with pytest.raises(ConfigError, match=r"unknown key 'uri'; did you mean 'url'\?"):
        Memory({"path": str(tmp_path)}, graph={"provider": provider, "config": {"uri": "bolt://127.0.0.1:1"}})


def test_a_neptune_host_without_a_scheme_is_explained(desk: Desk) -> None:
    with pytest.raises(
        ConfigError, match=r"endpoint \(neptune\): 'x\.com' has no scheme; .*pass, for example, 'neptune-db"
    ):
        desk.open(graph={"provider": "neptune", "config": {"endpoint": "x.com"}})
