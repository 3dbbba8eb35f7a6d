"""Device, threads and reproducibility of a training program."""

from __future__ import annotations

import argparse
import os
import random
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import torch

__all__ = ["add_device_options", "prepare_device", "reduced_precision", "seed_everything"]


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
