"""How a PostgreSQL server is told that this process lives: one row, on a connection of its own."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from typing import Final

from surefoot.store.postgres import wire
from surefoot.store.postgres.connection import Connection

_RENEW: Final = b"SELECT surefoot.renew_1($1, $2, $3, $4, $5)"
_LEAVE: Final = b"DELETE FROM surefoot.workers WHERE worker = $1"
_SWEEP: Final = b"DELETE FROM surefoot.workers WHERE expires < clock_timestamp() - interval '1 day'"
_SWEEP_EVERY: Final = 100


class Signs:
    """See `lease.Signs`."""

    def __init__(self, open_: Callable[[], Connection], length: wire.Param) -> None:
        self._open = open_
        self._length = length
        self._connection: Connection | None = None
        self._renewals = 0

    def connect(self) -> None:
        self._connected()

    def renew(self, name: str, about: str, silence: float) -> int:
        connection = self._connected()
        host = wire.text(socket.gethostname())
        params = (wire.text(name), host, wire.integer(os.getpid()), self._length, wire.text(about))
        ((now,),) = connection.ask(_RENEW, params, (wire.to_int,), silence=silence)
        self._renewals += 1
        if self._renewals % _SWEEP_EVERY == 0:
            connection.ask(_SWEEP, (), (), silence=silence)
        return int(now)

    def leave(self, name: str, silence: float) -> None:
        if self._connection is not None:
            self._connection.ask(_LEAVE, (wire.text(name),), (), silence=silence)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _connected(self) -> Connection:
        if self._connection is None or self._connection.closed:
            self._connection = self._open()
        return self._connection
