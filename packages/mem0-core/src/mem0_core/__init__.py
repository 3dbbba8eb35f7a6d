"""Long-term memory for LLM agents: extract facts from a conversation, reconcile them, recall them later.

>>> from mem0_core import Memory
>>> memory = Memory()
>>> memory.add("I moved to Porto last week.", user_id="maya")
>>> memory.search("Where does she live?", user_id="maya")["results"]
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mem0_core.api.rerank import arerank, rerank
    from mem0_core.config import MemoryConfig
    from mem0_core.domain.feed import ChangeDict, ChangesDict
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
        AccessError,
        ArgumentError,
        CallbackError,
        CapabilityError,
        ConfigError,
        EncryptionError,
        InputError,
        InternalError,
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
    from mem0_core.providers.keyring import Keyring, new_key
    from mem0_core.views.principal import AsyncPrincipal, Principal

__all__ = [
    "AccessError",
    "AddManyResult",
    "AddResult",
    "AnswerDict",
    "ArgumentError",
    "AsyncMemory",
    "AsyncPrincipal",
    "CallbackError",
    "CapabilityError",
    "ChangeDict",
    "ChangesDict",
    "ConfigError",
    "ContextDict",
    "EncryptionError",
    "Event",
    "HistoryDict",
    "InputError",
    "InternalError",
    "JobDict",
    "Keyring",
    "LimitError",
    "Mem0Error",
    "Memory",
    "MemoryConfig",
    "MemoryDict",
    "MissingExtraError",
    "ModelError",
    "NotFoundError",
    "PathDict",
    "Principal",
    "QueryError",
    "QueryResult",
    "RelationDict",
    "ReplyError",
    "Scope",
    "ScopeError",
    "SearchResult",
    "StoreError",
    "arerank",
    "new_key",
    "read_citations",
    "rerank",
]
__version__ = "0.1.0"

_MODULES = {
    "mem0_core.api.rerank": ("arerank", "rerank"),
    "mem0_core.config": ("MemoryConfig",),
    "mem0_core.domain.feed": ("ChangeDict", "ChangesDict"),
    "mem0_core.domain.records": (
        "AddManyResult",
        "AddResult",
        "AnswerDict",
        "ContextDict",
        "Event",
        "HistoryDict",
        "JobDict",
        "MemoryDict",
        "PathDict",
        "QueryResult",
        "RelationDict",
        "Scope",
        "SearchResult",
    ),
    "mem0_core.errors": (
        "AccessError",
        "ArgumentError",
        "CallbackError",
        "CapabilityError",
        "ConfigError",
        "EncryptionError",
        "InputError",
        "InternalError",
        "LimitError",
        "Mem0Error",
        "MissingExtraError",
        "ModelError",
        "NotFoundError",
        "QueryError",
        "ReplyError",
        "ScopeError",
        "StoreError",
    ),
    "mem0_core.llm.replies": ("read_citations",),
    "mem0_core.memory": ("AsyncMemory", "Memory"),
    "mem0_core.views.principal": ("AsyncPrincipal", "Principal"),
    "mem0_core.providers.keyring": ("Keyring", "new_key"),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

if not TYPE_CHECKING:  # a type checker reads the imports above

    def __getattr__(name: str) -> Any:
        """Import a public name at its first use: a command such as ``mem0-core --version`` needs none of them."""
        if name not in _MODULE_OF:
            from mem0_core.domain.missing_names import missing_name

            raise missing_name(__name__, name, __all__)
        value = globals()[name] = getattr(import_module(_MODULE_OF[name]), name)
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
