"""Formatters: convert the result of a method to lines and tables."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from mem0_core.cli._ids import shorten_id
from mem0_core.cli._render import Block, Table

_PLURALS = {"memory": "memories", "entity": "entities", "history row": "history rows"}
_RELATION_STYLES = ("", "magenta", "")


def pluralize(count: int, noun: str) -> str:
    """Return a number with its noun in the singular or the plural: "1 memory", "2 memories"."""
    return f"{count:,} {noun if count == 1 else _PLURALS.get(noun, f'{noun}s')}"


def _build_table(rows: Sequence[tuple[str, ...]], *styles: str, **options: Any) -> list[Block]:
    return [Table(tuple(rows), styles, **options)] if rows else []


def format_add(result: Any) -> list[Block]:
    from mem0_core.domain.records import list_added  # loads what `--version` does not need

    rows = [(entry["event"], shorten_id(entry["id"]), entry["memory"]) for entry in list_added(result)]
    blocks = _build_table(rows, "", "dim", is_numbered=True)
    blocks += _format_relation_changes(result["relations"])
    blocks += [f"skipped: {entry['reason']}" for entry in result["skipped"]]
    return blocks + _format_pending(result) or ["no facts found"]


def _format_relation_changes(relations: Any) -> list[Block]:
    began: list[Block] = [f"began   {relation}" for relation in relations["added_entities"]]
    return began + [f"ended   {relation}" for relation in relations["deleted_entities"]]


def _format_pending(result: Any) -> list[Block]:
    return [f"lagging: {entry['store']}, {entry['reason']}" for entry in result.get("pending", ())]


def format_search(result: Any) -> list[Block]:
    rows = []
    for entry in result["results"]:
        score = (f"{entry['score']:.2f}",) if "score" in entry else ()
        rows.append((*score, shorten_id(entry["id"]), entry["created_at"][:10], entry["memory"]))
    has_scores = bool(rows) and len(rows[0]) == 4
    blocks = _build_table(rows, *(["cyan"] if has_scores else []), "dim", "dim", is_numbered=True)
    return blocks + _build_relation_table(result["relations"]) or ["no memories found"]


def _build_relation_table(relations: Any) -> list[Block]:
    return _build_table([_split_relation(relation) for relation in relations], *_RELATION_STYLES, gap=1)


def _split_relation(relation: Any) -> tuple[str, ...]:
    return relation["source"], f"-- {relation['relationship']} --", relation["destination"]


def format_relations(result: Any) -> list[Block]:
    rows = [
        (relation["valid_from"][:10], "..", (relation["valid_to"] or "now")[:10], "", *_split_relation(relation))
        for relation in result
    ]
    return _build_table(rows, "dim", "dim", "dim", "", *_RELATION_STYLES, gap=1) or ["no relations"]


def format_answer(result: Any) -> list[Block]:
    """Format the answer, the time in which it holds, and the memories that prove it."""
    if result["answer"] is None:
        nearest = f"; nearest: {result['nearest']['memory']}" if "nearest" in result else ""
        return [f"unknown ({result['note']}{nearest})"]
    dates = [f"{word} {result[word][:10]}" for word in ("since", "until") if word in result]
    details = ", ".join([*dates, f"confidence {result['confidence']:.2f}"])
    rows = [
        ("", shorten_id(memory["id"]), memory["created_at"][:10], memory["memory"]) for memory in result["memories"]
    ]
    return [f"{result['answer']}  ({details})", *_build_table(rows, "", "dim", "dim", gap=2, is_numbered=True)]


def format_context(result: Any) -> list[Block]:
    return format_text(result["text"]) or ["no memories found"]


def format_script(result: Any) -> list[Block]:
    return format_text(result["message"])


def format_text(text: str) -> list[Block]:
    """Format a text of several lines."""
    return list(text.splitlines())


def format_missing(result: Any) -> list[Block]:
    return [f"{result['reason']}: {result['detail']}"]


def format_paths(result: Any) -> list[Block]:
    rows = [(f"{path['score']:.2f}", path["end"], f"({_format_path(path)})") for path in result]
    return _build_table(rows, "cyan", "bold", "dim") or ["no path"]


def format_rows(result: Any) -> list[Block]:
    if "plan" in result:
        return [str(line) for line in result["plan"]]
    rows = [tuple(_format_cell(row[column]) for column in result["columns"]) for row in result["rows"]]
    blocks = _build_table(rows, header=tuple(result["columns"])) or ["no rows"]
    return [*blocks, *([result["note"]] if "note" in result else [])]


def _format_cell(value: Any) -> str:
    if isinstance(value, list):
        return "; ".join(map(_format_cell, value))
    if isinstance(value, dict) and "nodes" in value:
        return "; ".join(map(_format_relation, value["relations"])) or _format_cell(value["nodes"])
    if isinstance(value, dict):
        return str(value["name"]) if "name" in value else _format_relation(value)
    return "-" if value is None else str(value)


def _format_path(path: Any) -> str:
    text = str(path["start"])
    for step in path["steps"]:
        arrow, end = ("-[{}]->", "destination") if step["forward"] else ("<-[{}]-", "source")
        text += f" {arrow.format(step['relationship'])} {step[end]}"
    return text


def _format_relation(relation: Any) -> str:
    return f"{relation['source']} -- {relation['relationship']} -- {relation['destination']}"


def format_history(result: Any) -> list[Block]:
    rows = [
        (
            _format_time(row["updated_at"] or row["created_at"]),
            row["event"],
            f"{row['old_memory'] or '-'} -> {row['new_memory'] or '-'}",
        )
        for row in result
    ]
    return _build_table(rows, "dim") or ["no history"]


def _format_time(text: str | None) -> str:
    """Return the day and the minute of an ISO 8601 time."""
    return re.sub(r"^(\d{4}-\d\d-\d\d)T(\d\d:\d\d).*", r"\1 \2", text or "-")


def format_receipt(result: Any) -> list[Block]:
    """Return a receipt as lines of JSON: it is a document to keep."""
    return list(json.dumps(result, indent=2, ensure_ascii=False).splitlines())


def format_counts(result: Any) -> list[Block]:
    """Format the counts of a retraction, one per line."""
    counts = [f"{name.replace('_', ' ')}: {count}" for name, count in result.items() if name != "pending"]
    return [*counts, *_format_pending(result)]


def format_verification(result: Any) -> list[Block]:
    """Format the digests of a verification, and the items that differ or cannot be derived."""
    compared = ", ".join(f"{count} {part}" for part, count in result["counts"].items()) or "nothing"
    lines: list[Block] = [f"compared: {compared}", f"stored:   {result['digest']}", f"derived:  {result['derived']}"]
    for kind, title in (("differences", "differs"), ("underivable", "cannot be derived")):
        lines += [f"{title}: {one['part']}: {one['item']}: {one['reason']}" for one in result[kind]]
    return lines


def format_message(result: Any) -> list[Block]:
    return [result["message"], *_format_pending(result)]


def format_nothing(result: Any) -> list[Block]:
    return []


def format_memory(result: Any) -> list[Block]:
    """Format one memory with all its fields."""
    shown = {key: value for key, value in result.items() if key not in ("id", "memory") and value not in (None, {})}
    lines: list[Block] = [f"{result['id']}  {first}" for first in (result["memory"].splitlines() or [""])[:1]]
    lines += [f"  {line}" for line in result["memory"].splitlines()[1:]]
    return lines + [f"  {key}: {value}" for key, value in shown.items()]


def format_jobs(result: Any) -> list[Block]:
    rows = [(job["id"], job["state"], job["kind"], job["error"] or "") for job in result]
    return _build_table(rows, "dim", "yellow") or ["no queued jobs"]


def format_adoption(result: Any) -> list[Block]:
    lines: list[Block] = []
    for one in result:
        vectors = one["vectors"]
        way = "moved" if vectors["moved"] else f"made again by {one['embedder']}"
        told = f"; their vectors were {way}: {vectors['reason']}" if one["added"] else ""
        collections = pluralize(one["conversations"], "collection")
        lines += [
            f"{one['folder']}: {pluralize(one['messages'], 'memory')} in {collections}",
            f"copied: {pluralize(one['added'], 'memory')} and {pluralize(one['history'], 'history row')}{told}",
            f"not copied: {one['known']} already known, {one['deleted']} deleted here since",
        ]
        lines += [f"skipped: {entry['item']} {entry['reason']}" for entry in one["skipped"]]
        lines.append(f"{one['folder']} is unchanged")
    return lines


def format_import(result: Any) -> list[Block]:
    counts = f"{result['added']} added, {result['known']} already known"
    if result["jobs"]:
        counts += f", {result['jobs']} queued for the model"
    if result["resumed"]:
        counts += f", {result['resumed']} imported before"
    if "history" in result:
        counts += f", {pluralize(result['history'], 'history row')}, {result['deleted']} deleted here since"
        if result["adopted_messages"]:
            counts += f", with {pluralize(result['adopted_messages'], 'message')}"
        memories = f"{pluralize(result['messages'], 'memory')} in {pluralize(result['conversations'], 'collection')}"
        return [f"{result['format']}: {memories}: {counts}"]
    messages = f"{pluralize(result['messages'], 'message')} in {pluralize(result['conversations'], 'conversation')}"
    reasons: dict[str, int] = {}
    for entry in result["skipped"]:
        reason = entry["reason"].partition(" ")[2] if entry["reason"].startswith("messages[") else entry["reason"]
        reasons[reason] = reasons.get(reason, 0) + 1
    skipped = [f"skipped: {count} {reason}" for reason, count in reasons.items()]
    return [f"{result['format']}: {messages}: {counts}", *skipped, *_format_pending(result)]


def format_matches(result: Any) -> list[Block]:
    """Format the result of a change by query; or one memory, or a message."""
    if "results" not in result:
        return format_message(result) if "message" in result else format_memory(result)
    would = "would " if result["dry_run"] else ""
    rows = []
    for entry in result["results"]:
        before = entry.get("previous_memory")
        change = f"{before} -> {entry['memory']}" if before is not None else entry["memory"]
        rows.append((f"{would}{entry['event']}", shorten_id(entry["id"]), change))
    blocks = _build_table(rows, "", "dim", is_numbered=True)
    blocks += [f"skipped: {entry['reason']}" for entry in result["skipped"]]
    return blocks + _format_relation_changes(result["relations"]) + _format_pending(result) or ["no matches"]


def format_merge_plan(result: Any) -> list[Block]:
    action = "would merge" if result["dry_run"] else "merged"
    lines: list[Block] = [f"{_format_merge(one)} ({action}: {'; '.join(one['reasons'])})" for one in result["merges"]]
    lines += [
        f"maybe one: {' and '.join(one['names'])} ({one['score']:.2f}: {one['reason']})" for one in result["same_as"]
    ]
    lines += [f"distinct: {' and '.join(one['names'])}: {one['reason']}" for one in result["apart"]]
    return lines + _format_pending(result) or ["nothing to merge"]


def format_merges(result: Any) -> list[Block]:
    listed = result if isinstance(result, list) else [result]
    return [_format_merge(one) + (f" (reverted {one['undone'][:10]})" if one["undone"] else "") for one in listed] or [
        "no merges"
    ]


def _format_merge(one: Any) -> str:
    label = f"{one['id']}  " if one["id"] else ""
    score = f", {one['score']:.2f}" if one["score"] is not None else ""
    relations = pluralize(one["relations"], "relation")
    return f"{label}{', '.join(one['merged'])} => {one['name']}  [{one['kind']}{score}, {relations}]"


def format_keys(result: Any) -> list[Block]:
    """Format the keys of a server; a new key is shown this once."""
    lines: list[Block] = [_format_key(one) for one in result]
    for new in (one["key"] for one in result if "key" in one):
        lines += [f"  {new}", "  keep it: it is not stored, and cannot be shown again"]
    return lines or ["no keys"]


def _format_key(one: Any) -> str:
    bound = [f"{axis} {one[f'{axis}_id']}" for axis in ("user", "agent", "run") if f"{axis}_id" in one]
    rights = "reads" if one["is_read_only"] else "reads and changes"
    return f"{one['id']}  {one['name']}  [{rights} {', '.join(bound) or 'everything'}]"


def format_export(result: Any) -> list[Block]:
    counts = ", ".join(pluralize(count, kind) for kind, count in result["written"].items()) or "nothing"
    return [f"{' and '.join(result['files'])}: {counts}"]


def format_backup(result: Any) -> list[Block]:
    return [f"{result['path']}: {pluralize(result['memories'], 'memory')}, {pluralize(result['bytes'], 'byte')}"]


def format_migration(result: Any) -> list[Block]:
    if "message" in result:
        return format_message(result)
    if result["already"]:
        return ["already migrated; nothing to do"]
    counts: list[Block] = [
        f"{digest['count']:>10} {name}" for name, digest in result["digests"].items() if digest["count"]
    ]
    return [*counts, "copied and verified; applications must now open the new store"]


def format_restore(result: Any) -> list[Block]:
    return [f"{result['path']}: {pluralize(result['restored'], 'memory')} restored"]


def format_stats(result: Any) -> list[Block]:
    return list(_format_tree(result))


def _format_tree(value: Any, depth: int = 0) -> Iterator[str]:
    for key, below in value.items():
        if isinstance(below, dict):
            if below:
                yield f"{'  ' * depth}{key}"
                yield from _format_tree(below, depth + 1)
        else:
            yield f"{'  ' * depth}{key}: {'-' if below is None else below}"


_SHOWN_FIGURES = ("hit@5", "found", "precision", "stale_above_fresh", "refused", "correct", "tokens", "milliseconds")


def format_evaluation(result: Any) -> list[Block]:
    """Return the main figures of each arm, their order, the requirements, and the files of the report."""
    from mem0_core.evaluation import describe_ranking, format_figure

    arms = result["arms"]
    names = [name for name in _SHOWN_FIGURES if any(name in arm["figures"] for arm in arms.values())]
    rows = tuple(
        (label, *(format_figure(name, arm["figures"].get(name)) for name in names)) for label, arm in arms.items()
    )
    checks = (
        f"{'met' if check['met'] else 'not met'}: {check['requirement']} ({check['arm']})" for check in result["checks"]
    )
    advice = [result["suggestion"]["advice"]] if "suggestion" in result else []
    order = filter(None, [describe_ranking(result["ranking"])])
    compared = _format_comparison(result.get("comparison"))
    blocks = [Table(rows, header=("arm", *names)), *order, *compared, *checks, *advice]
    return [*blocks, f"report: {result['report']} and {result['data']}"]


def _format_comparison(comparison: Any) -> list[Block]:
    """Return the figures of a comparison that differ."""
    from mem0_core.evaluation import format_figure

    if comparison is None:
        return []
    rows = tuple(
        (name, *(format_figure(name, one[side]) for side in ("first", "second", "difference")), one["verdict"])
        for name, one in comparison["figures"].items()
        if one["verdict"] in ("better", "worse")
    )
    if not rows:
        return [f"no difference between {comparison['first']} and {comparison['second']}"]
    return [Table(rows, header=("figure", comparison["first"], comparison["second"], "difference", ""))]


def format_diagnosis(result: Any) -> list[Block]:
    lines: list[Block] = [f"checked: {', '.join(result['checked'])}"]
    for finding in result["findings"]:
        state = "repaired" if finding["mended"] else "found"
        action = f" -> {finding['action']}" if finding["action"] else ""
        lines.append(f"{state}: {finding['where']}: {finding['what']}{action}")
    return [*lines, *(["no problems found"] if not result["findings"] else [])]
