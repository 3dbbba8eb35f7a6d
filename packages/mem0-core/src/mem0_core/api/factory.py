"""Build the components of a `Memory` from its configuration."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from mem0_core._system.files import validate_path
from mem0_core.catalog import (
    FRAMEWORK_PROVIDERS,
    PGVECTOR_ONLY_KEYS,
    POSTGRES_VECTOR_STORES,
    PROVIDERS,
    ComponentKind,
)
from mem0_core.components import build_component, check_keys, check_provider
from mem0_core.config import (
    NO_GRAPH,
    ComponentConfig,
    GraphConfig,
    MemoryConfig,
    parse_graph_config,
)
from mem0_core.domain.recipes import DEFAULT_LIST_RERANKER, DEFAULT_RERANKER
from mem0_core.domain.suggestions import describe_value
from mem0_core.errors import CapabilityError, ConfigError, Mem0Error, StoreError
from mem0_core.interfaces import (
    ChatModel,
    Embedder,
    GraphIndex,
    GraphOptions,
    MemoryStore,
    RecordStore,
    Reranker,
    VectorIndex,
    VectorSource,
)
from mem0_core.interfaces.keys import Keys

if TYPE_CHECKING:
    from mem0_core.providers.llm_reranker import LLMReranker

FrameworkModel: TypeAlias = object
"""A model of a framework with an installed adapter (LangChain, LlamaIndex, ...), which has no type here."""


def resolve_component(kind: ComponentKind, method: str, *choices: Any, **wiring: Any) -> Any:
    """Return the first given choice, built if it is a description, after a check for the required method.

    A framework's model is converted by the framework's adapter if one is installed (see `config`). The check avoids
    isinstance, which would read an embedder's `dims` and so load a model or call a server.
    """
    chosen = next((choice for choice in choices if choice is not None), None)
    component = build_component(kind, chosen, **wiring)
    if component is not None:
        _check_component(_ARGUMENT_NAMES.get(kind, kind), component, method)
    return component


_ARGUMENT_NAMES: dict[str, str] = {"vector_store": "index", "graph_store": "graph"}
"""Arguments of `Memory` that are named unlike their kind of component."""


def _check_component(argument: str, component: Any, method: str) -> None:
    """Check that an object has the required method, and an embedder its other members.

    Raises:
        ConfigError: the object is a class, or lacks a member.
    """
    if isinstance(component, type):
        raise ConfigError(f"{argument}: an instance is required, not the class {component.__name__}; call it first")
    if not callable(getattr(component, method, None)):
        raise ConfigError(
            f"{argument}: {describe_value(component)} has no method {method!r}; pass 'provider:model',"
            ' {"provider": ..., "config": {...}}, or an object with this method (see mem0_core.interfaces). Objects of'
            " LangChain and LlamaIndex need mem0-langchain or mem0-llamaindex"
        )
    if argument == "embedder":
        missing = [name for name in ("name", "dims") if inspect.getattr_static(component, name, None) is None]
        missing = [name for name in missing if name not in getattr(component, "__dict__", {})]
        if missing and not hasattr(type(component), "__getattr__"):
            raise ConfigError(
                f"embedder: {describe_value(component)} has no {' and no '.join(missing)}; add the members of"
                " mem0_core.interfaces.Embedder: name, dims and embed(texts, *, kind)"
            )
        _check_kind_parameter(component)


def _check_kind_parameter(embedder: Any) -> None:
    try:
        parameters = inspect.signature(embedder.embed).parameters.values()
    except (TypeError, ValueError):  # a method in C has no signature
        return
    if not any(one.name == "kind" or one.kind is one.VAR_KEYWORD for one in parameters):
        raise ConfigError(
            f"embedder: {type(embedder).__name__}.embed() has no argument 'kind'; accept kind=\"document\" and"
            ' kind="query": def embed(self, texts, *, kind="document")'
        )


def match_store(embedder: Embedder, store: MemoryStore) -> Embedder:
    """Return the embedder for a store: the packaged model of its vectors, unless `embedder` names another model."""
    if inspect.getattr_static(embedder, "for_space", None) is None:
        return embedder
    try:
        held = store.embedding_space()
    except Mem0Error:  # reported by the first call that needs the vectors
        return embedder
    matched: Embedder = embedder if held is None else cast(Any, embedder).for_space(held[0])
    return matched


def resolve_reranker(chat: ChatModel | None, *choices: Any) -> Reranker | None:
    """Return the first given choice, built if it is a description; None for False, or if none is given.

    Raises:
        ConfigError: the reranker needs a chat model, has none, and `chat` is None.
    """
    if next((choice for choice in choices if choice is not None), None) is False:
        return None
    built: Reranker | None = resolve_component("reranker", "score", *choices)
    if built is None:
        return None
    from mem0_core.providers.llm_reranker import LLMReranker

    return built.with_chat(chat) if isinstance(built, LLMReranker) else built


def choose_reranker(
    config: MemoryConfig, chat: ChatModel | None, embedder: Any, reranker: Any
) -> tuple[Reranker | None, bool]:
    """Return the reranker of a memory, and True if neither it nor the embedder was named."""
    if all(model is None for model in (embedder, config.embedder, reranker, config.reranker)):
        return find_default_reranker(), True
    return resolve_reranker(chat, reranker, config.reranker), False


def find_default_reranker() -> Reranker | None:
    """Return the best packaged reranker where it is fast, on onnxruntime."""
    from mem0_core.providers._local_embedder import has_packaged_model

    if find_spec("onnxruntime") is None:
        return None
    for name in (DEFAULT_LIST_RERANKER, DEFAULT_RERANKER):  # an older package has no listwise reranker
        if has_packaged_model(name):
            reranker: Reranker = build_component("reranker", name)
            return reranker
    return None


def llm_reranker(
    *,
    llm: ChatModel | Mapping[str, Any] | str | None = None,
    model: str | None = None,
    provider: str | None = None,
    api_key: str | None = None,
    temperature: float = 0.0,
    custom_prompt: str | None = None,
    max_chars: int | None = None,
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
    from mem0_core.providers.llm_reranker import MAX_TEXT_CHARS, LLMReranker

    limit = MAX_TEXT_CHARS if max_chars is None else max_chars
    return LLMReranker(resolve_component("llm", "complete", llm), custom_prompt=custom_prompt, max_chars=limit)


def open_store(config: MemoryConfig, keys: Keys | None = None, **options: Any) -> MemoryStore:
    """Open the primary store that `config` names, by default a SQLite file.

    Args:
        keys: encrypt the store with these keys, in place of those that `config` names.
        options: more arguments for the store's provider.

    Raises:
        ConfigError: there are keys, and the store cannot encrypt.
    """
    chosen = config.store_config or ComponentConfig(provider="sqlite", config={"path": config.database})
    if (given := config.keys if keys is None else keys) is not None:
        if chosen.provider != "sqlite":
            raise ConfigError(f"keys: the store {chosen.provider!r} cannot encrypt; use the store 'sqlite', or no keys")
        from mem0_core.providers.keyring import resolve_keys

        options["keys"] = resolve_keys(given)
    if chosen.provider == "sqlite":
        _refuse_emptied_store(config)
    from mem0_core.stores.minimal import complete_store

    return complete_store(build_component("store", chosen, durability=config.durability, **options))


def _refuse_emptied_store(config: MemoryConfig) -> None:
    """Raise StoreError if the file of a store is empty, but snapshots show that it was not."""
    file, folder = validate_path(config.database, "path"), snapshot_folder(config)
    try:
        if file.stat().st_size or not any(folder.rglob("*.json")):
            return
    except OSError:
        return
    raise StoreError(
        f"{file} is empty, but {folder} has snapshots of its vectors: the file was cut, and is left as it is. Restore a"
        " backup (mem0-core restore); or, to begin with an empty store, remove the file"
    )


def resolve_store(
    store: MemoryStore | RecordStore | None, config: MemoryConfig, keys: Keys | None = None
) -> MemoryStore:
    """Return the caller's store, completed if it is a `RecordStore`, or open the one that `config` names.

    Raises:
        ConfigError: the caller's object is no store, or there are keys for it.
    """
    if store is None:
        return open_store(config, keys)
    if keys is not None:
        raise ConfigError("keys: pass them to the store that you made, as SQLiteStore(path, keys=...), not to Memory")
    from mem0_core.stores.minimal import complete_store

    return complete_store(store)


def refuse_plain_projections(
    store: MemoryStore, config: MemoryConfig, graph: GraphConfig | None, *given: object
) -> None:
    """Close an encrypted store and raise ConfigError if a projection of it would write plain data.

    Args:
        given: indexes that the caller made.
    """
    if getattr(store, "is_encrypted", False) is not True:
        return
    problem = ""
    if any(one is not None for one in given):
        problem = "index= and graph= objects may write plain data"
    elif config.vector_store.provider not in PRIVATE_INDEXES:
        problem = f"vector_store {config.vector_store.provider!r} keeps plain vectors"
    elif graph is not None and graph.provider != "sqlite":
        problem = f"graph_store {graph.provider!r} keeps plain relations"
    if problem:
        store.close()
        raise ConfigError(f"keys: the store is encrypted, and {problem}; use the embedded indexes, or no keys")


PRIVATE_INDEXES = ("embedded", "numpy", "exact", "faiss")
"""Vector indexes that keep vectors in memory only if they have no folder."""


def snapshot_folder(config: MemoryConfig) -> Path:
    """Return the default folder of vector index snapshots."""
    return config.database.parent / "faiss" / config.database.stem


def check_vector_store(config: MemoryConfig) -> None:
    """Report a wrong provider or key when the memory is made, not at the first search."""
    chosen = config.vector_store
    check_provider("vector_store", chosen.provider)
    keys = dict(chosen.config)
    if chosen.provider in PROVIDERS["vector_store"]:
        keys = _remove_mem0_keys(chosen)
        keys.pop("path", None)
    if keys:  # without any, the library of the provider is imported when it is needed
        check_keys("vector_store", chosen.provider, keys, ("source", "folder"))


def _remove_mem0_keys(chosen: ComponentConfig) -> dict[str, Any]:
    """Return the keys of one of our providers without those of mem0 that have no effect."""
    mem0s = ("collection_name", "embedding_model_dims", "distance_strategy", "normalize_L2")
    ignored = (*mem0s, *(PGVECTOR_ONLY_KEYS if chosen.provider in POSTGRES_VECTOR_STORES else ()))
    return {key: value for key, value in chosen.config.items() if key not in ignored}


def build_vector_index(
    config: MemoryConfig, source: VectorSource, part: str = "", *, embedder: Embedder | None = None
) -> VectorIndex:
    """Build the projection of `vector_store`. mem0's keys without effect (collection, dims) are ignored.

    A store's attribute ``vector_provider`` is the default provider. A `part` is an index of names or relations; these
    are few, and use the default provider even if memories are searched by another one.

    Args:
        embedder: Maker of the vectors; providers that other packages build receive the length of its vectors.
    """
    chosen = config.vector_store
    if "vector_store" not in config.given_keys or (part and chosen.provider not in PROVIDERS["vector_store"]):
        chosen = ComponentConfig(provider=getattr(source, "vector_provider", "embedded"))
    if chosen.provider in FRAMEWORK_PROVIDERS["vector_store"]:
        dims = {} if embedder is None else {"dims": embedder.dims}
        outside: VectorIndex = build_component("vector_store", chosen, source=source, **dims)
        return outside
    keys = _remove_mem0_keys(chosen)
    folder: Path | None = Path(keys.pop("path", None) or snapshot_folder(config))
    if getattr(source, "is_encrypted", False):
        folder = None  # no snapshots: they would contain plain vectors
    folder = folder / part if folder is not None and part else folder
    spec = {"provider": chosen.provider, "config": keys}
    index: VectorIndex = build_component("vector_store", spec, source=source, folder=folder)
    return index


_GRAPH_WIRING = ("primary_graph", "store_id")


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
        if chosen.provider != "sqlite":
            check_keys("graph_store", chosen.provider, chosen.config, _GRAPH_WIRING)
        return chosen, None
    _check_component("graph", graph, "neighborhoods")
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
    wiring = dict(zip(_GRAPH_WIRING, (store.graph, store.graph.store_id()), strict=True))
    index: GraphIndex = build_component("graph_store", config, **wiring)
    return index


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
