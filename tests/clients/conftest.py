"""A server on loopback that answers as it is asked to by the path, and counts the requests it has read."""

from __future__ import annotations

import socket
import threading

import pytest

from surefoot.store.open import close_all

BODY = b'{"id": "x", "error": {"message": "no", "type": "t"}}'


class Server:
    """`/402` answers 402, `/silent` nothing, `/cut` closes, `/half` closes within the answer, `/away` redirects to a
    port that refuses. `/500-404` answers 500 the first time, 404 the second; `/cut-404` closes the first time.
    """

    def __init__(self, refused: int) -> None:
        self._refused = refused
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self.requests: list[str] = []
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self._open.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            path = _read_request(connection)
            if not path:
                connection.close()
                return
            self.requests.append(path)
            self._answer(connection, path.rstrip("/").rpartition("/")[2].partition("?")[0])
        except OSError:
            connection.close()

    def _answer(self, connection: socket.socket, how: str) -> None:
        first, _, then = how.partition("-")
        if then.isdigit():
            how = then if sum(path.endswith(how) for path in self.requests) > 1 else first
        if how == "silent":
            return
        if how == "half":
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\nContent-Type: application/json\r\n\r\n{")
        elif how == "away":
            place = f"http://127.0.0.1:{self._refused}/"
            connection.sendall(f"HTTP/1.1 302 Found\r\nLocation: {place}\r\nContent-Length: 0\r\n\r\n".encode())
        elif how == "to-404":
            connection.sendall(
                b"HTTP/1.1 302 Found\r\nLocation: /404\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            )
        elif how != "cut":
            head = f"HTTP/1.1 {how} Said\r\nContent-Length: {len(BODY)}\r\nContent-Type: application/json\r\n"
            connection.sendall(head.encode() + b"Connection: close\r\n\r\n" + BODY)
        connection.shutdown(socket.SHUT_RDWR)
        connection.close()

    def close(self) -> None:
        self._socket.close()
        for connection in self._open:
            connection.close()


def _read_request(connection: socket.socket) -> str:
    raw = b""
    while b"\r\n\r\n" not in raw:
        piece = connection.recv(65536)
        if not piece:
            return ""
        raw += piece
    head, _, body = raw.partition(b"\r\n\r\n")
    headers = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
    length = int(headers.get(b"content-length", b"0"))
    while len(body) < length:
        body += connection.recv(65536)
    return head.split(b" ")[1].decode()


@pytest.fixture
def refused() -> int:
    """A port of loopback where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


@pytest.fixture
def server(refused):
    server = Server(refused)
    yield server
    server.close()


@pytest.fixture(autouse=True)
def _own_store():
    yield
    close_all()
