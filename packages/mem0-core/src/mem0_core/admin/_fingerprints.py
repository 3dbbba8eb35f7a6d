"""Fingerprints of erased data, and the search for them in bytes.

A fingerprint is a window of a few bytes of a text or a vector, kept as two hashes with a random key. A rolling hash
(Karp and Rabin, 1987) finds candidates at every offset of a file, a keyed BLAKE2b digest confirms them. The text cannot
be read back from either.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

WIDTHS = (24, 12)
"""Lengths of the windows in bytes, for long and for short texts."""

_MAX_FINGERPRINTS = 20_000  # 320 kB in the record of an erasure; more are sampled evenly
_MIN_DISTINCT_BYTES = 6  # windows of padding, zeros or rules occur in every file
_CHUNK_BYTES = 4 << 20  # read at once; a rolling hash takes eight times as much memory
_FILTER_BITS = 20
_DIGEST_BYTES = 8
_KEY_BYTES = 16
_GOLDEN = 0x9E3779B97F4A7C15


class Fingerprints:
    """Windows of erased data as hashes.

    Args:
        key: random key of both hashes.
        windows: for each width the sorted rolling hashes, and the digests of the windows in the same order.
    """

    def __init__(self, key: bytes, windows: dict[int, tuple[NDArray[np.uint64], list[bytes]]]) -> None:
        self._key = key
        self._windows = windows
        self._filters = {width: _filter_table(hashes) for width, (hashes, _) in windows.items()}

    def __len__(self) -> int:
        return sum(len(hashes) for hashes, _ in self._windows.values())

    def find(self, data: bytes) -> set[bytes]:
        """Return the digests of the fingerprints that occur in `data`."""
        found: set[bytes] = set()
        array = np.frombuffer(data, dtype=np.uint8)
        for width, (hashes, digests) in self._windows.items():
            if len(hashes) and len(array) >= width:
                found |= self._find_width(data, array, width, hashes, digests)
        return found

    def find_in_file(self, path: Path) -> set[bytes]:
        """Return the digests of the fingerprints that occur in a file.

        Raises:
            OSError: The file cannot be read.
        """
        found: set[bytes] = set()
        kept = b""
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK_BYTES):
                found |= self.find(kept + chunk)
                kept = (kept + chunk)[-(WIDTHS[0] - 1) :]
        return found

    def _find_width(
        self, data: bytes, array: NDArray[np.uint8], width: int, hashes: NDArray[np.uint64], digests: list[bytes]
    ) -> set[bytes]:
        rolled = _roll(array, width, _multiplier(self._key))
        places = np.flatnonzero(self._filters[width][_filter_index(rolled)])
        candidates = rolled[places]
        at = np.minimum(np.searchsorted(hashes, candidates), len(hashes) - 1)
        places, at = places[hashes[at] == candidates], at[hashes[at] == candidates]
        if not len(places):
            return set()
        _, first = np.unique(at, return_index=True)
        return {
            digests[int(at[one])]
            for one in first
            if _digest(self._key, data[int(places[one]) : int(places[one]) + width]) == digests[int(at[one])]
        }

    def to_record(self) -> dict[str, Any]:
        """Return the fingerprints as JSON values."""
        windows = {
            str(width): [_to_text(hashes.astype("<u8").tobytes()), _to_text(b"".join(digests))]
            for width, (hashes, digests) in self._windows.items()
        }
        return {"key": _to_text(self._key), "windows": windows}

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Fingerprints:
        """Return the fingerprints that `to_record` wrote."""
        windows = {}
        for width, (hashes, digests) in record["windows"].items():
            joined = base64.b64decode(digests)
            parts = [joined[start : start + _DIGEST_BYTES] for start in range(0, len(joined), _DIGEST_BYTES)]
            windows[int(width)] = (np.frombuffer(base64.b64decode(hashes), dtype="<u8").astype(np.uint64), parts)
        return cls(base64.b64decode(record["key"]), windows)


class FingerprintBuilder:
    """Collects the windows of texts and vectors.

    Attributes:
        unsearchable: number of texts that are too short, or too uniform, for a window.
    """

    def __init__(self) -> None:
        self._key = secrets.token_bytes(_KEY_BYTES)
        self._windows: dict[int, dict[int, bytes]] = {width: {} for width in WIDTHS}
        self.unsearchable = 0

    def add(self, data: bytes) -> None:
        """Add windows at the beginning, in the middle and at the end of `data`."""
        width = next((width for width in WIDTHS if len(data) >= width), None)
        starts = () if width is None else {0, (len(data) - width) // 2, len(data) - width}
        windows = [data[start : start + (width or 0)] for start in starts]
        usable = [window for window in windows if len(set(window)) >= _MIN_DISTINCT_BYTES]
        if width is None or not usable:
            self.unsearchable += 1
            return
        for window in usable:
            rolled = _roll(np.frombuffer(window, dtype=np.uint8), width, _multiplier(self._key))
            self._windows[width].setdefault(int(rolled[0]), _digest(self._key, window))

    def add_all(self, parts: Iterable[bytes]) -> FingerprintBuilder:
        """Add the windows of many texts and vectors."""
        for part in parts:
            self.add(part)
        return self

    def build(self) -> Fingerprints:
        """Return the fingerprints; of a large number, an even sample."""
        share = max(1, -(-sum(map(len, self._windows.values())) // _MAX_FINGERPRINTS))
        windows = {}
        for width, found in self._windows.items():
            kept = sorted(list(found.items())[::share])
            windows[width] = (np.array([rolled for rolled, _ in kept], dtype=np.uint64), [one for _, one in kept])
        return Fingerprints(self._key, windows)


def _digest(key: bytes, window: bytes) -> bytes:
    return hashlib.blake2b(window, key=key, digest_size=_DIGEST_BYTES).digest()


def _multiplier(key: bytes) -> int:
    return int.from_bytes(key[:8], "little") | 1  # odd, so that no byte loses its weight


def _roll(data: NDArray[np.uint8], width: int, base: int) -> NDArray[np.uint64]:
    """Return the polynomial hash, modulo 2**64, of the window at each offset.

    Hashes of 4, 8 and 16 bytes are made from those of half the length, so a window takes five operations.
    """
    one = data.astype(np.uint64)
    powers = {length: np.uint64(pow(base, length, 1 << 64)) for length in (1, 2, 4, 8)}
    two = one[:-1] * powers[1] + one[1:]
    four = two[:-2] * powers[2] + two[2:]
    eight = four[:-4] * powers[4] + four[4:]
    if width == WIDTHS[1]:
        return eight[:-4] * powers[4] + four[8:]
    sixteen = eight[:-8] * powers[8] + eight[8:]
    return sixteen[:-8] * powers[8] + eight[16:]


def _filter_index(hashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    return (hashes * np.uint64(_GOLDEN)) >> np.uint64(64 - _FILTER_BITS)


def _filter_table(hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
    table = np.zeros(1 << _FILTER_BITS, dtype=np.bool_)
    table[_filter_index(hashes)] = True
    return table


def _to_text(data: bytes) -> str:
    return base64.b64encode(data).decode()
