"""`LLMReranker`: a chat model as the reranker. One request scores all texts, where mem0 makes one for each."""

from __future__ import annotations

from collections.abc import Sequence

from mem0_core.errors import ConfigError, ReplyError
from mem0_core.flow import Flow, arun, run
from mem0_core.interfaces import ChatModel
from mem0_core.llm.ask import ask_with_repair
from mem0_core.llm.prompts import rerank_messages
from mem0_core.llm.replies import ScoresReply, read_scores

__all__ = ["MAX_TEXT_CHARS", "LLMReranker"]

MAX_TEXT_CHARS = 2_000
"""How many characters of each text the model is shown, unless told otherwise."""


class LLMReranker:
    """Scores texts by asking a chat model; made from a configuration by `wiring.llm_reranker`.

    The model is asked once for all texts, under the task ``"rerank"``. Where its answer cannot be read, or leaves a
    text out, it is asked once more; then a ReplyError says so, and `pipelines.rerank` keeps the order there was.

    Args:
        chat: None for the memory's own model, which a `Memory` gives it.
        custom_prompt: instructions added to the prompt.
        max_chars: how much of each text, and of the query, the model is shown.
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
        """The same reranker with `chat` for a model, unless it has one of its own.

        Raises:
            ConfigError: neither is there.
        """
        if self._chat is not None:
            return self
        if chat is None:
            raise ConfigError("reranker: one that asks a chat model needs `llm`, in its own configuration or beside it")
        return LLMReranker(chat, custom_prompt=self._custom_prompt, max_chars=self._max_chars)

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """Relevance in [0, 1], in steps of a tenth, of each text to the query.

        Raises:
            ReplyError: the answer could not be read, or leaves a text out. ModelError: the call failed.
        """
        return run(self._scores(query, texts))

    async def ascore(self, query: str, texts: Sequence[str]) -> list[float]:
        """`score`, awaited."""
        return await arun(self._scores(query, texts))

    def _scores(self, query: str, texts: Sequence[str]) -> Flow[list[float]]:
        if self._chat is None:
            raise ConfigError("reranker: it asks a chat model, and has none: give it one, or give it to a Memory")
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
        return [scores[place] for place in range(len(texts))]
