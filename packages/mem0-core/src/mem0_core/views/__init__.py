"""Memories of one scope as files, documents or a property graph, and of one user with the spaces they are a member of.

Views hold nothing of their own: what they write are memories, which `Memory.search` finds, and what they show are the
memories of the scope. They may import `mem0_core.memory` and everything below it; the server, the command and the
adapters may import them.

>>> from mem0_core.views import MemoryFiles, MemoryToolHandler
>>> files = MemoryFiles(memory, user_id="maya")
>>> files.write("/profile.md", "Prefers short answers.")
>>> MemoryToolHandler(memory, user_id="maya").handle({"command": "view", "path": "/memories"}).text
"""

from mem0_core.views.documents import ScopedDocument, ScopedDocuments
from mem0_core.views.files import (
    MEMORY_TOOL,
    MEMORY_TOOL_DESCRIPTION,
    FileAccessError,
    MemoryCommand,
    MemoryFile,
    MemoryFiles,
    MemoryToolHandler,
    ToolReply,
)
from mem0_core.views.principal import AsyncPrincipal, Principal, has_spaces
from mem0_core.views.property_graph import PropertyGraph, PropertyNode, PropertyRelation, ScopedGraph

__all__ = [
    "MEMORY_TOOL",
    "MEMORY_TOOL_DESCRIPTION",
    "AsyncPrincipal",
    "FileAccessError",
    "MemoryCommand",
    "MemoryFile",
    "MemoryFiles",
    "MemoryToolHandler",
    "Principal",
    "PropertyGraph",
    "PropertyNode",
    "PropertyRelation",
    "ScopedDocument",
    "ScopedDocuments",
    "ScopedGraph",
    "ToolReply",
    "has_spaces",
]
