"""Keys of an encrypted store, one per tenant."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol, TypeAlias, runtime_checkable

KEY_BYTES = 32
"""Length of a tenant's key."""


@runtime_checkable
class KeyProvider(Protocol):
    """Source of the keys of an encrypted store. It must be safe to share between threads.

    A tenant is the first id of a scope, as ``user_id=alice``: the user, or the agent of data without a user, or the run
    of data without both.

    Attributes:
        identity: name of this set of keys, which a store remembers and compares; None if it has none.
    """

    @property
    def identity(self) -> str | None: ...

    def key(self, tenant: str, *, create: bool = False) -> bytes | None:
        """Return the key of a tenant, `KEY_BYTES` long, or None if there is none.

        It is called again in every write transaction, so that no process writes with a forgotten key.

        Args:
            tenant: the tenant.
            create: make a missing key, if the provider makes keys; it must be durable before the call returns.
        """
        ...

    def forget(self, tenant: str) -> bool:
        """Destroy the key of a tenant. Return False if this provider cannot, because its keys are kept elsewhere."""
        ...


Keys: TypeAlias = KeyProvider | Mapping[str, bytes | str] | Callable[[str], bytes | str | None] | str | Path
"""The forms of the argument ``keys`` of `Memory`."""
