"""Configuration: mem0's keys with validation. `components` builds what they describe."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, TypeGuard
from urllib.parse import quote, urlencode

from mem0_core._system.boundary import convert_errors
from mem0_core._system.files import DATABASE, home
from mem0_core.catalog import PGVECTOR_KEYS, POSTGRES_VECTOR_STORES, ComponentKind
from mem0_core.components import check_spec
from mem0_core.domain.options import KEY_ADVICE, BackgroundConfig, LimitsConfig, TraverseConfig
from mem0_core.domain.recipes import resolve_recipe
from mem0_core.domain.secrets import conceal, redact_url, reveal
from mem0_core.domain.settings import (
    Settings,
    file_path,
    flag,
    integer,
    key,
    mapping,
    number,
    one_of,
    optional,
    section,
    text,
)
from mem0_core.domain.suggestions import describe_value
from mem0_core.errors import ConfigError, MissingExtraError

__all__ = [
    "NO_GRAPH",
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


def _read_provider_keys(value: Any) -> dict[str, Any]:
    found: dict[str, Any] = conceal(mapping("{'url': ...}")(value))
    return found


class ComponentConfig(Settings):
    """A component as ``{"provider": ..., "config": {...}}``."""

    ADVICE = KEY_ADVICE

    provider: str = key(text)
    config: dict[str, Any] = key(_read_provider_keys, default_factory=dict)
    """The provider's keys; those that hold a secret are `SecretStr`."""


class GraphConfig(ComponentConfig):
    """``graph_store``: the index that searches relations, and the options of graph memory; see `GraphOptions`.

    The primary store always holds the relations. ``neo4j``, ``ladybug``, ``memgraph`` and ``neptune`` are projections
    of it.
    """

    provider: str = key(text, default="sqlite")
    """``sqlite`` for the store itself, ``neo4j``, ``ladybug``, ``memgraph`` or ``neptune`` for a projection, ``none``
    for no graph memory."""
    llm: Any = key(conceal, default=None)
    """A separate model for entities and relations; by default the memory's."""
    custom_prompt: str | None = key(optional(text), default=None)
    """Instructions added to the relations prompt."""
    threshold: float = key(number(at_least=0, at_most=1), default=0.7)
    """The cosine from which two names are one node (t in the Mem0 paper)."""
    limit: int = key(integer(1), default=5)
    """Number of relations that a search returns."""
    triplet_threshold: float = key(number(at_least=0, at_most=1), default=0.4)
    """The cosine from which a relation's sentence answers a query by itself."""
    existing: int = key(integer(1), default=10)
    """Number of known relations around each entity that a model compares new ones with."""
    strict: bool = key(flag, default=False)
    """Use the strict structured-output form of tools."""
    query_entities: Literal["model", "rules"] = key(one_of("model", "rules"), default="model")
    """Entities of a query are found by a model, with one call per search, or by rules."""


def _read_prices(value: Any) -> dict[str, tuple[float, float]]:
    prices: dict[str, Any] = mapping("{'gpt-4o-mini': (0.15, 0.6)}")(value)
    read = number()
    for name, price in prices.items():
        try:
            read_price, write_price = price
            prices[name] = read(read_price), read(write_price)
        except (TypeError, ValueError):
            raise ValueError(
                f"two prices of {name!r} are required, for input and for output tokens, not {describe_value(price)};"
                f" pass, for example, {{{name!r}: (0.15, 0.6)}}"
            ) from None
    return prices


class TelemetryConfig(Settings):
    """Settings of traces and metrics by OpenTelemetry; see docs/how-to/tracing.md."""

    ADVICE = KEY_ADVICE

    enabled: bool | None = key(optional(flag), default=None)
    """By default on as soon as the program configures an OpenTelemetry SDK. True requires the extra ``otel``."""
    content: bool | None = key(optional(flag), default=None)
    """Texts of messages, queries and memories in spans; by default the environment variable
    ``OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT``, else off."""
    ids: bool = key(flag, default=False)
    """Ids of users, agents and runs in spans; without them only the kinds of ids."""
    prices: dict[str, tuple[float, float]] = key(_read_prices, default_factory=dict)
    """US dollars for a million input tokens and a million output tokens, by the name of the model."""
    tracer_provider: Any = key(default=None, is_shown=False)
    """The provider of tracers; by default the program's."""
    meter_provider: Any = key(default=None, is_shown=False)
    """The provider of meters; by default the program's."""


