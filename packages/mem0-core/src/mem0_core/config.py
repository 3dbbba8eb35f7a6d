"""Configuration: mem0's keys with validation, and the table of providers.

A component is an instance, ``"provider:model"``, or ``{"provider": ..., "config": {...}}``. Third-party providers
register a callable under the entry-point groups ``mem0_core.llm``, ``mem0_core.embedder`` and
``mem0_core.reranker``; it receives the keys of ``config`` as keyword arguments.

An instance may also be a model of a framework with an installed adapter: a callable under the entry-point group
``mem0_core.adapters``, named like the top-level module of the framework's classes. It receives the kind of component
and the instance (for a vector store, ``source`` too, as a keyword argument), and returns an object with our protocol::

    [project.entry-points."mem0_core.adapters"]
    langchain_core = "mem0_langchain.models:adapt"
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, Self, TypeGuard, cast
from urllib.parse import quote, urlencode

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator, model_validator

from mem0_core._files import DATABASE, home
from mem0_core.domain.recipes import resolve_recipe
from mem0_core.errors import ConfigError, MissingExtraError

__all__ = [
    "NO_GRAPH",
    "PGVECTOR_ONLY_KEYS",
    "PROVIDERS",
    "BackgroundConfig",
    "ComponentConfig",
    "ComponentKind",
    "GraphConfig",
    "LimitsConfig",
    "MemoryConfig",
    "TraverseConfig",
    "build_component",
    "check_provider",
    "is_log_level",
    "load_config",
    "parse_graph_config",
    "read_config_file",
]

ComponentKind = Literal["llm", "embedder", "reranker", "store", "vector_store", "graph_store"]

PROVIDERS: dict[str, dict[str, str]] = {
    "llm": {
        "openai": "mem0_core.providers.openai:OpenAIChat",
        "ollama": "mem0_core.providers.openai:OpenAIChat",
        "vllm": "mem0_core.providers.openai:OpenAIChat",
        "lmstudio": "mem0_core.providers.openai:OpenAIChat",
        "local": "mem0_core.providers.local:create_local_chat",
        "llama_cpp": "mem0_core.providers.llama_cpp:LlamaCppChat",
        "openvino": "mem0_core.providers.openvino:OpenVinoChat",
        "transformers": "mem0_core.providers.transformers:TransformersChat",
    },
    "embedder": {
        "onnx": "mem0_core.providers.onnx:OnnxEmbedder",
        "openvino": "mem0_core.providers.openvino_embedder:OpenVinoEmbedder",
        "openai": "mem0_core.providers.openai:OpenAIEmbedder",
        "ollama": "mem0_core.providers.openai:OpenAIEmbedder",
        "lmstudio": "mem0_core.providers.openai:OpenAIEmbedder",
        "huggingface": "mem0_core.providers.sentence_transformers:SentenceTransformerEmbedder",
        "sentence_transformers": "mem0_core.providers.sentence_transformers:SentenceTransformerEmbedder",
        "jina": "mem0_core.providers.sentence_transformers:jina",
        "hash": "mem0_core.testing:HashEmbedder",
    },
    "reranker": {
        "sentence_transformers": "mem0_core.providers.rerankers:TransformersReranker",
        "sentence_transformer": "mem0_core.providers.rerankers:TransformersReranker",
        "huggingface": "mem0_core.providers.rerankers:huggingface",
        "qwen": "mem0_core.providers.rerankers:qwen",
        "llm": "mem0_core.api.factory:llm_reranker",
        "llm_reranker": "mem0_core.api.factory:llm_reranker",
    },
    "store": {
        "sqlite": "mem0_core.stores.sqlite.store:SQLiteStore",
        "postgres": "mem0_core.stores.postgres.store:PostgresStore",
    },
    "vector_store": {
        "exact": "mem0_core.stores.vector.exact:ExactIndex",
        "faiss": "mem0_core.stores.vector.faiss:FaissIndex",
        "pgvector": "mem0_core.stores.postgres.vectors:PgvectorIndex",
    },
    "graph_store": {
        "sqlite": "mem0_core.stores.graph.embedded:EmbeddedGraph",
        "neo4j": "mem0_core.stores.graph.neo4j:Neo4jGraph",
        "ladybug": "mem0_core.stores.graph.ladybug:LadybugGraph",
        "kuzu": "mem0_core.stores.graph.ladybug:LadybugGraph",
    },
}
"""``provider -> module:name``; a module is imported once a configuration names its provider."""

NO_GRAPH = "none"
"""The provider of `graph_store` that turns graph memory off."""

_BASE_URLS = {
    "ollama": "http://localhost:11434/v1",
    "vllm": "http://localhost:8000/v1",
    "lmstudio": "http://localhost:1234/v1",
}
"""Default addresses of servers with the OpenAI protocol."""

_NON_FRAMEWORK_MODULES = sys.stdlib_module_names | {"mem0_core", "pydantic"}
"""Top-level modules with classes that need no adapter."""

_BASE_URL_KEYS = ("base_url", "openai_base_url", "ollama_base_url", "vllm_base_url", "lmstudio_base_url")


class ComponentConfig(BaseModel):
    """A component as ``{"provider": ..., "config": {...}}``."""

    model_config = ConfigDict(extra="forbid")

    provider: str
    config: dict[str, Any] = Field(default_factory=dict)


class GraphConfig(ComponentConfig):
    """``graph_store``: the index that searches relations, and the options of graph memory; see `GraphOptions`.

    The primary store always holds the relations. ``neo4j`` and ``ladybug`` are projections of it.
    """

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

    provider: str = "sqlite"
    """``sqlite`` for the store itself, ``neo4j`` or ``ladybug`` for a projection, ``none`` for no graph memory."""
    llm: Any = None
    """A separate model for entities and relations; by default the memory's."""
    custom_prompt: str | None = None
    """Instructions added to the relations prompt."""
    threshold: float = Field(default=0.7, ge=0, le=1)
    """The cosine from which two names are one node (t in the Mem0 paper)."""
    limit: int = Field(default=5, ge=1)
    """Number of relations that a search returns."""
    triplet_threshold: float = Field(default=0.4, ge=0, le=1)
    """The cosine from which a relation's sentence answers a query by itself."""
    existing: int = Field(default=10, ge=1)
    """Number of known relations around each entity that a model compares new ones with."""
    strict: bool = False
    """Use the strict structured-output form of tools."""
    query_entities: Literal["model", "rules"] = "model"
    """Entities of a query are found by a model, with one call per search, or by rules."""


