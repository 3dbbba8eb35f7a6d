"""An embedding without a model: texts that share words have similar vectors."""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Sequence

DIMS = 256


def embed(text: str) -> list[float]:
    """Return the normalized vector of a text: one hashed direction per word."""
    vector = [0.0] * DIMS
    for word in re.findall(r"\w+", text.casefold()) or [text]:
        code = zlib.crc32(word.encode("utf-8", "replace"))
        for part in range(4):  # four places per word, so that two words rarely meet in all of them
            position = (code >> (8 * part)) & 0xFF
            vector[position] += 1.0 if (code >> (part + 3)) & 1 else -1.0
    length = math.sqrt(sum(value * value for value in vector))
    if length == 0.0:
        vector[0], length = 1.0, 1.0
    return [value / length for value in vector]


def embed_all(texts: Sequence[str]) -> list[list[float]]:
    """Return the vectors of texts."""
    return [embed(text) for text in texts]
