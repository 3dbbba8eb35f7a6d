"""Configuration: mem0's keys with validation. `components` builds what they describe."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self, TypeGuard, cast
from urllib.parse import quote, urlencode

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator, model_validator

from mem0_core._system.boundary import convert_errors
from mem0_core._system.files import DATABASE, home
from mem0_core.catalog import ComponentKind
from mem0_core.components import check_spec
from mem0_core.domain.recipes import resolve_recipe
from mem0_core.domain.secrets import conceal, redact_url, reveal
from mem0_core.domain.suggestions import describe_value, suggest
from mem0_core.errors import ConfigError, MissingExtraError

__all__ = [
    "NO_GRAPH",
    "PGVECTOR_ONLY_KEYS",
    "BackgroundConfig",
    "ComponentConfig",
    "GraphConfig",
    "LimitsConfig",
    "MemoryConfig",
    "TraverseConfig",
    "advise_argument",
    "choose_config",
    "is_log_level",
    "load_config",
    "parse_graph_config",
    "postgres_config",
    "read_config_file",
    "resolve_config",
    "sqlite_config",
]

NO_GRAPH = "none"
"""The provider of `graph_store` that turns graph memory off."""


class ComponentConfig(BaseModel):
    """A component as ``{"provider": ..., "config": {...}}``."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True, defer_build=True)

    provider: str
    config: dict[str, Any] = Field(default_factory=dict)
    """The provider's keys; those that hold a secret are `SecretStr`."""

    @field_validator("config", "llm", mode="after", check_fields=False)
    @classmethod
    def _conceal_secrets(cls, value: Any) -> Any:
        return conceal(value)


class GraphConfig(ComponentConfig):
    """``graph_store``: the index that searches relations, and the options of graph memory; see `GraphOptions`.

    The primary store always holds the relations. ``neo4j``, ``ladybug``, ``memgraph`` and ``neptune`` are projections
    of it.
    """

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True, defer_build=True, arbitrary_types_allowed=True)

    provider: str = "sqlite"
    """``sqlite`` for the store itself, ``neo4j``, ``ladybug``, ``memgraph`` or ``neptune`` for a projection, ``none``
    for no graph memory."""
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

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True, defer_build=True)

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

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True, defer_build=True)

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

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True, defer_build=True)

    message_chars: int | None = Field(default=None, ge=1)
    """Maximum characters of one message."""
    messages: int | None = Field(default=None, ge=1)
    """Maximum messages of one call."""
    adds_per_minute: int | None = Field(default=None, ge=1)
    """Maximum calls for one scope in a minute."""


class TelemetryConfig(BaseModel):
    """Settings of traces and metrics by OpenTelemetry; see docs/how-to/tracing.md."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True, defer_build=True, arbitrary_types_allowed=True)

    enabled: bool | None = None
    """By default on as soon as the program configures an OpenTelemetry SDK. True requires the extra ``otel``."""
    content: bool | None = None
    """Texts of messages, queries and memories in spans; by default the environment variable
    ``OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT``, else off."""
    ids: bool = False
    """Ids of users, agents and runs in spans; without them only the kinds of ids."""
    prices: dict[str, tuple[float, float]] = Field(default_factory=dict)
    """US dollars for a million input tokens and a million output tokens, by the name of the model."""
    tracer_provider: Any = Field(default=None, repr=False)
    """The provider of tracers; by default the program's."""
    meter_provider: Any = Field(default=None, repr=False)
    """The provider of meters; by default the program's."""


