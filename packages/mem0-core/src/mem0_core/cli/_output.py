"""Formatters: convert the result of a method to readable lines."""

from __future__ import annotations

from typing import Any

__all__ = [
    "format_add",
    "format_answer",
    "format_backup",
    "format_diagnosis",
    "format_export",
    "format_history",
    "format_import",
    "format_jobs",
    "format_matches",
    "format_memory",
    "format_merge_plan",
    "format_merges",
    "format_message",
    "format_migration",
    "format_nothing",
    "format_paths",
    "format_relations",
    "format_restore",
    "format_rows",
    "format_search",
    "format_stats",
]


def format_add(result: Any) -> list[str]:
    done = [f"{entry['event']:<6}  {entry['id']}  {entry['memory']}" for entry in result["results"]]
    done += _format_relation_changes(result["relations"])
    done += [f"skipped: {entry['reason']}" for entry in result["skipped"]]
    return done + _format_pending(result) or ["no facts found"]


def _format_relation_changes(relations: Any) -> list[str]:
    began = [f"began   {relation}" for relation in relations["added_entities"]]
    return began + [f"ended   {relation}" for relation in relations["deleted_entities"]]


def _format_pending(result: Any) -> list[str]:
    return [f"lagging: {entry['store']}, {entry['reason']}" for entry in result.get("pending", ())]


def format_search(result: Any) -> list[str]:
    lines = [
        f"{entry['score']:.2f}  {entry['id']}  {entry['memory']}"
        if "score" in entry
        else f"{entry['id']}  {entry['memory']}"
        for entry in result["results"]
    ]
    return lines + [_format_relation(relation) for relation in result["relations"]] or ["no memories found"]


def format_relations(result: Any) -> list[str]:
    return [
        f"{relation['valid_from'][:10]} .. {(relation['valid_to'] or 'now')[:10]:<10}  {_format_relation(relation)}"
        for relation in result
    ] or ["no relations"]


def format_answer(result: Any) -> list[str]:
    """Return the answer, the time in which it holds, and the memories that prove it."""
    if result["answer"] is None:
        nearest = f"; nearest: {result['nearest']['memory']}" if "nearest" in result else ""
        return [f"unknown ({result['note']}{nearest})"]
    dates = [f"{word} {result[word][:10]}" for word in ("since", "until") if word in result]
    details = ", ".join([*dates, f"confidence {result['confidence']:.2f}"])
    proofs = [f"  {memory['created_at'][:10]}  {memory['memory']}" for memory in result["memories"]]
    return [f"{result['answer']}  ({details})", *proofs]


def format_paths(result: Any) -> list[str]:
    return [f"{path['score']:.2f}  {path['end']}  ({_format_path(path)})" for path in result] or ["no path"]


def format_rows(result: Any) -> list[str]:
    if "plan" in result:
        return [str(line) for line in result["plan"]]
    lines = ["  |  ".join(result["columns"])] if result["rows"] else ["no rows"]
    lines += ["  |  ".join(_format_cell(row[column]) for column in result["columns"]) for row in result["rows"]]
    return [*lines, *([result["note"]] if "note" in result else [])]


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


def format_history(result: Any) -> list[str]:
    return [
        f"{row['updated_at'] or row['created_at']}  {row['event']:<6}  {row['old_memory'] or '-'} -> "
        f"{row['new_memory'] or '-'}"
        for row in result
    ] or ["no history"]


def format_message(result: Any) -> list[str]:
    return [result["message"], *_format_pending(result)]


def format_nothing(result: Any) -> list[str]:
    return []


def format_memory(result: Any) -> list[str]:
    """Format one memory with all its fields, or None."""
    if result is None:
        return ["no such memory"]
    shown = {key: value for key, value in result.items() if key not in ("id", "memory") and value not in (None, {})}
    return [f"{result['id']}  {result['memory']}", *(f"  {key}: {value}" for key, value in shown.items())]


def format_jobs(result: Any) -> list[str]:
    return [
        f"{job['id']}  {job['state']:<8}  {job['kind']}" + (f"  {job['error']}" if job["error"] else "")
        for job in result
    ] or ["no queued jobs"]


