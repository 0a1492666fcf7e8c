"""Effects that act and then raise (L11): every exception that matters, every policy, and each cure that a stop offers.

A scenario says it all: `flow=KeyError+ask+none+0+saga+rewind level=L11 at=40:kill seed=3`: what is raised, `on_crash`,
`not_done=`, `retries=`, the shape of the workflow, and what a person does about it. An even seed raises once, an odd one
twice; every fourth does not act before it raises. An exception that proves that nothing was done is raised before acting:
whoever does otherwise lies to the engine. Each process has another default for what the effects are called with, as if
it were a deploy.

What is promised: executed at most once without a declaration or a person's word; what is not proven is in doubt; what
is in doubt is not undone, but named; and what was executed is what is recorded, looked for and undone.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import http.client
import json
import random
import signal
import smtplib
import socket
import sqlite3
import ssl
import subprocess
import urllib.error
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

import surefoot as sf
import surefoot.aio as asf
from surefoot.core.state import was_in_doubt
from tests.crash import play
from tests.crash.flows import PATIENCE, Bare, Endless, agot, got
from tests.crash.invariants import Findings, Line
from tests.crash.lab import Lab
from tests.crash.play import RUN, Rules, Story, acted, is_there, many, mended, took_back
from tests.crash.scenario import Outcome, Scenario
from tests.crash.stage import parts_of, place, stage

AMOUNT = 40
"""The default of the first process; each later one has the next number."""


# --- what is raised ------------------------------------------------------------------------------------------------------


class Raised(NamedTuple):
    make: Callable[[], BaseException]
    known: str = ""
    """What is known of the client: `proof` that nothing was done, or `unsure`; empty: nothing is known."""
    always: bool = False
    """Whether it is user code's express word: a proof, whatever is declared."""


class MyError(Exception):
    """A class of the user's own."""


class MyKeyError(KeyError):
    """A subclass of one that may be declared."""


class SoftTimeLimit(Exception):
    """As raised by the signal handlers of task queues."""


def fake(
    module: str, name: str, base: type[BaseException] = Exception, **attributes: Any
) -> Callable[[], BaseException]:
    """An exception of a client that is not installed here: known by package and name."""
    cls = type(name, (base,), {"__module__": module})

    def make() -> BaseException:
        error = cls(f"{name} after the deed")
        vars(error).update(attributes)
        return error

    return make


def answered(status: int) -> Any:
    return SimpleNamespace(status_code=status, history=[])


class Transport(Exception):
    """What httpx has above its network errors."""


Transport.__module__ = "httpx"


class OwnConnectError(fake("httpx", "ConnectError", Transport)().__class__):  # type: ignore[misc]
    """A subclass of a known one."""


def _signalled() -> BaseException:
    """A soft limit: the handler of a signal raises, wherever the code is."""

    def handler(*_: Any) -> None:
        raise SoftTimeLimit("no time left")

    signal.signal(signal.SIGUSR1, handler)
    try:
        signal.raise_signal(signal.SIGUSR1)
    except SoftTimeLimit as error:
        return error
    raise AssertionError


