"""A damaged journal: the run steps back to what is valid, says so, and repeats nothing behind anyone's back."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from typing import Any

import apsw
import pytest

import surefoot as sf
from surefoot.store.open import close_all

DATABASE = ".surefoot/runs.db"


def change(*statements: str | tuple[str, tuple[Any, ...]]) -> None:
    """Alter the stored bytes, as a bad disk would."""
    close_all()
    connection = apsw.Connection(DATABASE)
    connection.set_busy_timeout(5000)
    for statement in statements:
        connection.execute(*((statement,) if isinstance(statement, str) else statement))
    connection.close()


def garble(seq: int, run: str = "r") -> None:
    """Turn one byte in the middle of a record."""
    close_all()
    connection = apsw.Connection(DATABASE)
    connection.set_busy_timeout(5000)
    ((body,),) = connection.execute("SELECT body FROM entries WHERE run = ? AND seq = ?", (run, seq)).fetchall()
    altered = bytearray(body)
    altered[len(altered) // 2] ^= 4
    connection.execute("UPDATE entries SET body = ? WHERE run = ? AND seq = ?", (bytes(altered), run, seq))
    connection.close()


def cut(seq: int, *more: str) -> None:
    """Lose everything of the run from there on. Another run is newer, else the anchor would miss the records."""

    @sf.workflow
    def bystander() -> int:
        return 1

    bystander.run("bystander")
    rows = f"UPDATE entries SET body = x'00' WHERE run = 'r' AND seq = {seq}"
    change(f"DELETE FROM entries WHERE run = 'r' AND seq > {seq}", rows, *more)


def kinds(run: str = "r") -> list[str]:
    return [entry.kind for entry in sf.get_run(run).entries()]


def make(ledger: Any, *, on_crash: str = "ask", pairs: int = 10, **options: Any) -> Callable[..., Any]:
    """Steps and effects in turn; each result tells of the one before, so that nothing wrong stays unnoticed."""

    @sf.step
    def draft(n: int, before: int) -> int:
        ledger.write(f"draft {n}")
        return before + n

    @sf.effect(on_crash=on_crash)
    def send(n: int, text: int) -> int:
        ledger.write(f"send {n} {sf.key()}")
        return text * 2

    @sf.workflow(**options)
    def wf() -> int:
        total = 0
        for n in range(pairs):
            total = send(n, draft(n, total))
        return total

    return wf


def sends(ledger: Any) -> list[str]:
    return [line.split()[1] for line in ledger.lines if line.startswith("send")]


def settle_all(wf: Callable[..., Any], truth: Callable[[int], Any], run: str = "r") -> tuple[Any, list[str]]:
    """Answer each question as a person who looks at the world would, until the run is done."""
    asked = []
    for _ in range(100):
        try:
            return wf.run(run), asked  # type: ignore[attr-defined]
        except sf.InDoubt as stop:
            number = int(stop.address.split("#")[1])
            asked.append(stop.address)
            answer = truth(number)
            sf.get_run(run).settle(stop.address, **({"not_happened": True} if answer is None else {"happened": answer}))
    raise AssertionError("it never ended")


def test_damage_in_the_middle_of_a_journal_with_effects_after_it(ledger, caplog):
    """The must-show story: 60 entries, one of them damaged, effects before and after it."""
    wf = make(ledger, pairs=19)
    expected = wf.run("r")
    before = kinds()
    damaged = next(seq for seq, kind in enumerate(before, 1) if seq > len(before) // 2 and kind == "EffectIntended")
    executed = sends(ledger)
    garble(damaged)

    results = {int(n): None for n in executed}
    with caplog.at_level(logging.WARNING, "surefoot"):
        result, asked = settle_all(wf, recorded_value)

    assert result == expected
    assert sends(ledger) == executed, "an effect was executed again"
    assert len(asked) == 1, "only the effect whose own record was lost is in doubt; the others are proven"
    text = caplog.text
    assert f"entry {damaged} of {len(before)} is damaged" in text
    assert f"quarantined {len(before) - damaged + 1} entries" in text
    assert f"fell back: resuming after entry {damaged - 1}" in text
    assert "FellBack" in kinds()
    assert kinds().count("EffectRecovered") == len([n for n in results if n >= int(asked[0].split("#")[1])])


def recorded_value(occurrence: int) -> int:
    """What `send#occurrence` of `make` gave."""
    total = 0
    for n in range(occurrence):
        total = (total + n) * 2
    return total


def test_effects_without_evidence_are_in_doubt_until_as_many_calls_as_entries_were_lost(ledger):
    """All that lay beyond the gap is gone. Whatever may have been recorded there is asked for, what follows is not."""
    wf = make(ledger, pairs=10)
    wf.run("r")
    cut(12)

    _, asked = settle_all(wf, recorded_value)

    assert asked[0] == "send#4"
    assert asked == [f"send#{n}" for n in range(4, 11)]
    assert sends(ledger) == [str(n) for n in range(10)]


def test_the_blind_stretch_ends(ledger):
    """One entry cannot be read, so at most one effect is hidden in it: `send#4`, since `send#3` is known."""
    go_on = [False]

    @sf.effect
    def send(n: int) -> int:
        ledger.write(f"send {n} {sf.key()}")
        return n

    @sf.step
    def gate() -> bool:
        if not go_on[0]:
            raise KeyboardInterrupt
        return True

    @sf.workflow
    def wf() -> int:
        for n in range(3):
            send(n)
        gate()
        return sum(send(n) for n in range(3, 12))

    with pytest.raises(KeyboardInterrupt):
        wf.run("r")
    last = len(kinds())
    garble(kinds().index("EffectDone", 6) + 1)
    go_on[0] = True

    _, asked = settle_all(wf, lambda n: n - 1 if n <= 3 else None)

    assert asked == ["send#3", "send#4"], (last, asked)
    assert sorted(map(int, sends(ledger))) == list(range(12))


def test_stop_refuses_any_fallback(ledger, caplog):
    """Whoever wants to look first is not helped by a run that goes on."""
    wf = make(ledger, pairs=3, on_corruption="stop")
    wf.run("r")
    garble(5)
    count = len(ledger.lines)

    with pytest.raises(sf.JournalCorrupt, match="entry 5") as caught:
        wf.run("r")

    assert caught.value.exit_code == 4
    assert "surefoot repair r" in str(caught.value)
    assert len(ledger.lines) == count
    assert "fell back" not in caplog.text


def test_stop_can_be_configured_for_the_process(ledger):
    wf = make(ledger, pairs=3)
    wf.run("r")
    garble(5)
    sf.configure(on_corruption="stop")
    try:
        with pytest.raises(sf.JournalCorrupt):
            wf.run("r")
    finally:
        sf.configure(on_corruption="fallback")


@pytest.mark.parametrize("given", ["never", ""])
def test_an_unknown_policy_is_refused(given):
    with pytest.raises(sf.UsageError, match="is none of 'fallback', 'stop'"):
        sf.configure(on_corruption=given)
    with pytest.raises(sf.UsageError, match="is none of 'fallback', 'stop'"):
        sf.workflow(on_corruption=given)(lambda: None)


def test_nothing_valid_left_is_a_stop_and_never_a_fresh_start(ledger):
    wf = make(ledger, pairs=2)
    wf.run("r")
    count = len(ledger.lines)
    garble(1)

    with pytest.raises(sf.JournalCorrupt, match="nothing to go on from"):
        wf.run("r")
    assert len(ledger.lines) == count


def test_an_alert_is_given(ledger):
    """A warning in a log that nobody reads is not loud."""
    wf = make(ledger, pairs=2, on_crash="retry")
    wf.run("r")
    garble(5)
    heard: list[str] = []

    def broken(_: str) -> None:
        raise OSError("the bell is out of order")

    sf.configure(alerts=[broken, heard.append])
    try:
        wf.run("r")
    finally:
        sf.configure(alerts=[])

    assert len(heard) == 1
    assert "fell back" in heard[0]


def test_effects_that_may_be_retried_run_again_with_the_same_key(ledger):
    """The policy decides, as for any other effect in doubt."""
    wf = make(ledger, pairs=3, on_crash="retry")
    wf.run("r")
    cut(4)

    wf.run("r")

    keys: dict[str, set[str]] = {}
    for line in ledger.lines:
        if line.startswith("send"):
            _, n, key = line.split()
            keys.setdefault(n, set()).add(key)
    assert all(len(found) == 1 for found in keys.values())


def test_effects_that_shall_fail_fail(ledger):
    wf = make(ledger, pairs=3, on_crash="fail")
    wf.run("r")
    cut(4)

    with pytest.raises(sf.StepFailed, match="may have been executed before"):
        wf.run("r")
    assert sends(ledger) == ["0", "1", "2"]


def test_a_damaged_head_alone_loses_nothing(ledger, caplog):
    """All entries are there and hold: nothing is in doubt."""
    wf = make(ledger, pairs=3)
    expected = wf.run("r")
    change("UPDATE heads SET seal = zeroblob(32) WHERE run = 'r'")

    with caplog.at_level(logging.WARNING, "surefoot"):
        assert wf.run("r") == expected
    assert "fell back" in caplog.text
    assert sends(ledger) == ["0", "1", "2"]


@pytest.mark.parametrize("damage", ["DELETE FROM heads WHERE run = 'r'", "UPDATE heads SET seq = 3 WHERE run = 'r'"])
def test_without_a_believable_head_nobody_knows_how_much_is_lost(ledger, damage):
    """Then every effect that has no record is in doubt, to the end of the run."""
    wf = make(ledger, pairs=3)
    wf.run("r")
    cut(9, damage)

    _, asked = settle_all(wf, recorded_value)

    assert asked == ["send#3"]
    assert sends(ledger) == ["0", "1", "2"]


def test_the_damaged_one_is_not_the_newest_and_the_others_are_left_alone(ledger):
    wf = make(ledger, pairs=3, on_crash="retry")
    for run in ("a", "b", "c"):
        wf.run(run)
    before = {run: [entry.data for entry in sf.get_run(run).entries()] for run in ("a", "c")}
    garble(5, "b")

    wf.run("b")

    assert {run: [entry.data for entry in sf.get_run(run).entries()] for run in ("a", "c")} == before


def test_what_is_quarantined_is_kept_byte_for_byte(ledger):
    """Evidence for whoever looks into it later."""
    wf = make(ledger, pairs=3, on_crash="retry")
    wf.run("r")
    garble(6)
    connection = apsw.Connection(DATABASE)
    connection.set_busy_timeout(5000)
    question = "SELECT seq, body, seal FROM {} WHERE run = 'r' AND seq > 5 ORDER BY seq"
    before = connection.execute(question.format("entries")).fetchall()
    connection.close()

    wf.run("r")

    close_all()
    connection = apsw.Connection(DATABASE)
    connection.set_busy_timeout(5000)
    kept = connection.execute(question.format("quarantine")).fetchall()
    assert [row for row in kept if row in before] == before
    assert len(kept) == len(before) + 1, "and the entry that says so, a second time"
    connection.close()


def test_a_second_damage_is_stepped_back_from_as_well(ledger):
    wf = make(ledger, pairs=6)
    expected = wf.run("r")
    executed = sends(ledger)
    garble(12)
    settle_all(wf, recorded_value)
    garble(16)

    result, _ = settle_all(wf, recorded_value)

    assert result == expected
    assert sends(ledger) == executed


def test_damage_before_an_earlier_fallback_is_stepped_back_from(ledger):
    wf = make(ledger, pairs=6)
    expected = wf.run("r")
    executed = sends(ledger)
    garble(12)
    settle_all(wf, recorded_value)
    garble(8)

    result, _ = settle_all(wf, recorded_value)

    assert result == expected
    assert sends(ledger) == executed


def test_a_crash_in_the_blind_stretch_changes_nothing(ledger):
    """What was in doubt before the crash is in doubt after it."""
    wf = make(ledger, pairs=6)
    wf.run("r")
    executed = sends(ledger)
    cut(7)

    for _ in range(3):
        with pytest.raises(sf.InDoubt):
            wf.run("r")
        close_all()

    assert sends(ledger) == executed
    assert kinds().count("EffectSuspected") == 1


def test_branches_are_blind_each_for_itself(ledger):
    """Branches may come in another order than before: none may run an effect because another has made enough calls."""

    @sf.effect
    def send(name: str) -> str:
        ledger.write(f"send {name} {sf.key()}")
        return name

    @sf.workflow
    def wf() -> list[str]:
        return sf.map(send, ["a", "b", "c", "d"], key=str, concurrency=1)

    wf.run("r")
    cut(3)

    asked = set()
    for _ in range(10):
        try:
            wf.run("r")
            break
        except sf.InDoubt as stop:
            for one in stop.stops:
                asked.add(one.address)
                sf.get_run("r").settle(one.address, happened=one.address[1])

    assert asked == {f"[{name}]/send#1" for name in "abcd"}
    assert sorted(sends(ledger)) == ["a", "b", "c", "d"]


def test_a_lost_value_is_stepped_back_from(ledger, caplog):
    """The entry is sound, but the parts of its result are not: the step runs again, and heals what it shares."""

    @sf.step
    def read(n: int) -> list[str]:
        ledger.write(f"read {n}")
        return [f"{n} {line} " + "lorem ipsum " * 20 for line in range(20)]

    interrupted = []

    @sf.workflow
    def wf() -> list[int]:
        lengths = [len(read(n)) for n in range(4)]
        if not interrupted:
            interrupted.append(True)
            raise KeyboardInterrupt
        return lengths

    with pytest.raises(KeyboardInterrupt):
        wf.run("r")
    change("UPDATE parts SET body = zeroblob(length(body)) WHERE n = (SELECT max(n) / 2 FROM parts)")
    with pytest.raises(sf.JournalCorrupt, match="a value of it is damaged"):
        sf.get_run("r").steps()
    with caplog.at_level(logging.WARNING, "surefoot"):
        assert wf.run("r") == [20, 20, 20, 20]

    assert "a value of it is lost" in caplog.text
    assert max(ledger.counts.values()) == 2
    assert len(sf.get_run("r").steps()) == 4


def test_a_run_that_a_living_process_drives_is_not_stepped_back(program, ledger):
    """It goes on from what it has in memory; two histories of one run would be the end of both."""
    program.write(
        """
        import surefoot as sf

        @sf.step
        def first() -> int:
            return 1

        @sf.step
        def second() -> int:
            print("there", flush=True)
            open("gate").read()
            return 2

        @sf.workflow
        def wf() -> int:
            return first() + second()

        if __name__ == "__main__":
            print(wf.run("r"), flush=True)
        """
    )
    os.mkfifo("gate")
    child = program.start()
    assert child.stdout.readline() == "there\n"
    wf = make(ledger, name="wf")
    garble(3)

    with pytest.raises(sf.JournalCorrupt, match=f"pid {child.pid}"):
        wf.run("r")

    open("gate", "w").close()
    out, _ = child.communicate()
    assert out == "3\n", "the living process is not disturbed"


def test_async_workflows_step_back_too(ledger):
    import asyncio

    @sf.step
    async def draft(n: int) -> int:
        ledger.write(f"draft {n}")
        return n

    @sf.effect
    async def send(n: int) -> int:
        ledger.write(f"send {n} {sf.key()}")
        return n

    @sf.workflow
    async def wf() -> int:
        return sum([await send(await draft(n)) for n in range(4)])

    expected = asyncio.run(wf.run("r"))
    garble(6)

    result, asked = None, []
    for _ in range(10):
        try:
            result = asyncio.run(wf.run("r"))
            break
        except sf.InDoubt as stop:
            asked.append(stop.address)
            sf.get_run("r").settle(stop.address, happened=int(stop.address.split("#")[1]) - 1)

    assert result == expected
    assert sorted(sends(ledger)) == ["0", "1", "2", "3"]


def test_evidence_of_another_segment_is_not_evidence(ledger):
    """The same address in the next segment is another call, with another key."""

    @sf.effect
    def send(n: int) -> int:
        ledger.write(f"send {n} {sf.key()}")
        return n * 10

    @sf.workflow
    def wf(n: int) -> int:
        value = send(0)
        if n:
            sf.continue_as_new(n - 1)
        return value

    wf.run("r", 2)
    assert len(sends(ledger)) == 3
    garble(kinds().index("EffectDone") + 1)

    asked = []
    for _ in range(10):
        try:
            wf.run("r", 2)
            break
        except sf.InDoubt as stop:
            asked.append(stop.address)
            sf.get_run("r").settle(stop.address, happened=0)

    assert asked == ["send#1"]
    assert len(sends(ledger)) == 3


def test_planning_shows_what_is_in_doubt_and_changes_nothing(ledger):
    wf = make(ledger, pairs=6)
    wf.run("r")
    cut(7)
    with pytest.raises(sf.InDoubt):
        wf.run("r")
    size = len(kinds())

    plan = sf.get_run("r").plan()

    assert [address for address, _ in plan.in_doubt] == ["send#2"]
    assert plan.effects == []
    assert len(kinds()) == size


def test_the_file_mode_of_a_store_survives(ledger):
    wf = make(ledger, pairs=2, on_crash="retry")
    wf.run("r")
    garble(4)
    wf.run("r")
    assert os.stat(DATABASE).st_mode & 0o777 == 0o600


def test_evidence_counts_only_for_the_very_same_call(ledger):
    """A step that runs again may give another result: then the effect is asked for with other arguments."""
    price = [100]

    @sf.step
    def quote() -> int:
        return price[0]

    @sf.effect
    def pay(amount: int) -> str:
        ledger.write(f"pay {amount}")
        return f"paid {amount}"

    @sf.workflow
    def wf() -> str:
        return pay(quote())

    wf.run("r")
    garble(3)
    price[0] = 900

    with pytest.raises(sf.InDoubt, match="pay#1"):
        wf.run("r")
    assert ledger.lines == ["pay 100"]


def test_a_proof_whose_value_is_lost_is_no_proof(ledger):
    """That it happened is known; what it gave is not."""

    @sf.step
    def first() -> int:
        return 1

    @sf.effect
    def send() -> str:
        ledger.write("send")
        return "lorem ipsum " * 500

    @sf.workflow
    def wf() -> int:
        first()
        return len(send())

    wf.run("r")
    garble(3)
    change("DELETE FROM parts")

    with pytest.raises(sf.InDoubt, match="send#1"):
        wf.run("r")
    assert ledger.lines == ["send"]


def test_a_settled_suspicion_is_proven_after_a_second_damage(ledger):
    """A person's answer is evidence as well: nobody is asked the same twice."""
    wf = make(ledger, pairs=2)
    wf.run("r")
    cut(4)
    settle_all(wf, recorded_value)
    fell = kinds().index("FellBack") + 1
    settled = kinds().index("EffectSettled") + 1
    garble(fell + 1)
    assert settled > fell + 1

    _, asked = settle_all(wf, recorded_value)

    assert asked == []
    assert sends(ledger) == ["0", "1"]


