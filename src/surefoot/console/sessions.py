"""Who is signed in: sessions of browsers, and links that sign in once.

Only digests of tokens are kept, in the memory of this process: a console that is started anew knows nobody. A link is used up by
the POST of its page, so whatever only follows links can neither use it nor burn it.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
import time
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from surefoot.console.principals import Principal

SESSION_SECONDS: Final = 12 * 3600.0
LINK_SECONDS: Final = 300.0
_MOST: Final = 10_000


class _Kept(Struct, frozen=True):
    principal: Principal
    until: float


class Sessions:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._links: dict[bytes, _Kept] = {}
        self._sessions: dict[bytes, _Kept] = {}

    def link(self, principal: Principal) -> str:
        """A token that signs in once."""
        return self._keep(self._links, principal, LINK_SECONDS)

    def take(self, token: str) -> Principal | None:
        """Whom the link signs in. It is used up."""
        with self._lock:
            kept = self._links.pop(digest(token), None)
        return kept.principal if kept is not None and kept.until > self._clock() else None

    def begin(self, principal: Principal, seconds: float = SESSION_SECONDS) -> str:
        """The token of a new session."""
        return self._keep(self._sessions, principal, min(seconds, SESSION_SECONDS))

    def of(self, token: str) -> Principal | None:
        with self._lock:
            kept = self._sessions.get(digest(token))
        return kept.principal if kept is not None and kept.until > self._clock() else None

    def end(self, token: str) -> None:
        with self._lock:
            self._sessions.pop(digest(token), None)

    def _keep(self, where: dict[bytes, _Kept], principal: Principal, seconds: float) -> str:
        token, now = secrets.token_urlsafe(32), self._clock()
        with self._lock:
            for one in [key for key, kept in where.items() if kept.until <= now]:
                del where[one]
            while len(where) >= _MOST:
                del where[next(iter(where))]
            where[digest(token)] = _Kept(principal, now + seconds)
        return token


def digest(token: str) -> bytes:
    """Found by its digest: how long that takes says nothing about the token."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