ERRORS: dict[str, Raised] = {
    **{
        cls.__name__: Raised(lambda cls=cls: cls("after the deed"))
        for cls in (
            KeyError, ValueError, TypeError, RuntimeError, AttributeError, IndexError, AssertionError, ZeroDivisionError,
            LookupError, ArithmeticError, NotImplementedError, RecursionError, MemoryError, EOFError, BufferError,
            OSError, PermissionError, FileNotFoundError, InterruptedError, BlockingIOError, IsADirectoryError,
            MyError, MyKeyError,
        )
    },
    **{
        cls.__name__: Raised(lambda cls=cls: cls("after the deed"), "unsure")
        for cls in (TimeoutError, ConnectionError, ConnectionResetError, ConnectionAbortedError, BrokenPipeError)
    },
    "UnicodeDecodeError": Raised(lambda: UnicodeDecodeError("utf-8", b"\xff", 0, 1, "no text")),
    "JSONDecodeError": Raised(lambda: json.JSONDecodeError("no JSON", "<html>", 0)),
    "SoftTimeLimit": Raised(_signalled),
    "future.TimeoutError": Raised(lambda: concurrent.futures.TimeoutError("late"), "unsure"),
    "IncompleteRead": Raised(lambda: http.client.IncompleteRead(b"x"), "unsure"),
    "RemoteDisconnected": Raised(lambda: http.client.RemoteDisconnected("gone"), "unsure"),
    "URLError": Raised(lambda: urllib.error.URLError(TimeoutError("timed out")), "unsure"),
    "SMTPServerDisconnected": Raised(lambda: smtplib.SMTPServerDisconnected("lost"), "unsure"),
    "TimeoutExpired": Raised(lambda: subprocess.TimeoutExpired("git push", 3), "unsure"),
    "SSLError": Raised(lambda: ssl.SSLError("bad record"), "unsure"),
    "sqlite3.OperationalError": Raised(lambda: sqlite3.OperationalError("locked"), "unsure"),
    "httpx.ReadTimeout": Raised(fake("httpx", "ReadTimeout", Transport), "unsure"),
    "httpx.ReadError": Raised(fake("httpx", "ReadError", Transport), "unsure"),
    "httpx.WriteTimeout": Raised(fake("httpx", "WriteTimeout", Transport), "unsure"),
    "httpx.500": Raised(fake("httpx", "HTTPStatusError", response=answered(500)), "unsure"),
    "httpx.409": Raised(fake("httpx", "HTTPStatusError", response=answered(409)), "unsure"),
    "httpx.408": Raised(fake("httpx", "HTTPStatusError", response=answered(408)), "unsure"),
    "requests.ReadTimeout": Raised(fake("requests.exceptions", "ReadTimeout", OSError), "unsure"),
    "requests.ConnectionError": Raised(fake("requests.exceptions", "ConnectionError", OSError), "unsure"),
    "requests.JSONDecodeError": Raised(fake("requests.exceptions", "JSONDecodeError", ValueError), "unsure"),
    "urllib3.ProtocolError": Raised(fake("urllib3.exceptions", "ProtocolError"), "unsure"),
    "aiohttp.ServerDisconnectedError": Raised(fake("aiohttp.client_exceptions", "ServerDisconnectedError"), "unsure"),
    "openai.APIConnectionError": Raised(fake("openai", "APIConnectionError"), "unsure"),
    "openai.RateLimitError": Raised(fake("openai", "RateLimitError", status_code=429), "unsure"),
    "anthropic.APITimeoutError": Raised(fake("anthropic", "APITimeoutError"), "unsure"),
    "anthropic.OverloadedError": Raised(fake("anthropic", "OverloadedError", status_code=529), "unsure"),
    "botocore.EndpointConnectionError": Raised(fake("botocore.exceptions", "EndpointConnectionError"), "unsure"),
    "stripe.APIConnectionError": Raised(fake("stripe", "APIConnectionError"), "unsure"),
    "stripe.RateLimitError": Raised(fake("stripe", "RateLimitError", http_status=429), "unsure"),
    "redis.TimeoutError": Raised(fake("redis.exceptions", "TimeoutError"), "unsure"),
    "group": Raised(lambda: ExceptionGroup("two", [sf.NotDone("no"), KeyError("id")])),
    "group.unsure": Raised(lambda: ExceptionGroup("two", [KeyError("id"), TimeoutError("late")]), "unsure"),
    # Those that prove it.
    "NotDone": Raised(lambda: sf.NotDone("nothing was done"), "proof", always=True),
    "Fatal": Raised(lambda: sf.Fatal("never"), "proof", always=True),
    "RetryAfter": Raised(lambda: sf.RetryAfter(60), "proof", always=True),
    "Unavailable": Raised(lambda: sf.Unavailable("away", retry_after="2m"), "proof", always=True),
    "group.proof": Raised(lambda: ExceptionGroup("two", [sf.NotDone("a"), sf.NotDone("b")]), "proof", always=True),
    "ConnectionRefusedError": Raised(lambda: ConnectionRefusedError(111, "refused"), "proof"),
    "gaierror": Raised(lambda: socket.gaierror(-2, "no such name"), "proof"),
    "SMTPRecipientsRefused": Raised(lambda: smtplib.SMTPRecipientsRefused({}), "proof"),
    "sqlite3.IntegrityError": Raised(lambda: sqlite3.IntegrityError("unique"), "proof"),
    "httpx.ConnectError": Raised(fake("httpx", "ConnectError", Transport), "proof"),
    "httpx.ConnectTimeout": Raised(fake("httpx", "ConnectTimeout", Transport), "proof"),
    "httpx.own": Raised(lambda: OwnConnectError("refused"), "proof"),
    "httpx.402": Raised(fake("httpx", "HTTPStatusError", response=answered(402)), "proof"),
    "openai.BadRequestError": Raised(fake("openai", "BadRequestError", status_code=400), "proof"),
    "stripe.CardError": Raised(fake("stripe", "CardError"), "proof"),
    # Those that end whatever runs; what they cut off is in doubt.
    "KeyboardInterrupt": Raised(KeyboardInterrupt),
    "SystemExit": Raised(lambda: SystemExit(3)),
    "CancelledError": Raised(asyncio.CancelledError),
}  # fmt: skip
INTERRUPTS = (KeyboardInterrupt, SystemExit, asyncio.CancelledError)
DECLARED: dict[str, Any] = {
    "none": None,
    "nothing": (),
    "KeyError": KeyError,
    "OSError": (OSError,),
    "Exception": Exception,
    "TimeoutError": TimeoutError,
    "two": (ValueError, MyError),
}
"""Shapes of `not_done=`."""
POLICIES = ("ask", "retry", "check", "fail")
RETRIES = ("0", "2")
SHAPES = ("alone", "caught", "saga", "mapped", "async")
CURES = ("happened", "not-happened", "failed", "rewind", "retry", "cancel")


