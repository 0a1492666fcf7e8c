"""Runs a function in a forked child that may be killed at any instruction, and reports how it ended.

A warm parent has everything imported, so a child costs only a fork. The child's messages are in a pipe
before `tell` returns and survives its SIGKILL. Nothing is left behind: a child leads a process group of its own,
which is killed when the child ends, when its time is up and when the parent is interrupted; on Linux the kernel
ends it with the parent as well. A child that waits for one of its own is told first (SIGTERM), since only it knows
that one's group: what user code has started is in there.

The parent should have no threads and no store open: threads do not exist in a child, and a lock one of them held
stays locked there. A program that has threads (pytest with several processes) forks once, and the child, which has
none, is the warm parent: `in_child` may be called inside `in_child`.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from types import FrameType
from typing import Final, NoReturn

Tell = Callable[[bytes], None]

FAILED: Final = 1
LOOK_SECONDS: Final = 0.02
"""How often we check whether a child is gone whose pipe another process still holds open."""
GENTLE_SECONDS: Final = 2.0
"""How long a child may take to end its own child, when we are interrupted; half of it for a child's child."""
_INTERRUPTS: Final = (signal.SIGINT, signal.SIGTERM)
_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36
_SAID, _TROUBLE, _STRANGE = b"s", b"t", b"f"
_FRAME: Final = 5


@dataclass(frozen=True, slots=True)
class Ended:
    """How a child ended, and its messages before that."""

    code: int | None
    """Its exit code: 0 when the function returned. None: a signal ended it."""
    signal: int | None = None
    report: bytes = b""
    """All its messages, one after the other, without a message that was cut off."""
    trouble: str = ""
    """The traceback of what the function raised."""
    late: bool = False
    """Its time was up, and we killed it."""
    forked: bool = False
    """A process that the function forked returned from it: its messages are not the child's."""

    @property
    def killed(self) -> bool:
        """By a SIGKILL that was not ours: the fault that was planted has fired."""
        return self.signal == signal.SIGKILL and not self.late


def in_child(fn: Callable[[Tell], object], *, seconds: float) -> Ended:
    """Call `fn(tell)` in a forked child and wait for its end, at most `seconds`."""
    reading, writing = os.pipe()
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, ValueError):  # There may be none, or a closed one.
            stream.flush()  # Else the child would also print the buffered text.
    pid = 0
    held = signal.pthread_sigmask(signal.SIG_BLOCK, _INTERRUPTS)  # Between the fork and the `try` below.
    try:
        parent = os.getpid()
        _listen()
        with warnings.catch_warnings():
            # A warning about threads that may hold locks: a program with threads forks once, see above.
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if pid == 0:
            os.close(reading)
            _live(fn, writing, parent, held)
        os.close(writing)
        with suppress(OSError):  # The child does the same, so it leads its group before anything runs.
            os.setpgid(pid, pid)
        signal.pthread_sigmask(signal.SIG_SETMASK, held)
        return _wait(pid, reading, time.monotonic() + seconds)
    except BaseException:
        signal.pthread_sigmask(signal.SIG_BLOCK, _INTERRUPTS)  # A second interrupt would leave processes behind.
        if pid:
            _end(pid)
        else:
            os.close(writing)  # No child could be made.
        raise
    finally:
        os.close(reading)
        _listen_no_more()
        signal.pthread_sigmask(signal.SIG_SETMASK, held)


def die() -> NoReturn:
    """SIGKILL for this very process: nothing after this line happens, in no thread."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def adopting(on: bool) -> None:
    """Whether this process, not the system, adopts the processes that our children leave behind."""
    if _prctl is not None:
        _prctl(_PR_SET_CHILD_SUBREAPER, int(on), 0, 0, 0)


# --- the child -------------------------------------------------------------------------------------


def _live(fn: Callable[[Tell], object], writing: int, parent: int, mask: set[int | signal.Signals]) -> NoReturn:
    """Never returns: the child must not run the rest of the parent's program."""
    global _depth  # noqa: PLW0603 - a fact about this process, which was forked a moment ago
    code = FAILED
    me = os.getpid()

    def tell(sort: bytes, said: bytes) -> None:
        _tell(writing, sort if os.getpid() == me else _STRANGE, said)

    try:
        _depth += 1
        os.setpgid(0, 0)
        _die_with(parent)
        _on_interrupt(signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)  # Reading from a terminal would stop a background group for ever.
        os.close(nothing)
        try:
            fn(lambda said: tell(_SAID, said))
            code = 0
        except SystemExit as leaving:
            code = leaving.code if isinstance(leaving.code, int) else FAILED if leaving.code else 0
        except BaseException:  # noqa: BLE001 - the parent is told, whatever it is
            tell(_TROUBLE, traceback.format_exc().encode(errors="replace"))
        for stream in (sys.stdout, sys.stderr):
            with suppress(AttributeError, ValueError, OSError):
                stream.flush()
    finally:
        os._exit(code)


