"""Journals of every kind in one store, moved to another, and cut off at every request: for the rings and for the proof.

The world is a list of what was really executed. Whatever happens on the way, each of its lines may be there once.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import surefoot as sf
from surefoot.core.entry import RunCreated
from surefoot.core.seal import Record, from_record
from surefoot.engine.process import config, journal
from surefoot.engine.process.runtime import Runtime
from surefoot.engine.threads import Threads
from surefoot.engine.upkeep.moving import Moved, Mover, Stays
from surefoot.engine.upkeep.verification import verify_store
from surefoot.errors import MovedAway
from surefoot.store.open import close_all, open_store

RUNS = ("done", "order", "order-mail", "doubtful")
WORLD: list[str] = []
KEYS: dict[str, set[str]] = {}


def _do(what: str) -> None:
    WORLD.append(what)
    KEYS.setdefault(what, set()).add(sf.key())


@sf.step
def read(n: int) -> str:
    return f"{n} é " * 4000


@sf.effect
def charge(what: str) -> str:
    _do(f"charge {what}")
    return what


@sf.effect
def post(what: str) -> str:
    _do(f"post {what}")
    raise ConnectionError("no answer came")


@sf.workflow
def plain(n: int) -> int:
    charge(f"plain {n}")
    return len(read(n))


@sf.workflow
def mail(order: str) -> str:
    charge(f"mail {order}")
    answer = sf.ask("send it?")
    return charge(f"sent {order} {answer}")


@sf.workflow
def order(name: str) -> str:
    charge(f"order {name}")
    read(7)
    sent = sf.child(mail, "order-mail", name)
    return charge(f"closed {sent}")


@sf.workflow
def doubtful() -> str:
    return post("letter")


class Killed(BaseException):
    """The process is gone."""


class Plan:
    """Kills at one point of all, or counts them."""

    def __init__(self, at: int = -1, *, really: bool = False) -> None:
        self.at = at
        self.really = really
        self.seen = 0

    def point(self) -> None:
        self.seen += 1
        if self.seen - 1 == self.at:
            if self.really:
                os.kill(os.getpid(), signal.SIGKILL)
            raise Killed


class Watched:
    """A store at which the process may be killed before and after every request."""

    def __init__(self, store: Any, plan: Plan) -> None:
        self._store = store
        self._plan = plan

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._store, name)
        if name not in ("append", "rewrite_together", "read_all", "read", "parts", "scan", "names"):
            return value

        def asked(*args: Any, **kwargs: Any) -> Any:
            self._plan.point()
            answer = value(*args, **kwargs)
            self._plan.point()
            return answer

        return asked


def fill(url: str) -> None:
    """Runs that are done, that wait, and in doubt; a checkpoint; a thread."""
    WORLD.clear()
    KEYS.clear()
    with config.overridden(store=url):
        plain.run("done", 1)
        for start in (lambda: order.run("order", "o"), lambda: doubtful.run("doubtful")):
            try:
                start()
            except sf.Stopped:
                continue
            raise AssertionError(start)
    night = sf.Checkpoint("night", store=url)
    for n in range(3):
        night.save({"n": n, "text": "x" * 3000})
    chat = Threads(url)
    chat.save("chat", "", "1", "", state=b'{"x":"' + b"y" * 3000 + b'"}', meta=b"{}")
    chat.save("chat", "", "2", "1", state=b'{"x":2}', meta=b"{}")


def move(source: str, target: str, plan: Plan | None = None) -> list[Any]:
    """All there is, as a process that may be killed."""
    plan = plan or Plan()
    stores = [Watched(open_store(url, create=True), plan) for url in (source, target)]
    mover = Mover(*(Runtime(store) for store in stores), by="ann")
    return list(mover.move(mover.groups()))


def where(run: str, *urls: str) -> list[str]:
    """The stores that would drive the run."""
    found = []
    for url in urls:
        try:
            known = journal.load(open_store(url, create=True), run)
        except MovedAway:
            continue
        found += [url] if known is not None else []
    return found


def histories(run: str, *urls: str) -> int:
    """How many stores have what the run recorded."""
    return sum(any(_is_start(record) for record in open_store(url, create=True).read(run).records) for url in urls)


def _is_start(record: Record) -> bool:
    return isinstance(from_record(record), RunCreated)


def finish(url: str) -> None:
    """Drive everything to its end, and hold the world against it."""
    with config.overridden(store=url):
        assert plain.run("done", 1) == len("1 é " * 4000)
        sf.get_run("order-mail").answer("ask#1", "yes")
        assert order.run("order", "o") == "closed sent o yes"
        sf.get_run("doubtful").settle("post#1", happened="found")
        assert doubtful.run("doubtful") == "found"
    assert sf.Checkpoint("night", store=url).load() == {"n": 2, "text": "x" * 3000}
    newest = Threads(url).newest("chat", "")
    assert newest is not None
    assert (newest.id, newest.state) == ("2", b'{"x":2}')
    assert_once()


def assert_once() -> None:
    assert set(Counter(WORLD).values()) == {1}, WORLD
    assert all(len(keys) == 1 for keys in KEYS.values())


def points(source: str, target: str) -> int:
    """How many points there are at which a move could be killed."""
    fill(source)
    plan = Plan()
    outcomes = move(source, target, plan)
    assert all(isinstance(one, Moved) for one in outcomes), outcomes
    return plan.seen


PROCESS = "import sys; from tests import moves; moves.move(*sys.argv[2:], moves.Plan(int(sys.argv[1]), really=True))"


def kill_process(point: int, source: str, target: str) -> None:
    """A process of its own moves everything, and gets SIGKILL there."""
    close_all()
    root = str(Path(__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", PROCESS, str(point), source, target],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([root, *sys.path])}, capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()


def kill_thread(point: int, source: str, target: str) -> None:
    """The same in this process: nothing of the call goes on, and the stores stay open."""
    try:
        move(source, target, Plan(point))
    except Killed:
        return
    raise AssertionError(f"there is no point {point}")


def killed_at(point: int, source: str, target: str, kill: Callable[[int, str, str], object] = kill_thread) -> None:
    """One move that is killed there, looked at, and called again."""
    fill(source)
    kill(point, source, target)
    for run in RUNS:
        assert len(where(run, source, target)) <= 1, (point, run, "could be driven in both")
        assert histories(run, source, target) >= 1, (point, run, "lost")
    assert len({tuple(where(run, source, target)) for run in ("order", "order-mail")}) == 1
    outcomes = move(source, target)
    assert not any(isinstance(one, Stays) for one in outcomes), (point, outcomes)
    for run in RUNS:
        assert where(run, source, target) == [target], (point, run)
        assert histories(run, source, target) == 1
    for url in (source, target):
        assert verify_store(open_store(url, create=False)).flaws == []
    refused(source)
    finish(target)


def refused(url: str) -> None:
    """Whoever asks at the source is told where it went."""
    with config.overridden(store=url):
        for ask in _asks(url):
            with pytest.raises(MovedAway) as gone:
                ask()
            assert gone.value.store


def _asks(url: str) -> Iterator[Callable[[], object]]:
    yield lambda: plain.run("done", 1)
    yield lambda: order.run("order", "o")
    yield lambda: order.start("order", "o")
    yield lambda: sf.get_run("order-mail").answer("ask#1", "yes")
    yield lambda: sf.get_run("doubtful").settle("post#1", not_happened=True)
    yield lambda: sf.get_run("doubtful").cancel()
    yield lambda: sf.get_run("doubtful").resume()
    yield lambda: sf.Checkpoint("night", store=url).load()
    yield lambda: sf.Checkpoint("night", store=url).save({"n": 9})
    yield lambda: Threads(url).newest("chat", "")
    yield lambda: Threads(url).save("chat", "", "3", "2", state=b"{}", meta=b"{}")
