"""Models of frameworks: an installed adapter turns them into ours, told by the modules of their classes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mem0_core import ConfigError, Memory
from mem0_core.components import _adapters
from mem0_core.testing import HashEmbedder

FRAMEWORK = '''
class Model:
    """Has methods of our ports' names, and means other things by them."""
    def complete(self, prompt): raise AssertionError("not ours")
    def score(self, pairs): raise AssertionError("not ours")
class Embedder:
    def embed_documents(self, texts): ...
class VectorStore: ...
'''
ADAPTER = """
from mem0_core import ConfigError
from mem0_core.interfaces import Reply
from mem0_core.stores.vector.faiss import FaissIndex
from mem0_core.testing import HashEmbedder, ScriptedChat

class Chat(ScriptedChat):
    def __init__(self, model):
        super().__init__(lambda task, messages: {"facts": ["Likes tea"]})
        self.model = model

def adapt(kind, instance, **wiring):
    match kind, type(instance).__mro__[-2].__name__:
        case "llm", "Model":
            return Chat(instance)
        case "embedder", "Embedder":
            return HashEmbedder(name="theirs")
        case "vector_store", "VectorStore":
            return FaissIndex(**wiring)
    raise ConfigError(f"{kind}: {instance!r} is none of framework's")
"""


@pytest.fixture
def framework(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A framework that knows nothing of us, with an adapter installed beside it, and a package built on it."""
    site = tmp_path / "site"
    (site / "their_framework").mkdir(parents=True)
    (site / "their_framework" / "models.py").write_text(FRAMEWORK)
    (site / "their_adapter.py").write_text(ADAPTER)
    (site / "their_vendor.py").write_text(
        "from their_framework import models\nclass VendorModel(models.Model): pass\nclass Plain: pass\n"
    )
    metadata = site / "their_adapter-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: their-adapter\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text("[mem0_core.adapters]\ntheir_framework = their_adapter:adapt\n")
    monkeypatch.syspath_prepend(site)
    _adapters.cache_clear()
    import their_framework.models  # type: ignore[import-not-found]

    yield their_framework.models
    _adapters.cache_clear()
    for name in [name for name in sys.modules if name.startswith("their_")]:
        del sys.modules[name]


def open_with(tmp_path: Path, **parts: Any) -> Memory:
    return Memory({"path": str(tmp_path / "data"), "durability": "process"}, **parts)


def test_a_frameworks_models_serve_where_its_adapter_is_installed(tmp_path: Path, framework: Any) -> None:
    import their_vendor  # type: ignore[import-not-found]

    model = their_vendor.VendorModel()
    with open_with(tmp_path, llm=model, embedder=framework.Embedder()) as memory:
        assert memory._chat is not None
        assert memory._chat.model is model  # type: ignore[attr-defined]
        assert memory._embedder.name == "theirs"
    config = {"path": str(tmp_path / "data"), "llm": model, "embedder": framework.Embedder()}
    with Memory.from_config(config) as memory:
        assert memory._embedder.name == "theirs"


def test_a_frameworks_vector_store_is_made_to_follow_the_truth(tmp_path: Path, framework: Any) -> None:
    with open_with(tmp_path, embedder=HashEmbedder(), index=framework.VectorStore()) as memory:
        memory.add("I like tea", user_id="u")
        assert memory.search("tea", user_id="u")["results"][0]["memory"] == "I like tea"


def test_what_the_adapter_refuses_is_refused_and_nothing_stays_open(tmp_path: Path, framework: Any) -> None:
    with pytest.raises(ConfigError, match="embedder"):
        open_with(tmp_path, embedder=framework.Model())
    opened: list[Any] = []

    class Store:
        def __getattr__(self, name: str) -> Any:
            return lambda *args: opened.append(name)

    with pytest.raises(ConfigError, match="vector_store"):
        open_with(tmp_path, embedder=HashEmbedder(), store=Store(), index=framework.Model())
    assert opened[-1] == "close"


def test_without_an_adapter_the_error_names_the_port_and_the_packages(tmp_path: Path, framework: Any) -> None:
    import their_vendor

    with pytest.raises(ConfigError, match=r"no method 'complete'.*mem0-langchain"):
        open_with(tmp_path, llm=their_vendor.Plain())


def test_ours_are_taken_as_they_are_and_no_adapter_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise AssertionError("looked for adapters")

    monkeypatch.setattr("mem0_core.components._adapters", refuse)
    embedder = HashEmbedder()
    with open_with(tmp_path, embedder=embedder) as memory:
        assert memory._embedder is embedder