def _tell(writing: int, sort: bytes, said: bytes) -> None:
    rest = memoryview(sort + len(said).to_bytes(4, "big") + said)
    while rest:
        rest = rest[os.write(writing, rest) :]


_prctl = getattr(ctypes.CDLL(None), "prctl", None) if sys.platform == "linux" else None


def _die_with(parent: int) -> None:
    _when_orphaned(signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(FAILED)  # It died before it could be reported.


def _when_orphaned(number: signal.Signals) -> None:
    if _prctl is not None:
        _prctl(_PR_SET_PDEATHSIG, number)


# --- a child that waits for a child of its own -----------------------------------------------------

_depth = 0
"""How many of our parents wait for us, directly or not. The outermost one handles signals in its own way."""


def _listen() -> None:
    """From now on an interrupt, or the end of our own parent, is an exception: we end our child's group, then exit."""
    if _depth:
        _on_interrupt(_leave)
        _when_orphaned(signal.SIGTERM)


def _listen_no_more() -> None:
    if _depth:
        _on_interrupt(signal.SIG_DFL)
        _when_orphaned(signal.SIGKILL)


def _leave(number: int, _frame: FrameType | None) -> NoReturn:
    _on_interrupt(signal.SIG_IGN)  # Once is enough; a second one would cut off what the first one begins.
    sys.exit(128 + number)


def _on_interrupt(handler: Callable[[int, FrameType | None], NoReturn] | signal.Handlers) -> None:
    for number in _INTERRUPTS:
        with suppress(ValueError):  # Not in the main thread: then signals are not ours to handle.
            signal.signal(number, handler)


# --- the parent ------------------------------------------------------------------------------------


def _wait(pid: int, reading: int, until: float) -> Ended:
    said = bytearray()
    status: int | None = None
    open_ = True
    while status is None:
        left = until - time.monotonic()
        if left <= 0:
            return _ended(_kill(pid), bytes(said), late=True)
        if open_ and select.select([reading], [], [], min(left, LOOK_SECONDS))[0]:
            piece = os.read(reading, 1 << 16)
            said += piece
            open_ = bool(piece)
            if piece:
                continue
        # The end of the pipe is the end of the child, a moment later; unless it closed everything it had.
        status = _reap(pid, wait=False)
        if status is None and not open_:
            time.sleep(min(left, LOOK_SECONDS / 20))
    while open_ and select.select([reading], [], [], 0)[0] and (piece := os.read(reading, 1 << 16)):
        said += piece  # Its messages before it died, while its own children hold the pipe open.
    _kill_group(pid)
    return _ended(status, bytes(said), late=False)


def _reap(pid: int, *, wait: bool) -> int | None:
    found, status = os.waitpid(pid, 0 if wait else os.WNOHANG)
    return status if found else None


def _end(pid: int) -> None:
    """Ask the child to end, so that it first ends its own child's group; then make sure of it."""
    until = time.monotonic() + GENTLE_SECONDS / 2**_depth
    with suppress(ProcessLookupError, ChildProcessError):
        os.kill(pid, signal.SIGTERM)
        while time.monotonic() < until:
            if _reap(pid, wait=False) is not None:
                _kill_group(pid)
                return
            time.sleep(LOOK_SECONDS / 20)
    _kill(pid)


def _kill(pid: int) -> int | None:
    """End the child and all of its own children, and wait until it is gone."""
    _kill_group(pid)
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)  # If it does not lead its group yet.
    with suppress(ChildProcessError):
        return _reap(pid, wait=True)
    return None


def _kill_group(pid: int) -> None:
    """Also right after the child was reaped: process numbers are not used again at once."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def _ended(status: int | None, frames: bytes, *, late: bool) -> Ended:
    said, trouble, forked = bytearray(), "", False
    at = 0
    while at + _FRAME <= len(frames):
        size = int.from_bytes(frames[at + 1 : at + _FRAME], "big")
        frame = frames[at + _FRAME : at + _FRAME + size]
        if len(frame) < size:
            break
        if frames[at : at + 1] == _TROUBLE:
            trouble = frame.decode(errors="replace")
        elif frames[at : at + 1] == _STRANGE:
            forked = True
        else:
            said += frame
        at += _FRAME + size
    code = None if status is None or os.WIFSIGNALED(status) else os.waitstatus_to_exitcode(status)
    number = os.WTERMSIG(status) if status is not None and os.WIFSIGNALED(status) else None
    return Ended(code, number, bytes(said), trouble, late, forked)
