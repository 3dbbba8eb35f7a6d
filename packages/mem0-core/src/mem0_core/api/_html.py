"""HTML of results for notebooks. Every text in it is escaped: memories come from users and models."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from mem0_core.domain.records import AnswerDict, ContextDict, PathDict, QueryResult, SearchResult

_MAX_ROWS = 100
_CELL = 'style="text-align:left;vertical-align:top;white-space:pre-wrap"'


def _escape(text: str) -> str:
    """Return a text as HTML."""
    import html  # with a table of all entities, which only notebooks need

    return html.escape(text)


class _HtmlDict(dict[str, Any]):
    """A result that a notebook shows as HTML, and in every other respect a dict. Copies are plain dicts."""

    def __reduce__(self) -> tuple[type[dict[str, Any]], tuple[dict[str, Any]]]:
        return dict, (dict(self),)


class _SearchHtml(_HtmlDict):
    def _repr_html_(self) -> str:
        return _search(self)


class _ContextHtml(_HtmlDict):
    def _repr_html_(self) -> str:
        return _context(self)


class _AnswerHtml(_HtmlDict):
    def _repr_html_(self) -> str:
        return _answer(self)


class _QueryHtml(_HtmlDict):
    def _repr_html_(self) -> str:
        return _query(self)


class _PathHtml(_HtmlDict):
    def _repr_html_(self) -> str:
        return _path(self)


class _Paths(list[PathDict]):
    """A list of paths that a notebook shows as HTML. Copies are plain lists."""

    def _repr_html_(self) -> str:
        return _section("paths", (_path(path) for path in self[:_MAX_ROWS])) if self else "<p><i>no path</i></p>"

    def __reduce__(self) -> tuple[type[list[PathDict]], tuple[list[PathDict]]]:
        return list, (list(self),)


def show_search(result: SearchResult) -> SearchResult:
    """Return a search result that a notebook shows as tables of memories and relations."""
    return cast("SearchResult", _SearchHtml(result))


def show_context(result: ContextDict) -> ContextDict:
    """Return a context that a notebook shows as its text, tokens and memories."""
    return cast("ContextDict", _ContextHtml(result))


def show_answer(result: AnswerDict) -> AnswerDict:
    """Return an answer that a notebook shows with its proof."""
    return cast("AnswerDict", _AnswerHtml(result))


def show_query(result: QueryResult) -> QueryResult:
    """Return a graph query's result that a notebook shows as a table."""
    return cast("QueryResult", _QueryHtml(result))


def show_path(result: PathDict) -> PathDict:
    """Return a path that a notebook shows as a chain of relations."""
    return cast("PathDict", _PathHtml(result))


def show_paths(paths: Iterable[PathDict]) -> list[PathDict]:
    """Return paths that a notebook shows below each other."""
    return _Paths(paths)


# --- Parts -----------------------------------------------------------------------------------------------------------


def _search(result: Mapping[str, Any]) -> str:
    parts = [_memories(result["results"]), _relations(result["relations"])]
    return "".join([*parts, _note(result)]) if any(parts) else f"<p><i>no memories</i></p>{_note(result)}"


def _context(result: Mapping[str, Any]) -> str:
    messages = [[message["role"], message["content"]] for message in result["messages"]]
    return "".join(
        [
            f"<p><b>context</b>, {_escape(str(result['tokens']))} tokens</p>",
            f'<pre style="white-space:pre-wrap">{_escape(str(result["text"]))}</pre>' if result["text"] else "",
            _memories(result["memories"]),
            _relations(result["relations"]),
            _table(["role", "message"], messages),
        ]
    )


def _answer(result: Mapping[str, Any]) -> str:
    known = result["answer"]
    dates = " to ".join(_day(result.get(key)) or "…" for key in ("since", "until") if "since" in result)
    parts = [
        f"<p><b>{_escape(str(known))}</b> {_escape(dates)}</p>" if known is not None else "<p><i>unknown</i></p>",
        _note(result),
        _path(result["path"]) if "path" in result else "",
        _memories(result["memories"] or [result[key] for key in ("nearest",) if key in result]),
    ]
    return "".join(parts)


def _query(result: Mapping[str, Any]) -> str:
    columns = [str(column) for column in result["columns"]]
    rows = [[_value(row.get(column)) for column in columns] for row in result["rows"]]
    plan = "\n".join(map(str, result.get("plan", ())))
    return (
        (_table(columns, rows) or "<p><i>no rows</i></p>")
        + _note(result)
        + (f"<pre>{_escape(plan)}</pre>" * bool(plan))
    )


def _path(path: Mapping[str, Any]) -> str:
    chain = [f"<b>{_escape(str(path['start']))}</b>"]
    for step in path["steps"]:
        label = _escape(str(step["relationship"]).replace("_", " "))
        valid = f"<small> ({_escape(_validity(step))})</small>" if _validity(step) else ""
        far = step["destination"] if step["forward"] else step["source"]
        arrow = f"{label}{valid} →" if step["forward"] else f"← {label}{valid}"
        chain.append(f"{arrow} <b>{_escape(str(far))}</b>")
    return f"<p>{' '.join(chain)}</p>"


def _memories(memories: Sequence[Mapping[str, Any]]) -> str:
    scored = any("score" in memory for memory in memories)
    heads = ["memory", *(["score"] if scored else []), "from", "date", "valid"]
    rows = [
        [
            memory["memory"],
            *([f"{memory.get('score', 0.0):.2f}"] if scored else []),
            memory.get("actor_id") or memory.get("role") or "",
            _day(memory.get("updated_at") or memory.get("created_at")),
            _validity(memory),
        ]
        for memory in memories
    ]
    return _table(heads, rows)


def _relations(relations: Sequence[Mapping[str, Any]]) -> str:
    rows = [
        [one["source"], str(one["relationship"]).replace("_", " "), one["destination"], _validity(one)]
        for one in relations
    ]
    return _table(["source", "relation", "destination", "valid"], rows)


def _validity(thing: Mapping[str, Any]) -> str:
    first, last = _day(thing.get("valid_from")), _day(thing.get("valid_to"))
    return f"{first or '…'} to {last}" if last else f"since {first}" if first else ""


def _day(time: object) -> str:
    return str(time)[:10] if time else ""


def _value(value: object) -> str:
    if isinstance(value, Mapping):
        if {"source", "relationship", "destination"} <= value.keys():
            return f"{value['source']} -- {value['relationship']} -- {value['destination']}"
        return str(value.get("name", dict(value)))
    return ", ".join(map(_value, value)) if isinstance(value, list) else "" if value is None else str(value)


def _note(result: Mapping[str, Any]) -> str:
    return f"<p><i>{_escape(str(result['note']))}</i></p>" if result.get("note") else ""


def _section(title: str, parts: Iterable[str]) -> str:
    return f"<p><b>{_escape(title)}</b></p>{''.join(parts)}"


def _table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a table of texts, each escaped, without columns that are empty; nothing without rows."""
    if not rows:
        return ""
    shown = [index for index in range(len(heads)) if any(str(row[index]) for row in rows)]
    head = "".join(f"<th {_CELL}>{_escape(heads[index])}</th>" for index in shown)
    body = "".join(
        f"<tr>{''.join(f'<td {_CELL}>{_escape(str(row[index]))}</td>' for index in shown)}</tr>"
        for row in rows[:_MAX_ROWS]
    )
    more = f"<p><i>and {len(rows) - _MAX_ROWS} more</i></p>" if len(rows) > _MAX_ROWS else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"
