"""`open_store`: the store factory for ``langgraph.json`` of LangGraph's servers."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from langgraph.store.base import TTLConfig

from mem0_core import AsyncMemory, ConfigError, Memory, MemoryConfig
from mem0_core.api.options import unwrap_memory
from mem0_core.domain.suggestions import describe_value
from mem0_langchain.langgraph.store import Mem0Store

__all__ = ["open_store"]

SERVER_VARIABLE = "LANGGRAPH_STORE"
"""Environment variable in which LangGraph's servers pass the ``store`` section of ``langgraph.json``, as JSON."""


@asynccontextmanager
async def open_store(
    memory: Memory | AsyncMemory | MemoryConfig | Mapping[str, Any] | str | Path | None = None,
    *,
    fields: Sequence[str] | None = None,
    ttl: TTLConfig | None = None,
    recipe: Any = "mem0",
    name: str = "langgraph",
) -> AsyncIterator[Mem0Store]:
    """Open a memory, yield its store, and close both; nothing blocks the event loop.

    >>> {"store": {"path": "mem0_langchain.langgraph.open_store", "ttl": {"default_ttl": 43200}}}  # langgraph.json

    A server calls it without arguments, once in each of its event loops. Expired items are deleted periodically, if
    items have a time to live.

    Args:
        memory: configuration of the memory. By default the one of ``Memory()``, in the folder ``$MEM0_CORE_HOME``. An
            open memory stays open.
        fields, ttl: as for `Mem0Store`. By default ``index.fields`` and ``ttl`` of the ``store`` section of
            ``langgraph.json``.
        recipe, name: as for `Mem0Store`.

    Raises:
        ConfigError: the section is no JSON object.
    """
    section = _read_section()
    if fields is None:
        fields = (section.get("index") or {}).get("fields")
    if ttl is None:
        ttl = section.get("ttl")
    opened = memory if isinstance(memory, (Memory, AsyncMemory)) else await asyncio.to_thread(Memory, memory)
    store: Mem0Store | None = None
    try:
        store = Mem0Store(opened, fields=fields, ttl=ttl, recipe=recipe, name=name)
        if ttl:
            store.start_ttl_sweeper()
        yield store
    finally:
        if store is not None:
            await asyncio.to_thread(store.stop_ttl_sweeper)
        if opened is not memory:
            await unwrap_memory(opened).aclose()


def _read_section() -> dict[str, Any]:
    """Return the ``store`` section of ``langgraph.json``; empty outside of a server."""
    text = os.environ.get(SERVER_VARIABLE) or "{}"
    try:
        section = json.loads(text)
    except ValueError:
        section = None
    if not isinstance(section, dict):
        raise ConfigError(
            f"the environment variable {SERVER_VARIABLE} must be a JSON object, not {describe_value(text)}; LangGraph's"
            " servers set it from the store section of langgraph.json"
        )
    return section
