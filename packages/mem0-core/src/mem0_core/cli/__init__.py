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
from mem0_core.config import MemoryConfig, load_config
from mem0_core.errors import ConfigError, Mem0Error
from mem0_core.memory import Memory

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
    config = load_config(options.config)
    if options.llm_backend is not None:
        changes["llm"] = _chat(options.llm_backend, config)
    return config.model_copy(update=changes)


def _chat(backend: str, config: MemoryConfig) -> Any:
    """The chat model that ``--llm-backend`` names, by the configuration where that has one of the kind.

    Raises:
        ConfigError: nothing says which model it is.
    """
    if backend == "none":
        return None
    if backend == "openai":
        named = config.llm.get("provider") if isinstance(config.llm, dict) else str(config.llm or "").partition(":")[0]
        if named == "openai":
            return config.llm
        if not os.environ.get("OPENAI_API_KEY"):
            raise ConfigError("--llm-backend openai: set OPENAI_API_KEY, or name the model under llm in --config")
        return "openai"
    raise ConfigError(f"--llm-backend {backend}: not available")


def _complain(error: Mem0Error, *, as_json: bool) -> None:
    told = {"error": {"type": type(error).__name__, "message": str(error)}}
    print(json.dumps(told, ensure_ascii=False) if as_json else f"mem0-core: {error}", file=sys.stderr)


def _print(lines: Sequence[str]) -> None:
    try:
        print("\n".join(lines), flush=True)
    except BrokenPipeError:  # the reader, `head` say, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
