"""The `mem0-core` command: the methods of `Memory` in a shell or at an interactive prompt.

Prints readable lines, in color on a terminal, or with ``--json`` the result of the method; messages go to standard
error. Exit codes: 0 success; 1 failure, with the reason on standard error (with ``--json`` as a JSON object); 2 wrong
usage; 3 `doctor` found problems that it did not repair, or `eval` a requirement that is not met; 4 the named memory
does not exist; 130 interrupted, with a consistent store. The top layer: may import everything, but loads the rest of
the package only to run a command.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mem0_core.cli._errors import EXIT_INTERRUPTED, describe_in_terms_of_command, exit_code_of
from mem0_core.errors import Mem0Error

if TYPE_CHECKING:
    from mem0_core.config import MemoryConfig

__all__ = ["main"]

_TERMINAL_CONTROLS = re.compile(r"[\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command, and return the exit code."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    if given[:1] == ["hook"]:  # without the parser of all commands: an assistant waits for it
        from mem0_core.cli._hook import ask_server

        reply = ask_server(given[1:])
        if reply is not None:
            _print([json.dumps(reply)])
            return 0
    is_program = arguments is None
    with _rare_collections(is_program=is_program):
        return _run_command(given, is_program=is_program)


def _run_command(arguments: Sequence[str], *, is_program: bool) -> int:
    from mem0_core._system.blas import start_no_blas_threads
    from mem0_core.cli._arguments import parse_arguments
    from mem0_core.cli._render import choose_renderer

    options = parse_arguments(arguments)
    if is_program and _is_short(options):
        start_no_blas_threads()
    try:
        result = _run(options)
    except Mem0Error as error:
        _print_error(error, options)
        return exit_code_of(error)
    except KeyboardInterrupt:
        print("mem0-core: interrupted; committed changes are kept", file=sys.stderr)
        return EXIT_INTERRUPTED
    _print([_to_json(result)] if options.json else choose_renderer(sys.stdout)(options.show(result)))
    return int(options.exit_code(result))


@contextmanager
def _rare_collections(*, is_program: bool) -> Iterator[None]:
    """Collect garbage rarely: imports create many objects, and nearly all of them live until the end.

    Args:
        is_program: True if the process ends afterwards. Then it does not search the objects for garbage at its end.
    """
    thresholds = gc.get_threshold()
    gc.set_threshold(_OBJECTS_PER_COLLECTION, *thresholds[1:])
    try:
        yield
    finally:
        if is_program:
            gc.freeze()
        gc.set_threshold(*thresholds)


_OBJECTS_PER_COLLECTION = 1_000_000  # many more than a search creates


def _to_json(value: Any) -> str:
    """Return JSON without characters that could control a terminal."""
    text = json.dumps(value, ensure_ascii=False)
    return _TERMINAL_CONTROLS.sub(lambda sign: f"\\u{ord(sign[0]):04x}", text)


def _run(options: argparse.Namespace) -> Any:
    if options.is_standalone:
        return options.act(options)
    config = load_config(options)
    if options.takes_config:
        return options.act(config, options)
    from mem0_core.cli._logs import log_to_files
    from mem0_core.memory import Memory

    folder = None if options.config is None else Path(options.config).expanduser().parent
    with log_to_files(config, folder=folder), Memory(config) as memory:
        return options.act(memory, options)


_SHORT_COMMANDS = frozenset(
    (
        *("add", "search", "answer", "context", "explain_missing", "traverse", "update", "update_by_query"),
        *("delete_by_query", "get", "get_all", "history", "relations", "query", "delete", "pin", "feedback"),
    )
)
"""Commands that embed one text at most, and end soon."""


def _is_short(options: argparse.Namespace) -> bool:
    return options.act.__name__ in _SHORT_COMMANDS


def load_config(options: argparse.Namespace) -> MemoryConfig:
    """Return the configuration that the options of a command name."""
    from mem0_core.config import load_config as read_config
    from mem0_core.config import postgres_config

    changes: dict[str, Any] = {"version": "v1.1"}  # the format that this command displays
    if options.path is not None:
        changes["path"] = Path(options.path)
    if options.store_url is not None:
        changes["store"] = postgres_config(options.store_url)
    config = read_config(options.config)
    if (embedder := getattr(options, "new_embedder", None)) is not None:
        changes["embedder"] = embedder
    config = config.replace(**changes)
    if _is_short(options):
        config = config.replace(**_fast_components(config))
    if options.llm_backend is None:
        return config
    return config.replace(llm=_select_chat_model(options.llm_backend, config))


def _fast_components(config: MemoryConfig) -> dict[str, Any]:
    """Return components that start fast and find the same memories, in place of default ones for long use.

    They leave out the cache of searched scopes, the import of onnxruntime, and that of FAISS unless it has saved the
    graph of a large scope.
    """
    from mem0_core.api.factory import snapshot_folder
    from mem0_core.config import ComponentConfig

    changes: dict[str, Any] = {"search_cache": False}  # it pays from the second search on
    if config.embedder is None:
        from mem0_core.providers.numpy_embedder import BriefNumpyEmbedder

        changes["embedder"] = BriefNumpyEmbedder()
    has_default_index = config.store is None and "vector_store" not in config.given_keys
    if has_default_index and not any(snapshot_folder(config).rglob("*.json")):
        changes["vector_store"] = ComponentConfig(provider="numpy")
    return changes


def _select_chat_model(backend: str, config: MemoryConfig) -> Any:
    """Return the chat model for ``--llm-backend``; a configured model with OpenAI's protocol keeps its settings.

    Local models are searched in the configured folder, else in ``models`` in the data folder, else in
    `default_models_folder`.

    Raises:
        ConfigError: The backend has no model. MissingExtraError: Its library is not installed.
    """
    from mem0_core.providers.local import resolve_backend

    given = config.llm
    provider = given.get("provider") if isinstance(given, dict) else str(given or "").partition(":")[0]
    if backend == "openai" and provider in ("openai", "ollama", "vllm", "lmstudio"):
        return given
    folder = given.get("config", {}).get("folder") if isinstance(given, dict) else None
    models = config.database.parent / "models"
    return resolve_backend(backend, folder or (models if models.is_dir() else None))


def _print_error(error: Mem0Error, options: argparse.Namespace) -> None:
    from mem0_core.cli._render import show_safely

    text = describe_in_terms_of_command(error)
    report = {"error": {"type": type(error).__name__, "message": text}}
    lines = [show_safely(line) for line in text.splitlines()]
    print(_to_json(report) if options.json else f"mem0-core: {chr(10).join(lines)}", file=sys.stderr)


def _print(lines: Sequence[str]) -> None:
    try:
        if lines:
            print("\n".join(lines), flush=True)
    except BrokenPipeError:  # the reader, for example `head`, has exited
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
