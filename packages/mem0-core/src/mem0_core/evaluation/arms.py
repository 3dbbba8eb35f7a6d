"""Arms of an evaluation: ways to give a model the past of a conversation.

An arm is asked a question about a transcript, and returns the messages that it would put into the prompt. Baselines
inject nothing, everything, or the last messages; a memory injects the context that `Memory.context` returns.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from mem0_core.config import NO_GRAPH, MemoryConfig
from mem0_core.domain.records import list_added, same_fact_key
from mem0_core.evaluation.questions import Question
from mem0_core.evaluation.transcripts import Line, Transcript
from mem0_core.llm.tokens import estimate_tokens
from mem0_core.memory import Memory

DEPTH = 20
"""Number of search results that are ranked."""
_EXCHANGE = 2  # messages of one add to a model: a question and its answer


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of recall.

    Attributes:
        recipe: name of the recipe; None for the configured one.
        floor: lowest score of an injected memory; None for the calibrated floor.
        max_tokens: budget of the injected text.
        limit: maximum number of injected memories.
    """

    recipe: str | None = None
    floor: float | None = None
    max_tokens: int = 2000
    limit: int = 20


@dataclass(frozen=True, slots=True)
class Outcome:
    """The reply of an arm to one question.

    Attributes:
        injected: ids of the messages behind each injected memory, in order.
        ranked: the same for the results of a search, best first; None if the arm does not rank.
        refused: True if the arm says that it has no answer.
        tokens: size of the injected text.
        milliseconds: time of the recall.
        cited: for each number in the text by which an answer can cite a memory, the messages behind it.
    """

    text: str
    injected: tuple[tuple[str, ...], ...]
    ranked: tuple[tuple[str, ...], ...] | None
    refused: bool
    tokens: int
    milliseconds: float = 0.0
    cited: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


class Arm(Protocol):
    """A way to give a model the past."""

    @property
    def name(self) -> str: ...
    def ask(self, question: Question, transcript: Transcript) -> Outcome: ...


class NoMemory:
    """Injects nothing."""

    name = "no memory"

    def ask(self, question: Question, transcript: Transcript) -> Outcome:
        return Outcome("", (), None, True, 0)


class WholeHistory:
    """Injects every message."""

    name = "whole history"

    def ask(self, question: Question, transcript: Transcript) -> Outcome:
        return _inject_lines(transcript.lines)


class RecentWindow:
    """Injects the last messages that fit into the budget."""

    def __init__(self, max_tokens: int) -> None:
        self.name = f"last {max_tokens:,} tokens"
        self._max_tokens = max_tokens

    def ask(self, question: Question, transcript: Transcript) -> Outcome:
        room, first = self._max_tokens, len(transcript.lines)
        for line in reversed(transcript.lines):
            room -= estimate_tokens(line.transcript_line)
            if room < 0:
                break
            first -= 1
        return _inject_lines(transcript.lines[first:])


def _inject_lines(lines: Sequence[Line]) -> Outcome:
    text = "\n".join(line.transcript_line for line in lines)
    return Outcome(text, tuple((line.id,) for line in lines), None, False, estimate_tokens(text) if text else 0)


