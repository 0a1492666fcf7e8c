"""What adapters may use of the engine besides the public names: each seam by itself, without any framework."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pytest

import surefoot as sf
import surefoot.aio as asf
from surefoot.engine import seams
from surefoot.engine.declare import call_spec
from surefoot.engine.declare.declared import Declared, declared
from surefoot.engine.declare.signals import ReleaseSignal, RunSignal
from surefoot.engine.verbs.strands import Strand


@sf.step
def look(n: int) -> int:
    return n


@sf.effect(ignore="self", timeout="3s")
async def act(self: object, n: int) -> int:
    return n


@sf.workflow
def flow() -> int:
    return look(1)


@sf.transaction("sqlite:///own.db")
def copy_range(db: object, low: int) -> int:
    return low


class Shop:
    sell = act


# -- E1: what a function is declared as --------------------------------------------------------------


def test_a_decorated_function_says_what_it_is():
    """An adapter meets functions under a framework's decorator, and must not look into closures."""
    assert declared(look) == Declared("step", "look")
    assert declared(act) == Declared("effect", "act", 3.0, ("self",))
    assert declared(flow) == Declared("workflow", "flow")
    assert declared(copy_range).kind == "effect"


def test_a_method_and_a_partial_are_what_is_under_them():
    assert declared(Shop().sell).kind == "effect"
    assert declared(functools.partial(look, 1)).kind == "step"


def test_anything_else_is_declared_as_nothing():
    """A class with an attribute `spec` of its own is no step."""

    class Thing:
        spec = "a specification"

        def __call__(self) -> None: ...

    assert declared(print) is None
    assert declared(Thing()) is None
    assert declared(None) is None


# -- E2: strands -------------------------------------------------------------------------------------


@sf.step
async def alook(n: int = 0) -> int:
    return n


@sf.effect(approve=True)
async def pay(n: int) -> int:
    return n


@sf.effect
async def mail(n: int) -> int:
    return n


def addresses(run_id: str = "r") -> list[str]:
    return sorted(call.address for call in sf.get_run(run_id).steps())


async def under(label: str, body: Callable[[], Awaitable[Any]]) -> Any:
    """As a framework's tool call: in a task of its own, under a label that is on record."""
    strand = Strand()
    try:
        with strand.entered(label):
            return await body()
    finally:
        strand.join()


def test_strands_that_a_framework_gathers_are_named_by_their_labels():
    """The order in which the tasks begin does not matter: a plain asyncio.gather is enough."""

    @sf.workflow
    async def wf() -> list[int]:
        return await asyncio.gather(*(under(f"call_{n}", partial(alook, n)) for n in (3, 1, 2)))

    assert asyncio.run(wf.run("r")) == [3, 1, 2]
    assert addresses() == ["[call_1]/alook#1", "[call_2]/alook#1", "[call_3]/alook#1"]
    assert asyncio.run(wf.run("r")) == [3, 1, 2]


def test_a_stop_in_one_strand_keeps_no_later_sibling_from_asking():
    """With sf.scope a sibling that opens after the first question would stop before its own: two resumes for two answers."""
    asked = asyncio.Event()

    async def first() -> None:
        try:
            await pay(1)
        finally:
            asked.set()

    async def second() -> None:
        await asked.wait()
        await under("call_2", partial(pay, 2))

    @sf.workflow
    async def wf() -> None:
        await asyncio.gather(under("call_1", first), second(), return_exceptions=True)

    with pytest.raises(sf.WaitingForAnswer) as stop:
        asyncio.run(wf.run("r"))

    assert {each.address for each in stop.value.stops} == {"[call_1]/pay#1.approval", "[call_2]/pay#1.approval"}


def test_a_stop_that_is_passed_on_is_felt_by_the_code_around():
    """A framework may swallow what its tool raised. The run must not go on with what came of it."""

    @sf.workflow
    async def wf() -> int:
        strand = Strand()
        try:
            with strand.entered("call_1"):
                await pay(1)
        except RunSignal as signal:
            strand.pass_on(signal)
        return await mail(2)

    with pytest.raises(sf.WaitingForAnswer):
        asyncio.run(wf.run("r"))
    assert "mail" not in str(addresses())


