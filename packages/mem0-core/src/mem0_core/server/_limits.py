"""Limits of the requests of a key."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from mem0_core.server._problems import HttpError
from mem0_core.server.keys import ApiKey

_MINUTE = 60.0


class RateLimiter:
    """Counts the requests of each key, which may use a minute's number at once and then as many as time allows.

    Args:
        share: Share of each key's rate that this process grants, if several processes serve the same keys.
        clock: Seconds of a clock that never goes back.
    """

    def __init__(self, share: float = 1.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._share = share
        self._clock = clock
        self._full_at: dict[str, float] = {}  # by key: time at which all its requests are available again

    def check(self, key: ApiKey) -> None:
        """Count a request.

        Raises:
            HttpError: 429, with `Retry-After`, if the key has used all its requests.
        """
        if key.requests_per_minute is None:
            return
        seconds = _MINUTE / max(1.0, key.requests_per_minute * self._share)  # until one more is available
        now = self._clock()
        full_at = max(self._full_at.get(key.id, now), now) + seconds
        if full_at - now > _MINUTE + seconds / 2:  # half of one: rounding must not refuse the last
            headers = {
                "Retry-After": str(max(1, math.ceil(full_at - now - _MINUTE))),
                "X-RateLimit-Limit": str(key.requests_per_minute),
                "X-RateLimit-Remaining": "0",
            }
            raise HttpError(429, f"the API key may send {key.requests_per_minute} requests per minute", headers)
        self._full_at[key.id] = full_at