def test_a_branch_that_comes_late_is_not_freed_by_one_that_came_far(ledger):
    """Before: b paid while a waited. Now: a makes five calls first. That says nothing about b."""
    import threading

    paid = threading.Event()
    width = [2]

    @sf.step
    def work(n: int) -> int:
        if width[0] == 2:
            paid.wait(30)
            raise KeyboardInterrupt
        return n

    @sf.effect
    def pay() -> int:
        ledger.write("pay")
        return 1

    def branch(name: str) -> int:
        if name == "a":
            return sum(work(n) for n in range(5))
        value = pay()
        paid.set()
        return value

    @sf.workflow
    def wf() -> list[int]:
        return sf.map(branch, ["a", "b"], key=str, concurrency=width[0])

    with pytest.raises(KeyboardInterrupt):
        wf.run("r")
    assert ledger.lines == ["pay"]
    cut(3)
    width[0] = 1

    with pytest.raises(sf.InDoubt, match=r"\[b\]/pay#1"):
        wf.run("r")
    assert ledger.lines == ["pay"]


def test_a_head_that_is_behind_what_is_there_tells_nothing(ledger):
    """It is damaged itself: how much there was, nobody can say."""
    from surefoot.engine.drive import fallback
    from surefoot.store.open import open_store

    wf = make(ledger, pairs=3)
    wf.run("r")
    garble(6)
    change("UPDATE heads SET seq = 8 WHERE run = 'r'")

    damage = fallback.diagnose(open_store("sqlite:///.surefoot/runs.db", create=False), "r")

    assert damage is not None
    assert (damage.entry.after, damage.entry.lost) == (5, fallback.UNKNOWN)


