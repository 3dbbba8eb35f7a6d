"""The errors of mem0-core. Catch `Mem0Error` for all of them.

::

    Mem0Error
      ConfigError(ValueError)       a configuration key is unknown, wrong or missing; names the key
      MissingExtra(ImportError)     a library is not installed; names the `pip install` that brings it
      ScopeError(ValueError)        no user_id / agent_id / run_id, or one that cannot be an id
      InputError(ValueError)        a message, a text or metadata that cannot be stored; names the item
      LimitError(ValueError)        more than `limits` allow; names the limit
      NotFoundError(LookupError)    no memory has that id
      QueryError(ValueError)        a filter or query that cannot be read; carries the query and the position
      ModelError                    a call to a model failed; the cause is chained
        ReplyError                  the model answered, but not in the agreed form; carries the raw reply
      StoreError                    a call to a store failed; the cause is chained
      CapabilityError(NotImplementedError)
                                    the store lacks a capability; names it and the stores that have it
"""

from __future__ import annotations

__all__ = [
    "CapabilityError",
    "ConfigError",
    "InputError",
    "LimitError",
    "Mem0Error",
    "MissingExtra",
    "ModelError",
    "NotFoundError",
    "QueryError",
    "ReplyError",
    "ScopeError",
    "StoreError",
]


class Mem0Error(Exception):
    """The root of every error this package raises on purpose."""


class ConfigError(Mem0Error, ValueError):
    """A configuration key is unknown, has a wrong value, or does not fit the store it opens."""


class MissingExtra(Mem0Error, ImportError):
    """An optional library is not installed."""

    def __init__(self, library: str, extra: str) -> None:
        super().__init__(f"{library} is not installed: pip install 'mem0-core[{extra}]'")
        self.library = library
        self.extra = extra


class ScopeError(Mem0Error, ValueError):
    """No user_id, agent_id or run_id was given, or one of them cannot be an id."""


class InputError(Mem0Error, ValueError):
    """A message, a text or metadata cannot be stored as it is."""


class LimitError(Mem0Error, ValueError):
    """A call, or a scope, brings more than the configuration's `limits` allow."""


class NotFoundError(Mem0Error, LookupError):
    """No memory has the given id."""

    def __init__(self, memory_id: str) -> None:
        super().__init__(f"no memory has the id {memory_id!r}")
        self.memory_id = memory_id


class QueryError(Mem0Error, ValueError):
    """A filter or a query could not be read."""

    def __init__(self, message: str, *, query: object = None, position: int | None = None) -> None:
        super().__init__(message)
        self.query = query
        self.position = position


class ModelError(Mem0Error):
    """A call to a chat model, embedder or reranker failed."""


class ReplyError(ModelError):
    """The model answered, but what it said is not in the agreed form.

    Attributes:
        raw: the reply as it came, for the log.
        problems: one line per item that could not be read.
    """

    def __init__(self, message: str, *, raw: str = "", problems: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.raw = raw
        self.problems = problems


class StoreError(Mem0Error):
    """A call to a store failed; what it was writing is not written."""


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
