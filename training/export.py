"""Write trained weights as folders that the product reads."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from safetensors.torch import save_file

from training.bert import Bert

__all__ = ["write_folder"]

_COPIED = ("tokenizer.json", "tokenizer_config.json", "modules.json", "sentence_bert_config.json", "1_Pooling")


def write_folder(model: Bert, base: Path, folder: Path, *, half: bool, extra: dict[str, Any] | None = None) -> None:
    """Write a sentence-transformers folder.

    Args:
        base: the folder that the model began with: its tokenizer and settings are copied.
        half: store float16, which the product expands at load.
        extra: more tensors, such as the head of a cross-encoder.
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
    tensors = {**model.state_dict(), **(extra or {})}
    stored = {name: (one.half() if half else one).contiguous().cpu() for name, one in tensors.items()}
    save_file(stored, folder / "model.safetensors", {"format": "pt"})
