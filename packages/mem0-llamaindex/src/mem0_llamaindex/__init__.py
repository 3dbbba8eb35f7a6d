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
    from mem0_llamaindex.memory import Mem0Memory
    from mem0_llamaindex.models import LlamaIndexChat, LlamaIndexEmbedder, LlamaIndexReranker
    from mem0_llamaindex.postprocessor import Mem0Rerank
    from mem0_llamaindex.retriever import Mem0Retriever
    from mem0_llamaindex.tools import memory_tools
    from mem0_llamaindex.vectors import VectorStoreIndex

__all__ = [
    "LlamaIndexChat",
    "LlamaIndexEmbedder",
    "LlamaIndexReranker",
    "Mem0Memory",
    "Mem0MemoryBlock",
    "Mem0Rerank",
    "Mem0Retriever",
    "VectorStoreIndex",
    "WriteThroughMemory",
    "memory_tools",
]
__version__ = "0.1.0"

# Loaded on first use: a retriever does not need the vector stores.
_MODULES_BY_NAME = {
    "LlamaIndexChat": "mem0_llamaindex.models",
    "LlamaIndexEmbedder": "mem0_llamaindex.models",
    "LlamaIndexReranker": "mem0_llamaindex.models",
    "Mem0Memory": "mem0_llamaindex.memory",
    "Mem0MemoryBlock": "mem0_llamaindex.block",
    "Mem0Rerank": "mem0_llamaindex.postprocessor",
    "Mem0Retriever": "mem0_llamaindex.retriever",
    "VectorStoreIndex": "mem0_llamaindex.vectors",
    "WriteThroughMemory": "mem0_llamaindex.block",
    "memory_tools": "mem0_llamaindex.tools",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES_BY_NAME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES_BY_NAME[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES_BY_NAME})
