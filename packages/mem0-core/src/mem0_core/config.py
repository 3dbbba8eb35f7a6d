"""Configuration: mem0's keys, checked, and the one table of providers.

A component is an instance, ``"provider:model"``, or ``{"provider": ..., "config": {...}}``. Providers other than
ours register a callable under the entry-point groups ``mem0_core.llm``, ``mem0_core.embedder`` and
``mem0_core.reranker``; it gets the keys of ``config`` as keyword arguments.

An instance may also be a model of a framework, where an adapter for it is installed: a callable under the entry-point
group ``mem0_core.adapters``, named like the top-level module of the framework's classes. It gets the kind of component
and the instance (a vector store's ``source`` too, as a keyword argument), and returns one that fulfils our port::

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
from mem0_core.errors import ConfigError, MissingExtra

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
"""``provider -> module:name``; a module is imported when a configuration names its provider, not before."""

NO_GRAPH = "none"
"""The provider of `graph_store` that stands for no graph memory."""

_BASE_URLS = {
    "ollama": "http://localhost:11434/v1",
    "vllm": "http://localhost:8000/v1",
    "lmstudio": "http://localhost:1234/v1",
}
"""Where servers that speak the OpenAI protocol listen unless told otherwise."""

_NON_FRAMEWORK_MODULES = sys.stdlib_module_names | {"mem0_core", "pydantic"}
"""Top-level modules whose classes no adapter is asked about."""

_BASE_URL_KEYS = ("base_url", "openai_base_url", "ollama_base_url", "vllm_base_url", "lmstudio_base_url")


class ComponentConfig(BaseModel):
    """``{"provider": ..., "config": {...}}``"""

    model_config = ConfigDict(extra="forbid")

    provider: str
    config: dict[str, Any] = Field(default_factory=dict)


class GraphConfig(ComponentConfig):
    """``graph_store``: where relations are searched, and how they are found; see `ports.GraphOptions`.

    They always lie in the truth: ``neo4j`` and ``ladybug`` are projections of it that others can read as well.
    """

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

    provider: str = "sqlite"
    """``sqlite`` for the file itself, ``neo4j`` or ``ladybug`` for a projection, ``none``."""
    llm: Any = None
    """A model of its own for entities and relations; by default the memory's."""
    custom_prompt: str | None = None
    """Instructions added to the relations prompt."""
    threshold: float = Field(default=0.7, ge=0, le=1)
    """t: the cosine from which two names are one node."""
    limit: int = Field(default=5, ge=1)
    """n: how many relations a search returns."""
    triplet_threshold: float = Field(default=0.4, ge=0, le=1)
    """The cosine from which a relation's sentence answers a query by itself."""
    existing: int = Field(default=10, ge=1)
    """How many relations around each entity a model weighs new ones against."""
    strict: bool = False
    """Give tools their strict structured-output form."""
    query_entities: Literal["model", "rules"] = "model"
    """Who names the entities of a query: a model, at one call per search (seed 002), or rules."""


class TraverseConfig(BaseModel):
    """What makes one path through the graph better than another; see `graph.traverse.Weights`."""

    model_config = ConfigDict(extra="forbid")

    recency: float = Field(default=0.1, ge=0, lt=1)
    """Share of its score that a relation of long ago loses; with `evidence` less than 1."""
    evidence: float = Field(default=0.1, ge=0, lt=1)
    """Share that a relation said once loses."""
    degree: float = Field(default=0.1, ge=0, lt=1)
    """Share that is lost by going on from a node that everything is related to."""
    half_life: float = Field(default=365.0, gt=0)
    """Days after which half of `recency` is lost."""
    similar: float = Field(default=0.55, ge=0, le=1)
    """The cosine from which a relationship is taken for what a question says."""

    @model_validator(mode="after")
    def _check_shares(self) -> Self:
        if self.recency + self.evidence >= 1:
            raise ValueError("recency and evidence together must be less than 1")
        return self


class BackgroundConfig(BaseModel):
    """How work is done that was put off; see `background.WorkerSettings`."""

    model_config = ConfigDict(extra="forbid")

    workers: int = Field(default=2, ge=1, le=64)
    """Threads, or tasks of an event loop, at once."""
    batch: int = Field(default=8, ge=1, le=100)
    """How many turns of one conversation are read in one go, when they queue up."""
    tries: int = Field(default=8, ge=1)
    """How often a job may fail, while others succeed, before it is marked as failed."""
    backoff: float = Field(default=1.0, gt=0)
    """Seconds before the second try; then twice as long each time."""
    lease: float = Field(default=30.0, gt=0)
    """Seconds after which another worker may take the job of one that is gone."""
    drain: float = Field(default=10.0, ge=0)
    """Seconds that `close` waits for what is not done yet; what is left waits for the next start."""


