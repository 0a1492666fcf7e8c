"""What is recorded is given back, to the same call only, and nothing recorded runs again."""

from __future__ import annotations

import pytest

import surefoot as sf
from surefoot.store.open import close_all


class Crash(BaseException):
    """Unwinds like Ctrl-C: the run is left where it is."""


def crash_once(flag: list[int]) -> None:
    if not flag:
        flag.append(1)
        raise Crash


def test_recorded_calls_are_not_run_again(ledger):
    crashed: list[int] = []

    @sf.step
    def work(i: int) -> int:
        ledger.write(f"work {i}")
        return i * 10

    @sf.workflow
    def wf() -> list[int]:
        found = [work(i) for i in range(3)]
        crash_once(crashed)
        return [*found, work(3)]

    with pytest.raises(Crash):
        wf.run("r")

    assert wf.run("r") == [0, 10, 20, 30]
    assert ledger.lines == ["work 0", "work 1", "work 2", "work 3"]


def test_other_arguments_than_recorded_stop_the_run_and_show_both(ledger):
    """A recorded value is never given to a different call."""
    crashed: list[int] = []
    amount = 100

    @sf.effect
    def price(amount: int) -> int:
        ledger.write(amount)
        return amount

    @sf.workflow
    def wf() -> int:
        found = price(amount)
        crash_once(crashed)
        return found

    with pytest.raises(Crash):
        wf.run("r")
    amount = 228

    with pytest.raises(sf.CodeChanged) as stop:
        wf.run("r")
    assert stop.value.address == "price#1"
    facts = {"recorded": '{"amount":100}', "asked": '{"amount":228}', "call": "price#1"}
    assert facts.items() <= stop.value.facts.items()
    assert "amount: 100 -> 228" in str(stop.value)
    assert ledger.lines == ["100"]

    length = len(sf.get_run("r").entries())
    with pytest.raises(sf.CodeChanged):
        wf.run("r")
    assert len(sf.get_run("r").entries()) == length, "meeting the same stop again must not grow the journal"

    amount = 100
    assert wf.run("r") == 100


def test_a_step_turned_into_an_effect_is_another_call():
    crashed: list[int] = []

    def body() -> int:
        return 1

    asked = sf.step(name="call")(body)

    @sf.workflow
    def wf() -> int:
        found = asked()
        crash_once(crashed)
        return found

    with pytest.raises(Crash):
        wf.run("r")
    asked = sf.effect(name="call")(body)

    with pytest.raises(sf.CodeChanged, match="recorded as a step"):
        wf.run("r")


def test_inserted_calls_do_not_disturb_a_run_in_flight(ledger):
    crashed: list[int] = []
    new_code = False

    @sf.step
    def old(i: int) -> int:
        ledger.write(f"old {i}")
        return i

    @sf.step
    def new() -> int:
        ledger.write("new")
        return 100

    @sf.workflow
    def wf() -> int:
        total = old(1)
        if new_code:
            total += new()
        total += old(2)
        crash_once(crashed)
        return total

    with pytest.raises(Crash):
        wf.run("r")
    new_code = True

    assert wf.run("r") == 103
    assert ledger.lines == ["old 1", "old 2", "new"]


def test_a_recorded_effect_the_code_no_longer_asks_for_is_code_changed():
    """It happened in the world; a result that ignores it would be silently wrong."""
    crashed: list[int] = []
    with_effect = True

    @sf.effect
    def charge() -> str:
        return "ch_1"

    @sf.workflow
    def wf() -> str:
        if with_effect:
            charge()
        crash_once(crashed)
        return "done"

    with pytest.raises(Crash):
        wf.run("r")
    with_effect = False

    with pytest.raises(sf.CodeChanged, match="without asking for charge#1"):
        wf.run("r")
    assert sf.get_run("r").status == "stopped"


def test_a_recorded_step_no_longer_asked_for_is_only_a_warning(kinds, caplog):
    crashed: list[int] = []
    with_step = True

    @sf.step
    def look() -> int:
        return 1

    @sf.workflow
    def wf() -> str:
        if with_step:
            look()
        crash_once(crashed)
        return "done"

    with pytest.raises(Crash):
        wf.run("r")
    with_step = False

    assert wf.run("r") == "done"
    assert "CallsUnclaimed" in kinds("r")
    assert "no longer asks for recorded steps: look#1" in caplog.text


def test_time_randomness_and_ids_are_the_same_on_replay():
    crashed: list[int] = []
    seen: list[tuple[object, ...]] = []

    @sf.step
    def touch() -> None: ...

    @sf.workflow
    def wf() -> None:
        seen.append((sf.now(), sf.random(), sf.uuid4(), sf.now()))
        touch()
        crash_once(crashed)

    with pytest.raises(Crash):
        wf.run("r")
    wf.run("r")

    assert seen[0] == seen[1]


