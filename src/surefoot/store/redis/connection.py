"""One connection to a Redis server, with a limit to every wait.

The driver connects: addresses, passwords, TLS. From then on requests and answers are ours: several requests are sent at
once, and every answer is read. If the connection breaks or the server is silent for too long, the connection is given up
with `Lost`: what was sent may have been carried out. `Rejected` is the server's answer that it was not.
"""

from __future__ import annotations

import re
import select
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any, Final

from surefoot.errors import UsageError
from surefoot.store.failure import Lost, Rejected
from surefoot.store.listener import readable
from surefoot.store.redis.address import Address
from surefoot.store.redis.scripts import Script

Command = Sequence[bytes]
Reply = Any
"""Bytes, a whole number, None, a list of replies; or `Rejected`."""

_GONE: Final = frozenset({"READONLY", "LOADING", "MASTERDOWN", "MOVED", "ASK", "UNBLOCKED"})
"""This server does not do it, and another one, or the same one later, may."""
_READ_BYTES: Final = 65536
_IN_SCRIPT: Final = re.compile(r"ERR Error running script .*?: -([A-Z]+) ")


def driver(part: str) -> Any:
    try:
        return import_module(part)  # no import statement: its types are not at hand everywhere
    except ImportError:
        raise UsageError("a store in Redis needs redis-py: pip install 'surefoot[redis]'") from None


