"""`surefoot worker APP`: drive the runs of a store until told to stop.

The first SIGTERM or Ctrl-C lets the calls in flight finish, within the grace time; the second ends the process at once.
Signals are taken by the main thread, which does nothing else: a handler that runs in the middle of the worker's own lines
could wait for a lock that those lines hold.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
import threading
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

import click

from surefoot.cli import output
from surefoot.cli.options import Settings, verb
from surefoot.errors import SurefootError, UsageError
from surefoot.view import facts, text

if TYPE_CHECKING:
    from surefoot.engine.worker.worker import Worker

CUT_OFF = 1
"""Not all calls in flight have ended."""
LOOK_SECONDS = 0.2
LOOPBACK = "127.0.0.1"
STOPPING = (signal.SIGTERM, signal.SIGINT)


@click.command()
@click.argument("app", metavar="APP", envvar="SUREFOOT_APP")
@click.option(
    "--concurrency", type=click.IntRange(1), metavar="N", default=10, show_default=True, help="Runs driven at once."
)
@click.option(
    "--queue", "queues", multiple=True, metavar="NAME",
    help="Serve only this queue; may be repeated; '' are the runs that were given none. Default: all.",
)  # fmt: skip
@click.option(
    "--grace",
    metavar="TIME",
    default="30s",
    show_default=True,
    help="How long calls in flight may take when told to stop.",
)
@click.option(
    "--engine", metavar="URL",
    help="Who says which runs are driven here: temporal://HOST:PORT/NAMESPACE. Default: SUREFOOT_ENGINE, or this worker itself.",
)  # fmt: skip
@click.option(
    "--metrics", metavar="[HOST:]PORT", help=f"Serve numbers for Prometheus there. HOST: {LOOPBACK} if not given."
)
@verb
def worker(
    settings: Settings, app: str, concurrency: int, queues: tuple[str, ...], grace: str, engine: str | None,
    metrics: str | None,
) -> int:  # fmt: skip
    """Drive the runs of the workflows in APP, a module, until told to stop; APP may come from SUREFOOT_APP.

    SIGTERM or Ctrl-C: takes up nothing more, lets the calls in flight finish, and hands the runs back to others. What
    takes longer than --grace is cut off, and a second signal does that at once; an effect that was under way is then
    in doubt.

    Exit code: 0 stopped in good order, 1 calls were cut off or the store is not available, 2 wrong use, 4 store damaged.
    """
    from surefoot.cli import execution
    from surefoot.engine.process.config import configure

    where = None if metrics is None else _place(metrics)
    configure(store=settings.store, engine=engine)  # For the workflows' own calls of surefoot, too.
    with execution.answers_only():
        working = _worker(settings, app, concurrency, queues, grace)
        with _exposed(working, where):
            failure = _serve(working)
    unfinished = working.busy
    code = _report(settings, working, unfinished, failure)
    if unfinished:
        _leave(code)
    return code


def _worker(settings: Settings, app: str, concurrency: int, queues: tuple[str, ...], grace: str) -> Worker:
    from surefoot.cli import code
    from surefoot.engine.declare.registry import registry
    from surefoot.engine.worker.worker import Worker

    if ":" in app:
        raise UsageError(f"{app!r}: a worker drives all workflows of a module. Write {app.partition(':')[0]}.")
    code.load_module(app)
    if not registry.all():
        raise UsageError(f"there is no workflow in module {app!r}: decorate a function with @sf.workflow.")
    return Worker(store=settings.store, queue=queues or None, concurrency=concurrency, grace=grace)


def _place(metrics: str) -> tuple[str, int]:
    host, _, port = metrics.rpartition(":")
    if not (port.isascii() and port.isdigit()) or int(port) > 65535:
        raise UsageError(f"--metrics {metrics}: write HOST:PORT, or a PORT of {LOOPBACK}.")
    return host.removeprefix("[").removesuffix("]") or LOOPBACK, int(port)


@contextlib.contextmanager
def _exposed(working: Worker, where: tuple[str, int] | None) -> Any:
    if where is None:
        yield
        return
    from surefoot.engine.worker.prometheus import Exposition

    host, port = where
    with Exposition(working, host, port) as exposition:
        output.tell(f"worker: metrics on http://{f'[{host}]' if ':' in host else host}:{exposition.port}/metrics")
        yield


# --- serving ---------------------------------------------------------------------------------------


def _serve(working: Worker) -> BaseException | None:
    """Work until a stop is requested. Returns the worker's failure, if there is one."""
    inbox: SimpleQueue[int | None] = SimpleQueue()  # A signal handler may call its `put` at any time.
    failure: list[BaseException] = []

    def work() -> None:
        try:
            working.run()
        except BaseException as error:  # noqa: BLE001 - told in the main thread
            failure.append(error)
        finally:
            inbox.put(None)

    before = [(number, signal.signal(number, lambda got, _: inbox.put(got))) for number in STOPPING]
    try:
        output.tell(*map(text.visible, _serves(working)))
        threading.Thread(target=work, name="surefoot-worker", daemon=True).start()
        _watch(working, inbox)
    finally:
        for number, handler in before:
            signal.signal(number, handler)
    return failure[0] if failure else None


