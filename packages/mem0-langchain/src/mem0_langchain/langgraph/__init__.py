"""Long-term memory for LangGraph workflows: nodes that recall and remember, and a store."""

from __future__ import annotations

from mem0_langchain.convert import format_memory_prompt
from mem0_langchain.langgraph.nodes import RecallNode, RememberNode
from mem0_langchain.langgraph.platform import open_store
from mem0_langchain.langgraph.store import Mem0Store, decode_label, encode_label

__all__ = [
    "Mem0Store",
    "RecallNode",
    "RememberNode",
    "decode_label",
    "encode_label",
    "format_memory_prompt",
    "open_store",
]
