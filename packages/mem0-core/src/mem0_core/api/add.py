"""Flows that add memories: at once, in the background, or many at a time."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from mem0_core._system.boundary import guard_hook
from mem0_core.api._arguments import (
    ScopeIds,
    resolve_expiration_date,
    resolve_timestamp,
    scope_or_all,
    validate_count,
)
from mem0_core.api._results import UsageCounter, added_dict, job_dict, relation_changes_dict
from mem0_core.api._runtime import MemoryRuntime
from mem0_core.domain.policy import check_sizes, filter_messages
from mem0_core.domain.records import (
    AddManyResult,
    AddResult,
    Event,
    JobDict,
    Message,
    Messages,
    Scope,
    is_valid_text,
)
from mem0_core.domain.suggestions import check_flag, suggest
from mem0_core.domain.timestamps import utc_today
from mem0_core.domain.trust import Origin, name_origin, parse_origin
from mem0_core.errors import ConfigError, InputError, Mem0Error, NotFoundError
from mem0_core.flow import Flow, do, observe
from mem0_core.interfaces import Job, Lease
from mem0_core.language.messages import check_metadata, parse_messages

if TYPE_CHECKING:
    from mem0_core.ingest.bulk import ImportProgress
    from mem0_core.ingest.request import AddRequest

# The pipeline is imported by the methods that need it: a command that only searches starts in half of the time.

_log = logging.getLogger(__name__)


class AddApi(MemoryRuntime):
    """Flows of `Memory` that add memories, and the processing of queued jobs."""

    def _add_flow(
        self,
        messages: Messages,
        *,
        ids: ScopeIds,
        metadata: Mapping[str, Any] | None,
        infer: bool,
        keep: Literal["all", "statements"],
        facts_about: Literal["auto", "owner", "user", "agent"],
        memory_type: str | None,
        prompt: str | None,
        timestamp: int | float | str | datetime | None,
        expiration_date: str | date | None,
        ttl: timedelta | float | None,
        dry_run: bool,
        background: bool,
        max_pending: int | None,
        origin: Origin,
    ) -> Flow[AddResult]:
        started, usage, scope = time.perf_counter(), UsageCounter(), Scope(*ids)
        _check_options(memory_type, keep, facts_about, infer=infer, dry_run=dry_run, background=background)
        parsed = parse_messages(messages)
        check_sizes(self._limits, parsed.messages)
        allowed, refused = filter_messages(self._policy, name_origin(parsed.messages, parse_origin(*origin)), scope)
        self._rates.record_add(scope)
        new = yield from self._drop_stored(scope, allowed, background=background)
        at = resolve_timestamp(timestamp, parsed.messages) or ""  # else `_enqueue` finds the time
        request = self._request(
            scope,
            at=at if at or background else (yield from self._statement_time(scope)),
            prompt=prompt,
            messages=new,
            metadata=check_metadata(metadata, "the add"),
            infer=infer,
            keep=keep,
            facts_about=facts_about,
            memory_type=memory_type,
            expiration_date=resolve_expiration_date(expiration_date, ttl),
            dry_run=dry_run,
        )
        if background or (allowed and not new):
            result = AddResult(results=[], relations=relation_changes_dict(()), skipped=[], usage=usage.total(0))
            if (new or not allowed) and (job := (yield from self._enqueue(request, max_pending))) is not None:
                result["job_id"] = job
        else:
            result = yield from self._ingest(request, usage)
        result["skipped"][:0] = [*parsed.skipped, *refused]
        result["usage"]["seconds"] = time.perf_counter() - started
        return result

    def _log_flow(self, messages: Messages, *, ids: ScopeIds) -> Flow[None]:
        """Store messages of any role in the conversation of exactly this scope, without learning from them."""
        scope, parsed = Scope(*ids), parse_messages(messages)
        check_sizes(self._limits, parsed.messages)
        allowed, _ = filter_messages(self._policy, parsed.messages, scope)
        self._rates.record_add(scope)
        if allowed:
            at = resolve_timestamp(None, allowed) or (yield from self._statement_time(scope))
            yield from do(self._store.commit, (), scope=scope, messages=allowed, at=at)

    def _drop_stored(
        self, scope: Scope, messages: tuple[Message, ...], *, background: bool
    ) -> Flow[tuple[Message, ...]]:
        """Return the messages without those whose ids are stored already: their turn is replayed, or shared.

        In the background the queue leaves them out, unless the job names images by the index of their message.
        """
        if all(message.key is None for message in messages):
            return messages
        if background and not any(message.images for message in messages):
            return messages
        stored = yield from do(self._store.message_log.are_stored, scope, messages)
        return tuple(message for message, known in zip(messages, stored, strict=True) if not known)

    def _ingest(self, request: AddRequest, usage: UsageCounter) -> Flow[AddResult]:
        """Run the ingest pipeline now, and count its model calls."""
        from mem0_core.ingest.remember import ingest

        done = yield from observe(ingest((yield from self._ports()), request), usage.count)
        if done.summary_queued:
            yield from do(self._background.start)
        result = AddResult(
            results=[added_dict(change) for change in done.changes if change.event is not Event.NONE],
            relations=relation_changes_dict(done.relations),
            skipped=list(done.skipped),
            usage=usage.total(0),
        )
        if unchanged := [added_dict(change) for change in done.changes if change.event is Event.NONE]:
            result["unchanged"] = unchanged
        if done.pending:
            result["pending"] = list(done.pending)
        if done.failed_job is not None:
            result["job_id"] = str(done.failed_job)
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
        origin: Origin,
        on_progress: Callable[[int, int | None], None] | None,
    ) -> Flow[AddManyResult]:
        from mem0_core.ingest.bulk import MessageSource, import_messages

        scope, chunk = Scope(*ids), validate_count(chunk, "chunk", example=256)
        if infer and self._chat is None:
            raise ConfigError("infer=True extracts facts with a chat model, and there is none; configure 'llm'")
        if key is not None and not (isinstance(key, str) and key and is_valid_text(key)):
            raise InputError(f"key must be a non-empty string, not {key!r}")
        by_rules = self._chat is None and self._graph_chat is None  # a model extracts relations from facts only
        at = yield from self._statement_time(scope)
        request = self._request(scope, at=at, metadata=check_metadata(metadata, "the import"), infer=infer or by_rules)
        given = MessageSource(
            messages,
            request,
            by_rules=by_rules and self._graph_config is not None,
            message_chars=self._limits.message_chars,
            origin=parse_origin(*origin),
        )
        resume_after = 0 if key is None else (yield from do(self._store.import_checkpoint, scope, key))
        yield from do(given.start_at, resume_after)
        self._rates.record_add(scope)
        done = yield from import_messages(
            (yield from self._ports()),
            request,
            given,
            after=resume_after,
            chunk_size=chunk,
            key=key,
            enqueue=infer,
            wake_workers=self._background.start,
            on_progress=guard_hook("on_progress", on_progress),
        )
        return _add_many_result(done, resume_after)

    def _enqueue(self, request: AddRequest, max_jobs: int | None) -> Flow[str | None]:
        """Queue a request, start the workers, and return the id of the job; None if all messages are known."""
        from mem0_core.ingest.request import to_job_options

        if request.dry_run:
            raise InputError("dry_run and background exclude each other: a dry run reports its changes at once")
        job = yield from do(
            self._store.jobs.enqueue,
            request.scope,
            "remember",
            at=request.at or partial(self._clock.now, request.scope.partition_scope),
            messages=request.messages,
            options=to_job_options(request),
            max_jobs=max_jobs,
        )
        if job is None:
            return None
        yield from do(self._background.start)
        return str(job)

    def _pending_flow(self, *, ids: ScopeIds) -> Flow[list[JobDict]]:
        return [job_dict(job) for job in (yield from do(self._store.jobs.list_jobs, scope_or_all(ids)))]

    def _flush_flow(self, timeout: float | None) -> Flow[bool]:
        if (yield from do(self._background.has_unfinished_jobs)):
            yield from do(self._background.start)
        return (yield from do(self._background.flush, timeout))

    def _retry_flow(self, job_id: str, *, ids: ScopeIds) -> Flow[None]:
        if not (isinstance(job_id, str) and job_id.isdecimal()):
            raise InputError(
                f"job_id must be a string of digits, not {job_id!r}; pass the id of a job that pending lists"
            )
        owner = scope_or_all(ids)
        if owner is not None and all(
            str(job.row) != job_id for job in (yield from do(self._store.jobs.list_jobs, owner))
        ):
            raise NotFoundError(job_id, "job")
        if not (yield from do(self._store.jobs.retry, int(job_id))):
            raise NotFoundError(job_id, "job")
        yield from do(self._background.start)

    def _do_jobs(self, jobs: list[Job], lease: Lease) -> Flow[None]:
        """Process queued jobs: ingest their messages, or refresh the summary of a conversation."""
        from mem0_core.ingest.conversation import refresh_summary
        from mem0_core.ingest.remember import ingest

        ports = yield from self._ports()
        if jobs[0].kind == "summary":
            if self._chat is None:
                yield from do(self._store.jobs.mark_done, lease)
                return
            yield from refresh_summary(ports, self._chat, jobs[0], lease, max_words=self.config.summary_words)
        elif any(job.messages for job in jobs):
            done = yield from ingest(ports, self._request_for_jobs(jobs), lease)
            for skipped in done.skipped:  # no caller gets the result
                _log.warning("skipped in the background: %s (%r)", skipped["reason"], skipped["item"])
            if ports.cache is not None:
                with suppress(Mem0Error):  # the jobs are done
                    yield from do(ports.cache.refresh, ports.store, ports.index, jobs[0].scope)
        else:  # the messages were deleted after they were queued
            yield from do(self._store.jobs.mark_done, lease)

    def _request_for_jobs(self, jobs: Sequence[Job]) -> AddRequest:
        """Return one request for all messages of the jobs."""
        from mem0_core.ingest.request import build_request

        return build_request(jobs, self._request(jobs[0].scope, at=jobs[-1].timestamp))

    def _request(
        self, scope: Scope, *, at: str, prompt: str | None = None, messages: tuple[Message, ...] = (), **options: Any
    ) -> AddRequest:
        """Build a request from the configuration and the options of the call."""
        from mem0_core.ingest.request import AddRequest, PromptOverrides, stored_messages

        return AddRequest(
            scope=scope,
            messages=stored_messages(messages),
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
            max_changes=self.config.max_changes,
            max_deletions=self.config.max_deletions,
            extraction=self.config.extraction,
            operations=self.config.operations,
            policy=self._policy,
            **options,
        )


def _add_many_result(done: ImportProgress, resumed: int) -> AddManyResult:
    result = AddManyResult(added=done.added, known=done.known, skipped=done.skipped, jobs=done.jobs, resumed=resumed)
    if done.pending:
        result["pending"] = list(done.pending)
    return result


def _check_options(memory_type: str | None, keep: str, facts_about: str, **flags: bool) -> None:
    from mem0_core.ingest.request import FACTS_ABOUT, KEEP, PROCEDURAL_MEMORY

    for name, value in flags.items():
        check_flag(value, name)
    if memory_type not in (None, PROCEDURAL_MEMORY):
        hint = suggest(str(memory_type), [PROCEDURAL_MEMORY])
        raise InputError(f"unknown memory_type {memory_type!r}{hint}; leave it out for facts")
    for name, chosen, accepted in (("keep", keep, KEEP), ("facts_about", facts_about, FACTS_ABOUT)):
        if chosen not in accepted:
            raise InputError(f"unknown {name} {chosen!r}{suggest(str(chosen), accepted)}; pass one of them")
