"""Sessions of browsers: the key of each, and the memories that it deleted."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

from mem0_core._system.records import dataclass
from mem0_core.server.keys import ApiKey, KeyRing

MAX_SESSIONS = 256
MAX_DELETED = 20
SESSION_SECONDS = 12 * 3600.0
TOKEN_SECONDS = 600.0


@dataclass(slots=True)
class Session:
    """One browser.

    Attributes:
        id: Secret in its cookie.
        key: Key that it acts with.
        used_at: Time of its last request.
        note: Sentence for its next page.
        deleted: The last memories that it deleted, for undo, by id.
        receipts: The receipts of its erasures.
        erasures: Ids of all erasures of the store, as it last saw them.
    """

    id: str = field(repr=False)
    key: ApiKey
    used_at: float
    note: str = ""
    deleted: OrderedDict[str, Mapping[str, Any]] = field(default_factory=OrderedDict)
    receipts: list[Mapping[str, Any]] = field(default_factory=list)
    erasures: frozenset[str] = frozenset()

    @property
    def form_token(self) -> str:
        """Token of its forms: a page of another origin cannot know it."""
        return hmac.new(self.id.encode(), b"form", hashlib.sha256).hexdigest()

    def is_form_token(self, given: str) -> bool:
        """Return True for the token of its forms."""
        return hmac.compare_digest(self.form_token.encode(), given.encode(errors="replace"))

    def take_note(self) -> str:
        """Return the note once."""
        note, self.note = self.note, ""
        return note

    def keep_deleted(self, memory: Mapping[str, Any]) -> None:
        """Keep a deleted memory for undo."""
        self.deleted[memory["id"]] = memory
        while len(self.deleted) > MAX_DELETED:
            self.deleted.popitem(last=False)

    def drop_erased(self, erasures: frozenset[str]) -> None:
        """Drop the deleted memories if there was an erasure since they were deleted: they may be of its subject."""
        if erasures - self.erasures:
            self.deleted.clear()
        self.erasures = erasures


class Sessions:
    """The sessions of one process; each ends when it was unused for long, or with its key.

    Args:
        keys: Keys to begin a session with. None lets every browser begin one.
        local: Key of the sessions that begin with a one-time token, or without a key.
        is_open: Begin a session without a key or a token.
        clock: Source of the time.
    """

    def __init__(
        self,
        keys: KeyRing | None,
        *,
        local: ApiKey | None = None,
        is_open: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._keys, self._clock = keys, clock
        self._local = local if local is not None else ApiKey("local", "local", "")
        self.is_open = is_open
        self._sessions: OrderedDict[str, Session] = OrderedDict()
        self._tokens: dict[str, float] = {}

    def issue_token(self) -> str:
        """Return a token that begins one session."""
        token = secrets.token_urlsafe(32)
        self._tokens[_digest(token)] = self._clock() + TOKEN_SECONDS
        return token

    def redeem(self, token: str) -> Session | None:
        """Return a new session for a token, which ends with it; None for an unknown, used or old one."""
        until = self._tokens.pop(_digest(token), None)
        return None if until is None or until < self._clock() else self.begin(self._local)

    def begin_with_key(self, secret: str) -> Session | None:
        """Return a new session for an API key, or None if it is unknown."""
        key = None if self._keys is None else self._keys.find(secret)
        return None if key is None else self.begin(key)

    def begin(self, key: ApiKey | None = None) -> Session:
        """Return a new session."""
        session = Session(secrets.token_urlsafe(32), self._local if key is None else key, self._clock())
        self._sessions[_digest(session.id)] = session
        while len(self._sessions) > MAX_SESSIONS:
            self._sessions.popitem(last=False)
        return session

    def find(self, session_id: str) -> Session | None:
        """Return a session in use; none for a revoked key."""
        digest = _digest(session_id)
        session = self._sessions.get(digest)
        if session is None:
            return None
        is_over = self._clock() - session.used_at > SESSION_SECONDS
        is_revoked = bool(session.key.digest) and (
            self._keys is None or all(session.key != key for key in self._keys.keys)
        )
        if is_over or is_revoked:
            del self._sessions[digest]
            return None
        session.used_at = self._clock()
        self._sessions.move_to_end(digest)
        return session

    def end(self, session: Session) -> None:
        """End a session."""
        self._sessions.pop(_digest(session.id), None)


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode(errors="replace")).hexdigest()
