"""The `mem0-core` command: the methods of `Memory` in a shell or at an interactive prompt.

Prints readable lines, or with ``--json`` the result of the method; messages go to standard error. Exit codes: 0
success; 1 failure, with the reason on standard error (with ``--json`` as a JSON object); 2 wrong usage; 3 `doctor`
found problems that it did not repair; 130 interrupted, with a consistent store. The top layer: may import everything.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mem0_core.cli._arguments import build_parser
from mem0_core.cli._logs import log_to_files
from mem0_core.config import MemoryConfig, load_config, postgres_config
from mem0_core.errors import Mem0Error
from mem0_core.memory import Memory
from mem0_core.providers.local import resolve_backend

__all__ = ["main"]

EXIT_FAILED, EXIT_INTERRUPTED = 1, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command, and return the exit code."""
    options = build_parser().parse_args(arguments)
    try:
        result = _run(options)
    except Mem0Error as error:
        _print_error(error, as_json=options.json)
        return EXIT_FAILED
    except KeyboardInterrupt:
        print("mem0-core: interrupted; committed changes are kept", file=sys.stderr)
        return EXIT_INTERRUPTED
    _print([json.dumps(result, ensure_ascii=False)] if options.json else options.show(result))
    return int(options.exit_code(result))


def _run(options: argparse.Namespace) -> Any:
    config = _load_config(options)
    if options.takes_config:
        return options.act(config, options)
    folder = None if options.config is None else Path(options.config).expanduser().parent
    with log_to_files(config, folder=folder), Memory(config) as memory:
        return options.act(memory, options)


def _load_config(options: argparse.Namespace) -> MemoryConfig:
    changes: dict[str, Any] = {"version": "v1.1"}  # the format that this command displays
    if options.path is not None:
        changes["path"] = Path(options.path)
    if options.store_url is not None:
        changes["store"] = postgres_config(options.store_url)
    config = load_config(options.config).model_copy(update=changes)
    if options.llm_backend is None:
        return config
    return config.model_copy(update={"llm": _select_chat_model(options.llm_backend, config)})


def _select_chat_model(backend: str, config: MemoryConfig) -> Any:
    """Return the chat model for ``--llm-backend``; a configured model with OpenAI's protocol keeps its settings.

    Local models are searched in the configured folder, else in ``models`` in the data folder, else in
    `default_models_folder`.

    Raises:
        ConfigError: The backend has no model. MissingExtraError: Its library is not installed.
    """
    given = config.llm
    provider = given.get("provider") if isinstance(given, dict) else str(given or "").partition(":")[0]
    if backend == "openai" and provider in ("openai", "ollama", "vllm", "lmstudio"):
        return given
    folder = given.get("config", {}).get("folder") if isinstance(given, dict) else None
    models = config.database.parent / "models"
    return resolve_backend(backend, folder or (models if models.is_dir() else None))


def _print_error(error: Mem0Error, *, as_json: bool) -> None:
    report = {"error": {"type": type(error).__name__, "message": str(error)}}
    print(json.dumps(report, ensure_ascii=False) if as_json else f"mem0-core: {error}", file=sys.stderr)


def _print(lines: Sequence[str]) -> None:
    try:
        if lines:
            print("\n".join(lines), flush=True)
    except BrokenPipeError:  # the reader, for example `head`, has exited
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
