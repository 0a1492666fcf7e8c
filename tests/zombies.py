"""Workers on PostgreSQL that are silent, and alive, in the middle of an effect; and what must hold of it afterwards.

Each blow waits until a worker is inside an effect, and pauses it (SIGSTOP) or cuts its network off. The payment has not
been made yet, and is not made before another worker has taken the run up, which it may only when the lease is over, and
has looked for it in vain: that is where somebody might believe that it did not happen. A blow counts only if it came to
that. Then the payment lands and the silent one is let go on. In the end every payment was made, and none of them twice in
silence: it was made once, or the process that was too late has said so, in the run and in its log.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import surefoot as sf
from surefoot.store.open import close_all
from tests import zombie_app as app
from tests.ledger import ask, ledger_process
from tests.postgres import Server
from tests.proxy import FREEZE, PASS, Proxy
from tests.working import wait_until

WORKERS = 6
AT_ONCE = 4
"""So many of them are silenced together: the others take their runs up."""
TAKEN_AT_ONCE = 2
"""Where each of the others has to be in a payment at the same time: they have a limit, and wait for each other."""
WAIT_SECONDS = 90.0


class Haunted:
    """Six workers, each with a network of its own."""

    def __init__(self, folder: Path, server: Server, store: str, ledger: int) -> None:
        self.folder, self.store, self.ledger = folder, store, ledger
        self.seen: Counter[str] = Counter()
        self._began: dict[str, str] = {}
        name = store.rpartition("/")[2]
        self.networks = [Proxy(server.port) for _ in range(WORKERS)]
        self.workers = [self._start(server.url_of(name, network.port)) for network in self.networks]

    def _start(self, store: str) -> subprocess.Popen[bytes]:
        env = {**os.environ, "LEDGER": str(self.ledger), "SUREFOOT_STORE": store}
        env["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
        words = [sys.executable, "-m", "surefoot", "worker", "tests.zombie_app", "--concurrency", "1"]
        with (self.folder / "workers.log").open("ab") as log:
            return subprocess.Popen(words, cwd=self.folder, env=env, stdout=log, stderr=log)

    def strike(self, blow: str, how: str, rounds: int) -> None:
        """Silence so many of them in the middle of a payment, a few at a time."""
        at_once = TAKEN_AT_ONCE if how == "outlasted" else AT_ONCE
        for first in range(0, rounds, at_once):
            runs = [f"{blow}-{how}-{n}" for n in range(first, min(first + at_once, rounds))]
            for run in runs:
                app.payment.start(run, how, 1)
                self._began[run] = how
            wait_until(lambda runs=runs: all(self._said(run, "begun") for run in runs), WAIT_SECONDS)
            silent = {run: self._worker(self._said(run, "begun")[0]["pid"]) for run in runs}
            assert len(set(silent.values())) == len(runs), "each is in a worker of its own"
            for at in silent.values():
                self._silence(blow, at)
            try:
                self._watch_the_others(how, silent)
            finally:
                for at in silent.values():
                    self._release(blow, at)
            wait_until(lambda runs=runs: all(self._is_over(run) for run in runs), WAIT_SECONDS)
            self.seen[f"{blow}s"] += len(runs)

    def _watch_the_others(self, how: str, silent: dict[str, int]) -> None:
        """Another worker has the run, and finds nothing; `outlasted`: its time is over, so it pays. Only now it lands."""
        wait_until(lambda: all(claims(run) > 1 for run in silent), WAIT_SECONDS)
        wait_until(lambda: all(self._looked_in_vain(run, at) for run, at in silent.items()), WAIT_SECONDS)
        if how == "outlasted":
            wait_until(lambda: all(len(self._said(run, "begun")) > 1 for run in silent), WAIT_SECONDS)
        for run in silent:
            assert not self._said(run, "charge"), f"{run}: paid before it could, so this shows nothing"
            ask(self.ledger, do="land", room=run, what="land")
            self.seen["looked for in vain while it was under way"] += 1

    def _looked_in_vain(self, run: str, silent: int) -> bool:
        return any(line["pid"] != self.workers[silent].pid for line in self._said(run, "looked in vain"))

    def judge(self) -> str:
        """Every payment was made; once, or the second one was announced."""
        for run, how in self._began.items():
            state = sf.get_run(run).state()
            paid = Counter(line["key"] for line in self._said(run, "charge"))
            assert len(paid) == 1, f"{run}: {paid}"
            (times,) = paid.values()
            if times == 1:
                self.seen["once"] += 1
                continue
            assert how == "outlasted", f"{run}: twice, though its time was respected"
            assert state.landed_late, f"{run}: twice, in silence"
            assert f"run {run}, {how}#1: executed here, too late" in self.log(), f"{run}: not said where it happened"
            self.seen["twice, announced"] += 1
        return ", ".join(f"{count} {what}" for what, count in sorted(self.seen.items())) + ", 0 twice in silence"

    def log(self) -> str:
        return (self.folder / "workers.log").read_text(errors="replace")

    def close(self) -> None:
        for worker in self.workers:
            if worker.poll() is None:
                worker.send_signal(signal.SIGCONT)
                worker.kill()
            worker.wait()
        for network in self.networks:
            network.close()

    def _is_over(self, run: str) -> bool:
        """Done; and whoever was paused past its time has said what it did."""
        state = sf.get_run(run).state()
        if state.status != "done":
            return False
        charges = len(self._said(run, "charge"))
        return charges == 1 or bool(state.landed_late)

    def _said(self, run: str, what: str) -> list[dict[str, object]]:
        found: list[dict[str, object]] = ask(self.ledger, do="look", room=run, what=what)
        return found

    def _worker(self, pid: object) -> int:
        return next(at for at, worker in enumerate(self.workers) if worker.pid == pid)

    def _silence(self, blow: str, at: int) -> None:
        if blow == "pause":
            self.workers[at].send_signal(signal.SIGSTOP)
        else:
            self.networks[at].arm(FREEZE)

    def _release(self, blow: str, at: int) -> None:
        if blow == "pause":
            self.workers[at].send_signal(signal.SIGCONT)
        else:
            self.networks[at].arm(PASS)


def claims(run: str) -> int:
    return sum(entry.kind == "RunAdopted" for entry in sf.get_run(run).entries())


@contextmanager
def haunted(folder: Path, server: Server, store: str) -> Iterator[Haunted]:
    with ledger_process() as ledger:
        made = Haunted(folder, server, store, ledger)
        try:
            yield made
        finally:
            close_all()
            made.close()
