"""Test doubles for code that uses memory, without a model or a network.

`ScriptedChat` returns scripted replies; `HashEmbedder` gives texts with common words similar vectors.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from mem0_core._system.records import dataclass
from mem0_core.domain.normalization import normalize
from mem0_core.interfaces import Reply, Tool, ToolCall

if TYPE_CHECKING:
    from pydantic import BaseModel

__all__ = ["ChatCall", "HashEmbedder", "Script", "ScriptedChat", "ScriptedReply"]

ScriptedReply = str | Mapping[str, Any] | Reply | BaseException
"""A text; JSON, or tool calls as ``{"tool_calls": [{"name", "arguments"}]}``; a `Reply`; an error to raise."""

Script = Sequence[ScriptedReply] | Callable[[str, Sequence[Mapping[str, Any]]], ScriptedReply]
"""Replies in the order of the calls, or a function that returns the reply for a task and messages."""


@dataclass(frozen=True, slots=True)
class ChatCall:
    """One call of a `ScriptedChat`."""

    task: str
    messages: tuple[Mapping[str, Any], ...]
    schema: type[BaseModel] | None = None
    tools: tuple[Tool, ...] = ()


class ScriptedChat:
    """A chat model that replies from a script. Safe to share between threads.

    A list gives the replies in the order of the calls. Concurrent flows call in an undefined order: script them with a
    function, which receives the task.

    Attributes:
        calls: Received calls, in order.

    Raises (by `complete`):
        AssertionError: The script has no reply left; names the task.
    """

    def __init__(self, script: Script) -> None:
        self._script = script if callable(script) else list(script)
        self._lock = threading.Lock()
        self.calls: list[ChatCall] = []

    def complete(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        task: str,
        schema: type[BaseModel] | None = None,
        tools: Sequence[Tool] = (),
    ) -> Reply:
        """Return the next reply of the script; see `interfaces.ChatModel`."""
        call = ChatCall(task, tuple(dict(message) for message in messages), schema, tuple(tools))
        with self._lock:
            position = len(self.calls)
            self.calls.append(call)
        if callable(self._script):
            return _to_reply(self._script(task, call.messages))
        if position >= len(self._script):
            raise AssertionError(
                f"the script of {len(self._script)} replies has none left for task {task!r}; "
                f"asked before: {', '.join(call.task for call in self.calls[:position]) or 'nothing'}"
            )
        return _to_reply(self._script[position])


def _to_reply(scripted: ScriptedReply) -> Reply:
    if isinstance(scripted, BaseException):
        raise scripted
    if isinstance(scripted, Reply):
        return scripted
    if isinstance(scripted, str):
        return Reply(text=scripted)
    if "tool_calls" in scripted:
        calls = [ToolCall(name=call["name"], arguments=call["arguments"]) for call in scripted["tool_calls"]]
        return Reply(text=scripted.get("text", ""), tool_calls=tuple(calls))
    return Reply(text=json.dumps(scripted, ensure_ascii=False))


# Scripts without spaces between words (Han, kana, Hangul) are split into characters.
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
_WORD_WEIGHT = 0.8
_TRIGRAM_WEIGHT = 0.6  # 0.8 and 0.6 are the sides of a right triangle: words have norm 1
_LONG_WORD_BYTES = 6
_MAX_CACHED_WORDS = 10_000
_MAX_TEXT_CHARS = 10_000  # like the context of a real model: the rest is ignored


class HashEmbedder:
    """Deterministic embedder for tests: similarity grows with common words and, less, with common parts of words.

    Each word is a pseudo-random direction plus a smaller one for its trigrams (``climb`` and ``climbing`` have a cosine
    of about 0.2), weighted by its length, so that "the" counts little. A text is the sum of its words, independent of
    their order, case and punctuation. The vectors are equal in every process and on every machine; a short text takes
    about 20 microseconds. Safe to share between threads.
    """

    inline = True  # cheap computation: needs no thread

    def __init__(self, dims: int = 384, name: str | None = None) -> None:
        if dims < 8:
            raise ValueError(f"dims must be at least 8, not {dims}")
        self._dims = dims
        self._name = name or f"hash-{dims}"
        self._word_vectors: dict[str, NDArray[np.float32]] = {}

    def __repr__(self) -> str:
        return f"HashEmbedder(dims={self._dims}, name={self._name!r})"

    @property
    def dims(self) -> int:
        return self._dims

    @property
    def name(self) -> str:
        return self._name

    def embed(self, texts: Sequence[str], *, kind: Literal["document", "query"] = "document") -> NDArray[np.float32]:
        """Return one row of L2 norm 1 per text: (n, dims) float32. `kind` is ignored."""
        vectors = np.zeros((len(texts), self._dims), np.float32)
        for vector, text in zip(vectors, texts, strict=True):
            self._add_words(vector, text)
            vector /= _l2_norm(vector)
        return vectors

    def _add_words(self, vector: NDArray[np.float32], text: str) -> None:
        text = text[:_MAX_TEXT_CHARS]
        text = normalize("NFKC", text).casefold()
        # A text without words counts as one word.
        for word in _WORD.findall(text) or [text.strip()]:
            known = self._word_vectors.get(word)
            vector += known if known is not None else self._compute_word_vector(word)

    def _compute_word_vector(self, word: str) -> NDArray[np.float32]:
        """Compute and cache the vector of a word; its norm is the weight of the word in a text."""
        framed = f"<{word}>"
        direction = _WORD_WEIGHT * self._feature_direction(word)
        if trigrams := [framed[at : at + 3] for at in range(len(framed) - 2)]:
            parts = np.sum([self._feature_direction(f"\0{trigram}") for trigram in trigrams], axis=0)
            # The parts can cancel out in very few dimensions; the small number avoids a division by zero.
            direction = direction + _TRIGRAM_WEIGHT * parts / (_l2_norm(parts) + np.float32(1e-9))
        weight = min(len(word.encode("utf-8", "replace")), _LONG_WORD_BYTES) / _LONG_WORD_BYTES or 1.0
        word_vector = (weight * direction).astype(np.float32)
        if len(self._word_vectors) >= _MAX_CACHED_WORDS:
            self._word_vectors.clear()
        self._word_vectors[word] = word_vector
        return word_vector

    def _feature_direction(self, feature: str) -> NDArray[np.float32]:
        """Return a unit vector of pseudo-random signs, from a hash that is equal in every process."""
        bits = hashlib.shake_128(feature.encode("utf-8", "replace")).digest((self._dims + 7) // 8)
        signs = np.unpackbits(np.frombuffer(bits, np.uint8), count=self._dims).astype(np.float32) * 2 - 1
        return signs / np.float32(np.sqrt(self._dims))


def _l2_norm(vector: NDArray[np.float32]) -> np.float32:
    """Return the L2 norm, summed in double precision: the order of summation of BLAS depends on the processor."""
    return np.float32(math.sqrt(np.square(vector, dtype=np.float64).sum()))
