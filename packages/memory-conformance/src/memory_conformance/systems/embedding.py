"""Embeddings: without a model, in which texts that share words have similar vectors, or by a function of the caller.

``MEMORY_CONFORMANCE_EMBEDDER`` names such a function, as ``module:name`` or ``file.py:name``: it returns the vectors of
texts, of norm 1.
"""

from __future__ import annotations

import math
import os
import re
import zlib
from collections.abc import Callable, Sequence

from memory_conformance.systems.loading import load_object

_HASHED_DIMS = 256


def hash_words(text: str) -> list[float]:
    """Return the normalized vector of a text: one hashed direction per word."""
    vector = [0.0] * _HASHED_DIMS
    for word in re.findall(r"\w+", text.casefold()) or [text]:
        code = zlib.crc32(word.encode("utf-8", "replace"))
        for part in range(4):  # four places per word, so that two words rarely meet in all of them
            position = (code >> (8 * part)) & 0xFF
            vector[position] += 1.0 if (code >> (part + 3)) & 1 else -1.0
    length = math.sqrt(sum(value * value for value in vector))
    if length == 0.0:
        vector[0], length = 1.0, 1.0
    return [value / length for value in vector]


def load_embedder() -> Callable[[Sequence[str]], list[list[float]]] | None:
    """Return the function that the environment names; None if it names none."""
    spec = os.environ.get("MEMORY_CONFORMANCE_EMBEDDER")
    return load_object(spec) if spec else None


_EMBEDDER = load_embedder()
DIMS = len(_EMBEDDER(["a"])[0]) if _EMBEDDER else _HASHED_DIMS


def embed_all(texts: Sequence[str]) -> list[list[float]]:
    """Return the vectors of texts."""
    return _EMBEDDER(texts) if _EMBEDDER else [hash_words(text) for text in texts]


def embed(text: str) -> list[float]:
    """Return the vector of a text."""
    return embed_all([text])[0]
