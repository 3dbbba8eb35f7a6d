"""Log files of the `mem0-core` command.

The library itself opens none: its loggers, below ``mem0_core``, only have the handlers that an application adds. The
log mostly reports failures, and may quote a message that could not be stored.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import Any

from mem0_core._system.files import describe_unwritable, make_file, make_folder
from mem0_core.config import MemoryConfig, is_log_level, read_config_file
from mem0_core.domain.secrets import reveal
from mem0_core.domain.suggestions import suggest
from mem0_core.errors import ConfigError

LOG_FILE = "app.log"

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


@contextmanager
def log_to_files(config: MemoryConfig, *, folder: Path | None = None) -> Iterator[None]:
    """Write the log as the key `logging` says: a level for ``app.log`` in the data folder, or a `dictConfig`.

    Args:
        folder: folder of the configuration file, where a relative path of a logging file starts.

    Raises:
        ConfigError: a key is unknown or wrong (the error names the file and the key), or a file cannot be written.
    """
    given = config.logging
    if is_log_level(given):
        with _file_handler(config.folder / LOG_FILE, given.upper()):
            yield
        return
    if isinstance(given, Mapping):
        _apply_dict_config(reveal(given), config.folder, "logging")
    elif given is not None:
        file = (folder or Path()) / Path(given).expanduser()
        settings = read_config_file(file)
        if not isinstance(settings, Mapping):
            raise ConfigError(f"{file}: a configuration is a mapping of keys, not {type(settings).__name__}")
        _apply_dict_config(settings, config.folder, str(file))
    yield


@contextmanager
def _file_handler(file: Path, level: str) -> Iterator[None]:
    """Log to a file that rotates at 5 MB and keeps three old parts; only its owner can read them."""
    from logging.handlers import RotatingFileHandler  # slow to import, and most commands write no log

    class PrivateFileHandler(RotatingFileHandler):
        def _open(self) -> TextIOWrapper:
            make_file(Path(self.baseFilename))
            return super()._open()

    try:
        make_folder(file.parent)
        handler = PrivateFileHandler(file, maxBytes=_MAX_FILE_BYTES, backupCount=_BACKUP_FILES, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"logging: {describe_unwritable(file, error)}") from error
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
    handler.setLevel(level)
    logger = logging.getLogger("mem0_core")
    previous_level = logger.level
    if not logger.isEnabledFor(handler.level):
        logger.setLevel(level)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(previous_level)
        handler.close()


def _apply_dict_config(settings: Mapping[str, Any], folder: Path, name: str) -> None:
    """Apply a `logging.config.dictConfig`, with ``{data}`` in file names replaced by `folder`.

    Loggers that it does not name stay as they are.
    """
    import logging.config

    for key in settings:
        if key not in _DICT_CONFIG_KEYS:
            raise ConfigError(f"{name}: unknown key {str(key)!r}{suggest(str(key), _DICT_CONFIG_KEYS)}")
    make_folder(folder)
    handlers = {key: _expand_data_folder(handler, folder) for key, handler in (settings.get("handlers") or {}).items()}
    given = {"version": 1, "disable_existing_loggers": False, **settings, "handlers": handlers}
    try:
        logging.config.dictConfig(given)
    except (ValueError, TypeError, AttributeError, ImportError) as error:
        entry = _FAILED_ENTRY.search(str(error))
        location = f"{entry[1]}s.{entry[2]}: " if entry else ""
        raise ConfigError(f"{name}: {location}{error.__cause__ or error}") from error


def _expand_data_folder(handler: Any, folder: Path) -> Any:
    if isinstance(handler, Mapping) and isinstance(handler.get("filename"), str):
        return {**handler, "filename": handler["filename"].replace("{data}", str(folder))}
    return handler