def test_patched_keeps_the_old_way_for_runs_that_passed_the_point(ledger):
    crashed: list[int] = []
    new_code = False

    @sf.step
    def step_a() -> None: ...

    @sf.step
    def step_b() -> None: ...

    @sf.workflow
    def wf() -> str:
        way = "old"
        if new_code and sf.patched("new-way"):
            way = "new"
        step_a()
        crash_once(crashed)
        step_b()
        return way

    with pytest.raises(Crash):
        wf.run("in-flight")
    new_code = True

    assert wf.run("in-flight") == "old"
    assert wf.run("fresh") == "new"


def test_patched_answers_anew_after_continue_as_new():
    """A run that never ends would else keep the old way for ever; nothing of the last segment is replayed."""
    crashed: list[int] = []
    new_code, ways = False, []

    @sf.step
    def work() -> None: ...

    @sf.workflow
    def wf(round_: int) -> None:
        for _ in range(2):
            ways.append("new" if new_code and sf.patched("new-way") else "old")
            work()
            crash_once(crashed)
        if round_ < 2:
            sf.continue_as_new(round_ + 1)

    with pytest.raises(Crash):
        wf.run("r", 1)
    new_code = True
    ways.clear()
    wf.run("r", 1)

    assert ways == ["old", "old", "new", "new"]


def test_the_first_delivery_is_already_the_decoded_copy():
    """First run and replay must see equal objects; what the step keeps is not what the caller gets."""
    kept: list[dict[str, int]] = []

    @sf.step
    def make() -> dict[str, int]:
        kept.append({"a": 1})
        return kept[0]

    @sf.workflow
    def wf() -> bool:
        got = make()
        kept[0]["a"] = 2
        return got == {"a": 1} and got is not kept[0]

    assert wf.run("r") is True


def test_continue_as_new_starts_a_segment_with_fresh_addresses_and_keys(ledger):
    @sf.effect
    def act(i: int) -> str:
        ledger.write(sf.key())
        return "ok"

    @sf.workflow
    def loop(i: int) -> int:
        act(i)
        if i < 3:
            sf.continue_as_new(i + 1)
        return i

    assert loop.run("r", 1) == 3
    assert len(set(ledger.lines)) == 3
    assert loop.run("r", 1) == 3, "the run still answers to the arguments it was started with"


def test_a_crash_after_continue_as_new_resumes_in_the_new_segment(ledger):
    crashed: list[int] = []

    @sf.step
    def work(i: int) -> int:
        ledger.write(f"work {i}")
        return i

    @sf.workflow
    def loop(i: int) -> int:
        work(i)
        if i < 2:
            sf.continue_as_new(i + 1)
        crash_once(crashed)
        return i

    with pytest.raises(Crash):
        loop.run("r", 1)

    assert loop.run("r", 1) == 2
    assert ledger.lines == ["work 1", "work 2"]


def test_scopes_name_calls_and_go_on_counting_when_entered_again():
    @sf.step
    def work(i: int) -> int:
        return i

    @sf.workflow
    def wf() -> None:
        for i in range(2):
            with sf.scope("src/a.py"):
                work(i)
        with sf.scope("x"), sf.scope("y"):
            work(9)

    wf.run("r")

    assert [call.address for call in sf.get_run("r").steps()] == [
        "[src/a.py]/work#1",
        "[src/a.py]/work#2",
        "[x]/[y]/work#1",
    ]


def test_ignored_parameters_are_neither_recorded_nor_compared():
    crashed: list[int] = []

    class Client: ...

    @sf.step(ignore=("client",))
    def ask(client: Client, question: str) -> str:
        return question

    @sf.workflow
    def wf() -> str:
        found = ask(Client(), "why?")
        crash_once(crashed)
        return found

    with pytest.raises(Crash):
        wf.run("r")
    assert wf.run("r") == "why?"
    assert sf.get_run("r").steps()[0].args == '{"question":"why?"}'


def test_secrets_are_recorded_as_stars(tmp_path):
    """A key that is passed along must not be found in the store."""

    @sf.step
    def use(secret: sf.Secret[str]) -> int:
        return len(secret.reveal())

    @sf.workflow
    def wf() -> int:
        return use(sf.Secret("canary-4711"))

    assert wf.run("r") == len("canary-4711")
    close_all()
    stored = b"".join(path.read_bytes() for path in (tmp_path / ".surefoot").rglob("*") if path.is_file())
    assert b"canary-4711" not in stored
    assert b"***" in stored


def test_a_new_parameter_with_a_default_does_not_change_a_call():
    crashed: list[int] = []

    def before(a: int) -> int:
        return a

    def later(a: int, b: int = 7) -> int:
        return a + b

    asked = sf.step(name="call")(before)

    @sf.workflow
    def wf() -> int:
        found = asked(1)
        crash_once(crashed)
        return found

    with pytest.raises(Crash):
        wf.run("r")
    asked = sf.step(name="call")(later)

    assert wf.run("r") == 1


def test_progress_and_published_values_are_seen_from_outside():
    @sf.step
    def work() -> None: ...

    @sf.workflow
    def wf() -> None:
        sf.progress(1, 2, "half")
        sf.publish("plan", ["a", "b"])
        work()

    wf.run("r")
    run = sf.get_run("r")

    assert (run.progress.done, run.progress.total, run.progress.note) == (1, 2, "half")
    assert run.published == {"plan": ["a", "b"]}


