"""Parallel branches: deterministic names, results in order, and stops that nobody can swallow."""

from __future__ import annotations

import asyncio
import concurrent.futures
import inspect
import threading
import warnings
from datetime import UTC, datetime

import pytest

import surefoot as sf
import surefoot.aio as asf
from surefoot import witness
from surefoot.core.entry import KINDS


def addresses(run_id: str) -> set[str]:
    return {call.address for call in sf.get_run(run_id).steps()}


@sf.step
def double(i: int) -> int:
    return i * 2


@asf.step
async def adouble(i: int) -> int:
    await asyncio.sleep(0)
    return i * 2


def test_gather_numbers_branches_by_position():
    @sf.workflow
    def wf() -> list[int]:
        return sf.gather(lambda: double(1), lambda: double(2) + double(3))

    assert wf.run("r") == [2, 10]
    assert addresses("r") == {"gather#1.0/double#1", "gather#1.1/double#1", "gather#1.1/double#2"}


def test_map_numbers_branches_by_key():
    @sf.workflow
    def wf() -> list[int]:
        return sf.map(double, [3, 1, 2], key=lambda i: f"item {i}", concurrency=2)

    assert wf.run("r") == [6, 2, 4]
    assert addresses("r") == {"[item 1]/double#1", "[item 2]/double#1", "[item 3]/double#1"}


def test_map_without_keys_numbers_by_position():
    @sf.workflow
    def wf() -> list[int]:
        return sf.map(double, [1, 2])

    assert wf.run("r") == [2, 4]
    assert addresses("r") == {"map#1.0/double#1", "map#1.1/double#1"}


def test_duplicate_map_keys_are_refused():
    @sf.workflow
    def wf() -> list[int]:
        return sf.map(double, [1, 2, 1], key=str)

    with pytest.raises(sf.UsageError, match="'1' twice"):
        wf.run("r")


def test_async_gather_and_map_are_named_the_same_way():
    @asf.workflow
    async def wf() -> list[int]:
        first = await asf.gather(adouble(1), adouble(2))
        return first + await asf.map(adouble, [3, 4], key=str, concurrency=1)

    assert asyncio.run(wf.run("r")) == [2, 4, 6, 8]
    assert addresses("r") == {"gather#1.0/adouble#1", "gather#1.1/adouble#1", "[3]/adouble#1", "[4]/adouble#1"}


def test_map_collects_failures_beside_results():
    @sf.step
    def half(i: int) -> int:
        if i % 2:
            raise ValueError(f"{i} is odd")
        return i // 2

    @sf.workflow
    def wf() -> tuple[dict[str, int], list[str]]:
        result = sf.map(half, range(4), key=str, on_error="collect")
        return result.ok, [str(error) for error in result.failed.values()]

    assert wf.run("r") == ({"0": 0, "2": 1}, ["1 is odd", "3 is odd"])


def test_the_first_failure_by_position_is_raised_whatever_the_scheduling():
    second_failed = threading.Event()

    @sf.step
    def fail(i: int) -> int:
        if i == 0:
            assert second_failed.wait(30)
        else:
            second_failed.set()
        raise ValueError(f"branch {i}")

    @sf.workflow
    def wf() -> list[int]:
        return sf.map(fail, [0, 1], key=str, concurrency=2)

    with pytest.raises(ValueError, match="branch 0"):
        wf.run("r")


def test_one_stopped_branch_of_three_lets_the_others_finish_and_stops_the_run(ledger):
    """An approval-like stop in one branch must not cancel or repeat what the others do."""

    @sf.effect
    def act(i: int) -> int:
        ledger.write(f"act {i}")
        return i

    def branch(i: int) -> object:
        act(i)
        if i == 1:
            return sf.wait_event("approved")
        act(i + 10)
        return i

    @sf.workflow
    def wf() -> list[object]:
        return sf.map(branch, [0, 1, 2], key=str, concurrency=3)

    with pytest.raises(sf.WaitingForAnswer, match="'approved'"):
        wf.run("r")
    assert sorted(ledger.lines) == ["act 0", "act 1", "act 10", "act 12", "act 2"]
    assert sf.get_run("r").status == "waiting"
    length = len(sf.get_run("r").entries())
    with pytest.raises(sf.WaitingForAnswer):
        wf.run("r")
    assert len(sf.get_run("r").entries()) == length

    sf.send_event("r", "approved", "yes")
    assert sf.get_run("r").status == "queued"
    assert wf.run("r") == [0, "yes", 2]
    assert len(ledger.lines) == 5