class Remembered:
    """A memory in a folder of its own that has learned transcripts; each transcript is one user.

    Args:
        config: the user's configuration; its store is replaced by a new one in `folder`.
        infer: extract facts with the configured chat model; otherwise each message is one memory.
    """

    def __init__(
        self,
        folder: Path,
        transcripts: Sequence[Transcript],
        *,
        config: MemoryConfig | None = None,
        embedder: Any = None,
        reranker: Any = None,
        llm: Any = None,
        infer: bool = False,
        on_progress: Callable[[int, int], object] | None = None,
    ) -> None:
        self._config = _private_config(config or MemoryConfig(), folder, infer=infer)
        self._parts = {"embedder": embedder, "llm": llm if infer else None}
        self.memory = Memory(self._config, reranker=reranker, **self._parts)
        self._lines: dict[str, list[str]] = {}
        total, before = sum(len(one.lines) for one in transcripts), 0
        try:
            for transcript in transcripts:
                self._learn(transcript) if infer else self._import(transcript)
                before += len(transcript.lines)
                if on_progress is not None:
                    on_progress(before, total)
        except BaseException:
            self.memory.close()
            raise

    @property
    def models(self) -> tuple[Any, Any]:
        """The embedder, and the reranker or None."""
        return self.memory.embedder, self.memory._reranker

    def with_reranker(self, reranker: Any) -> Remembered:
        """Return the same memories with another reranker; close both."""
        other = copy.copy(self)
        other.memory = Memory(self._config, reranker=reranker, **self._parts)
        return other

    def close(self) -> None:
        """Close the memory."""
        self.memory.close()

    def line_ids(self, memory_id: str) -> tuple[str, ...]:
        """Return the ids of the messages that a memory was made of."""
        return tuple(self._lines.get(memory_id, ()))

    def _import(self, transcript: Transcript) -> None:
        """Add every message as `mem0-core import` does."""
        by_run: dict[str | None, list[Line]] = {}
        for line in transcript.lines:
            by_run.setdefault(line.run, []).append(line)
        for run, lines in by_run.items():
            self.memory.add_many([line.message for line in lines], user_id=transcript.name, run_id=run)
        keys: dict[tuple[str | None, bytes], list[str]] = {}
        for line in transcript.lines:
            keys.setdefault((line.run, same_fact_key(line.text, line.speaker)), []).append(line.id)
        for one in self.memory.get_all(user_id=transcript.name, limit=None)["results"]:
            key = one.get("run_id"), same_fact_key(one["memory"], one.get("actor_id"))
            self._lines[one["id"]] = keys.get(key, [])

    def _learn(self, transcript: Transcript) -> None:
        """Extract facts with the model, exchange by exchange."""
        for start in range(0, len(transcript.lines), _EXCHANGE):
            lines = transcript.lines[start : start + _EXCHANGE]
            for run in dict.fromkeys(line.run for line in lines):
                of_run = [line for line in lines if line.run == run]
                messages = [dict(line.message) for line in of_run]
                added = self.memory.add(messages, user_id=transcript.name, run_id=run, timestamp=of_run[0].said_at)
                for change in list_added(added):
                    self._lines.setdefault(change["id"], []).extend(line.id for line in of_run)


def _private_config(config: MemoryConfig, folder: Path, *, infer: bool) -> MemoryConfig:
    """Return a configuration whose data are in `folder` alone: the user's own stores are neither read nor written.

    Without `infer`, the chat model serves a configured reranker and nothing else.
    """
    default = MemoryConfig()
    changes: dict[str, Any] = {
        "path": folder,
        "durability": "process",
        "version": "v1.1",
        **{name: getattr(default, name) for name in ("store", "history_db_path", "keys", "vector_store", "limits")},
        "logging": None,
    }
    graph = config.graph_store
    if graph is not None and graph.provider != NO_GRAPH:
        queried_by = graph.query_entities if infer else "rules"
        own: dict[str, Any] = {"provider": "sqlite", "config": {}, "query_entities": queried_by}
        changes["graph_store"] = graph.replace(**own)
    if not infer and not config.reranker:
        changes["llm"] = None
    return config.replace(**changes)


class MemoryArm:
    """Injects the context of a memory.

    Args:
        citations: number the memories, for answers that cite them.
    """

    def __init__(self, remembered: Remembered, settings: Settings, name: str, *, citations: bool = False) -> None:
        self.name = name
        self.settings = settings
        self._remembered = remembered
        self._citations = citations

    def with_settings(self, **changes: Any) -> MemoryArm:
        """Return an arm on the same memory with other settings."""
        return MemoryArm(self._remembered, replace(self.settings, **changes), self.name, citations=self._citations)

    def ask(self, question: Question, transcript: Transcript) -> Outcome:
        """Return the context and the search results for a question."""
        injected = self.inject(question, transcript)
        memory, recipe = self._remembered.memory, self.settings.recipe
        ids: dict[str, Any] = {"user_id": transcript.name, "recipe": recipe, "reference_date": _last_day(transcript)}
        found = memory.search(question.text, limit=DEPTH, **ids)["results"]
        answered = memory.search(question.text, limit=1, allow_no_answer=True, **ids)["results"]
        ranked = tuple(self._remembered.line_ids(one["id"]) for one in found)
        return replace(injected, ranked=ranked, refused=not answered)

    def inject(self, question: Question, transcript: Transcript) -> Outcome:
        """Return the context for a question alone."""
        settings, started = self.settings, time.perf_counter()
        context = self._remembered.memory.context(
            question.text,
            user_id=transcript.name,
            recipe=settings.recipe,
            threshold=settings.floor,
            max_tokens=settings.max_tokens,
            limit=settings.limit,
            recent=0,
            citations=self._citations,
            reference_date=_last_day(transcript),
        )
        took = 1000 * (time.perf_counter() - started)
        injected = tuple(self._remembered.line_ids(one["id"]) for one in context["memories"])
        cited = {number: self._remembered.line_ids(one) for number, one in context.get("citations", {}).items()}
        return Outcome(context["text"], injected, None, not injected, context["tokens"], took, cited)


def _last_day(transcript: Transcript) -> str | None:
    """Return the day on which questions are asked: that of the last message."""
    return None if transcript.end is None else transcript.end[:10]
