"""Reading of requests: their key, the scope they may reach, and their JSON within bounds."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection, Mapping
from typing import Any, cast

from pydantic_core import from_json

from mem0_core.domain.suggestions import suggest
from mem0_core.server._guard import Receive
from mem0_core.server._problems import HttpError
from mem0_core.server.keys import ApiKey, KeyRing
from mem0_core.server.scope import ScopeIds

MAX_BODY_BYTES = 2**20
BODY_SECONDS = 30.0
BODY = "mem0_core.body"
"""Key of a body that has been read, in the scope of its request."""

_AXES = ("user_id", "agent_id", "run_id")
_EXAMPLE = '{"query": "tea", "user_id": "alice"}'
MAX_SHOWN_CHARS = 100  # the search for the nearest name takes longer than linear time
_TRUE, _FALSE = ("true", "1", "yes"), ("false", "0", "no", "")


def authenticate(headers: Mapping[str, str], keys: KeyRing | None) -> ApiKey:
    """Return the key of a request, as `X-API-Key`, or as a bearer or mem0's token.

    Args:
        keys: None lets every request act as an administrator.

    Raises:
        HttpError: 401, without a valid key.
    """
    if keys is None:
        return ApiKey("local", "local", "")
    secret = find_secret(headers)
    if not secret:
        raise HttpError(401, "an API key is required, as X-API-Key or as Authorization: Bearer")
    key = keys.find(secret)
    if key is None:
        raise HttpError(401, "the API key is unknown or revoked")
    return key


def find_secret(headers: Mapping[str, str]) -> str:
    """Return the text of a request's API key; empty without one."""
    secret = headers.get("x-api-key")
    if secret is None:
        kind, _, secret = headers.get("authorization", "").partition(" ")
        if kind.casefold() not in ("bearer", "token"):
            return ""
    return secret.strip()


def merge_ids(key: ApiKey, given: Mapping[str, Any]) -> ScopeIds:
    """Return the ids of a request, within those of its key.

    Raises:
        HttpError: 403, if the request names an id of another owner; 400, if an id is not a text.
    """
    ids: dict[str, str | None] = {}
    for axis in _AXES:
        value, bound = given.get(axis), getattr(key, axis)
        if value is not None and not isinstance(value, str):
            raise HttpError(400, f"{axis} is a text, not {type(value).__name__}")
        if bound is not None and value not in (None, bound):
            raise HttpError(403, f"the API key is not for this {axis}")
        ids[axis] = bound if bound is not None else value
    return cast("ScopeIds", ids)


def read_filter_ids(filters: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the ids in the filters of an add, where mem0's client names the owner.

    Raises:
        HttpError: 400, if there is anything else, or another id in the request itself.
    """
    if not isinstance(filters, dict) or filters.keys() - set(_AXES):
        raise HttpError(400, f"filters of an add are an object of {', '.join(_AXES)}")
    for axis, value in filters.items():
        if given.get(axis) not in (None, value):
            raise HttpError(400, f"{axis} is given twice; pass it once")
    return filters


def read_json(request: Any) -> dict[str, Any]:
    """Return the JSON object in the body of a request, which its endpoint has read.

    Raises:
        HttpError: 415 or 400.
    """
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise HttpError(415, "the body must be JSON, with Content-Type: application/json")
    try:
        found = _parse_json(request.scope[BODY])
    except (ValueError, RecursionError) as error:
        raise HttpError(400, f"the body is not valid JSON: {error}; send an object such as {_EXAMPLE}") from error
    if not isinstance(found, dict):
        raise HttpError(400, f"the body must be a JSON object; send one such as {_EXAMPLE}")
    return found


def _parse_json(body: bytes) -> Any:
    """Parse JSON faster than the standard library, which explains errors and accepts lone surrogates.

    No text is kept for later ones: those of erased people would stay in memory.
    """
    try:
        return from_json(body, cache_strings=False)
    except ValueError:
        return json.loads(body)


async def read_body(receive: Receive, max_bytes: int | None = None) -> bytes:
    """Return the parts of a body together.

    Args:
        receive: Returns the next message of an ASGI request.
        max_bytes: Maximum size, if it is less than that of the server.

    Raises:
        HttpError: 413, if it is too large; 408, if it is too slow; 400, if its sender left.
    """
    parts, size, has_more = [], 0, True
    maximum = MAX_BODY_BYTES if max_bytes is None else min(max_bytes, MAX_BODY_BYTES)
    try:
        async with asyncio.timeout(BODY_SECONDS):
            while has_more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise HttpError(400, "the caller disconnected")
                part, has_more = message.get("body", b""), message.get("more_body", False)
                size += len(part)
                if size > maximum:
                    raise HttpError(413, f"the body has more than {maximum} bytes")
                parts.append(part)
    except TimeoutError:
        raise HttpError(408, f"the body took longer than {BODY_SECONDS:.0f} seconds") from None
    return b"".join(parts)


def pick(given: Mapping[str, Any], accepted: Collection[str], ignored: Collection[str] = ()) -> dict[str, Any]:
    """Return the accepted fields of a request that are not null.

    Raises:
        HttpError: 400, if there are other fields than those and the ids.
    """
    if unknown := [name for name in given if name not in accepted and name not in ignored and name not in _AXES]:
        first = min(unknown)[:MAX_SHOWN_CHARS]
        hint = suggest(first, sorted({*accepted, *_AXES}))
        raise HttpError(400, f"unknown fields: {', '.join(sorted(unknown))}{hint}; rename {first!r}, or leave it out")
    return {name: value for name, value in given.items() if value is not None and name in accepted}


def read_number(given: Mapping[str, str], name: str) -> int | None:
    """Return a number of the query string."""
    text = given.get(name)
    if text is None:
        return None
    if not text.isascii() or not text.isdecimal() or len(text) > 9:
        raise HttpError(400, f"{name} must be a whole number, not {text[:40]!r}")
    return int(text)


def read_flag(given: Mapping[str, str], name: str) -> bool:
    """Return a switch of the query string."""
    text = given.get(name, "").casefold()
    if text not in _TRUE + _FALSE:
        raise HttpError(400, f"{name} must be true or false, not {text[:40]!r}")
    return text in _TRUE
