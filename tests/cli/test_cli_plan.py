"""`surefoot runs plan ID`: what a resume would do, with drift and open questions."""

from __future__ import annotations

from pathlib import Path

import pytest

import surefoot as sf
from surefoot import witness


def its_file(path, *_):
    """What a writing effect touches."""
    return witness.file(path)


stop: list[int] = []


@sf.effect(touches=[its_file])
def plan_write(path: str) -> None:
    Path(path).write_text(path)


@sf.effect
def plan_pay() -> str:
    raise KeyboardInterrupt


@plan_pay.check
def _():
    raise AssertionError("nothing is called by looking")


@sf.workflow(watch=[witness.files("*.txt")])
def plan_writing() -> None:
    plan_write("a.txt")
    if stop:
        raise KeyboardInterrupt
    plan_write("b.txt")


def decide(drift):
    raise AssertionError(f"called with {drift}")


@sf.workflow(watch=[witness.files("*.txt")], on_drift=decide)
def plan_deciding() -> None:
    plan_write("a.txt")
    if stop:
        raise KeyboardInterrupt
    plan_write("b.txt")


@sf.workflow
def plan_paying() -> str:
    return plan_pay()


@sf.workflow
def plan_asking(text: str) -> bool:
    return bool(sf.approve(text))


@pytest.fixture
def writing():
    stop.append(1)
    with pytest.raises(KeyboardInterrupt):
        plan_writing.run("w-1")
    stop.clear()


def test_the_next_effects_are_listed(cli, writing):
    ended = cli("runs", "plan", "w-1")

    assert ended.code == 0
    assert ended.out == (
        "run w-1: ready to go on; nobody drives it\n"
        "  replayed   1 recorded call, none runs again\n"
        "  next       effect plan_write#2\n"
        "             what follows is decided by what these give\n"
    )


def test_only_what_comes_before_the_stop_is_said_to_be_replayed(cli):
    """Thirty-five calls "replayed" above a stop at the first one would be thirty-five lies."""
    changed: list[int] = []

    @sf.step
    def plan_read(n: int, more: int = 0) -> int:
        return n

    @sf.effect
    def plan_do(n: int) -> int:
        return n

    @sf.workflow(name="plan_changed")
    def wf() -> None:
        plan_read(0)
        for n in range(4):
            plan_do(n + 10 * len(changed))
        if not changed:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        wf.run("c-1")
    changed.append(1)

    shown = cli("runs", "plan", "c-1")
    facts = cli("runs", "plan", "c-1", "--json").json

    assert "  replayed   1 of 5 recorded calls before the stop\n" in shown.out
    assert "  stop       run c-1, plan_do#1: " in shown.out
    assert (facts["replayed"], facts["recorded"]) == (["plan_read#1"], 5)


def test_without_code_nothing_is_said_to_be_replayed(cli, writing, monkeypatch):
    """Only the code knows what it asks for."""
    monkeypatch.setattr("surefoot.engine.declare.registry.Registry.known_for", lambda *_: None)

    ended = cli("runs", "plan", "w-1")

    assert "  recorded   1 recorded call" not in ended.out
    assert "replayed" not in ended.out
    assert "  recorded   1 call" in ended.out


def test_drift_is_shown_with_what_it_means(cli, writing):
    Path("a.txt").write_text("somebody's")

    shown = cli("runs", "plan", "w-1")
    facts = cli("runs", "plan", "w-1", "--json").json

    assert "  drift      file:a.txt: changed (expected " in shown.out
    assert "the resume would stop there, before anything runs" in shown.out
    assert shown.out.count("file:a.txt") == 1
    assert "next" not in shown.out
    assert (len(facts["drift"]), facts["on_drift"], facts["next"], facts["effects"]) == (1, "stop", [], [])
    assert "the world is not as the run left it" in facts["stops"][0]


def test_a_function_that_decides_is_named(cli):
    stop.append(1)
    with pytest.raises(KeyboardInterrupt):
        plan_deciding.run("d-1")
    stop.clear()
    Path("a.txt").write_text("somebody's")

    assert "the on_drift function of the workflow decides" in cli("runs", "plan", "d-1").out


def test_a_check_decides_and_is_not_called(cli):
    with pytest.raises(KeyboardInterrupt):
        plan_paying.run("p-1")

    assert "in doubt   plan_pay#1: a resume would ask its check, which decides" in cli("runs", "plan", "p-1").out


def test_open_questions_are_shown_harmlessly(cli, hostile):
    with pytest.raises(sf.WaitingForAnswer):
        plan_asking.run("q-1", f"Sure? {hostile}")

    ended = cli("runs", "plan", "q-1")

    assert "  question   approve#1: Sure? \\x1b[31mred" in ended.out
    assert all(char.isprintable() or char == "\n" for char in ended.out)
    assert cli("runs", "plan", "q-1", "--json").json["questions"][0]["address"] == "approve#1"


def test_planning_changes_nothing(shell, app):
    """Byte for byte, seen from outside."""
    shell("run", "app:notify", "--id", "n-1", '["Ada", "Bob"]', DIE_AFTER_SENDING_TO="Bob")
    shell("runs", "plan", "n-1", "--app", "app")
    store = app / ".surefoot"
    before = {path.name: path.read_bytes() for path in store.iterdir() if path.is_file()}

    ended = shell("runs", "plan", "n-1", "--app", "app")

    assert "in doubt   send#2: a resume would stop and ask a person" in ended.out
    assert {path.name: path.read_bytes() for path in store.iterdir() if path.is_file()} == before