def test_what_an_earlier_fallback_lost_stays_lost(ledger):
    """A second damage sets the first `FellBack` aside: what it had lost may still have happened."""
    from surefoot.engine.drive import fallback
    from surefoot.store.open import open_store

    wf = make(ledger, pairs=8)
    wf.run("r")
    before = len(kinds())
    cut(12)
    with pytest.raises(sf.InDoubt):
        wf.run("r")
    assert kinds()[11] == "FellBack"
    between = len(kinds()) - 9
    garble(10)

    damage = fallback.diagnose(open_store("sqlite:///.surefoot/runs.db", create=False), "r")

    assert damage is not None
    assert damage.entry.lost == between + before - 11


def test_what_a_damaged_fallback_lost_is_known_from_its_copy(ledger):
    """The entry is the only one that tells how much was lost; so it is kept twice."""
    from surefoot.engine.drive import fallback
    from surefoot.store.open import open_store

    wf = make(ledger, pairs=6)
    wf.run("r")
    before = len(kinds())
    cut(7)
    with pytest.raises(sf.InDoubt):
        wf.run("r")
    between = len(kinds()) - 6
    garble(7)

    damage = fallback.diagnose(open_store("sqlite:///.surefoot/runs.db", create=False), "r")

    assert damage is not None
    assert damage.entry.lost == between + before - 6


