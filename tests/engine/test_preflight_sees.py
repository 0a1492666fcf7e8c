"""How far a preflight sees: a step that has not run gives a placeholder, and the rehearsal ends where it is looked into."""

from __future__ import annotations

import asyncio
import copy
import json
import pickle

import pytest

import surefoot as sf
from surefoot import aio
from surefoot.engine.declare import placeholder
from surefoot.engine.declare.registry import Definition, registry
from surefoot.engine.drive import start
from surefoot.engine.operate import preflight
from surefoot.engine.process import config


class Cut(BaseException):
    """The process of the old code ends here."""


@pytest.fixture
def done():
    return []


@pytest.fixture
def calls(done):
    class Calls:
        @staticmethod
        @sf.effect
        def pay(amount):
            done.append(f"pay {amount}")
            return f"paid {amount}"

        @staticmethod
        @sf.effect
        def charge(amount):
            done.append(f"charge {amount}")
            return f"charged {amount}"

        @staticmethod
        @sf.effect
        async def pay_async(amount):
            done.append(f"pay {amount}")

        @staticmethod
        @sf.step
        def look_up(what):
            done.append(f"look up {what}")

        @staticmethod
        @sf.step
        def read(what):
            return what

        @staticmethod
        @sf.step
        async def look_up_async(what):
            done.append(f"look up {what}")

        @staticmethod
        @sf.step
        def cut():
            raise Cut

    return Calls


def found(old, new):
    """What a preflight with the new code says of a run that the old code was cut off in."""
    runtime = config.runtime(create=True)
    before = Definition(old, name="flow")
    with pytest.raises((Cut, BaseExceptionGroup)):
        if before.is_async:
            asyncio.run(start.run_async(runtime, before.plan("r", (), {}), "r", start.Options()))
        else:
            start.run_blocking(runtime, before.plan("r", (), {}), "r", start.Options())
    registry.add(Definition(new, name="flow"))
    entries = len(sf.get_run("r").entries())
    finding = preflight.check(runtime, "r")
    assert entries == len(sf.get_run("r").entries())
    assert finding is not None
    return finding


@pytest.fixture(autouse=True)
def _own_workflows(monkeypatch):
    monkeypatch.setattr(registry, "_known", {})


def test_new_step_whose_result_is_passed_on_hides_nothing(calls, done):
    """A step put in front of everything used to end the rehearsal: whatever was wrong behind it was only perhaps so."""

    def old():
        calls.pay(5)
        calls.cut()

    def new():
        name = calls.look_up("name")
        both = [name, {"name": name}]
        calls.pay(5)
        return calls.look_up(both)

    finding = found(old, new)

    assert "goes on" == finding.verdict
    assert [("step", "look_up#1"), ("step", "look_up#2")] == list(finding.next)
    assert ["pay 5"] == done


@pytest.mark.parametrize("effect", ["pay", "charge"])
def test_effect_that_is_declared_new_hides_nothing(calls, done, effect):
    """`was=None` is the cure that the stop offers. A preflight that still says "perhaps" does not say that it helped."""

    @sf.effect(was=None)
    def book(what):
        done.append(f"book {what}")

    def old():
        calls.pay(5)
        calls.cut()

    def new():
        book("room")
        getattr(calls, effect)(5)

    finding = found(old, new)

    if effect == "pay":
        assert ("goes on", [("effect", "book#1")]) == (finding.verdict, list(finding.next))
    else:
        (stop,) = finding.why
        assert ("stranded", "charge#1") == (finding.verdict, stop.facts["asked"])
    assert ["pay 5"] == done


def test_effect_that_a_person_calls_new_hides_nothing(calls, done):
    """`surefoot match --new` says the same for one run."""

    def old():
        calls.pay(5)
        calls.cut()

    def new():
        calls.charge(5)
        calls.pay(5)

    assert "stranded" == found(old, new).verdict
    with pytest.raises(sf.CodeChanged):
        sf.get_run("r").resume()
    sf.get_run("r").match("charge#1", new=True)

    finding = preflight.check(config.runtime(create=False), "r")

    assert ("goes on", [("effect", "charge#1")]) == (finding.verdict, list(finding.next))
    assert ["pay 5"] == done


def test_effect_that_was_renamed_behind_a_new_step_is_found(calls, done):
    """CHANGE.md, row 94: the gate before a deployment sees what a resume would stop at."""

    def old():
        calls.pay(5)
        calls.cut()

    def new():
        calls.look_up("name")
        calls.charge(5)

    finding = found(old, new)

    assert "stranded" == finding.verdict
    assert "asks for the effect charge#1" in str(finding.why[0])
    assert ["pay 5"] == done
    matching = [when for when, do in finding.why[0].cures if "surefoot match" in do]
    assert 2 == len(matching), "an answer to a stop that nobody has met is refused"
    assert all(when.endswith("(once it has stopped)") for when in matching)


def test_effect_that_is_gone_behind_a_new_step_is_found_at_the_end(calls):
    def old():
        calls.pay(5)
        calls.cut()

    def new():
        return calls.look_up("name")

    finding = found(old, new)

    assert "stranded" == finding.verdict
    assert "without asking for pay#1" in str(finding.why[0])


