"""Configuration: validation of mem0's keys, and errors that name the key."""

from __future__ import annotations

import gc
import json
import sqlite3
import weakref
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import platformdirs
import pytest

from mem0_core import AsyncMemory, ConfigError, Memory, MemoryConfig, StoreError
from mem0_core.components import build_component, check_spec
from mem0_core.config import load_config
from mem0_core.errors import MissingExtraError
from mem0_core.stores.sqlite.schema import SCHEMA_VERSIONS
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
    with Memory.from_config({**MEM0_V1, "history_db_path": str(tmp_path / "memory.db")}) as memory:
        assert memory.config.enable_vision
        assert memory.config.database == tmp_path / "memory.db"
        assert memory.config.folder == tmp_path
        assert memory._embedder.dims == 1536
        assert "sk-x" not in repr(memory._chat)


MEM0_HISTORY = (
    "CREATE TABLE history (id TEXT PRIMARY KEY, memory_id TEXT, old_memory TEXT, new_memory TEXT, event TEXT,"
    " created_at DATETIME, updated_at DATETIME, is_deleted INTEGER, actor_id TEXT, role TEXT)"
)
MEM0_MESSAGES = "CREATE TABLE messages (id TEXT PRIMARY KEY, session_scope TEXT, role TEXT, content TEXT)"


def foreign(file: Path, *statements: str, version: int = 0, wal: bool = False) -> dict[str, bytes]:
    """Make another program's file. Returns the contents of its folder."""
    with closing(sqlite3.connect(file)) as db, db:
        db.execute(f"PRAGMA user_version = {version}")
        if wal:
            db.execute("PRAGMA journal_mode = WAL")
        for statement in statements:
            db.execute(statement)
    return lying_in(file.parent)


def lying_in(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("wal", [False, True])
@pytest.mark.parametrize("version", [0, 1, len(SCHEMA_VERSIONS), 99])
@pytest.mark.parametrize("tables", [(MEM0_HISTORY,), (MEM0_HISTORY, MEM0_MESSAGES)], ids=["history", "and messages"])
def test_mem0s_file_is_no_store_and_stays_as_it_is(
    tmp_path: Path, tables: tuple[str, ...], version: int, wal: bool
) -> None:
    folder = tmp_path / "of mem0"
    folder.mkdir()
    file = folder / "history.db"
    before = foreign(file, *tables, version=version, wal=wal)
    with pytest.raises(StoreError, match=r"belongs to another program.*history.*mem0-core adopt '.*of mem0'`") as told:
        Memory({"history_db_path": str(file)}, embedder=HashEmbedder())
    assert str(file) in str(told.value)
    assert lying_in(folder) == before
    with Memory({"path": str(folder)}, embedder=HashEmbedder()) as memory:  # a store of our own in the same folder
        memory.add("I like tea", user_id="u")
    assert {name: data for name, data in lying_in(folder).items() if name == file.name} == before


def test_the_command_for_a_history_of_another_name_names_it(tmp_path: Path) -> None:
    foreign(tmp_path / "old.db", MEM0_HISTORY)
    with pytest.raises(StoreError, match=r"adopt .* --history .*old\.db`"):
        Memory({"history_db_path": str(tmp_path / "old.db")}, embedder=HashEmbedder())


def test_any_other_programs_file_is_refused(tmp_path: Path) -> None:
    before = foreign(tmp_path / "places.sqlite", "CREATE TABLE bookmarks (id)", "CREATE TABLE meta (key)")
    with pytest.raises(StoreError, match="its tables are bookmarks, meta"):
        Memory({"history_db_path": str(tmp_path / "places.sqlite")}, embedder=HashEmbedder())
    assert lying_in(tmp_path) == before


def test_a_file_that_another_program_has_open_is_refused(tmp_path: Path) -> None:
    """Its tables lie in its log only."""
    with closing(sqlite3.connect(tmp_path / "open.db")) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("CREATE TABLE bookmarks (id)")
        before = {name: data for name, data in lying_in(tmp_path).items() if not name.endswith("-shm")}
        with pytest.raises(StoreError, match="bookmarks"):
            Memory({"history_db_path": str(tmp_path / "open.db")}, embedder=HashEmbedder())
        assert {name: data for name, data in lying_in(tmp_path).items() if not name.endswith("-shm")} == before


def test_a_file_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    Memory({"path": str(tmp_path)}, embedder=HashEmbedder()).close()
    with sqlite3.connect(tmp_path / "memory.db") as db:
        db.execute("PRAGMA user_version = 99")
    with pytest.raises(StoreError, match="newer version"):
        Memory({"path": str(tmp_path)}, embedder=HashEmbedder())


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "memory.db").write_text("not a database, but long enough to be looked at as if it were one")
    with pytest.raises(StoreError, match=r"memory\.db"):
        Memory({"path": str(tmp_path)}, embedder=HashEmbedder())


