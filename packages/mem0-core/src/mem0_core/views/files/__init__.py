"""Memories as files: a file tree over the memories of one scope, and the commands of Anthropic's memory tool on it."""

from mem0_core.views.files._commands import (
    MEMORY_TOOL,
    MEMORY_TOOL_DESCRIPTION,
    MemoryCommand,
    MemoryToolHandler,
    ToolReply,
)
from mem0_core.views.files._paths import FileAccessError
from mem0_core.views.files._tree import MemoryFile
from mem0_core.views.files._view import MemoryFiles

__all__ = [
    "MEMORY_TOOL",
    "MEMORY_TOOL_DESCRIPTION",
    "FileAccessError",
    "MemoryCommand",
    "MemoryFile",
    "MemoryFiles",
    "MemoryToolHandler",
    "ToolReply",
]
