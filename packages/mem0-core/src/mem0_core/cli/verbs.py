"""What each command does: from the options it was called with to what its verb returned."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from mem0_core.cli.progress import Bar
from mem0_core.interchange.importing import import_chats
from mem0_core.memory import Memory

__all__ = [
    "add",
    "delete",
    "flush",
    "get",
    "history",
    "import_file",
    "list_all",
    "path",
    "pending",
    "pin",
    "query",
    "rebuild",
    "relations",
    "search",
    "update",
    "viz",
]

Options = argparse.Namespace


def _scope(options: Options) -> dict[str, Any]:
    return {"user_id": options.user, "agent_id": options.agent, "run_id": options.run}


def _bar(label: str, options: Options) -> Bar:
    return Bar(label, shown=options.progress)


def add(memory: Memory, options: Options) -> Any:
    return memory.add(options.text, **_scope(options))


def search(memory: Memory, options: Options) -> Any:
    return memory.search(options.query, limit=options.limit, as_of=options.as_of, **_scope(options))


def list_all(memory: Memory, options: Options) -> Any:
    return memory.get_all(**_scope(options))


def relations(memory: Memory, options: Options) -> Any:
    return memory.relations(as_of=options.as_of, ended=options.ended, **_scope(options))


def path(memory: Memory, options: Options) -> Any:
    limits = {"limit": options.limit, "depth": options.depth}
    return memory.traverse(options.question, as_of=options.as_of, **limits, **_scope(options))


def query(memory: Memory, options: Options) -> Any:
    return memory.query(options.text, as_of=options.as_of, **_scope(options))


def viz(memory: Memory, options: Options) -> Any:
    file = memory.visualize(options.out, entities=options.entities or None, depth=options.depth, **_scope(options))
    return {"message": file}


def get(memory: Memory, options: Options) -> Any:
    return memory.get(options.memory_id)


def history(memory: Memory, options: Options) -> Any:
    return memory.history(options.memory_id)


def update(memory: Memory, options: Options) -> Any:
    return memory.update(options.memory_id, options.text)


def delete(memory: Memory, options: Options) -> Any:
    return memory.delete(options.memory_id, purge=options.purge)


def pin(memory: Memory, options: Options) -> Any:
    memory.pin(options.memory_id, not options.off)
    return {"message": "let go" if options.off else "pinned"}


def pending(memory: Memory, options: Options) -> Any:
    return memory.pending(**_scope(options))


def flush(memory: Memory, options: Options) -> Any:
    done = memory.flush(options.timeout)
    return {"message": "nothing is left to do" if done else f"not done within {options.timeout} seconds"}


def rebuild(memory: Memory, options: Options) -> Any:
    return {"message": f"{memory.rebuild()} memories embedded anew"}


def import_file(memory: Memory, options: Options) -> Any:
    with _bar("import", options) as bar:
        return import_chats(
            memory,
            Path(options.file),
            format=options.format,
            user_id=options.user,
            agent_id=options.agent,
            run_id=options.run,
            runs=not options.no_runs,
            infer=options.infer,
            key=options.key,
            chunk=options.chunk,
            on_progress=bar,
        )
