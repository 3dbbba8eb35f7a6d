"""The report of a benchmark: rows with a value and, if there is one, a bar; as a table and as JSON."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import sqlite3
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

__all__ = ["Bar", "Report", "Row", "machine", "mean", "median", "percentile"]

_LIBRARIES = ("mem0-core", "numpy", "faiss-cpu", "onnxruntime", "tokenizers", "pydantic")


@dataclass(frozen=True, slots=True)
class Bar:
    """The bar that a value must reach."""

    sign: Literal["<=", ">=", "=="]
    limit: float

    def __str__(self) -> str:
        return f"{self.sign} {self.limit:g}"

    def holds(self, value: float) -> bool:
        return {"<=": value <= self.limit, ">=": value >= self.limit, "==": value == self.limit}[self.sign]


@dataclass(frozen=True, slots=True)
class Row:
    """One figure; `value` is None if it could not be measured, and `note` says why."""

    section: str
    name: str
    value: float | None
    unit: str = ""
    bar: Bar | None = None
    note: str = ""

    @property
    def verdict(self) -> str:
        if self.value is None:
            return "skipped"
        return "" if self.bar is None else "pass" if self.bar.holds(self.value) else "MISS"

    def cells(self) -> tuple[str, ...]:
        value = "-" if self.value is None else _digits(self.value)
        return f"  {self.name}", value, self.unit, str(self.bar or ""), self.verdict, self.note


@dataclass(slots=True)
class Report:
    """A benchmark's rows, in order of measurement, and extra data for its JSON."""

    name: str
    rows: list[Row] = field(default_factory=list)
    details: dict[str, Any] = field(default_factory=dict)
    started: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    load_before: tuple[float, ...] = field(default_factory=lambda: _load())

    def add(
        self, section: str, name: str, value: float | None, unit: str = "", bar: Bar | None = None, note: str = ""
    ) -> None:
        self.rows.append(Row(section, name, None if value is None else float(value), unit, bar, note))

    def skip(self, section: str, reason: str) -> None:
        self.add(section, "not measured", None, note=reason)

    def value(self, section: str, name: str) -> float | None:
        """Return the figure of a row, None if there is no such row or it was skipped."""
        return next((row.value for row in self.rows if (row.section, row.name) == (section, name)), None)

    def table(self) -> str:
        """Return the rows as aligned text by section, with missed bars repeated at the end."""
        sections = list(dict.fromkeys(row.section for row in self.rows))
        rows = [row for section in sections for row in self.rows if row.section == section]
        head, *lines = _aligned([("", "value", "unit", "bar", "", ""), *(row.cells() for row in rows)])
        text, section = [f"== {self.name} ==", head], ""
        for row, line in zip(rows, lines, strict=True):
            if row.section != section:
                text.append(section := row.section)
            text.append(line)
        return "\n".join([*text, self._verdict()])

    def _verdict(self) -> str:
        barred = [row for row in self.rows if row.bar is not None and row.value is not None]
        missed = [f"{row.section}: {row.name}" for row in barred if row.verdict == "MISS"]
        return f"{len(barred) - len(missed)} of {len(barred)} bars reached" + "".join(f"\nMISS {m}" for m in missed)

    def write(self, folder: Path) -> Path:
        """Write ``<name>.json`` and return its path."""
        folder.mkdir(parents=True, exist_ok=True)
        content = {
            "benchmark": self.name,
            "started": self.started,
            "ended": datetime.now(UTC).isoformat(timespec="seconds"),
            "machine": machine(),
            "load_before": self.load_before,
            "load_after": _load(),
            "rows": [{**asdict(row), "bar": str(row.bar or ""), "verdict": row.verdict} for row in self.rows],
            "details": self.details,
        }
        path = folder / f"{self.name}.json"
        path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        return path


def machine() -> dict[str, Any]:
    """Return the properties of the machine that affect the figures."""
    return {
        "system": platform.platform(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "versions": {name: _version(name) for name in _LIBRARIES},
    }


def mean(values: Sequence[float]) -> float:
    return statistics.fmean(values)


def median(values: Sequence[float]) -> float:
    return statistics.median(values)


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value below which `share` (0 to 1) of `values` are, by the nearest rank."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def _processor() -> str:
    try:
        info = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return platform.processor() or platform.machine()
    named = [line.partition(":")[2].strip() for line in info.splitlines() if line.startswith("model name")]
    return named[0] if named else platform.machine()


def _version(library: str) -> str | None:
    try:
        return importlib.metadata.version(library)
    except importlib.metadata.PackageNotFoundError:
        return None


def _load() -> tuple[float, ...]:
    return tuple(round(part, 2) for part in os.getloadavg()) if hasattr(os, "getloadavg") else ()


def _digits(value: float) -> str:
    """Format with three significant digits, and integers in full."""
    if value == int(value) and abs(value) < 1e9:
        return f"{int(value):,}"
    return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.1f}" if abs(value) >= 100 else f"{value:.3g}"


def _aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(
            cell.rjust(width) if column == 1 else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
