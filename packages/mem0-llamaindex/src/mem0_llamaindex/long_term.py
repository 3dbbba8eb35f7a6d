"""`ScopedMemory`: one scope of a `mem0_core.Memory`, as a conversation recalls from it and writes to it.

Recall and remember are spans of LlamaIndex's instrumentation, with the events of `mem0_llamaindex.events` inside.
"""

from __future__ import annotations

import hashlib
import json
import logging
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any, Literal
from weakref import WeakKeyDictionary, WeakValueDictionary

import llama_index.core.instrumentation as instrument
from llama_index.core.bridge.pydantic import BaseModel, Field, PrivateAttr, ValidationError

from mem0_core import AsyncMemory, ConfigError, ContextDict, Memory, MemoryConfig, Scope
from mem0_core.api.options import unwrap_memory
from mem0_core.config import load_config
from mem0_core.domain.secrets import conceal, is_secret, is_secret_name, reveal, strip_url
from mem0_core.domain.settings import Settings
from mem0_core.domain.suggestions import describe_field, describe_unknown, describe_value
from mem0_core.flow import Flow, arun, do, run
from mem0_core.recall.freshness import RecallStamp
from mem0_llamaindex.events import (
    MemoryRecallEndEvent,
    MemoryRecallStartEvent,
    MemoryRememberEndEvent,
    MemoryRememberStartEvent,
)
from mem0_llamaindex.window import default_tokenizer

__all__ = [
    "ConfigSource",
    "LongTermFields",
    "ScopedMemory",
    "check_fields",
    "explain_fields",
    "strip_secrets",
]

_log = logging.getLogger(__name__)

_dispatcher = instrument.get_dispatcher(__name__)  # type: ignore[attr-defined]

_PATH_KEYS = ("path", "history_db_path")

ConfigSource = MemoryConfig | Mapping[str, Any] | str | Path
Keep = Literal["all", "statements"]


def check_fields(owner: type[BaseModel], options: Mapping[str, Any]) -> None:
    """Raise ConfigError for an option that is no field of a class."""
    for name, value in options.items():
        if name == "context":
            raise ConfigError(
                f"{owner.__name__}() got context={describe_value(value)}; pass the ids by name, for example"
                " user_id='alice' (only from_config and from_client take a context)"
            )
        if name not in owner.model_fields:
            raise ConfigError(f"{owner.__name__}() {describe_unknown(name, value, owner.model_fields)}")


@contextmanager
def explain_fields(owner: type[BaseModel]) -> Iterator[None]:
    """Raise ConfigError in place of pydantic's error about a field."""
    try:
        yield
    except ValidationError as error:
        raise ConfigError(describe_field(owner.__name__, error.errors()[0])) from error


class ScopedMemory:
    """The memories of one scope; the memory that stores them is opened on first use.

    Args:
        memory: the memory, if it is already open.
        config: the configuration to open it from. Memories of one configuration share one `Memory` per process.
        live: key of a memory without a configuration, which the process that saved it still has open.

    Attributes:
        config: the configuration as JSON; None if it is missing or made of live objects.
        live: key of the memory for a later `ScopedMemory` of this process; None if `config` reopens it.

    Raises:
        ConfigError: a key of `config` is wrong.
        ArgumentError: `memory` is not a `mem0_core.Memory`.
    """

    def __init__(
        self,
        scope: Scope,
        *,
        memory: Memory | AsyncMemory | None = None,
        config: ConfigSource | None = None,
        live: str | None = None,
    ) -> None:
        self.ids: dict[str, str] = {axis.value: value for axis, value in scope.ids.items()}
        loaded = None if config is None else load_config(config)
        self.config = None if loaded is None else _to_portable(loaded)
        self._memory = None if memory is None else unwrap_memory(memory)
        if self._memory is None and loaded is not None and self.config is None:
            self._memory = Memory(loaded)  # made of live objects, which only this process has
        if self._memory is None and self.config is None:
            found = (one for one, key in list(_live_keys.items()) if key == live and not one.closed)
            self._memory = next(found, None)
        self._live = live

    @property
    def live(self) -> str | None:
        if self._memory is None or self.config is not None:
            return self._live
        return _live_keys.setdefault(self._memory, uuid.uuid4().hex)

    def bind(self, memory: Memory | AsyncMemory) -> None:
        self._memory = unwrap_memory(memory)

    def open(self) -> Memory:
        """Return the memory, opened if needed.

        Raises:
            ConfigError: there is no memory and no configuration.
            StoreError: it cannot be opened.
        """
        if self._memory is None:
            if self.config is None:
                raise ConfigError(
                    "there is no long-term memory: it was created from a live Memory, which another process does not"
                    " have. Create it with from_config(...), which reopens it, or call bind(memory) on the"
                    " restored copy"
                )
            self._memory = _open_shared(self.config)
        return self._memory

    def open_flow(self) -> Flow[Memory]:
        """Open the memory as a step that runs in a thread if the flow runs on an event loop."""
        return self._memory if self._memory is not None else (yield from do(self.open))

    # --- recall ----------------------------------------------------------------------------------------------------

    @_dispatcher.span
    def recall(self, query: str, **options: Any) -> ContextDict:
        """Return the context relevant to a question; `options` are those of `mem0_core.Memory.context`."""
        return run(self._recall(query, options))

    @_dispatcher.span
    async def arecall(self, query: str, **options: Any) -> ContextDict:
        """Async version of `recall`."""
        return await arun(self._recall(query, options))

    def _recall(self, query: str, options: Mapping[str, Any]) -> Flow[ContextDict]:
        _dispatcher.event(MemoryRecallStartEvent(query=query, scope=self.ids))
        core = yield from self.open_flow()
        ids: dict[str, Any] = self.ids
        seen = yield from do(core.context, query, **ids, recent=0, **options)
        _dispatcher.event(
            MemoryRecallEndEvent(
                query=query,
                scope=self.ids,
                memories=[dict(memory) for memory in seen["memories"]],
                relations=[dict(relation) for relation in seen["relations"]],
                tokens=seen["tokens"],
            )
        )
        return seen

    def renew(self, stamp: RecallStamp) -> Flow[RecallStamp | None]:
        """Return the stamp of a recall that still holds, checked if it is old; None if its memories have changed."""
        if stamp.is_fresh:
            return stamp
        core = yield from self.open_flow()
        return stamp.renew() if (yield from stamp.is_current(core.store)) else None

    # --- remember --------------------------------------------------------------------------------------------------

    @_dispatcher.span
    def remember(self, messages: Sequence[Mapping[str, Any]], *, keep: Keep, **options: Any) -> None:
        """Write messages; `options` are those of `mem0_core.Memory.add`."""
        run(self._remember(messages, {"keep": keep, **options}))

    @_dispatcher.span
    async def aremember(self, messages: Sequence[Mapping[str, Any]], *, keep: Keep, **options: Any) -> None:
        """Async version of `remember`."""
        await arun(self._remember(messages, {"keep": keep, **options}))

    def _remember(self, messages: Sequence[Mapping[str, Any]], options: Mapping[str, Any]) -> Flow[None]:
        said = [dict(message) for message in messages]
        _dispatcher.event(MemoryRememberStartEvent(messages=said, scope=self.ids))
        core = yield from self.open_flow()
        ids: dict[str, Any] = self.ids
        added: Any = yield from do(core.add, said, **ids, facts_about="owner", **options)
        whole = added if isinstance(added, dict) else {"results": added, "skipped": []}  # version "v1.0"
        for skipped in whole["skipped"]:
            _log.warning("not remembered: %s (%r)", skipped["reason"], skipped["item"])
        results = [dict(result) for result in whole["results"]]
        _dispatcher.event(MemoryRememberEndEvent(scope=self.ids, results=results, job_id=whole.get("job_id")))


