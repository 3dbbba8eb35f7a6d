"""Responses to requests with an `Idempotency-Key`, kept so that a repeated request gets the first response."""

from __future__ import annotations

import hashlib
import math
import sqlite3
import threading
import time
import uuid
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from pathlib import Path

from mem0_core._system.files import make_file, make_folder
from mem0_core._system.records import dataclass
from mem0_core.admin.replies import encode_subject, prepare_reply_file
from mem0_core.server._problems import HttpError

REPLY_SECONDS = 24 * 60 * 60
MAX_REPLIES = 1_000  # of one API key
LEASE_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class RequestIdentity:
    """One request as an idempotency key identifies it.

    Attributes:
        owner: Id of its API key; others' requests with the same idempotency key are different ones.
        name: Its idempotency key.
        request: Digest of its method, path and body.
        secret: Secret of its API key, which seals the response in the file.
        ids: Ids of the memories that the response may contain; without ids, of any.
    """

    owner: str
    name: str
    request: bytes
    secret: str = field(repr=False)
    ids: Mapping[str, str | None] = field(default_factory=dict)

    @property
    def digest(self) -> bytes:
        return hashlib.sha256(f"{self.owner}\n{self.name}".encode()).digest()

    def seal(self, body: bytes) -> bytes:
        """Encrypt a response, or decrypt it.

        The file must not keep readable texts of memories that are deleted later. The key stream depends on the secret
        of the API key, which is stored nowhere, and on the request, so that it is used for one response.
        """
        keyed = hashlib.sha256(b"\0".join((self.secret.encode(), self.name.encode(), self.request))).digest()
        stream = hashlib.shake_256(keyed).digest(len(body))
        return (int.from_bytes(body, "big") ^ int.from_bytes(stream, "big")).to_bytes(len(body), "big")


class ReplyStore:
    """Responses in a file that the processes of one server share; it outlives them.

    A request holds a lease while it is in progress, so that a repeat of it waits. If its process is killed, the lease
    ends, and the repeat is processed.

    Args:
        file: The file; it is created for the first request with an idempotency key.
        clock: Unix seconds.
    """

    def __init__(self, file: Path, clock: Callable[[], float] = time.time) -> None:
        self._file = file
        self._clock = clock
        self._process = uuid.uuid4().hex
        self._lock = threading.Lock()
        self._db: sqlite3.Connection | None = None

    def begin(self, identity: RequestIdentity) -> tuple[int, bytes] | None:
        """Take the lease of a request, and return None; or return the response that it has already.

        Raises:
            HttpError: 409, if it is in progress; 410, if its response was erased; 422, if its key belongs to a
                different request.
        """
        now = self._clock()
        with self._transaction() as db:
            db.execute("DELETE FROM replies WHERE at < ?", (now - REPLY_SECONDS,))
            row = db.execute(
                "SELECT request, status, body, at FROM replies WHERE owner = ? AND name = ?",
                (identity.owner, identity.digest),
            ).fetchone()
            if row is not None:
                request, status, body, at = row
                if request != identity.request:
                    raise HttpError(422, "the Idempotency-Key belongs to a different request; use a new one")
                if status is not None and body is None:
                    raise HttpError(410, "the request was processed, and its response was erased with its subject")
                if status is not None:
                    return status, zlib.decompress(identity.seal(body))
                if at > now:
                    wait = {"Retry-After": str(math.ceil(at - now))}
                    raise HttpError(409, "the request with this Idempotency-Key is in progress", wait)
            db.execute(
                "REPLACE INTO replies (owner, name, request, at, process, subject) VALUES (?, ?, ?, ?, ?, ?)",
                (
                    *(identity.owner, identity.digest, identity.request, now + LEASE_SECONDS, self._process),
                    encode_subject(identity.ids, identity.digest),
                ),
            )
        return None

    def renew(self, identity: RequestIdentity) -> None:
        """Extend the lease of a request that is still in progress."""
        with self._transaction() as db:
            db.execute(
                "UPDATE replies SET at = ? WHERE owner = ? AND name = ? AND process = ? AND status IS NULL",
                (self._clock() + LEASE_SECONDS, identity.owner, identity.digest, self._process),
            )

    def finish(self, identity: RequestIdentity, status: int, body: bytes) -> None:
        """Keep the response of a request, and drop the oldest ones of its owner beyond the maximum.

        If its subject was erased in the meantime, only the status is kept.
        """
        with self._transaction() as db:
            db.execute(
                "UPDATE replies SET status = ?, body = CASE WHEN erased THEN NULL ELSE ? END, at = ?,"
                " subject = CASE WHEN erased THEN subject ELSE ? END WHERE owner = ? AND name = ? AND process = ?",
                (
                    *(status, identity.seal(zlib.compress(body, 1)), self._clock()),
                    *(encode_subject(identity.ids, identity.digest), identity.owner, identity.digest, self._process),
                ),
            )
            db.execute(
                "DELETE FROM replies WHERE owner = ?1 AND status IS NOT NULL AND name IN (SELECT name FROM replies"
                " WHERE owner = ?1 AND status IS NOT NULL ORDER BY at DESC, name LIMIT -1 OFFSET ?2)",
                (identity.owner, MAX_REPLIES),
            )

    def release(self, identity: RequestIdentity) -> None:
        """Forget a request that failed, so that a repeat of it is processed."""
        with self._transaction() as db:
            db.execute(
                "DELETE FROM replies WHERE owner = ? AND name = ? AND process = ? AND status IS NULL",
                (identity.owner, identity.digest, self._process),
            )

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._db is not None:
                self._db.close()
                self._db = None

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            if self._db is None:
                self._db = self._open()
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")

    def _open(self) -> sqlite3.Connection:
        make_folder(self._file.parent)
        make_file(self._file)
        db = sqlite3.connect(self._file, timeout=30.0, isolation_level=None, check_same_thread=False)
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")
        prepare_reply_file(db)
        return db
