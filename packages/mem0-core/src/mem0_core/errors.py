"""The errors of mem0-core. Catch `Mem0Error` for all of them.

::

    Mem0Error
      ConfigError(ValueError)       a configuration key is unknown, wrong or missing; names the key
      MissingExtraError(ImportError)     a library is not installed; names the `pip install` command
      ArgumentError(TypeError)      a call has an unknown, surplus or missing argument, or one of a wrong type; names it
      ScopeError(ValueError)        no user_id, agent_id or run_id, or an invalid one
      InputError(ValueError)        a message, text or metadata cannot be stored; names the item
      LimitError(ValueError)        a call exceeds `limits`; names the limit
      NotFoundError(LookupError)    no memory has that id
      AccessError                   a user is not a member of a space, or their role does not allow the call
      QueryError(ValueError)        a filter or query is invalid; has the query and the position
      CallbackError                 a function of the caller failed (policy, data); the cause is chained
      ModelError                    a call to a model failed; the cause is chained
        ReplyError                  the reply of the model is malformed; has the raw reply
      StoreError                    a call to a store failed; the cause is chained
        EncryptionError             data cannot be decrypted: a key is wrong, missing or forgotten
      CapabilityError(NotImplementedError)
                                    the store lacks a capability; names it and the stores that have it
      InternalError                 a defect of this library; the cause is chained

KeyboardInterrupt, SystemExit and cancellations pass through unchanged.
"""

from __future__ import annotations

from typing import Any, Literal

__all__ = [
    "AccessError",
    "ArgumentError",
    "CallbackError",
    "CapabilityError",
    "ConfigError",
    "EncryptionError",
    "InputError",
    "InternalError",
    "LimitError",
    "Mem0Error",
    "MissingExtraError",
    "ModelError",
    "NotFoundError",
    "QueryError",
    "ReplyError",
    "ScopeError",
    "StoreError",
]


class Mem0Error(Exception):
    """Base class of all errors that this package raises."""


class ConfigError(Mem0Error, ValueError):
    """A configuration key is unknown, has a wrong value, or does not match the store."""


class ArgumentError(Mem0Error, TypeError):
    """A call of a public method has an unknown, surplus or missing argument, or one of a wrong type."""


class MissingExtraError(Mem0Error, ImportError):
    """An optional library is not installed.

    Attributes:
        library: The library that is missing.
        extra: The extra of ``mem0-core`` that installs it, or an empty text.
        packages: The arguments of the ``pip install`` that the message names.
    """

    def __init__(self, library: str, extra: str = "", *, packages: str | None = None) -> None:
        self.library = library
        self.extra = extra
        self.packages = packages or f"'mem0-core[{extra}]'"
        super().__init__(f"{library} is not installed: pip install {self.packages}")


class ScopeError(Mem0Error, ValueError):
    """No user_id, agent_id or run_id is given, or one is invalid."""


class InputError(Mem0Error, ValueError):
    """A message, a text or metadata cannot be stored."""


class LimitError(Mem0Error, ValueError):
    """A call or a scope exceeds the `limits` of the configuration."""


class NotFoundError(Mem0Error, LookupError):
    """No memory, merge or job has the given id."""

    def __init__(self, memory_id: str, kind: Literal["memory", "merge", "job"] = "memory") -> None:
        super().__init__(f"no {kind} has the id {memory_id!r}; {_LISTS[kind]}")
        self.memory_id, self.kind = memory_id, kind

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.memory_id, self.kind)


_LISTS = {
    "memory": "get_all lists the memories of a user with their ids",
    "merge": "merges lists the merges of a user with their ids",
    "job": "pending lists the jobs of a user with their ids",
}


class AccessError(Mem0Error):
    """A user is not a member of a space, or their role in it does not allow the call."""


class QueryError(Mem0Error, ValueError):
    """A filter or a query is invalid."""

    def __init__(self, message: str, *, query: object = None, position: int | None = None) -> None:
        super().__init__(message)
        self.query = query
        self.position = position


class CallbackError(Mem0Error):
    """A function that the caller passed (a policy, a text builder, an iterator) failed."""


class ModelError(Mem0Error):
    """A call to a chat model, embedder or reranker failed."""


class ReplyError(ModelError):
    """The reply of the model is malformed.

    Attributes:
        raw: Unmodified reply, for the log.
        problems: One line per malformed item.
    """

    def __init__(self, message: str, *, raw: str = "", problems: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.raw = raw
        self.problems = problems


class StoreError(Mem0Error):
    """A call to a store failed; its changes are not written."""


class EncryptionError(StoreError):
    """Data cannot be encrypted or decrypted: a key is wrong, missing or forgotten, or the data was altered."""


class CapabilityError(Mem0Error, NotImplementedError):
    """The store does not have the capability that a feature needs.

    Attributes:
        store: name of the store's class.
        capability: name of the missing capability.
    """

    def __init__(self, store: str, capability: str, features: str) -> None:
        super().__init__(
            f"store: {store} has no {capability}, needed by {features}; use the stores 'sqlite' or 'postgres' for it"
        )
        self.store = store
        self.capability = capability


class InternalError(Mem0Error):
    """A call failed in a way that this library does not expect; please report it. Nothing is half written."""
