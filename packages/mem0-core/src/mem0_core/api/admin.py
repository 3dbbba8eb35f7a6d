"""Looking after a store: copies, checks, counts, and memories of other stores.

Each verb is a flow; `memory.Memory` makes its sync and async forms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from mem0_core.api.factory import snapshot_folder
from mem0_core.api.runtime import MemoryRuntime
from mem0_core.domain.records import Scope
from mem0_core.errors import InputError
from mem0_core.flow import Flow, do

__all__ = ["AdminApi"]


class AdminApi(MemoryRuntime):
    """Looking after a store: copies, checks, counts, and memories of other stores."""

    def _backup(
        self,
        path: str | Path,
        *,
        overwrite: bool = False,
        on_progress: Callable[[int, int | None], object] | None = None,
    ) -> Flow[dict[str, Any]]:
        """Write all that is committed into one file, while others write; `operations.backup.restore` goes back to it.

        Args:
            path: the new file, which is one of SQLite wherever the store lies.
            overwrite: replace a file that is there.
            on_progress: called with how many pages are copied, and how many there are; of a store in a server with
                how many records, and None.

        Returns:
            ``path``, ``bytes`` and ``memories`` of the copy.

        Raises:
            InputError: the file exists, and `overwrite` is not set. StoreError: it cannot be written.
        """
        from mem0_core.admin.backup import write_backup

        return (yield from do(write_backup, self._store, Path(path), overwrite=overwrite, on_progress=on_progress))

    def _doctor(
        self,
        *,
        repair: bool = True,
        torn: str | None = None,
        on_progress: Callable[[int, int | None], object] | None = None,
    ) -> Flow[dict[str, Any]]:
        """Check the truth, and every projection against it, and mend what can be mended.

        Args:
            mend: False only looks.
            torn: what `operations.doctor.find_log_damage` said of the log before the store was opened.
            on_progress: called with how many of the checks are done, and how many there are.

        Returns:
            ``is_healthy``, what was ``checked``, and ``findings``: each ``where``, ``what``, ``mended``, ``action``.
        """
        from mem0_core.admin.doctor import diagnose

        return (
            yield from diagnose((yield from self._ports()), repair=repair, torn=torn, on_progress=on_progress)
        ).as_dict()

    def _stats(
        self, *, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None
    ) -> Flow[dict[str, Any]]:
        """How much a scope holds of what; without an id the whole store, with what it takes on disk."""
        from mem0_core.admin.statistics import collect_statistics

        scope = _scope_or_all(user_id, agent_id, run_id)
        return (yield from do(collect_statistics, self._store.maintenance, snapshot_folder(self.config), scope))

    def _export(
        self,
        path: str | Path,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        format: Literal["jsonl", "csv"] = "jsonl",
        overwrite: bool = False,
        on_progress: Callable[[int, int | None], object] | None = None,
    ) -> Flow[dict[str, Any]]:
        """Write a scope out; without an id everybody's. See `interchange.exporting` for what is in the files.

        Args:
            path: a file of JSON Lines, or for ``"csv"`` a folder that gets ``nodes.csv`` and ``edges.csv``.
            format: ``"jsonl"`` or ``"csv"``.
            overwrite: replace files that are there.
            on_progress: called with how many lines are written, and None.

        Returns:
            ``files``, and how much is ``written`` of each kind.

        Raises:
            InputError: a file exists and `overwrite` is not set, or cannot be written.
        """
        from mem0_core.interchange.exporters import export_csv, export_jsonl

        scope = _scope_or_all(user_id, agent_id, run_id)
        care = self._store.maintenance
        if format == "csv":
            return (yield from do(export_csv, care, Path(path), scope, overwrite=overwrite))
        if format != "jsonl":
            raise InputError(f"unknown format {format!r}; there are 'jsonl' and 'csv'")
        return (yield from do(export_jsonl, care, Path(path), scope, overwrite=overwrite, on_progress=on_progress))

    def _adopt(
        self,
        memories: Iterable[Mapping[str, Any]],
        *,
        history: Sequence[Mapping[str, Any]] = (),
        messages: Sequence[Mapping[str, Any]] = (),
        on_progress: Callable[[int, int | None], object] | None = None,
    ) -> Flow[dict[str, Any]]:
        """Take memories over from another store, with their ids, times and metadata; what is here already stays.

        They are embedded anew, and without a model rules read their relations. A second call goes on where the first
        was cut short. A policy has its say on each of them, on their history, and on messages.

        Args:
            memories: each with ``id``, ``memory``, ``created_at``, at least one of user_id, agent_id and run_id, and
                where there are any ``updated_at``, ``metadata``, ``actor_id``, ``role``, ``expiration_date``, and the
                ids of the ``messages`` it came from.
            history: rows of mem0's history table, kept under their own ids.
            messages: each with ``id``, ``digest`` (by which it is known where it comes a second time), ``role``,
                ``content``, ``created_at``, its ids, and where there are any ``name`` and ``metadata``. Those that only
                memories deleted here came from stay away.
            on_progress: called with how many memories are done, and how many there are.

        Returns:
            ``added``, ``known`` (by their id or their words), ``deleted`` (here, since they were taken over),
            ``history``, the rows that are new, and ``heard``, how many messages were taken.

        Raises:
            InputError, ScopeError: one of them cannot be stored, and which; nothing is written.
        """
        from mem0_core.admin.adopt import adopt, filter_adoption, parse_adoption

        given = filter_adoption(parse_adoption(list(memories), history, messages), self._policy)
        return dict((yield from adopt((yield from self._ports()), given, on_progress)))


def _scope_or_all(user_id: str | None, agent_id: str | None, run_id: str | None) -> Scope | None:
    """The scope of the ids that are given; None, which is everybody, where there are none."""
    given = any(value is not None for value in (user_id, agent_id, run_id))
    return Scope(user_id, agent_id, run_id) if given else None