def _watch(working: Worker, inbox: SimpleQueue[int | None]) -> None:
    stopping = False
    while (number := _next(inbox)) is not None:
        if stopping:
            output.tell(f"worker: told twice to stop.{_lost(working.busy)}")
            _leave(128 + number)
        stopping = True
        output.tell(f"worker: {signal.Signals(number).name}: taking up nothing more{_finishing(working)}.")
        working.stop()


def _next(inbox: SimpleQueue[int | None]) -> int | None:
    """Wakes at intervals: the system may deliver a signal to any thread, and Python's handler waits for this one."""
    while True:
        with contextlib.suppress(Empty):
            return inbox.get(timeout=LOOK_SECONDS)


def _finishing(working: Worker) -> str:
    if not (busy := len(working.busy)):
        return ""
    return (
        f"; {busy} run{'s' * (busy > 1)} may finish the call in flight, within {working.grace_seconds:g} s. "
        "A second signal cuts off at once"
    )


def _serves(working: Worker) -> list[str]:
    from surefoot.engine.declare.registry import registry
    from surefoot.engine.process import engines

    engine = [f"  engine       {engines.url()}"] if engines.bell().drives else []
    queues = ", ".join(queue or "(none)" for queue in working.queues) or "all"
    return [
        f"worker {working.runtime.store.worker[:8]} (pid {os.getpid()}) on {working.runtime.store.url}",
        f"  workflows    {', '.join(sorted({each.name for each in registry.all()}))}",
        f"  queues       {queues}",
        f"  concurrency  {working.concurrency}",
        *engine,
    ]


# --- how it ended ----------------------------------------------------------------------------------


def _report(settings: Settings, working: Worker, unfinished: tuple[str, ...], failure: BaseException | None) -> int:
    if failure is not None and not isinstance(failure, SurefootError):
        raise failure
    ended = dict(sorted(working.ended.items()))
    told = ", ".join(f"{count} {how}" for how, count in ended.items()) or "none"
    output.tell(f"worker: stopped. Runs taken up: {told}.{_lost(unfinished)}")
    if failure is not None:
        return output.complain(settings, failure, exit_code=failure.exit_code)
    if settings.json:
        output.say_json(facts.worker(working.runtime.store.url, ended=ended, unfinished=unfinished))
    return CUT_OFF if unfinished else 0


def _lost(unfinished: tuple[str, ...]) -> str:
    if not unfinished:
        return ""
    runs = text.shorten(", ".join(unfinished), 400)
    return (
        f" Cut off: {runs}. Steps that were under way run again; effects that were are in doubt: see `surefoot runs`."
    )


def _leave(code: int) -> None:
    """End the process with calls still in flight: waiting for their threads could take for ever."""
    from surefoot.engine.process import alerts

    alerts.finish()
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)