class Route:
    """Where the server is at present: a cluster says when it is elsewhere, sentinels know after a failover."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._moved: tuple[str, int] | None = None

    @property
    def is_elsewhere(self) -> bool:
        """Whether the server that the URL names has said which other one has the store."""
        return self._moved is not None

    def server(self, seconds: float) -> tuple[str, int]:
        if self._address.sentinels:
            return self._primary(seconds)
        return self._moved or (self._address.host, self._address.port)

    def moved(self, text: str) -> None:
        host, _, port = text.rsplit(maxsplit=1)[-1].rpartition(":")
        if port.isdecimal():
            self._moved = (host or self._address.host, int(port))

    def failed(self) -> None:
        """That server is away: the one that the URL names may know better."""
        self._moved = None

    def _primary(self, seconds: float) -> tuple[str, int]:
        sentinel = driver("redis.sentinel")
        errors = driver("redis.exceptions")
        known = sentinel.Sentinel(
            self._address.sentinels, socket_timeout=seconds, socket_connect_timeout=seconds, protocol=2
        )
        try:
            host, port = known.discover_master(self._address.service)
        except (errors.RedisError, OSError) as error:
            raise Lost(_said(error)) from None
        finally:
            for each in known.sentinels:
                each.close()
        return str(host), int(port)


class Connection:
    """Used by one thread at a time."""

    def __init__(self, address: Address, route: Route, *, seconds: float, silence: float) -> None:
        """Connect. `Lost`, if that fails, or takes longer than `seconds`. `silence`: how long an answer may take."""
        self._address = address
        self._route = route
        self._silence = silence
        self._buffer = bytearray()
        self._closed = False
        self._owner = self._connected(seconds)
        self._socket = self._owner._sock
        self._limit = 0.0
        self._wait_at_most(silence)

    def _connected(self, seconds: float) -> Any:
        kinds, errors, address = driver("redis.connection"), driver("redis.exceptions"), self._address
        common = {
            "db": address.db, "username": address.username, "password": address.password, "protocol": 2,
            "socket_timeout": seconds,
        }  # fmt: skip
        if address.path:
            made = kinds.UnixDomainSocketConnection(path=address.path, **common)
        else:
            host, port = self._route.server(seconds)
            kind = kinds.SSLConnection if address.tls else kinds.Connection
            try:
                made = kind(
                    host=host, port=port, socket_connect_timeout=seconds, socket_keepalive=True, **common,
                    **address.options,
                )  # fmt: skip
            except TypeError as error:
                raise UsageError(f"{address.shown}: {error}") from None
        try:
            made.connect()
        except (errors.AuthenticationError, errors.AuthorizationError, errors.NoPermissionError) as error:
            raise Rejected("NOAUTH", self._hidden(error)) from None
        except (errors.RedisError, OSError) as error:
            self._route.failed()
            raise Lost(self._hidden(error)) from None
        return made

    def ask(self, *commands: Command, silence: float = 0) -> list[Reply]:
        """The answers to all of them; a refusal stands in its place. `Lost`, after `silence` seconds without a byte."""
        if self._closed:
            raise Lost("the connection was closed")
        try:
            self._wait_at_most(silence or self._silence)
            self._socket.sendall(b"".join(map(_packed, commands)))
            return [self._reply() for _ in commands]
        except TimeoutError:
            self.close()
            raise Lost(f"no answer for {silence or self._silence:g} s") from None
        except (OSError, ValueError) as error:
            self.close()
            raise Lost(self._hidden(error)) from None
        except BaseException:
            self.close()  # in the middle of an exchange: the next request must not read this one's answer
            raise

    def _wait_at_most(self, seconds: float) -> None:
        if seconds != self._limit:  # setting it costs a system call
            self._socket.settimeout(seconds)
            self._limit = seconds

    def ask_one(self, *words: bytes, silence: float = 0) -> Reply:
        """The answer to one command; raises its refusal."""
        return self.accepted(self.ask(words, silence=silence)[0])

    def run(self, script: Script, args: Sequence[bytes], *behind: Command, silence: float = 0) -> list[Reply]:
        """The answer of a script, and those of commands that are sent right behind it. Raises the script's refusal."""
        key = f"{self._address.prefix}meta".encode()
        replies = self.ask((b"EVALSHA", script.digest, b"1", key, *args), *behind, silence=silence)
        if isinstance(replies[0], Rejected) and replies[0].code == "NOSCRIPT":
            replies = self.ask((b"EVAL", script.text, b"1", key, *args), *behind, silence=silence)
        self.accepted(replies[0])
        return replies

    def accepted(self, reply: Reply) -> Reply:
        """The answer, unless it is a refusal."""
        if not isinstance(reply, Rejected):
            return reply
        if reply.code in _GONE:
            if reply.code in ("MOVED", "ASK"):
                self._route.moved(str(reply))
            self.close()
            raise Lost(str(reply))
        raise reply

    def wait_for_notice(self, seconds: float, *also: int) -> bool:
        """Whether a message came; or one of the other descriptors became readable, or the time is up."""
        try:
            if not self._buffer and not readable(seconds, self._socket.fileno(), *also):
                return False
            return self._messages()
        except (OSError, ValueError) as error:
            self.close()
            raise Lost(self._hidden(error)) from None

    def _messages(self) -> bool:
        poll, found = select.poll(), False
        poll.register(self._socket, select.POLLIN)
        while self._buffer or poll.poll(0):
            self._wait_at_most(self._silence)
            self._reply()
            found = True
        return found

    # --- answers -----------------------------------------------------------------------------------

    def _reply(self) -> Reply:
        line = self._line()
        kind, rest = line[:1], line[1:]
        match kind:
            case b"$":
                size = int(rest)
                return None if size < 0 else self._bytes(size)
            case b"*":
                return None if rest == b"-1" else [self._reply() for _ in range(int(rest))]
            case b":":
                return int(rest)
            case b"+":
                return rest
            case b"-":
                text = self._address.url.hide(rest.decode("utf-8", "replace"))
                return Rejected(_code(text), text)
            case _:
                raise ConnectionError("the answer is not in the protocol of Redis")

    def _line(self) -> bytes:
        while (end := self._buffer.find(b"\r\n")) < 0:
            self._fill()
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 2]
        return line

    def _bytes(self, size: int) -> bytes:
        while len(self._buffer) < size + 2:
            self._fill()
        found = bytes(self._buffer[:size])
        del self._buffer[: size + 2]
        return found

    def _fill(self) -> None:
        data = self._socket.recv(_READ_BYTES)
        if not data:
            raise ConnectionError("the connection was closed")
        self._buffer += data

    # --- the end -----------------------------------------------------------------------------------

    @property
    def closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        self._closed = True
        with suppress(Exception):
            self._owner.disconnect()

    def _hidden(self, error: BaseException) -> str:
        return self._address.url.hide(_said(error))


def _code(text: str) -> str:
    """What kind of refusal it is. Older servers say inside what a script met."""
    inside = _IN_SCRIPT.match(text)
    return inside[1] if inside else text.partition(" ")[0]


def _said(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _packed(words: Command) -> bytes:
    pieces = [b"*%d\r\n" % len(words)]
    pieces += [b"$%d\r\n%b\r\n" % (len(word), word) for word in words]
    return b"".join(pieces)