class MemoryConfig(BaseModel):
    """The keys of a configuration. An unknown key raises an error that names it and the nearest known key."""

    model_config = ConfigDict(
        extra="forbid",
        hide_input_in_errors=True,
        defer_build=True,
        arbitrary_types_allowed=True,
        protected_namespaces=(),
    )

    version: Literal["v1.0", "v1.1"] = "v1.1"
    """Shape of results; ``v1.0`` returns mem0's old bare list, with a DeprecationWarning."""
    path: Path | None = None
    """Folder of all local data; by default ``$MEM0_CORE_HOME``, else ``mem0-core`` in the platform's data folder."""
    history_db_path: Path | None = None
    """The SQLite file that holds memories and history; by default ``memory.db`` in `path`."""
    keys: Path | None = None
    """Folder of a `Keyring`: encrypts the SQLite file with a key per tenant; see docs/how-to/encrypt.md."""
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
    """The embedding model; by default all-MiniLM-L6-v2 from the package mem0-models."""
    store: ComponentConfig | None = None
    """The primary store, in place of a SQLite file: a URL, ``postgresql://user:password@host/database``, or
    ``{"provider": "postgres", "config": {"url": ..., "schema": ...}}``; see `stores.postgres.PostgresStore`."""
    vector_store: ComponentConfig = Field(
        default_factory=lambda: ComponentConfig.model_construct(provider="embedded", config={})
    )
    """The vector index. By default an index in memory, on FAISS where it is installed, else on numpy; or
    pgvector if `store` is PostgreSQL. mem0's keys of pgvector (``host``, ``dbname``, ``connection_string``, ...) also
    select the store."""
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
    background: BackgroundConfig = Field(default_factory=BackgroundConfig.model_construct)
    """Settings of background workers."""
    read_your_writes: bool = True
    """Searches include queued messages that are not processed yet."""
    limits: LimitsConfig = Field(default_factory=LimitsConfig.model_construct)
    """Limits on one call and one scope; by default none."""
    recipe: Any = "hybrid"
    """Sources and weights of searches: a name (hybrid, mem0, paper, offline), a `Recipe`, or a mapping of fields over
    the recipe it names."""
    traverse: TraverseConfig = Field(default_factory=TraverseConfig.model_construct)
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
    telemetry: TelemetryConfig = Field(default_factory=TelemetryConfig.model_construct)
    """Traces and metrics by OpenTelemetry."""
    logging: Any = None
    """Log file of the `mem0-core` command, by default none: a level ("INFO") for ``app.log`` in `path`; or a file, or a
    mapping, as ``logging.config.dictConfig`` takes it. A file is relative to the configuration that names it. The
    library opens no log file: add handlers to its logger ``mem0_core``."""

    @field_validator("logging")
    @classmethod
    def _check_logging(cls, value: Any) -> Any:
        if value is None or value is False or is_log_level(value) or isinstance(value, (str, Path, Mapping)):
            return (conceal(value) if isinstance(value, Mapping) else value) or None
        raise ValueError(
            f"a level, a file or a mapping is required, not {describe_value(value)}; pass, for example, 'INFO'"
        )

    @field_validator("recipe")
    @classmethod
    def _check_recipe(cls, value: Any) -> Any:
        resolve_recipe(value)  # raises before any file is opened
        return value

    @field_validator("llm", "embedder", "reranker")
    @classmethod
    def _check_component_provider(cls, value: Any, info: ValidationInfo) -> Any:
        if isinstance(value, (str, Mapping)):
            check_spec(cast(ComponentKind, info.field_name), value)
        return conceal(value) if isinstance(value, Mapping) else value

    @field_validator("telemetry", mode="before")
    @classmethod
    def _parse_telemetry(cls, value: Any) -> Any:
        return {"enabled": value} if isinstance(value, bool) else value

    @field_validator("graph_store", mode="before")
    @classmethod
    def _parse_graph_store(cls, value: Any) -> Any:
        if isinstance(value, str):
            return {"provider": value}
        return {"provider": NO_GRAPH} if value is False else value

    @field_validator("vector_store", mode="before")
    @classmethod
    def _parse_vector_store(cls, value: Any) -> Any:
        return {"provider": value} if isinstance(value, str) else value

    @field_validator("store", mode="before")
    @classmethod
    def _parse_store_url(cls, value: Any) -> Any:
        if isinstance(value, str):
            return postgres_config(value) if _is_postgres_url(value) else sqlite_config(value)
        if isinstance(value, Mapping):
            check_spec("store", value)
        return value

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
        if self.path is None and (file := self._database_file) is not None:
            return file.parent
        return self.path.expanduser() if self.path is not None else home()

    @property
    def database(self) -> Path:
        return self._database_file or self.folder / DATABASE

    @property
    def _database_file(self) -> Path | None:
        """The SQLite file that a key names, if one does."""
        given = self.history_db_path
        if self.store is not None and self.store.provider == "sqlite":
            given = self.store.config.get("path") or given
        return None if given is None else Path(given).expanduser()


