"""Build the components of a `Memory` from its configuration."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from mem0_core.config import (
    NO_GRAPH,
    PGVECTOR_ONLY_KEYS,
    PROVIDERS,
    BackgroundConfig,
    ComponentConfig,
    ComponentKind,
    GraphConfig,
    MemoryConfig,
    build_component,
    check_provider,
    parse_graph_config,
)
from mem0_core.errors import CapabilityError, ConfigError
from mem0_core.ingest.worker import WorkerSettings
from mem0_core.interfaces import (
    ChatModel,
    GraphIndex,
    GraphOptions,
    MemoryStore,
    RecordStore,
    Reranker,
    VectorIndex,
    VectorSource,
)
from mem0_core.providers.llm_reranker import MAX_TEXT_CHARS, LLMReranker
from mem0_core.stores.minimal import complete_store

__all__ = [
    "FrameworkModel",
    "build_embedded_graph",
    "build_graph_index",
    "build_graph_options",
    "build_vector_index",
    "build_worker_settings",
    "check_graph_support",
    "llm_reranker",
    "open_store",
    "resolve_component",
    "resolve_graph",
    "resolve_reranker",
    "resolve_store",
    "snapshot_folder",
]

FrameworkModel: TypeAlias = object
"""A model of a framework with an installed adapter (LangChain, LlamaIndex, ...), which has no type here."""


def resolve_component(kind: ComponentKind, method: str, *choices: Any, **wiring: Any) -> Any:
    """Return the first given choice, built if it is a description, after a check for the required method.

    A framework's model is converted by the framework's adapter if one is installed (see `config`). The check avoids
    isinstance, which would read an embedder's `dims` and so load a model or call a server.
    """
    chosen = next((choice for choice in choices if choice is not None), None)
    component = build_component(kind, chosen, **wiring)
    if component is not None and not callable(getattr(component, method, None)):
        raise ConfigError(
            f"{kind}: {component!r} has no method {method!r} (see mem0_core.interfaces); models of LangChain and LlamaIndex"  # noqa: E501
            " need mem0-langchain or mem0-llamaindex"
        )
    return component


def resolve_reranker(chat: ChatModel | None, *choices: Any) -> Reranker | None:
    """Return the first given choice, built if it is a description.

    Raises:
        ConfigError: the reranker needs a chat model, has none, and `chat` is None.
    """
    built: Reranker | None = resolve_component("reranker", "score", *choices)
    return built.with_chat(chat) if isinstance(built, LLMReranker) else built


def llm_reranker(
    *,
    llm: ChatModel | Mapping[str, Any] | str | None = None,
    model: str | None = None,
    provider: str | None = None,
    api_key: str | None = None,
    temperature: float = 0.0,
    custom_prompt: str | None = None,
    max_chars: int = MAX_TEXT_CHARS,
    top_k: int | None = None,
    max_tokens: int | None = None,
    max_workers: int | None = None,
) -> LLMReranker:
    """Build the reranker of the providers ``llm`` and ``llm_reranker`` from their keys.

    Args:
        llm: the model; by default the one that the next four arguments name, otherwise the memory's.
        model, provider, api_key, temperature: mem0's keys of a model. `provider` defaults to OpenAI, unless `model`
            names it (``"ollama:llama3.1"``).
        custom_prompt, max_chars: see `LLMReranker`.
        top_k, max_tokens, max_workers: accepted for mem0 and ignored. A search's `limit` sets the number of results,
            and one request covers all texts, where mem0 sends one per text.
    """
    if llm is None and model is not None and provider is None and model.partition(":")[0] in PROVIDERS["llm"]:
        provider, _, model = model.partition(":")
    if llm is None and (model or provider or api_key):
        keys = {"model": model, "api_key": api_key, "temperature": temperature}
        given = {key: value for key, value in keys.items() if value is not None and value != ""}
        llm = {"provider": provider or "openai", "config": given}
    return LLMReranker(resolve_component("llm", "complete", llm), custom_prompt=custom_prompt, max_chars=max_chars)


def open_store(config: MemoryConfig, **options: Any) -> MemoryStore:
    """Open the primary store that `config` names, by default a SQLite file.

    Args:
        options: more arguments for the store's provider.
    """
    chosen = config.store_config or ComponentConfig(provider="sqlite", config={"path": config.database})
    return complete_store(build_component("store", chosen, durability=config.durability, **options))


def resolve_store(store: MemoryStore | RecordStore | None, config: MemoryConfig) -> MemoryStore:
    """Return the caller's store, completed if it is a `RecordStore`, or open the one that `config` names.

    Raises:
        ConfigError: the caller's object is no store.
    """
    return open_store(config) if store is None else complete_store(store)


def snapshot_folder(config: MemoryConfig) -> Path:
    """Return the default folder of vector index snapshots."""
    return config.database.parent / "faiss" / config.database.stem


def build_vector_index(config: MemoryConfig, source: VectorSource, part: str = "") -> VectorIndex:
    """Build the projection of `vector_store`. mem0's keys without effect (collection, dims) are ignored.

    A store's attribute ``vector_provider`` is the default provider. A `part` is an index of names or relations; these
    are few, and use the default provider even if memories are searched by another one.
    """
    chosen = config.vector_store
    if "vector_store" not in config.model_fields_set or (part and chosen.provider not in PROVIDERS["vector_store"]):
        chosen = ComponentConfig(provider=getattr(source, "vector_provider", "faiss"))
    keys = dict(chosen.config)
    folder = Path(keys.pop("path", None) or snapshot_folder(config))
    folder = folder / part if part else folder
    mem0s = ("collection_name", "embedding_model_dims", "distance_strategy", "normalize_L2")
    for mem0_only in (*mem0s, *(PGVECTOR_ONLY_KEYS if chosen.provider == "pgvector" else ())):
        keys.pop(mem0_only, None)
    spec = {"provider": chosen.provider, "config": keys}
    index: VectorIndex = build_component("vector_store", spec, source=source, folder=folder)
    return index


def resolve_graph(
    graph: GraphIndex | Mapping[str, Any] | str | bool | None, config: MemoryConfig, chat: ChatModel | None
) -> tuple[GraphConfig | None, GraphIndex | None]:
    """Return the configuration of graph memory (None if it is off), and the caller's index if there is one.

    By default it is on without a chat model, because rules extract relations at a negligible cost.
    """
    if graph is None or isinstance(graph, (Mapping, str, bool)):
        chosen = config.graph_store if graph is None else parse_graph_config(graph)
        if chosen is None and chat is None:
            chosen = GraphConfig()
        if chosen is None or chosen.provider == NO_GRAPH:
            return None, None
        check_provider("graph_store", chosen.provider)
        return chosen, None
    return config.graph_store or GraphConfig(), graph


def check_graph_support(store: MemoryStore, graph: GraphConfig | None, *, is_requested: bool) -> GraphConfig | None:
    """Return the configuration of graph memory, or None for a store without a graph.

    Args:
        is_requested: True if the caller asked for graph memory, False if it is on by default.

    Raises:
        CapabilityError: graph memory was requested; the store is closed.
    """
    if graph is None or getattr(store, "has_graph", True):
        return graph
    if is_requested:
        store.close()
        raise CapabilityError(getattr(store, "where", "this store"), "graph", "graph memory (graph=...)")
    return None


def build_embedded_graph(config: MemoryConfig, store: MemoryStore) -> GraphIndex:
    """Build the graph index over the primary store."""
    from mem0_core.stores.graph.embedded import EmbeddedGraph

    return EmbeddedGraph(
        store.graph,
        nodes=build_vector_index(config, store.graph.node_vectors, "nodes"),
        relations=build_vector_index(config, store.graph.relation_vectors, "relations"),
    )


def build_graph_index(config: GraphConfig, store: MemoryStore, embedded: GraphIndex) -> GraphIndex:
    """Build the configured graph index, or return the embedded one."""
    if config.provider == "sqlite":
        return embedded
    index: GraphIndex = build_component(
        "graph_store", config, primary_graph=store.graph, store_id=store.graph.store_id()
    )
    return index


def build_worker_settings(config: BackgroundConfig) -> WorkerSettings:
    """Return the settings of the background workers."""
    return WorkerSettings(
        workers=config.workers,
        batch=config.batch,
        tries=config.tries,
        backoff=config.backoff,
        lease=config.lease,
    )


def build_graph_options(config: GraphConfig, memory: MemoryConfig) -> GraphOptions:
    """Return the options of graph memory."""
    return GraphOptions(
        threshold=config.threshold,
        prompt=config.custom_prompt,
        strict=config.strict,
        existing=config.existing,
        limit=config.limit,
        triplet_threshold=config.triplet_threshold,
        query_entities=config.query_entities,
        relations="triplets" if memory.extraction == "triplets" else "staged",
        on_conflict=memory.on_conflict,
    )