class TraverseConfig(BaseModel):
    """Weights of paths through the graph; see `graph.traversal.Weights`."""

    model_config = ConfigDict(extra="forbid")

    recency: float = Field(default=0.1, ge=0, lt=1)
    """Share of its score that an old relation loses; less than 1 together with `evidence`."""
    evidence: float = Field(default=0.1, ge=0, lt=1)
    """Share that a relation stated only once loses."""
    degree: float = Field(default=0.1, ge=0, lt=1)
    """Share that a path loses by passing through a highly connected node."""
    half_life: float = Field(default=365.0, gt=0)
    """Days after which half of `recency` is lost."""
    similar: float = Field(default=0.55, ge=0, le=1)
    """The cosine from which a relationship matches a word of the question."""

    @model_validator(mode="after")
    def _check_shares(self) -> Self:
        if self.recency + self.evidence >= 1:
            raise ValueError("recency and evidence together must be less than 1")
        return self


class BackgroundConfig(BaseModel):
    """Settings of background workers; see `ingest.worker.WorkerSettings`."""

    model_config = ConfigDict(extra="forbid")

    workers: int = Field(default=2, ge=1, le=64)
    """Number of worker threads, or of tasks of an event loop."""
    batch: int = Field(default=8, ge=1, le=100)
    """Maximum number of queued turns of one conversation processed together."""
    tries: int = Field(default=8, ge=1)
    """Failed attempts, while other jobs succeed, before a job is marked as failed."""
    backoff: float = Field(default=1.0, gt=0)
    """Seconds before the second attempt; doubled each time."""
    lease: float = Field(default=30.0, gt=0)
    """Seconds after which another worker may take over a job."""
    drain: float = Field(default=10.0, ge=0)
    """Seconds that `close` waits for queued jobs; the rest run after the next start."""


