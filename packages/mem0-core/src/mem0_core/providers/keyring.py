"""Keys of an encrypted store: a folder of keys wrapped by a master key, or the application's own keys."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mem0_core._system.files import (
    clear_abandoned,
    list_private_folders,
    make_file,
    make_folder,
    private_folder,
    sync_folder,
    validate_path,
)
from mem0_core.domain.suggestions import describe_value
from mem0_core.errors import ConfigError, EncryptionError, MissingExtraError
from mem0_core.interfaces.keys import KEY_BYTES, KeyProvider, Keys

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

MASTER_KEY_VARIABLE = "MEM0_CORE_MASTER_KEY"
"""Environment variable with the master key of a `Keyring`, or with the path of a file that holds it."""

_FORMAT = 1
_NONCE_BYTES = 12
_OTHERS_MODE = 0o077


def new_key() -> str:
    """Return a new random key as text, for a master key or for a mapping of keys."""
    return base64.b64encode(secrets.token_bytes(KEY_BYTES)).decode()


def resolve_keys(keys: Keys | None) -> KeyProvider | None:
    """Return the provider that the argument ``keys`` of `Memory` describes; None for no encryption.

    Raises:
        ConfigError: it is none of the accepted forms.
        EncryptionError: the folder of a `Keyring` cannot be opened.
    """
    if keys is None or (isinstance(keys, KeyProvider) and not isinstance(keys, type)):
        return keys
    if isinstance(keys, (str, Path)):
        return Keyring(keys)
    if isinstance(keys, Mapping) or callable(keys):
        return _OwnKeys(keys)
    raise ConfigError(
        "keys: the folder of a Keyring, a mapping of tenants to keys, a function of a tenant or a KeyProvider is"
        f" required, not {describe_value(keys)}; pass, for example, Keyring('keys')"
    )


class Keyring:
    """A folder with one random key per tenant, each in a file of its own and wrapped by the master key (AES-256-GCM).

    Keep the folder out of the backups of the store: `forget` removes one file, and with it everything that was
    encrypted with the key, in backups too. Several processes may use one folder.

    Args:
        folder: the folder, created with permissions 0700 if it is missing.
        master_key: 32 bytes, their base64 or hexadecimal text, or the path of a file that holds one of these and that
            only its owner can read. Default: the environment variable ``MEM0_CORE_MASTER_KEY``.

    Raises:
        ConfigError: there is no master key, or it is malformed.
        EncryptionError: another master key wrapped the keys, or the folder cannot be read.
        MissingExtraError: ``mem0-core[encryption]`` is not installed.
    """

    def __init__(self, folder: str | Path, *, master_key: bytes | str | Path | None = None) -> None:
        self._folder = validate_path(folder, "keys").expanduser()
        self._master = _Wrapping(_read_master_key(master_key))
        try:
            self.identity = self._open()
        except OSError as error:
            raise EncryptionError(f"keys: cannot open the folder {self._folder}: {error}") from error

    def __repr__(self) -> str:
        return f"<Keyring {self._folder}>"

    def key(self, tenant: str, *, create: bool = False) -> bytes | None:
        try:
            found = self._read(tenant)
            if found is None and create:
                self._write_new(tenant)
                found = self._read(tenant)  # another process may have been faster
        except OSError as error:
            raise EncryptionError(f"keys: cannot read the key of {tenant} in {self._folder}: {error}") from error
        return found

    def forget(self, tenant: str) -> bool:
        """Destroy the key of a tenant, such as ``user_id=alice``; everything that it encrypted is lost."""
        path = self._path(tenant)
        try:
            for copy in list_private_folders([self._folder]):  # that a killed process may have left
                _wipe(copy / path.name)
            _wipe(path)
        except OSError as error:
            raise EncryptionError(f"keys: cannot remove the key of {tenant} from {self._folder}: {error}") from error
        return True

    def rotate(self, new_master_key: bytes | str | Path) -> int:
        """Wrap all keys with another master key, and return their number. No data is written again.

        After an interruption, repeat the call: keys that are wrapped already are left as they are. Stop other processes
        first, and start them with the new master key.
        """
        new, count = _Wrapping(_read_master_key(new_master_key)), 0
        try:
            for path in self._iter_files():
                if (record := _load(path)) is None:
                    continue
                if record["master"] != new.id:
                    record = new.wrap(self._master.unwrap(record, path), record["tenant"])
                    self._replace(path, record)
                count += 1
            self._replace(self._ring_path, {"format": _FORMAT, "id": self.identity, "master": new.id})
        except OSError as error:
            raise EncryptionError(f"keys: cannot rotate {self._folder}: {error}; repeat the call") from error
        self._master = new
        return count

    def _iter_files(self) -> Iterator[Path]:
        return iter(sorted(self._folder.glob("??/*.key")))

    @property
    def _ring_path(self) -> Path:
        return self._folder / "keyring.json"

    def _open(self) -> str:
        make_folder(self._folder)
        clear_abandoned([self._folder])
        if not self._ring_path.exists():
            ring = {"format": _FORMAT, "id": secrets.token_hex(8), "master": self._master.id}
            self._create(self._ring_path, ring)
        try:
            ring = json.loads(self._ring_path.read_bytes())
            identity, master = str(ring["id"]), ring["master"]
        except (ValueError, KeyError, TypeError) as error:
            raise EncryptionError(f"keys: {self._ring_path} is damaged; restore it from a copy") from error
        if master != self._master.id and not self._has_rotated_keys():
            raise EncryptionError(
                f"keys: the master key is not the one that wrapped the keys in {self._folder}; pass that one"
            )
        return identity

    def _has_rotated_keys(self) -> bool:
        """Return True if an interrupted rotation has wrapped keys with this master key already."""
        records = map(_load, self._iter_files())
        return any(record is not None and record["master"] == self._master.id for record in records)

    def _path(self, tenant: str) -> Path:
        name = hashlib.blake2b(tenant.encode(errors="surrogatepass"), digest_size=20).hexdigest()
        return self._folder / name[:2] / f"{name}.key"

    def _read(self, tenant: str) -> bytes | None:
        path = self._path(tenant)
        record = _load(path)
        return None if record is None else self._master.unwrap(record, path, tenant)

    def _write_new(self, tenant: str) -> None:
        path = self._path(tenant)
        make_folder(path.parent)
        sync_folder(self._folder)
        if path.exists():  # zeros, see `_load`
            path.unlink(missing_ok=True)
        self._create(path, self._master.wrap(secrets.token_bytes(KEY_BYTES), tenant))

    def _create(self, path: Path, record: Mapping[str, Any]) -> None:
        """Write a complete file under a name that is free; a file that exists already is left as it is."""
        with self._draft(path, record) as draft, suppress(FileExistsError):
            os.link(draft, path)
        sync_folder(path.parent)

    def _replace(self, path: Path, record: Mapping[str, Any]) -> None:
        with self._draft(path, record) as draft:
            draft.replace(path)
        sync_folder(path.parent)

    @contextmanager
    def _draft(self, path: Path, record: Mapping[str, Any]) -> Iterator[Path]:
        with private_folder(self._folder) as folder:
            draft = folder / path.name
            make_file(draft)
            with draft.open("wb") as file:
                file.write(json.dumps(record).encode())
                file.flush()
                os.fsync(file.fileno())
            yield draft


class _OwnKeys:
    """Keys that the application keeps itself: a mapping, or a function of a tenant."""

    identity = None

    def __init__(self, keys: Mapping[str, bytes | str] | Callable[[str], bytes | str | None]) -> None:
        self._keys = keys

    def __repr__(self) -> str:
        return "<keys of the application>"

    def key(self, tenant: str, *, create: bool = False) -> bytes | None:
        if isinstance(self._keys, Mapping):
            given = self._keys.get(tenant)
        else:
            try:
                given = self._keys(tenant)
            except LookupError:
                given = None
            except Exception as error:
                raise EncryptionError(f"keys: the function failed for {tenant}: {type(error).__name__}") from error
        return None if given is None else _parse_key(given, f"keys: the key of {tenant}")

    def forget(self, tenant: str) -> bool:
        if not isinstance(self._keys, MutableMapping):
            return False
        self._keys.pop(tenant, None)
        return True


class _Wrapping:
    """A master key: wraps the keys of tenants, bound to their names."""

    def __init__(self, key: bytes) -> None:
        self._cipher = _make_cipher(hmac.digest(key, b"mem0-core wrap", "sha256"))
        self.id = hmac.digest(key, b"mem0-core master id", "sha256")[:8].hex()

    def wrap(self, key: bytes, tenant: str) -> dict[str, Any]:
        nonce = secrets.token_bytes(_NONCE_BYTES)
        wrapped = nonce + self._cipher.encrypt(nonce, key, tenant.encode(errors="surrogatepass"))
        return {"format": _FORMAT, "tenant": tenant, "master": self.id, "key": base64.b64encode(wrapped).decode()}

    def unwrap(self, record: Any, path: Path, tenant: str | None = None) -> bytes:
        from cryptography.exceptions import InvalidTag

        try:
            if record["master"] != self.id:
                raise EncryptionError(
                    f"keys: another master key wrapped {path}; a rotation was interrupted: repeat it with both keys"
                )
            name, wrapped = tenant or record["tenant"], base64.b64decode(record["key"])
            return self._cipher.decrypt(
                wrapped[:_NONCE_BYTES], wrapped[_NONCE_BYTES:], name.encode(errors="surrogatepass")
            )
        except (InvalidTag, KeyError, TypeError, ValueError) as error:
            raise EncryptionError(f"keys: {path} is damaged or of another tenant; restore it from a copy") from error


def _make_cipher(key: bytes) -> AESGCM:
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ImportError as error:
        raise MissingExtraError("cryptography", "encryption") from error
    return AESGCM(key)


def _load(path: Path) -> Any:
    """Return the record of a key; None if there is no file, or zeros: a process ended while it forgot the key.

    Raises:
        EncryptionError: the file is damaged.
    """
    try:
        text = path.read_bytes()
        if not text.strip(b"\0"):
            return None
        record = json.loads(text)
        record["master"]  # what every record has
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise EncryptionError(f"keys: {path} is damaged; restore it from a copy") from error
    return record


def _wipe(path: Path) -> None:
    """Overwrite a file with zeros and remove it; nothing happens if there is none."""
    with suppress(FileNotFoundError):
        with path.open("r+b") as file:
            file.write(bytes(os.fstat(file.fileno()).st_size))
            os.fsync(file.fileno())
        path.unlink()
        sync_folder(path.parent)


def _read_master_key(given: bytes | str | Path | None) -> bytes:
    if given is None:
        given = os.environ.get(MASTER_KEY_VARIABLE)
        if not given:
            raise ConfigError(
                f"keys: there is no master key; set {MASTER_KEY_VARIABLE} to a key or to the path of a file with one,"
                " or pass Keyring(folder, master_key=...)"
            )
    if isinstance(given, Path) or (isinstance(given, str) and _decode_key(given) is None):
        given = _read_key_file(Path(given).expanduser())
    return _parse_key(given, "keys: the master key")


def _read_key_file(path: Path) -> bytes:
    try:
        mode, content = path.stat().st_mode, path.read_bytes()
    except (OSError, ValueError) as error:  # the text may be a key with a missing letter: it is not quoted
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise ConfigError(f"keys: the master key is neither a key nor a readable file ({reason})") from None
    if os.name == "posix" and mode & _OTHERS_MODE:
        raise ConfigError(f"keys: others can read the key file {path}; run: chmod 600 {path}")
    return content


def _parse_key(given: object, what: str) -> bytes:
    """Return the bytes of a key.

    Raises:
        ConfigError: it is malformed; the message does not quote it.
    """
    if isinstance(given, (bytes, bytearray)) and len(given) == KEY_BYTES:
        return bytes(given)
    if isinstance(given, (bytes, bytearray)):
        given = bytes(given).decode("ascii", "replace")
    decoded = _decode_key(given) if isinstance(given, str) else None
    if decoded is None:
        raise ConfigError(f"{what} must be {KEY_BYTES} bytes, or their base64 or hexadecimal text; see new_key()")
    return decoded


def _decode_key(text: str) -> bytes | None:
    text = text.strip()
    for decode in (bytes.fromhex, lambda given: base64.b64decode(given, validate=True)):
        with suppress(ValueError, binascii.Error):
            if len(key := decode(text)) == KEY_BYTES:
                return key
    return None
