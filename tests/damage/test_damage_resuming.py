"""Whatever happens to a store's files, running it again executes nothing twice behind anyone's back."""

from __future__ import annotations

from collections import Counter

import apsw
import pytest

import surefoot as sf
from surefoot.engine.process.config import settings
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


# --- the judge itself --------------------------------------------------------------------------------------------


def test_judge_excuses_no_silent_work_but_what_was_cut_off():
    """`put` may be retried after a crash; that a run which was done does it again is another matter."""
    before = ["put first 0 k0", "put first 1 k1"]
    ended = {"first": "done"}

    def wrong(*again, said=()):
        return [one for one in resuming.wrong_in_the_world(before, [*before, *again], ended, said) if "again" in one]

    assert wrong("put first 1 k1") == []
    assert wrong("put first 0 k0", said=["run first: fell back"]) == []
    assert wrong("put first 0 k0") == ["first did ['put first 0 k0'] again and said nothing"]


@pytest.mark.parametrize("blame", [sf.RunConflict, sf.UsageError, sf.CodeChanged, sf.Fenced])
def test_judge_takes_no_blame_of_the_user_for_an_answer(monkeypatch, tmp_path, blame):
    """A flipped bit is no mistake in the call, and no change of the code."""

    def run(*_):
        raise blame("it is your fault")

    monkeypatch.setattr(agent.agent, "run", run, raising=False)

    assert resuming.carry_on("first", tmp_path / "ledger", []).startswith("wrong")
