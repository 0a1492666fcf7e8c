"""A network that fails when told to: a TCP proxy before a real server."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Self

PASS = "pass"
CUT_BEFORE = "cut before"
"""The next request does not arrive."""
CUT_AFTER = "cut after"
"""The next request arrives and is answered; the answer does not."""
HOLD = "hold"
"""The next request is kept, for `release`; its sender hears nothing."""
FREEZE = "freeze"
"""Nothing moves, in either direction, on any connection."""


class _Line:
    def __init__(self, client: socket.socket, upstream: socket.socket) -> None:
        self.client = client
        self.upstream = upstream
        self.muted = False
        self.heard = threading.Event()
        """The server answered something that the client did not get."""

    def close(self) -> None:
        for one in (self.client, self.upstream):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()


class Proxy:
    """A mode holds for the next request that `which` accepts, and is PASS again afterwards (but for FREEZE)."""

    def __init__(self, port: int) -> None:
        self._target = port
        self.mode = PASS
        self._which: Callable[[bytes], bool] = _any
        self.struck = threading.Event()
        self._held: list[tuple[_Line, bytes]] = []
        self._lines: list[_Line] = []
        self._over = False
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def arm(self, mode: str, which: Callable[[bytes], bool] | None = None) -> None:
        self.struck.clear()
        self._which, self.mode = which or _any, mode

    def release(self) -> None:
        """What was held arrives after all. Returns when it was answered."""
        for line, data in self._held:
            line.upstream.sendall(data)
            assert line.heard.wait(10)

    def close(self) -> None:
        self._over = True
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for line in self._lines:
            line.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                try:
                    line = _Line(client, socket.create_connection(("127.0.0.1", self._target)))
                except OSError:
                    client.close()
                    continue
                self._lines.append(line)
                for target in (self._up, self._down):
                    threading.Thread(target=target, args=(line,), daemon=True).start()

    def _up(self, line: _Line) -> None:
        with suppress(OSError):
            while data := line.client.recv(65536):
                self._thaw()
                mode = self.mode if self.mode != PASS and self._which(data) else PASS
                if mode != PASS:
                    self.mode = PASS
                    line.muted = mode in (CUT_AFTER, HOLD)
                if mode == HOLD:
                    self._held.append((line, data))
                    self.struck.set()
                    return
                if mode == CUT_BEFORE:
                    self.struck.set()
                    break
                line.upstream.sendall(data)
                if mode == CUT_AFTER:
                    line.heard.wait(10)
                    self.struck.set()
                    break
        line.close()

    def _down(self, line: _Line) -> None:
        with suppress(OSError):
            while data := line.upstream.recv(65536):
                self._thaw()
                if line.muted:
                    line.heard.set()
                else:
                    line.client.sendall(data)
        line.close()

    def _thaw(self) -> None:
        while self.mode == FREEZE and not self._over:
            time.sleep(0.005)


def _any(_: bytes) -> bool:
    return True