def test_a_fallback_damaged_twice_leaves_an_unknown_loss(ledger):
    """What it had lost is nowhere else on record: every effect without a record is in doubt."""
    wf = make(ledger, pairs=6)
    wf.run("r")
    executed = sends(ledger)
    cut(7)
    with pytest.raises(sf.InDoubt):
        wf.run("r")
    garble(7)
    change("UPDATE quarantine SET body = x'00' WHERE kind = 11")

    _, asked = settle_all(wf, recorded_value)

    assert asked == [f"send#{n}" for n in range(2, 7)]
    assert sends(ledger) == executed


# --- what a hostile reader found ------------------------------------------------------------------------------------


def test_an_attempt_that_was_due_when_the_run_fell_back_may_have_been_made(ledger):
    """Settled as not happened, then executed, then the execution is lost: it is not run again unasked."""
    calls = []

    @sf.effect
    def charge() -> str:
        calls.append(1)
        if len(calls) == 1:
            raise KeyboardInterrupt
        ledger.write("charge")
        return "receipt"

    @sf.effect
    def after() -> None: ...

    @sf.workflow
    def wf() -> str:
        receipt = charge()
        after()
        return receipt

    with pytest.raises(KeyboardInterrupt):
        wf.run("r")
    with pytest.raises(sf.InDoubt):
        wf.run("r")
    sf.get_run("r").settle("charge#1", not_happened=True)
    wf.run("r")
    last_claim = len(kinds()) - kinds()[::-1].index("RunAdopted")
    garble(last_claim)

    result, asked = None, []
    for _ in range(5):
        try:
            result = wf.run("r")
            break
        except sf.InDoubt as stop:
            asked.append(stop.address)
            sf.get_run("r").settle(stop.address, happened="receipt")

    assert result == "receipt"
    assert ledger.lines == ["charge"]