class LimitsConfig(BaseModel):
    """How much one call, and one scope, may bring; see `policy.Limits`."""

    model_config = ConfigDict(extra="forbid")

    message_chars: int | None = Field(default=None, ge=1)
    """Letters of one message."""
    messages: int | None = Field(default=None, ge=1)
    """Messages of one call."""
    adds_per_minute: int | None = Field(default=None, ge=1)
    """Calls for one scope."""


class MemoryConfig(BaseModel):
    """The keys of a configuration. An unknown one is an error that names it and the nearest known one."""

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True, protected_namespaces=())

    version: Literal["v1.0", "v1.1"] = "v1.1"
    """Shape of results: ``v1.0`` is mem0's old bare list, with a DeprecationWarning."""
    path: Path | None = None
    """Folder of all local data; by default ``$MEM0_CORE_HOME``, else ``mem0-core`` in the platform's data folder."""
    history_db_path: Path | None = None
    """The SQLite file that holds memories and history; by default ``memory.db`` in `path`."""
    durability: Literal["full", "process"] = "full"
    """Whether an acknowledged add survives a power cut, or (faster) the death of the process only."""
    custom_fact_extraction_prompt: str | None = None
    """What a model is told to look for, in place of our instructions; the form of its answer is added."""
    custom_update_memory_prompt: str | None = None
    """How a model decides what facts do to memories, in place of our instructions."""
    llm: Any = None
    """Without one, messages are kept verbatim."""
    embedder: Any = None
    """By default all-MiniLM-L6-v2 on onnxruntime, from local weights."""
    store: ComponentConfig | None = None
    """Where everything is kept, in place of a SQLite file: a URL, ``postgresql://user:password@host/database``, or
    ``{"provider": "postgres", "config": {"url": ..., "schema": ...}}``; see `stores.postgres.PostgresStore`."""
    vector_store: ComponentConfig = Field(default_factory=lambda: ComponentConfig(provider="faiss"))
    """Where vectors are searched. By default FAISS, and pgvector where `store` is PostgreSQL; mem0's keys of pgvector
    (``host``, ``dbname``, ``connection_string``, ...) say where the store is."""
    reranker: Any = None
    """Reads the best hits once more; see docs/how-to/reranking.md."""
    graph_store: GraphConfig | None = None
    """Graph memory. By default it is on without a chat model, when rules read relations, and off with one; False, or
    the provider ``"none"``, for never."""
    extraction: Literal["staged", "fused", "triplets"] = "staged"
    """Whether a model is asked step by step, or once for everything; with ``"triplets"`` step by step for facts, and
    once for relations, as lines of SOURCE - RELATION - DESTINATION."""
    operations: Literal["auto", "json", "tools"] = "auto"
    """How a model decides what facts do to memories: in JSON, or by calling tools, as the paper has it. By default by
    tools where the model says that it ``supports`` ``{"tools"}`` and not ``"schema"``."""
    on_conflict: Literal["invalidate", "delete"] = "invalidate"
    """What becomes of relations that no longer hold: they end and stay in the record, or they are removed."""
    neighbours: int = Field(default=10, ge=1, le=100)
    """s: how many memories nearest to each fact the model weighs it against."""
    window: int = Field(default=10, ge=0, le=200)
    """m: how many messages before the new ones the model reads them by."""
    summary_every: int = Field(default=20, ge=0)
    """Messages after which the summary of a conversation is made anew, in the background; 0 for no summary."""
    summary_words: int = Field(default=200, ge=20)
    """How long a summary may become."""
    background: BackgroundConfig = Field(default_factory=BackgroundConfig)
    """How work is done that was put off."""
    read_your_writes: bool = True
    """Whether a search sees messages that were put off and are not remembered yet."""
    limits: LimitsConfig = Field(default_factory=LimitsConfig)
    """How much one call, and one scope, may bring; by default there are none."""
    recipe: Any = "hybrid"
    """How searches find and weigh memories: a name (hybrid, mem0, paper, offline), a `Recipe`, or a mapping of its
    fields over those of the one it names."""
    traverse: TraverseConfig = Field(default_factory=TraverseConfig)
    """What counts how much where a question is followed through the graph."""
    half_life: float | None = Field(default=None, gt=0)
    """Days after which what was not said again counts half in a search; by default age does not count."""
    enable_vision: bool = False
    """Whether the chat model describes images in messages (also read from ``llm.config``, as in mem0)."""
    on_bad_reply: Literal["skip", "raise"] = "skip"
    """What is done about a reply that makes no sense even when asked for again: told in ``skipped``, or raised."""
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
        resolve_recipe(value)  # which says what is wrong with it, before a file is opened
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
"""mem0's keys of pgvector that say where the store is, or nothing here."""


def _pgvector_url(chosen: ComponentConfig) -> str | None:
    """The URL that mem0's keys of pgvector come to; None where they name no database."""
    keys = chosen.config
    if keys.get("connection_string"):
        return str(keys["connection_string"])
    given = {key: str(keys[key]) for key in _PGVECTOR_KEYS if keys.get(key)}
    return f"postgresql://?{urlencode(given, quote_via=quote)}" if given else None


