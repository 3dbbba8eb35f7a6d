"""The choice of a local chat model by its files and by installed libraries; never a server by default."""

from __future__ import annotations

import importlib.machinery
import json
import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from mem0_core import Memory
from mem0_core.errors import ConfigError, MissingExtraError
from mem0_core.providers import local
from mem0_core.providers.local import BACKENDS, create_local_chat, resolve_backend
from mem0_core.testing import HashEmbedder

Install = Callable[..., None]


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Install:
    """Says which runtimes are there, whatever is."""

    def install(*libraries: str) -> None:
        spec = importlib.machinery.ModuleSpec
        monkeypatch.setattr(local, "find_spec", lambda name: spec(name, None) if name in libraries else None)

    return install


def model(folder: Path, *files: str, architecture: str = "LlamaForCausalLM") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name in files:
        content = json.dumps({"architectures": [architecture]}) if name == "config.json" else ""
        (folder / name).write_text(content)
    return folder


ALL = ("llama_cpp", "openvino_genai", "transformers")


def test_auto_takes_the_first_that_is_there_and_installed(tmp_path: Path, installed: Install) -> None:
    gguf = model(tmp_path / "llm", "tiny.gguf") / "tiny.gguf"
    intel = model(tmp_path / "exported", "config.json", "openvino_model.xml")
    hugging_face = model(tmp_path / "hf", "config.json", "model.safetensors")
    installed(*ALL)
    assert resolve_backend("auto", tmp_path) == {"provider": "llama_cpp", "config": {"model": str(gguf)}}
    installed("openvino_genai", "transformers")
    assert resolve_backend("auto", tmp_path) == {"provider": "openvino", "config": {"model": str(intel)}}
    installed("transformers")
    assert resolve_backend("auto", tmp_path) == {"provider": "transformers", "config": {"model": str(hugging_face)}}
    assert resolve_backend("transformers", tmp_path) == resolve_backend("auto", tmp_path)


def test_what_is_there_but_cannot_run_is_told(
    tmp_path: Path, installed: Install, caplog: pytest.LogCaptureFixture
) -> None:
    model(tmp_path, "tiny.gguf")
    installed()
    with caplog.at_level(logging.WARNING, "mem0_core"):
        assert resolve_backend("auto", tmp_path) is None
    assert "pip install 'mem0-core[gguf]'" in caplog.text
    with pytest.raises(MissingExtraError, match=r"mem0-core\[gguf\]"):
        resolve_backend("gguf", tmp_path)


def test_auto_never_chooses_a_server(tmp_path: Path, installed: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-there")
    monkeypatch.setenv("MEM0_CORE_HOME", str(tmp_path / "nothing yet"))
    installed(*ALL)
    assert resolve_backend() is None
    assert resolve_backend("openai") == {"provider": "openai", "config": {}}
    assert resolve_backend("none") is None


def test_a_model_is_named_by_its_file_or_folder_too(tmp_path: Path, installed: Install) -> None:
    installed(*ALL)
    file = model(tmp_path / "a", "tiny.gguf") / "tiny.gguf"
    assert resolve_backend("auto", file) == resolve_backend("gguf", file.parent) == resolve_backend("auto", tmp_path)
    folder = model(tmp_path / "b", "config.json")
    assert resolve_backend("auto", folder) == {"provider": "transformers", "config": {"model": str(folder)}}


def test_embedders_and_rerankers_beside_it_are_not_talked_to(tmp_path: Path, installed: Install) -> None:
    installed(*ALL)
    model(tmp_path / "jina-embeddings-v5", "config.json", "modules.json", architecture="Qwen3ForCausalLM")
    model(tmp_path / "Qwen3-Reranker-0.6B", "config.json", architecture="Qwen3ForCausalLM")
    model(tmp_path / "bert", "config.json", architecture="BertModel")
    assert resolve_backend("auto", tmp_path) is None
    talks = model(tmp_path / "Qwen3-4B", "config.json", architecture="Qwen3ForCausalLM")
    assert resolve_backend("auto", tmp_path) == {"provider": "transformers", "config": {"model": str(talks)}}


def test_what_cannot_be_chosen_is_named(tmp_path: Path, installed: Install) -> None:
    installed(*ALL)
    with pytest.raises(
        ConfigError, match="backend must be one of auto, gguf, intel, transformers, openai, none, not 'ipex'"
    ):
        resolve_backend("ipex")
    for backend in ("gguf", "intel", "transformers"):
        with pytest.raises(ConfigError, match=f"there is no model for '{backend}' in "):
            resolve_backend(backend, tmp_path)
    with pytest.raises(ConfigError, match="there is no file or folder"):
        resolve_backend("auto", tmp_path / "missing")
    model(tmp_path / "a", "config.json")
    model(tmp_path / "b", "config.json")
    with pytest.raises(ConfigError, match=r"several models for 'transformers', name one: .*a, .*b"):
        resolve_backend("auto", tmp_path)
    assert set(BACKENDS) == {"auto", "gguf", "intel", "transformers", "openai", "none"}


def test_a_configuration_names_the_provider_local(tmp_path: Path, installed: Install) -> None:
    installed("llama_cpp")
    model(tmp_path / "models", "tiny.gguf")
    config = {"backend": "auto", "folder": str(tmp_path / "models"), "context": 512}
    llm = {"provider": "local", "config": config}
    with Memory({"path": str(tmp_path), "llm": llm}, embedder=HashEmbedder()) as memory:
        assert repr(memory._chat) == f"LlamaCppChat({str(tmp_path / 'models' / 'tiny.gguf')!r})"
    with pytest.raises(ConfigError, match="contxt"):
        Memory({"path": str(tmp_path), "llm": {"provider": "local", "config": {**config, "contxt": 1}}})
    installed()
    with Memory({"path": str(tmp_path), "llm": llm}, embedder=HashEmbedder()) as memory:
        added = memory.add("Ana lives in Porto.", user_id="u")
    assert [entry["memory"] for entry in added["results"]] == ["Ana lives in Porto."]  # no model: kept as it is
    assert create_local_chat("none") is None