@pytest.mark.parametrize("where", ["argument", "result", "workflow result", "workflow argument"])
def test_a_value_that_would_not_come_back_is_refused_and_the_run_stays_resumable(where):
    """Refused with its path; nothing is recorded as failed, so mended code goes on with the same run."""
    bad: object = object()

    @sf.step
    def take(value: object) -> object:
        return bad if where == "result" else 1

    @sf.workflow
    def wf(value: object) -> object:
        take({"a": [bad]} if where == "argument" else 1)
        return [bad] if where == "workflow result" else 1

    with pytest.raises(sf.ValueRejected) as refused:
        wf.run("r", bad if where == "workflow argument" else 1)
    assert refused.value.path == {
        "argument": "$.value.a[0]", "result": "$", "workflow result": "$[0]", "workflow argument": "$.value",
    }[where]  # fmt: skip
    bad = 1
    assert wf.run("r", 1) == ([1] if where == "workflow result" else 1)


def test_a_wait_for_another_event_does_not_get_the_recorded_one():
    """A recorded value is never given to a different call; an event's name is part of the call."""
    crashed: list[int] = []
    name = "approved"

    @sf.workflow
    def wf() -> object:
        found = sf.wait_event(name)
        sf.sleep(0)
        crash_once(crashed)
        return found

    run = wf.start("r")
    run.send_event("approved", "yes", id="1")
    with pytest.raises(Crash):
        wf.run("r")
    name = "paid"

    with pytest.raises(sf.CodeChanged, match="waiting for event 'paid'"):
        wf.run("r")


def test_a_run_that_stands_at_a_wait_goes_on_with_an_event_by_its_new_name():
    """Nothing was received by the old name, so that the code may wait for another one; a resume looks for it."""
    name = "approved"

    @sf.workflow
    def wf() -> object:
        return sf.wait_event(name)

    with pytest.raises(sf.WaitingForAnswer):
        wf.run("r")
    name = "paid"
    sf.send_event("r", "paid", "yes")

    assert wf.run("r") == "yes"


def test_a_word_about_a_kept_event_is_about_the_name_that_was_shown():
    """The code waits for yet another event since: the person has not been asked about that."""
    crashed: list[int] = []
    name = "approved"

    @sf.workflow
    def wf() -> object:
        found = sf.wait_event(name)
        sf.sleep(0)
        crash_once(crashed)
        return found

    wf.start("r").send_event("approved", "yes", id="1")
    with pytest.raises(Crash):
        wf.run("r")
    name = "paid"
    with pytest.raises(sf.CodeChanged, match="surefoot match r 'wait_event#1' --keep"):
        wf.run("r")
    sf.get_run("r").match("wait_event#1", keep=True)
    name = "refunded"
    with pytest.raises(sf.CodeChanged, match="waiting for event 'refunded'"):
        wf.run("r")
    name = "paid"

    assert wf.run("r") == "yes"


def test_a_recorded_effect_dropped_before_continue_as_new_is_code_changed():
    crashed: list[int] = []
    with_effect = True

    @sf.effect
    def charge() -> str:
        return "ch_1"

    @sf.workflow
    def wf(n: int) -> int:
        if n == 0:
            if with_effect:
                charge()
            crash_once(crashed)
            sf.continue_as_new(1)
        return n

    with pytest.raises(Crash):
        wf.run("r", 0)
    with_effect = False

    with pytest.raises(sf.CodeChanged, match="charge#1"):
        wf.run("r", 0)


@pytest.mark.parametrize("args", [(object(),), (1, 2, 3)])
def test_continuing_with_arguments_that_cannot_be_leaves_a_resumable_run(args):
    good: list[int] = []

    @sf.workflow
    def wf(n: int) -> int:
        if n == 0:
            sf.continue_as_new(*([1] if good else args))
        return n

    with pytest.raises(sf.UsageError, match="cannot go on with these arguments"):
        wf.run("r", 0)
    assert sf.get_run("r").status == "queued"
    good.append(1)
    assert wf.run("r", 0) == 1


def test_a_recorded_value_that_cannot_be_read_is_no_failure_of_the_run():
    """The class is not registered in this process: import it, and the run goes on."""
    from dataclasses import dataclass

    from surefoot.core import registry

    crashed: list[int] = []

    @sf.register(name="Passing")
    @dataclass
    class Order:
        n: int

    @sf.step
    def load():
        return Order(7)

    @sf.workflow
    def wf() -> int:
        try:
            found = load()
        except Exception:
            found = Order(0)
        crash_once(crashed)
        return found.n

    with pytest.raises(Crash):
        wf.run("r")
    forgotten = registry._by_name.pop("Passing")
    try:
        with pytest.raises(sf.SchemaMismatch, match="Passing"):
            wf.run("r")
    finally:
        registry._by_name["Passing"] = forgotten
    assert wf.run("r") == 7
