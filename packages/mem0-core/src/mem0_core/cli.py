"""The `mem0-core` command: the verbs of `Memory`, from a shell.

Prints lines for people, or with ``--json`` what the verb returned. Ends with 0, with 1 when the verb failed (one
line on standard error says why), with 2 when it was called wrongly.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from mem0_core import Mem0Error, Memory, __version__
from mem0_core.config import MemoryConfig, load_config

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    options = _parser().parse_args(arguments)
    try:
        with Memory(_config(options)) as memory:
            result = options.act(memory, options)
    except Mem0Error as error:
        print(f"mem0-core: {error}", file=sys.stderr)
        return 1
    lines = [json.dumps(result, ensure_ascii=False)] if options.json else options.show(result)
    try:
        print("\n".join(lines), flush=True)
    except BrokenPipeError:  # the reader, `head` say, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _config(options: argparse.Namespace) -> MemoryConfig:
    changes: dict[str, Any] = {"version": "v1.1"}  # the shape this command shows
    if options.path is not None:
        changes["path"] = Path(options.path)
    return load_config(options.config).model_copy(update=changes)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="mem0-core", description="Long-term memory for LLM agents, on this machine.")
    parser.add_argument("--version", action="version", version=f"mem0-core {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, help: str, act: Callable[..., Any], show: Callable[..., Any]) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=help, description=help)
        made.set_defaults(act=act, show=show)
        made.add_argument("--path", help="folder of the data (default: $MEM0_DIR, else ~/.mem0)")
        made.add_argument("--config", help="a YAML or JSON file of configuration keys")
        made.add_argument("--json", action="store_true", help="print the result as JSON")
        return made

    add = command("add", "remember a text", _add, _show_added)
    add.add_argument("text")
    search = command("search", "recall the memories nearest to a text", _search, _show_found)
    search.add_argument("query")
    search.add_argument("--limit", type=int, default=10)
    listed = command("list", "list all memories of a scope", _list, _show_found)
    related = command("relations", "list the relations of a scope", _relations, _show_relations)
    related.add_argument("--ended", action="store_true", help="with those that hold no longer")
    path = command("path", 'follow a chain such as "my sister\'s dog" through the relations', _path, _show_paths)
    path.add_argument("question")
    path.add_argument("--limit", type=int, default=5)
    path.add_argument("--depth", type=int, help="relations on a path at most (default: as many as terms)")
    query = command("query", "ask the graph: MATCH (a)-[:works_at]->(b) RETURN a, b", _query, _show_rows)
    query.add_argument("text", metavar="query")
    viz = command("viz", "draw the graph as one HTML file", _viz, _show_message)
    viz.add_argument("entities", nargs="*", metavar="ENTITY", help="draw what is near these only")
    viz.add_argument("--depth", type=int, default=2, help="how many steps from them (2)")
    viz.add_argument("--out", metavar="FILE", help="the file (default: a new one in viz/ beside the data)")
    for then in (search, related, path, query):
        then.add_argument("--as-of", metavar="TIME", help="answer from what held then (ISO 8601)")
    for scoped in (add, search, listed, related, path, query, viz):
        for axis in ("user", "agent", "run"):
            scoped.add_argument(f"--{axis}", metavar="ID", help=f"the {axis} whose memory it is")
    history = command("history", "show every change of a memory", _history, _show_history)
    delete = command("delete", "erase a memory and the messages it came from", _delete, _show_message)
    delete.add_argument("--purge", action="store_true", help="erase its history too")
    for of_one in (history, delete):
        of_one.add_argument("memory_id")
    command("rebuild", "embed every memory anew, with the embedder configured now", _rebuild, _show_message)
    return parser


def _scope(options: argparse.Namespace) -> dict[str, Any]:
    return {"user_id": options.user, "agent_id": options.agent, "run_id": options.run}


def _add(memory: Memory, options: argparse.Namespace) -> Any:
    return memory.add(options.text, **_scope(options))


def _search(memory: Memory, options: argparse.Namespace) -> Any:
    return memory.search(options.query, limit=options.limit, as_of=options.as_of, **_scope(options))


def _relations(memory: Memory, options: argparse.Namespace) -> Any:
    return memory.relations(as_of=options.as_of, ended=options.ended, **_scope(options))


def _path(memory: Memory, options: argparse.Namespace) -> Any:
    limits = {"limit": options.limit, "depth": options.depth}
    return memory.traverse(options.question, as_of=options.as_of, **limits, **_scope(options))


def _query(memory: Memory, options: argparse.Namespace) -> Any:
    return memory.query(options.text, as_of=options.as_of, **_scope(options))


def _viz(memory: Memory, options: argparse.Namespace) -> Any:
    file = memory.visualize(options.out, entities=options.entities or None, depth=options.depth, **_scope(options))
    return {"message": file}


def _list(memory: Memory, options: argparse.Namespace) -> Any:
    return memory.get_all(**_scope(options))


def _history(memory: Memory, options: argparse.Namespace) -> Any:
    return memory.history(options.memory_id)


def _delete(memory: Memory, options: argparse.Namespace) -> Any:
    return memory.delete(options.memory_id, purge=options.purge)


def _rebuild(memory: Memory, options: argparse.Namespace) -> Any:
    return {"message": f"{memory.rebuild()} memories embedded anew"}


def _show_added(result: Any) -> list[str]:
    done = [f"{entry['event']:<6}  {entry['id']}  {entry['memory']}" for entry in result["results"]]
    done += [f"began   {relation}" for relation in result["relations"]["added_entities"]]
    done += [f"ended   {relation}" for relation in result["relations"]["deleted_entities"]]
    done += [f"skipped: {entry['reason']}" for entry in result["skipped"]]
    return done + _pending(result) or ["nothing to remember"]


def _pending(result: Any) -> list[str]:
    return [f"not told yet: {entry['store']}, {entry['reason']}" for entry in result.get("pending", ())]


def _show_found(result: Any) -> list[str]:
    found = [
        f"{entry['score']:.2f}  {entry['id']}  {entry['memory']}"
        if "score" in entry
        else f"{entry['id']}  {entry['memory']}"
        for entry in result["results"]
    ]
    return found + [_arrow(relation) for relation in result["relations"]] or ["nothing found"]


def _show_relations(result: Any) -> list[str]:
    return [
        f"{relation['valid_from'][:10]} .. {(relation['valid_to'] or 'now')[:10]:<10}  {_arrow(relation)}"
        for relation in result
    ] or ["no relations"]


def _show_paths(result: Any) -> list[str]:
    return [f"{path['score']:.2f}  {path['end']}  ({_walked(path)})" for path in result] or ["no path"]


def _show_rows(result: Any) -> list[str]:
    if "plan" in result:
        return [str(line) for line in result["plan"]]
    lines = ["  |  ".join(result["columns"])] if result["rows"] else ["no rows"]
    lines += ["  |  ".join(_cell(row[column]) for column in result["columns"]) for row in result["rows"]]
    return [*lines, *([result["note"]] if "note" in result else [])]


def _cell(value: Any) -> str:
    if isinstance(value, list):
        return "; ".join(map(_cell, value))
    if isinstance(value, dict):
        return str(value["name"]) if "name" in value else _arrow(value)
    return "-" if value is None else str(value)


def _walked(path: Any) -> str:
    text = str(path["start"])
    for step in path["steps"]:
        arrow, end = ("-[{}]->", "destination") if step["forward"] else ("<-[{}]-", "source")
        text += f" {arrow.format(step['relationship'])} {step[end]}"
    return text


def _arrow(relation: Any) -> str:
    return f"{relation['source']} -- {relation['relationship']} -- {relation['destination']}"


def _show_history(result: Any) -> list[str]:
    return [
        f"{row['updated_at'] or row['created_at']}  {row['event']:<6}  {row['old_memory'] or '-'} -> "
        f"{row['new_memory'] or '-'}"
        for row in result
    ] or ["no history"]


def _show_message(result: Any) -> list[str]:
    return [result["message"], *_pending(result)]


if __name__ == "__main__":
    sys.exit(main())