def test_a_tool_that_catches_exception_does_not_catch_a_stop(ledger):
    @sf.effect
    def charge() -> None:
        raise TimeoutError

    @sf.step
    def later() -> None:
        ledger.write("later")

    @sf.workflow
    def wf() -> str:
        try:
            charge()
        except Exception:
            later()
        return "all fine"

    with pytest.raises(sf.InDoubt):
        wf.run("r")
    assert ledger.lines == []


def test_a_stop_swallowed_by_except_baseexception_is_raised_again_by_the_next_verb(ledger):
    @sf.effect
    def charge() -> None:
        raise TimeoutError

    @sf.step
    def later() -> None:
        ledger.write("later")

    @sf.workflow
    def wf(verb: bool) -> str:
        try:
            charge()
        except BaseException:
            if verb:
                later()
        return "all fine"

    for verb in (True, False):
        with pytest.raises(sf.InDoubt):
            wf.run(f"r-{verb}", verb)
        assert sf.get_run(f"r-{verb}").status == "stopped", "a value returned anyway is discarded"
    assert ledger.lines == []


def test_asyncio_gather_with_return_exceptions_cannot_swallow_a_stop(ledger):
    @asf.effect
    async def charge() -> None:
        raise TimeoutError

    @asf.step
    async def later() -> None:
        ledger.write("later")

    async def tool(name: str) -> None:
        with asf.scope(name):
            await charge()

    @asf.workflow
    async def wf() -> str:
        await asyncio.gather(tool("a"), tool("b"), return_exceptions=True)
        await later()
        return "all fine"

    with pytest.raises(sf.InDoubt) as stop:
        asyncio.run(wf.run("r"))
    assert ledger.lines == []
    assert {one.address for one in stop.value.stops} == {"[a]/charge#1", "[b]/charge#1"}


def test_a_task_group_around_a_stop_is_unwrapped():
    @asf.effect
    async def charge() -> None:
        raise TimeoutError

    async def tool(name: str) -> None:
        with asf.scope(name):
            await charge()

    @asf.workflow
    async def wf() -> str:
        async with asyncio.TaskGroup() as group:
            group.create_task(tool("a"))
        return "all fine"

    with pytest.raises(sf.InDoubt):
        asyncio.run(wf.run("r"))


def test_plain_asyncio_gather_over_helpers_is_refused_with_the_cure():
    """Its tasks would be numbered by luck; swallowing the refusal does not help."""

    async def helper(i: int) -> int:
        return await adouble(i)

    @asf.workflow
    async def wf() -> object:
        found = await asyncio.gather(helper(1), helper(2), return_exceptions=True)
        return len(found)

    with pytest.raises(sf.UsageError, match=r"sf\.gather"):
        asyncio.run(wf.run("r"))
    assert sf.get_run("r").status == "queued", "mended code can go on with the same run"


def test_an_effect_in_a_thread_pool_is_refused_with_the_cure(ledger):
    """A thread of a pool belongs to no run: the effect would not be recorded."""

    @sf.effect
    def charge() -> None:
        ledger.write("charge")

    @sf.workflow
    def wf() -> None:
        with concurrent.futures.ThreadPoolExecutor() as pool:
            pool.submit(charge).result()

    with pytest.raises(sf.UsageError, match=r"sf\.map or sf\.gather"):
        wf.run("r")
    assert ledger.lines == []
    assert sf.get_run("r").status == "queued"


def test_a_step_in_a_thread_pool_warns_once():
    @sf.step
    def look() -> int:
        return 1

    @sf.workflow
    def wf() -> list[int]:
        with concurrent.futures.ThreadPoolExecutor() as pool:
            return [pool.submit(look).result() for _ in range(3)]

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert wf.run("r") == [1, 1, 1]
    assert [str(one.message)[:9] for one in caught] == ["step look"]


