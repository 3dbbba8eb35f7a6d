"""Webhooks: changes arrive signed, in order, and again until they are acknowledged."""

from __future__ import annotations

import hmac
import json
import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from mem0_core.errors import ConfigError
from mem0_core.server import webhooks
from mem0_core.server._replies import RequestIdentity
from mem0_core.server.keys import KeyRing
from mem0_core.server.webhooks import Webhook, deliver_changes, sign_webhook
from tests.support import open_memory

SECRET = "a secret of the tests"
WAIT_SECONDS = 120


class Receiver:
    """A server that answers with the given statuses in turn, then with 204."""

    def __init__(self, *statuses: int) -> None:
        self.statuses = list(statuses)
        self.received: queue.Queue[tuple[dict[str, str], bytes]] = queue.Queue()
        self.url = ""

    def take(self) -> list[dict[str, Any]]:
        """Return the changes of the next request, whose signature is checked."""
        headers, body = self.received.get(timeout=WAIT_SECONDS)
        expected = sign_webhook(SECRET, headers["webhook-id"], headers["webhook-timestamp"], body)
        assert hmac.compare_digest(headers["webhook-signature"], expected)
        changes: list[dict[str, Any]] = json.loads(body)["results"]
        return changes

    @contextmanager
    def serve(self) -> Iterator[None]:
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                # before the response, as the next request may come in another thread
                receiver.received.put(({name.lower(): value for name, value in self.headers.items()}, body))
                status = receiver.statuses.pop(0) if receiver.statuses else 204
                self.send_response(status)
                if status == 302:
                    self.send_header("Location", receiver.url)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                pass

        with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
            self.url = f"http://127.0.0.1:{server.server_address[1]}/changes"
            thread = threading.Thread(target=server.serve_forever)
            thread.start()
            yield
            server.shutdown()
            thread.join()


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("POLL_SECONDS", "FIRST_RETRY_SECONDS", "MAX_RETRY_SECONDS"):
        monkeypatch.setattr(webhooks, name, 0.01)


def test_changes_arrive_until_they_are_acknowledged_and_then_never_again(tmp_path: Path) -> None:
    receiver = Receiver(500, 302, 404)
    with receiver.serve(), open_memory(tmp_path) as memory:
        first = memory.add("I like tea", user_id="ana", infer=False)["results"][0]["id"]
        with deliver_changes(memory, [Webhook(receiver.url, SECRET)]):
            tries = [receiver.take() for _ in range(4)]
            assert [[one["memory_id"] for one in changes] for changes in tries] == [[first]] * 4
            second = memory.add("I ski", user_id="ben", infer=False)["results"][0]["id"]
            assert [one["memory_id"] for one in receiver.take()] == [second]


def test_a_delivery_continues_after_a_restart(tmp_path: Path) -> None:
    receiver = Receiver()
    with receiver.serve():
        seen: list[str] = []
        for number in range(3):
            with open_memory(tmp_path) as memory:
                memory.add(f"I know song {number}", user_id="ana", infer=False)
                with deliver_changes(memory, [Webhook(receiver.url, SECRET)]):
                    seen += [one["memory_id"] for one in receiver.take()]
        with open_memory(tmp_path) as memory:
            changes = [one["memory_id"] for one in memory.changes()["results"]]
    assert list(dict.fromkeys(seen)) == changes


def test_pages_arrive_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhooks, "PAGE_CHANGES", 2)
    receiver = Receiver(503)
    with receiver.serve(), open_memory(tmp_path) as memory:
        added = [memory.add(f"song {n}", user_id="ana", infer=False)["results"][0]["id"] for n in range(5)]
        with deliver_changes(memory, [Webhook(receiver.url, SECRET)]):
            pages = [[one["memory_id"] for one in receiver.take()] for _ in range(4)]
    assert pages == [added[:2], added[:2], added[2:4], added[4:]]


def test_a_webhook_shows_no_secret_and_refuses_a_weak_one() -> None:
    assert SECRET not in repr(Webhook("https://example.org/changes", SECRET))
    for url, secret in (("ftp://example.org", SECRET), ("https://", SECRET), ("https://example.org", "short")):
        with pytest.raises(ConfigError, match="webhook") as raised:
            Webhook(url, secret)
        assert secret not in str(raised.value)


@pytest.mark.parametrize(
    "url",
    [
        *("http://[::1", "http://example.org:99999/", "http://example.org:port/", "https://user:pass@example.org/"),
        *("https://example.org/a b", "https://example.org/\r\nHost: other", "ftp://example.org/", "file:///etc/passwd"),
        *("http://\u0435xample.org/", "http:///changes", "", None, 3, b"https://example.org/"),
    ],
)
def test_a_url_that_cannot_be_sent_to_is_refused(url: Any) -> None:
    with pytest.raises(ConfigError, match="a webhook is an http or https URL"):
        Webhook(url, SECRET)


@pytest.mark.parametrize("secret", ["short", None, 3, "\ud800" * 20])
def test_an_unusable_secret_is_refused(secret: Any) -> None:
    with pytest.raises(ConfigError, match="the secret of a webhook"):
        Webhook("https://example.org/", secret)


def test_the_texts_of_keys_and_webhooks_show_no_secret(tmp_path: Path) -> None:
    hook = Webhook("https://example.org/changes/token-in-the-path?key=token-in-the-query", SECRET)
    secret, key = KeyRing(tmp_path / "keys.json").create("maya")
    identity = RequestIdentity(key.id, "a1", b"r", secret)
    shown = f"{hook} {hook!r} {webhooks._Delivery(None, hook, None)} {key} {key!r} {identity}"  # type: ignore[arg-type]
    assert not [word for word in ("token", SECRET, secret, key.digest) if word in shown]


@pytest.mark.parametrize(
    "address",
    [
        *("169.254.169.254", "fe80::1%eth0", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::1"),
        *("fd00:ec2::254", "168.63.129.16", "100.100.100.200", "192.0.0.192"),
    ],
)
def test_changes_are_not_sent_to_a_metadata_service(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Socket:
        sent = b""

        def getpeername(self) -> tuple[str, int]:
            return address, 80

        def setsockopt(self, *_: object) -> None:
            pass

        def sendall(self, data: bytes) -> None:
            self.sent += data

        def close(self) -> None:
            pass

    reached = Socket()
    monkeypatch.setattr("socket.create_connection", lambda *_, **__: reached)
    delivery = webhooks._Delivery(None, Webhook("http://metadata.example/", SECRET), threading.Event())  # type: ignore[arg-type]
    assert delivery._post({"results": [{"seq": 1}], "cursor": 1}) == 0  # type: ignore[typeddict-item]
    assert reached.sent == b""
