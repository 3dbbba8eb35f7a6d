"""`MemoryFiles`: read and change the memories of one scope as files."""

from __future__ import annotations

from collections.abc import Callable

from mem0_core.domain.records import MemoryItem
from mem0_core.errors import InputError, StoreError
from mem0_core.flow import Flow, do
from mem0_core.views._scoped import MAX_ATTEMPTS, ScopedView
from mem0_core.views.files._paths import FileAccessError, is_inside, normalize_path
from mem0_core.views.files._tree import FileTree, MemoryFile, file_metadata, move_item, titled_text, with_metadata


class MemoryFiles(ScopedView):
    """The memories of a user (an agent, a run) as a file tree; each memory is one file.

    >>> files = MemoryFiles(memory, user_id="maya")
    >>> files.write("/projects/porto.md", "The flat is rented until May.")
    >>> [file.path for file in files.list_files()]

    A written file is a memory with exactly its text, so searches find it, and its edits are in the history of the
    memory. Memories that were added otherwise are files in ``/facts``, named by their first words. The path is stored
    in the metadata key ``mem0_path``. Folders exist while a file is in them.

    A scope holds each text once. A file that is empty, or repeats the text of another file, is therefore stored with
    its path before its content; its content as a file does not change.

    Paths are absolute and are keys within the scope: no path reaches another scope or the file system.

    Args:
        memory: a `Memory` or an `AsyncMemory`.
        user_id, agent_id, run_id: owner of the files; give at least one. The tree includes the memories of narrower
            scopes; new files belong to exactly this scope.

    Raises:
        ScopeError: no id is given, or an id is invalid.

    Raises (by all methods):
        FileAccessError: a path is invalid, missing or occupied; has a `code`.
        InputError: the text is not valid Unicode, or the policy refuses it.
        LimitError: the text exceeds `limits`.
        StoreError: the store failed; nothing is written.
    """

    # --- Sync methods ------------------------------------------------------------------------------------------------

    def list_files(self, path: str = "/") -> list[MemoryFile]:
        """Return all files below a folder, by path; nothing for a path that does not exist."""
        return self._memory._run(self.list_flow(path))

    def read(self, path: str) -> MemoryFile:
        """Return the file at a path."""
        return self._memory._run(self.read_flow(path))

    def write(self, path: str, text: str, *, overwrite: bool = False) -> MemoryFile:
        """Create a file, or with `overwrite` replace its text."""
        return self._memory._run(self.write_flow(path, text, overwrite=overwrite))

    def edit(self, path: str, edit: Callable[[str], str]) -> MemoryFile:
        """Replace the text of a file by a function of it, which is called again if another writer was faster."""
        return self._memory._run(self.edit_flow(path, edit))

    def delete(self, path: str) -> list[str]:
        """Delete a file, or a folder with all its files; return the deleted paths."""
        return self._memory._run(self.delete_flow(path))

    def rename(self, path: str, new_path: str) -> list[str]:
        """Move a file, or a folder with all its files; return the new paths."""
        return self._memory._run(self.rename_flow(path, new_path))

    def search(self, query: str, *, path: str = "/", limit: int = 10) -> list[MemoryFile]:
        """Return the files below a folder that bear on a query, best first; irrelevant ones are left out."""
        return self._memory._run(self.search_flow(query, path=path, limit=limit))

    # --- Async methods -----------------------------------------------------------------------------------------------

    async def alist_files(self, path: str = "/") -> list[MemoryFile]:
        """Async version of `list_files`."""
        return await self._memory._arun(self.list_flow(path))

    async def aread(self, path: str) -> MemoryFile:
        """Async version of `read`."""
        return await self._memory._arun(self.read_flow(path))

    async def awrite(self, path: str, text: str, *, overwrite: bool = False) -> MemoryFile:
        """Async version of `write`."""
        return await self._memory._arun(self.write_flow(path, text, overwrite=overwrite))

    async def aedit(self, path: str, edit: Callable[[str], str]) -> MemoryFile:
        """Async version of `edit`."""
        return await self._memory._arun(self.edit_flow(path, edit))

    async def adelete(self, path: str) -> list[str]:
        """Async version of `delete`."""
        return await self._memory._arun(self.delete_flow(path))

    async def arename(self, path: str, new_path: str) -> list[str]:
        """Async version of `rename`."""
        return await self._memory._arun(self.rename_flow(path, new_path))

    async def asearch(self, query: str, *, path: str = "/", limit: int = 10) -> list[MemoryFile]:
        """Async version of `search`."""
        return await self._memory._arun(self.search_flow(query, path=path, limit=limit))

    # --- Flows -------------------------------------------------------------------------------------------------------

    def tree_flow(self) -> Flow[FileTree]:
        """Return the tree as it is now."""
        return FileTree((yield from self._memory._list_items_flow(self._scope)), self._scope)

    def list_flow(self, path: str) -> Flow[list[MemoryFile]]:
        """Flow of `list_files`."""
        folder = normalize_path(path)
        return list((yield from self.tree_flow()).files(folder))

    def read_flow(self, path: str) -> Flow[MemoryFile]:
        normalized = normalize_path(path)
        return (yield from self.tree_flow()).file_at(normalized)

    def write_flow(self, path: str, text: str, *, overwrite: bool) -> Flow[MemoryFile]:
        normalized = normalize_path(path)
        tree = yield from self.tree_flow()
        if overwrite and tree.find_item(normalized) is not None:
            return (yield from self.edit_flow(normalized, lambda _: text))
        tree.check_free(normalized)
        yield from self._create(tree, normalized, text)
        return (yield from self.read_flow(normalized))

    def edit_flow(self, path: str, edit: Callable[[str], str]) -> Flow[MemoryFile]:
        normalized = normalize_path(path)
        for _ in range(MAX_ATTEMPTS):
            tree = yield from self.tree_flow()
            file, item = tree.file_at(normalized), tree.find_item(normalized)
            assert item is not None
            if (yield from self._replace(item, normalized, edit(file.text))):
                return (yield from self.read_flow(normalized))
        raise StoreError(f"other writers changed {normalized} {MAX_ATTEMPTS} times; nothing was written, try again")

    def delete_flow(self, path: str) -> Flow[list[str]]:
        normalized = normalize_path(path)
        if normalized == "/":
            raise FileAccessError("is_root", path, "the root cannot be deleted")
        items = (yield from self.tree_flow()).items(normalized)
        if not items:
            raise FileAccessError("not_found", path, f"{normalized} does not exist")
        yield from self._memory._delete_items_flow(list(items.values()))
        return sorted(items)

    def rename_flow(self, path: str, new_path: str) -> Flow[list[str]]:
        old, new = normalize_path(path), normalize_path(new_path)
        if old == "/":
            raise FileAccessError("is_root", path, "the root cannot be renamed")
        for _ in range(MAX_ATTEMPTS):
            tree = yield from self.tree_flow()
            tree.check_free(new)
            items = tree.items(old)
            if not items:
                raise FileAccessError("not_found", path, f"{old} does not exist")
            if is_inside(new, old):
                raise FileAccessError("inside_itself", new_path, f"{old} cannot be moved into itself")
            # A longer name of a folder may make the path of a file too long.
            targets = [normalize_path(new + one.removeprefix(old)) for one in items]
            moved = [move_item(item, target) for item, target in zip(items.values(), targets, strict=True)]
            if (yield from self._memory._replace_items_flow(moved)):
                return sorted(targets)
        raise StoreError(f"other writers changed {old} {MAX_ATTEMPTS} times; nothing was written, try again")

    def search_flow(self, query: str, *, path: str, limit: int) -> Flow[list[MemoryFile]]:
        folder = normalize_path(path)
        tree = yield from self.tree_flow()
        found = yield from do(
            self._memory.context,
            query,
            user_id=self._scope.user_id,
            agent_id=self._scope.agent_id,
            run_id=self._scope.run_id,
            recent=0,
            limit=limit,
            max_tokens=1_000_000,
        )
        paths = [tree.path_of(memory["id"]) for memory in found["memories"]]
        return [tree.file_at(one) for one in paths if one is not None and (one == folder or is_inside(one, folder))]

    # --- Texts -------------------------------------------------------------------------------------------------------

    def _create(self, tree: FileTree, path: str, text: str) -> Flow[None]:
        """Add a memory for a new file; a memory with this text that is no file yet becomes the file."""
        if text.strip():
            metadata = file_metadata(path, titled=False)
            (created,) = yield from self._memory._create_items_flow(self._scope, [(text, metadata)])
            if created is not None:
                return
            known = tree.find_fact(text, self._scope)
            if known is not None and (yield from self._memory._replace_items_flow([move_item(known, path)])):
                return
        named = (titled_text(path, text), file_metadata(path, titled=True))
        (titled,) = yield from self._memory._create_items_flow(self._scope, [named])
        if titled is None:
            raise InputError(f"another memory has the text of {path} already")

    def _replace(self, item: MemoryItem, path: str, text: str) -> Flow[bool]:
        """Give the memory of a file its path and a new text; return False if another writer changed it."""
        if text.strip():
            plain = with_metadata(item, file_metadata(path, titled=False))
            try:
                return (yield from self._memory._replace_items_flow([(plain, text)]))
            except InputError:  # another memory has the text, or the policy refuses it, which the next call repeats
                pass
        titled = with_metadata(item, file_metadata(path, titled=True))
        return (yield from self._memory._replace_items_flow([(titled, titled_text(path, text))]))