POSTGRES_SCHEMES = ("postgresql://", "postgres://")
_STORE_FORMS = (
    'postgresql://user:password@host/database, the path of a SQLite file, or {"provider": ..., "config": {...}}'
)
_SQLALCHEMY_DRIVER = re.compile(r"^(postgres(?:ql)?)\+\w+(?=://)")
_URL_SCHEME = re.compile(r"^[a-z][a-z0-9+.-]+://", re.IGNORECASE)

_PGVECTOR_KEYS = ("dbname", "user", "password", "host", "port", "sslmode")
PGVECTOR_ONLY_KEYS = (*_PGVECTOR_KEYS, "connection_string", "connection_pool", "minconn", "maxconn", "diskann", "hnsw")
"""mem0's keys of pgvector that locate the store, or have no effect here."""


def _pgvector_url(chosen: ComponentConfig) -> str | None:
    """Return the URL that mem0's keys of pgvector describe, or None if they name no database."""
    keys = chosen.config
    if keys.get("connection_string"):
        return str(reveal(keys["connection_string"]))
    given = {key: str(reveal(keys[key])) for key in _PGVECTOR_KEYS if keys.get(key)}
    return f"postgresql://?{urlencode(given, quote_via=quote)}" if given else None


def postgres_config(place: str) -> ComponentConfig:
    """Return the store at a URL; the fragment names the schema: ``postgresql://host/database#mem0``.

    Raises:
        ConfigError: the text is no PostgreSQL URL.
    """
    url, _, schema = _SQLALCHEMY_DRIVER.sub(r"\1", place).partition("#")
    if not url.startswith(POSTGRES_SCHEMES):
        raise ConfigError(f"store: a URL that begins with postgresql:// is required, not {redact_url(place)!r}")
    return ComponentConfig(provider="postgres", config={"url": url, **({"schema": schema} if schema else {})})


def _is_postgres_url(text: str) -> bool:
    return _SQLALCHEMY_DRIVER.sub(r"\1", text).startswith(POSTGRES_SCHEMES)


def sqlite_config(place: str) -> ComponentConfig:
    """Return the store in a SQLite file: a path, or ``sqlite:///path``.

    Raises:
        ConfigError: the text is empty, or the URL of another database.
    """
    path = place.removeprefix("sqlite:///") if place.startswith("sqlite:///") else place
    if not path.strip() or _URL_SCHEME.match(path):
        raise ConfigError(f"store: there is no store for {redact_url(place)!r}; pass {_STORE_FORMS}")
    return ComponentConfig(provider="sqlite", config={"path": Path(path).expanduser()})


def choose_config(config_dict: Any, config: Any) -> Any:
    """Return the argument of `Memory.from_config` that is given, loaded.

    Raises:
        ConfigError: none is given, or both are.
    """
    if (config_dict is None) == (config is None):
        given = "both config_dict and config are" if config is not None else "config_dict is not"
        raise ConfigError(
            f"from_config: one configuration is required, and {given} given; pass a mapping of keys or the path of a"
            " YAML or JSON file"
        )
    return load_config(config_dict if config is None else config)


