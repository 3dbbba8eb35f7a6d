"""`Mem0Embedding`: the embedder of a memory as LlamaIndex's embedding model."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Literal

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import PrivateAttr

from mem0_core import AsyncMemory, Memory
from mem0_core.api.options import unwrap_memory
from mem0_llamaindex.convert import replace_lone_surrogates

__all__ = ["Mem0Embedding"]


class Mem0Embedding(BaseEmbedding):
    """The embedder of a memory, for an index that shall use the same vectors.

    >>> index = PropertyGraphIndex.from_existing(property_graph_store=store, embed_model=Mem0Embedding(memory))

    Args:
        memory: a `mem0_core.Memory`.

    Raises:
        ConfigError: `memory` is not a memory.
    """

    _memory: Memory = PrivateAttr()

    def __init__(self, memory: Memory | AsyncMemory) -> None:
        core = unwrap_memory(memory)
        super().__init__(model_name=core.embedder.name)
        self._memory = core

    @classmethod
    def class_name(cls) -> str:
        return "Mem0Embedding"

    def _embed(self, texts: Sequence[str], kind: Literal["document", "query"]) -> list[list[float]]:
        if not texts:
            return []
        vectors: list[list[float]] = self._memory.embedder.embed(
            [replace_lone_surrogates(text) for text in texts], kind=kind
        ).tolist()
        return vectors

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._embed([text], "document")[0]

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return self._embed(texts, "document")

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._embed([query], "query")[0]

    async def _aget_text_embedding(self, text: str) -> list[float]:
        return await asyncio.to_thread(self._get_text_embedding, text)

    async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return await asyncio.to_thread(self._get_text_embeddings, texts)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return await asyncio.to_thread(self._get_query_embedding, query)