def test_outside_says_i_mean_it(ledger):
    @sf.effect
    def log() -> None:
        ledger.write("log")

    def free() -> None:
        with sf.outside():
            log()

    @sf.workflow
    def wf() -> None:
        with concurrent.futures.ThreadPoolExecutor() as pool:
            pool.submit(free).result()
        free()

    wf.run("r")
    assert ledger.lines == ["log", "log"]
    assert addresses("r") == set()


def test_a_blocking_call_handed_to_a_thread_belongs_to_the_run():
    @asf.workflow
    async def wf() -> int:
        return await asyncio.to_thread(double, 4)

    assert asyncio.run(wf.run("r")) == 8
    assert addresses("r") == {"double#1"}


BLOCKING = {
    "approve": lambda: sf.approve("on?"),
    "ask": lambda: sf.ask("how many?"),
    "child": lambda: sf.child(side, "child"),
    "gather": lambda: sf.gather(lambda: 1),
    "map": lambda: sf.map(double, [1]),
    "send_event": lambda: sf.send_event("other", "paid"),
    "sleep": lambda: sf.sleep(1),
    "sleep_until": lambda: sf.sleep_until(datetime.now(UTC)),
    "undo": sf.undo,
    "verify": sf.verify,
    "wait_event": lambda: sf.wait_event("paid"),
    "watch": lambda: sf.watch(witness.env("HOME")),
}


@sf.workflow(name="side")
def side() -> int:
    return 1


@pytest.mark.parametrize("verb", BLOCKING)
def test_a_blocking_verb_in_an_async_workflow_names_the_cure(verb):
    """It would hold up the loop, and with it every other run and heartbeat there, perhaps until somebody answers."""

    @asf.workflow
    async def wf() -> None:
        BLOCKING[verb]()

    with pytest.raises(sf.UsageError, match=rf"`import surefoot\.aio as sf` and `await sf\.{verb}\("):
        asyncio.run(wf.run("r"))
    assert sf.get_run("r").steps() == []


def test_every_verb_that_has_an_awaitable_twin_is_among_these():
    """One that is added later must not slip through."""
    twins = {name for name in asf.__all__ if inspect.iscoroutinefunction(getattr(asf, name))}

    assert twins - {"get_run", "runs"} == set(BLOCKING)


def test_a_wait_inside_a_step_is_refused():
    @sf.step
    def look() -> None:
        sf.sleep(1)

    @sf.workflow
    def wf() -> None:
        look()

    with pytest.raises(sf.UsageError, match=r"sf\.sleep\(\) inside step look#1"):
        wf.run("r")


def test_a_cancelled_async_effect_is_finished_and_recorded_before_the_cancellation_is_passed_on(ledger):
    """Cancellation between effect and record is a crash in miniature."""
    started = asyncio.Event()
    release = asyncio.Event()

    @asf.effect
    async def charge() -> str:
        ledger.write("charge")
        started.set()
        await release.wait()
        return "ch_1"

    @asf.workflow
    async def wf() -> str:
        return await charge()

    async def main() -> None:
        task = asyncio.create_task(wf.run("r"))
        await started.wait()
        task.cancel()
        await asyncio.sleep(0)
        release.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert sf.get_run("r").steps()[0].status == "done"
    assert asyncio.run(wf.run("r")) == "ch_1"
    assert ledger.lines == ["charge"]


def test_cancelling_one_run_does_not_touch_the_others_that_commit_with_it():
    @asf.workflow
    async def wf(n: int) -> int:
        total = 0
        for i in range(20):
            total += await adouble(i)
        return total + n

    async def main() -> list[object]:
        tasks = [asyncio.create_task(wf.run(f"r-{n}", n)) for n in range(10)]
        await asyncio.sleep(0)
        tasks[3].cancel()
        return await asyncio.gather(*tasks, return_exceptions=True)

    results = asyncio.run(main())
    assert [r for n, r in enumerate(results) if n != 3] == [380 + n for n in range(10) if n != 3]
    assert isinstance(results[3], asyncio.CancelledError)


