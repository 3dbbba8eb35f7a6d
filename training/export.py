"""Write trained weights as folders that the product reads."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file

from training.bert import Bert

__all__ = ["apply_changes", "write_changes", "write_folder"]

_COPIED = ("tokenizer.json", "tokenizer_config.json", "modules.json", "sentence_bert_config.json", "1_Pooling")


def write_folder(model: Bert, base: Path, folder: Path) -> None:
    """Write a sentence-transformers folder in float16, which the product expands at load.

    Args:
        base: the folder that the model began with: its tokenizer and settings are copied.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name in _COPIED:
        if (base / name).is_dir():
            shutil.copytree(base / name, folder / name, dirs_exist_ok=True)
        elif (base / name).exists():
            shutil.copy(base / name, folder / name)
    config = json.loads((base / "config.json").read_text(encoding="utf-8"))
    config["num_hidden_layers"] = len(model.layers)
    (folder / "config.json").write_text(json.dumps(config, indent=2), encoding="utf-8")
    stored = {name: one.half().contiguous().cpu() for name, one in model.state_dict().items()}
    save_file(stored, folder / "model.safetensors", {"format": "pt"})


def write_changes(state: Mapping[str, Any], original: Mapping[str, Any], file: Path) -> None:
    """Write by how much a state differs from the one it began with, as int8 with a scale per row.

    The rounding is a 127th of the largest change of a row, so a small file carries the weights almost exactly.
    """
    arrays: dict[str, Any] = {}
    for name, tensor in state.items():
        change = tensor.detach().float().cpu().numpy()
        if name in original:
            change = change - original[name].float().cpu().numpy()
        if change.any():
            scale = np.maximum(np.abs(change).max(axis=-1, keepdims=True), 1e-12) / 127
            arrays[name] = np.rint(change / scale).astype(np.int8)
            arrays[f"{name}:scale"] = scale.astype(np.float32)
    np.savez_compressed(file, **arrays)


def apply_changes(file: Path, original: Mapping[str, Any]) -> dict[str, Any]:
    """Return a state with the changes of a file; tensors that only the file has are taken whole."""
    state = {name: tensor.clone() for name, tensor in original.items()}
    with np.load(file) as arrays:
        for name in (one for one in arrays.files if not one.endswith(":scale")):
            change = torch.from_numpy(arrays[name].astype(np.float32) * arrays[f"{name}:scale"])
            state[name] = state[name].float() + change if name in state else change
    return state
