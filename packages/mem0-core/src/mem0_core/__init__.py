"""Long-term memory for LLM agents: extract facts from a conversation, reconcile them, recall them later.

>>> from mem0_core import Memory
>>> memory = Memory()
>>> memory.add("I moved to Porto last week.", user_id="maya")
>>> memory.search("Where does she live?", user_id="maya")["results"]
"""

from mem0_core.api.rerank import arerank, rerank
from mem0_core.config import MemoryConfig
from mem0_core.domain.records import (
    AddManyResult,
    AddResult,
    AnswerDict,
    ContextDict,
    Event,
    HistoryDict,
    JobDict,
    MemoryDict,
    PathDict,
    QueryResult,
    RelationDict,
    Scope,
    SearchResult,
)
from mem0_core.errors import (
    ConfigError,
    InputError,
    LimitError,
    Mem0Error,
    MissingExtraError,
    ModelError,
    NotFoundError,
    QueryError,
    ReplyError,
    ScopeError,
    StoreError,
)
from mem0_core.llm.replies import read_citations
from mem0_core.memory import AsyncMemory, Memory

__all__ = [
    "AddManyResult",
    "AddResult",
    "AnswerDict",
    "AsyncMemory",
    "ConfigError",
    "ContextDict",
    "Event",
    "HistoryDict",
    "InputError",
    "JobDict",
    "LimitError",
    "Mem0Error",
    "Memory",
    "MemoryConfig",
    "MemoryDict",
    "MissingExtraError",
    "ModelError",
    "NotFoundError",
    "PathDict",
    "QueryError",
    "QueryResult",
    "RelationDict",
    "ReplyError",
    "Scope",
    "ScopeError",
    "SearchResult",
    "StoreError",
    "arerank",
    "read_citations",
    "rerank",
]
__version__ = "0.1.0"
