"""API keys of a server: each is stored as a digest, and bound to the memories that it may reach."""

from __future__ import annotations

import hashlib
import json
import secrets
from dataclasses import asdict, field, replace
from pathlib import Path
from typing import Any

from mem0_core._system.files import make_folder, replace_atomically
from mem0_core._system.records import dataclass
from mem0_core.errors import ConfigError, InputError

KEY_FILE = "server-keys.json"
KEY_PREFIX = "m0k_"

_KEY_BYTES = 32  # 256 random bits cannot be guessed, so that one round of SHA-256 protects them
_ID_CHARS = 8


@dataclass(frozen=True, slots=True)
class ApiKey:
    """One key, without its secret.

    Attributes:
        id: Public id, to list and revoke it.
        name: Its purpose.
        digest: SHA-256 of the key, in hex.
        user_id, agent_id, run_id: Ids that every request of the key has. A key without ids reaches all memories.
        is_read_only: Refuse all changes.
        requests_per_minute: Maximum number of requests; None without a limit.
        max_body_bytes: Maximum size of the body of a request; None for that of the server.
    """

    id: str
    name: str
    digest: str = field(repr=False)
    user_id: str | None = None
    agent_id: str | None = None
    run_id: str | None = None
    is_read_only: bool = False
    requests_per_minute: int | None = None
    max_body_bytes: int | None = None

    @property
    def is_admin(self) -> bool:
        """True if it reaches all memories and may change them."""
        return not self.is_read_only and not any(self.ids.values())

    @property
    def ids(self) -> dict[str, str | None]:
        """The ids that it is bound to."""
        return {"user_id": self.user_id, "agent_id": self.agent_id, "run_id": self.run_id}

    def as_dict(self) -> dict[str, Any]:
        """Return everything but the digest."""
        return {name: value for name, value in asdict(self).items() if name != "digest" and value is not None}


class KeyRing:
    """The keys of one server, in a file that only its owner can read.

    Args:
        file: The file; it is read again when it changes, so that a revoked key ends at once.

    Raises:
        ConfigError: The file is damaged.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._stamp: tuple[int, int] | None = None
        self._keys: dict[str, ApiKey] = {}
        self._load()

    @property
    def keys(self) -> list[ApiKey]:
        """All keys, in the order of their creation."""
        self._load()
        return list(self._keys.values())

    def create(
        self,
        name: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        is_read_only: bool = False,
        requests_per_minute: int | None = None,
        max_body_bytes: int | None = None,
    ) -> tuple[str, ApiKey]:
        """Create a key, and return it with its record. The key itself is not stored, and cannot be shown again.

        Raises:
            InputError: The name is blank, or a limit is not positive.
        """
        if not name.strip():
            raise InputError(f"the name of a key must be a text, not {name!r}; pass, for example, 'laptop'")
        for limit, value in (("requests_per_minute", requests_per_minute), ("max_body_bytes", max_body_bytes)):
            if value is not None and value < 1:
                raise InputError(f"{limit} must be positive, not {value}; pass None for no limit")
        secret = KEY_PREFIX + secrets.token_urlsafe(_KEY_BYTES)
        key = ApiKey(
            *(secrets.token_hex(_ID_CHARS // 2), name, _digest(secret), user_id, agent_id, run_id, is_read_only),
            *(requests_per_minute, max_body_bytes),
        )
        self._save([*self.keys, key])
        return secret, key

    def revoke(self, key_id: str) -> ApiKey:
        """Remove a key.

        Raises:
            InputError: No key has that id.
        """
        keys = self.keys
        revoked = next((key for key in keys if key.id == key_id), None)
        if revoked is None:
            raise InputError(f"no key has the id {key_id!r}; `mem0-core keys` lists them")
        self._save([key for key in keys if key is not revoked])
        return replace(revoked, digest="")

    def find(self, secret: str) -> ApiKey | None:
        """Return the record of a key, or None if it is unknown or revoked."""
        self._load()
        return self._keys.get(_digest(secret))

    def _load(self) -> None:
        try:
            status = self._file.stat()
        except FileNotFoundError:
            self._stamp, self._keys = None, {}
            return
        stamp = (status.st_mtime_ns, status.st_ino)
        if stamp == self._stamp:
            return
        try:
            rows = json.loads(self._file.read_text(encoding="utf-8"))
            keys = [ApiKey(**row) for row in rows]
        except (ValueError, TypeError) as error:
            raise ConfigError(f"{self._file}: not a file of keys ({error}); restore it, or delete it") from error
        self._stamp, self._keys = stamp, {key.digest: key for key in keys}

    def _save(self, keys: list[ApiKey]) -> None:
        make_folder(self._file.parent)
        with replace_atomically(self._file) as file:
            file.write_text(json.dumps([asdict(key) for key in keys], indent=1), encoding="utf-8")
        self._stamp = None
        self._load()


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode(errors="surrogatepass")).hexdigest()
