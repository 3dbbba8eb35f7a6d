"""Local chat models: backends, and the choice among them by ``auto``.

The choice imports and loads nothing: models are recognized by their files, runtimes by being installed.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from mem0_core._system.files import home
from mem0_core.errors import ConfigError, MissingExtraError
from mem0_core.interfaces import ChatModel
from mem0_core.providers._model_folder import read_json
from mem0_core.providers.llama_cpp import find_gguf_file
from mem0_core.providers.openvino import is_openvino_model

log = logging.getLogger(__name__)


class _Runtime(NamedTuple):
    provider: str
    factory_path: str
    library: str
    package: str
    extra: str


_RUNTIMES = {
    "gguf": _Runtime(
        "llama_cpp", "mem0_core.providers.llama_cpp:LlamaCppChat", "llama_cpp", "llama-cpp-python", "gguf"
    ),
    "intel": _Runtime(
        "openvino", "mem0_core.providers.openvino:OpenVinoChat", "openvino_genai", "openvino-genai", "openvino"
    ),
    "transformers": _Runtime(
        "transformers",
        "mem0_core.providers.transformers:TransformersChat",
        "transformers",
        "transformers",
        "transformers",
    ),
}
"""In the order in which ``auto`` tries them; GGUF needs the least and runs everywhere."""

BACKENDS = ("auto", *_RUNTIMES, "openai", "none")


def default_models_folder() -> Path:
    """Return the default folder of models: ``models`` in the data folder."""
    return home() / "models"


def resolve_backend(backend: str = "auto", folder: str | os.PathLike[str] | None = None) -> dict[str, Any] | None:
    """Choose a chat model; return its ``llm`` configuration, or None for no model.

    Args:
        backend: ``gguf``, ``intel`` (a model in OpenVINO's format) or ``transformers`` for a model in `folder`;
            ``openai`` for the server that ``$OPENAI_BASE_URL`` and ``$OPENAI_API_KEY`` name; ``none`` for no model;
            ``auto`` for the first local backend that has a model and an installed library, else none. It never chooses
            a server, so no data leaves this machine by default.
        folder: a model (a ``.gguf`` file, a folder), or a folder of models, one level deep; default
            `default_models_folder`.

    Raises:
        ConfigError: the backend is unknown, or has no model, or several.
        MissingExtraError: the backend's library is not installed.
    """
    if backend not in BACKENDS:
        raise ConfigError(f"backend must be one of {', '.join(BACKENDS)}, not {backend!r}")
    if backend in ("none", "openai"):
        return None if backend == "none" else {"provider": "openai", "config": {}}
    location = default_models_folder() if folder is None else Path(folder).expanduser()
    if backend != "auto":
        model = _find_model(backend, location)
        if model is None:
            raise ConfigError(f"backend: there is no model for {backend!r} in {str(location)!r}")
        if not _is_installed(backend):
            raise MissingExtraError(_RUNTIMES[backend].package, _RUNTIMES[backend].extra)
        return _build_spec(backend, model)
    if folder is not None and not location.exists():
        raise ConfigError(f"folder: there is no file or folder {str(location)!r}")
    for name, runtime in _RUNTIMES.items():
        if (model := _find_model(name, location)) is None:
            continue
        if _is_installed(name):
            return _build_spec(name, model)
        log.warning("%s is not used: %s", model, MissingExtraError(runtime.package, runtime.extra))
    return None


def create_local_chat(
    backend: str = "auto", *, folder: str | os.PathLike[str] | None = None, **options: Any
) -> ChatModel | None:
    """Create the chat model that `resolve_backend` chooses; this is the provider ``local`` of a configuration.

    ``{"provider": "local", "config": {"backend": "auto", "folder": "/models"}}``; other keys are passed to the model as
    `options`.
    """
    spec = resolve_backend(backend, folder)
    if spec is None:
        return None
    runtimes = {runtime.provider: runtime.factory_path for runtime in _RUNTIMES.values()}
    target = runtimes.get(spec["provider"], "mem0_core.providers.openai:OpenAIChat")
    module, _, name = target.partition(":")
    model: ChatModel = getattr(import_module(module), name)(**{**spec["config"], **options})
    return model


def _build_spec(backend: str, model: Path) -> dict[str, Any]:
    return {"provider": _RUNTIMES[backend].provider, "config": {"model": str(model)}}


def _is_installed(backend: str) -> bool:
    return find_spec(_RUNTIMES[backend].library) is not None


def _find_model(backend: str, location: Path) -> Path | None:
    """Find the model for a backend.

    Raises:
        ConfigError: there are several models.
    """
    found = list(_find_models(backend, location))
    if len(found) > 1:
        raise ConfigError(f"folder: there are several models for {backend!r}, name one: {', '.join(map(str, found))}")
    return found[0] if found else None


def _find_models(backend: str, location: Path) -> Iterator[Path]:
    if location.is_file():
        if backend == "gguf" and location.suffix == ".gguf":
            yield location
        return
    folders = [location, *sorted(path for path in _list_folder(location) if path.is_dir())]
    for folder in folders:
        if backend == "gguf":
            if any(folder.glob("*.gguf")):
                yield find_gguf_file(folder)
        elif _is_chat_model(folder) and is_openvino_model(folder) == (backend == "intel"):
            yield folder


def _list_folder(location: Path) -> list[Path]:
    return list(location.iterdir()) if location.is_dir() else []


def _is_chat_model(folder: Path) -> bool:
    """Return True for a causal language model that is neither an embedder nor a reranker."""
    config: Mapping[str, Any] = read_json(folder / "config.json")
    causal = any(name.endswith("ForCausalLM") for name in config.get("architectures") or [])
    return causal and not (folder / "modules.json").exists() and "reranker" not in folder.name.lower()
