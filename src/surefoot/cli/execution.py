"""Runs user code for `surefoot run`, `surefoot runs resume` and scripts (`sf.main`), and reports how it ended.

Standard output belongs to the result: what user code and its child processes print goes to standard error.
Ctrl-C and SIGTERM unwind the run the same way, so that it is released and resumable.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, Self

from surefoot.cli import failure, output
from surefoot.cli.options import Settings
from surefoot.core.cure import command
from surefoot.errors import (
    Cancelled,
    Damaged,
    Fenced,
    NotFound,
    Stopped,
    StoreUnavailable,
    SurefootError,
    UsageError,
    ValueRejected,
)
from surefoot.view import text, trouble
from surefoot.view.words import Help, command_text

FAILED = 1


def drive(settings: Settings, run_id: str, work: Callable[[], Any], *, show_progress: bool = True) -> int:
    """Do the work, print its result or its failure, and return the exit code."""
    from surefoot.cli.progress import shown
    from surefoot.core import values

    signals = Signals()
    try:
        with answers_only(), signals, shown(run_id, settings.store, wanted=show_progress):
            result = work()
    except KeyboardInterrupt:
        return _interrupted(settings, run_id, signals)
    except Exception as error:  # noqa: BLE001 - whatever user code raises is how the run ended
        return _failed(settings, run_id, error)
    except BaseException as error:  # noqa: BLE001 - user code left the workflow; the run is not done
        return _left(settings, run_id, error)
    output.say_raw_json(values.encode(result))
    return 0


# --- the surroundings ------------------------------------------------------------------------------


@contextlib.contextmanager
def answers_only() -> Iterator[None]:
    """Inside this block, standard output is standard error, for child processes too."""
    sys.stdout.flush()
    try:
        kept = os.dup(1)
    except OSError:  # There is no standard output to keep clean.
        kept = -1
    try:
        if kept >= 0:
            os.dup2(2, 1)
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        sys.stdout.flush()
        if kept >= 0:
            os.dup2(kept, 1)
            os.close(kept)


class Signals:
    """SIGTERM ends a run as Ctrl-C does: the handler of the one (asyncio has its own) handles the other."""

    def __init__(self) -> None:
        self.terminated = False
        self._before: Any = None

    def __enter__(self) -> Self:
        with contextlib.suppress(ValueError):  # Not in the main thread: then signals are not ours to handle.
            self._before = signal.signal(signal.SIGTERM, self._on_terminate)
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGTERM, self._before)

    def _on_terminate(self, _number: int, frame: FrameType | None) -> None:
        self.terminated = True
        handler = signal.getsignal(signal.SIGINT)
        if callable(handler):
            handler(signal.SIGINT, frame)
        else:
            raise KeyboardInterrupt

    @property
    def exit_code(self) -> int:
        return 128 + (signal.SIGTERM if self.terminated else signal.SIGINT)


# --- how it ended ----------------------------------------------------------------------------------


class Interrupted(SurefootError):
    """Shown, never raised: a person or the system ended the process."""


def _interrupted(settings: Settings, run_id: str, signals: Signals) -> int:
    stopped = Interrupted(_after_interrupt(settings, run_id, settings.again))
    if settings.json:
        return output.complain(settings, stopped, exit_code=signals.exit_code, run=run_id)
    output.tell(*text.visible_lines(str(stopped)))
    return signals.exit_code


def _after_interrupt(settings: Settings, run_id: str, again: str) -> str:
    """The present state, read from the journal rather than assumed."""
    from surefoot.cli import operators
    from surefoot.console import reads

    try:
        state, driven = reads.look(operators.open_run(settings, run_id))
    except NotFound:
        return f"stopped by you before anything was recorded: start it with: {again}"
    except SurefootError as error:
        look = command_text(command("runs show", run_id), operators.where(settings))
        return f"stopped by you: run {run_id} could not be looked at ({error}); look again with: {look}"
    if driven:
        return f"stopped waiting: another process drives run {run_id} and goes on with it"
    lines = [f"stopped by you: run {run_id} is safe; go on with: {again}"]
    lines += [f"  {past.address} was under way: whether it happened is not known" for past in state.in_doubt()]
    return "\n".join(lines)


def _failed(settings: Settings, run_id: str, error: Exception) -> int:
    if isinstance(error, Stopped | UsageError | Cancelled | Fenced | StoreUnavailable):
        more = (
            failure.user_traceback(error)
            if isinstance(error, ValueRejected)
            else _how_to_go_on(settings, run_id, error)
        )
        return output.complain(settings, error, exit_code=error.exit_code, run=run_id, more=more)
    cures, told = _what_helps(settings, run_id), failure.user_traceback(error)
    if settings.json:
        return output.complain(settings, error, exit_code=FAILED, run=run_id, more=told, cures=cures)
    first, *rest = trouble.lines(error)
    output.tell(*told, f"run {run_id} failed: {first}" if cures else f"run {run_id}: {first}", *rest)
    output.tell(*(text.visible(f"  {cure.when}   {cure.do}") for cure in cures))
    return FAILED


def _how_to_go_on(settings: Settings, run_id: str, error: Exception) -> tuple[str, ...]:
    """The commands that help are surefoot's. What then goes on is the script, and they do not know its name."""
    if settings.json or not settings.script or not isinstance(error, Stopped) or isinstance(error, Damaged):
        return ()
    return (text.visible(f"run {run_id} is safe; once that is answered, go on with: {settings.again}"),)


def _what_helps(settings: Settings, run_id: str) -> tuple[Help, ...]:
    """Nothing, if it has not failed by its journal: waiting in vain for another process raises as well."""
    from surefoot.cli import operators

    try:
        return operators.after_failure(settings, operators.open_run(settings, run_id))
    except SurefootError:
        return ()


def _left(settings: Settings, run_id: str, error: BaseException) -> int:
    """`sys.exit()` in user code and the like. Exit code 0 would claim a result that does not exist."""
    left = UsageError(
        f"run {run_id}: the workflow was left by {type(error).__name__}, not by return or an ordinary exception. "
        "The run is safe and not done; mend the code and start it again."
    )
    return output.complain(settings, left, exit_code=FAILED, run=run_id, more=failure.user_traceback(error))