def advise_argument(name: str) -> str:
    """Return the next step for an unknown argument of `Memory`: the place where its value belongs."""
    if name in MemoryConfig.model_fields:
        return f"{name} is a key of the configuration: pass Memory({{{name!r}: ...}})"
    if name in ("model", "api_key", "temperature", "base_url", "provider", "max_tokens"):
        return f"{name} belongs to a model: pass llm={{'provider': 'openai', 'config': {{{name!r}: ...}}}}"
    return ""


def resolve_config(source: Any, *, path: str | Path | None = None, store: Any = None) -> MemoryConfig:
    """Return the configuration that the arguments `config`, `path` and `store` of `Memory` describe together.

    Raises:
        ConfigError: a key is unknown or wrong; the message names it.
    """
    if isinstance(source, (str, Path)):
        source = _parse_location(source)
    config = load_config(source)
    changes: dict[str, Any] = {}
    if path is not None:
        if not isinstance(path, (str, Path)) or not str(path).strip():
            raise ConfigError(
                f"path: the folder of the data is required, as text or Path, not {describe_value(path)}; pass, for"
                " example, path='data'"
            )
        if isinstance(path, str) and _URL_SCHEME.match(path):
            raise ConfigError(f"path: a folder is required, not the URL {redact_url(path)!r}; pass it as store=")
        changes |= {"path": Path(path), "history_db_path": None}
    if isinstance(store, (str, Path, Mapping)):
        try:
            described = MemoryConfig(store=str(store) if isinstance(store, Path) else store)  # type: ignore[arg-type]
        except ValidationError as error:
            raise ConfigError("; ".join(_validation_messages(error))) from error
        changes["store"] = described.store
    return config.model_copy(update=changes) if changes else config


def _parse_location(place: str | Path) -> Mapping[str, Any] | Path:
    """Return the configuration at the location that is the first argument of `Memory`: a file, a URL or a folder."""
    text = str(place)
    if not text.strip():
        raise ConfigError(
            "config: a folder, a YAML or JSON file, a store's URL or a mapping is required, not ''; pass, for example,"
            " Memory('data')"
        )
    if _URL_SCHEME.match(text):
        return {"store": text}
    file = Path(text).expanduser()
    if file.suffix.casefold() in CONFIG_SUFFIXES:
        return file
    return {"history_db_path": text} if file.is_file() else {"path": text}


CONFIG_SUFFIXES = (".yaml", ".yml", ".json")


@convert_errors
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
        raise ConfigError(
            f"{where}config: a mapping of keys is required, not {describe_value(source)}; pass, for example,"
            f" {{'path': 'data'}} (accepted: {', '.join(MemoryConfig.model_fields)})"
        )
    if not source:
        return MemoryConfig.model_construct()  # builds no validators, which would take a tenth of a short command
    try:
        return MemoryConfig(**_lift_vision(dict(source)))
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


@convert_errors
def read_config_file(path: Path) -> Any:
    """Parse a YAML or JSON file.

    Raises:
        ConfigError: the file cannot be read or parsed.
        MissingExtraError: a YAML file needs ``mem0-core[yaml]``.
    """
    try:
        text = path.expanduser().read_text(encoding="utf-8")
    except IsADirectoryError as error:
        raise ConfigError(
            f"config: {path} is a folder, and a YAML or JSON file is required; for data in this folder, open"
            f" Memory({str(path)!r})"
        ) from error
    except (OSError, ValueError) as error:
        folder = (
            "" if path.suffix.casefold() in CONFIG_SUFFIXES else f"; for data in a folder, open Memory({str(path)!r})"
        )
        raise ConfigError(
            f"config: cannot read the file {path}: {getattr(error, 'strerror', None) or error}; pass an existing YAML"
            f" or JSON file, or a mapping{folder}"
        ) from error
    if path.suffix.casefold() == ".json":
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
        problem = _describe_yaml_error(error)
    raise ConfigError(f"{path} is no YAML: {problem}")  # the parser's own error quotes the line


