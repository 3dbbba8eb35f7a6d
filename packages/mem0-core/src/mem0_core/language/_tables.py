"""Readers of the data files of this package."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).parent / "data"
_ENTRY = r'^(?:\[(\w+)\]$|([\w-]+|"[^"\n]+") = (?:"""\n?([^\\]*?)"""|"([^"\\\n]*)"|(true|false))$)'


def load_tables(name: str) -> dict[str, Any]:
    """Return the content of a data file, such as ``english``.

    The files are TOML of texts without escapes and booleans. This pattern reads them in a tenth of the time of
    `tomllib`, the import of which takes longer still.
    """
    tables: dict[str, Any] = {}
    table = tables
    for match in re.finditer(_ENTRY, (_FOLDER / f"{name}.toml").read_text(encoding="utf-8"), re.MULTILINE):
        title, key, lines, line, flag = match.groups()
        if title:
            table = tables[title] = {}
        else:
            text = line if lines is None else lines
            table[key.strip('"')] = flag == "true" if text is None else text
    return tables


def load_lines(name: str) -> bytes:
    """Return the sorted lines of a data file, such as ``rare_words``, as they are."""
    return (_FOLDER / f"{name}.txt").read_bytes()
