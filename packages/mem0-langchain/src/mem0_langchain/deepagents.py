"""`Mem0Backend`: memories as the files of a deep agent.

>>> backend = CompositeBackend(default=StateBackend(), routes={"/memories/": Mem0Backend(memory)})
>>> agent = create_deep_agent(model, backend=backend, middleware=[MemoryMiddleware(memory)])
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from deepagents.backends.protocol import (
    BackendProtocol,
    DeleteResult,
    EditResult,
    FileData,
    FileDownloadResponse,
    FileInfo,
    FileUploadResponse,
    GlobResult,
    GrepMatch,
    GrepResult,
    LsResult,
    ReadResult,
    WriteResult,
)
from deepagents.backends.utils import compile_grep_include_glob, perform_string_replacement, slice_read_response
from langchain_core.runnables import ensure_config

from mem0_core import AsyncMemory, InputError, LimitError, Memory, ModelError, Scope, StoreError
from mem0_core.api.options import unwrap_memory
from mem0_core.flow import Flow, arun, run
from mem0_core.views import FileAccessError, MemoryFile, MemoryFiles
from mem0_langchain.runs import to_ids
from mem0_langchain.scope import ScopeAddress, get_run_context

__all__ = ["Mem0Backend"]

_MAX_FILES_BY_MEANING = 5
_REFUSALS = (InputError, LimitError, ModelError, StoreError)
_WORD = re.compile(r"\w+")


class _EditError(Exception):
    """A replacement that cannot be made; its text is the result."""


class Mem0Backend(BackendProtocol):
    """A backend of deepagents whose files are the memories of a run's owner.

    Route ``/memories/`` to it with a `CompositeBackend`; an agent's other files stay where they were. A new file is a
    new memory, and edits and deletions change memories with their history. Memories of conversations are files in
    ``facts``. `mem0_core.views.MemoryFiles` describes the files.

    Args:
        memory: a `mem0_core.Memory`.
        user_id, agent_id, run_id, scope, thread_as_run: owner of the memories, if the same in every run; the run's
            context or ``configurable`` names the rest. See `mem0_langchain.scope`.
        grep_by_meaning: after the lines that contain the pattern, `grep` returns a line of each file that bears on its
            meaning, at most five.

    Raises:
        ScopeError: an id is invalid, or arguments exclude each other.

    Raises (by all methods):
        ScopeError: no id is named, or the run contradicts the constructor. Other failures are the `error` of a result.
    """

    def __init__(
        self,
        memory: Memory | AsyncMemory,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        scope: Scope | None = None,
        thread_as_run: bool = False,
        grep_by_meaning: bool = True,
    ) -> None:
        self._memory = unwrap_memory(memory)
        self._address = ScopeAddress(
            user_id=user_id, agent_id=agent_id, run_id=run_id, scope=scope, thread_as_run=thread_as_run
        )
        self._greps_by_meaning = grep_by_meaning

    def _open(self) -> MemoryFiles:
        """Return the files of the current run's owner."""
        scope = self._address.resolve(ensure_config(), get_run_context())
        return MemoryFiles(self._memory, **to_ids(scope))

    # --- Sync methods ------------------------------------------------------------------------------------------------

    def ls(self, path: str) -> LsResult:
        """List the files and folders of a folder."""
        return run(_ls(self._open(), path))

    def read(self, file_path: str, offset: int = 0, limit: int = 2000) -> ReadResult:
        """Read lines of a file."""
        return run(_read(self._open(), file_path, offset, limit))

    def write(self, file_path: str, content: str) -> WriteResult:
        """Create or overwrite a file."""
        return run(_write(self._open(), file_path, content))

    def edit(self, file_path: str, old_string: str, new_string: str, replace_all: bool = False) -> EditResult:
        """Replace a text in a file."""
        return run(_edit(self._open(), file_path, old_string, new_string, replace_all))

    def delete(self, file_path: str) -> DeleteResult:
        """Delete a file, or a folder with its files."""
        return run(_delete(self._open(), file_path))

    def grep(
        self, pattern: str, path: str | None = None, glob: str | None = None, *, max_count: int | None = None
    ) -> GrepResult:
        """Search files for a literal text, and by its meaning."""
        return run(_grep(self._open(), pattern, path, glob, max_count, self._greps_by_meaning))

    def glob(self, pattern: str, path: str | None = None) -> GlobResult:
        """Return the files with matching paths, the one changed last first."""
        return run(_glob(self._open(), pattern, path))

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        """Create or overwrite text files."""
        return run(_upload(self._open(), files))

    def download_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        """Return whole files."""
        return run(_download(self._open(), paths))

    # --- Async methods -----------------------------------------------------------------------------------------------

    async def als(self, path: str) -> LsResult:
        """Async version of `ls`."""
        return await arun(_ls(self._open(), path))

    async def aread(self, file_path: str, offset: int = 0, limit: int = 2000) -> ReadResult:
        """Async version of `read`."""
        return await arun(_read(self._open(), file_path, offset, limit))

    async def awrite(self, file_path: str, content: str) -> WriteResult:
        """Async version of `write`."""
        return await arun(_write(self._open(), file_path, content))

    async def aedit(self, file_path: str, old_string: str, new_string: str, replace_all: bool = False) -> EditResult:
        """Async version of `edit`."""
        return await arun(_edit(self._open(), file_path, old_string, new_string, replace_all))

    async def adelete(self, file_path: str) -> DeleteResult:
        """Async version of `delete`."""
        return await arun(_delete(self._open(), file_path))

    async def agrep(
        self, pattern: str, path: str | None = None, glob: str | None = None, *, max_count: int | None = None
    ) -> GrepResult:
        """Async version of `grep`."""
        return await arun(_grep(self._open(), pattern, path, glob, max_count, self._greps_by_meaning))

    async def aglob(self, pattern: str, path: str | None = None) -> GlobResult:
        """Async version of `glob`."""
        return await arun(_glob(self._open(), pattern, path))

    async def aupload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        """Async version of `upload_files`."""
        return await arun(_upload(self._open(), files))

    async def adownload_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        """Async version of `download_files`."""
        return await arun(_download(self._open(), paths))