def test_a_retry_that_was_due_when_the_run_fell_back_may_have_been_made(ledger):
    calls = []

    @sf.effect(not_done=(ValueError,), retries=3, backoff=sf.Backoff(first="1ms"))
    def charge() -> str:
        calls.append(1)
        if len(calls) == 1:
            raise ValueError("busy; nothing was done")
        ledger.write("charge")
        return "receipt"

    @sf.workflow
    def wf() -> str:
        return charge()

    wf.run("r")
    garble([seq for seq, kind in enumerate(kinds(), 1) if kind == "EffectIntended"][1])

    with pytest.raises(sf.InDoubt, match="charge#1"):
        wf.run("r")
    assert ledger.lines == ["charge"]


def test_steps_that_take_more_turns_than_before_free_no_effect(ledger):
    """An agent that polls: one poll before, eight now. That says nothing about the payment behind them."""
    ready = [True]

    @sf.step
    def poll(n: int) -> bool:
        return ready[0] or n == 7

    @sf.effect
    def charge() -> int:
        ledger.write("charge")
        return 1

    @sf.workflow
    def wf() -> int:
        for n in range(8):
            if poll(n):
                break
        return charge()

    wf.run("r")
    cut(3)
    ready[0] = False

    with pytest.raises(sf.InDoubt, match="charge#1"):
        wf.run("r")
    assert ledger.lines == ["charge"]


