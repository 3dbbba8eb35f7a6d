"""Sections of a configuration that a pipeline reads as they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mem0_core.domain.settings import Settings, integer, key, number, optional

KEY_ADVICE = {
    "enable_graph": "graph_store='none' turns graph memory off",
    "custom_prompt": "custom_fact_extraction_prompt changes the extraction of facts, graph_store.custom_prompt that of"
    " relations",
    "custom_instructions": "pass it as custom_fact_extraction_prompt",
}
"""Next step for keys of mem0 that belong elsewhere."""


class TraverseConfig(Settings):
    """Shares of its score that a path through the graph can lose, to rank paths that fit a question equally well."""

    ADVICE = KEY_ADVICE

    recency: float = key(number(at_least=0, below=1), default=0.1)
    """Share of its score that an old relation loses; less than 1 together with `evidence`."""
    evidence: float = key(number(at_least=0, below=1), default=0.1)
    """Share that a relation stated only once loses; half of it is lost by one stated twice."""
    degree: float = key(number(at_least=0, below=1), default=0.1)
    """Share that a path loses by passing through a highly connected node; half of it is lost at 256 relations."""
    half_life: float = key(number(above=0), default=365.0)
    """Days after which half of `recency` is lost."""
    similar: float = key(number(at_least=0, at_most=1), default=0.55)
    """The cosine from which a relationship matches a word of the question."""

    @classmethod
    def _find_conflict(cls, values: Mapping[str, Any]) -> str:
        if values["recency"] + values["evidence"] < 1:
            return ""
        given = f"{values['recency']} + {values['evidence']}"
        return f"recency and evidence together must be less than 1, not {given}; leave one out for its default 0.1"


class BackgroundConfig(Settings):
    """Settings of background workers."""

    ADVICE = KEY_ADVICE

    workers: int = key(integer(1, 64), default=2)
    """Number of worker threads, or of tasks of an event loop."""
    batch: int = key(integer(1, 100), default=8)
    """Maximum number of queued turns of one conversation processed together."""
    tries: int = key(integer(1), default=8)
    """Failed attempts, while other jobs succeed, before a job is marked as failed."""
    backoff: float = key(number(above=0), default=1.0)
    """Seconds before the second attempt; doubled each time."""
    lease: float = key(number(above=0), default=30.0)
    """Seconds after which another worker may take over a job."""
    drain: float = key(number(at_least=0), default=10.0)
    """Seconds that `close` waits for queued jobs; the rest run after the next start."""


class LimitsConfig(Settings):
    """Limits on one call and one scope; None for no limit."""

    ADVICE = KEY_ADVICE

    message_chars: int | None = key(optional(integer(1)), default=None)
    """Maximum characters of one message."""
    messages: int | None = key(optional(integer(1)), default=None)
    """Maximum messages of one call."""
    adds_per_minute: int | None = key(optional(integer(1)), default=None)
    """Maximum calls for one partition (the first id of a scope) in a minute, by this process."""