def test_an_event_sent_inside_a_run_arrives_once(ledger):
    @sf.workflow
    def receiver() -> object:
        return sf.wait_event("hello")

    @sf.workflow
    def sender() -> None:
        sf.send_event("to", "hello", {"n": 1})

    with pytest.raises(sf.WaitingForAnswer):
        receiver.run("to")
    sender.run("from")
    sender.run("from")

    assert receiver.run("to") == {"n": 1}
    assert [entry.kind for entry in sf.get_run("to").entries()].count("EventSent") == 1


def test_an_event_that_does_not_come_in_time_is_a_timeout():
    @sf.workflow
    def wf() -> str:
        try:
            return sf.wait_event("never", timeout=0.01)
        except TimeoutError:
            return "too late"

    assert wf.using(wait="30s").run("r") == "too late"


def test_asked_to_wait_the_process_waits_for_the_event():
    asking = threading.Event()

    @sf.workflow
    def wf() -> object:
        asking.set()
        return sf.wait_event("go")

    def send() -> None:
        assert asking.wait(30)
        while sf.get_run("r").entries()[-1].kind != "WaitStarted":
            pass
        sf.send_event("r", "go", 5)

    thread = threading.Thread(target=send)
    thread.start()
    assert wf.using(wait="30s").run("r") == 5
    thread.join(30)


def test_continue_as_new_inside_a_branch_is_refused():
    @sf.workflow
    def wf() -> None:
        sf.gather(sf.continue_as_new)

    with pytest.raises(sf.UsageError, match="outside of scopes and branches"):
        wf.run("r")


def test_a_task_left_behind_cannot_write_into_a_run_that_has_ended():
    """Its late record would stand behind the run's end, and the journal would be impossible."""
    release = asyncio.Event()
    tasks: list[asyncio.Task[None]] = []

    @asf.step
    async def slow() -> int:
        await release.wait()
        return 1

    async def left_behind() -> None:
        with asf.scope("left behind"):
            await slow()

    @asf.workflow
    async def wf() -> str:
        tasks.append(asyncio.create_task(left_behind()))
        await adouble(1)
        return "done"

    async def main() -> None:
        with pytest.raises(sf.UsageError, match="was still running"):
            await wf.run("r")
        release.set()
        with pytest.raises(sf.SurefootError):
            await tasks[0]

    asyncio.run(main())
    assert sf.get_run("r").status == "queued"
    assert sf.get_run("r").verify() > 0


def test_a_task_of_an_earlier_segment_cannot_call_into_the_next():
    """Its calls would be recorded under the addresses of calls that are not theirs."""
    errors: list[BaseException] = []
    go_on = asyncio.Event()

    async def straggler() -> None:
        with asf.scope("x"):
            await go_on.wait()
            try:
                await adouble(1)
            except sf.UsageError as error:
                errors.append(error)

    tasks = []

    @asf.workflow
    async def wf(n: int) -> int:
        if n == 0:
            tasks.append(asyncio.create_task(straggler()))
            await adouble(0)
            asf.continue_as_new(1)
        go_on.set()
        await tasks[0]
        return await adouble(n)

    with pytest.raises(sf.UsageError, match="outlived"):
        asyncio.run(wf.run("r", 0))
    assert len(errors) == 1


def test_a_lazy_entry_is_never_written_behind_the_end_of_a_run():
    """The ticker writes old lazy entries by itself; it must not come after the last one."""
    from surefoot.engine.process import config

    @sf.workflow
    def wf(n: int) -> None:
        sf.now()

    @sf.workflow
    def warm_up() -> None: ...

    warm_up.run("warm-up")
    runtime = config.runtime(create=False)
    stop = threading.Event()

    def hurry() -> None:
        while not stop.is_set():
            for session in runtime.driven():
                session.journal.flush(runtime.clock.now() + 10)

    thread = threading.Thread(target=hurry)
    thread.start()
    try:
        for n in range(50):
            wf.run(f"r-{n}", n)
    finally:
        stop.set()
        thread.join(30)

    assert all(sf.get_run(f"r-{n}").entries()[-1].kind == "RunDone" for n in range(50))