class LongTermFields(BaseModel):
    """Fields of a memory of LlamaIndex that recalls and remembers."""

    user_id: str | None = Field(default=None, frozen=True)
    agent_id: str | None = Field(default=None, frozen=True)
    run_id: str | None = Field(default=None, frozen=True)
    k: int = Field(default=5, ge=1, description="Maximum number of recalled memories.")
    threshold: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="Memories with a lower score are not recalled. Default: a calibrated floor; 0 switches it off.",
    )
    keep: Keep = Field(
        default="statements",
        description="Without a chat model, the messages that become memories: 'statements' leaves questions, greetings"
        " and acknowledgements in the conversation; 'all' keeps each message.",
    )
    background: bool = Field(
        default=True, description="Store a turn durably and let a worker learn from it; False learns at once."
    )
    tokenizer_fn: Callable[[str], Sequence[Any]] = Field(default=default_tokenizer, exclude=True)

    _long_term: ScopedMemory = PrivateAttr()

    @property
    def long_term(self) -> Memory:
        """Return the long-term memory, opened from `config` if needed.

        Raises:
            ConfigError: there is none, see `bind`.
        """
        return self._long_term.open()

    def _count_text_tokens(self, text: str) -> int:
        return len(self.tokenizer_fn(text))


# --- serializable configurations ---------------------------------------------------------------------------------


def strip_secrets(value: Any, name: str = "") -> Any:
    """Return a configuration as JSON, without its keys and passwords; a URL loses its password only."""
    if isinstance(value, Mapping):
        stripped = {key: strip_secrets(item, str(key)) for key, item in value.items()}
        return {key: item for key, item in stripped.items() if item is not _SECRET}
    if isinstance(value, list):
        return [item for item in (strip_secrets(item, name) for item in value) if item is not _SECRET]
    if is_secret(value):
        return _SECRET if is_secret_name(name) else strip_url(value.get_secret_value())
    return value


_SECRET = object()


def _to_portable(config: MemoryConfig) -> dict[str, Any] | None:
    """Return the keys of a configuration as JSON, or None if one of them is a live object.

    Folders become absolute: another process may have another working directory.
    """
    keys = {name: getattr(config, name) for name in config.given_keys}
    keys.update({name: keys[name].expanduser().absolute() for name in _PATH_KEYS if keys.get(name) is not None})
    try:
        portable: dict[str, Any] = json.loads(json.dumps(keys, default=_encode_plain))
    except (TypeError, ValueError):
        return None
    folder = portable.get("vector_store", {}).get("config", {})
    if isinstance(folder.get("path"), str):
        folder["path"] = str(Path(folder["path"]).expanduser().absolute())
    return {key: conceal(value) if isinstance(value, (dict, list)) else value for key, value in portable.items()}


def _encode_plain(value: object) -> Any:
    if is_secret(value):
        return value.get_secret_value()
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Settings):
        return {name: getattr(value, name) for name in value.given_keys}
    raise TypeError(f"{value!r} is a live object")


_live_keys: WeakKeyDictionary[Memory, str] = WeakKeyDictionary()
"""Keys of open memories without a configuration: a workflow saves and restores its Context before each run."""

_open_memories: WeakValueDictionary[str, Memory] = WeakValueDictionary()
_open_lock = Lock()


def _open_shared(config: dict[str, Any]) -> Memory:
    """Return the shared memory of a configuration: a process that restores many conversations opens it once."""
    key = hashlib.sha256(json.dumps(reveal(config), sort_keys=True).encode()).hexdigest()  # not with its secrets
    with _open_lock:
        memory = _open_memories.get(key)
        if memory is None or memory.closed:
            memory = _open_memories[key] = Memory(config)
        return memory
