"""What the stories share: a store in a fresh folder, a ledger of what really ran, and a process that dies."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic_ai import models

from surefoot.store.open import close_all

models.ALLOW_MODEL_REQUESTS = False


@pytest.fixture(autouse=True)
def _fresh_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SUREFOOT_STORE", raising=False)
    monkeypatch.setenv("PYDANTIC_AI_NO_BANNER", "1")
    yield
    close_all()
