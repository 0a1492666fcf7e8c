"""Whatever code can see of a failure is the same when it is delivered first and when it is replayed."""

from __future__ import annotations

import asyncio
import inspect
import logging
import sys
import traceback
from typing import Any

import pytest

import surefoot as sf


class Crash(BaseException):
    """Unwinds like Ctrl-C: the run is left where it is."""


class Slow(Exception):
    """A class that nobody registered."""

    def __init__(self, code: int, *, why: str) -> None:
        super().__init__(why)
        self.code = code
        self.reply = object()


class Declined(Exception):
    pass


def run(workflow: Any, run_id: str) -> Any:
    """The result of a workflow, blocking or async."""
    found = workflow.run(run_id)
    return asyncio.run(found) if inspect.isawaitable(found) else found


def seen(error: BaseException | None, room: int = 5) -> Any:
    """Everything that code can branch on; and the text of the traceback, which it may pass on."""
    if error is None or not room:
        return None
    return {
        "kinds": [kind.__qualname__ for kind in (Slow, Declined, ValueError, OSError, sf.StepFailed) if isinstance(error, kind)],
        "name": type(error).__qualname__,
        "text": (str(error), repr(error), str(error.args)),
        "attributes": sorted(vars(error)),
        "code": getattr(error, "code", "none"),
        "notes": getattr(error, "__notes__", []),
        "suppress": error.__suppress_context__,
        "cause": seen(error.__cause__, room - 1),
        "context": seen(error.__context__, room - 1),
        "inside": [seen(each, room - 1) for each in error.exceptions] if isinstance(error, ExceptionGroup) else [],
        "lines": "".join(traceback.format_tb(error.__traceback__)),
    }  # fmt: skip


def bare() -> None:
    raise Slow(7, why="down")


def caused() -> None:
    try:
        raise Declined("card")
    except Declined as declined:
        declined.add_note("inner")
        raise Slow(7, why="down") from declined


def handling() -> None:
    try:
        raise Declined("card")
    except Declined:
        raise ValueError("then")  # noqa: B904 - on purpose


def hushed() -> None:
    try:
        raise Declined("card")
    except Declined:
        raise OSError(2, "no", "file") from None


def several() -> None:
    error = ExceptionGroup("both", [Slow(1, why="a"), ValueError("b")])
    error.add_note("of both")
    raise error


def local() -> None:
    class Hidden(Exception):
        pass

    raise Hidden("x") from Declined("card")


RAISING = [bare, caused, handling, hushed, several, local]


def crash_once(flag: list[int]) -> None:
    if not flag:
        flag.append(1)
        raise Crash


def blocking(raising: Any, found: list[Any]) -> Any:
    crashed: list[int] = []

    @sf.step
    def call() -> None:
        raising()

    @sf.workflow
    def wf() -> str:
        try:
            call()
        except Exception as error:
            found.append(seen(error))
        try:
            raise KeyError("mine")
        except KeyError:
            try:
                call()  # What is being handled becomes its context, as with any exception.
            except Exception as error:
                found.append(seen(error))
        crash_once(crashed)
        return "through"

    return wf


def in_tasks(raising: Any, found: list[Any]) -> Any:
    crashed: list[int] = []

    @sf.step
    async def call() -> None:
        raising()

    @sf.workflow
    async def wf() -> str:
        try:
            await call()
        except Exception as error:
            found.append(seen(error))
        try:
            raise KeyError("mine")
        except KeyError:
            try:
                await call()
            except Exception as error:
                found.append(seen(error))
        crash_once(crashed)
        return "through"

    return wf


@pytest.mark.parametrize("raising", RAISING, ids=lambda f: f.__name__)
@pytest.mark.parametrize("make", [blocking, in_tasks])
def test_a_failure_is_seen_the_same_on_replay(raising, make):
    """The other branch of an `except` clause would run after a crash, in silence, and another effect with it."""
    found: list[Any] = []
    wf = make(raising, found)
    with pytest.raises(Crash):
        run(wf, "r")

    assert run(wf, "r") == "through"
    assert found[:2] == found[2:]


def let_out(raising: Any) -> Any:
    @sf.step
    def call() -> None:
        raising()

    @sf.workflow
    def wf() -> None:
        try:
            call()
        except Declined:
            raise
        except Exception as error:
            raise RuntimeError("let out") from error

    return wf


