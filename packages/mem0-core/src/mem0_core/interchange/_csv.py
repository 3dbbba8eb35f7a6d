"""CSV files whose cells no spreadsheet reads as a formula, and that read back exactly.

A spreadsheet computes a cell that begins with one of ``= + - @`` or a tab, so a stored name could run a formula on the
computer of a reader of the export (OWASP, "CSV Injection"). An apostrophe before the sign makes it text. Programs
that split lines at semicolons or tabs see further beginnings of cells, behind each separator and quote; these are
treated alike. Text that has the apostrophe already gets another one, so that `read_cell` restores it.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TextIO

_BEGINNING = r"(?:\A|(?<=[,;|\t\r\n\"]))"
_SIGN = r"(?=[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20])"  # and the full-width forms, which some programs normalize
_UNPROTECTED = re.compile(f"{_BEGINNING}('*){_SIGN}")
_PROTECTED = re.compile(f"{_BEGINNING}'('*){_SIGN}")


def protect_cell(text: str) -> str:
    """Return a text with an apostrophe before each sign that could begin a formula."""
    return _UNPROTECTED.sub(r"'\1", text)


def read_cell(text: str) -> str:
    """Return the text that `protect_cell` changed."""
    return _PROTECTED.sub(r"\1", text)


class CsvTable:
    """A writer of records as protected and quoted rows. Numbers are written as they are.

    Args:
        file: a file that is open for writing, with ``newline=""``.
        columns: keys of the records in order; other keys are left out.
    """

    def __init__(self, file: TextIO, columns: Sequence[str]) -> None:
        self._writer = csv.writer(file, quoting=csv.QUOTE_ALL)
        self._columns = columns
        self._writer.writerow(columns)

    def write(self, record: Mapping[str, Any]) -> None:
        """Write one record; a list becomes one cell, its items separated by spaces."""
        self._writer.writerow([_to_cell(record.get(column)) for column in self._columns])


def _to_cell(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        value = " ".join(map(str, value))
    return protect_cell(value) if isinstance(value, str) else value


def read_rows(lines: Iterable[str]) -> Iterator[dict[str, str]]:
    """Return the records of a file that `CsvTable` wrote; every value is a text, empty for None."""
    for row in csv.DictReader(lines):
        yield {column: read_cell(value or "") for column, value in row.items() if isinstance(column, str)}
