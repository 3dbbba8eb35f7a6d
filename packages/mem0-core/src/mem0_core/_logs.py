"""Where the package's log goes, if a configuration says so: by default nowhere but to the handlers of the application.

All loggers are below ``mem0_core``. What they say is mostly what failed, and a piece of a conversation that could not
be remembered can be in it.
"""

from __future__ import annotations

import difflib
import logging
import logging.config
import logging.handlers
import re
from collections.abc import Callable, Mapping
from io import TextIOWrapper
from pathlib import Path
from threading import Lock
from typing import Any

from mem0_core._files import make_file, make_folder
from mem0_core.errors import ConfigError

__all__ = ["LOG_FILE", "configure_logging", "is_log_level"]

LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
LOG_FILE = "app.log"
"""In the folder of the data (seed 003, part 13)."""

_MAX_FILE_BYTES, _BACKUP_FILES = 5_000_000, 3
_DICT_CONFIG_KEYS = (
    "version",
    "formatters",
    "filters",
    "handlers",
    "loggers",
    "root",
    "incremental",
    "disable_existing_loggers",
)
_FAILED_ENTRY = re.compile(r"(formatter|filter|handler|logger) '([^']+)'")

_open_files: dict[Path, tuple[logging.Handler, int]] = {}
"""The files that are logged to, and by how many memories."""
_previous_levels: list[int] = []
"""The level of the package's logger before a file was first opened."""
_lock = Lock()


def is_log_level(given: object) -> bool:
    return isinstance(given, str) and given.upper() in LOG_LEVELS


def configure_logging(
    settings: str | Mapping[str, Any] | None, folder: Path, *, name: str = "logging"
) -> Callable[[], None]:
    """Start to log as a configuration says; returns what ends it.

    Args:
        settings: a level, for ``app.log`` in `folder`; or a mapping as `logging.config.dictConfig` takes it, in which
            ``{data}`` stands for `folder` in file names, and loggers that are not named are left as they are.
        name: names the mapping in errors.

    Raises:
        ConfigError: naming the key that is unknown or wrong.
    """
    if settings is None:
        return _do_nothing
    if isinstance(settings, str):
        return _start_file_log(folder / LOG_FILE, settings.upper())
    _apply_dict_config(settings, folder, name)
    return _do_nothing


def _do_nothing() -> None:
    pass


def _start_file_log(file: Path, level: str) -> Callable[[], None]:
    """Log to a file, which is begun anew at 5 MB and kept three times; one handler serves all memories of a folder."""
    logger = logging.getLogger("mem0_core")
    with _lock:
        handler, users = _open_files.get(file, (None, 0))
        if handler is None:
            handler = _open_handler(file)
            if not _open_files:
                _previous_levels.append(logger.level)
            logger.addHandler(handler)
        handler.setLevel(level)
        if not logger.isEnabledFor(handler.level):
            logger.setLevel(level)
        _open_files[file] = (handler, users + 1)
    return lambda: _release_file(file)


class _OwnFile(logging.handlers.RotatingFileHandler):
    """A log that its owner alone reads, each part of it."""

    def _open(self) -> TextIOWrapper:
        make_file(Path(self.baseFilename))
        return super()._open()


def _open_handler(file: Path) -> logging.Handler:
    try:
        make_folder(file.parent)
        handler = _OwnFile(file, maxBytes=_MAX_FILE_BYTES, backupCount=_BACKUP_FILES, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"logging: cannot write {file}: {error}") from error
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
    return handler


def _release_file(file: Path) -> None:
    logger = logging.getLogger("mem0_core")
    with _lock:
        handler, users = _open_files.pop(file, (None, 0))
        if handler is None:
            return
        if users > 1:
            _open_files[file] = (handler, users - 1)
            return
        logger.removeHandler(handler)
        handler.close()
        if not _open_files:
            logger.setLevel(_previous_levels.pop())


def _apply_dict_config(settings: Mapping[str, Any], folder: Path, name: str) -> None:
    for key in settings:
        if key not in _DICT_CONFIG_KEYS:
            near = difflib.get_close_matches(str(key), _DICT_CONFIG_KEYS, n=1, cutoff=0.5)
            known = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(_DICT_CONFIG_KEYS)}"
            raise ConfigError(f"{name}: unknown key {str(key)!r}; {known}")
    make_folder(folder)
    handlers = {key: _expand_data_folder(handler, folder) for key, handler in (settings.get("handlers") or {}).items()}
    given = {"version": 1, "disable_existing_loggers": False, **settings, "handlers": handlers}
    try:
        logging.config.dictConfig(given)
    except (ValueError, TypeError, AttributeError, ImportError) as error:
        place = _FAILED_ENTRY.search(str(error))
        where = f"{place[1]}s.{place[2]}: " if place else ""
        raise ConfigError(f"{name}: {where}{error.__cause__ or error}") from error


def _expand_data_folder(handler: Any, folder: Path) -> Any:
    if isinstance(handler, Mapping) and isinstance(handler.get("filename"), str):
        return {**handler, "filename": handler["filename"].replace("{data}", str(folder))}
    return handler
