"""A model behind HTTP on this machine: it counts what it is asked, and answers by what the conversation has."""

from __future__ import annotations

import json
import os
import signal
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from surefoot.store.open import close_all


class Service:
    """What it was asked, and how it answers next."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.asked: list[dict[str, Any]] = []
        self.refusals: list[int] = []
        """Codes with which the next requests are refused."""
        self.nonsense: list[tuple[bytes, str]] = []
        """What the next requests get instead of an answer, and its type."""
        self.deadly: set[int] = set()
        """In the middle of the answers to these requests, counted from 1, the process that asked is killed."""


def _chat(body: dict[str, Any]) -> dict[str, Any]:
    message = {"role": "assistant", "content": f"answer to {body['messages'][-1]['content']}"}
    return {"id": "c", "object": "chat.completion", "created": 0, "model": body["model"],
            "choices": [{"index": 0, "finish_reason": "stop", "message": message}]}  # fmt: skip


def _chunks(body: dict[str, Any]) -> list[dict[str, Any]]:
    words = f"answer to {body['messages'][-1]['content']}".split()
    return [
        {"id": "c", "object": "chat.completion.chunk", "created": 0, "model": body["model"],
         "choices": [{"index": 0, "delta": {"content": f"{word} "}, "finish_reason": None}]}
        for word in words
    ]  # fmt: skip


def _response(body: dict[str, Any]) -> dict[str, Any]:
    text = {"type": "output_text", "text": "done", "annotations": []}
    item = {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [text]}
    return {"id": "r", "object": "response", "created_at": 0, "model": body["model"], "output": [item],
            "parallel_tool_calls": True, "tool_choice": "auto", "tools": []}  # fmt: skip


def _message(body: dict[str, Any]) -> dict[str, Any]:
    return {"id": "m", "type": "message", "role": "assistant", "model": body["model"], "stop_reason": "end_turn",
            "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1},
            "content": [{"type": "text", "text": f"answer to {body['messages'][-1]['content']}"}]}  # fmt: skip


def _events(body: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"type": "message_start", "message": {**_message(body), "content": []}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hello"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_stop"},
    ]


WHOLE = {"/v1/chat/completions": _chat, "/v1/responses": _response, "/v1/messages": _message}
STREAMED = {"/v1/chat/completions": _chunks, "/v1/messages": _events}


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SUREFOOT_STORE", raising=False)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            known.asked.append(body)
            if known.refusals:
                self._send(known.refusals.pop(0), b'{"error": {"message": "later"}}', "application/json")
            elif known.nonsense:
                self._send(200, *known.nonsense.pop(0))
            elif body.get("stream"):
                told = "".join(
                    f"event: {each.get('type', 'message')}\ndata: {json.dumps(each)}\n\n"
                    for each in STREAMED[self.path](body)
                )
                self._send(
                    200,
                    f"{told}data: [DONE]\n\n".encode() if "chat" in self.path else told.encode(),
                    "text/event-stream",
                )
            else:
                self._send(200, json.dumps(WHOLE[self.path](body)).encode(), "application/json")

        def _send(self, code: int, body: bytes, kind: str) -> None:
            self.send_response(code)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            if len(known.asked) in known.deadly:
                self.wfile.write(body[: len(body) // 2])
                self.wfile.flush()
                os.kill(int(Path("pid").read_text()), signal.SIGKILL)
                return
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Nobody reads it."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    known = Service(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield known
    server.shutdown()
    server.server_close()
    close_all()