# --- Flows -----------------------------------------------------------------------------------------------------------


def _ls(files: MemoryFiles, path: str) -> Flow[LsResult]:
    try:
        below = yield from files.list_flow(path)
    except _REFUSALS as error:
        return LsResult(error=f"Error: {error}")
    folder = path.rstrip("/") + "/"
    entries: dict[str, FileInfo] = {}
    for file in below:
        name, *deeper = file.path.removeprefix(folder).split("/")
        if not file.path.startswith(folder):  # the path is a file
            continue
        if deeper:
            entries[name + "/"] = FileInfo(path=f"{folder}{name}/", is_dir=True, size=0, modified_at="")
        else:
            entries[name] = _file_info(file)
    return LsResult(entries=[entries[name] for name in sorted(entries)])


def _read(files: MemoryFiles, path: str, offset: int, limit: int) -> Flow[ReadResult]:
    try:
        file = yield from files.read_flow(path)
    except FileAccessError as error:
        return ReadResult(error=_access_text(error, path))
    return slice_read_response(_file_data(file), offset, limit)


def _write(files: MemoryFiles, path: str, content: str) -> Flow[WriteResult]:
    try:
        yield from files.write_flow(path, content, overwrite=True)
    except _REFUSALS as error:
        return WriteResult(error=f"Error: {error}")
    return WriteResult(path=path)


def _edit(files: MemoryFiles, path: str, old: str, new: str, replace_all: bool) -> Flow[EditResult]:
    occurrences = 0

    def edit(content: str) -> str:
        nonlocal occurrences
        replaced: tuple[str, int] | str = perform_string_replacement(content, old, new, replace_all)
        if isinstance(replaced, str):
            raise _EditError(replaced)
        text, occurrences = replaced
        return text

    try:
        yield from files.edit_flow(path, edit)
    except _EditError as error:
        return EditResult(error=str(error))
    except FileAccessError as error:
        return EditResult(error=f"Error: {_access_text(error, path)}")
    except _REFUSALS as error:
        return EditResult(error=f"Error: {error}")
    return EditResult(path=path, occurrences=occurrences)


def _delete(files: MemoryFiles, path: str) -> Flow[DeleteResult]:
    try:
        yield from files.delete_flow(path)
    except FileAccessError as error:
        return DeleteResult(error=f"Error: {_access_text(error, path)}")
    except _REFUSALS as error:
        return DeleteResult(error=f"Error: {error}")
    return DeleteResult(path=path)


