"""HTML report of an evaluation: one file without scripts or resources from elsewhere; every text in it is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from mem0_core.evaluation.compare import describe_ranking
from mem0_core.evaluation.figures import FIGURES

_MAX_MISSES = 50
_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;max-width:75em;margin:2em auto;padding:0 1em;color:#222;background:#fff}
table{border-collapse:collapse;margin:1em 0;display:block;overflow-x:auto}
th,td{border-bottom:1px solid #ddd;padding:.3em .7em;text-align:left;vertical-align:top}
td.n{text-align:right;white-space:nowrap}
small{color:#666} .bar{background:#dbe4ff;height:.4em} .met{color:#18794e} .unmet{color:#c0232c}
@media(prefers-color-scheme:dark){body{color:#ddd;background:#181a1b}th,td{border-color:#444}
small{color:#999}.bar{background:#3b4d8f}.met{color:#4cc38a}.unmet{color:#ff6369}}
"""
_HEAD = (
    '<!doctype html><html lang="en"><head><meta charset="utf-8">'
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
    '<meta name="viewport" content="width=device-width"><title>Memory evaluation</title>'
)


def render_report(result: Mapping[str, Any]) -> str:
    """Return the report of a result of `evaluate` as a whole HTML page."""
    questions = sum(result["questions"].values())
    lines = sum(result["transcripts"].values())
    kinds = ", ".join(f"{count} {kind}" for kind, count in result["questions"].items())
    parts = [
        f"<h1>Memory evaluation</h1><p>{questions:,} questions ({escape(kinds)}) about {lines:,} messages of"
        f" {len(result['transcripts'])} transcripts.</p>",
        *_notes(result),
        _checks(result.get("checks", ())),
        _suggestion(result.get("suggestion")),
        _comparison(result.get("comparison")),
        _section("All questions", _figure_table({name: arm["figures"] for name, arm in result["arms"].items()})),
        _ranking(result.get("ranking")),
    ]
    for kind in sorted(result["questions"]):
        by_arm = {name: arm["kinds"].get(kind, {}) for name, arm in result["arms"].items()}
        parts.append(_section(f"Questions: {kind}", _figure_table(by_arm)))
    parts += [_legend(result), *_misses(result), _receipt(result)]
    return f"{_HEAD}<style>{_STYLE}</style></head><body>{''.join(parts)}</body></html>\n"


def format_figure(name: str, figure: Mapping[str, Any] | None) -> str:
    """Return the value of a figure with its unit; a dash if it was not measured."""
    if figure is None:
        return "-"
    unit = FIGURES[name].unit if name in FIGURES else "%"
    value = float(figure["value"])
    if unit == "%":
        return f"{100 * value:.1f} %"
    return f"${value:.2f}" if unit == "$" else f"{value:,.0f}" if unit == "tokens" else f"{value:,.1f} ms"


def _interval(name: str, figure: Mapping[str, Any]) -> str:
    low, high = (format_figure(name, {"value": figure[end]}) for end in ("low", "high"))
    return f"{low} to {high}, n={figure['questions']}"


def _section(title: str, *parts: str) -> str:
    return f"<h2>{escape(title)}</h2>{''.join(parts)}" if any(parts) else ""


def _notes(result: Mapping[str, Any]) -> Iterable[str]:
    return (f"<p><i>{escape(str(note))}</i></p>" for note in result.get("notes", ()))


def _figure_table(by_arm: Mapping[str, Mapping[str, Any]]) -> str:
    names = [name for name in FIGURES if any(name in figures for figures in by_arm.values())]
    if not names:
        return ""
    head = "".join(f'<th title="{escape(FIGURES[name].title)}">{escape(name)}</th>' for name in names)
    rows = "".join(
        f"<tr><th>{escape(arm)}</th>{''.join(_cell(name, figures.get(name)) for name in names)}</tr>"
        for arm, figures in by_arm.items()
    )
    return f"<table><thead><tr><th>arm</th>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _cell(name: str, figure: Mapping[str, Any] | None) -> str:
    if figure is None:
        return '<td class="n"><small>-</small></td>'
    width = min(100.0, max(0.0, 100 * float(figure["value"]))) if FIGURES[name].unit == "%" else 0.0
    bar = f'<div class="bar" style="width:{width:.0f}%"></div>' if width else ""
    value, interval = format_figure(name, figure), _interval(name, figure)
    return f'<td class="n">{escape(value)}{bar}<small>{escape(interval)}</small></td>'


