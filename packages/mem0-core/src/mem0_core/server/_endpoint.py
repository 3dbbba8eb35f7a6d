"""Endpoints of the routes: each checks the key and its limits, calls a handler once, and converts its errors."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache
from importlib import import_module
from typing import Any

from pydantic_core import PydanticSerializationError, to_json

from mem0_core.server._limits import RateLimiter
from mem0_core.server._problems import PROBLEM_TYPE, HttpError, find_problem
from mem0_core.server._replies import LEASE_SECONDS, ReplyStore, RequestIdentity
from mem0_core.server._requests import BODY, authenticate, find_secret, read_body
from mem0_core.server._routes import Route
from mem0_core.server.keys import ApiKey, KeyRing

_log = logging.getLogger(__name__)

Handler = Callable[[Any, ApiKey], Awaitable[Any]]
Endpoint = Callable[[Any], Awaitable[Any]]

MAX_IDEMPOTENCY_KEY_CHARS = 255

_IDENTITY = "mem0_core.identity"  # in the scope of a request with an idempotency key
_TRANSIENT = (408, 409, 413, 429)  # a repeat of the request may succeed


class Endpoints:
    """Makes endpoints of handlers.

    Args:
        keys: Keys of the callers; None lets every caller do everything.
        replies: Responses to requests with an idempotency key.
        limiter: Limits of the requests of a key.
    """

    def __init__(self, keys: KeyRing | None, replies: ReplyStore, limiter: RateLimiter) -> None:
        self._keys = keys
        self._replies = replies
        self._limiter = limiter

    def build(self, route: Route, handler: Handler) -> Endpoint:
        """Return the endpoint of a route: a function from a request to a response."""

        async def endpoint(request: Any) -> Any:
            try:
                key = self._admit(route, request)
                if route.body is not None:
                    request.scope[BODY] = await read_body(request.receive, key.max_body_bytes)
                name = request.headers.get("idempotency-key") if route.is_write else None
                if name is None:
                    return respond(await handler(request, key))
                return await self._answer_once(self._identify(name, request, key), request, key, handler)
            except Exception as error:  # noqa: BLE001 - every error becomes a response
                problem = find_problem(error)
                if problem.status >= 500:
                    _log.error("%s %r failed", request.method, request.url.path, exc_info=error)
                return respond_problem(problem)

        return endpoint

    def _admit(self, route: Route, request: Any) -> ApiKey:
        """Return the key of a request.

        Raises:
            HttpError: 401, without a valid key; 403, if it may only read; 429, beyond its rate.
        """
        key = authenticate(request.headers, None if route.is_public else self._keys)
        self._limiter.check(key)
        if route.is_write and key.is_read_only:
            raise HttpError(403, "the API key may only read")
        return key

    def _identify(self, name: str, request: Any, key: ApiKey) -> RequestIdentity:
        if not 0 < len(name) <= MAX_IDEMPOTENCY_KEY_CHARS:
            raise HttpError(400, f"an Idempotency-Key has 1 to {MAX_IDEMPOTENCY_KEY_CHARS} characters")
        target = f"{request.method} {request.url.path}?{request.url.query}\n".encode()
        digest = hashlib.sha256(target + request.scope.get(BODY, b"")).digest()
        return RequestIdentity(key.id, name, digest, find_secret(request.headers), key.ids)

    async def _answer_once(self, identity: RequestIdentity, request: Any, key: ApiKey, handler: Handler) -> Any:
        """Call a handler unless the request has a response already."""
        known = await asyncio.to_thread(self._replies.begin, identity)
        if known is not None:
            return _build(known[1], known[0], {"Idempotent-Replayed": "true"})
        request.scope[_IDENTITY] = identity
        renewal = asyncio.create_task(self._renew(identity))
        try:
            try:
                response = respond(await handler(request, key))
            except Exception as error:
                problem = find_problem(error)
                if problem.status >= 500 or problem.status in _TRANSIENT:
                    await asyncio.to_thread(self._replies.release, identity)
                    raise
                response = respond_problem(problem)
            identity = request.scope[_IDENTITY]
            await asyncio.to_thread(self._replies.finish, identity, response.status_code, bytes(response.body))
            return response
        finally:
            renewal.cancel()

    async def _renew(self, identity: RequestIdentity) -> None:
        while True:
            await asyncio.sleep(LEASE_SECONDS / 3)
            with suppress(Exception):  # the lease ends by itself
                await asyncio.to_thread(self._replies.renew, identity)


def name_messages(messages: Any, request: Any) -> Any:
    """Give the messages of a request with an idempotency key ids.

    The store leaves out messages with an id that it has. If the server was killed between the commit and its response,
    a repeat of the request therefore adds nothing twice.
    """
    identity: RequestIdentity | None = request.scope.get(_IDENTITY)
    if identity is None:
        return messages
    if isinstance(messages, str):
        messages = {"role": "user", "content": messages}
    rows = messages if isinstance(messages, list) else [messages]
    prefix = identity.digest.hex()[:32]
    return [{"id": f"{prefix}-{place}", **row} if isinstance(row, dict) else row for place, row in enumerate(rows)]


def name_subject(request: Any, ids: Mapping[str, object]) -> None:
    """Record the ids of the memories in the response to a request, by which an erasure finds it."""
    identity: RequestIdentity | None = request.scope.get(_IDENTITY)
    if identity is not None:
        request.scope[_IDENTITY] = replace(
            identity, ids={axis: value for axis, value in ids.items() if isinstance(value, str)}
        )


def respond(content: Any, status: int = 200) -> Any:
    """Return the response with some content as JSON; content that is a response already is returned as it is."""
    if callable(content):
        return content
    return _build(_encode(content), status)


def respond_problem(problem: HttpError) -> Any:
    """Return the response of an error."""
    return _build(_encode(problem.as_dict()), problem.status, problem.headers)


def _encode(content: Any) -> bytes:
    """Return JSON, in a fifth of the time of the standard library; a number that JSON has not is null."""
    if isinstance(content, dict):
        content = dict(content)  # a result with a view for notebooks is of a subclass, and takes half as long again
    try:
        return to_json(content, inf_nan_mode="null")
    except (PydanticSerializationError, UnicodeEncodeError):  # a lone surrogate
        return json.dumps(content, separators=(",", ":")).encode()


def _build(body: bytes, status: int, headers: dict[str, str] | None = None) -> Any:
    kind = "application/json" if status < 400 else PROBLEM_TYPE
    return _response_class()(body, status, headers, kind)


@cache
def _response_class() -> Any:
    return import_module("starlette.responses").Response