def _component_reader(kind: ComponentKind) -> Callable[[Any], Any]:
    """Return the reader of a model: a description with an existing provider, or an object."""

    def read(value: Any) -> Any:
        if isinstance(value, (str, Mapping)):
            check_spec(kind, value)
        return conceal(value) if isinstance(value, Mapping) else value

    return read


_read_component = section(ComponentConfig, '{"provider": ..., "config": {...}}')
_read_graph = section(GraphConfig, '{"provider": ..., "config": {...}}')
_read_telemetry_keys = section(TelemetryConfig)


def _read_store(value: Any) -> Any:
    if isinstance(value, str):
        return postgres_config(value) if _is_postgres_url(value) else sqlite_config(value)
    if isinstance(value, Mapping):
        check_spec("store", value)
    return _read_component(value)


def _read_vector_store(value: Any) -> Any:
    return _read_component({"provider": value} if isinstance(value, str) else value)


def _read_graph_store(value: Any) -> Any:
    value = NO_GRAPH if value is False else value
    return _read_graph({"provider": value} if isinstance(value, str) else value)


def _read_telemetry(value: Any) -> Any:
    return _read_telemetry_keys({"enabled": value} if isinstance(value, bool) else value)


def _read_recipe(value: Any) -> Any:
    resolve_recipe(value)  # raises before any file is opened
    return value


def _read_logging(value: Any) -> Any:
    if value is None or value is False or is_log_level(value) or isinstance(value, (str, Path, Mapping)):
        return (conceal(value) if isinstance(value, Mapping) else value) or None
    raise ValueError(
        f"a level, a file or a mapping is required, not {describe_value(value)}; pass, for example, 'INFO'"
    )