class LimitsConfig(BaseModel):
    """Limits on one call and one scope; see `domain.policy.Limits`."""

    model_config = ConfigDict(extra="forbid")

    message_chars: int | None = Field(default=None, ge=1)
    """Maximum characters of one message."""
    messages: int | None = Field(default=None, ge=1)
    """Maximum messages of one call."""
    adds_per_minute: int | None = Field(default=None, ge=1)
    """Maximum calls for one scope in a minute."""


class MemoryConfig(BaseModel):
    """The keys of a configuration. An unknown key raises an error that names it and the nearest known key."""

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True, protected_namespaces=())

    version: Literal["v1.0", "v1.1"] = "v1.1"
    """Shape of results; ``v1.0`` returns mem0's old bare list, with a DeprecationWarning."""
    path: Path | None = None
    """Folder of all local data; by default ``$MEM0_CORE_HOME``, else ``mem0-core`` in the platform's data folder."""
    history_db_path: Path | None = None
    """The SQLite file that holds memories and history; by default ``memory.db`` in `path`."""
    durability: Literal["full", "process"] = "full"
    """``full``: an acknowledged add survives a power cut. ``process`` (faster): it survives a crash of the process."""
    custom_fact_extraction_prompt: str | None = None
    """Instructions for fact extraction, in place of the default ones; the reply format is added."""
    custom_update_memory_prompt: str | None = None
    """Instructions for reconciling facts with memories, in place of the default ones. They also decide on the first
    facts of a scope, which are otherwise added without asking."""
    llm: Any = None
    """The chat model; without one, messages are stored verbatim."""
    embedder: Any = None
    """The embedding model; by default all-MiniLM-L6-v2 on onnxruntime, from local weights."""
    store: ComponentConfig | None = None
    """The primary store, in place of a SQLite file: a URL, ``postgresql://user:password@host/database``, or
    ``{"provider": "postgres", "config": {"url": ..., "schema": ...}}``; see `stores.postgres.PostgresStore`."""
    vector_store: ComponentConfig = Field(default_factory=lambda: ComponentConfig(provider="faiss"))
    """The vector index. By default FAISS, or pgvector if `store` is PostgreSQL. mem0's keys of pgvector (``host``,
    ``dbname``, ``connection_string``, ...) also select the store."""
    reranker: Any = None
    """Model that reorders the best hits; see docs/how-to/reranking.md."""
    graph_store: GraphConfig | None = None
    """Graph memory. By default it is on without a chat model (rules extract relations) and off with one. False, or the
    provider ``"none"``, turns it off."""
    extraction: Literal["staged", "fused", "triplets"] = "staged"
    """``staged``: several model calls. ``fused``: one call for everything. ``triplets``: several calls for facts, one
    for relations, as lines of SOURCE - RELATION - DESTINATION."""
    operations: Literal["auto", "json", "tools"] = "auto"
    """The form of the model's decisions: JSON, or tool calls as in the Mem0 paper. By default tool calls if the model
    ``supports`` ``"tools"`` and not ``"schema"``."""
    on_conflict: Literal["invalidate", "delete"] = "invalidate"
    """Relations that no longer hold end and stay on record, or are removed."""
    neighbours: int = Field(default=10, ge=1, le=100)
    """Number of similar memories that each fact is compared with (s in the Mem0 paper)."""
    window: int = Field(default=10, ge=0, le=200)
    """Number of earlier messages that the model reads as context (m in the Mem0 paper)."""
    summary_every: int = Field(default=20, ge=0)
    """Number of messages after which the summary of a conversation is updated in the background; 0 for no summary."""
    summary_words: int = Field(default=200, ge=20)
    """Maximum length of a summary in words."""
    background: BackgroundConfig = Field(default_factory=BackgroundConfig)
    """Settings of background workers."""
    read_your_writes: bool = True
    """Searches include queued messages that are not processed yet."""
    limits: LimitsConfig = Field(default_factory=LimitsConfig)
    """Limits on one call and one scope; by default none."""
    recipe: Any = "hybrid"
    """Sources and weights of searches: a name (hybrid, mem0, paper, offline), a `Recipe`, or a mapping of fields over
    the recipe it names."""
    traverse: TraverseConfig = Field(default_factory=TraverseConfig)
    """Weights of graph traversal."""
    half_life: float | None = Field(default=None, gt=0)
    """Days after which the score of a memory that was not repeated is halved; by default age does not count."""
    enable_vision: bool = False
    """The chat model describes images in messages (also read from ``llm.config``, as in mem0)."""
    on_bad_reply: Literal["skip", "raise"] = "skip"
    """Treatment of a reply that is still malformed after a retry: reported in ``skipped``, or raised. Messages of a
    reply that is unusable as a whole stay in the queue as a failed job; see `Memory.retry`."""
    max_changes: int = Field(default=200, ge=1)
    """Maximum number of facts in one reply of the model, and of additions and updates. More facts make a reply
    unusable; further changes are refused and reported in ``skipped``."""
    max_deletions: int = Field(default=5, ge=0)
    """Maximum number of memories that one reply of the model may delete; further deletions are refused and reported in
    ``skipped``."""
    logging: Any = None
    """Log file of the `mem0-core` command, by default none: a level ("INFO") for ``app.log`` in `path`; or a file, or a
    mapping, as ``logging.config.dictConfig`` takes it. A file is relative to the configuration that names it. The
    library opens no log file: add handlers to its logger ``mem0_core``."""

    @field_validator("logging")
    @classmethod
    def _check_logging(cls, value: Any) -> Any:
        if value is None or value is False or is_log_level(value) or isinstance(value, (str, Path, Mapping)):
            return value or None
        raise ValueError(f"a level, a file or a mapping, not {type(value).__name__}")

    @field_validator("recipe")
    @classmethod
    def _check_recipe(cls, value: Any) -> Any:
        resolve_recipe(value)  # raises before any file is opened
        return value

    @field_validator("llm", "embedder", "reranker")
    @classmethod
    def _check_component_provider(cls, value: Any, info: ValidationInfo) -> Any:
        if isinstance(value, str):
            check_provider(cast(ComponentKind, info.field_name), value.partition(":")[0])
        elif isinstance(value, Mapping):
            check_provider(cast(ComponentKind, info.field_name), ComponentConfig(**value).provider)
        return value

    @field_validator("graph_store", mode="before")
    @classmethod
    def _parse_graph_store(cls, value: Any) -> Any:
        return {"provider": NO_GRAPH} if value is False else value

    @field_validator("store", mode="before")
    @classmethod
    def _parse_store_url(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        if not value.startswith(POSTGRES_SCHEMES):
            raise ValueError('a URL that begins with postgresql://, or {"provider": ..., "config": {...}}')
        return {"provider": "postgres", "config": {"url": value}}

    @property
    def store_config(self) -> ComponentConfig | None:
        """`store`, or the database that mem0's keys of pgvector name; None for a SQLite file."""
        if (
            self.store is None
            and self.vector_store.provider == "pgvector"
            and (url := _pgvector_url(self.vector_store))
        ):
            size = self.vector_store.config.get("maxconn")
            return ComponentConfig(provider="postgres", config={"url": url, **({"pool_size": size} if size else {})})
        return self.store

    @property
    def folder(self) -> Path:
        if self.path is None and self.history_db_path is not None:
            return self.history_db_path.expanduser().parent
        return self.path.expanduser() if self.path is not None else home()

    @property
    def database(self) -> Path:
        return (self.history_db_path or self.folder / DATABASE).expanduser()


POSTGRES_SCHEMES = ("postgresql://", "postgres://")

_PGVECTOR_KEYS = ("dbname", "user", "password", "host", "port", "sslmode")
PGVECTOR_ONLY_KEYS = (*_PGVECTOR_KEYS, "connection_string", "connection_pool", "minconn", "maxconn", "diskann", "hnsw")
"""mem0's keys of pgvector that locate the store, or have no effect here."""


def _pgvector_url(chosen: ComponentConfig) -> str | None:
    """Return the URL that mem0's keys of pgvector describe, or None if they name no database."""
    keys = chosen.config
    if keys.get("connection_string"):
        return str(keys["connection_string"])
    given = {key: str(keys[key]) for key in _PGVECTOR_KEYS if keys.get(key)}
    return f"postgresql://?{urlencode(given, quote_via=quote)}" if given else None


def postgres_config(place: str) -> ComponentConfig:
    """Return the store at a URL; the fragment names the schema: ``postgresql://host/database#mem0``.

    Raises:
        ConfigError: the text is no PostgreSQL URL.
    """
    url, _, schema = place.partition("#")
    if not url.startswith(POSTGRES_SCHEMES):
        raise ConfigError(f"store: a URL that begins with postgresql://, not {place!r}")
    return ComponentConfig(provider="postgres", config={"url": url, **({"schema": schema} if schema else {})})


def load_config(source: MemoryConfig | Mapping[str, Any] | str | Path | None) -> MemoryConfig:
    """Check a configuration given as a mapping or as the path of a YAML or JSON file.

    Raises:
        ConfigError: a key is unknown or wrong; the message names it.
    """
    if isinstance(source, MemoryConfig):
        return source
    file = Path(source).expanduser() if isinstance(source, (str, Path)) else None
    if file is not None:
        source = read_config_file(file)
    where = "" if file is None else f"{file}: "
    if source is not None and not isinstance(source, Mapping):
        raise ConfigError(f"{where}a configuration is a mapping of keys, not {type(source).__name__}")
    try:
        return MemoryConfig(**_lift_vision(dict(source or {})))
    except ValidationError as error:
        raise ConfigError(where + "; ".join(_validation_messages(error))) from error
    except TypeError as error:
        raise ConfigError(f"{where}a configuration has string keys: {error}") from error


def parse_graph_config(given: Mapping[str, Any] | str | bool) -> GraphConfig:
    """Validate the argument ``graph`` of `Memory`.

    Raises:
        ConfigError: a key is unknown or wrong; the message names it.
    """
    if isinstance(given, bool):
        given = {} if given else NO_GRAPH
    keys = {"provider": given} if isinstance(given, str) else dict(given)
    try:
        return GraphConfig(**keys)
    except ValidationError as error:
        raise ConfigError(
            "; ".join(f"graph: {problem}" for problem in _validation_messages(error, "graph_store"))
        ) from error


def _lift_vision(keys: dict[str, Any]) -> dict[str, Any]:
    """Move mem0's ``llm.config.enable_vision`` to the top level; vision_details has no effect here."""
    llm = keys.get("llm")
    if isinstance(llm, Mapping) and isinstance(llm.get("config"), Mapping) and "enable_vision" in llm["config"]:
        inner = {key: value for key, value in llm["config"].items() if key not in ("enable_vision", "vision_details")}
        vision = keys.get("enable_vision", llm["config"]["enable_vision"])
        return {**keys, "llm": {**llm, "config": inner}, "enable_vision": vision}
    return keys


def is_log_level(given: object) -> TypeGuard[str]:
    """Return True for the name of a log level."""
    return isinstance(given, str) and given.upper() in ("DEBUG", "INFO", "WARNING", "ERROR")


def read_config_file(path: Path) -> Any:
    """Parse a YAML or JSON file.

    Raises:
        ConfigError: the file cannot be read or parsed.
        MissingExtraError: a YAML file needs ``mem0-core[yaml]``.
    """
    try:
        text = path.expanduser().read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot read the configuration {path}: {error}") from error
    if path.suffix == ".json":
        import json

        try:
            return json.loads(text)
        except ValueError as error:
            raise ConfigError(f"{path} is no JSON: {error}") from error
    try:
        import yaml
    except ImportError as error:
        raise MissingExtraError("pyyaml", "yaml") from error
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ConfigError(f"{path} is no YAML: {error}") from error


def _validation_messages(error: ValidationError, *above: str) -> Iterator[str]:
    for problem in error.errors():
        key = ".".join(str(part) for part in problem["loc"])
        if problem["type"] == "extra_forbidden":
            yield f"unknown key {key!r}{_suggestion(str(problem['loc'][-1]), _known_keys((*above, *problem['loc'])))}"
        else:
            # Our own validators may name the key already.
            yield f"{key}: {problem['msg'].removeprefix('Value error, ').removeprefix(f'{key}: ')}"


def _known_keys(place: Sequence[str | int]) -> list[str]:
    """Return the valid keys at the place of an unknown one."""
    if len(place) == 1:
        return list(MemoryConfig.model_fields)
    parts: dict[str | int, type[BaseModel]] = {
        "graph_store": GraphConfig,
        "background": BackgroundConfig,
        "traverse": TraverseConfig,
        "limits": LimitsConfig,
    }
    return list(parts.get(place[0], ComponentConfig).model_fields)


def _suggestion(name: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f"; did you mean {near[0]!r}?" if near else f"; known: {', '.join(sorted(known))}"


def build_component(kind: ComponentKind, spec: Any, **wiring: Any) -> Any:
    """Make the component that `spec` describes; an instance is returned as it is, a framework's by its adapter.

    Raises:
        ConfigError: the provider is unknown, or does not know one of the keys.
        MissingExtraError: a library the provider needs is not installed.
    """
    if isinstance(spec, str):
        name, _, model = spec.partition(":")
        spec = {"provider": name, "config": {"model": model} if model else {}}
    if isinstance(spec, ComponentConfig):
        component = spec
    elif isinstance(spec, Mapping):
        try:
            component = ComponentConfig(**spec)
        except ValidationError as error:
            raise ConfigError(f"{kind}: {'; '.join(_validation_messages(error))}") from error
    else:
        return _adapt(kind, spec, wiring)
    maker = _resolve_provider(kind, component.provider)
    try:
        return maker(**_provider_kwargs(component), **wiring)
    except TypeError as error:
        raise ConfigError(f"{kind}.config ({component.provider}): {error}") from error


def _adapt(kind: ComponentKind, instance: Any, wiring: Mapping[str, Any]) -> Any:
    """Return `instance` converted by the adapter of its framework, or unchanged if it has none.

    The modules of its classes decide, not its methods: other frameworks have a `score` and a `complete` too.
    """
    for base in type(instance).__mro__:
        root = base.__module__.partition(".")[0]
        if root not in _NON_FRAMEWORK_MODULES and (adapter := _adapters().get(root)) is not None:
            return adapter.load()(kind, instance, **wiring)
    return instance


def _provider_kwargs(component: ComponentConfig) -> dict[str, Any]:
    """Return the provider's keys; all of mem0's names for a server's address become `base_url`."""
    keys = {key: value for key, value in component.config.items() if key not in _BASE_URL_KEYS}
    given = dict.fromkeys(component.config[key] for key in _BASE_URL_KEYS if component.config.get(key))
    if len(given) > 1:
        raise ConfigError(f"base_url is given twice, as {' and as '.join(map(repr, given))}")
    url = next(iter(given), _BASE_URLS.get(component.provider))
    if url and component.provider in _BASE_URLS and not url.rstrip("/").endswith("/v1"):
        url = url.rstrip("/") + "/v1"  # mem0 names ollama's root; the protocol is at /v1
    return {**keys, "base_url": url} if url else keys


def check_provider(kind: ComponentKind, name: str) -> None:
    """Check that a provider exists, without importing it.

    Raises:
        ConfigError: the provider is unknown; the message suggests the nearest name.
    """
    if name not in PROVIDERS[kind] and name not in (others := _plugin_providers(kind)):
        raise ConfigError(f"{kind}: unknown provider {name!r}{_suggestion(name, [*PROVIDERS[kind], *others])}")


def _resolve_provider(kind: ComponentKind, name: str) -> Callable[..., Any]:
    """Return the callable that builds a provider's component."""
    check_provider(kind, name)
    target = PROVIDERS[kind].get(name)
    if target is None:
        loaded: Callable[..., Any] = _plugin_providers(kind)[name].load()
        return loaded
    module, _, attribute = target.partition(":")
    maker: Callable[..., Any] = getattr(import_module(module), attribute)
    return maker


def _plugin_providers(kind: ComponentKind) -> dict[str, Any]:
    """Return the entry points of third-party providers by name."""
    return _entry_points(f"mem0_core.{kind}")


@cache
def _adapters() -> dict[str, Any]:
    """Return the entry points of framework adapters by top-level module."""
    return _entry_points("mem0_core.adapters")


def _entry_points(group: str) -> dict[str, Any]:
    from importlib.metadata import entry_points  # takes 40 ms, needed for third-party components only

    return {entry.name: entry for entry in entry_points(group=group)}