def test_an_effect_in_flight_is_recorded_although_another_branch_misuses_surefoot(ledger):
    """What certainly happened must not end up in doubt because of somebody else's mistake."""
    in_effect, misused = threading.Event(), threading.Event()

    @sf.effect
    def charge() -> str:
        in_effect.set()
        assert misused.wait(30)
        ledger.write("charge")
        return "ch_1"

    @sf.step
    def waits() -> None:
        sf.sleep(1)

    def misuse() -> None:
        assert in_effect.wait(30)
        try:
            waits()
        finally:
            misused.set()

    @sf.workflow
    def wf() -> list[object]:
        return sf.gather(charge, misuse)

    with pytest.raises(sf.UsageError, match=r"sf\.sleep\(\) inside step"):
        wf.run("r")
    assert [call.status for call in sf.get_run("r").steps() if call.kind == "effect"] == ["done"]


def test_another_runs_stop_is_not_this_runs_failure():
    @sf.effect
    def charge() -> None:
        raise TimeoutError

    @sf.workflow
    def inner() -> str:
        charge()
        return "paid"

    @sf.workflow
    def outer() -> str:
        return inner.run("inner")

    with pytest.raises(sf.InDoubt, match="run inner"):
        outer.run("outer")
    assert sf.get_run("outer").status == "queued"
    sf.get_run("inner").settle("charge#1", happened=None)
    assert outer.run("outer") == "paid"


def test_blocking_and_async_calls_of_one_run_claim_it_once(kinds):
    """Two claims of one process would fence each other."""
    crashed: list[int] = []

    @asf.workflow
    async def wf() -> list[int]:
        async def in_thread() -> int:
            return await asyncio.to_thread(double, 3)

        if not crashed:
            crashed.append(1)
            raise KeyboardInterrupt
        return await asf.gather(adouble(1), in_thread(), adouble(2))

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(wf.run("r"))
    assert asyncio.run(wf.run("r")) == [2, 6, 4]
    assert kinds("r").count("RunAdopted") == 2


def swallowing(wait):
    """What an agent framework makes of anything that goes wrong in a tool."""
    try:
        return wait()
    except BaseException:
        return "the tool failed"


@pytest.mark.parametrize("branch", ["gather", "map"])
def test_what_a_branch_makes_of_a_stop_does_not_count(branch, ledger):
    """The rest of the run must not go on with a value that stands for nothing."""

    @sf.effect
    def send(words: object) -> None:
        ledger.write(words)

    def ask(_: int = 0) -> object:
        return swallowing(lambda: sf.approve("well?"))

    @sf.workflow
    def wf() -> None:
        send(sf.gather(ask) if branch == "gather" else sf.map(ask, [1]))

    with pytest.raises(sf.WaitingForAnswer):
        wf.run("r")
    assert ledger.lines == []


def test_what_an_async_branch_makes_of_a_stop_does_not_count(ledger):
    @asf.effect
    async def send(words: object) -> None:
        ledger.write(words)

    async def ask() -> object:
        try:
            return await asf.approve("well?")
        except BaseException:
            return "the tool failed"

    @asf.workflow
    async def wf() -> None:
        await send(await asf.gather(ask()))

    with pytest.raises(sf.WaitingForAnswer):
        asyncio.run(wf.run("r"))
    assert ledger.lines == []


def test_effect_in_flight_is_recorded_before_the_run_is_let_go_of(kinds):
    """`asyncio.gather` leaves at the first exception. Let go of now, the run could be resumed elsewhere, and a check
    would find that the effect has not happened yet."""
    stopped = asyncio.Event()

    @asf.effect
    async def pay() -> str:
        await asyncio.wait_for(stopped.wait(), 20)
        await asyncio.sleep(0.05)
        return "paid"

    @asf.workflow
    async def wf() -> None:
        async def paying() -> None:
            with asf.scope("a"):
                await pay()

        async def asking() -> None:
            with asf.scope("b"):
                try:
                    await asf.approve("well?")
                finally:
                    stopped.set()

        await asyncio.gather(paying(), asking())

    with pytest.raises(sf.WaitingForAnswer):
        asyncio.run(wf.run("r"))
    assert kinds("r")[-2:] == ["EffectDone", "RunStopped"]


