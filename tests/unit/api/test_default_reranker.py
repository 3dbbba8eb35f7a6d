"""The reranker of a memory for which nobody chose one: when it reads, and how much."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from mem0_core import AsyncMemory, Memory
from mem0_core.api import factory
from mem0_core.providers.list_reranker import LocalListReranker
from mem0_core.testing import HashEmbedder

pytestmark = pytest.mark.skipif(importlib.util.find_spec("mem0_models") is None, reason="mem0-models is not installed")

SHORT = [f"On day {day} Maya fed {day} hives in Porto." for day in range(8)]
LONG = [text + " It was a day like many others, with a little wind from the sea." * 6 for text in SHORT]


class Reader:
    """A reranker that records how many texts it reads in each call."""

    def __init__(self) -> None:
        self.counts: list[int] = []

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        self.counts.append(len(texts))
        return [0.5] * len(texts)


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> Reader:
    reader = Reader()
    monkeypatch.setattr("mem0_core.api.factory.find_default_reranker", lambda: reader)
    return reader


def search(folder: Path, texts: Sequence[str], mode: str, options: dict[str, Any] | None = None, **call: Any) -> None:
    """Search texts for the days on which hives were fed; `options` are those of the memory."""
    messages = [{"role": "user", "content": text} for text in texts]

    async def run() -> None:
        async with AsyncMemory({"path": folder}, **(options or {})) as memory:
            await memory.add(messages, user_id="u", infer=False)
            await memory.search("When did Maya feed the hives?", user_id="u", **call)

    if mode == "async":
        asyncio.run(run())
        return
    with Memory({"path": folder}, **(options or {})) as memory:
        memory.add(messages, user_id="u", infer=False)
        memory.search("When did Maya feed the hives?", user_id="u", **call)


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_it_reads_the_best_five(reader: Reader, tmp_path: Path, mode: str) -> None:
    search(tmp_path, SHORT, mode)
    assert reader.counts == [5]


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_it_reads_no_long_texts(reader: Reader, tmp_path: Path, mode: str) -> None:
    search(tmp_path, LONG, mode)
    assert reader.counts == []


def test_whoever_asks_for_it_gets_more(reader: Reader, tmp_path: Path) -> None:
    search(tmp_path, LONG, "sync", rerank=True)
    assert reader.counts == [8]


def test_it_does_not_read_after_cosines_alone(reader: Reader, tmp_path: Path) -> None:
    search(tmp_path, SHORT, "sync", recipe="mem0")
    assert reader.counts == []


@pytest.mark.parametrize(
    ("options", "call"),
    [
        ({}, {"rerank": False}),
        ({"reranker": False}, {}),
        ({"embedder": HashEmbedder()}, {}),
        ({"embedder": "onnx"}, {}),
    ],
)
def test_it_can_be_turned_off_and_is_off_beside_a_named_embedder(
    reader: Reader, tmp_path: Path, options: dict[str, Any], call: dict[str, Any]
) -> None:
    search(tmp_path, SHORT, "sync", options, **call)
    assert reader.counts == []


def test_a_configuration_can_turn_it_off(reader: Reader, tmp_path: Path) -> None:
    with Memory({"path": tmp_path, "reranker": False}) as memory:
        memory.add(SHORT[0], user_id="u", infer=False)
        memory.search("When did Maya feed the hives?", user_id="u")
    assert reader.counts == []


def test_a_repeated_search_does_not_read_again(reader: Reader, tmp_path: Path) -> None:
    with Memory({"path": tmp_path}) as memory:
        memory.add([{"role": "user", "content": text} for text in SHORT], user_id="u", infer=False)
        first = memory.search("When did Maya feed the hives?", user_id="u")
        assert memory.search("When did Maya feed the hives?", user_id="u") == first
    assert reader.counts == [5]


def test_it_is_the_packaged_one_where_onnxruntime_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("onnxruntime")
    assert isinstance(factory.find_default_reranker(), LocalListReranker)
    monkeypatch.setattr("mem0_core.providers._local_embedder.has_packaged_model", lambda name: name == "mem0-reranker")
    assert repr(factory.find_default_reranker()) == "LocalReranker('mem0-reranker')"
    monkeypatch.setattr(factory, "find_spec", lambda name: None)
    assert factory.find_default_reranker() is None
