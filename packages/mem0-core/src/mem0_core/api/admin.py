"""Flows that administer a store: backup, checks, statistics, export, adoption."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from mem0_core.api._arguments import ScopeIds, scope_or_all
from mem0_core.api._runtime import MemoryRuntime
from mem0_core.api.factory import snapshot_folder
from mem0_core.errors import InputError
from mem0_core.flow import Flow, do

__all__ = ["AdminApi"]


class AdminApi(MemoryRuntime):
    """Flows of `Memory` that administer its store."""

    def _backup_flow(
        self, path: str | Path, *, overwrite: bool, on_progress: Callable[[int, int | None], object] | None
    ) -> Flow[dict[str, Any]]:
        """Flow of `Memory.backup`."""
        from mem0_core.admin.backup import write_backup

        return (yield from do(write_backup, self._store, Path(path), overwrite=overwrite, on_progress=on_progress))

    def _doctor_flow(
        self, *, repair: bool, torn: str | None, on_progress: Callable[[int, int | None], object] | None
    ) -> Flow[dict[str, Any]]:
        """Flow of `Memory.doctor`."""
        from mem0_core.admin.doctor import diagnose

        return (
            yield from diagnose((yield from self._ports()), repair=repair, torn=torn, on_progress=on_progress)
        ).as_dict()

    def _stats_flow(self, *, ids: ScopeIds) -> Flow[dict[str, Any]]:
        """Flow of `Memory.stats`."""
        from mem0_core.admin.statistics import collect_statistics

        scope = scope_or_all(ids)
        return (yield from do(collect_statistics, self._store.maintenance, snapshot_folder(self.config), scope))

    def _export_flow(
        self,
        path: str | Path,
        *,
        ids: ScopeIds,
        format: Literal["jsonl", "csv"],
        overwrite: bool,
        on_progress: Callable[[int, int | None], object] | None,
    ) -> Flow[dict[str, Any]]:
        """Flow of `Memory.export`."""
        from mem0_core.interchange import export_csv, export_jsonl

        scope = scope_or_all(ids)
        maintenance = self._store.maintenance
        if format == "csv":
            return (yield from do(export_csv, maintenance, Path(path), scope, overwrite=overwrite))
        if format != "jsonl":
            raise InputError(f"unknown format {format!r}; supported: 'jsonl', 'csv'")
        return (
            yield from do(export_jsonl, maintenance, Path(path), scope, overwrite=overwrite, on_progress=on_progress)
        )

    def _adopt_flow(
        self,
        memories: Iterable[Mapping[str, Any]],
        *,
        history: Sequence[Mapping[str, Any]],
        messages: Sequence[Mapping[str, Any]],
        on_progress: Callable[[int, int | None], object] | None,
    ) -> Flow[dict[str, Any]]:
        """Flow of `Memory.adopt`."""
        from mem0_core.admin.adopt import adopt, filter_adoption, parse_adoption

        given = filter_adoption(parse_adoption(list(memories), history, messages), self._policy)
        return dict((yield from adopt((yield from self._ports()), given, on_progress)))