@pytest.mark.parametrize(
    ("config", "named"),
    [
        ({"embeder": "hash"}, "did you mean 'embedder'"),
        ({"vector_store": {"provider": "faiss", "confg": {}}}, r"vector_store\.confg"),
        ({"vector_store": {"provider": "qdrnt"}}, "vector_store: unknown provider 'qdrnt'; did you mean 'qdrant'"),
        ({"graph_store": {"providr": "neo4j"}}, "unknown key 'graph_store.providr'; did you mean 'provider'?"),
        ({"version": "v2"}, "version"),
        ({"neighbours": 0}, "neighbours"),
        ({"on_bad_reply": "shrug"}, "on_bad_reply"),
        ({"embedder": {"provider": "hash", "config": {"dimensions": 3}}}, "dimensions"),
        ({"embedder": "hsh"}, "did you mean 'hash'"),
        ({"embedder": {"config": {}}}, r"embedder\.provider"),
        ({"embedder": 42}, "42"),
        ({"embedder": "hash", "llm": ...}, "complete"),
        ([("version", "v1.1")], "mapping"),
        ({3: 4}, "keys are texts, not 3"),
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
    assert (tmp_path / "data" / "memory.db").exists()
    path.write_text("{ not: [valid")
    with pytest.raises(ConfigError, match=path.name):
        Memory.from_config(path)
    with pytest.raises(ConfigError, match="cannot read"):
        Memory.from_config(tmp_path / "missing.json")


def test_providers_by_name_and_by_instance(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    assert build_component("embedder", "hash").name == "hash-384"
    assert build_component("embedder", {"provider": "hash", "config": {"dims": 32}}).dims == 32
    embedder = HashEmbedder()
    assert build_component("embedder", embedder) is embedder
    assert build_component("llm", "openai:gpt-4o-mini") is not None


class UnhashableMethod:
    """A method made of an object that has no hash, as a mock or a dataclass may be."""

    __hash__ = None  # type: ignore[assignment]

    def __call__(self, texts: list[str]) -> list[list[float]]:
        return [[1.0] for _ in texts]


@pytest.mark.parametrize("memory_class", [Memory, AsyncMemory])
def test_an_embedder_without_kind_is_refused_whatever_its_method_is(tmp_path: Path, memory_class: Any) -> None:
    embedder = SimpleNamespace(name="e", dims=1, embed=UnhashableMethod())
    with pytest.raises(ConfigError, match="has no argument 'kind'"):
        memory_class({"path": str(tmp_path)}, embedder=embedder)


def test_a_checked_embedder_is_kept_by_its_memory_only(tmp_path: Path) -> None:
    def embed(texts: list[str], *, kind: str) -> Any:
        return HashEmbedder().embed(texts, kind=kind)  # type: ignore[arg-type]

    with Memory({"path": str(tmp_path)}, embedder=SimpleNamespace(name="e", dims=384, embed=embed)):
        kept = weakref.ref(embed)
    del embed
    gc.collect()
    assert kept() is None


def test_mem0s_names_for_an_address_are_understood() -> None:
    for url in ("http://localhost:9/v1", "http://localhost:9"):
        chat = build_component("llm", {"provider": "ollama", "config": {"model": "m", "ollama_base_url": url}})
        assert "http://localhost:9/v1" in repr(chat)


def test_two_addresses_for_one_server_are_refused() -> None:
    keys = {"model": "m", "base_url": "http://a", "openai_base_url": "http://b"}
    with pytest.raises(ConfigError, match="twice"):
        build_component("llm", {"provider": "openai", "config": keys})


def test_a_vector_store_whose_packages_are_missing_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(MissingExtraError, match=r"'chroma' needs langchain-chroma.*pip install langchain-chroma"):
        Memory({"path": str(tmp_path), "vector_store": {"provider": "chroma"}}, embedder=HashEmbedder())


@pytest.mark.parametrize("provider", ["embedded", "numpy", "faiss", "pgvector"])
def test_a_misspelled_key_of_a_vector_store_is_refused_when_the_memory_is_opened(tmp_path: Path, provider: str) -> None:
    chosen = {"provider": provider, "config": {"collection_name": "mem0", "pth": "x"}}
    expected = rf"vector_store\.config \({provider}\): unknown key 'pth'; did you mean 'path'"
    with pytest.raises(ConfigError, match=expected):
        Memory({"path": str(tmp_path), "vector_store": chosen}, embedder=HashEmbedder())
    assert not list(tmp_path.iterdir()), "nothing was opened"


def test_the_default_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MEM0_CORE_HOME", str(tmp_path))
    assert MemoryConfig().database == tmp_path / "memory.db"
    monkeypatch.delenv("MEM0_CORE_HOME")
    monkeypatch.setenv("MEM0_DIR", str(tmp_path / "of mem0"))
    assert MemoryConfig().folder == platformdirs.user_data_path("mem0-core", appauthor=False)
    assert MemoryConfig().folder.name == "mem0-core"


def test_a_checked_configuration_is_taken_as_it_is() -> None:
    config = MemoryConfig(neighbours=3)
    assert load_config(config) is config


def test_a_missing_library_names_the_extra() -> None:
    error = MissingExtraError("neo4j", "neo4j")
    assert "pip install 'mem0-core[neo4j]'" in str(error)
    assert isinstance(error, ImportError)


@pytest.mark.parametrize("kind", ["embedder", "reranker"])
@pytest.mark.parametrize("form", ["{}", "local:{}"])
def test_a_folder_names_a_local_model(kind: Any, form: str, tmp_path: Path) -> None:
    text = form.format(tmp_path)
    check_spec(kind, text)
    assert str(tmp_path) in repr(build_component(kind, text))


def test_a_folder_that_does_not_exist_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="unknown provider"):
        build_component("embedder", str(tmp_path / "missing"))
