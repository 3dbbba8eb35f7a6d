"""Rendering of command output: aligned plain text, or colored tables on a terminal that rich supports."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.util import find_spec
from io import StringIO
from typing import TextIO

from mem0_core._system.records import dataclass

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_BLANK = re.compile(r"[ \t\r\n]+")
_STYLES = {
    "ADD": "green",
    "began": "green",
    "repaired": "green",
    "UPDATE": "yellow",
    "would": "yellow",
    "found": "yellow",
    "DELETE": "red",
    "ended": "red",
}


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells that are aligned by column.

    Attributes:
        styles: one rich style for each column; columns beyond them have none.
        header: names of the columns, shown above the rows.
        is_numbered: True if the prompt may number the rows, because each shows one memory.
    """

    rows: tuple[tuple[str, ...], ...]
    styles: tuple[str, ...] = ()
    header: tuple[str, ...] = ()
    gap: int = 2
    is_numbered: bool = False


Block = str | Table
"""A line of text, or a table."""
Renderer = Callable[[Sequence[Block]], list[str]]


def choose_renderer(stream: TextIO) -> Renderer:
    """Return the renderer for a stream: colored for a terminal if rich is installed, else plain."""
    if not stream.isatty() or os.environ.get("TERM") == "dumb" or find_spec("rich") is None:
        return render_plain
    return _render_rich


def render_plain(blocks: Sequence[Block]) -> list[str]:
    """Return lines without color; all columns but the last are padded to one width."""
    lines: list[str] = []
    for block in blocks:
        lines += [show_safely(block)] if isinstance(block, str) else _align(block)
    return lines


def number_rows(blocks: Sequence[Block]) -> list[Block]:
    """Return the blocks with a first column of numbers in those tables that show memories."""
    numbered: list[Block] = []
    count = 0
    for block in blocks:
        if isinstance(block, Table) and block.is_numbered:
            rows = tuple((f"{count + n:>2}", *row) for n, row in enumerate(block.rows, 1))
            count += len(rows)
            block = replace(
                block, rows=rows, styles=("bold", *block.styles), header=block.header and ("", *block.header)
            )
        numbered.append(block)
    return numbered


def show_safely(text: str) -> str:
    """Return a text with its control and direction characters made visible, so that it cannot control a terminal."""
    return _CONTROL.sub(lambda sign: f"\\x{ord(sign[0]):02x}" if ord(sign[0]) < 256 else f"\\u{ord(sign[0]):04x}", text)


def _clean_cells(row: Sequence[str]) -> list[str]:
    return [show_safely(_BLANK.sub(" ", cell) if cell.strip() else cell) for cell in row]


def _align(table: Table) -> list[str]:
    rows = [_clean_cells(row) for row in ((table.header, *table.rows) if table.header else table.rows)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    gap = " " * table.gap
    return [gap.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _render_rich(blocks: Sequence[Block]) -> list[str]:
    """Return lines with the escape sequences of colors; tables fit the width of the terminal."""
    from rich.console import Console
    from rich.text import Text

    columns = shutil.get_terminal_size().columns
    console = Console(file=StringIO(), force_terminal=True, width=columns, highlight=False, markup=False, emoji=False)
    for block in blocks:
        if isinstance(block, str):
            first, space, rest = show_safely(block).partition(" ")
            console.print(Text.assemble((first, _STYLES.get(first, "")), space, rest), soft_wrap=True)
        else:
            console.print(_build_rich_table(block))
    assert isinstance(console.file, StringIO)
    return console.file.getvalue().splitlines()


def _build_rich_table(table: Table) -> object:
    from rich.table import Table as RichTable
    from rich.text import Text

    width = max(map(len, table.rows), default=0)
    styles = [*table.styles, *[""] * (width - len(table.styles))]
    shown = RichTable(box=None, padding=(0, table.gap, 0, 0), pad_edge=False, show_header=bool(table.header))
    for number, style in enumerate(styles):
        is_last = number == width - 1
        header = table.header[number] if table.header else ""
        shown.add_column(header, header_style="bold", style=style, no_wrap=not is_last, overflow="fold")
    for row in table.rows:
        shown.add_row(*(Text(cell, style=_STYLES.get(cell.strip().split(" ")[0], "")) for cell in _clean_cells(row)))
    return shown
