"""Keys and passwords in configurations: concealed where they are kept, revealed where a client needs them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import FunctionType
from typing import Any, TypeGuard
from urllib.parse import unquote, urlsplit

_SECRET_NAME = re.compile(
    r"(key|token|secret|password|passwd|pwd|passphrase|credentials?|authorization|auth|cookie|dsn|connection_?string)$",
    re.IGNORECASE,
)
_USER_INFO = re.compile(r"(?<=://)([^/\s:@]*):\S*@")
_PARAMETER = re.compile(
    r"(?<![a-z])((?:[a-z_]*_)?(?:key|token|secret|password|passwd|pwd))=('[^']*'|[^&\s'\"]+)", re.IGNORECASE
)
_MIN_SECRET_CHARS = 4  # a shorter value occurs in many words of a message
_MASK = "***"


class SecretStr:
    """A text that its representations conceal, like pydantic's class of the same name, which is slow to import."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def get_secret_value(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"SecretStr({str(self)!r})"

    def __str__(self) -> str:
        return "**********" if self._text else ""

    def __len__(self) -> int:
        return len(self._text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SecretStr) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)


def is_secret(value: object) -> TypeGuard[SecretStr]:
    """Return True for a `SecretStr`, ours or pydantic's."""
    return isinstance(value, SecretStr) or isinstance(getattr(type(value), "get_secret_value", None), FunctionType)


def is_secret_name(name: object) -> bool:
    """Return True if a key of a configuration names a secret."""
    return isinstance(name, str) and _SECRET_NAME.search(name.replace("-", "_")) is not None


def conceal(value: Any, name: object = "") -> Any:
    """Return a configuration whose secrets are `SecretStr`: values of secret names, and URLs with a password."""
    if isinstance(value, Mapping):
        return {key: conceal(one, name if is_secret_name(name) else key) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(conceal(one, name) for one in value) if type(value) in (list, tuple) else value
    if type(value) is str and value and (is_secret_name(name) or redact_url(value) != value):
        return SecretStr(value)
    return value


def reveal(value: Any) -> Any:
    """Return a configuration with its secrets as plain texts, for the client that needs them."""
    if is_secret(value):
        return value.get_secret_value()
    if isinstance(value, Mapping):
        return {key: reveal(one) for key, one in value.items()}
    if type(value) in (list, tuple):
        return type(value)(reveal(one) for one in value)
    return value


def find_secrets(value: Any) -> list[str]:
    """Return the secret texts of a configuration, longest first; of a URL, its password too."""
    found = {part for secret in _iter_secrets(conceal(value)) for part in _secret_parts(secret)}
    return sorted((one for one in found if len(one) >= _MIN_SECRET_CHARS), key=len, reverse=True)


def _iter_secrets(value: Any) -> Iterator[str]:
    if is_secret(value):
        yield value.get_secret_value()
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from _iter_secrets(one)
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from _iter_secrets(one)


def _secret_parts(text: str) -> Iterator[str]:
    yield text
    yield from (match[2].strip("'") for match in _PARAMETER.finditer(text))
    try:
        password = urlsplit(text).password
    except ValueError:
        return
    if password:
        yield from (password, unquote(password))


def redact(text: str, secrets: list[str]) -> str:
    """Return a text with each of these secrets, and each password in a URL, replaced by asterisks."""
    for secret in secrets:
        text = text.replace(secret, _MASK)
    return redact_url(text)


def redact_url(url: str) -> str:
    """Return a URL, or the parameters of a connection, without passwords and keys."""
    return _PARAMETER.sub(rf"\1={_MASK}", _USER_INFO.sub(rf"\1:{_MASK}@", url))


def strip_url(url: str) -> str:
    """Return a URL, or the parameters of a connection, with passwords and keys removed."""
    return _PARAMETER.sub("", _USER_INFO.sub(r"\1@", url))


def mentions(error: BaseException, secrets: list[str]) -> bool:
    """Return True if the text of an error, or of one that it is chained to, contains one of these secrets."""
    seen: set[int] = set()
    links: list[BaseException | None] = [error]
    while links:
        link = links.pop()
        if link is None or id(link) in seen:
            continue
        seen.add(id(link))
        if any(secret in f"{link} {link!r}" for secret in secrets):
            return True
        links += [link.__cause__, link.__context__]
    return False
