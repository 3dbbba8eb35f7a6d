"""The rule for files: where they are, that only their owner can read them, and how they are replaced.

Every new folder has the mode 0700 and every new file 0600, independently of the umask. A file that is not complete yet
is in a private folder next to its target. A process that is killed leaves that folder behind, without its lock:
`clear_abandoned` removes it.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from mem0_core.domain.suggestions import describe_value
from mem0_core.errors import InputError

if sys.platform != "win32":
    import fcntl

DATABASE = "memory.db"
"""Name of a store's file in its folder."""

_UNUSABLE_PATH_ERRNOS = (errno.ENAMETOOLONG, errno.EINVAL, errno.ELOOP)

_POSIX = os.name == "posix"
_FOLDER_MODE = 0o700 if _POSIX else 0o777
_PRIVATE_PREFIX = ".mem0-core-"
_MAX_LOCK_ATTEMPTS = 10  # an attempt fails if another process clears the folder before it is locked
_UNLOCKABLE_SECONDS = 86_400.0  # age of an abandoned folder on file systems without locks


def home() -> Path:
    """Return the default data folder: ``$MEM0_CORE_HOME``, else ``mem0-core`` in the platform's data folder."""
    if given := os.environ.get("MEM0_CORE_HOME"):
        return Path(given).expanduser()
    from platformdirs import user_data_path

    return user_data_path("mem0-core", appauthor=False)


def mem0_home() -> Path:
    """Return the folder where mem0 itself keeps its history: ``$MEM0_DIR``, else ``.mem0`` in the home folder."""
    return Path(os.environ.get("MEM0_DIR") or "~/.mem0").expanduser()


def make_folder(path: Path) -> None:
    """Create a folder and its missing parents; on POSIX only the owner may access them (0700).

    An existing folder keeps its permissions.
    """
    try:
        path.mkdir(mode=_FOLDER_MODE)
    except FileNotFoundError:
        if path.parent.is_dir():  # another process has just made it; or it takes no folders, as in /proc
            try:
                path.mkdir(mode=_FOLDER_MODE)
            except FileExistsError:
                if not path.is_dir():
                    raise
            return
        make_folder(path.parent)
        make_folder(path)
    except OSError:
        if not path.is_dir():
            raise


def make_file(path: Path) -> None:
    """Create an empty file if there is none; on POSIX only the owner may access it (0600).

    An existing file keeps its content and its permissions.
    """
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600 if _POSIX else 0o666))


def validate_path(path: object, name: str) -> Path:
    """Return a path that the operating system may take.

    Raises:
        InputError: it is no path, is empty, too long, or holds NUL.
    """
    if not isinstance(path, (str, Path)) or not str(path):
        raise InputError(
            f"{name} must be a path as text or Path, not {describe_value(path)}; pass, for example, {name}='data'"
        )
    if "\0" in str(path):
        raise InputError(f"{name} is no valid path: it holds NUL")
    checked = Path(path)
    try:
        checked.stat()
    except UnicodeEncodeError as error:
        raise InputError(f"{name} is no valid path: it holds a lone surrogate") from error
    except OSError as error:
        if error.errno in _UNUSABLE_PATH_ERRNOS:
            raise InputError(f"{name} is no valid path: {error.strerror}: {describe_value(str(path))}") from error
    return checked


def describe_unwritable(path: Path, error: OSError) -> str:
    """Return a message for a file that cannot be written; it does not name the temporary file that failed."""
    reason = _UNWRITABLE.get(type(error)) or error.strerror or error
    return f"{path} cannot be written: {reason}; choose another path, in a folder that this process may write"


_UNWRITABLE: dict[type[OSError], str] = {
    FileNotFoundError: "its folder takes no files",  # as in /proc
    FileExistsError: "its folder is a file",
    NotADirectoryError: "its folder is a file",
}
"""Reasons that the operating system's text would give for the temporary file."""


def refuse_existing(path: Path, overwrite: bool) -> None:
    """Raise InputError if `path` exists and `overwrite` is False."""
    if path.exists() and not overwrite:
        raise InputError(
            f"{path} already exists; pass overwrite=True (--force) to overwrite it, or choose another path"
        )


@contextmanager
def replace_atomically(path: Path) -> Iterator[Path]:
    """Yield a new file that replaces `path` if the block ends without an error.

    A missing folder is created, and only the owner may access the file (0600). Readers of `path` see either the old or
    the new content, never a mixture. Files that the block leaves next to the new one (a database's log) are removed,
    and so are those of killed processes in the folder of `path`.

    Raises:
        OSError: The file cannot be written; `path` is unchanged.
    """
    make_folder(path.parent)
    clear_abandoned([path.parent])
    with private_folder(path.parent) as folder:
        unfinished = folder / path.name
        make_file(unfinished)
        yield unfinished
        with unfinished.open("rb+") as written:
            os.fsync(written.fileno())
        unfinished.replace(path)
        sync_folder(path.parent)