class MemoryConfig(Settings):
    """The keys of a configuration. An unknown key raises an error that names it and the nearest known key."""

    ADVICE = KEY_ADVICE

    version: Literal["v1.0", "v1.1"] = key(one_of("v1.0", "v1.1"), default="v1.1")
    """Shape of results; ``v1.0`` returns mem0's old bare list, with a DeprecationWarning."""
    path: Path | None = key(optional(file_path), default=None)
    """Folder of all local data; by default ``$MEM0_CORE_HOME``, else ``mem0-core`` in the platform's data folder."""
    history_db_path: Path | None = key(optional(file_path), default=None)
    """The SQLite file that holds memories and history; by default ``memory.db`` in `path`."""
    keys: Path | None = key(optional(file_path), default=None)
    """Folder of a `Keyring`: encrypts the SQLite file with a key per tenant; see docs/how-to/encrypt.md."""
    durability: Literal["full", "process"] = key(one_of("full", "process"), default="full")
    """``full``: an acknowledged add survives a power cut. ``process`` (faster): it survives a crash of the process."""
    custom_fact_extraction_prompt: str | None = key(optional(text), default=None)
    """Instructions for fact extraction, in place of the default ones; the reply format is added."""
    custom_update_memory_prompt: str | None = key(optional(text), default=None)
    """Instructions for reconciling facts with memories, in place of the default ones. They also decide on the first
    facts of a scope, which are otherwise added without asking."""
    llm: Any = key(_component_reader("llm"), default=None)
    """The chat model; without one, messages are stored verbatim."""
    embedder: Any = key(_component_reader("embedder"), default=None)
    """The embedding model; by default mem0-minilm from the package mem0-models, or all-MiniLM-L6-v2 in a store with
    vectors of that model."""
    store: ComponentConfig | None = key(optional(_read_store), default=None)
    """The primary store, in place of a SQLite file: a URL, ``postgresql://user:password@host/database``, or
    ``{"provider": "postgres", "config": {"url": ..., "schema": ...}}``; see `stores.postgres.PostgresStore`."""
    vector_store: ComponentConfig = key(
        _read_vector_store, default_factory=lambda: ComponentConfig(provider="embedded")
    )
    """The vector index. By default an index in memory, on FAISS where it is installed, else on numpy; or
    pgvector if `store` is PostgreSQL. mem0's keys of pgvector (``host``, ``dbname``, ``connection_string``, ...) also
    select the store."""
    reranker: Any = key(_component_reader("reranker"), default=None)
    """Model that reorders the best hits; see docs/how-to/reranking.md. By default the rerankers of mem0-models read the
    best five or ten, if onnxruntime is installed and no embedder is named. False for none."""
    graph_store: GraphConfig | None = key(optional(_read_graph_store), default=None)
    """Graph memory. By default it is on without a chat model (rules extract relations) and off with one. False, or the
    provider ``"none"``, turns it off."""
    extraction: Literal["staged", "fused", "triplets"] = key(one_of("staged", "fused", "triplets"), default="staged")
    """``staged``: several model calls. ``fused``: one call for everything. ``triplets``: several calls for facts, one
    for relations, as lines of SOURCE - RELATION - DESTINATION."""
    operations: Literal["auto", "json", "tools"] = key(one_of("auto", "json", "tools"), default="auto")
    """The form of the model's decisions: JSON, or tool calls as in the Mem0 paper. By default tool calls if the model
    ``supports`` ``"tools"`` and not ``"schema"``."""
    on_conflict: Literal["invalidate", "delete"] = key(one_of("invalidate", "delete"), default="invalidate")
    """Relations that no longer hold end and stay on record, or are removed."""
    neighbours: int = key(integer(1, 100), default=10)
    """Number of similar memories that each fact is compared with (s in the Mem0 paper)."""
    window: int = key(integer(0, 200), default=10)
    """Number of earlier messages that the model reads as context (m in the Mem0 paper)."""
    summary_every: int = key(integer(0), default=20)
    """Number of messages after which the summary of a conversation is updated in the background; 0 for no summary."""
    summary_words: int = key(integer(20), default=200)
    """Maximum length of a summary in words."""
    background: BackgroundConfig = key(section(BackgroundConfig), default_factory=BackgroundConfig)
    """Settings of background workers."""
    read_your_writes: bool = key(flag, default=True)
    """Searches include queued messages that are not processed yet."""
    search_cache: bool = key(flag, default=True)
    """Searches keep the features of their scopes in memory, up to some 60 MB. Until a scope changes they also keep what
    they read and found: 10 MB after 60 different questions to a user with 100 memories and 300 relations, and some
    100 MB for all scopes together. They find the same without, but for slips that only a memory's word corrects."""
    limits: LimitsConfig = key(section(LimitsConfig), default_factory=LimitsConfig)
    """Limits on one call and one scope; by default none."""
    recipe: Any = key(_read_recipe, default="hybrid")
    """Sources and weights of searches: a name (hybrid, mem0, paper, offline), a `Recipe`, or a mapping of fields over
    the recipe it names."""
    traverse: TraverseConfig = key(section(TraverseConfig), default_factory=TraverseConfig)
    """Weights of graph traversal."""
    half_life: float | None = key(optional(number(above=0)), default=None)
    """Days after which the score of a memory that was not repeated is halved; by default age does not count."""
    enable_vision: bool = key(flag, default=False)
    """The chat model describes images in messages (also read from ``llm.config``, as in mem0)."""
    on_bad_reply: Literal["skip", "raise"] = key(one_of("skip", "raise"), default="skip")
    """Treatment of a reply that is still malformed after a retry: reported in ``skipped``, or raised. Messages of a
    reply that is unusable as a whole stay in the queue as a failed job; see `Memory.retry`."""
    max_changes: int = key(integer(1), default=200)
    """Maximum number of facts in one reply of the model, and of additions and updates. More facts make a reply
    unusable; further changes are refused and reported in ``skipped``."""
    max_deletions: int = key(integer(0), default=5)
    """Maximum number of memories that one reply of the model may delete; further deletions are refused and reported in
    ``skipped``."""
    telemetry: TelemetryConfig = key(_read_telemetry, default_factory=TelemetryConfig)
    """Traces and metrics by OpenTelemetry."""
    logging: Any = key(_read_logging, default=None)
    """Log file of the `mem0-core` command, by default none: a level ("INFO") for ``app.log`` in `path`; or a file, or a
    mapping, as ``logging.config.dictConfig`` takes it. A file is relative to the configuration that names it. The
    library opens no log file: add handlers to its logger ``mem0_core``."""

    @property
    def store_config(self) -> ComponentConfig | None:
        """`store`, or the database that mem0's keys of pgvector name; None for a SQLite file."""
        if (
            self.store is None
            and self.vector_store.provider in POSTGRES_VECTOR_STORES
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


def _pgvector_url(chosen: ComponentConfig) -> str | None:
    """Return the URL that mem0's keys of pgvector describe, or None if they name no database."""
    keys = chosen.config
    if keys.get("connection_string"):
        return str(reveal(keys["connection_string"]))
    given = {key: str(reveal(keys[key])) for key in PGVECTOR_KEYS if keys.get(key)}
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
    if name in MemoryConfig.list_keys():
        return f"{name} is a key of the configuration: pass Memory({{{name!r}: ...}})"
    if name in ("model", "api_key", "temperature", "base_url", "provider", "max_tokens"):
        return f"{name} belongs to a model: pass llm={{'provider': 'openai', 'config': {{{name!r}: ...}}}}"
    if name in ("user_id", "agent_id", "run_id"):
        return f"{name} belongs to each call: memory.add(..., {name}=...), memory.search(..., {name}=...)"
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
        changes["store"] = str(store) if isinstance(store, Path) else store
    return config.replace(**changes) if changes else config


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
            f" {{'path': 'data'}} (accepted: {', '.join(MemoryConfig.list_keys())})"
        )
    names: list[object] = list(source or {})
    for name in names:
        if not isinstance(name, str):
            known = ", ".join(MemoryConfig.list_keys())
            raise ConfigError(
                f"{where}config: keys are texts, not {describe_value(name)}; rename it (accepted: {known})"
            )
    try:
        return MemoryConfig(**_lift_vision(dict(source or {})))
    except ConfigError as error:
        if not where:
            raise
        failure = ConfigError(f"{where}{error}")
    raise failure