LOOKS = {
    "bool": bool, "not": lambda x: not x, "equal": lambda x: x == 1, "less": lambda x: x < 1, "reflected": lambda x: 1 + x,
    "add": lambda x: x + 1, "loop": list, "unpack": lambda x: [*x], "attribute": lambda x: x.name, "item": lambda x: x["a"],
    "text": str, "format": lambda x: f"{x}", "percent": "%s and so on".__mod__, "repr": repr, "hash": lambda x: {x}, "len": len,
    "call": lambda x: x(), "int": int, "float": float, "index": lambda x: [1][x], "isinstance": lambda x: isinstance(x, str),
    "class": lambda x: x.__class__, "in": lambda x: 1 in x, "found": lambda x: x in (1, 2), "key": {1: 2}.get,
    "copy": copy.deepcopy, "json": lambda x: json.dumps({"a": x}), "pickle": pickle.dumps, "setattr": lambda x: setattr(x, "a", 1),
    "join": lambda x: str.join(", ", [x, x]), "bytes": bytes, "open": open, "await": lambda x: x.__await__(), "with": lambda x: x.__enter__(),
    "map": lambda x: sf.map(print, x), "question": lambda x: sf.approve("ok?", details=x), "keywords": lambda x: dict(**x),
}  # fmt: skip


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS.keys())
def test_looking_into_what_is_not_known_ends_the_rehearsal(calls, done, look):
    """Nobody knows which way the code goes from there: neither stranded nor safe."""

    def old():
        calls.pay(5)
        calls.cut()

    def new():
        look(calls.look_up("name"))
        calls.charge(5)

    finding = found(old, new)

    assert "perhaps stranded" == finding.verdict
    assert "pay#1 was executed before and has not been asked for when look_up#1 would run" in str(finding.why[0])
    assert ["pay 5"] == done


def test_looking_into_it_behind_everything_on_record_is_no_doubt(calls):
    """All that was done has been asked for: whatever the step gives, nothing is stranded."""

    def old():
        calls.pay(5)
        calls.cut()

    def new():
        calls.pay(5)
        if calls.look_up("name") == "ann":
            calls.charge(5)

    assert "goes on" == found(old, new).verdict


def test_look_that_is_caught_goes_no_further(calls):
    """Agents catch everything; what they do then is not what they would do with a value."""

    def old():
        calls.pay(5)
        calls.cut()

    def new():
        try:
            calls.look_up("name").strip()
        except BaseException:
            calls.charge(5)

    assert "perhaps stranded" == found(old, new).verdict


def test_recorded_effect_that_gets_what_is_not_known_is_perhaps_stranded(calls):
    """Its arguments may be others, which would be a stop; or the very same."""

    def old():
        calls.pay(5)
        calls.cut()

    def new():
        calls.pay([calls.look_up("amount")])
        calls.charge(5)

    finding = found(old, new)

    assert "perhaps stranded" == finding.verdict
    assert "pay#1 is on record, and asked for with what look_up#1 gives" in str(finding.why[0])


def test_new_effect_that_gets_what_is_not_known_is_held_against_the_record(calls):
    """It is not on record, whatever it gets; and one that is was not asked for."""

    def old():
        calls.pay(5)
        calls.cut()

    def new():
        calls.charge(calls.look_up("amount"))

    assert "stranded" == found(old, new).verdict


def test_next_segment_may_begin_with_what_is_not_known(calls):
    def old():
        calls.pay(5)
        calls.cut()

    def new(state=None):
        calls.pay(5)
        sf.continue_as_new([calls.look_up("name")])

    assert "goes on" == found(old, new).verdict


def test_code_that_asks_whether_it_is_none_is_given_both(calls):
    """`is` is the one look that nobody can notice. A deployment must not be held up by the way that is not taken."""

    def old():
        calls.pay(5)
        calls.cut()

    def new():
        if calls.look_up("name") is None:
            calls.pay(5)
        else:
            calls.charge(5)

    assert "perhaps stranded" == found(old, new).verdict


def test_steps_that_would_be_kept_and_run_again_are_listed(calls):
    def old():
        calls.read("a")
        calls.pay(5)
        calls.read("b")
        calls.cut()

    def new():
        calls.read("A")
        calls.pay(5)
        calls.read("B")
        calls.cut()

    finding = found(old, new)

    assert "goes on" == finding.verdict
    assert (("read#1", "effects were executed after it"),) == finding.kept
    assert ("read#2",) == finding.again


def test_branches_and_tasks_are_seen_through_too(calls, done):
    """Each branch has a new step in front of its effect."""

    async def old():
        await aio.gather(calls.pay_async(1), calls.pay_async(2))
        calls.cut()

    async def branch(amount):
        found = await calls.look_up_async(amount)
        await calls.pay_async(amount)
        return found

    async def new():
        both = await aio.gather(branch(1), branch(2))
        return await calls.look_up_async(both)

    assert "goes on" == found(old, new).verdict
    assert ["pay 1", "pay 2"] == sorted(done)


def test_look_in_a_task_group_is_no_failure_of_the_workflow(calls):
    async def old():
        await calls.pay_async(1)
        calls.cut()

    async def look():
        with aio.scope("one"):
            return (await calls.look_up_async("x")).name

    async def new():
        await calls.pay_async(1)
        async with asyncio.TaskGroup() as group:
            group.create_task(look())

    assert "goes on" == found(old, new).verdict


def test_placeholder_tells_nothing_while_our_own_code_looks():
    """Encoding an argument must not end the user's branch: the call is asked for, with something unknown."""
    unknown = placeholder.Placeholder(lambda: pytest.fail("that was our own code"))

    with placeholder.opaque(), pytest.raises(placeholder.Opaque):
        str(unknown)