def postgres_config(place: str) -> ComponentConfig:
    """The truth that a URL names, whose fragment names the schema: ``postgresql://host/database#mem0``.

    Raises:
        ConfigError: it is no such URL.
    """
    url, _, schema = place.partition("#")
    if not url.startswith(POSTGRES_SCHEMES):
        raise ConfigError(f"store: a URL that begins with postgresql://, not {place!r}")
    return ComponentConfig(provider="postgres", config={"url": url, **({"schema": schema} if schema else {})})


def load_config(source: MemoryConfig | Mapping[str, Any] | str | Path | None) -> MemoryConfig:
    """Check a configuration given as a mapping or as the path of a YAML or JSON file.

    Raises:
        ConfigError: naming the key that is unknown or wrong.
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
    """Check what ``Memory(graph=...)`` was given.

    Raises:
        ConfigError: naming the key that is unknown or wrong.
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
    """mem0 keeps enable_vision and vision_details in ``llm.config``; the first is ours, the second needs no setting."""
    llm = keys.get("llm")
    if isinstance(llm, Mapping) and isinstance(llm.get("config"), Mapping) and "enable_vision" in llm["config"]:
        inner = {key: value for key, value in llm["config"].items() if key not in ("enable_vision", "vision_details")}
        vision = keys.get("enable_vision", llm["config"]["enable_vision"])
        return {**keys, "llm": {**llm, "config": inner}, "enable_vision": vision}
    return keys


def is_log_level(given: object) -> TypeGuard[str]:
    return isinstance(given, str) and given.upper() in ("DEBUG", "INFO", "WARNING", "ERROR")


def read_config_file(path: Path) -> Any:
    """Parse a YAML or JSON file.

    Raises:
        ConfigError: the file cannot be read or parsed.
        MissingExtra: a YAML file needs ``mem0-core[yaml]``.
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
        raise MissingExtra("pyyaml", "yaml") from error
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
            # What a validator of ours raised names its key itself.
            yield f"{key}: {problem['msg'].removeprefix('Value error, ').removeprefix(f'{key}: ')}"


def _known_keys(place: Sequence[str | int]) -> list[str]:
    """The keys there are, where an unknown one stood."""
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
        MissingExtra: a library the provider needs is not installed.
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
    """What the adapter of the framework that `instance` comes from makes of it; the instance itself, if of none.

    It is told by the modules of its classes, not by its methods: other frameworks have a `score` and a `complete` too.
    """
    for base in type(instance).__mro__:
        root = base.__module__.partition(".")[0]
        if root not in _NON_FRAMEWORK_MODULES and (adapter := _adapters().get(root)) is not None:
            return adapter.load()(kind, instance, **wiring)
    return instance


def _provider_kwargs(component: ComponentConfig) -> dict[str, Any]:
    """The provider's keys; all of mem0's names for a server's address become `base_url`."""
    keys = {key: value for key, value in component.config.items() if key not in _BASE_URL_KEYS}
    given = dict.fromkeys(component.config[key] for key in _BASE_URL_KEYS if component.config.get(key))
    if len(given) > 1:
        raise ConfigError(f"base_url is given twice, as {' and as '.join(map(repr, given))}")
    url = next(iter(given), _BASE_URLS.get(component.provider))
    if url and component.provider in _BASE_URLS and not url.rstrip("/").endswith("/v1"):
        url = url.rstrip("/") + "/v1"  # mem0 names ollama's root; the protocol lies under /v1
    return {**keys, "base_url": url} if url else keys


def check_provider(kind: ComponentKind, name: str) -> None:
    """Refuse a provider that nobody provides, without importing one that somebody does.

    Raises:
        ConfigError: naming the nearest known one.
    """
    if name not in PROVIDERS[kind] and name not in (others := _plugin_providers(kind)):
        raise ConfigError(f"{kind}: unknown provider {name!r}{_suggestion(name, [*PROVIDERS[kind], *others])}")


def _resolve_provider(kind: ComponentKind, name: str) -> Callable[..., Any]:
    """What makes a component, by the name of its provider."""
    check_provider(kind, name)
    target = PROVIDERS[kind].get(name)
    if target is None:
        loaded: Callable[..., Any] = _plugin_providers(kind)[name].load()
        return loaded
    module, _, attribute = target.partition(":")
    maker: Callable[..., Any] = getattr(import_module(module), attribute)
    return maker


def _plugin_providers(kind: ComponentKind) -> dict[str, Any]:
    """The entry points of other packages, by the name of their provider."""
    return _entry_points(f"mem0_core.{kind}")


@cache
def _adapters() -> dict[str, Any]:
    """The entry points that adapt what comes from a framework, by the top-level module of its classes."""
    return _entry_points("mem0_core.adapters")


def _entry_points(group: str) -> dict[str, Any]:
    from importlib.metadata import entry_points  # 40 ms, for what is not ours only

    return {entry.name: entry for entry in entry_points(group=group)}
