"""What is told: remembered at once or put off, and imported.

Each verb is a flow; `memory.Memory` makes its sync and async forms.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any

from mem0_core.api._arguments import (
    ScopeIds,
    resolve_expiration_date,
    resolve_timestamp,
    utc_now,
    utc_today,
    validate_limit,
)
from mem0_core.api._runtime import MemoryRuntime
from mem0_core.domain.policy import check_sizes, filter_messages
from mem0_core.domain.records import (
    AddManyResult,
    AddResult,
    JobDict,
    Message,
    Messages,
    Scope,
    is_valid_text,
)
from mem0_core.domain.results import UsageCounter, added_dict, job_dict, relation_changes_dict
from mem0_core.errors import ConfigError, InputError, NotFoundError
from mem0_core.flow import Flow, do, observe
from mem0_core.ingest.bulk import MessageSource, import_messages
from mem0_core.ingest.conversation import refresh_summary
from mem0_core.ingest.remember import ingest
from mem0_core.ingest.request import (
    PROCEDURAL_MEMORY,
    AddRequest,
    PromptOverrides,
    build_request,
    stored_messages,
    to_job_options,
)
from mem0_core.interfaces import Job, Lease
from mem0_core.language.messages import check_metadata, parse_messages

__all__ = ["AddApi"]

_log = logging.getLogger(__name__)


class AddApi(MemoryRuntime):
    """What is told: remembered at once or put off, and imported."""

    def _add_flow(
        self,
        messages: Messages,
        *,
        ids: ScopeIds,
        metadata: Mapping[str, Any] | None,
        infer: bool,
        memory_type: str | None,
        prompt: str | None,
        timestamp: int | float | str | datetime | None,
        expiration_date: str | date | None,
        ttl: timedelta | float | None,
        dry_run: bool,
        background: bool,
        max_pending: int | None,
    ) -> Flow[AddResult]:
        """Flow of `Memory.add`."""
        started, usage = time.perf_counter(), UsageCounter()
        scope = Scope(*ids)
        if memory_type not in (None, PROCEDURAL_MEMORY):
            raise InputError(f"unknown memory_type {memory_type!r}; the one there is: {PROCEDURAL_MEMORY!r}")
        parsed = parse_messages(messages)
        check_sizes(self._limits, parsed.messages)
        allowed, refused = filter_messages(self._policy, parsed.messages, scope)
        self._rates.record_add(scope)
        request = self._request(
            scope,
            at=resolve_timestamp(timestamp, parsed.messages),
            prompt=prompt,
            messages=allowed,
            metadata=check_metadata(metadata, "the add"),
            infer=infer,
            memory_type=memory_type,
            expiration_date=resolve_expiration_date(expiration_date, ttl),
            dry_run=dry_run,
        )
        if background:
            job = yield from self._enqueue(request, max_pending)
            put = AddResult(
                results=[],
                relations=relation_changes_dict(()),
                skipped=[*parsed.skipped, *refused],
                usage=usage.total(time.perf_counter() - started),
                job_id=job,
            )
            return put
        ports = yield from self._ports()
        done = yield from observe(ingest(ports, request), usage.count)
        if done.summary_queued:
            yield from do(self._background.start)
        result = AddResult(
            results=[added_dict(change) for change in done.changes],
            relations=relation_changes_dict(done.relations),
            skipped=[*parsed.skipped, *refused, *done.skipped],
            usage=usage.total(time.perf_counter() - started),
        )
        if done.pending:
            result["pending"] = list(done.pending)
        return result

    def _add_many_flow(
        self,
        messages: Iterable[str | Mapping[str, Any]],
        *,
        ids: ScopeIds,
        metadata: Mapping[str, Any] | None,
        infer: bool,
        chunk: int,
        key: str | None,
        on_progress: Callable[[int, int | None], None] | None,
    ) -> Flow[AddManyResult]:
        """Flow of `Memory.add_many`."""
        scope = Scope(*ids)
        if infer and self._chat is None:
            raise ConfigError("llm: infer=True learns from messages with a chat model, and there is none")
        if key is not None and not (isinstance(key, str) and key and is_valid_text(key)):
            raise InputError(f"key must be a non-empty string, not {key!r}")
        most = validate_limit(chunk, None, default=0)
        by_rules = self._chat is None and self._graph_chat is None  # else nobody reads relations in what is not learnt
        request = self._request(
            scope, at=utc_now(), metadata=check_metadata(metadata, "the import"), infer=infer or by_rules
        )
        source = MessageSource(
            messages,
            request,
            by_rules=by_rules and self._graph_config is not None,
            message_chars=self._limits.message_chars,
        )
        after = 0 if key is None else (yield from do(self._store.import_checkpoint, scope, key))
        yield from do(source.start_at, after)
        self._rates.record_add(scope)
        done = yield from import_messages(
            (yield from self._ports()),
            request,
            source,
            after=after,
            chunk_size=most,
            key=key,
            enqueue=infer,
            wake_workers=self._background.start,
            on_progress=on_progress,
        )
        result = AddManyResult(added=done.added, known=done.known, skipped=done.skipped, jobs=done.jobs, resumed=after)
        if done.pending:
            result["pending"] = list(done.pending)
        return result

    def _enqueue(self, request: AddRequest, most: int | None) -> Flow[str]:
        """Keep a request for later, and see that somebody is there to do it."""
        if request.dry_run:
            raise InputError("dry_run and background: nothing would be done, later")
        job = yield from do(
            self._store.jobs.enqueue,
            request.scope,
            "remember",
            at=request.at,
            messages=stored_messages(request.messages),
            options=to_job_options(request),
            max_jobs=most,
        )
        yield from do(self._background.start)
        return str(job)

    def _pending_flow(self, *, ids: ScopeIds) -> Flow[list[JobDict]]:
        """Flow of `Memory.pending`."""
        given = any(value is not None for value in ids)
        scope = Scope(*ids) if given else None
        return [job_dict(job) for job in (yield from do(self._store.jobs.list_jobs, scope))]

    def _flush_flow(self, timeout: float | None) -> Flow[bool]:
        """Flow of `Memory.flush`."""
        if (yield from do(self._background.has_unfinished_jobs)):
            yield from do(self._background.start)
        return (yield from do(self._background.flush, timeout))

    def _retry_flow(self, job_id: str) -> Flow[None]:
        """Flow of `Memory.retry`."""
        if not (isinstance(job_id, str) and job_id.isdecimal()):
            raise InputError(f"a job's id is a string of digits, not {job_id!r}")
        if not (yield from do(self._store.jobs.retry, int(job_id))):
            raise NotFoundError(job_id)
        yield from do(self._background.start)

    def _do_jobs(self, jobs: list[Job], lease: Lease) -> Flow[None]:
        """What the workers do: remember turns that were put off, or sum a conversation up."""
        ports = yield from self._ports()
        if jobs[0].kind == "summary":
            if self._chat is None:
                yield from do(self._store.jobs.mark_done, lease)
                return
            yield from refresh_summary(ports, self._chat, jobs[0], lease, max_words=self.config.summary_words)
        elif any(job.messages for job in jobs):
            done = yield from ingest(ports, self._request_for_jobs(jobs), lease)
            for skipped in done.skipped:  # nobody waits for the result
                _log.warning("not remembered: %s (%r)", skipped["reason"], skipped["item"])
        else:  # they were deleted meanwhile
            yield from do(self._store.jobs.mark_done, lease)

    def _request_for_jobs(self, jobs: Sequence[Job]) -> AddRequest:
        """The request that jobs were put off for, as one."""
        return build_request(jobs, self._request(jobs[0].scope, at=jobs[-1].timestamp))

    def _request(
        self,
        scope: Scope,
        *,
        at: str,
        prompt: str | None = None,
        messages: tuple[Message, ...] = (),
        **own: Any,
    ) -> AddRequest:
        """A request as the configuration has it, with what is the call's own."""
        return AddRequest(
            scope=scope,
            messages=messages,
            at=at,
            today=utc_today(),
            prompts=PromptOverrides(
                facts=self.config.custom_fact_extraction_prompt,
                update=self.config.custom_update_memory_prompt,
                instructions=prompt,
            ),
            neighbours=self.config.neighbours,
            vision=self.config.enable_vision,
            window=self.config.window,
            summary_every=self.config.summary_every,
            bad_reply=self.config.on_bad_reply,
            extraction=self.config.extraction,
            operations=self.config.operations,
            policy=self._policy,
            **own,
        )
