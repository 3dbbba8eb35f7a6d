"""What is told: remembered at once or put off, and imported.

Each verb is a flow; `memory.Memory` makes its sync and async forms.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any, cast

from mem0_core.api.arguments import resolve_expiration_date, resolve_timestamp, utc_now, utc_today, validate_limit
from mem0_core.api.runtime import MemoryRuntime
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

    def _add(
        self,
        messages: Messages,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        infer: bool = True,
        memory_type: str | None = None,
        prompt: str | None = None,
        timestamp: int | float | str | datetime | None = None,
        expiration_date: str | date | None = None,
        ttl: timedelta | float | None = None,
        dry_run: bool = False,
        background: bool = False,
        max_pending: int | None = None,
    ) -> Flow[AddResult]:
        """Learn from a conversation: what is new is added, what changed is updated, what no longer holds is deleted.

        Args:
            messages: a text (one user message), a message, or a list of ``{"role", "content"}``, each with
                ``name`` (who spoke), ``timestamp`` and ``metadata`` where there are any. What is kept verbatim keeps
                them; facts are of the time of the last message.
            user_id, agent_id, run_id: whose memory it is; at least one.
            metadata: JSON kept with every memory this call adds or updates.
            infer: False keeps each user and assistant message as it was said.
            memory_type: ``"procedural_memory"`` for one summary of what an agent did, step by step.
            prompt: instructions for extraction, for this call only.
            timestamp: when the conversation took place; prompts call that day today. Unix seconds, ISO 8601
                or datetime; by default the time of the last message that has one, else now.
            expiration_date: last day on which the memories are recalled.
            ttl: how long from now they are recalled at least, as a timedelta or in seconds; it ends with a day.
            dry_run: tell what would change, and change nothing.
            background: keep the messages, durably, and return; a worker learns from them. Searches see them at once.
                The result holds nothing but ``job_id``: see `pending`, `flush` and `retry`.
            max_pending: with `background`, how many adds of the scope may wait when this one comes.

        Returns:
            ``results`` (each with ``event`` ADD, UPDATE, DELETE or NONE), ``relations`` (those that began to hold
            and those that ended, as ``source -- relationship -- destination``), ``skipped`` (what could not be used,
            and why), ``usage``, and ``pending`` where a projection could not be told yet.

        Raises:
            ScopeError: no id, or one that cannot be an id.
            InputError: a message or metadata that cannot be stored.
            LimitError: it is more, or longer, than `limits` allow; or more than `max_pending` wait.
            ModelError: a model call failed. ReplyError: with ``on_bad_reply="raise"``, it made no sense.
            StoreError: the commit failed. In every case nothing is written.
        """
        started, usage = time.perf_counter(), UsageCounter()
        scope = Scope(user_id, agent_id, run_id)
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
            return cast(AddResult, self._to_version_format(put))
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
        return cast(AddResult, self._to_version_format(result))

    def _add_many(
        self,
        messages: Iterable[str | Mapping[str, Any]],
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        infer: bool = False,
        chunk: int = 256,
        key: str | None = None,
        on_progress: Callable[[int, int | None], None] | None = None,
    ) -> Flow[AddManyResult]:
        """Import many messages, each as a memory of its own, kept as it was said: some hundred per transaction.

        What it leaves is what as many calls of `add` would leave (with ``infer=False``, where there is a model). It
        asks no model, and counts as one add.

        Args:
            messages: texts, or messages as `add` takes them. A list is read as a whole first, so that one that cannot
                be stored stops the import before it begins; an iterator is read a chunk at a time.
            user_id, agent_id, run_id: whose memories they are; at least one.
            metadata: JSON kept with every one of them, beside its own.
            infer: put each message off instead, as ``add(background=True)`` does, for the model to learn from.
            chunk: how many messages are embedded and committed at once. A chunk ends sooner where a message takes back
                what another one of it says, as far as rules read relations in them.
            key: a name for this import into this scope. What is done is kept with it: called again with the same
                messages and key, after whatever cut it short, it goes on from there, and does nothing if all is done.
                `delete_all` and `reset` forget it.
            on_progress: called after each chunk with how many messages are done, and how many there are (None for an
                iterator).

        Returns:
            ``added``, ``known`` (said before, by the same speaker in the same words), ``jobs`` (put off), ``skipped``
            with reasons, ``resumed`` (done by an earlier call with this key), and ``pending`` as for `add`.

        Raises:
            ConfigError: `infer` without a model.
            InputError: a message cannot be stored, and which; or the key is of a longer import.
            StoreError: a commit failed. What was committed before is kept, whatever is raised.
        """
        scope = Scope(user_id, agent_id, run_id)
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

    def _pending(
        self, *, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None
    ) -> Flow[list[JobDict]]:
        """What was put off and is not done yet, oldest first; of everybody, where no id is given.

        A job that failed too often is ``parked``, with its ``error``: it waits for `retry`.
        """
        given = any(value is not None for value in (user_id, agent_id, run_id))
        scope = Scope(user_id, agent_id, run_id) if given else None
        return [job_dict(job) for job in (yield from do(self._store.jobs.list_jobs, scope))]

    def _flush(self, timeout: float | None = None) -> Flow[bool]:
        """Wait until nothing is left to do but what is parked; False where that took longer than `timeout` seconds."""
        if (yield from do(self._background.has_unfinished_jobs)):
            yield from do(self._background.start)
        return (yield from do(self._background.flush, timeout))

    def _retry(self, job_id: str) -> Flow[None]:
        """Let a parked job be tried again.

        Raises:
            NotFoundError: no parked job has that id.
        """
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
