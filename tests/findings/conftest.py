"""What the tests of FINDINGS share: a store in a fresh folder, and a ledger that knows what really ran."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from surefoot.store.open import close_all


@pytest.fixture(autouse=True)
def _own_store(own_folder):
    yield
    close_all()


class Ledger:
    """The world: one line per execution."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, line: object) -> None:
        with self.path.open("a") as file:
            file.write(f"{line}\n")

    @property
    def lines(self) -> list[str]:
        return self.path.read_text().splitlines() if self.path.exists() else []

    @property
    def counts(self) -> Counter[str]:
        return Counter(self.lines)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "ledger")