def let_out_in_tasks(raising: Any) -> Any:
    @sf.step
    async def call() -> None:
        raising()

    @sf.workflow
    async def wf() -> None:
        try:
            await call()
        except Declined:
            raise
        except Exception as error:
            raise RuntimeError("let out") from error

    return wf


def refuse() -> None:
    raise Declined("card")


@pytest.mark.parametrize("raising", [*RAISING, refuse], ids=lambda f: f.__name__)
@pytest.mark.parametrize("make", [let_out, let_out_in_tasks])
def test_the_caller_of_a_failed_run_sees_the_same_again(raising, make):
    """Whoever asks a second time is told the same story; only the lines of code are gone with the first process."""
    wf = make(raising)
    told = []
    for _ in range(2):
        with pytest.raises(Exception) as caught:
            run(wf, "r")
        told.append(without_lines(seen(caught.value)))

    assert told[0] == told[1]
    if raising is refuse:
        assert "Declined" in told[0]["kinds"]
    elif raising is caused:
        assert "Slow" in told[0]["cause"]["kinds"]
        assert "Declined" in told[0]["cause"]["cause"]["kinds"]


def without_lines(told: Any) -> Any:
    if isinstance(told, dict):
        return {name: without_lines(item) for name, item in told.items() if name != "lines"}
    return [without_lines(item) for item in told] if isinstance(told, list) else told


def test_whoever_waits_for_the_run_sees_the_lines_that_raised(caplog):
    """Inside the run only a copy is seen; but a developer needs the line, and a failure that is handled is in the log."""

    @sf.step
    def call() -> None:
        refuse()

    @sf.workflow
    def wf() -> None:
        call()

    @sf.workflow
    def handled() -> str:
        try:
            call()
        except Declined:
            return "handled"
        return ""

    with pytest.raises(Declined) as caught:
        wf.run("r")
    lines = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert lines.index("wf") < lines.index("call") < lines.index("refuse")
    assert lines[-1] == "refuse"
    with caplog.at_level(logging.INFO, logger="surefoot"):
        assert handled.run("h") == "handled"
    assert "in refuse" in caplog.text


def test_an_effect_whose_class_is_known_is_caught_by_it(ledger):
    """`raise sf.NotDone` is not the only way to say that nothing happened: a class of one's own may say it."""

    class Refused(sf.NotDone):
        pass

    sys.modules[__name__].Refused = Refused  # type: ignore[attr-defined]
    Refused.__qualname__ = "Refused"
    crashed: list[int] = []

    @sf.effect
    def pay() -> None:
        ledger.write("pay")
        raise Refused("no")

    @sf.workflow
    def wf() -> str:
        try:
            pay()
        except Refused as error:
            told = str(error)
        crash_once(crashed)
        return told

    with pytest.raises(Crash):
        wf.run("r")

    assert wf.run("r") == "Refused: no"
    assert ledger.lines == ["pay"]


def test_failures_that_a_map_returns_are_of_their_class():
    """`on_error="collect"` is how the rest of a batch goes on; which of them failed how is looked at afterwards."""
    crashed: list[int] = []
    kinds = []

    @sf.step
    def call(number: int) -> int:
        if number == 1:
            raise Slow(number, why="down")
        return number

    @sf.workflow
    def wf() -> Any:
        found = sf.map(call, [0, 1], on_error="collect")
        kinds.append([(type(each).__name__, isinstance(each, Slow) and each.code) for each in found.failed.values()])
        crash_once(crashed)
        return list(found.failed.values())

    with pytest.raises(Crash):
        wf.run("r")
    assert isinstance(wf.run("r")[0], Slow)

    assert kinds == [[("Slow", 1)], [("Slow", 1)]]
    assert isinstance(wf.run("r")[0], Slow)


def test_a_run_started_as_a_program_matches_where_its_module_is_imported(program):
    """`python app.py` starts it, a worker imports `app` and goes on: `except Slow` is the same clause."""
    program.write(
        """
        import os, sys
        import surefoot as sf

        class Slow(Exception): ...

        @sf.step
        def ask(): raise Slow("down")

        @sf.workflow(name="wf")
        def wf():
            try:
                ask()
            except Slow:
                found = "caught"
            if os.environ.get("DIE"):
                os._exit(9)
            return found

        if __name__ == "__main__":
            print(wf.run("r"))
        """
    )
    program.write("import app\nprint(app.wf.run('r'))", name="other.py")

    assert program.run(DIE="1").returncode == 9
    assert program.run(name="other.py").stdout.strip() == "caught"
