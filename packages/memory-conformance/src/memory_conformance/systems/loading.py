"""Load an object by its name: ``module:name`` or ``path/to/file.py:name``."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from typing import Any


def load_object(spec: str) -> Any:
    """Return the object that a spec names."""
    place, _, name = spec.rpartition(":")
    module = load_file(Path(place)) if place.endswith(".py") else importlib.import_module(place)
    return getattr(module, name)


def load_file(path: Path) -> Any:
    """Import a module from its file."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ValueError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module
