"""The `mem0-core` command: the verbs of `Memory`, from a shell or at a prompt.

Prints lines for people, or with ``--json`` what the verb returned; what it has to say besides goes to standard error.

Exit codes: 0 done; 1 the verb failed, and one line on standard error says why (with ``--json`` a JSON object);
2 called wrongly; 3 the doctor found what is not mended; 130 interrupted, and the store is consistent.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mem0_core.cli.arguments import parser
from mem0_core.config import MemoryConfig, load_config, postgres_at
from mem0_core.errors import Mem0Error
from mem0_core.memory import Memory
from mem0_core.models.local import resolve

__all__ = ["main"]

FAILED, INTERRUPTED = 1, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    options = parser().parse_args(arguments)
    try:
        result = _run(options)
    except Mem0Error as error:
        _complain(error, as_json=options.json)
        return FAILED
    except KeyboardInterrupt:
        print("mem0-core: interrupted; what was committed is kept", file=sys.stderr)
        return INTERRUPTED
    _print([json.dumps(result, ensure_ascii=False)] if options.json else options.show(result))
    return int(options.code(result))


def _run(options: argparse.Namespace) -> Any:
    config = _config(options)
    if options.on_files:
        return options.act(config, options)
    with Memory(config) as memory:
        return options.act(memory, options)


def _config(options: argparse.Namespace) -> MemoryConfig:
    changes: dict[str, Any] = {"version": "v1.1"}  # the shape this command shows
    if options.path is not None:
        changes["path"] = Path(options.path)
    if options.store_url is not None:
        changes["store"] = postgres_at(options.store_url)
    config = load_config(options.config).model_copy(update=changes)
    if options.llm_backend is None:
        return config
    return config.model_copy(update={"llm": _chat(options.llm_backend, config)})


def _chat(backend: str, config: MemoryConfig) -> Any:
    """The chat model that ``--llm-backend`` names: a configured one of OpenAI's protocol is kept with its keys.

    Local ones are looked for in the configured folder, else in ``models`` beside the data, else in `models_folder`.

    Raises:
        ConfigError: there is no model for it. MissingExtra: its library is not installed.
    """
    given = config.llm
    provider = given.get("provider") if isinstance(given, dict) else str(given or "").partition(":")[0]
    if backend == "openai" and provider in ("openai", "ollama", "vllm", "lmstudio"):
        return given
    folder = given.get("config", {}).get("folder") if isinstance(given, dict) else None
    beside = config.database.parent / "models"
    return resolve(backend, folder or (beside if beside.is_dir() else None))


def _complain(error: Mem0Error, *, as_json: bool) -> None:
    told = {"error": {"type": type(error).__name__, "message": str(error)}}
    print(json.dumps(told, ensure_ascii=False) if as_json else f"mem0-core: {error}", file=sys.stderr)


def _print(lines: Sequence[str]) -> None:
    try:
        if lines:
            print("\n".join(lines), flush=True)
    except BrokenPipeError:  # the reader, `head` say, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
