"""Long-term memory for LangGraph workflows: nodes that recall and remember."""

from __future__ import annotations

from mem0_langchain.convert import memory_prompt
from mem0_langchain.langgraph.nodes import RecallNode, RememberNode

__all__ = ["RecallNode", "RememberNode", "memory_prompt"]