def test_one_strand_counts_on_in_whichever_task_its_next_turn_is():
    """A loop makes its first turn in a task of its own, and the others in the caller's."""

    @sf.workflow
    async def wf() -> list[int]:
        strand = Strand()

        async def turn(n: int) -> int:
            with strand.entered("agent", felt=True):
                return await alook(n)

        return [await asyncio.create_task(turn(1)), await turn(2)]

    assert asyncio.run(wf.run("r")) == [1, 2]
    assert addresses() == ["[agent]/alook#1", "[agent]/alook#2"]


def test_two_strands_may_not_count_under_one_label():
    """Two agents of one name side by side: timing would decide whose answer is whose."""

    @sf.workflow
    async def wf() -> None:
        both = Strand(), Strand()
        for strand in both:
            with strand.entered("agent"):
                await alook()

    with pytest.raises(sf.UsageError, match=r"\[agent\] was opened by another task.*sf\.gather"):
        asyncio.run(wf.run("r"))


def test_a_strand_that_was_joined_leaves_its_labels_to_the_next():
    @sf.workflow
    async def wf() -> None:
        await under("agent", alook)
        await under("agent", alook)

    asyncio.run(wf.run("r"))
    assert addresses() == ["[agent]/alook#1", "[agent]/alook#2"]


def test_what_strands_did_is_undone_with_the_saga_around_them():
    """Tools of an agent inside `async with sf.saga()`."""
    taken_back = []

    @sf.effect
    async def book(n: int) -> int:
        return n

    @book.undo
    async def _(n: int, result: int) -> None:
        taken_back.append(result)

    @sf.workflow
    async def wf() -> None:
        async with sf.saga():
            await asyncio.gather(*(under(f"call_{n}", partial(book, n)) for n in (1, 2)))
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        asyncio.run(wf.run("r"))
    assert sorted(taken_back) == [1, 2]


def test_a_loop_inside_a_blocking_workflow_is_refused_with_the_cure():
    @sf.workflow
    def wf() -> None:
        asyncio.run(under("call_1", alook))

    with pytest.raises(sf.UsageError, match="async def"):
        wf.run("r")


def test_a_strand_inside_an_effect_is_refused():
    """An effect is one recorded call: what a framework does in it would have no intent of its own."""

    @sf.effect
    async def whole() -> None:
        await under("call_1", alook)

    @sf.workflow
    async def wf() -> None:
        await whole()

    with pytest.raises(sf.UsageError, match="inside effect whole#1"):
        asyncio.run(wf.run("r"))


# -- E3: an error that leaves the run open -----------------------------------------------------------


def test_a_run_that_is_released_with_an_error_has_not_failed():
    """A node of a graph that raises is tried again by the graph: a failed run would be over for good."""
    tries = []

    @sf.workflow
    def wf() -> int:
        look(1)
        tries.append(1)
        if len(tries) == 1:
            raise ReleaseSignal(ValueError("not yet"))
        return 7

    with pytest.raises(ValueError, match="not yet"):
        wf.run("r")
    assert sf.get_run("r").status == "queued"
    assert [entry.data["why"] for entry in sf.get_run("r").entries() if entry.kind == "RunReleased"] == [
        "ValueError: not yet"
    ]
    assert wf.run("r") == 7


def test_a_released_async_run_gives_the_error_itself():
    @sf.workflow
    async def wf() -> None:
        await alook()
        raise ReleaseSignal(KeyError("gone"))

    with pytest.raises(KeyError, match="gone"):
        asyncio.run(wf.run("r"))
    assert sf.get_run("r").status == "queued"


def test_a_stop_counts_more_than_the_error_that_releases():
    """The graph may turn a question into an exception of its own: the run stands at its question."""

    @sf.workflow
    async def wf() -> None:
        try:
            await pay(1)
        except RunSignal:
            raise ReleaseSignal(ValueError("paused")) from None

    with pytest.raises(sf.WaitingForAnswer):
        asyncio.run(wf.run("r"))


