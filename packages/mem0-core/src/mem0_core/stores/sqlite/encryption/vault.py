"""Authenticated encryption of single values by a key per tenant.

A sealed value is ``magic (3) | kind (1) | key id (8) | body``. The body of kind ``r`` is a random nonce and AES-256-GCM
ciphertext; that of kind ``d`` is AES-SIV ciphertext, equal for equal values, for columns that are compared. Both are
bound to the name of their record and column. All keys are derived from the key of the tenant.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import threading
from typing import Any

from mem0_core.errors import EncryptionError, Mem0Error, MissingExtraError
from mem0_core.interfaces.keys import KEY_BYTES, KeyProvider

MAGIC = b"\xe5m0"
"""First bytes of every sealed value."""

_RANDOM, _DETERMINISTIC = MAGIC + b"r", MAGIC + b"d"
_ID_END = len(MAGIC) + 1 + 8
_NONCE_BYTES = 12
_TOKEN_BYTES = 9  # 72 bits: among a million words of a tenant, equal tokens of two words are not expected
_PREFIX_BYTES = 6
_MAX_KEYS = 4_096  # kept in memory, about 2 kB each

_failures = threading.local()


def take_failure() -> Mem0Error | None:
    """Return and clear the error that a function of the vault raised inside a statement of this thread."""
    failure: Mem0Error | None = getattr(_failures, "error", None)
    _failures.error = None
    return failure


class _TenantKey:
    """The keys that are derived from the key of one tenant."""

    def __init__(self, secret: bytes) -> None:
        try:
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM, AESSIV
        except ImportError as error:
            raise MissingExtraError("cryptography", "encryption") from error
        self.id = _derive(secret, b"id")[:8]
        self.random = AESGCM(_derive(secret, b"random"))
        self.deterministic = AESSIV(_derive(secret, b"deterministic 1") + _derive(secret, b"deterministic 2"))
        self.words = _derive(secret, b"words")
        self.word_prefix = hmac.digest(self.words, b"prefix", "sha256")[:_PREFIX_BYTES].hex()


class Vault:
    """Seals and opens values. Safe to share between threads; one thread at a time may write.

    Args:
        provider: the keys.
    """

    def __init__(self, provider: KeyProvider) -> None:
        self.provider = provider
        self._by_tenant: dict[str, _TenantKey] = {}
        self._by_id: dict[bytes, _TenantKey] = {}
        self._verified: set[str] = set()

    def begin(self) -> None:
        """Begin a write transaction: its first use of each key asks the provider whether it still exists."""
        self._verified.clear()

    def seal(self, value: str | bytes | None, tenant: str | None, name: str | None) -> bytes | None:
        """Return the value sealed with a random nonce."""
        if value is None:
            return None
        key, nonce = self._writing_key(tenant), os.urandom(_NONCE_BYTES)
        return _RANDOM + key.id + nonce + key.random.encrypt(nonce, _encode(value), _name(name))

    def lock(self, value: str | bytes | None, tenant: str | None, name: str | None) -> bytes | None:
        """Return the value sealed so that equal values of one tenant and name are equal when sealed."""
        if value is None:
            return None
        key = self._writing_key(tenant)
        return _DETERMINISTIC + key.id + key.deterministic.encrypt(_encode(value), [_name(name)])

    def lookup(self, value: bytes, tenant: str, name: str) -> bytes:
        """Return the sealed value that `lock` stores; one that matches nothing, if the tenant has no key yet."""
        key = self._by_tenant.get(tenant) or self._load(tenant)
        if key is None:
            return b""
        return _DETERMINISTIC + key.id + key.deterministic.encrypt(_encode(value), [_name(name)])

    def open(self, sealed: bytes | None, name: str | None) -> str | bytes | None:
        """Return the value; None if it is sealed with a key that is not loaded yet."""
        if sealed is None:
            return None
        _check_form(sealed)
        key = self._by_id.get(sealed[len(_RANDOM) : _ID_END])
        return None if key is None else _open(key, sealed, name)

    def open_as(self, sealed: bytes | None, tenant: str | None, name: str | None) -> str | bytes | None:
        """Load the key of a tenant, and return the value."""
        if sealed is None:
            return None
        key_id = sealed[len(_RANDOM) : _ID_END]
        key = self._by_id.get(key_id)
        if key is None and tenant is not None:
            key = self._load(tenant)
        if key is None:
            raise EncryptionError(
                f"there is no key for {tenant or 'data without an owner'}: pass the keys that it was stored with; if"
                " the key was forgotten, the data is erased"
            )
        if key.id != key_id:
            raise EncryptionError(
                f"another key encrypted this data of {tenant}: pass the key that it was stored with; if that key was"
                " forgotten, the data is erased"
            )
        return _open(key, sealed, name)

    def token(self, tenant: str, kind: str, word: str) -> str:
        """Return the token of a word in the word index: a keyed hash behind the prefix of the tenant."""
        key = self._by_tenant.get(tenant) or self._writing_key(tenant)
        digest = hashlib.blake2b(f"{kind}{word}".encode(), key=key.words, digest_size=_TOKEN_BYTES).hexdigest()
        return f"{key.word_prefix}{kind}{digest}"

    def prefix(self, tenant: str) -> str:
        """Return the first characters of all tokens of a tenant; empty if the tenant has no key."""
        key = self._by_tenant.get(tenant) or self._load(tenant)
        return "" if key is None else key.word_prefix

    def forget(self, tenant: str) -> bool:
        """Destroy the key of a tenant; False if the provider cannot."""
        forgotten = self.provider.forget(tenant)
        key = self._by_tenant.pop(tenant, None)
        if key is not None:
            self._by_id.pop(key.id, None)
        return forgotten

    def _writing_key(self, tenant: str | None) -> _TenantKey:
        if tenant is None:
            raise EncryptionError("data without an owner cannot be encrypted")
        if tenant in self._verified:
            return self._by_tenant[tenant]
        key = self._load(tenant, create=True)
        if key is None:
            raise EncryptionError(f"there is no key for {tenant}: add one to keys")
        self._verified.add(tenant)
        return key

    def _load(self, tenant: str, *, create: bool = False) -> _TenantKey | None:
        secret = self.provider.key(tenant, create=create)
        if secret is None:
            return None
        if not isinstance(secret, bytes) or len(secret) != KEY_BYTES:
            raise EncryptionError(f"keys: the key of {tenant} is not {KEY_BYTES} bytes long")
        known = self._by_tenant.get(tenant)
        if known is not None and hmac.compare_digest(known.id, _derive(secret, b"id")[:8]):
            return known
        if len(self._by_tenant) >= _MAX_KEYS:
            for loaded in (self._by_tenant, self._by_id, self._verified):
                loaded.clear()
        key = _TenantKey(secret)
        self._by_tenant[tenant] = self._by_id[key.id] = key
        return key

    # --- as functions of SQL -----------------------------------------------------------------------------------------

    def functions(self) -> dict[str, tuple[int, Any]]:
        """Return the SQL functions by name, each with its number of arguments."""
        return {
            "mem0_seal": (3, _reporting(self.seal)),
            "mem0_lock": (3, _reporting(self.lock)),
            "mem0_open": (2, _reporting(self.open)),
            "mem0_open_as": (3, _reporting(self.open_as)),
        }


def _reporting(function: Any) -> Any:
    """Return a function that keeps its error for `take_failure`: SQLite passes on that there was one, and no more."""

    def report(*values: Any) -> Any:
        try:
            return function(*values)
        except Mem0Error as error:
            _failures.error = error
            raise

    return report


def _derive(secret: bytes, purpose: bytes) -> bytes:
    return hmac.digest(secret, b"mem0-core " + purpose, "sha256")


def _name(name: str | None) -> bytes:
    if name is None:
        raise EncryptionError("a value without a record cannot be encrypted")
    return name.encode()


def _encode(value: str | bytes) -> bytes:
    return b"t" + value.encode() if isinstance(value, str) else b"b" + bytes(value)


def _check_form(sealed: object) -> None:
    if not isinstance(sealed, bytes) or not sealed.startswith(MAGIC):
        raise EncryptionError("a value of the encrypted store is not encrypted: the file was altered; restore a backup")


def _open(key: _TenantKey, sealed: bytes, name: str | None) -> str | bytes:
    from cryptography.exceptions import InvalidTag

    body = sealed[_ID_END:]
    try:
        if sealed.startswith(_RANDOM):
            plain = key.random.decrypt(body[:_NONCE_BYTES], body[_NONCE_BYTES:], _name(name))
        else:
            plain = key.deterministic.decrypt(body, [_name(name)])
    except (InvalidTag, ValueError) as error:
        raise EncryptionError(
            "encrypted data was altered, or moved from another record; restore a backup (mem0-core restore)"
        ) from error
    return plain[1:].decode() if plain[:1] == b"t" else plain[1:]
