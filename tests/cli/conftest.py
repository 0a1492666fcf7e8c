"""The command as people use it: in a child process where exit codes, signals and streams matter, else in this one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import surefoot as sf
from surefoot.cli.main import main
from surefoot.store.open import close_all

HOSTILE = "\x1b[31mred\x07\u202eevil\x9b2J[bold]"

APP = r'''
import os, signal, subprocess, sys, time
from datetime import date
from decimal import Decimal
from pathlib import Path
import surefoot as sf
import surefoot.aio as aio

def wait_to_be_let_go():
    """Tell the test that we are here, and stay until it lets us go on."""
    if os.path.exists("go"):
        return
    with open("here", "w") as here:
        here.write("here\n")
    with open("let-go") as gate:
        gate.read()

@sf.step
def draft(customer: str) -> str:
    print("drafting", customer)
    with open("ledger", "a") as ledger:
        ledger.write(f"draft {customer}\n")
    return f"Dear {customer}"

@sf.effect
def send(customer: str, text: str) -> str:
    subprocess.run(["echo", "from a child process"], check=True)
    with open("ledger", "a") as ledger:
        ledger.write(f"send {customer}\n")
    if customer == os.environ.get("DIE_AFTER_SENDING_TO"):
        os.kill(os.getpid(), signal.SIGKILL)
    return f"mail-{customer}"

@sf.workflow
def notify(customers: list[str], greeting: str = "Dear") -> int:
    for customer in customers:
        send(customer, draft(customer))
    return len(customers)

@sf.workflow
def echo(*args, **kwargs) -> list:
    return [list(args), kwargs]

@sf.workflow
def typed(n: int, when: date, where: Path = None, name: str = "", price: Decimal = None, limit: int | None = 3) -> str:
    return f"{n!r} {when!r} {where!r} {name!r} {price!r} {limit!r}"

class Broken(Exception):
    pass

@sf.step
def break_down(what: str) -> None:
    raise Broken(f"no more {what}")

@sf.workflow
def failing(what: str) -> None:
    break_down(what)

@sf.workflow
def shape() -> tuple:
    return (1, Path("a"), "\x1b[31m \u202e \x7f é")

@sf.workflow
def leaving() -> None:
    sys.exit(0)

@sf.step
def sit() -> str:
    wait_to_be_let_go()
    return "sat"

@sf.workflow
def sitting() -> str:
    return sit()

@sf.step
async def sit_async() -> str:
    import asyncio
    if not os.path.exists("go"):
        Path("here").write_text("here\n")
        await asyncio.sleep(50)
    return "sat"

@sf.workflow
async def sitting_async() -> str:
    return await sit_async()

@sf.effect
def act() -> str:
    wait_to_be_let_go()
    return "acted"

@sf.workflow
def acting() -> str:
    return act()

not_a_workflow = 42
'''


@pytest.fixture
def hostile():
    """What a model or a customer might have put into our data."""
    return HOSTILE


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)


@pytest.fixture(autouse=True)
def _no_store_stays_open():
    yield
    close_all()


@pytest.fixture
def cli(capsys, own_folder):
    """The command in this process, in the test's own folder."""

    def run(*words: str) -> Ended:
        capsys.readouterr()
        code = main(words)
        out, err = capsys.readouterr()
        return Ended(code, out, err)

    return run


@pytest.fixture
def app(own_folder):
    (own_folder / "app.py").write_text(APP)
    return own_folder


@pytest.fixture
def shell(app):
    """The command in a process of its own, in the folder of the app."""

    def run(*words: str, **env: str) -> Ended:
        ended = subprocess.run(
            command(*words),
            cwd=app, env=os.environ | env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        )  # fmt: skip
        return Ended(ended.returncode, ended.stdout, ended.stderr)

    return run


def command(*words: str) -> list[str]:
    return [sys.executable, "-W", "error", "-m", "surefoot", *words]


@pytest.fixture
def child(app):
    """A command that goes on in the background; it is gone when the test is over."""
    children = Children(app)
    yield children
    children.end()


class Children:
    """Background commands, and the two pipes through which the app's calls talk to the test."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._started: list[subprocess.Popen[str]] = []
        for name in ("here", "let-go"):
            os.mkfifo(folder / name)

    def start(self, *words: str, **options) -> subprocess.Popen[str]:
        return self.start_words(command(*words), **options)

    def start_words(self, words: list[str], **options) -> subprocess.Popen[str]:
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
        started = subprocess.Popen(words, cwd=self._folder, text=True, **pipes)
        self._started.append(started)
        return started

    def wait_until_it_sits(self) -> None:
        """Returns once the workflow's call has begun: it writes into a pipe that we read."""
        assert (self._folder / "here").read_text() == "here\n"

    def let_go(self) -> None:
        (self._folder / "let-go").write_text("go")

    def end(self) -> None:
        for one in self._started:
            one.kill()
            one.wait()
            for pipe in (one.stdout, one.stderr):
                if pipe is not None:
                    pipe.close()


# --- runs made in this process -------------------------------------------------------------------------


@sf.step
def read(name: str) -> str:
    return name


@sf.effect
def charge(name: str) -> str:
    raise ConnectionError(f"lost {name}")


@sf.workflow
def quick(name: str) -> str:
    return read(name)


@sf.workflow
def doubtful(name: str) -> str:
    return charge(read(name))


@sf.workflow
def broken(name: str) -> str:
    raise ValueError(name)


@sf.workflow
def expecting(name: str) -> str:
    return sf.wait_event(name)


@pytest.fixture
def runs(own_folder):
    """A store with a run of each sort, in the default place."""
    quick.using(labels={"team": "[bold]"}).run("done-1", HOSTILE)
    with pytest.raises(ValueError):
        broken.run("failed-1", HOSTILE)
    with pytest.raises(sf.InDoubt):
        doubtful.run("stopped-1", HOSTILE)
    with pytest.raises(sf.WaitingForAnswer):
        expecting.run("waiting-1", "paid")
    quick.start("queued-1", "later")
    return own_folder
