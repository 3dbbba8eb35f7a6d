"""Device, threads and reproducibility of a training program."""

from __future__ import annotations

import argparse
import os
import random
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import torch

__all__ = [
    "add_data_options",
    "add_device_options",
    "learning_rate",
    "prepare_device",
    "reduced_precision",
    "seed_everything",
]


_FINAL_RATE = 0.02  # of the peak learning rate


def add_data_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that name the model to begin with, the packs, the result, and when to stop."""
    parser.add_argument("--base", type=Path, required=True, help="sentence-transformers folder to begin with")
    parser.add_argument("--train", type=Path, required=True, help="file of training.pack")
    parser.add_argument("--valid", type=Path, required=True, help="file of training.pack")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop early; not repeatable")
    parser.add_argument("--margin", type=float, default=0.1, help="see mine_negatives")
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=1)


def learning_rate(step: int, warmup: int, progress: float) -> float:
    """Return the factor of the learning rate: a rise over `warmup` steps, and a linear fall over the run."""
    return min(1.0, step / warmup) * max(_FINAL_RATE, 1 - progress)


def add_device_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that `prepare_device` reads."""
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--threads", type=int, default=1, help="processor threads of torch")


def prepare_device(options: argparse.Namespace) -> Any:
    """Return the torch device of the options, set up so that equal runs give equal results."""
    torch.set_num_threads(options.threads)
    device = torch.device(options.device)
    if device.type == "cuda":
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # required by deterministic matrix products
        torch.use_deterministic_algorithms(True, warn_only=True)
    return device


def seed_everything(seed: int) -> random.Random:
    """Seed torch and NumPy, and return a generator with the same seed."""
    torch.manual_seed(seed)
    np.random.seed(seed)
    return random.Random(seed)


def reduced_precision(device: Any) -> AbstractContextManager[Any]:
    """Compute in bfloat16 on a GPU; processors without hardware for it are slower with it."""
    if device.type != "cuda":
        return nullcontext()
    context: AbstractContextManager[Any] = torch.autocast("cuda", dtype=torch.bfloat16)
    return context
