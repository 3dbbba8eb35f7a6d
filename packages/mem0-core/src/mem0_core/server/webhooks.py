"""Webhooks: the change feed, sent to a URL until its receiver acknowledges each page.

The cursor of a webhook is kept in the store, and moves when the receiver has answered with a status of 200 to 299. So
every change arrives at least once and in order, across restarts of both. The signature is that of Standard Webhooks.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import ipaddress
import logging
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import field
from email.message import Message
from typing import IO
from urllib.parse import urlsplit

from pydantic_core import to_json

from mem0_core._system.records import dataclass
from mem0_core.domain.feed import ChangesDict
from mem0_core.domain.records import is_valid_text
from mem0_core.domain.timestamps import utc_now
from mem0_core.errors import ConfigError, Mem0Error
from mem0_core.memory import Memory

_log = logging.getLogger(__name__)

PAGE_CHANGES = 100
POLL_SECONDS = 1.0
FIRST_RETRY_SECONDS = 1.0
MAX_RETRY_SECONDS = 300.0
TIMEOUT_SECONDS = 10.0

_KIND = "webhook"
_MIN_SECRET_CHARS = 16
_OK, _REDIRECTS = 200, 300


@dataclass(frozen=True, slots=True)
class Webhook:
    """One receiver of changes.

    Attributes:
        url: http or https URL that accepts the changes by POST, without a user or password.
        secret: key of the signatures, which the receiver has too.

    Raises:
        ConfigError: The URL is of another form, or the secret is short.
    """

    url: str = field(repr=False)
    secret: str = field(repr=False)

    def __post_init__(self) -> None:
        if not _is_web_url(self.url):
            raise ConfigError(
                "a webhook is an http or https URL without a user and spaces, such as https://example.org/changes"
            )
        if not isinstance(self.secret, str) or len(self.secret) < _MIN_SECRET_CHARS:
            raise ConfigError(f"the secret of a webhook has at least {_MIN_SECRET_CHARS} characters")
        if not is_valid_text(self.secret):
            raise ConfigError("the secret of a webhook holds a lone surrogate; pass another one")

    def __repr__(self) -> str:
        return f"<Webhook {urlsplit(self.url).hostname}>"  # its path and query may contain a token

    @property
    def id(self) -> str:
        """Name of its cursor in the store, without the URL, which may contain a token."""
        return hashlib.blake2b(self.url.encode(), digest_size=16).hexdigest()


def _is_web_url(url: object) -> bool:
    """Return True if requests can be sent to a URL as it is written."""
    if not isinstance(url, str) or not url.isascii() or not url.isprintable() or " " in url:
        return False
    try:
        parts = urlsplit(url)
        has_port = parts.port != 0  # raises ValueError beyond the range
    except ValueError:
        return False
    return has_port and parts.scheme in ("http", "https") and bool(parts.hostname) and "@" not in parts.netloc


def sign_webhook(secret: str, delivery: str, timestamp: str, body: bytes) -> str:
    """Return the value of the header ``webhook-signature`` for a body, its id and its time in Unix seconds."""
    signed = b".".join((delivery.encode(), timestamp.encode(), body))
    return "v1," + base64.b64encode(hmac.digest(secret.encode(), signed, "sha256")).decode()


@contextmanager
def deliver_changes(memory: Memory, webhooks: Iterable[Webhook]) -> Iterator[None]:
    """Send changes to webhooks in threads, until the block ends."""
    ends = threading.Event()
    threads = [threading.Thread(target=_Delivery(memory, one, ends).run, daemon=True) for one in webhooks]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ends.set()
        for thread in threads:
            thread.join(2 * TIMEOUT_SECONDS)


@dataclass(slots=True)
class _Delivery:
    """The deliveries of one webhook. A page that was not acknowledged is sent again, with the same id."""

    memory: Memory
    webhook: Webhook
    ends: threading.Event
    failures: int = 0

    def run(self) -> None:
        while not self.ends.is_set():
            try:
                pause = self._send_next()
            except Mem0Error:
                _log.exception("the changes for a webhook cannot be read")
                pause = self._back_off()
            self.ends.wait(pause)

    def _send_next(self) -> float:
        """Send the next page; return the seconds to wait."""
        registry = self.memory.store.maintenance
        after = int(registry.registry(_KIND).get(self.webhook.id, {}).get("cursor", 0))
        page = self.memory.changes(after=after, limit=PAGE_CHANGES)
        if not page["results"]:
            return POLL_SECONDS
        status = self._post(page)
        if not _OK <= status < _REDIRECTS:
            pause = self._back_off()
            _log.warning("a webhook did not acknowledge (status %d); sent again in %.0f seconds", status, pause)
            return pause
        self.failures = 0
        value = {"cursor": page["cursor"], "at": utc_now()}
        registry.register(_KIND, self.webhook.id, value)
        return 0.0 if len(page["results"]) == PAGE_CHANGES else POLL_SECONDS

    def _back_off(self) -> float:
        self.failures += 1
        return min(MAX_RETRY_SECONDS, FIRST_RETRY_SECONDS * 2.0 ** min(self.failures - 1, 10))

    def _post(self, page: ChangesDict) -> int:
        """Return the status of the reply; 0 without one."""
        body, at = to_json(page), str(int(time.time()))
        delivery = f"{self.webhook.id}-{page['results'][0]['seq']}-{page['cursor']}"
        headers = {
            "Content-Type": "application/json",
            "webhook-id": delivery,
            "webhook-timestamp": at,
            "webhook-signature": sign_webhook(self.webhook.secret, delivery, at, body),
        }
        request = urllib.request.Request(self.webhook.url, body, headers, method="POST")
        try:
            with _opener.open(request, timeout=TIMEOUT_SECONDS) as reply:
                return int(reply.status)
        except urllib.error.HTTPError as error:
            with error:
                return error.code
        except (OSError, http.client.HTTPException, ValueError):
            return 0


class _RefuseRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect could lead the changes to another host; it is a failed delivery."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> None:
        return None


# Where clouds serve the credentials of a host: link-local, and addresses of AWS (IPv6), Azure, Alibaba and Oracle.
_METADATA_NETWORKS = [
    ipaddress.ip_network(one)
    for one in ["169.254.0.0/16", "fe80::/10", "fd00:ec2::/32", "168.63.129.16", "100.100.100.200", "192.0.0.192"]
]
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


def _is_metadata(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """Return True for an address of a metadata service, also as the part of an IPv6 address that leads to it."""
    inner = None
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if address in _NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    return any((inner or address) in network for network in _METADATA_NETWORKS)


class _CheckedConnection(http.client.HTTPConnection):
    """A connection that refuses the addresses where clouds serve the credentials of a host.

    The address is that of the connection, so a name that changes its address does not lead there either.
    """

    def connect(self) -> None:
        super().connect()
        address = ipaddress.ip_address(self.sock.getpeername()[0].partition("%")[0])
        if _is_metadata(address):
            self.close()
            raise OSError("a webhook must not be on the address of a metadata service")


class _CheckedTlsConnection(http.client.HTTPSConnection, _CheckedConnection):
    """A `_CheckedConnection` with TLS; the address is checked before the handshake."""


class _CheckedHttpHandler(urllib.request.HTTPHandler):
    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_CheckedConnection, req)


class _CheckedTlsHandler(urllib.request.HTTPSHandler):
    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_CheckedTlsConnection, req)


_opener = urllib.request.build_opener(_RefuseRedirects, _CheckedHttpHandler, _CheckedTlsHandler)