# -- E10: questions from a blocking tool -------------------------------------------------------------


def settle(order: str) -> str:
    """A tool as most people write them: blocking, and the framework hands it to a thread."""
    amount = look(3)
    if not sf.approve(f"Settle {order}?", details={"amount": amount}):
        return "denied"
    note = sf.ask("Which note?", type=str)
    sf.sleep(0.001)
    return f"{amount} {note} {sf.gather(lambda: look(1), lambda: look(2))}"


def test_a_blocking_tool_in_a_thread_asks_and_waits_like_any_code():
    @sf.workflow
    async def wf() -> str:
        return await under("call_1", partial(asyncio.to_thread, settle, "o-7"))

    with pytest.raises(sf.WaitingForAnswer):
        asyncio.run(wf.run("r"))
    sf.get_run("r").answer("[call_1]/approve#1", True)
    with pytest.raises(sf.WaitingForAnswer):
        asyncio.run(wf.run("r"))
    sf.get_run("r").answer("[call_1]/ask#1", "ok")

    assert asyncio.run(wf.run("r")) == "3 ok [1, 2]"
    assert asyncio.run(wf.run("r")) == "3 ok [1, 2]"


def test_a_question_of_a_blocking_tool_may_be_waited_for():
    """`wait=`: the thread waits, and the loop goes on."""
    ticks = []

    async def tick() -> None:
        while True:
            ticks.append(1)
            if len(ticks) == 3:
                await asyncio.to_thread(sf.get_run("r").answer, "approve#1", False)
            await asyncio.sleep(0.05)

    @sf.workflow
    async def wf() -> str:
        return await asyncio.to_thread(settle, "o-7")

    async def main() -> str:
        beside = asyncio.create_task(tick())
        try:
            return await wf.using(wait="20s").run("r")
        finally:
            beside.cancel()

    assert asyncio.run(main()) == "denied"


def test_a_blocking_question_in_the_loop_itself_is_still_refused():
    """It would hold up the loop and everything else in it."""

    @sf.workflow
    async def wf() -> str:
        return settle("o-7")

    with pytest.raises(sf.UsageError, match="blocks, and this workflow is async"):
        asyncio.run(wf.run("r"))


# -- E11, and what else a wrapped tool needs ---------------------------------------------------------


def wrapped(fn: Callable[..., Any], names: dict[str, object], **options: Any) -> Any:
    """As an adapter makes an effect of a tool that it does not own."""

    async def body(**arguments: Any) -> Any:
        return await asyncio.to_thread(fn, **arguments)

    body.__name__, body.__qualname__, body.__module__ = "charge", "charge", "tool"
    body.__signature__ = seams.signature(names)
    return seams.as_tool(sf.effect(**options)(body), fn)


def charge(card: str, cents: int = 100) -> str:
    if cents < 0:
        raise ValueError("no such amount")
    return f"{card} {cents}"


def test_the_arguments_of_a_wrapped_tool_are_recorded_flat():
    """A person who settles or approves it reads `cents`, not a function's `arguments`."""
    tool = wrapped(charge, {"card": None, "cents": None})

    @sf.workflow
    async def wf() -> str:
        return await tool(card="c", cents=5)

    assert asyncio.run(wf.run("r")) == "c 5"
    call = next(iter(sf.get_run("r").steps()))
    assert call.args == '{"card":"c","cents":5}'


def test_a_tool_may_leave_parameters_out_and_be_given_others():
    """What a model asks for need not fit the schema: that is for the tool to say, and no crash of ours."""
    seen = []
    tool = wrapped(lambda **given: seen.append(given), {"card": None, "cents": 7})

    @sf.workflow
    async def wf() -> None:
        await tool(card="c")
        await tool(card="c", tip=1)

    asyncio.run(wf.run("r"))
    assert seen == [{"card": "c"}, {"card": "c", "tip": 1}]