def parse_graph_config(given: Mapping[str, Any] | str | bool) -> GraphConfig:
    """Validate the argument ``graph`` of `Memory`.

    Raises:
        ConfigError: a key is unknown or wrong; the message names it.
    """
    if isinstance(given, bool):
        given = {} if given else NO_GRAPH
    keys = {"provider": given} if isinstance(given, str) else dict(given)
    return GraphConfig.parse(keys, label="graph: ")


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
            raise ConfigError(f"config: {path} is not valid JSON: {error}; correct the file") from error
    try:
        import yaml
    except ImportError as error:
        raise MissingExtraError("pyyaml", "yaml") from error
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        problem = _describe_yaml_error(error)
    raise ConfigError(
        f"config: {path} is not valid YAML: {problem}; correct the file"
    )  # the parser's own error quotes the line


def _describe_yaml_error(error: Any) -> str:
    """Return the problem and its place without the text of the file, which may hold a key."""
    mark, problem = getattr(error, "problem_mark", None), str(getattr(error, "problem", None) or "it cannot be read")
    place = "" if mark is None else f" (line {mark.line + 1}, column {mark.column + 1})"
    return f"{re.sub(_QUOTED_TEXT, '...', problem)}{place}"


_QUOTED_TEXT = r"(['\"]).{4,}\1"