def test_a_cancelled_run_stays_cancelled(ledger):
    """The request lies whole behind the gap: what a person has cancelled does not come back to life."""

    @sf.step
    def look() -> int:
        return 1

    @sf.effect
    def charge() -> None:
        ledger.write("charge")

    @sf.workflow
    def wf() -> None:
        look()
        sf.wait_event("go")
        charge()

    with pytest.raises(sf.WaitingForAnswer):
        wf.run("r")
    sf.get_run("r").cancel(by="ann")
    garble(3)

    with pytest.raises(sf.Cancelled, match="ann"):
        wf.run("r")
    assert ledger.lines == []


def test_an_event_that_was_sent_is_not_lost(ledger):
    """Whoever sent it was told that it is there."""

    @sf.step
    def look() -> int:
        return 1

    @sf.workflow
    def wf() -> object:
        look()
        return sf.wait_event("go")

    with pytest.raises(sf.WaitingForAnswer):
        wf.run("r")
    sf.send_event("r", "go", ["large " * 1000])
    garble(3)

    assert wf.run("r") == ["large " * 1000]


def test_damage_in_another_store_is_not_taken_for_our_own(ledger, tmp_path):
    """A step that looks at a run of the same id somewhere else."""
    other = f"sqlite:///{tmp_path}/other.db"

    @sf.step
    def price() -> int:
        return 100

    @sf.workflow
    def wf() -> int:
        price()
        return sf.get_run("r", store=other).verify()

    @sf.workflow
    def theirs() -> int:
        return price()

    theirs.using(store=other).run("r")
    close_all()
    connection = apsw.Connection(f"{tmp_path}/other.db")
    connection.execute("UPDATE entries SET body = x'00' WHERE seq = 2")
    connection.close()

    with pytest.raises(sf.JournalCorrupt):
        wf.run("r")
    assert "FellBack" not in kinds()


