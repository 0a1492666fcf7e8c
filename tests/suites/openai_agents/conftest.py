"""What the stories share: a store in a fresh folder, a ledger of what really ran, and a process that dies."""

from __future__ import annotations

from pathlib import Path

import pytest
from agents import set_tracing_disabled

from surefoot.store.open import close_all

set_tracing_disabled(True)


@pytest.fixture(autouse=True)
def _fresh_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SUREFOOT_STORE", raising=False)
    yield
    close_all()
