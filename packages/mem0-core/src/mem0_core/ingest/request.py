"""Data that the ingest pipelines pass on: the request, the input of relation extraction, and the result."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, Literal, NewType

from mem0_core._system.records import dataclass
from mem0_core.domain.policy import Policy
from mem0_core.domain.records import (
    Fact,
    LaggingProjection,
    MemoryChange,
    Message,
    RelationChange,
    Scope,
    SkippedItem,
)
from mem0_core.interfaces import Job
from mem0_core.language.messages import SPEAKER_ROLES, format_transcript
from mem0_core.llm.prompts import NO_CONTEXT, Context

PROCEDURAL_MEMORY = "procedural_memory"
KEEP = ("all", "statements")
"""Messages that become memories without a chat model."""
FACTS_ABOUT = ("auto", "owner", "user", "agent")
"""Rules that choose whose facts a chat model is asked for."""

StoredMessages = NewType("StoredMessages", tuple[Message, ...])
"""Messages to store with the memories, from `stored_messages`; facts, relations and jobs refer to them by index."""


def stored_messages(messages: Sequence[Message]) -> StoredMessages:
    """Return the messages of a conversation without the instructions to the model."""
    return StoredMessages(tuple(message for message in messages if message.role not in ("system", "developer")))


@dataclass(frozen=True, slots=True)
class PromptOverrides:
    """Prompt texts that the caller replaces or adds."""

    facts: str | None = None
    """Replaces the system prompt of extraction (mem0's `custom_fact_extraction_prompt`)."""
    update: str | None = None
    """Replaces the guidance of the update prompt (mem0's `custom_update_memory_prompt`)."""
    instructions: str | None = None
    """Instructions for this one add (mem0's `prompt`)."""


@dataclass(frozen=True, slots=True)
class RelationInput:
    """Input of relation extraction.

    Attributes:
        messages: changes refer to them by index.
        bad_reply: treatment of items that stay unreadable after the repair request.
        context: summary and messages before these.
        at: time of messages without a time of their own; None for now.
    """

    scope: Scope
    messages: StoredMessages
    bad_reply: Literal["skip", "raise"] = "skip"
    context: Context = NO_CONTEXT
    at: str | None = None

    def time_of(self, index: int) -> str | None:
        """Return the time of a message; None for now."""
        return self.messages[index].timestamp or self.at

    @property
    def text(self) -> str:
        return format_transcript(self.messages)

    @property
    def speaker_positions(self) -> tuple[int, ...]:
        """Indexes of the messages in `text`."""
        return tuple(index for index, message in enumerate(self.messages) if message.role in SPEAKER_ROLES)


@dataclass(frozen=True, slots=True)
class AddRequest:
    """One call of `add`.

    Attributes:
        messages: the messages to store; facts and relations refer to them by index.
        keep: without a chat model, make memories of all messages or of statements only.
        facts_about: whose facts the default prompt asks a chat model for; see `is_about_agent`.
        at: ISO 8601 time of the conversation; used as today in prompts and as the time of the memories.
        today: ``YYYY-MM-DD`` of the call; decides which memories have expired.
        neighbours: memories nearest to each fact that the model compares it with (s in the Mem0 paper).
        window: earlier messages that the model reads for context (m in the Mem0 paper).
        summary_every: messages between two summaries; 0 for no summaries.
        bad_reply: treatment of items that stay unreadable after the repair request.
        extraction: "fused" makes one model call for everything; else `GraphOptions` selects the steps for relations.
        operations: the model decides by JSON or by tool calls; "auto" depends on the model.
        policy: checks every text before it is stored.
        max_changes: additions and updates, and facts, that one reply may ask for.
        max_deletions: deletions that one reply may ask for.
    """

    scope: Scope
    messages: StoredMessages
    at: str
    today: str
    metadata: Mapping[str, Any] = field(default_factory=dict)
    infer: bool = True
    keep: Literal["all", "statements"] = "all"
    facts_about: Literal["auto", "owner", "user", "agent"] = "auto"
    memory_type: str | None = None
    expiration_date: str | None = None
    dry_run: bool = False
    prompts: PromptOverrides = field(default_factory=PromptOverrides)
    neighbours: int = 10
    window: int = 10
    summary_every: int = 20
    vision: bool = False
    bad_reply: Literal["skip", "raise"] = "skip"
    extraction: Literal["staged", "fused", "triplets"] = "staged"
    operations: Literal["auto", "json", "tools"] = "auto"
    policy: Policy | None = None
    max_changes: int = 200
    max_deletions: int = 5

    def to_relation_input(self, context: Context = NO_CONTEXT) -> RelationInput:
        """Return the input of relation extraction."""
        return RelationInput(self.scope, self.messages, self.bad_reply, context, self.at)

    @property
    def is_about_agent(self) -> bool:
        """True if the prompt asks for facts about the agent.

        "auto" is the rule of mem0 1.x: the scope has an agent_id, and one of the messages is the assistant's. "owner"
        adds that a user_id has precedence, so that the facts of a user are kept in a conversation with a named agent.
        """
        if self.facts_about in ("user", "agent"):
            return self.facts_about == "agent"
        if self.facts_about == "owner" and self.scope.user_id is not None:
            return False
        return self.scope.agent_id is not None and any(message.role == "assistant" for message in self.messages)


@dataclass(frozen=True, slots=True)
class IngestResult:
    """Outcome of an add: planned before the commit and in a dry run, committed after it.

    Attributes:
        facts: extracted facts.
        skipped: items that could not be used, with the reason.
        pending: projections that could not be updated yet.
        summary_queued: True if a job for a new summary was enqueued.
        failed_job: job that holds the messages because a reply was unusable as a whole; nothing else was written.
    """

    facts: tuple[Fact, ...] = ()
    changes: tuple[MemoryChange, ...] = ()
    relations: tuple[RelationChange, ...] = ()
    skipped: tuple[SkippedItem, ...] = ()
    pending: tuple[LaggingProjection, ...] = ()
    summary_queued: bool = False
    failed_job: int | None = None


def to_job_options(request: AddRequest) -> dict[str, Any]:
    """Return the options of a request to store with its job, as JSON: those of the call, not of the configuration."""
    images = {str(index): list(message.images) for index, message in enumerate(request.messages) if message.images}
    options = {
        "metadata": dict(request.metadata),
        "infer": request.infer,
        "keep": None if request.keep == "all" else request.keep,
        "facts_about": None if request.facts_about == "auto" else request.facts_about,
        "memory_type": request.memory_type,
        "expiration_date": request.expiration_date,
        "prompt": request.prompts.instructions,
        "images": images,
        "source": next((message.source for message in request.messages if message.source is not None), None),
    }
    return {key: value for key, value in options.items() if value not in (None, {}, True)}


def build_request(jobs: Sequence[Job], configured: AddRequest) -> AddRequest:
    """Return the request of queued jobs, on top of `configured`; several turns become one request."""
    options = jobs[0].options
    return dataclasses.replace(
        configured,
        messages=stored_messages([message for job in jobs for message in _restore_images(job)]),
        metadata=options.get("metadata", {}),
        infer=options.get("infer", True),
        keep=options.get("keep", "all"),
        facts_about=options.get("facts_about", "auto"),
        memory_type=options.get("memory_type"),
        expiration_date=options.get("expiration_date"),
        prompts=dataclasses.replace(configured.prompts, instructions=options.get("prompt")),
    )


def _restore_images(job: Job) -> list[Message]:
    images = job.options.get("images", {})
    return [
        dataclasses.replace(message, images=tuple(images.get(str(index), ())))
        for index, message in enumerate(job.messages)
    ]