class Spec(NamedTuple):
    error: str
    policy: str
    declared: str
    retries: str
    shape: str
    cure: str

    @classmethod
    def of(cls, scenario: Scenario) -> Spec:
        return cls(*scenario.flow.split("+"))

    def options(self) -> dict[str, Any]:
        told: dict[str, Any] = {"on_crash": self.policy, "backoff": sf.Backoff(first="10m", jitter=False)}
        told |= {} if self.declared == "none" else {"not_done": DECLARED[self.declared]}
        return told | ({"retries": int(self.retries)} if self.retries != "0" else {})

    def proves(self) -> bool:
        """Whether what is raised proves that nothing was done: by CHANGE.md, not by the engine."""
        raised, named = ERRORS[self.error], DECLARED[self.declared]
        if raised.always or named == ():
            return raised.always
        error = raised.make()
        parts = error.exceptions if isinstance(error, BaseExceptionGroup) else (error,)
        return raised.known == "proof" or all(_is_named(part, raised.known, named) for part in parts)


def _is_named(error: BaseException, known: str, named: Any) -> bool:
    names = named if isinstance(named, tuple) else (named,) if named else ()
    if isinstance(error, sf.NotDone):
        return True
    if not isinstance(error, Exception):
        return False
    return type(error) in names or (known != "unsure" and isinstance(error, names))


# --- the program ---------------------------------------------------------------------------------------------------------


def _program(spec: Spec, seed: int, life: int) -> Any:
    """As the code is in the process of this number."""
    raises = 1 + seed % 2
    lies_still = spec.proves() or seed % 4 == 3
    kind = "keyed" if spec.policy == "retry" else "once"
    default = AMOUNT + life

    @sf.effect
    def reserve(n: int, amount: int = default) -> str:
        acted("reserve", n, "once", amount=amount)
        return f"rs_{n}"

    @reserve.undo(on_crash="retry")
    def give_back(n: int, amount: int, result: str) -> None:
        took_back("reserve", n, amount=amount)

    def charging(n: int, amount: int) -> str:
        before = play.times("began", f"charge {n}") if n == 1 else raises
        stage().note("began", f"charge {n}", **place())
        if before >= raises or not lies_still:
            acted("charge", n, kind, amount=amount)
        if before < raises:
            stage().note("raised", f"charge {n}", **place())
            raise ERRORS[spec.error].make()
        return f"ch_{n}"

    if spec.shape == "async":

        @asf.effect(**spec.options())
        async def charge(n: int, amount: int = default) -> str:
            return charging(n, amount)

    else:

        @sf.effect(**spec.options())
        def charge(n: int, amount: int = default) -> str:
            return charging(n, amount)

    @charge.undo(on_crash="retry")
    def pay_back(n: int, amount: int, result: str) -> None:
        took_back("charge", n, amount=amount)

    if spec.policy == "check":

        @charge.check
        def charged(n: int, amount: int) -> Any:
            stage().note("looked for", f"charge {n}", args={"amount": amount}, **place())
            return sf.happened(f"ch_{n}") if is_there(f"charge {n}") else sf.not_happened()

    if spec.shape == "async":

        @asf.workflow(name="raising")
        async def waiting() -> Any:
            return [await agot(charge, 1), await agot(charge, 2)]

        return lambda: asyncio.run(waiting.run(RUN))

    @sf.workflow(name="raising")
    def raising() -> Any:
        if spec.shape == "alone":
            return got(charge, 1)
        if spec.shape == "mapped":
            return list(sf.map(lambda n: got(charge, n), range(3), concurrency=1))
        if spec.shape == "caught":
            told = "caught"
            with contextlib.suppress(Exception):
                told = got(charge, 1)
            return [told, got(reserve, 2)]
        with contextlib.suppress(Exception), sf.saga():
            got(reserve, 0)
            got(charge, 1)
            got(reserve, 2)
            raise ValueError("sold out")
        return "rolled back"

    return lambda: raising.run(RUN)


