"""Refund a customer once, however often the process dies.

    python examples/refund.py --crash     refunds order 1001 and dies at the worst moment: the bank has
                                          paid, and nobody has written it down
    python examples/refund.py             run it again: the same key goes to the bank, which answers with
                                          the refund it has already made
    cat refund-bank.jsonl                 one line: paid once

Why it is safe to say on_crash="retry" here: the bank honours the idempotency key (`sf.key()`), and the key
of a call is the same over all attempts and restarts. A bank without such keys wants on_crash="ask"
(the default): then the run stops and a person says what happened.

The bank is a small web server on this machine: no network, no keys of yours.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import surefoot as sf

LEDGER = Path("refund-bank.jsonl")
DIE_AFTER_PAYING = False
BANK_URL = ""


@sf.step
def look_up(order: str) -> dict[str, Any]:
    return {"order": order, "cents": 4999, "customer": "c-77"}


@sf.effect(on_crash="retry")
def refund(order: str, cents: int) -> str:
    """Moves money. The key makes a repetition harmless, because the bank knows it."""
    request = urllib.request.Request(  # noqa: S310 - a loopback address made below
        BANK_URL,
        data=json.dumps({"order": order, "cents": cents}).encode(),
        headers={"Idempotency-Key": sf.key()},
    )
    with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310 - as above
        refund_id: str = json.load(answer)["id"]
    if DIE_AFTER_PAYING:
        os.kill(os.getpid(), signal.SIGKILL)
    print(f"attempt {sf.attempt()}: the bank says {refund_id}")
    return refund_id


@sf.workflow
def refund_order(order: str) -> str:
    found = look_up(order)
    return refund(order, found["cents"])


class Bank(BaseHTTPRequestHandler):
    """Pays, unless it has seen the key before: then it answers as it did then."""

    def do_POST(self) -> None:  # the name is http.server's
        key = self.headers["Idempotency-Key"]
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        lines = [json.loads(line) for line in LEDGER.read_text().splitlines()] if LEDGER.exists() else []
        known = next((line for line in lines if line["key"] == key), None)
        if known is None:
            known = {"id": f"re_{len(lines) + 1}", "key": key, **asked}
            with LEDGER.open("a") as ledger:
                ledger.write(json.dumps(known) + "\n")
        body = json.dumps({"id": known["id"]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is http.server's
        """Say nothing: what matters is in the ledger."""


def main() -> None:
    global BANK_URL, DIE_AFTER_PAYING  # noqa: PLW0603 - neither is an argument of the workflow
    parser = argparse.ArgumentParser(description="Refund an order once, whatever happens.")
    parser.add_argument("--order", default="1001")
    parser.add_argument("--crash", action="store_true", help="die right after the bank has paid")
    options = parser.parse_args()
    DIE_AFTER_PAYING = options.crash

    with ThreadingHTTPServer(("127.0.0.1", 0), Bank) as bank:
        threading.Thread(target=bank.serve_forever, daemon=True).start()
        BANK_URL = f"http://127.0.0.1:{bank.server_port}/refunds"
        refund_id = refund_order.run(f"refund-{options.order}", options.order)
        print(f"order {options.order} is refunded: {refund_id}")
        bank.shutdown()


if __name__ == "__main__":
    main()