# --- how far it is -----------------------------------------------------------------------------------------


def mapped(make, total, **options):
    """A workflow that maps a step over so many items; what each call saw of the run's progress on record."""
    seen: list[object] = []

    @sf.step
    def visit(n: int) -> int:
        seen.append(sf.get_run("r").progress)
        return n

    @sf.step
    async def visit_async(n: int) -> int:
        return await asyncio.to_thread(visit, n)

    if make == "blocking":

        @sf.workflow(name="counted")
        def wf() -> None:
            sf.map(visit, range(total), concurrency=1, **options)

        return (lambda: wf.run("r")), seen

    @sf.workflow(name="counted_async")
    async def wf_async() -> None:
        await asf.map(visit_async, range(total), concurrency=1, **options)

    return (lambda: asyncio.run(wf_async.run("r"))), seen


@pytest.mark.parametrize("make", ["blocking", "async"])
@pytest.mark.parametrize("options", [{}, {"key": str}])
def test_how_far_a_map_is_can_be_seen_from_outside(own_folder, make, options):
    """It knows how many there are. Whoever waits for forty documents wants to see the tenth."""
    run, seen = mapped(make, 4, **options)

    run()

    assert [(found.done, found.total) for found in seen if found is not None][-1] == (2, 4)
    now = sf.get_run("r").progress
    assert (now.done, now.total, now.note) == (4, 4, "items of sf.map")


def test_a_long_map_makes_few_notes_and_no_writes_for_them(own_folder, monkeypatch):
    """It rides with what is written anyway."""
    from surefoot.store.sqlite.store import SqliteStore

    batches: list[list[str]] = []
    append = SqliteStore.append

    def counted(store, batch):
        batches.append([KINDS[record.kind].__name__ for item in batch for record in item.records])
        return append(store, batch)

    monkeypatch.setattr(SqliteStore, "append", counted)

    @sf.step
    def visit(n: int) -> int:
        return n

    @sf.workflow(name="counted_long")
    def wf() -> None:
        sf.map(visit, range(300), concurrency=1)

    wf.run("r")

    assert sum(batch.count("Progressed") for batch in batches) <= 21
    assert not [batch for batch in batches if set(batch) == {"Progressed"}]


def test_a_replayed_map_notes_nothing(own_folder):
    """A resume that changes nothing writes nothing."""

    @sf.step
    def visit(n: int) -> int:
        return n

    @sf.workflow(name="counted_again")
    def wf() -> None:
        sf.map(visit, range(3))
        sf.approve("Go?")

    for _ in range(2):
        with pytest.raises(sf.WaitingForAnswer):
            wf.run("r")
        length = len(sf.get_run("r").entries())
    sf.get_run("r").answer("approve#1", True)
    wf.run("r")

    kinds = [entry.kind for entry in sf.get_run("r").entries()]
    assert len(kinds) > length
    assert "Progressed" not in kinds[length:]
    assert "CallsUnclaimed" not in kinds, "a note is no call"


def test_what_the_workflow_says_of_its_progress_counts_more(own_folder):
    @sf.step
    def visit(n: int) -> int:
        return n

    @sf.workflow(name="counted_by_itself")
    def wf() -> None:
        sf.progress(1, 3, "chapters")
        sf.map(visit, range(5))

    wf.run("r")

    assert sf.get_run("r").progress.note == "chapters"


def test_of_maps_inside_each_other_the_outermost_is_told(own_folder):
    """Three of four books says more than nine of ten pages."""

    @sf.step
    def visit(n: int) -> int:
        return n

    @sf.workflow(name="counted_nested")
    def wf() -> None:
        sf.map(lambda _: sf.map(visit, range(10)), range(4))
        visit(1)

    wf.run("r")

    now = sf.get_run("r").progress
    assert (now.done, now.total) == (4, 4)
    assert {entry.data["total"] for entry in sf.get_run("r").entries() if entry.kind == "Progressed"} == {4}
