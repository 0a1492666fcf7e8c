"""This process's sign of life on a Redis server: the end of its lease, by the server's clock."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Sequence

import msgspec
from msgspec import Struct

from surefoot.store.failure import Lost
from surefoot.store.redis.connection import Connection, Reply
from surefoot.store.redis.scripts import LIFE


class Sign(Struct, frozen=True):
    """A process's description of itself."""

    host: str
    pid: int
    about: str = ""


class Signs:
    """See `lease.Signs`."""

    def __init__(self, store: Callable[[], bytes], length: bytes) -> None:
        self._store = store
        self._length = length

    def renew(self, connection: Connection, name: str, about: str, silence: float) -> int:
        sign = msgspec.json.encode(Sign(socket.gethostname(), os.getpid(), about))
        now: int = self._asked(connection, (b"renew", name.encode(), self._length, sign), silence)[1]
        return now

    def leave(self, connection: Connection, name: str, silence: float) -> None:
        self._asked(connection, (b"leave", name.encode()), silence)

    def _asked(self, connection: Connection, args: Sequence[bytes], silence: float) -> Reply:
        reply = connection.run(LIFE, (self._store(), b"0", b"", *args), silence=silence)[0]
        if reply[0] != b"ok":  # the lease runs out, and no effect begins; reading and writing say what is missing
            raise Lost("the store is not there any more, or not complete")
        return reply