def _checks(checks: Sequence[Mapping[str, Any]]) -> str:
    rows = "".join(
        f"<tr><td>{escape(str(one['requirement']))}</td><td>{escape(str(one['arm']))}</td>"
        f'<td class="n">{escape(str(one["value"]))}</td>'
        f'<td class="{"met" if one["met"] else "unmet"}">{"met" if one["met"] else "not met"}</td></tr>'
        for one in checks
    )
    head = "<tr><th>requirement</th><th>arm</th><th>value</th><th></th></tr>"
    return _section("Requirements", f"<table>{head}{rows}</table>" if rows else "")


def _suggestion(suggestion: Mapping[str, Any] | None) -> str:
    return "" if suggestion is None else _section("Suggested settings", f"<p>{escape(str(suggestion['advice']))}</p>")


def _comparison(comparison: Mapping[str, Any] | None) -> str:
    if comparison is None:
        return ""
    rows = "".join(
        f"<tr><td>{escape(name)}</td>"
        + "".join(f'<td class="n">{escape(format_figure(name, one[side]))}</td>' for side in ("first", "second"))
        + f'<td class="n">{escape(format_figure(name, one["difference"]))}'
        f" <small>{escape(_interval(name, one['difference']))}</small></td><td>{escape(one['verdict'])}</td></tr>"
        for name, one in comparison["figures"].items()
    )
    first, second = (escape(str(comparison[side])) for side in ("first", "second"))
    head = f"<tr><th>figure</th><th>{first}</th><th>{second}</th><th>difference</th><th></th></tr>"
    return _section("Comparison", f"<table>{head}{rows}</table>")


def _ranking(ranking: Mapping[str, Any] | None) -> str:
    line = "" if ranking is None else describe_ranking(ranking)
    return f"<p>{escape(line)} (= where the interval of the difference contains 0)</p>" if line else ""


def _legend(result: Mapping[str, Any]) -> str:
    shown = {name for arm in result["arms"].values() for name in arm["figures"]}
    names = [name for name in FIGURES if name in shown]
    items = "".join(f"<li><b>{escape(name)}</b>: {escape(FIGURES[name].title)}</li>" for name in names)
    note = "<p>Intervals are the middle 95 % over questions drawn with replacement.</p>"
    return _section("Figures", f"<ul>{items}</ul>{note}")


def _receipt(result: Mapping[str, Any]) -> str:
    """Return the models, versions and digests of the result, as far as it names them."""
    receipt = result.get("receipt")
    if receipt is None:
        return ""
    lines = [f"{name} {one}" for name, one in receipt["versions"].items()]
    lines += [f"{name}: SHA-256 {digest}" for name, digest in receipt["files"].items()]
    lines.append(f"questions: SHA-256 {receipt['questions']}")
    for arm, one in result.get("models", {}).items():
        files = "".join(f"; {name}: SHA-256 {digest}" for name, digest in one["files"].items())
        lines.append(f"{arm}: embedder {one['embedder']}, reranker {one['reranker'] or 'none'}{files}")
    items = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return _section("Receipt", f"<p>{escape(receipt['made_at'])}, {escape(receipt['system'])}</p><ul>{items}</ul>")


def _misses(result: Mapping[str, Any]) -> Iterable[str]:
    """Yield for each memory the questions whose answer is not in the prompt."""
    for name, arm in result["arms"].items():
        if arm["settings"] is None:
            continue
        missed = [row for row in arm["rows"] if row["values"].get("found") == 0 or row["values"].get("correct") == 0]
        items = "".join(
            f"<li>{escape(str(row['question']))} <small>({escape(str(row['kind']))})</small></li>"
            for row in missed[:_MAX_MISSES]
        )
        more = f"<p><small>and {len(missed) - _MAX_MISSES} more</small></p>" if len(missed) > _MAX_MISSES else ""
        yield _section(f"Missed by {name}: {len(missed)}", f"<ul>{items}</ul>" if items else "", more)
