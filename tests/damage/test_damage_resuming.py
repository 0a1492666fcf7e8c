"""Whatever happens to a store's files, running it again executes nothing twice behind anyone's back."""

from __future__ import annotations

from collections import Counter

import apsw
import pytest

import surefoot as sf
from surefoot.engine.config import settings
from surefoot.store.open import close_all
from tests.damage import agent, resuming, stores

pytestmark = pytest.mark.timeout(180)  # seconds on an idle machine, but each case is a process of its own

COUNTS = {"flips": 60, "truncations": 8, "zeroed": 30, "misplaced": 10, "replaced": 1, "rows": 3}


@pytest.mark.parametrize("name", stores.LIVES)
def test_runs_end_right_or_say_why_and_no_effect_is_repeated(originals, name, folder, count):
    """Flips, cuts, zeroed and misplaced pages, older copies, changed rows; then `.run`, and a person who answers."""
    outcomes = resuming.sweep(originals(name), folder, counts=COUNTS, seed="test")

    count(f"{name} store damaged, then run again", resuming.line(outcomes))
    assert outcomes.total() > 120
    assert outcomes["done"] > 0
    assert any("fell back" in outcome for outcome in outcomes)


@pytest.fixture
def damaged(originals, folder, monkeypatch):
    """A copy of the closed store in which only the beginning of `second` is left."""
    path = stores.place(originals("closed").files, folder / "here")
    ledger = folder / "ledger"
    ledger.write_text(originals("closed").ledger)
    monkeypatch.setenv("LEDGER", str(ledger))
    monkeypatch.setattr(settings, "store", f"sqlite:///{path}")
    change(path, "DELETE FROM entries WHERE run = 'second' AND seq > 7")
    yield path, ledger
    close_all()


def change(path, statement):
    close_all()
    connection = apsw.Connection(str(path))
    connection.execute(statement).fetchall()
    connection.close()


@pytest.mark.parametrize(
    "second_flaw",
    [
        "UPDATE entries SET body = x'7b7d' WHERE run = 'second' AND seq = 7",
        "DELETE FROM entries WHERE run = 'second' AND seq BETWEEN 7 AND 12",
    ],
    ids=["set aside", "gone"],
)
def test_second_fallback_does_not_forget_what_the_first_had_lost(damaged, second_flaw, caplog):
    """The entry that told of the first loss is itself behind the second flaw, and so are the doubts it had raised."""
    path, ledger = damaged
    with pytest.raises(sf.InDoubt):
        agent.agent.run("second", "second")
    change(path, second_flaw)

    end = resuming.carry_on("second", ledger, caplog.messages)

    executed = Counter(line for line in ledger.read_text().splitlines() if line.startswith("pay second"))
    assert set(executed.values()) == {1}
    assert end == "done"
