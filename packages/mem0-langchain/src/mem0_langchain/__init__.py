"""Long-term memory for LangChain agents and LangGraph workflows, over `mem0_core`.

>>> from mem0_langchain import MemoryMiddleware
>>> agent = create_agent(model, tools, middleware=[MemoryMiddleware(Memory())])
>>> agent.invoke({"messages": "I moved to Porto."}, {"configurable": {"user_id": "maya"}})
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mem0_langchain.classic import Mem0Memory
    from mem0_langchain.compressor import Mem0Compressor
    from mem0_langchain.convert import format_memory_prompt
    from mem0_langchain.documents import Mem0VectorStore
    from mem0_langchain.files import MemoryFilesTool
    from mem0_langchain.history import Mem0ChatMessageHistory
    from mem0_langchain.middleware import MemoryMiddleware
    from mem0_langchain.models import LangChainChat, LangChainEmbedder, LangChainReranker
    from mem0_langchain.retriever import Mem0Retriever
    from mem0_langchain.tools import (
        AnswerQuestionTool,
        DeleteMemoryTool,
        MemoryHistoryTool,
        SaveMemoryTool,
        SearchMemoryTool,
        UpdateMemoryTool,
        memory_tools,
    )
    from mem0_langchain.vectors import MemoryVectors, VectorStoreIndex

__all__ = [
    "AnswerQuestionTool",
    "DeleteMemoryTool",
    "LangChainChat",
    "LangChainEmbedder",
    "LangChainReranker",
    "Mem0ChatMessageHistory",
    "Mem0Compressor",
    "Mem0Memory",
    "Mem0Retriever",
    "Mem0VectorStore",
    "MemoryFilesTool",
    "MemoryHistoryTool",
    "MemoryMiddleware",
    "MemoryVectors",
    "SaveMemoryTool",
    "SearchMemoryTool",
    "UpdateMemoryTool",
    "VectorStoreIndex",
    "format_memory_prompt",
    "memory_tools",
]

# Loaded on first use: a chain with a retriever does not need LangChain's agents.
_MODULES_BY_NAME = {
    "memory_tools": "mem0_langchain.tools",
    "UpdateMemoryTool": "mem0_langchain.tools",
    "SearchMemoryTool": "mem0_langchain.tools",
    "SaveMemoryTool": "mem0_langchain.tools",
    "AnswerQuestionTool": "mem0_langchain.tools",
    "MemoryHistoryTool": "mem0_langchain.tools",
    "DeleteMemoryTool": "mem0_langchain.tools",
    "Mem0ChatMessageHistory": "mem0_langchain.history",
    "Mem0Compressor": "mem0_langchain.compressor",
    "Mem0Memory": "mem0_langchain.classic",
    "LangChainChat": "mem0_langchain.models",
    "LangChainEmbedder": "mem0_langchain.models",
    "LangChainReranker": "mem0_langchain.models",
    "Mem0Retriever": "mem0_langchain.retriever",
    "Mem0VectorStore": "mem0_langchain.documents",
    "MemoryFilesTool": "mem0_langchain.files",
    "MemoryMiddleware": "mem0_langchain.middleware",
    "MemoryVectors": "mem0_langchain.vectors",
    "VectorStoreIndex": "mem0_langchain.vectors",
    "format_memory_prompt": "mem0_langchain.convert",
}
_ELSEWHERE = {
    **dict.fromkeys(("Mem0Store", "RecallNode", "RememberNode"), "mem0_langchain.langgraph"),
    "Mem0Backend": "mem0_langchain.deepagents",
}
"""Public classes whose modules need an extra."""


def __getattr__(name: str) -> Any:
    if name not in _MODULES_BY_NAME:
        from mem0_core.domain.missing_names import missing_name

        raise missing_name(__name__, name, __all__, _ELSEWHERE)
    return getattr(import_module(_MODULES_BY_NAME[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES_BY_NAME})