def format_import(result: Any) -> list[str]:
    counts = f"{result['added']} added, {result['known']} already known"
    if result["jobs"]:
        counts += f", {result['jobs']} queued for the model"
    if result["resumed"]:
        counts += f", {result['resumed']} imported before"
    if "history" in result:
        counts += f", {result['history']} history rows, {result['deleted']} deleted here since"
        if result["adopted_messages"]:
            counts += f", with {result['adopted_messages']} messages"
        memories = f"{result['messages']} memories in {result['conversations']} collections"
        return [f"{result['format']}: {memories}: {counts}"]
    head = f"{result['format']}: {result['messages']} messages in {result['conversations']} conversations: {counts}"
    reasons: dict[str, int] = {}
    for entry in result["skipped"]:
        reason = entry["reason"].partition(" ")[2] if entry["reason"].startswith("messages[") else entry["reason"]
        reasons[reason] = reasons.get(reason, 0) + 1
    return [head, *(f"skipped: {count} {reason}" for reason, count in reasons.items()), *_format_pending(result)]


def format_matches(result: Any) -> list[str]:
    """Format the result of a change by query; or one memory, or a message."""
    if result is None or "results" not in result:
        return format_message(result) if result and "message" in result else format_memory(result)
    would = "would " if result["dry_run"] else ""
    lines = []
    for entry in result["results"]:
        before = entry.get("previous_memory")
        change = f"{before} -> {entry['memory']}" if before is not None else entry["memory"]
        lines.append(f"{would}{entry['event']:<6}  {entry['id']}  {change}")
    lines += [f"skipped: {entry['reason']}" for entry in result["skipped"]]
    return lines + _format_relation_changes(result["relations"]) + _format_pending(result) or ["no matches"]


def format_merge_plan(result: Any) -> list[str]:
    action = "would merge" if result["dry_run"] else "merged"
    lines = [f"{_format_merge(one)} ({action}: {'; '.join(one['reasons'])})" for one in result["merges"]]
    lines += [
        f"maybe one: {' and '.join(one['names'])} ({one['score']:.2f}: {one['reason']})" for one in result["same_as"]
    ]
    lines += [f"distinct: {' and '.join(one['names'])}: {one['reason']}" for one in result["apart"]]
    return lines + _format_pending(result) or ["nothing to merge"]


def format_merges(result: Any) -> list[str]:
    listed = result if isinstance(result, list) else [result]
    return [_format_merge(one) + (f" (reverted {one['undone'][:10]})" if one["undone"] else "") for one in listed] or [
        "no merges"
    ]


def _format_merge(one: Any) -> str:
    label = f"{one['id']}  " if one["id"] else ""
    score = f", {one['score']:.2f}" if one["score"] is not None else ""
    return f"{label}{', '.join(one['merged'])} => {one['name']}  [{one['kind']}{score}, {one['relations']} relations]"


def format_export(result: Any) -> list[str]:
    counts = ", ".join(f"{count} of kind {kind}" for kind, count in result["written"].items()) or "nothing"
    return [f"{' and '.join(result['files'])}: {counts}"]


def format_backup(result: Any) -> list[str]:
    return [f"{result['path']}: {result['memories']} memories, {result['bytes']} bytes"]


def format_migration(result: Any) -> list[str]:
    if "message" in result:
        return format_message(result)
    if result["already"]:
        return ["already migrated; nothing to do"]
    counts = [f"{digest['count']:>10} {name}" for name, digest in result["digests"].items() if digest["count"]]
    return [*counts, "copied and verified; applications must now open the new store"]


def format_restore(result: Any) -> list[str]:
    return [f"{result['path']}: {result['restored']} memories restored"]


def format_stats(result: Any) -> list[str]:
    return list(_format_tree(result))


def _format_tree(value: Any, depth: int = 0) -> Any:
    for key, below in value.items():
        if isinstance(below, dict):
            if below:
                yield f"{'  ' * depth}{key}"
                yield from _format_tree(below, depth + 1)
        else:
            yield f"{'  ' * depth}{key}: {'-' if below is None else below}"


def format_diagnosis(result: Any) -> list[str]:
    lines = [f"checked: {', '.join(result['checked'])}"]
    for finding in result["findings"]:
        state = "repaired" if finding["mended"] else "found"
        action = f" -> {finding['action']}" if finding["action"] else ""
        lines.append(f"{state}: {finding['where']}: {finding['what']}{action}")
    return [*lines, *(["no problems found"] if not result["findings"] else [])]
