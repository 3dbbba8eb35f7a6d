"""`LLMReranker`: a chat model as the reranker. One request scores all texts; mem0 sends one for each."""

from __future__ import annotations

from collections.abc import Sequence

from mem0_core.errors import ConfigError, ReplyError
from mem0_core.flow import Flow, arun, run
from mem0_core.interfaces import ChatModel
from mem0_core.llm.ask import ask_with_repair
from mem0_core.llm.prompts import rerank_messages
from mem0_core.llm.replies import ScoresReply, read_scores

MAX_TEXT_CHARS = 2_000
"""Default number of characters of each text in the prompt."""


class LLMReranker:
    """Scores texts with a chat model.

    One request with the task ``"rerank"`` scores all texts. If the reply cannot be parsed or omits a text, the model is
    asked once more; if that fails too, ReplyError is raised and the search keeps its own order.

    Args:
        chat: the model; None for the model of the `Memory` that uses the reranker.
        custom_prompt: instructions added to the prompt.
        max_chars: number of characters of each text, and of the query, in the prompt.
    """

    def __init__(
        self, chat: ChatModel | None = None, *, custom_prompt: str | None = None, max_chars: int = MAX_TEXT_CHARS
    ) -> None:
        if max_chars < 1:
            raise ConfigError(f"max_chars must be at least 1, not {max_chars}")
        self._chat = chat
        self._custom_prompt = custom_prompt
        self._max_chars = max_chars

    def __repr__(self) -> str:
        return f"LLMReranker({self._chat!r})"

    def with_chat(self, chat: ChatModel | None) -> LLMReranker:
        """Return a reranker that uses `chat`, or this one if it has its own model.

        Raises:
            ConfigError: there is no model.
        """
        if self._chat is not None:
            return self
        if chat is None:
            raise ConfigError("reranker: a chat reranker needs `llm` in its own configuration or the memory's")
        return LLMReranker(chat, custom_prompt=self._custom_prompt, max_chars=self._max_chars)

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return the relevance of each text to the query in [0, 1], in steps of 0.1.

        Raises:
            ReplyError: the reply could not be parsed, or omits a text.
            ModelError: the call failed.
        """
        return run(self._scores(query, texts))

    async def ascore(self, query: str, texts: Sequence[str]) -> list[float]:
        """Async variant of `score`."""
        return await arun(self._scores(query, texts))

    def _scores(self, query: str, texts: Sequence[str]) -> Flow[list[float]]:
        if self._chat is None:
            raise ConfigError("reranker: no chat model: pass chat, or use the reranker in a Memory that has one")
        if not texts:
            return []
        reading = yield from ask_with_repair(
            self._chat,
            rerank_messages(query, texts, max_chars=self._max_chars, instructions=self._custom_prompt),
            task="rerank",
            schema=ScoresReply,
            read=lambda reply: read_scores(reply, count=len(texts)),
            key=lambda scored: scored[0],
        )
        scores = dict(reading.items)
        if len(scores) < len(texts):
            problems = tuple(problem.reason for problem in reading.problems)
            reasons = "; ".join(dict.fromkeys(problems))
            message = f"the reply to 'rerank' scores {len(scores)} of {len(texts)} texts: {reasons}"
            raise ReplyError(message, raw=reading.raw, problems=problems)
        return [scores[index] for index in range(len(texts))]