def _describe_yaml_error(error: Any) -> str:
    """Return the problem and its place without the text of the file, which may hold a key."""
    mark, problem = getattr(error, "problem_mark", None), str(getattr(error, "problem", None) or "it cannot be read")
    place = "" if mark is None else f" (line {mark.line + 1}, column {mark.column + 1})"
    return f"{re.sub(_QUOTED_TEXT, '...', problem)}{place}"


_QUOTED_TEXT = r"(['\"]).{4,}\1"


def _validation_messages(error: ValidationError, *above: str) -> Iterator[str]:
    for problem in error.errors():
        key = ".".join(str(part) for part in problem["loc"])
        if problem["type"] == "extra_forbidden":
            name = str(problem["loc"][-1])
            advice = _KEY_ADVICE.get(name, "rename it, or leave it out")
            yield f"unknown key {key!r}{suggest(name, _known_keys((*above, *problem['loc'])))}; {advice}"
        elif problem["msg"].removeprefix("Value error, ").startswith((key, f"unknown key '{key}.")):
            yield problem["msg"].removeprefix("Value error, ")  # our own validators may name the key already
        else:
            yield f"{key}: {_describe_problem(problem, above)}"


def _describe_problem(problem: Mapping[str, Any], above: Sequence[str]) -> str:
    """Return what is accepted, what was given and the next step, in place of pydantic's text about a wrong value."""
    kind, context = problem["type"], problem.get("ctx") or {}
    message = problem["msg"].removeprefix("Value error, ")
    if kind == "missing":
        return "the key is required and missing; add it"
    if kind == "value_error":
        return str(message)
    given, default = describe_value(problem["input"]), _describe_default((*above, *problem["loc"]))
    if kind == "literal_error":
        names = re.findall(r"'([^']*)'", str(context.get("expected")))
        return f"{given} is not accepted{suggest(str(problem['input']), names)}{default}"
    if kind in ("model_type", "model_attributes_type", "dict_type"):
        return f"a mapping such as {_example_mapping(problem['loc'])} is required, not {given}; pass one{default}"
    if kind == "path_type":
        return f"a path is required, as text or Path, not {given}; pass, for example, 'data/memory.db'"
    return f"{message.replace('Input should be', 'the value must be')}, not {given}{default or '; pass such a value'}"


def _example_mapping(place: Sequence[str | int]) -> str:
    """Return a mapping that the key at a place accepts."""
    section = _SECTIONS.get(place[0]) if len(place) == 1 else None
    if section is None or issubclass(section, ComponentConfig):
        return '{"provider": ..., "config": {...}}'
    return f"{{{next(iter(section.model_fields))!r}: ...}}"


def _describe_default(place: Sequence[str | int]) -> str:
    """Return the next step for a key with a plain default value."""
    model: type[BaseModel] = _SECTIONS.get(place[0], MemoryConfig) if len(place) > 1 else MemoryConfig
    field = model.model_fields.get(str(place[-1]))
    if field is None or not isinstance(field.default, (str, int, float, bool)):
        return ""
    return f"; leave the key out for the default {field.default!r}"


def _known_keys(place: Sequence[str | int]) -> list[str]:
    """Return the valid keys at the place of an unknown one."""
    if len(place) == 1:
        return list(MemoryConfig.model_fields)
    return list(_SECTIONS.get(place[0], ComponentConfig).model_fields)


_KEY_ADVICE = {
    "enable_graph": "graph_store='none' turns graph memory off",
    "custom_prompt": "custom_fact_extraction_prompt changes the extraction of facts, graph_store.custom_prompt that of"
    " relations",
    "custom_instructions": "pass it as custom_fact_extraction_prompt",
}
"""Next step for keys of mem0 that belong elsewhere."""

_SECTIONS: dict[str | int, type[BaseModel]] = {
    "graph_store": GraphConfig,
    "background": BackgroundConfig,
    "traverse": TraverseConfig,
    "limits": LimitsConfig,
}
"""Keys of a configuration that hold keys of their own."""
