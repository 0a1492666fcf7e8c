"""A real web server on this machine, whose answers a test writes."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest


class Web:
    """What the server says, by path: (status, headers, body). A function instead is given the handler."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.answers = {}
        self.asked = []
        self.release = threading.Event()

    def json(self, path, text, **headers):
        self.answers[path] = (200, {"Content-Type": "application/json", **headers}, text.encode())


@pytest.fixture
def web(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1,localhost")
    held = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            found = held[0]
            found.asked.append((self.path, dict(self.headers)))
            answer = found.answers.get(self.path, (404, {}, b""))
            if callable(answer):
                answer(self)
                return
            status, headers, body = answer
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.handle_error = lambda *_: None  # a client that hangs up is part of the tests
    server.daemon_threads = True
    held.append(Web(f"http://127.0.0.1:{server.server_port}"))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield held[0]
    held[0].release.set()
    server.shutdown()
    thread.join()
    server.server_close()
