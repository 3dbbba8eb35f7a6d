"""Which chat model of this machine serves: the backends of seed 003, part 14, and how ``auto`` chooses among them.

Nothing is imported or loaded to choose: a model is known by its files, a runtime by being installed.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from mem0_core.errors import ConfigError, MissingExtra
from mem0_core.files import home
from mem0_core.models.folder import read_json
from mem0_core.models.llama_cpp import gguf_file
from mem0_core.models.openvino import is_exported
from mem0_core.ports import ChatModel

__all__ = ["BACKENDS", "local_chat", "models_folder", "resolve"]

log = logging.getLogger(__name__)


class _Runtime(NamedTuple):
    provider: str
    maker: str
    library: str
    package: str
    extra: str


_RUNTIMES = {
    "gguf": _Runtime("llama_cpp", "mem0_core.models.llama_cpp:LlamaCppChat", "llama_cpp", "llama-cpp-python", "gguf"),
    "intel": _Runtime(
        "openvino", "mem0_core.models.openvino:OpenVinoChat", "openvino_genai", "openvino-genai", "openvino"
    ),
    "transformers": _Runtime(
        "transformers", "mem0_core.models.transformers:TransformersChat", "transformers", "transformers", "transformers"
    ),
}
"""In the order ``auto`` tries them: a GGUF needs least and runs everywhere."""

BACKENDS = ("auto", *_RUNTIMES, "openai", "none")


def models_folder() -> Path:
    """Where models are looked for unless told otherwise: ``models`` in the folder of all data."""
    return home() / "models"


def resolve(backend: str = "auto", folder: str | os.PathLike[str] | None = None) -> dict[str, Any] | None:
    """The provider of a chat model, as ``llm`` in a configuration has it; None for no model.

    Args:
        backend: ``gguf``, ``intel`` (a model in OpenVINO's format) or ``transformers`` for a model in `folder`;
            ``openai`` for the server that ``$OPENAI_BASE_URL`` and ``$OPENAI_API_KEY`` name; ``none`` for no model;
            ``auto`` for the first of the local ones that is there and whose library is installed, else none. It never
            chooses a server: nothing leaves this machine unless somebody says so.
        folder: a model (a ``.gguf`` file, a folder), or a folder of models, one level deep; default `models_folder`.

    Raises:
        ConfigError: no such backend, no model for it, or several.
        MissingExtra: its library is not installed.
    """
    if backend not in BACKENDS:
        raise ConfigError(f"backend: {backend!r} is none of {', '.join(BACKENDS)}")
    if backend in ("none", "openai"):
        return None if backend == "none" else {"provider": "openai", "config": {}}
    place = models_folder() if folder is None else Path(folder).expanduser()
    if backend != "auto":
        model = _model(backend, place)
        if model is None:
            raise ConfigError(f"backend: there is no model for {backend!r} in {str(place)!r}")
        if not _installed(backend):
            raise MissingExtra(_RUNTIMES[backend].package, _RUNTIMES[backend].extra)
        return _spec(backend, model)
    if folder is not None and not place.exists():
        raise ConfigError(f"folder: there is no file or folder {str(place)!r}")
    for name, runtime in _RUNTIMES.items():
        if (model := _model(name, place)) is None:
            continue
        if _installed(name):
            return _spec(name, model)
        log.warning("%s is not used: %s", model, MissingExtra(runtime.package, runtime.extra))
    return None


def local_chat(
    backend: str = "auto", *, folder: str | os.PathLike[str] | None = None, **options: Any
) -> ChatModel | None:
    """The chat model that `resolve` finds, built with `options`: the provider ``local``, in a configuration.

    ``{"provider": "local", "config": {"backend": "auto", "folder": "/models"}}``; its other keys go to the model.
    """
    spec = resolve(backend, folder)
    if spec is None:
        return None
    runtimes = {runtime.provider: runtime.maker for runtime in _RUNTIMES.values()}
    target = runtimes.get(spec["provider"], "mem0_core.models.openai:OpenAIChat")
    module, _, name = target.partition(":")
    model: ChatModel = getattr(import_module(module), name)(**{**spec["config"], **options})
    return model


def _spec(backend: str, model: Path) -> dict[str, Any]:
    return {"provider": _RUNTIMES[backend].provider, "config": {"model": str(model)}}


def _installed(backend: str) -> bool:
    return find_spec(_RUNTIMES[backend].library) is not None


def _model(backend: str, place: Path) -> Path | None:
    """The one model for a backend.

    Raises:
        ConfigError: there are several.
    """
    found = list(_models(backend, place))
    if len(found) > 1:
        raise ConfigError(f"folder: there are several models for {backend!r}, name one: {', '.join(map(str, found))}")
    return found[0] if found else None


def _models(backend: str, place: Path) -> Iterator[Path]:
    if place.is_file():
        if backend == "gguf" and place.suffix == ".gguf":
            yield place
        return
    folders = [place, *sorted(path for path in _children(place) if path.is_dir())]
    for folder in folders:
        if backend == "gguf":
            if any(folder.glob("*.gguf")):
                yield gguf_file(folder)
        elif _talks(folder) and is_exported(folder) == (backend == "intel"):
            yield folder


def _children(place: Path) -> list[Path]:
    return list(place.iterdir()) if place.is_dir() else []


def _talks(folder: Path) -> bool:
    """Whether a folder holds a language model to talk to: no embedder, and no reranker, which may be causal too."""
    config: Mapping[str, Any] = read_json(folder / "config.json")
    causal = any(name.endswith("ForCausalLM") for name in config.get("architectures") or [])
    return causal and not (folder / "modules.json").exists() and "reranker" not in folder.name.lower()