@contextmanager
def replace_together(folder: Path, names: Iterable[str]) -> Iterator[Path]:
    """Yield a new folder with empty files, which go to `folder` if the block ends without an error.

    A missing folder appears in one step, with all files. In an existing one the files are replaced one after the other,
    each as by `replace_atomically`, as no system replaces several at once.

    Raises:
        OSError: A file cannot be written.
    """
    make_folder(folder.parent)
    clear_abandoned([folder.parent])
    with private_folder(folder.parent) as private:
        unfinished = private / "files"
        make_folder(unfinished)
        files = [unfinished / name for name in names]
        for file in files:
            make_file(file)
        yield unfinished
        for file in files:
            with file.open("rb+") as written:
                os.fsync(written.fileno())
        if folder.exists():
            for file in files:
                file.replace(folder / file.name)
            sync_folder(folder)
        else:
            sync_folder(unfinished)
            unfinished.rename(folder)
        sync_folder(folder.parent)


def sync_folder(path: Path) -> None:
    """Wait until the entries of a folder are on the disk, where the system offers that."""
    if not _POSIX:
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # a file system without syncs of folders
            raise
    finally:
        os.close(handle)


# --- Private folders ---------------------------------------------------------------------------------------------


@contextmanager
def private_folder(parent: Path) -> Iterator[Path]:
    """Yield a new folder in `parent` for temporary files; it is locked, and removed when the block ends."""
    folder, lock = _make_private_folder(parent)
    try:
        yield folder
    finally:
        with suppress(OSError):
            shutil.rmtree(folder)
        if lock is not None:
            os.close(lock)


def _make_private_folder(parent: Path) -> tuple[Path, int | None]:
    for _ in range(_MAX_LOCK_ATTEMPTS):
        folder = parent / f"{_PRIVATE_PREFIX}{os.urandom(16).hex()}"
        make_folder(folder)
        with suppress(FileNotFoundError, BlockingIOError):
            lock = _lock_folder(folder)
            if lock is None or _is_folder_of(lock, folder):
                return folder, lock
            os.close(lock)
    raise OSError(errno.EAGAIN, "temporary folders are removed as soon as they are made", str(parent))


def _lock_folder(folder: Path) -> int | None:
    """Return a handle that locks a folder until it is closed; None if the file system has no locks.

    Raises:
        BlockingIOError: A process holds the lock.
        FileNotFoundError: There is no such folder.
    """
    if sys.platform == "win32":
        return None
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise
    except OSError:
        os.close(handle)
        return None
    return handle


def _is_folder_of(handle: int, folder: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), folder.stat(follow_symlinks=False))
    except FileNotFoundError:
        return False


def list_private_folders(parents: Iterable[Path]) -> list[Path]:
    """Return the private folders in some folders, including those in use."""
    return list(_private_folders(parents))


def find_abandoned(parents: Iterable[Path]) -> list[Path]:
    """Return the private folders that killed processes left in some folders."""
    return [folder for folder in _private_folders(parents) if _is_abandoned(folder)]


def clear_abandoned(parents: Iterable[Path]) -> list[Path]:
    """Remove the private folders that killed processes left in some folders, and return them."""
    return [folder for folder in _private_folders(parents) if _clear(folder)]


def _private_folders(parents: Iterable[Path]) -> Iterator[Path]:
    """Yield the private folders of this user; those of others may be traps."""
    for parent in dict.fromkeys(parents):
        with suppress(OSError):
            for folder in sorted(parent.glob(f"{_PRIVATE_PREFIX}*")):
                with suppress(FileNotFoundError):
                    found = folder.stat(follow_symlinks=False)
                    if stat.S_ISDIR(found.st_mode) and (not _POSIX or found.st_uid == os.geteuid()):
                        yield folder


def _is_abandoned(folder: Path) -> bool:
    try:
        lock = _lock_folder(folder)
        if lock is None:
            return time.time() - folder.stat().st_mtime > _UNLOCKABLE_SECONDS
    except OSError:  # locked, or gone
        return False
    os.close(lock)
    return True


def _clear(folder: Path) -> bool:
    """Remove a private folder unless a process uses it; it stays locked until then."""
    try:
        lock = _lock_folder(folder)
        if lock is None and not _is_abandoned(folder):
            return False
    except OSError:
        return False
    try:
        shutil.rmtree(folder)
    except OSError:
        return False
    finally:
        if lock is not None:
            os.close(lock)
    return True