def test_what_a_person_agreed_to_is_done_only_if_it_is_still_so(ledger):
    """While the person thinks, a cron job mends and finishes the run."""
    from surefoot.engine.drive import fallback
    from surefoot.engine.process.clock import SystemClock
    from surefoot.store.open import open_store

    wf = make(ledger, pairs=3, on_crash="retry")
    wf.run("r")
    garble(5)
    store = open_store("sqlite:///.surefoot/runs.db", create=False)
    shown = fallback.diagnose(store, "r")
    wf.run("r")

    assert fallback.fall_back(store, SystemClock(), "r", seen=shown) is None
    assert sf.get_run("r").status == "done"


def test_effects_that_the_code_no_longer_asks_for_are_told_of(ledger, caplog):
    """A step decides otherwise the second time. What was done the first time is still out there."""
    decision = ["pay"]

    @sf.step
    def decide() -> str:
        return decision[0]

    @sf.effect
    def pay() -> None:
        ledger.write("pay")

    @sf.workflow
    def wf() -> str:
        choice = decide()
        if choice == "pay":
            pay()
        return choice

    wf.run("r")
    garble(3)
    decision[0] = "refuse"

    with caplog.at_level(logging.WARNING, "surefoot"):
        assert wf.run("r") == "refuse"
    assert "not asked for any more: pay#1" in caplog.text
    assert "CallsUnclaimed" in kinds()


