"""Errors of the REST interface: problem documents (RFC 9457), and the status of each error of the library."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from http import HTTPStatus
from typing import Any

from mem0_core.errors import (
    AccessError,
    CapabilityError,
    LimitError,
    Mem0Error,
    ModelError,
    NotFoundError,
    StoreError,
)

PROBLEM_TYPE = "application/problem+json"


class HttpError(Exception):
    """A response that is an error.

    Attributes:
        status: HTTP status.
        detail: The reason, for the caller.
        headers: More headers of the response.
    """

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.headers = dict(headers or {})
        if status == HTTPStatus.UNAUTHORIZED:
            self.headers.setdefault("WWW-Authenticate", "Bearer")

    def as_dict(self) -> dict[str, str | int]:
        """Return the problem document; clients of mem0 read `detail`."""
        return {"status": self.status, "title": HTTPStatus(self.status).phrase, "detail": self.detail}


_STATUS: tuple[tuple[type[Exception], HTTPStatus], ...] = (
    (NotFoundError, HTTPStatus.NOT_FOUND),
    (AccessError, HTTPStatus.FORBIDDEN),
    (LimitError, HTTPStatus.TOO_MANY_REQUESTS),
    (CapabilityError, HTTPStatus.NOT_IMPLEMENTED),
    (ModelError, HTTPStatus.BAD_GATEWAY),
    (StoreError, HTTPStatus.SERVICE_UNAVAILABLE),
    (ValueError, HTTPStatus.BAD_REQUEST),
    (TypeError, HTTPStatus.BAD_REQUEST),
)


def find_problem(error: Exception) -> HttpError:
    """Return the problem of an error; the text of an error that is not the library's stays in the log."""
    if isinstance(error, HttpError):
        return error
    if isinstance(error, Mem0Error):
        for kind, status in _STATUS:
            if isinstance(error, kind):
                return HttpError(status, str(error))
    return HttpError(HTTPStatus.INTERNAL_SERVER_ERROR, "the server failed; its log has the reason")


async def send_problem(problem: HttpError, send: Callable[[MutableMapping[str, Any]], Awaitable[None]]) -> None:
    """Send a problem as the response of an ASGI application."""
    body = json.dumps(problem.as_dict()).encode()
    headers = {"Content-Type": PROBLEM_TYPE, "Content-Length": str(len(body)), **problem.headers}
    encoded = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": problem.status, "headers": encoded})
    await send({"type": "http.response.body", "body": body})