def _grep(
    files: MemoryFiles, pattern: str, path: str | None, glob: str | None, max_count: int | None, by_meaning: bool
) -> Flow[GrepResult]:
    folder = path or "/"
    try:
        is_included = _path_filter(glob, folder)
        searched = [file for file in (yield from files.list_flow(folder)) if is_included(file.path)]
        matches = [
            GrepMatch(path=file.path, line=number, text=line)
            for file in searched
            for number, line in enumerate(file.text.split("\n"), 1)
            if pattern in line
        ]
        if by_meaning and _WORD.search(pattern) and (max_count is None or len(matches) < max_count):
            known = {match["path"] for match in matches}
            found = yield from files.search_flow(pattern, path=folder, limit=_MAX_FILES_BY_MEANING + len(known))
            nearest = [file for file in found if file.path not in known and is_included(file.path)]
            matches += [_line_match(file, pattern) for file in nearest[:_MAX_FILES_BY_MEANING]]
    except (ValueError, ModelError, StoreError) as error:  # ValueError: a glob that cannot be read, and our InputError
        return GrepResult(error=f"Error: {error}")
    is_cut = max_count is not None and len(matches) > max_count
    return GrepResult(matches=matches[:max_count], truncated=is_cut)


def _glob(files: MemoryFiles, pattern: str, path: str | None) -> Flow[GlobResult]:
    folder = path or "/"
    try:
        is_included = _path_filter(pattern, folder)
        found = [file for file in (yield from files.list_flow(folder)) if is_included(file.path)]
    except (ValueError, StoreError) as error:
        return GlobResult(error=f"Error: {error}")
    found.sort(key=lambda file: file.modified_at, reverse=True)
    return GlobResult(matches=[_file_info(file) for file in found])


def _upload(files: MemoryFiles, uploads: list[tuple[str, bytes]]) -> Flow[list[FileUploadResponse]]:
    responses: list[FileUploadResponse] = []
    for path, content in uploads:
        try:
            text = content.decode()
        except UnicodeDecodeError:
            responses.append(FileUploadResponse(path=path, error="a memory holds text only: the file is not UTF-8"))
            continue
        try:
            yield from files.write_flow(path, text, overwrite=True)
        except FileAccessError as error:
            responses.append(FileUploadResponse(path=path, error=_access_code(error)))
        except _REFUSALS as error:
            responses.append(FileUploadResponse(path=path, error=str(error)))
        else:
            responses.append(FileUploadResponse(path=path))
    return responses


def _download(files: MemoryFiles, paths: list[str]) -> Flow[list[FileDownloadResponse]]:
    responses: list[FileDownloadResponse] = []
    for path in paths:
        try:
            file = yield from files.read_flow(path)
        except FileAccessError as error:
            responses.append(FileDownloadResponse(path=path, error=_access_code(error)))
        else:
            responses.append(FileDownloadResponse(path=path, content=file.text.encode()))
    return responses


# --- Values ----------------------------------------------------------------------------------------------------------


def _file_info(file: MemoryFile) -> FileInfo:
    return FileInfo(path=file.path, is_dir=False, size=file.size, modified_at=file.modified_at)


def _file_data(file: MemoryFile) -> FileData:
    return FileData(content=file.text, encoding="utf-8", created_at=file.created_at, modified_at=file.modified_at)


def _path_filter(glob: str | None, folder: str) -> Callable[[str], bool]:
    """Return a predicate for absolute paths; deepagents matches a glob against the path below the searched folder."""
    if not glob:
        return lambda path: True
    matches: Callable[[str], bool] = compile_grep_include_glob(glob)
    prefix = folder.rstrip("/") + "/"

    def is_included(path: str) -> bool:
        below = path.removeprefix(prefix) if path.startswith(prefix) else path.rsplit("/", 1)[-1]
        return matches(below)

    return is_included


def _line_match(file: MemoryFile, query: str) -> Any:
    """Return the line of a file that shares most words with a query; the first line with text if none does."""
    wanted = set(_WORD.findall(query.casefold()))
    lines = [(number, line) for number, line in enumerate(file.text.split("\n"), 1) if line.strip()]
    number, line = max(
        lines or [(1, "")], key=lambda numbered: len(wanted & set(_WORD.findall(numbered[1].casefold())))
    )
    return GrepMatch(path=file.path, line=number, text=line)


def _access_text(error: FileAccessError, path: str) -> str:
    return f"File '{path}' not found" if error.code == "not_found" else str(error)


def _access_code(error: FileAccessError) -> str:
    codes = {"not_found": "file_not_found", "is_directory": "is_directory", "exists": "is_directory"}
    return codes.get(error.code, "invalid_path")
