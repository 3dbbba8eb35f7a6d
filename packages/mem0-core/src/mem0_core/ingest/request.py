"""One call of `add`, as the pipelines see it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from mem0_core.domain.policy import Policy
from mem0_core.domain.records import Fact, MemoryChange, Message, RelationChange, Scope, SkippedItem
from mem0_core.interfaces import Job
from mem0_core.language.messages import SPEAKER_ROLES, format_transcript
from mem0_core.llm.prompts import NO_CONTEXT, Context

__all__ = [
    "PROCEDURAL_MEMORY",
    "AddRequest",
    "IngestPlan",
    "PromptOverrides",
    "RelationInput",
    "build_request",
    "stored_messages",
    "to_job_options",
]

PROCEDURAL_MEMORY = "procedural_memory"


@dataclass(frozen=True, slots=True)
class PromptOverrides:
    """What the caller puts in place of, or adds to, our prompts."""

    facts: str | None = None
    """Replaces the system prompt of extraction (mem0's `custom_fact_extraction_prompt`)."""
    update: str | None = None
    """Replaces the guidance of the update prompt (mem0's `custom_update_memory_prompt`)."""
    instructions: str | None = None
    """Instructions for this one add (mem0's `prompt`)."""


@dataclass(frozen=True, slots=True)
class RelationInput:
    """What is read for relations.

    Attributes:
        messages: those that are kept with the memories; changes refer to them by position.
        bad_reply: what becomes of items the model did not put in the agreed form, after it was asked again.
        context: what was said before.
    """

    scope: Scope
    messages: tuple[Message, ...]
    bad_reply: Literal["skip", "raise"] = "skip"
    context: Context = NO_CONTEXT

    @property
    def text(self) -> str:
        return format_transcript(self.messages)

    @property
    def speaker_positions(self) -> tuple[int, ...]:
        """Positions of the messages that make up `text`."""
        return tuple(place for place, message in enumerate(self.messages) if message.role in SPEAKER_ROLES)


@dataclass(frozen=True, slots=True)
class AddRequest:
    """One call of `add`.

    Attributes:
        at: ISO 8601 time of the conversation: the day prompts call today, and the memories' time.
        today: ``YYYY-MM-DD`` of the call itself, which decides what has expired.
        neighbours: s, how many memories nearest to each fact the model weighs it against.
        window: m, how many messages before these the model reads them by.
        summary_every: messages after which the summary of the conversation is due anew; 0 for never.
        bad_reply: what becomes of items the model did not put in the agreed form, after it was asked again.
        extraction: "fused" asks one question for everything; how relations are found otherwise, `GraphOptions` says.
        operations: whether it decides in JSON (seed 000) or by calls of tools (seed 001).
        policy: has the last say on every text before it is kept.
    """

    scope: Scope
    messages: tuple[Message, ...]
    at: str
    today: str
    metadata: Mapping[str, Any] = field(default_factory=dict)
    infer: bool = True
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

    def to_relation_input(self, context: Context = NO_CONTEXT) -> RelationInput:
        """What of it is read for relations."""
        return RelationInput(self.scope, stored_messages(self.messages), self.bad_reply, context)

    @property
    def is_about_agent(self) -> bool:
        """An agent's own scope collects facts about the agent; where a user is named, they are about the user."""
        return self.scope.agent_id is not None and self.scope.user_id is None


@dataclass(frozen=True, slots=True)
class IngestPlan:
    """What was made of a conversation, before it is committed: the facts, and what they and the relations change."""

    facts: tuple[Fact, ...] = ()
    changes: tuple[MemoryChange, ...] = ()
    relations: tuple[RelationChange, ...] = ()
    skipped: tuple[SkippedItem, ...] = ()


def to_job_options(request: AddRequest) -> dict[str, Any]:
    """What of a request is kept with a job, as JSON: all that is the call's own, and not the configuration's."""
    images = {str(place): list(message.images) for place, message in enumerate(stored_messages(request.messages))}
    kept = {
        "metadata": dict(request.metadata),
        "infer": request.infer,
        "memory_type": request.memory_type,
        "expiration_date": request.expiration_date,
        "prompt": request.prompts.instructions,
        "images": {place: shown for place, shown in images.items() if shown},
    }
    return {key: value for key, value in kept.items() if value not in (None, {}, True)}


def build_request(jobs: Sequence[Job], configured: AddRequest) -> AddRequest:
    """The request that jobs were put off for, on top of what is `configured`; several turns become one."""
    options = jobs[0].options
    return dataclasses.replace(
        configured,
        messages=tuple(message for job in jobs for message in _restore_images(job)),
        metadata=options.get("metadata", {}),
        infer=options.get("infer", True),
        memory_type=options.get("memory_type"),
        expiration_date=options.get("expiration_date"),
        prompts=dataclasses.replace(configured.prompts, instructions=options.get("prompt")),
    )


def _restore_images(job: Job) -> list[Message]:
    images = job.options.get("images", {})
    return [
        dataclasses.replace(message, images=tuple(images.get(str(place), ())))
        for place, message in enumerate(job.messages)
    ]


def stored_messages(messages: Sequence[Message]) -> tuple[Message, ...]:
    """What is kept of a conversation: all but the instructions given to the model."""
    return tuple(message for message in messages if message.role not in ("system", "developer"))
