"""The idempotency key of an effect: the same over attempts, workers, resumes and rewinds of one run."""

from __future__ import annotations

import hashlib


def idempotency_key(namespace: str, run: str, segment: int, address: str) -> str:
    parts = (namespace, run, str(segment), address)
    packed = b"".join(len(raw).to_bytes(4, "big") + raw for raw in (part.encode("utf-8") for part in parts))
    return hashlib.sha256(b"surefoot/key/1\0" + packed).hexdigest()[:40]
