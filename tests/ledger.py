"""The world of the crash tests: a ledger in a process of its own, which writes down what it is asked to do.

It is reached over loopback, outlives every process that is killed, and forgets nothing. Each line of a connection is
one request in JSON: `look` answers with the lines of a room whose `what` fits (`*`: all); `clear` ends a room that
nobody needs any more; anything else is appended to its room, and answered with its number there.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_SERVER = """
import json, socketserver, threading
from collections import defaultdict

rooms = defaultdict(list)
lock = threading.Lock()

class Handler(socketserver.StreamRequestHandler):
    disable_nagle_algorithm = True

    def handle(self):
        for line in self.rfile:
            request = json.loads(line)
            with lock:
                answer = answered(request)
            self.wfile.write(json.dumps(answer).encode() + b"\\n")

def answered(request):
    name = request.get("room", "")
    if request["do"] == "clear":
        rooms.pop(name, None)
        return 0
    room = rooms[name]
    if request["do"] == "look":
        return [line for line in room if request["what"] in (line["what"], "*")]
    room.append(request)
    return len(room)

class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request, client_address):
        pass  # A client that was killed in the middle of a word is why this process exists.

with Server(("127.0.0.1", 0), Handler) as server:
    print(server.server_address[1], flush=True)
    server.serve_forever()
"""


class Line:
    """A connection that is kept. Not for several threads, and not to be shared with a forked child."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._answers = self._socket.makefile("rb")

    def ask(self, **request: Any) -> Any:
        self._socket.sendall(json.dumps(request).encode() + b"\n")
        return json.loads(self._answers.readline())

    def close(self) -> None:
        self._answers.close()
        self._socket.close()


def ask(port: int, **request: Any) -> Any:
    line = Line(port)
    try:
        return line.ask(**request)
    finally:
        line.close()


@contextmanager
def ledger_process() -> Iterator[int]:
    """The port of a new ledger."""
    process = subprocess.Popen([sys.executable, "-c", _SERVER], stdout=subprocess.PIPE, text=True)
    try:
        if process.stdout is None:
            raise AssertionError
        yield int(process.stdout.readline())
    finally:
        process.kill()
        process.communicate()
