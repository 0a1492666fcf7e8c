"""The part that outlives a killed process: the request or the program that it had started, and nothing else.

The process forks and dies. Its copy waits until it is released, then completes the operation in progress: one request,
one program. The copy ends before the next act of the dead process. The kit's clock decides when the copy is released,
so there is no real wait: an operation that takes a moment lands a moment after the kill, and code that believes a check
before that believes it too early.
"""

from __future__ import annotations

import os
import select
import signal
import time
import warnings
from contextlib import suppress

from surefoot.testing.children import adopting, die

_PID_BYTES = 8


class Survivor:
    """The survivor of one scenario: made before the process that will die, and closed when the scenario is over.

    `due` is the moment on the kit's clock, in microseconds, at which it has landed: as long after the kill as it takes
    without one.
    """

    def __init__(self, lag: int, *, patience: float) -> None:
        """`lag` in microseconds. A survivor that does not end within `patience` seconds counts as endless."""
        self.due = 0
        self._lag = max(lag, 1)
        self._patience = patience
        self._pid = 0
        self._is_given_up = False
        self._go, self._let_go = os.pipe()
        self._over, self._alive = os.pipe()
        adopting(True)

    # -- in the process that dies -------------------------------------------------------------------

    def stay(self) -> None:
        """Returns in the copy only, after its release. The original process is dead."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # About threads: their locks are not needed here.
            pid = os.fork()
        if pid:
            with suppress(OSError):
                os.setpgid(pid, pid)  # The group of the dead is killed, too.
            os.write(self._alive, pid.to_bytes(_PID_BYTES, "big"))
            die()
        os.close(self._let_go)
        if not os.read(self._go, 1):
            os._exit(0)  # No process is left to release it.

    # -- in those after it --------------------------------------------------------------------------

    def begin(self, now: int) -> None:
        """The process is dead. Now its survivor, if there is one, can be released."""
        os.close(self._go)
        os.close(self._alive)
        self._go = self._alive = -1
        self._pid = int.from_bytes(os.read(self._over, _PID_BYTES), "big")
        self.due = now + self._lag

    def land(self) -> bool:
        """Release it, and wait for its end. False: it has landed before, or does not end."""
        if not self._pid or self._is_given_up or _ends(self._over, 0):
            return False
        with suppress(BrokenPipeError):
            os.write(self._let_go, b"!")
        self._is_given_up = not _ends(self._over, self._patience)
        return not self._is_given_up

    def close(self) -> None:
        for fd in (self._go, self._let_go, self._over, self._alive):
            if fd >= 0:
                os.close(fd)
        if self._pid:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._pid, signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(self._pid, 0)
        adopting(False)


def _ends(pipe: int, seconds: float) -> bool:
    """Whether no process holds the other end of the pipe any more."""
    until = time.monotonic() + seconds
    while True:
        if not select.select([pipe], [], [], max(0.0, until - time.monotonic()))[0]:
            return False
        if not os.read(pipe, 1):
            return True
