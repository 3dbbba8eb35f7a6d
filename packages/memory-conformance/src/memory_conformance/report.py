"""Results as JSON, as lines for a terminal, and as a Markdown table."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from memory_conformance.registry import SUITES, load_checks
from memory_conformance.runner import Report, Result


def write_json(path: Path, reports: Sequence[Report]) -> None:
    """Write all results to a file."""
    systems = [
        asdict(report) | {"summary": {name: report.count(name) for name in ("pass", "fail", "n/a")}}
        for report in reports
    ]
    data: dict[str, Any] = {"format": "memory-conformance/1", "systems": systems}
    path.write_text(json.dumps(data, indent=1, ensure_ascii=True) + "\n", encoding="utf-8")


def render_summary(report: Report) -> str:
    """Describe one system: its badge, its failures and its observations."""
    name = " ".join(filter(None, (report.system, report.version)))
    if report.error:
        return f"{name}: not run: {report.error.splitlines()[-1]}"
    lines = [f"{name}: {render_badge(report)} in {report.seconds:.1f} s ({report.cpu_seconds:.1f} s of a processor)"]
    lines += [f"  FAIL {result.check}: {result.detail}" for result in report.results if result.outcome == "fail"]
    lines += [f"  note {result.check}: {result.detail}" for result in report.results if result.observed]
    return "\n".join(lines)


def render_badge(report: Report) -> str:
    """Return the result of one system in a few words."""
    passed, failed = report.count("pass"), report.count("fail")
    return f"{passed} of {passed + failed} passed, {report.count('n/a')} not applicable"


def render_markdown(reports: Sequence[Report]) -> str:
    """Return a table with a row per suite and a column per system: passed checks of applicable ones."""
    names = [report.system for report in reports]
    rows = [["suite", *names], ["---", *("---" for _ in names)]]
    checks = load_checks()
    for suite in SUITES:
        cells = [
            render_cell([result for result in report.results if checks[result.check].suite == suite])
            for report in reports
        ]
        rows.append([suite, *cells])
    rows.append(["**all**", *(f"**{render_cell(report.results)}**" for report in reports)])
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def render_cell(results: Sequence[Result]) -> str:
    """Return "passed/applicable" with a mark, or "n/a"."""
    passed = sum(result.outcome == "pass" for result in results)
    applicable = passed + sum(result.outcome == "fail" for result in results)
    if not applicable:
        return "n/a"
    return f"{'✅' if passed == applicable else '❌'} {passed}/{applicable}"
