"""A store keeps the packaged embedding model that it began with, until it is rebuilt with another one."""

from __future__ import annotations

import asyncio
import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mem0_core import AsyncMemory, Memory
from mem0_core.cli import main
from mem0_core.components import build_component
from mem0_core.errors import ConfigError
from mem0_core.providers._local_embedder import PACKAGED_MODELS, LocalEmbedder
from mem0_core.providers.numpy_embedder import BriefNumpyEmbedder, NumpyEmbedder
from mem0_core.providers.onnx import OnnxEmbedder
from mem0_core.providers.openvino_embedder import OpenVinoEmbedder
from mem0_core.testing import HashEmbedder
from tests.support import open_memory, result_texts

MINILM, MEM0_MINILM = "all-MiniLM-L6-v2", "mem0-minilm"
needs_weights = pytest.mark.skipif(importlib.util.find_spec("mem0_models") is None, reason="mem0-models is missing")


def begin_store(folder: Path, embedder: Any, config: dict[str, Any]) -> None:
    with open_memory(folder, embedder=embedder, config=config) as memory:
        memory.add("I keep bees in the garden.", user_id="u")


@needs_weights
@pytest.mark.parametrize("embedder", [None, "local", "numpy", {"provider": "numpy", "config": {"threads": 1}}])
def test_a_memory_without_a_model_opens_a_store_with_the_model_of_its_vectors(
    tmp_path: Path, truth: dict[str, Any], embedder: Any
) -> None:
    begin_store(tmp_path, MINILM, truth)
    with Memory({"path": str(tmp_path), "durability": "process", **truth}, embedder=embedder) as memory:
        assert memory.embedder.name == MINILM
        assert result_texts(memory.search("honey", user_id="u")) == ["I keep bees in the garden."]
        assert memory.rebuild() == 1
        assert memory.embedder.name == MINILM

    async def use_async() -> tuple[str, list[str]]:
        async with AsyncMemory({"path": str(tmp_path), "durability": "process", **truth}, embedder=embedder) as memory:
            await memory.add("My bicycle has a flat tyre.", user_id="u")
            return memory.memory.embedder.name, result_texts(await memory.search("a puncture", user_id="u", limit=1))

    assert asyncio.run(use_async()) == (MINILM, ["My bicycle has a flat tyre."])


@needs_weights
def test_a_new_store_gets_the_default_model(tmp_path: Path, truth: dict[str, Any]) -> None:
    with Memory({"path": str(tmp_path), "durability": "process", **truth}) as memory:
        assert memory.embedder.name == MEM0_MINILM
        memory.add("I keep bees in the garden.", user_id="u")
        assert memory._store.embedding_space() == (MEM0_MINILM, 384)
    expected = r"embedded with 'mem0-minilm' .*, not 'all-MiniLM-L6-v2' .*rebuild"
    with open_memory(tmp_path, embedder=MINILM, config=truth) as other, pytest.raises(ConfigError, match=expected):
        other.search("honey", user_id="u")


@needs_weights
def test_rebuilding_with_a_named_model_changes_the_model_of_a_store(tmp_path: Path, truth: dict[str, Any]) -> None:
    begin_store(tmp_path, MINILM, truth)
    with open_memory(tmp_path, embedder=MEM0_MINILM, config=truth) as memory:
        with pytest.raises(ConfigError, match=r"embedded with 'all-MiniLM-L6-v2' .*, not 'mem0-minilm' .*rebuild"):
            memory.search("honey", user_id="u")
        assert memory.rebuild() == 1
        assert result_texts(memory.search("honey", user_id="u")) == ["I keep bees in the garden."]
    with Memory({"path": str(tmp_path), "durability": "process", **truth}) as memory:
        assert memory.embedder.name == MEM0_MINILM
        assert result_texts(memory.search("honey", user_id="u")) == ["I keep bees in the garden."]


@needs_weights
def test_the_command_follows_a_store_and_changes_its_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    begin_store(tmp_path, MINILM, {})

    def call(*arguments: str) -> str:
        assert main([*arguments, "--path", str(tmp_path)]) == 0
        return capsys.readouterr().out

    def held_model() -> str:
        with open_memory(tmp_path) as memory:
            space = memory._store.embedding_space()
        assert space is not None
        return space[0]

    def found() -> list[str]:
        return result_texts(json.loads(call("search", "honey", "--user", "u", "--json")))

    assert found() == ["I keep bees in the garden."]
    assert call("rebuild") == "1 memory embedded again\n"
    assert held_model() == MINILM
    assert call("rebuild", "--embedder", MEM0_MINILM) == "1 memory embedded again\n"
    assert held_model() == MEM0_MINILM
    assert found() == ["I keep bees in the garden."]


@pytest.mark.parametrize("make", [OnnxEmbedder, NumpyEmbedder, BriefNumpyEmbedder, OpenVinoEmbedder])
def test_only_an_embedder_without_a_model_follows_a_store(tmp_path: Path, make: Callable[..., LocalEmbedder]) -> None:
    followed = make(threads=1).for_space(MINILM)
    assert (type(followed), followed.name, followed.dims) == (make, MINILM, 384)
    assert followed._threads == 1
    assert followed.for_space(MEM0_MINILM).name == MEM0_MINILM
    for embedder in (make(MEM0_MINILM), make(MINILM), make(path=tmp_path), make("someone/else")):
        assert all(embedder.for_space(name) is embedder for name in PACKAGED_MODELS)
    assert make().for_space("hash-32").name == MEM0_MINILM


def test_an_embedder_of_another_class_is_kept(tmp_path: Path) -> None:
    given = HashEmbedder()
    begin_store(tmp_path, given, {})
    with open_memory(tmp_path, embedder=given) as memory:
        assert memory.embedder is given


def test_packaged_models_are_known_by_their_names() -> None:
    for name in PACKAGED_MODELS:
        embedder = build_component("embedder", name)
        assert isinstance(embedder, LocalEmbedder)
        assert embedder.name == name