# --- a person who does what is offered -----------------------------------------------------------------------------------


def live(scenario: Scenario, life: int) -> Any:
    spec = Spec.of(scenario)
    drive = _program(spec, scenario.seed, life)
    for _ in range(PATIENCE):
        try:
            return {"r": drive()}
        except sf.Cancelled:
            return {"r": "cancelled"}
        except sf.Stopped as stop:
            _cured(stop, spec)
        except INTERRUPTS:
            continue  # Somebody starts it once more.
        except sf.SurefootError as failure:
            if not isinstance(failure, sf.StepFailed | sf.NotDone | sf.Fatal | sf.Unavailable):
                raise
            if not _tried_again(spec):
                return {"r": "failed"}
        except Exception:
            if not _tried_again(spec):
                return {"r": "failed"}
    raise Endless(f"run {RUN} still stops after {PATIENCE} answers")


def _tried_again(spec: Spec) -> bool:
    """The run has failed. What is offered then is done once."""
    run = sf.get_run(RUN)
    if spec.cure not in ("rewind", "retry") or times_cured():
        return False
    stage().note("cured", spec.cure)
    if spec.cure == "retry":
        run.retry(by="ann")
    else:
        run.rewind(next(call.address for call in run.steps() if _charges(call.address)), by="ann")
    return True


def _charges(address: str) -> bool:
    """In a branch as well. Of several, the one that raises is the one that is in doubt, or has failed."""
    return address.rpartition("/")[2].partition("#")[0] == "charge"


def times_cured() -> int:
    return sum(line["do"] == "cured" for line in stage().look())


def _cured(stop: sf.Stopped, spec: Spec) -> None:
    for one in stop.stops or (stop,):
        if not str(one) or not one.cures:
            raise Bare(f"{type(one).__name__}: {one!s}, cures {one.cures}")
        if not isinstance(one, sf.InDoubt):
            raise one
        stage().goals.add("InDoubt")
        run = sf.get_run(RUN)
        if one.address not in {past.address for past in run.state().in_doubt()}:
            continue
        cure = spec.cure if _charges(one.address) else "happened"
        if cure in ("rewind", "retry") and times_cured():
            cure = "happened"
        _offered(run, one, cure)
        if cure == "cancel":
            run.cancel(by="ann")
            return  # Then all other stops are over, too.
        if cure == "rewind":
            stage().note("cured", cure)
            run.rewind(one.address, by="ann")
        else:
            _settled(run, one.address, cure)


def _offered(run: Any, stop: sf.Stopped, cure: str) -> None:
    """What a person does is what the stop offers. `--failed` is, where there is an exception to fail with."""
    raised = next(call for call in run.steps() if call.address == stop.address).error
    settles = ("happened", "not-happened", *(["failed"] if raised else []))
    if cure in settles and not any(f"--{cure}" in str(one) for one in stop.cures):
        stage().note("not offered", cure)


