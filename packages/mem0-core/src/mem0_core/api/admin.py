"""Flows that administer a store: backup, checks, statistics, export, adoption."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from mem0_core._system.boundary import call_hook, guard_hook
from mem0_core._system.files import validate_path
from mem0_core.api._arguments import ScopeIds, scope_or_all
from mem0_core.api._runtime import MemoryRuntime
from mem0_core.api.factory import snapshot_folder
from mem0_core.domain.erasure import ErasureReceipt
from mem0_core.domain.records import Scope, VerifyResult
from mem0_core.domain.suggestions import suggest
from mem0_core.errors import InputError
from mem0_core.flow import Flow, do
from mem0_core.interfaces.maintenance import ProgressCallback

_EXPORT_FORMATS = ("jsonl", "csv", "pam", "mif")


class AdminApi(MemoryRuntime):
    """Flows of `Memory` that administer its store."""

    def _backup_flow(
        self, path: str | Path, *, overwrite: bool, on_progress: ProgressCallback | None
    ) -> Flow[dict[str, Any]]:
        from mem0_core.admin.backup import write_backup

        on_progress = guard_hook("on_progress", on_progress)
        return (
            yield from do(
                write_backup, self._store, validate_path(path, "path"), overwrite=overwrite, on_progress=on_progress
            )
        )

    def _erase_flow(self, *, ids: ScopeIds, reason: str) -> Flow[ErasureReceipt]:
        from mem0_core.admin.erase import erase_subject

        scope = Scope(*ids)
        ports = yield from self._ports()
        yield from do(self._clear_temporary_files)
        files = yield from do(self._data_files)
        return (yield from erase_subject(ports, scope, reason=reason, folder=self.config.folder, files=files))

    def _erasures_flow(self) -> Flow[list[ErasureReceipt]]:
        from mem0_core.admin.erase import list_receipts

        return (yield from do(list_receipts, self._store.maintenance))

    def _verify_receipt_flow(self, receipt: Mapping[str, Any], *, ids: ScopeIds) -> Flow[bool]:
        from mem0_core.admin.erase import verify_receipt

        if not isinstance(receipt, Mapping):
            raise InputError(f"receipt must be the dict that erase returned, not {type(receipt).__name__}")
        scope = scope_or_all(ids)
        named = {} if scope is None else {axis.value: value for axis, value in scope.ids.items()}
        return (yield from do(verify_receipt, self._store.maintenance, receipt, named))

    def _verify_flow(self) -> Flow[VerifyResult]:
        from mem0_core.admin.verify import verify

        return (yield from verify((yield from self._ports()))).as_dict()

    def _doctor_flow(
        self, *, repair: bool, deep: bool, torn: str | None, on_progress: ProgressCallback | None
    ) -> Flow[dict[str, Any]]:
        from mem0_core.admin.doctor import diagnose

        on_progress = guard_hook("on_progress", on_progress)
        ports = yield from self._ports()
        folders = yield from do(self._copy_folders)
        diagnosis = yield from diagnose(
            ports, repair=repair, deep=deep, torn=torn, folders=folders, on_progress=on_progress
        )
        return diagnosis.as_dict()

    def _stats_flow(self, *, ids: ScopeIds) -> Flow[dict[str, Any]]:
        scope = scope_or_all(ids)
        counts: dict[str, Any] = yield from do(self._store.maintenance.count_records, scope)
        if scope is None:
            counts = {**counts, "bytes": (yield from do(self._measure_files))}
            if self._cache is not None:
                counts["search_cache"] = self._cache.statistics()
        return counts

    def _measure_files(self) -> dict[str, Any]:
        """Return the bytes of the store's files, and of the snapshots of the vector index on this machine."""
        snapshots = (path for path in snapshot_folder(self.config).rglob("*") if path.is_file())
        sizes = self._store.maintenance.disk_usage()
        return {**sizes, "snapshots": sum(path.stat().st_size for path in snapshots)}

    def _export_flow(
        self,
        path: str | Path,
        *,
        ids: ScopeIds,
        format: Literal["jsonl", "csv", "pam", "mif"],
        overwrite: bool,
        on_progress: ProgressCallback | None,
    ) -> Flow[dict[str, Any]]:
        from importlib.metadata import version

        from mem0_core.admin.copies import register_copy
        from mem0_core.interchange import export_csv, export_jsonl, export_portable

        scope = scope_or_all(ids)
        on_progress = guard_hook("on_progress", on_progress)
        maintenance, file = self._store.maintenance, validate_path(path, "path")
        if format not in _EXPORT_FORMATS:
            raise InputError(f"unknown format {format!r}{suggest(str(format), _EXPORT_FORMATS)}; pass one of them")
        yield from do(register_copy, maintenance, "export", file)
        if format in ("pam", "mif"):
            options: dict[str, Any] = {"format": format, "version": version("mem0-core"), "overwrite": overwrite}
            return (yield from do(export_portable, maintenance, file, scope, **options))
        if format == "csv":
            return (yield from do(export_csv, maintenance, file, scope, overwrite=overwrite))
        return (yield from do(export_jsonl, maintenance, file, scope, overwrite=overwrite, on_progress=on_progress))

    def _adopt_flow(
        self,
        memories: Iterable[Mapping[str, Any]],
        *,
        history: Sequence[Mapping[str, Any]],
        messages: Sequence[Mapping[str, Any]],
        on_progress: ProgressCallback | None,
    ) -> Flow[dict[str, Any]]:
        from mem0_core.admin.adopt import adopt, filter_adoption, parse_adoption

        on_progress = guard_hook("on_progress", on_progress)
        given = filter_adoption(parse_adoption(call_hook("memories", list, memories), history, messages), self._policy)
        return dict((yield from adopt((yield from self._ports()), given, on_progress)))
