"""Configuration: mem0's keys, checked, and errors that name the key."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mem0_core import ConfigError, Memory, MemoryConfig, StoreError
from mem0_core.config import build, load_config
from mem0_core.errors import MissingExtra
from mem0_core.testing import HashEmbedder

MEM0_V1: dict[str, Any] = {
    "version": "v1.1",
    "llm": {
        "provider": "openai",
        "config": {
            "model": "gpt-4o-mini",
            "temperature": 0.1,
            "max_tokens": 2000,
            "api_key": "sk-x",
            "enable_vision": True,
        },
    },
    "embedder": {
        "provider": "openai",
        "config": {"model": "text-embedding-3-small", "embedding_dims": 1536, "api_key": "sk-x"},
    },
    "vector_store": {"provider": "faiss", "config": {"collection_name": "mem0", "embedding_model_dims": 1536}},
    "custom_fact_extraction_prompt": "Only food.",
    "custom_update_memory_prompt": "Never delete.",
}


def test_a_mem0_v1_dict_opens(tmp_path: Path) -> None:
    with Memory.from_config({**MEM0_V1, "history_db_path": str(tmp_path / "history.db")}) as memory:
        assert memory.config.enable_vision
        assert memory.config.database == tmp_path / "history.db"
        assert memory.config.folder == tmp_path
        assert memory._embedder.dims == 1536
        assert "sk-x" not in repr(memory._chat)


def test_a_mem0_v1_history_file_opens_with_its_rows(tmp_path: Path) -> None:
    import sqlite3

    with sqlite3.connect(tmp_path / "history.db") as db:
        db.execute(
            "CREATE TABLE history (id TEXT PRIMARY KEY, memory_id TEXT, old_memory TEXT, new_memory TEXT, event TEXT,"
            " created_at DATETIME, updated_at DATETIME, is_deleted INTEGER, actor_id TEXT, role TEXT)"
        )
        db.execute("INSERT INTO history VALUES ('1', 'm', NULL, 'Name is John', 'ADD', '2025', NULL, 0, NULL, NULL)")
    with Memory({"path": str(tmp_path)}, embedder=HashEmbedder()) as memory:
        assert [row["new_memory"] for row in memory.history("m")] == ["Name is John"]
        memory.add("I like tea", user_id="u")


def test_a_file_of_another_form_is_refused_and_left_alone(tmp_path: Path) -> None:
    import sqlite3

    with sqlite3.connect(tmp_path / "history.db") as db:
        db.execute("CREATE TABLE history (id TEXT PRIMARY KEY, prev_value TEXT)")
    with pytest.raises(StoreError, match="prev_value"):
        Memory({"path": str(tmp_path)}, embedder=HashEmbedder())
    with sqlite3.connect(tmp_path / "history.db") as db:
        assert [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")] == ["history"]


def test_a_file_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    import sqlite3

    Memory({"path": str(tmp_path)}, embedder=HashEmbedder()).close()
    with sqlite3.connect(tmp_path / "history.db") as db:
        db.execute("PRAGMA user_version = 99")
    with pytest.raises(StoreError, match="newer version"):
        Memory({"path": str(tmp_path)}, embedder=HashEmbedder())


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "history.db").write_text("not a database, but long enough to be looked at as if it were one")
    with pytest.raises(StoreError, match=r"history\.db"):
        Memory({"path": str(tmp_path)}, embedder=HashEmbedder())


@pytest.mark.parametrize(
    ("config", "named"),
    [
        ({"embeder": "hash"}, "did you mean 'embedder'"),
        ({"vector_store": {"provider": "faiss", "confg": {}}}, r"vector_store\.confg"),
        ({"vector_store": {"provider": "qdrant"}}, "qdrant"),
        ({"graph_store": {"providr": "neo4j"}}, "unknown key 'graph_store.providr'; did you mean 'provider'?"),
        ({"version": "v2"}, "version"),
        ({"neighbours": 0}, "neighbours"),
        ({"on_bad_reply": "shrug"}, "on_bad_reply"),
        ({"embedder": {"provider": "hash", "config": {"dimensions": 3}}}, "dimensions"),
        ({"embedder": "hsh"}, "did you mean 'hash'"),
        ({"embedder": {"config": {}}}, r"embedder\.provider"),
        ({"embedder": 42}, "42"),
        ({"embedder": "hash", "llm": object()}, "complete"),
        ([("version", "v1.1")], "mapping"),
        ({3: 4}, "string keys"),
    ],
    ids=str,
)
def test_a_wrong_configuration_names_the_key(tmp_path: Path, config: Any, named: str) -> None:
    if isinstance(config, dict):
        config = {"path": str(tmp_path), "embedder": "hash", **config}
    with pytest.raises(ConfigError, match=named), Memory(config) as memory:
        memory.add("x", user_id="u")


@pytest.mark.parametrize("suffix", ["json", "yaml"])
def test_a_configuration_file(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"config.{suffix}"
    path.write_text(json.dumps({"path": str(tmp_path / "data"), "embedder": "hash"}))
    with Memory.from_config(path) as memory:
        memory.add("I like tea", user_id="u")
    assert (tmp_path / "data" / "history.db").exists()
    path.write_text("{ not: [valid")
    with pytest.raises(ConfigError, match=path.name):
        Memory.from_config(path)
    with pytest.raises(ConfigError, match="cannot read"):
        Memory.from_config(tmp_path / "missing.json")


def test_providers_by_name_and_by_instance(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    assert build("embedder", "hash").name == "hash-384"
    assert build("embedder", {"provider": "hash", "config": {"dims": 32}}).dims == 32
    embedder = HashEmbedder()
    assert build("embedder", embedder) is embedder
    assert build("llm", "openai:gpt-4o-mini") is not None


def test_mem0s_names_for_an_address_are_understood() -> None:
    for url in ("http://localhost:9/v1", "http://localhost:9"):
        chat = build("llm", {"provider": "ollama", "config": {"model": "m", "ollama_base_url": url}})
        assert "http://localhost:9/v1" in repr(chat)


def test_two_addresses_for_one_server_are_refused() -> None:
    keys = {"model": "m", "base_url": "http://a", "openai_base_url": "http://b"}
    with pytest.raises(ConfigError, match="twice"):
        build("llm", {"provider": "openai", "config": keys})


def test_a_vector_store_nobody_provides_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="qdrant"):
        Memory({"path": str(tmp_path), "vector_store": {"provider": "qdrant"}}, embedder=HashEmbedder())


def test_the_default_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MEM0_DIR", str(tmp_path))
    assert MemoryConfig().database == tmp_path / "history.db"
    monkeypatch.delenv("MEM0_DIR")
    assert MemoryConfig().folder == Path("~/.mem0").expanduser()


def test_a_checked_configuration_is_taken_as_it_is() -> None:
    config = MemoryConfig(neighbours=3)
    assert load_config(config) is config


def test_a_missing_library_names_the_extra() -> None:
    error = MissingExtra("neo4j", "neo4j")
    assert "pip install 'mem0-core[neo4j]'" in str(error)
    assert isinstance(error, ImportError)