def test_parameters_that_are_no_names_in_python_have_no_signature():
    assert seams.signature({"user-id": None}) is None
    assert seams.signature({"from": None}) is None
    assert str(seams.signature({"others": 1})) == "(*, others=1, **other_arguments)"


def test_a_guard_clause_of_the_users_function_counts_below_the_wrapper():
    """`raise ValueError` at the top of a tool asks nobody: it is the model that gets it."""
    tool = wrapped(charge, {"card": None, "cents": None})

    @sf.workflow
    async def wf() -> str:
        with pytest.raises(ValueError, match="no such amount"):
            await tool(card="c", cents=-1)
        return "went on"

    assert asyncio.run(wf.run("r")) == "went on"


def test_a_tool_is_not_taken_for_a_function_that_lost_its_decorator():
    """`charge` is a plain function in this module, and the effect of that name is made of it by an adapter."""

    @sf.workflow
    async def wf() -> str:
        done = await wrapped(charge, {"card": None})(card="c")
        await asf.approve("ok?")
        return done

    with pytest.raises(sf.WaitingForAnswer):
        asyncio.run(wf.run("r"))
    call_spec._effects.pop("charge")
    sf.get_run("r").answer("approve#1", True)
    assert asyncio.run(wf.run("r")) == "c 100"


def test_a_no_can_be_told_from_other_failures():
    """A framework has words of its own for a tool that was not approved."""

    @sf.workflow
    async def wf() -> list[str]:
        try:
            await pay(1)
        except sf.Denied as no:
            return [no.by, no.note, str(no)]
        return []

    with pytest.raises(sf.WaitingForAnswer):
        asyncio.run(wf.run("r"))
    sf.get_run("r").answer("pay#1.approval", False, by="ann", note="too much")
    for _ in range(2):
        assert asyncio.run(wf.run("r")) == ["ann", "too much", "pay#1 was denied by ann: too much"]


def test_what_an_adapter_refuses_stops_the_run_whatever_the_framework_makes_of_it():
    @sf.workflow
    async def wf() -> str:
        try:
            raise seams.refused(sf.UsageError("two at once"))
        except Exception:
            return "swallowed"

    with pytest.raises(sf.UsageError, match="two at once"):
        asyncio.run(wf.run("r"))


def test_outside_of_a_run_the_seams_say_so():
    assert not seams.in_run()
    assert not seams.in_call()
    assert not seams.replays()
    assert seams.key_or_none() is None
    assert str(seams.refused(sf.UsageError("x"))) == "x"


def test_inside_a_run_they_tell_where_the_code_is():
    seen = []

    @sf.effect
    async def act() -> None:
        seen.append((seams.in_run(), seams.in_call(), seams.key_or_none() == sf.key()))

    @sf.workflow
    async def wf() -> None:
        seen.append((seams.in_run(), seams.in_call(), seams.key_or_none()))
        await act()

    asyncio.run(wf.run("r"))
    assert seen == [(True, False, None), (False, True, True)]


def test_a_place_has_the_same_name_on_every_replay_and_another_one_in_the_next_segment():
    """Ids that an adapter makes of it: those of a segment before may be in what was handed on."""
    seen = []

    @sf.workflow
    async def wf(left: int) -> None:
        with sf.scope("a"):
            seen.append(seams.place_name())
        seen.append(seams.place_name())
        if left:
            asf.continue_as_new(left - 1)
        await asf.approve("go on?")

    with pytest.raises(sf.WaitingForAnswer):
        asyncio.run(wf.run("r", 1))
    before = list(seen)
    sf.get_run("r").answer("approve#1", True)
    asyncio.run(wf.run("r", 1))
    assert len(set(before)) == 4
    assert set(seen[4:]) == set(before[2:])
    assert seams.place_name() == ""


def test_what_can_be_stored_is_told_without_storing_it():
    assert seams.storable({"a": [1, None, b"x"]})
    assert not seams.storable(object())
