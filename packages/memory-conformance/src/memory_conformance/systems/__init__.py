"""Adapters of known systems; each imports its packages only when it is used."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import metadata


@dataclass(frozen=True, slots=True)
class KnownSystem:
    """A system that the kit has an adapter for.

    Attributes:
        factory: ``module:name`` of the adapter.
        distribution: Name of the distribution, the version of which is reported; empty for a server.
        title: Description, with the environment variables that it reads.
    """

    factory: str
    distribution: str
    title: str

    def find_version(self) -> str:
        """Return the installed version, or an empty text."""
        if not self.distribution:
            return ""
        try:
            return metadata.version(self.distribution)
        except metadata.PackageNotFoundError:
            return ""


_HERE = "memory_conformance.systems"
SYSTEMS: dict[str, KnownSystem] = {
    "langgraph-memory": KnownSystem(f"{_HERE}.langgraph:InMemory", "langgraph-checkpoint", "LangGraph's InMemoryStore"),
    "langgraph-sqlite": KnownSystem(
        f"{_HERE}.langgraph:Sqlite", "langgraph-checkpoint-sqlite", "LangGraph's SqliteStore"
    ),
    "langgraph-postgres": KnownSystem(
        f"{_HERE}.langgraph:Postgres",
        "langgraph-checkpoint-postgres",
        "LangGraph's PostgresStore; MEMORY_CONFORMANCE_POSTGRES is the URL of an empty database",
    ),
    "mem0-core": KnownSystem(f"{_HERE}.mem0_core:Mem0Core", "mem0-core", "Memory of mem0-core, on SQLite"),
    "mem0": KnownSystem(f"{_HERE}.mem0:Mem0Qdrant", "mem0ai", "Memory of mem0 2.x, on the local Qdrant"),
    "mem0-faiss": KnownSystem(f"{_HERE}.mem0:Mem0Faiss", "mem0ai", "Memory of mem0 2.x, on FAISS"),
    "llamaindex": KnownSystem(
        f"{_HERE}.llamaindex:LlamaIndexMemory", "llama-index-core", "LlamaIndex's Memory, on a SQLite file"
    ),
    "langchain-history": KnownSystem(
        f"{_HERE}.langchain:LangChainHistory",
        "langchain-core",
        "a chat message history of LangChain; MEMORY_CONFORMANCE_HISTORY names a factory, else that in memory",
    ),
    "langchain-middleware": KnownSystem(
        f"{_HERE}.middleware:LangChainMiddleware",
        "langchain",
        "memory middleware of LangChain's agents; MEMORY_CONFORMANCE_MIDDLEWARE names its factory",
    ),
    "deepagents": KnownSystem(
        f"{_HERE}.deepagents:DeepAgentsBackend",
        "deepagents",
        "a backend of deepagents; MEMORY_CONFORMANCE_BACKEND names a factory, else FilesystemBackend",
    ),
    "rest": KnownSystem(
        f"{_HERE}.rest:RestServer",
        "",
        "a server with mem0's routes; MEMORY_CONFORMANCE_URL is its address, MEMORY_CONFORMANCE_KEY its key",
    ),
    "mcp": KnownSystem(
        f"{_HERE}.mcp:McpServer",
        "",
        "an MCP server; MEMORY_CONFORMANCE_MCP is a file with its command or URL and its tools, else mem0-core serve",
    ),
}