def _settled(run: Any, address: str, cure: str) -> None:
    """A person who tells the truth; who says that it did not happen takes it back first, should it be there."""
    call = next(call for call in run.steps() if call.address == address)
    n = int(json.loads(call.args)["n"])
    name = address.rpartition("/")[2].partition("#")[0]
    there = is_there(f"{name} {n}")
    if name.endswith(".undo"):
        run.settle(address, happened=None, by="ann") if not there else run.settle(address, not_happened=True, by="ann")
    elif cure == "failed":
        mended(name, n, address)
        run.settle(address, failed=True, by="ann")
    elif cure == "not-happened" or not there:
        mended(name, n, address)
        run.settle(address, not_happened=True, by="ann")
    else:
        run.settle(address, happened={"reserve": f"rs_{n}"}.get(name, f"ch_{n}"), by="ann")
    stage().goals.add(f"settled: {cure}")


# --- what must never be --------------------------------------------------------------------------------------------------


def judge(found: Findings, story: Story) -> None:
    spec = Spec.of(story.scenario)
    play.same_request(found, story)
    _only_proofs(found, story, spec)
    _what_is_left(found, story)
    for line in story.of("not offered"):
        found.add("I-21", f"in doubt, and {line['what']} is not offered")


def _only_proofs(found: Findings, story: Story, spec: Spec) -> None:
    """Failed is only what proves that nothing was done, or what somebody has looked at."""
    cleared: set[tuple[str, int]] = set()
    for entry in story.entries:
        kind = type(entry).__name__
        if kind == "EffectSettled" and not entry.happened:
            cleared.add((entry.address, entry.attempt))
        if kind == "EffectRaised" and _charges(entry.address):
            looked_at = (entry.address, entry.attempt) in cleared or was_in_doubt(entry.error)
            if not spec.proves() and not looked_at:
                found.add("I-31", f"{entry.address} is on record as failed, and {spec.error} proves nothing")
        if kind == "EffectDoubted" and spec.proves() and entry.attempt == 1:
            found.add("I-31", f"{entry.address} is in doubt, though {spec.error} proves that nothing was done")


def _what_is_left(found: Findings, story: Story) -> None:
    """Whoever reads "rolled back" or "failed" is told what may be there all the same."""
    ends = story.kinds("RunDone", "RunFailed")
    done = {entry.address for entry in story.kinds("EffectDone")}
    settled = {entry.address for entry in story.kinds("EffectSettled")}
    gave_up = {entry.address for entry in story.kinds("EffectRaised") if was_in_doubt(entry.error)}
    for address in {*gave_up, *(entry.address for entry in story.kinds("EffectDoubted"))}:
        if ends and address not in done | settled and address not in ends[-1].left:
            found.add("I-31", f"the run has ended, and {address}, in doubt, is not on record as left")
        if not story.said(address) and address not in done | settled:
            found.add("I-31", f"nobody was told that {address} is in doubt")
    if "+saga+" in story.scenario.flow and story.kinds("RunDone"):
        for name, n, address in (("reserve", 0, "reserve#1"), ("charge", 1, "charge#1"), ("reserve", 2, "reserve#2")):
            there = parts_of(story.of("did", "undid", what=f"{name} {n}"))
            if there and address not in ends[-1].left:
                found.add("I-05", f"the saga was rolled back, {address} is still there, and nobody was told")


def struck(lines: list[Line]) -> str:
    return "" if any(line["do"] == "raised" for line in lines) else "the effect did not raise"


RULES = Rules(live, judge, struck)


def run(lab: Lab, scenario: Scenario) -> Outcome:
    return play.run(lab, scenario, RULES)


# --- which there are -----------------------------------------------------------------------------------------------------


def drawn(luck: random.Random, shape: str, **fixed: str) -> Scenario:
    while True:
        choice = {
            "error": luck.choice(sorted(ERRORS)), "policy": luck.choice(POLICIES), "declared": luck.choice(sorted(DECLARED)),
            "retries": luck.choice(RETRIES), "shape": shape, "cure": luck.choice(CURES),
        } | fixed  # fmt: skip
        spec = Spec(**choice)
        if spec.retries == "0" or spec.policy in ("retry", "check") or DECLARED[spec.declared]:
            break  # Else the decorator refuses it: retries= without a word on why that is safe.
    at = "/".join(
        f"{luck.randint(20, 150)}:{luck.choice(('kill', 'kill', 'after'))}" for _ in range(luck.choice((0, 1, 1, 1, 2)))
    )
    return Scenario("+".join(spec), "L11", at, luck.randrange(8))


scenarios = many(drawn)
"""L11: for each seed other exceptions, policies and cures; `flow` is the shape of the workflow."""