def test_evidence_that_rots_later_is_missed(ledger):
    """An intact record was the only one that knew of the effect; now it is damaged as well."""
    wf = make(ledger, pairs=3)
    wf.run("r")
    executed = sends(ledger)
    garble(4)
    with pytest.raises(sf.InDoubt):
        wf.run("r")
    change("UPDATE quarantine SET body = x'00' WHERE kind IN (23, 24)")

    settle_all(wf, recorded_value)

    assert sends(ledger) == executed


def test_a_handle_that_was_given_up_leaves_its_process_alive(program, ledger):
    """After an I/O error others must not take over what is still in flight here."""
    program.write(
        """
        import os, surefoot as sf
        from surefoot.store.open import open_store

        @sf.effect
        def pay() -> int:
            open_store("sqlite:///.surefoot/runs.db", create=False)._poison("the disk failed")
            print("in flight", flush=True)
            open("gate").read()
            return 1

        @sf.workflow
        def wf() -> int:
            return pay()

        if __name__ == "__main__":
            wf.run("r")
        """
    )
    os.mkfifo("gate")
    child = program.start()
    assert child.stdout.readline() == "in flight\n"

    with pytest.raises(sf.UsageError, match="is alive"):
        sf.get_run("r").settle("pay#1", not_happened=True)

    open("gate", "w").close()
    child.communicate()


def test_lost_arguments_of_a_run_are_damage_and_not_another_task():
    """ "Use another run id" would be advice to start afresh what may be half done."""

    @sf.workflow
    def wf(text: str) -> int:
        return len(text)

    wf.run("r", "lorem ipsum " * 500)
    change("DELETE FROM parts")

    with pytest.raises(sf.JournalCorrupt, match="run r: no entry of it is valid"):
        wf.run("r", "dolor sit amet " * 500)


def test_lost_arguments_of_a_call_are_damage_and_not_changed_code(ledger):
    """Whether they are those of today cannot be told, so nobody is told to put old code back."""
    text = "lorem ipsum " * 500

    @sf.effect
    def send(what: str) -> int:
        ledger.write("send")
        return len(what)

    @sf.workflow
    def wf() -> bool:
        send(text)
        return bool(sf.approve("go on?"))

    with pytest.raises(sf.WaitingForAnswer):
        wf.run("r")
    sf.get_run("r").answer("approve#1", True)
    change("DELETE FROM parts")
    text = "dolor sit amet " * 500

    with pytest.raises(sf.JournalCorrupt, match="a value of it is damaged"):
        wf.run("r")
    assert ledger.lines == ["send"]
