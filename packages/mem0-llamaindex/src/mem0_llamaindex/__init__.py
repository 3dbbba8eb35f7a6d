"""Long-term memory for LlamaIndex chat engines and agent workflows, over mem0-core.

>>> from mem0_llamaindex import Mem0Memory
>>> memory = Mem0Memory.from_defaults(user_id="maya")
>>> engine = SimpleChatEngine.from_defaults(llm=llm, memory=memory)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mem0_llamaindex.block import Mem0MemoryBlock, WriteThroughMemory
    from mem0_llamaindex.chat_store import Mem0AsyncChatStore, Mem0ChatStore
    from mem0_llamaindex.documents import Mem0VectorStore
    from mem0_llamaindex.embedding import Mem0Embedding
    from mem0_llamaindex.files import memory_files_tool
    from mem0_llamaindex.graph_store import Mem0PropertyGraphStore
    from mem0_llamaindex.memory import Mem0Memory
    from mem0_llamaindex.models import LlamaIndexChat, LlamaIndexEmbedder, LlamaIndexReranker
    from mem0_llamaindex.postprocessor import Mem0Rerank
    from mem0_llamaindex.retriever import Mem0Retriever
    from mem0_llamaindex.tools import memory_tools
    from mem0_llamaindex.vectors import LlamaIndexVectors

__all__ = [
    "LlamaIndexChat",
    "LlamaIndexEmbedder",
    "LlamaIndexReranker",
    "LlamaIndexVectors",
    "Mem0AsyncChatStore",
    "Mem0ChatStore",
    "Mem0Embedding",
    "Mem0Memory",
    "Mem0MemoryBlock",
    "Mem0PropertyGraphStore",
    "Mem0Rerank",
    "Mem0Retriever",
    "Mem0VectorStore",
    "WriteThroughMemory",
    "memory_files_tool",
    "memory_tools",
]
__version__ = "0.1.0"

# Loaded on first use: a retriever does not need the vector stores.
_MODULES_BY_NAME = {
    "LlamaIndexChat": "mem0_llamaindex.models",
    "LlamaIndexEmbedder": "mem0_llamaindex.models",
    "LlamaIndexReranker": "mem0_llamaindex.models",
    "Mem0AsyncChatStore": "mem0_llamaindex.chat_store",
    "Mem0ChatStore": "mem0_llamaindex.chat_store",
    "Mem0Embedding": "mem0_llamaindex.embedding",
    "Mem0Memory": "mem0_llamaindex.memory",
    "Mem0MemoryBlock": "mem0_llamaindex.block",
    "Mem0PropertyGraphStore": "mem0_llamaindex.graph_store",
    "Mem0Rerank": "mem0_llamaindex.postprocessor",
    "Mem0Retriever": "mem0_llamaindex.retriever",
    "Mem0VectorStore": "mem0_llamaindex.documents",
    "LlamaIndexVectors": "mem0_llamaindex.vectors",
    "WriteThroughMemory": "mem0_llamaindex.block",
    "memory_files_tool": "mem0_llamaindex.files",
    "memory_tools": "mem0_llamaindex.tools",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES_BY_NAME:
        from mem0_core.domain.missing_names import missing_name

        raise missing_name(__name__, name, __all__)
    return getattr(import_module(_MODULES_BY_NAME[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES_BY_NAME})
