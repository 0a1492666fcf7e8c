"""Values above 1 KB are kept by parts: for user code nothing is different, on disk nothing is stored twice."""

from __future__ import annotations

import os
import random

import apsw
import pytest

import surefoot as sf
from surefoot.cli.main import main
from surefoot.store.open import close_all

TEXT = "".join(random.Random(1).choices("abcdefgh ijklmnop", k=5000))
LARGE = {"messages": [TEXT[n : n + 700] for n in range(0, 5000, 500)], "bytes": b"\0\1" * 2000, "tuple": (1, TEXT)}


def rows(question: str) -> list[tuple[object, ...]]:
    close_all()
    connection = apsw.Connection(".surefoot/runs.db")
    found = connection.execute(question).fetchall()
    connection.close()
    return found


@pytest.fixture(params=["sqlite", "memory"])
def store(request: pytest.FixtureRequest) -> str:
    return "sqlite:///.surefoot/runs.db" if request.param == "sqlite" else f"memory:{os.urandom(4).hex()}"


def test_large_arguments_results_and_ends_come_back_type_exact(store, ledger):
    """First run, replay after an interruption, and the recorded end give equal objects."""
    interrupted = []

    @sf.step
    def think(state: object) -> object:
        ledger.write("think")
        return [state, state]

    @sf.effect
    def send(state: object) -> object:
        ledger.write("send")
        return (state, 1)

    @sf.workflow
    def wf(given: object) -> object:
        answer = send(think(given))
        assert answer == ([LARGE, LARGE], 1)
        if not interrupted:
            interrupted.append(True)
            raise KeyboardInterrupt
        return answer

    with pytest.raises(KeyboardInterrupt):
        wf.using(store=store).run("r", LARGE)
    assert wf.using(store=store).run("r", LARGE) == ([LARGE, LARGE], 1)
    assert wf.using(store=store).run("r", LARGE) == ([LARGE, LARGE], 1)
    assert sf.get_run("r", store=store).result() == ([LARGE, LARGE], 1)
    assert ledger.counts == {"think": 1, "send": 1}


def test_a_large_value_is_not_in_its_record(ledger):
    """What a record holds is what its seal covers: the size, the hash, and where the parts are."""

    @sf.step
    def read() -> str:
        return TEXT

    @sf.workflow
    def wf() -> int:
        return len(read())

    wf.run("r")
    step = next(entry for entry in sf.get_run("r").entries() if entry.kind == "StepDone")
    assert step.data["value"] == {"$large": len(TEXT) + 2}
    assert TEXT in sf.get_run("r").steps()[0].result
    assert rows("SELECT max(length(body)) < 600 FROM entries") == [(1,)]


def test_large_events_and_published_values_come_back():
    @sf.workflow
    def wf() -> object:
        sf.publish("state", LARGE)
        return sf.wait_event("go")

    with pytest.raises(sf.WaitingForAnswer):
        wf.run("r")
    assert sf.get_run("r").published == {"state": LARGE}
    sf.send_event("r", "go", LARGE)

    assert wf.run("r") == LARGE


def test_a_large_settled_value_comes_back():
    @sf.effect
    def send() -> object:
        raise ConnectionError

    @sf.workflow
    def wf() -> object:
        return send()

    with pytest.raises(sf.InDoubt):
        wf.run("r")
    sf.get_run("r").settle("send#1", happened=LARGE)

    assert wf.run("r") == LARGE


def test_continuing_as_new_with_large_arguments():
    """An agent's whole conversation is handed on from segment to segment."""

    @sf.workflow
    def wf(n: int, history: list[str]) -> int:
        if n:
            sf.continue_as_new(n - 1, [*history, TEXT + str(n)])
        return len(history)

    assert wf.run("r", 5, []) == 5


def test_other_large_arguments_are_seen(ledger):
    """The digest knows nothing of parts: other content is another call, and the very letter is told."""
    given = [TEXT]

    @sf.effect
    def think(text: str) -> int:
        return len(text)

    @sf.workflow
    def wf() -> int:
        think(given[0])
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        wf.run("r")
    given[0] = TEXT[:-1] + "!"
    with pytest.raises(sf.CodeChanged, match=r"think#1[\s\S]*text: \"….*!\""):
        wf.run("r")


def test_a_run_with_other_large_arguments_is_a_conflict():
    @sf.workflow
    def wf(text: str) -> int:
        return len(text)

    wf.run("r", TEXT)
    with pytest.raises(sf.RunConflict, match="other arguments"):
        wf.run("r", TEXT + "x")


def test_state_that_grows_costs_what_is_new():
    """Whole copies would be 10 MB; the content is 0.2 MB."""
    chance = random.Random(2)

    @sf.step
    def think(history: list[str]) -> list[str]:
        return [*history, "".join(chance.choices("abcdefghijklmnopqrstuvwxyz 0123456789", k=2000))]

    @sf.workflow
    def wf() -> int:
        history: list[str] = []
        for _ in range(100):
            history = think(history)
        return len(history)

    wf.run("r")
    close_all()
    stored = sum(os.path.getsize(f".surefoot/runs.db{suffix}") for suffix in ("", "-wal", "-anchor"))
    assert stored < 3 * 100 * 2000


def test_a_damaged_part_is_healed_by_the_next_append_that_has_it():
    """Presence is not health: what an append relies on is looked at once per handle, and written again."""

    @sf.step
    def read() -> str:
        return TEXT

    @sf.workflow
    def wf() -> int:
        return len(read())

    wf.run("a")
    close_all()
    connection = apsw.Connection(".surefoot/runs.db")
    connection.execute("UPDATE parts SET body = zeroblob(length(body))")
    connection.close()
    with pytest.raises(sf.JournalCorrupt, match="entry 3 is sound, but a value of it is damaged"):
        sf.get_run("a").steps()

    wf.run("b")

    assert TEXT in sf.get_run("a").steps()[0].result


@pytest.mark.parametrize("verb", [("show",), ("show", "--json"), ("tail", "--no-follow"), ("plan",)])
def test_large_values_are_shown_by_their_size(verb, capsys):
    """A page of 5 MB helps nobody at night; the run's own result is shown whole in JSON."""

    @sf.step
    def read() -> str:
        return TEXT

    @sf.workflow
    def wf() -> str:
        return read() + "end"

    wf.run("r")
    assert main(["runs", verb[0], "r", *verb[1:]]) == 0
    out = capsys.readouterr().out
    assert len(out) < 12_000
    if verb[-1] == "--json":
        assert TEXT + "end" in out


def test_what_another_process_swept_is_written_again(ledger):
    """A handle that remembers parts as sound must not rely on them after somebody deleted them."""
    from surefoot.store.open import open_store

    @sf.step
    def read() -> str:
        return TEXT

    @sf.workflow
    def wf() -> int:
        return len(read())

    wf.run("a")
    store = open_store("sqlite:///.surefoot/runs.db", create=False)
    connection = apsw.Connection(".surefoot/runs.db")
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("DELETE FROM parts")
    connection.execute("UPDATE meta SET value = value + 1 WHERE key = 'swept'")
    connection.execute("COMMIT")
    connection.close()
    assert store.part_ids() == []

    wf.run("b")

    assert TEXT in sf.get_run("b").steps()[0].result
