"""This process's sign of life on a PostgreSQL server: one row."""

from __future__ import annotations

import os
import socket
from typing import Final

from surefoot.store.postgres import wire
from surefoot.store.postgres.connection import Connection

_RENEW: Final = b"SELECT surefoot.renew_1($1, $2, $3, $4, $5)"
_LEAVE: Final = b"DELETE FROM surefoot.workers WHERE worker = $1"
_SWEEP: Final = b"DELETE FROM surefoot.workers WHERE expires < clock_timestamp() - interval '1 day'"
_SWEEP_EVERY: Final = 100


class Signs:
    """See `lease.Signs`."""

    def __init__(self, length: wire.Param) -> None:
        self._length = length
        self._renewals = 0

    def renew(self, connection: Connection, name: str, about: str, silence: float) -> int:
        host = wire.text(socket.gethostname())
        params = (wire.text(name), host, wire.integer(os.getpid()), self._length, wire.text(about))
        ((now,),) = connection.ask(_RENEW, params, (wire.to_int,), silence=silence)
        self._renewals += 1
        if self._renewals % _SWEEP_EVERY == 0:
            connection.ask(_SWEEP, silence=silence)
        return int(now)

    def leave(self, connection: Connection, name: str, silence: float) -> None:
        connection.ask(_LEAVE, (wire.text(name),), silence=silence)
