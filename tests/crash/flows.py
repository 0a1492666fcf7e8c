"""The corpus: small programs that between them do everything surefoot can do, each from its first line on.

A flow's `live` is what one process does: it is called again, unchanged, by the process that lives after a crash. It
answers with the results, which have to be those of the undisturbed life. Doubts and questions are answered by a person
who looks at the ledger and tells the truth. `prepare` makes what must be there before, without faults.

Every call of a flow takes a number `n` first, unique under its name in its run, so that the ledger, the journal and
what user code has seen can be held against each other.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
from msgspec import Struct

import surefoot as sf
import surefoot.aio as asf
import surefoot.effects as ready
from surefoot.core import values
from surefoot.core.seal import GENESIS, Record, Sealer
from surefoot.engine.process import config
from surefoot.engine.upkeep import adoption, tombstones
from surefoot.errors import JournalRegressed, NotFound
from surefoot.store.anchor import Anchor, Mark
from surefoot.store.open import close_all, open_regressed
from surefoot.testing.children import die
from tests.crash.faults import WORLD, Shim
from tests.crash.stage import did, done_parts, seen, stage, stepped, undid

CANARY = "canary-5f2e9d"
QUIT = "quit"
"""An event that never comes: the run is cancelled instead."""
KEEP = 3
"""So many generations of a checkpoint are always there."""
PATIENCE = 25
"""How many stops a person answers before saying that it never ends."""


MOODY: dict[str, Any] = {"retries": 3, "backoff": sf.Backoff(first="10m", factor=2, max="1h", jitter=False)}
FUSSY: dict[str, Any] = {
    "on_crash": "retry",
    "retries": 4,
    "not_done": (ValueError,),
    "backoff": sf.Backoff(first="10m", jitter=False),
}


class Flow(Struct, frozen=True):
    name: str
    live: Callable[[], Any]
    prepare: tuple[Callable[[], None], ...] = ()
    """Each in a process of its own, without faults; one may end in its own death."""
    damaged: bool = False
    """Whether that leaves damage behind, so that the first look may say so."""
    refused: str = ""
    """The error by which the damage has to be refused, if it has to be; then it stays as it is."""
    threads: bool = False
    """Whether the order of its boundaries may differ from life to life."""
    free: bool = False
    """Whether what it comes to is a matter of timing: then only its lives are held against each other."""
    told: tuple[str, dict[str, list[int]]] | None = None
    """Its result (see `comparable`) and what it leaves in the world, where that is known without running it."""


# --- calls -----------------------------------------------------------------------------------------------------------


@sf.step
def look(n: int) -> dict[str, Any]:
    stepped("look", n)
    return {"n": n, "words": ["refund", "invoice"] * n}


@sf.effect
def charge(n: int) -> str:
    did("charge", n, "once")
    return f"ch_{n}"


@sf.effect(on_crash="retry")
def put(n: int) -> tuple[str, int]:
    did("put", n, "keyed")
    return "put", n


@sf.effect
def copy(n: int) -> str:
    did("copy", n, "probed", part=1)
    did("copy", n, "probed", part=2)
    return f"cp_{n}"


@copy.check
def copied(n: int) -> Any:
    parts = done_parts("copy", n, sf.run_id())
    return [sf.not_happened(), sf.partial("one half"), sf.happened(f"cp_{n}")][len(parts)]


@sf.effect
def move(n: int) -> str:
    did("move", n, "probed", part=1)
    did("move", n, "probed", part=2)
    return f"mv_{n}"


@move.check
def moved(n: int) -> Any:
    parts = done_parts("move", n, sf.run_id())
    return [sf.not_happened(), sf.partial("one half"), sf.happened(f"mv_{n}")][len(parts)]


@move.undo(on_crash="retry")
def move_back(n: int, result: str | None) -> None:
    undid("move", n, "keyed")


@sf.effect
def reserve(n: int) -> str:
    did("reserve", n, "once")
    return f"rs_{n}"


@reserve.undo
def give_back(n: int, result: str) -> None:
    undid("reserve", n, "probed")


@reserve.undo.check
def given_back(n: int, result: str) -> Any:
    return sf.not_happened() if done_parts("reserve", n, sf.run_id()) else sf.happened(None)


@sf.step(**MOODY)
def moody(n: int) -> int:
    stepped("moody", n)
    if sf.attempt() < 3:
        raise ConnectionError(f"attempt {sf.attempt()}")
    return n


@sf.effect(**FUSSY)
def fussy(n: int) -> int:
    if sf.attempt() == 1:
        raise ValueError("not today")
    did("fussy", n, "keyed")
    return n


@sf.effect
def lost(n: int) -> str:
    did("lost", n, "once")
    raise TimeoutError("no answer")


@sf.effect(approve=True)
def wire(n: int, amount: int) -> str:
    did("wire", n, "once", amount=amount)
    return f"wr_{n}_{amount}"


@sf.effect
def vague(n: int) -> str:
    did("vague", n, "probed")
    return f"va_{n}"


@vague.check
def guessed(n: int) -> Any:
    if n:
        raise ConnectionError("the gateway is down")
    return sf.unknown("the gateway is down")


@sf.effect
def deaf(n: int) -> str:
    """In doubt each time; the first time nothing has happened."""
    if sf.attempt() > 1:
        did("deaf", n, "once")
    raise TimeoutError("no answer")


@sf.effect(not_done=ValueError)
def decline(n: int) -> str:
    """Fails for good: as it says itself, nothing was done."""
    did("decline", n, "once")
    raise ValueError(f"declined {n}")


@sf.effect(on_crash="fail")
def risky(n: int) -> str:
    """Whether it happened, nobody knows after a crash; it is not run again."""
    did("risky", n, "maybe")
    return f"ri_{n}"


@sf.transaction("sqlite:///user.db")
def insert(db: Any, n: int) -> int:
    db.execute("CREATE TABLE IF NOT EXISTS t (n)")
    db.execute("INSERT INTO t VALUES (?)", [n])
    stage().act("tried", f"insert {n}", run=sf.run_id())
    return n


@sf.step
def think(n: int, history: list[str]) -> list[str]:
    stepped("think", n)
    return [*history, *(f"{n} {word} {'lorem ipsum ' * 20}" for word in range(12))]


@sf.step
def whisper(n: int, secret: Any) -> int:
    stepped("whisper", n)
    return n + len(secret.reveal())


@asf.step
async def alook(n: int) -> int:
    stepped("alook", n)
    return n


@asf.effect
async def acharge(n: int) -> str:
    did("acharge", n, "once")
    return f"ch_{n}"


@asf.effect(on_crash="retry")
async def aput(n: int) -> int:
    did("aput", n, "keyed")
    return n


def got(fn: Any, n: int, *more: Any) -> Any:
    """Call it; what user code then holds was acknowledged."""
    return seen(sf.run_id(), fn.__name__, n, fn(n, *more))


def caught(fn: Any, n: int) -> str:
    """Whatever it comes to: only how often it was executed counts."""
    with contextlib.suppress(ValueError, sf.StepFailed):
        got(fn, n)
    return f"{fn.__name__} {n}"


async def agot(fn: Any, n: int) -> Any:
    return seen(sf.run_id(), fn.__name__, n, await fn(n))


# --- workflows -------------------------------------------------------------------------------------------------------


@sf.workflow
def linear() -> list[Any]:
    return [(got(look, n)["n"], got(charge, n), got(put, n)) for n in range(3)]


@sf.workflow
def tiny() -> list[Any]:
    """In a store that is there already: so short that it can be killed at every pair of boundaries."""
    return [got(charge, 1), got(look, 2)["n"]]


@sf.workflow
def looping(first: int) -> int:
    total = 0
    for n in range(first, first + 3):
        sf.random(), sf.uuid4()
        moment = sf.now().isoformat()
        total += got(look, n)["n"]
        seen(sf.run_id(), "now", n, moment)  # only here: it is on record with the first thing that follows it
        sf.progress(n, 6)
        sf.publish("total", total)
        got(put, n)
    if first == 0:
        sf.continue_as_new(3)
    return total


@sf.workflow
def probing() -> list[str]:
    return [got(copy, n) for n in range(2)]


@sf.workflow
def repairing() -> list[str]:
    return [got(move, n) for n in range(2)]


@sf.workflow
def saga() -> str:
    try:
        with sf.saga():
            for n in range(3):
                got(reserve, n)
            raise ValueError("sold out")
    except ValueError as error:
        return str(error)


@sf.workflow
def fan() -> list[Any]:
    def both(n: int) -> tuple[int, Any]:
        return got(look, n)["n"], got(put, n)

    return [*sf.map(both, range(4), concurrency=2), *sf.gather(lambda: got(charge, 8), lambda: got(charge, 9))]


@sf.workflow
def timing() -> list[Any]:
    first = got(look, 1)["n"]
    sf.sleep("3h")
    second = got(charge, 2)
    sf.sleep("20m")
    return [first, second]


@sf.workflow
def asking() -> list[Any]:
    yes = sf.approve("Go on?", details={"n": 1})
    amount = sf.ask("How much?", type=int)
    return [bool(yes), amount, got(wire, 1, amount), got(wire, 2, amount + 1)]


@sf.workflow
def retrying() -> list[Any]:
    return [got(moody, 1), got(fussy, 2)]


@sf.workflow
def doubting() -> list[Any]:
    return [got(lost, 1), got(charge, 2), got(lost, 3)]


@sf.workflow
def guessing() -> list[str]:
    return [got(vague, n) for n in range(2)]


@sf.workflow
def deafening() -> list[str]:
    return [got(deaf, 1)]


_amount = 40
"""What the code says. It changes while a run is under way."""


@sf.workflow
def paying() -> list[Any]:
    sf.wait_event("order")
    return [got(wire, 1, _amount)] if _amount else []


@sf.workflow
def wiring() -> list[Any]:
    return [got(wire, 1, 40), got(wire, 2, 41)]


@sf.workflow
def transacting() -> list[int]:
    return [got(insert, n) for n in range(3)]


@sf.workflow
def growing() -> int:
    history: list[str] = []
    for n in range(3):
        history = got(think, n, history)
        got(put, n)
    return len(history)


@sf.workflow
def hearing() -> Any:
    order = sf.wait_event("order")
    return [order, got(charge, 1), sf.wait_event("more")]


@sf.workflow
def cancelling() -> None:
    with sf.saga():
        got(reserve, 1)
        got(reserve, 2)
        sf.wait_event("never")


@sf.workflow
def refusing() -> list[str]:
    return [caught(decline, 1), caught(risky, 2), caught(decline, 3)]


@sf.workflow
def pairing() -> bool:
    """Two waits for one name: each takes an event of its own."""
    first, second = (sf.wait_event("order")["at"] for _ in range(2))
    return bool(first != second)


@sf.workflow
def secretly() -> int:
    return got(whisper, 1, sf.Secret(CANARY)) + got(look, 2)["n"]


@sf.workflow
def filing() -> list[Any]:
    made = [ready.write_file("a.txt", "one\n"), ready.write_file("b.txt", "two\n"), ready.write_file("a.txt", "new\n")]
    return [*made, ready.delete_file("b.txt")]


@asf.workflow
async def linear_async() -> list[Any]:
    return [(await agot(alook, n), await agot(acharge, n), await agot(aput, n)) for n in range(2)]


@asf.workflow
async def fan_async() -> list[Any]:
    async def both(n: int) -> tuple[int, Any]:
        return await agot(alook, n), await agot(aput, n)

    return [*await asf.map(both, range(3)), *await asf.gather(agot(acharge, 8), agot(acharge, 9))]


# --- a person who tells the truth -------------------------------------------------------------------------------------


class Endless(Exception):
    """A run stops again and again, whatever is answered."""


class Bare(Exception):
    """A stop that does not say what happened or what helps."""


def finish(drive: Callable[[], Any], run: str) -> Any:
    """Drive a run to its end, and answer whatever it stops for. The result, or how it failed."""
    for _ in range(PATIENCE):
        try:
            return drive()
        except sf.Stopped as stop:
            if not _answered(stop, run):
                raise
        except (sf.StepFailed, sf.Cancelled, sf.Fatal) as failure:
            return [type(failure).__name__, str(failure)]
    raise Endless(f"run {run} still stops after {PATIENCE} answers")


def _answered(stop: sf.Stopped, run: str) -> bool:
    """Every stop says what happened and what helps; what it offers is done. A child has its parent's name in front."""
    for one in stop.stops or (stop,):
        stopped = one.run_id or run
        if not str(one) or not one.cures or stopped.partition(".")[0] != run:
            raise Bare(f"{type(one).__name__} of run {one.run_id!r}: {one!s}, cures {one.cures}")
        stage().goals.add(type(one).__name__)
        if isinstance(one, sf.InDoubt):
            _settle(stopped, one.address)
        elif isinstance(one, sf.WaitingForAnswer):
            _reply(stopped, one)
        else:
            return False
    return True


def _settle(run: str, address: str) -> None:
    handle = sf.get_run(run)
    call = next((call for call in handle.steps() if call.address == address), None)
    if call is None or address not in {past.address for past in handle.state().in_doubt()}:
        return  # its check, an answer to another stop, or somebody else has told meanwhile
    name, n = _named(call)
    if name.endswith(".undo"):
        name, undone = name.removesuffix(".undo"), not done_parts(name.removesuffix(".undo"), n, run)
        _settled(handle, address, None if undone else _NOT)
        return
    wanted = {1, 2} if name in ("copy", "move") else {0}
    parts = done_parts(name, n, run)
    if parts and parts != wanted:
        stage().note("undid", f"{name} {n}", run=run, by="hand", address=address)
        stage().goals.add("mended by hand")
        parts = set()
    _settled(handle, address, value_of(name, **_decoded(call.args)) if parts else _NOT)


_NOT = object()


def _settled(handle: Any, address: str, value: Any) -> None:
    stage().goals.add("settled: " + ("not happened" if value is _NOT else "happened"))
    with contextlib.suppress(sf.UsageError):  # somebody was quicker
        if value is _NOT:
            handle.settle(address, not_happened=True, by="ann", note="looked")
        else:
            handle.settle(address, happened=value, by="ann", note="seen")


def _named(call: Any) -> tuple[str, int]:
    args = _decoded(call.args)
    name = call.address.rsplit("/", 1)[-1].partition("#")[0]
    tail = call.address.rsplit("/", 1)[-1].partition("#")[2]
    return name + (".undo" if "undo" in tail or "repair" in tail else ""), int(args["n"])


def _decoded(text: str) -> Any:
    return values.decode(text.encode())


def value_of(name: str, n: int, amount: int = 0, **_: Any) -> Any:
    """What a call answers."""
    return {
        "charge": f"ch_{n}", "acharge": f"ch_{n}", "put": ("put", n), "aput": n, "copy": f"cp_{n}", "move": f"mv_{n}",
        "reserve": f"rs_{n}", "lost": f"lo_{n}", "fussy": n, "vague": f"va_{n}", "deaf": f"de_{n}", "moody": n, "decline": f"dc_{n}",
        "wire": f"wr_{n}_{amount}", "pay": n, "tell": None, "book": n,
    }[name]  # fmt: skip


def _reply(run: str, stop: sf.Stopped) -> None:
    if stop.facts.get("event") == QUIT:
        with contextlib.suppress(sf.UsageError):  # somebody was quicker
            sf.get_run(run).cancel(by="ann")
    elif "event" in stop.facts:
        _send(run, stop.facts["event"], stop.address)
    else:
        _answer(run, stop.address)


def _send(run: str, name: str, at: str) -> None:
    """Twice, as a client does that has not heard back: the id says that it is the same."""
    with contextlib.suppress(sf.UsageError):  # it has ended meanwhile
        for _ in range(2):
            sf.get_run(run).send_event(name, {"name": name, "at": at}, id=f"{name} for {at}")


def _answer(run: str, address: str) -> None:
    handle = sf.get_run(run)
    question = next((past for past in handle.state().questions() if past.address == address), None)
    if question is not None:
        with contextlib.suppress(sf.UsageError):  # somebody was quicker
            handle.answer(address, 40 if question.form == "ask" else True, by="ann")


# --- lives -----------------------------------------------------------------------------------------------------------


def _alone(workflow: Any, *args: Any) -> Callable[[], Any]:
    return lambda: {"r": finish(lambda: workflow.run("r", *args), "r")}


def _alone_async(workflow: Any) -> Callable[[], Any]:
    return lambda: {"r": finish(lambda: asyncio.run(workflow.run("r")), "r")}


def _transact() -> Any:
    result = finish(lambda: transacting.run("r"), "r")
    with contextlib.closing(sqlite3.connect("user.db")) as db:
        rows = [n for (n,) in db.execute("SELECT n FROM t ORDER BY n")]
    return {"r": result, "rows": rows}


def _file() -> Any:
    result = finish(lambda: filing.run("r"), "r")
    return {"r": result, "files": {path.name: path.read_text() for path in Path().glob("*.txt*")}}


def _cancel() -> Any:
    def waits() -> Any:
        try:
            return cancelling.run("r")
        except sf.WaitingForAnswer:
            return None

    finish(waits, "r")
    run = sf.get_run("r")

    def cancel() -> Any:
        if run.status != "cancelled":
            run.cancel(by="ann")
        if run.status != "cancelled":
            run.resume()
        return run.status

    return {"r": finish(cancel, "r") if run.status != "cancelled" else "cancelled"}


def _fork() -> Any:
    first = finish(lambda: linear.run("r"), "r")
    sf.get_run("r").fork("f", at="charge#2", by="ann")
    second = finish(lambda: sf.get_run("f").resume(), "f")
    sf.get_run("f").fork("g", at="put#3", by="ann")
    return {"r": first, "f": second, "g": finish(lambda: sf.get_run("g").resume(), "g")}


def _rewind() -> Any:
    result = finish(lambda: linear.run("r"), "r")
    run = sf.get_run("r")
    if not any(entry.kind == "RunRewound" for entry in run.entries()):
        run.rewind("look#2", by="ann", note="once more")
    return {"r": result, "again": finish(run.resume, "r")}


def _prune() -> Any:
    results = {}
    for run, workflow in (("a", growing), ("b", linear)):
        with contextlib.suppress(NotFound):  # pruned in an earlier life
            results[run] = finish(lambda workflow=workflow, run=run: workflow.run(run), run)
    runtime = config.runtime(create=False)
    for found in list(tombstones.candidates(runtime.store, runtime.clock, older_than_seconds=-3600)):
        if isinstance(found, tombstones.Candidate) and found.run in ("a", "b"):
            tombstones.bury(runtime.store, runtime.clock, found, by="ann")
    swept = tombstones.sweep(runtime.store)
    if swept.why:
        stage().declined.append(swept.why)
    gone = []
    for run, workflow in (("a", growing), ("b", linear)):
        try:
            workflow.run(run)
        except NotFound as error:
            gone.append("was pruned" in str(error))
    later = finish(lambda: growing.run("c"), "c")
    return {"c": later, "gone": gone, "why": swept.why}


def _conflict() -> Any:
    """The same name with other arguments is another run, and is refused."""
    result = finish(lambda: looping.run("r", 3), "r")
    try:
        other = looping.run("r", 4)
    except sf.RunConflict:
        other = "RunConflict"
    return {"r": result, "other": other}


def _make_store() -> None:
    config.runtime(create=True)
    close_all()


def _bury() -> Any:
    """A small run, pruned."""
    with contextlib.suppress(NotFound):
        finish(lambda: probing.run("a"), "a")
    runtime = config.runtime(create=False)
    for found in list(tombstones.candidates(runtime.store, runtime.clock, older_than_seconds=-3600)):
        if isinstance(found, tombstones.Candidate):
            tombstones.bury(runtime.store, runtime.clock, found, by="ann")
    try:
        return {"a": probing.run("a")}
    except NotFound as error:
        return {"a": "was pruned" in str(error)}


def _checkpoint(store: str | None) -> Any:
    saved = sf.Checkpoint("nightly", schema=1, keep=KEEP, store=store)
    state = _loaded(saved) or {"done": 0, "history": []}
    while state["done"] < 5:
        n = state["done"] = state["done"] + 1
        state["history"] = [*state["history"], f"{n} " + "lorem ipsum dolor " * 200]
        saved.save(state)
        stage().note("saved", f"nightly {n}", run="")
    found = _loaded(sf.Checkpoint("nightly", schema=1, keep=KEEP, store=store))
    return {"done": found["done"], "history": len(found["history"])}


def _loaded(saved: sf.Checkpoint) -> Any:
    """How far it is says what was lost: a loop that begins anew comes to the same end."""
    state = saved.load()
    stage().note("loaded", f"nightly {state['done'] if state else 0}", run="")
    return state


def _checkpoint_files() -> Any:
    return _checkpoint(f"file:///{stage().shim.folder}/saved")


def _adopt_prepared() -> None:
    """A store of which an older copy was put back: what followed is gone, and the anchor knows better."""
    finish(lambda: linear.run("done"), "done")
    with contextlib.suppress(sf.InDoubt):
        doubting.run("r")
    close_all()
    older = {name: Path(name).read_bytes() for name in ("runs.db", "runs.db-wal")}
    finish(lambda: doubting.run("r"), "r")
    close_all()
    for name, content in older.items():
        Path(name).write_bytes(content)
    Path("runs.db-shm").unlink(missing_ok=True)


def _adopt() -> Any:
    try:
        config.runtime(create=True)
    except JournalRegressed:
        stage().goals.add("JournalRegressed")
        store = open_regressed(config.store_url())
        adoption.adopt(store, config.runtime_of(store).clock, reason="the newer file is lost", by="ann")
        close_all()
        store.close()
    return {"r": finish(lambda: doubting.run("r"), "r"), "done": finish(lambda: linear.run("done"), "done")}


def _cut_off() -> None:
    """Die right after the fifth effect, before its outcome."""
    shim, left = stage().shim, [5]

    def counted(kind: str, name: str, perform: Any, **more: Any) -> Any:
        answer = Shim.at(shim, kind, name, perform, **more)
        left[0] -= kind == WORLD
        if not left[0]:
            die()
        return answer

    shim.at = counted
    linear.run("r")


def _damage_entries() -> None:
    """Nobody can read the intent of the second charge any more; what follows it is whole."""
    db = apsw.Connection("runs.db")
    db.execute("UPDATE entries SET body = CAST('{}' AS BLOB) WHERE run = 'r' AND seq = 9").fetchall()
    db.close()


def _damage_page() -> None:
    """A page of the database is no page any more: it has to be built anew before anything else."""
    config.runtime(create=True)
    close_all()
    db = apsw.Connection("runs.db")
    question = "SELECT rootpage FROM sqlite_schema WHERE name = 'sqlite_autoindex_entries_1'"
    at = (db.execute(question).fetchone()[0] - 1) * 4096
    db.close()
    path = Path("runs.db")
    raw = path.read_bytes()
    path.write_bytes(raw[:at] + bytes(16) + raw[at + 16 :])


def _go_on() -> Any:
    """What the damaged run comes to; of its steps some are executed again, of its effects none without a word."""
    return {"r": finish(lambda: linear.run("r"), "r")}


def _change_of_mind() -> Any:
    """A person agrees to 40, while the code is edited to say 41. That takes another yes."""
    global _amount  # noqa: PLW0603 - the code of the flow, as it is edited
    _amount = 41 if stage().look("the code") else 40
    while _amount == 40:
        try:
            paying.run("r")
        except sf.WaitingForAnswer as stop:
            if stop.address == "wire#1.approval":
                stage().note("edited", "the code")
                _amount = 41
            _reply("r", stop)
    return {"r": finish(lambda: paying.run("r"), "r")}


def _wire_again() -> Any:
    """Sent back to before a wire that is then undone by hand: to run it again takes another yes."""
    result = finish(lambda: wiring.run("r"), "r")
    run = sf.get_run("r")
    if not any(entry.kind == "RunRewound" for entry in run.entries()):
        run.rewind("wire#2", by="ann")
    state = run.state()
    if any(past.address == "wire#2" for past in state.in_doubt()) and state.calls["wire#2"].rewound:
        if done_parts("wire", 2, "r"):
            stage().note("undid", "wire 2", run="r", by="hand", address="wire#2")
        run.settle("wire#2", not_happened=True, by="ann", note="undone by hand")
    return {"r": result, "again": finish(run.resume, "r")}


def _race() -> Any:
    """While the parts that nobody needs are being looked for, a run begins to need them."""
    with contextlib.suppress(NotFound):
        finish(lambda: growing.run("a"), "a")
    runtime = config.runtime(create=False)
    store = runtime.store
    for found in list(tombstones.candidates(store, runtime.clock, older_than_seconds=-3600)):
        if isinstance(found, tombstones.Candidate) and found.run == "a":
            tombstones.bury(store, runtime.clock, found, by="ann")

    class Raced:
        def __getattr__(self, name: str) -> Any:
            return getattr(store, name)

        def discard(self, parts: Any, upto: int) -> bool:
            finish(lambda: growing.run("b"), "b")
            return bool(store.discard(parts, upto))

    swept = tombstones.sweep(Raced())
    return {"why": swept.why, "b": finish(lambda: growing.run("b"), "b")}


# --- damage that has to be refused by name ------------------------------------------------------------------------------


def _refusal(drive: Callable[[], Any]) -> Callable[[], Any]:
    def live() -> Any:
        config.settings.on_corruption = "stop"
        try:
            return {"r": drive()}
        except sf.SurefootError as error:
            return {"r": type(error).__name__}

    return live


def _ended() -> None:
    finish(lambda: linear.run("r"), "r")
    close_all()


def _stopped() -> None:
    """Up to its second charge, and closed in good order."""
    with contextlib.suppress(sf.InDoubt):
        doubting.run("r")
    close_all()


def _forged(column: str, value: Any, seq: int = 3) -> Callable[[], None]:
    """Somebody who can compute seals writes a record that nobody can read, and all that follows it anew."""

    def forge() -> None:
        db = apsw.Connection("runs.db")
        store = db.execute("SELECT value FROM meta WHERE key = 'store'").fetchone()[0]
        db.execute(f"UPDATE entries SET {column} = ? WHERE run = 'r' AND seq = ?", (value, seq)).fetchall()
        columns = "run, seq, epoch, at, kind, schema, codec, key, body, seal"
        sealer, previous = Sealer(store, "r"), GENESIS
        for row in db.execute(f"SELECT {columns} FROM entries WHERE run = 'r' ORDER BY seq").fetchall():
            record = Record(*row)
            previous = sealer._digest(
                record.seq, record.epoch, record.at, record.kind, record.schema, record.codec, record.key,
                previous, record.body,
            )  # fmt: skip
            db.execute("UPDATE entries SET seal = ? WHERE run = 'r' AND seq = ?", (previous, record.seq)).fetchall()
        db.execute("UPDATE heads SET seal = ? WHERE run = 'r'", (previous,)).fetchall()
        db.close()
        Path("runs.db-anchor").unlink()
        Anchor(os.path.abspath("runs.db-anchor"), create=True).begin(Mark(store, 1, bytes(32)))
        db = apsw.Connection("runs.db")
        db.execute("UPDATE meta SET value = 100 WHERE key = 'rewritten'").fetchall()
        db.close()

    return forge


def _statements(*statements: str) -> Callable[[], None]:
    def work() -> None:
        db = apsw.Connection("runs.db")
        for statement in statements:
            db.execute(statement).fetchall()
        db.close()

    return work


def _older() -> None:
    _stopped()
    older = {name: Path(name).read_bytes() for name in ("runs.db", "runs.db-wal")}
    finish(lambda: doubting.run("r"), "r")
    close_all()
    for name, content in older.items():
        Path(name).write_bytes(content)
    Path("runs.db-shm").unlink(missing_ok=True)


def _without_database() -> None:
    _stopped()
    for path in Path().glob("runs.db*"):
        if path.is_file() and path.name != "runs.db-anchor":
            path.unlink()


def _other_code(amount: int) -> Callable[[], Any]:
    """The code asks for something else under the same name, or for nothing any more."""

    def drive() -> Any:
        global _amount  # noqa: PLW0603 - the code of the flow, as it is edited
        _amount = amount
        return finish(lambda: sf.get_run("r").resume(), "r")

    return drive


def _wired() -> None:
    """The wire of 40 is on record."""
    global _amount  # noqa: PLW0603 - as above
    _amount = 40
    with contextlib.suppress(sf.WaitingForAnswer):
        paying.run("r")
    _send("r", "order", "wait_event#1")
    with contextlib.suppress(sf.WaitingForAnswer):
        paying.run("r")
    _answer("r", "wire#1.approval")
    shim = stage().shim

    def counted(kind: str, name: str, perform: Any, **more: Any) -> Any:
        answer = Shim.at(shim, kind, name, perform, **more)
        if kind == WORLD:
            die()
        return answer

    shim.at = counted
    paying.run("r")


def _beside() -> None:
    """Another run has the newest records of the store."""
    finish(lambda: probing.run("b"), "b")
    close_all()


def _tail_cut() -> None:
    """The last entries of the run are gone; its head remembers them."""
    _statements("DELETE FROM entries WHERE run = 'r' AND seq > 8")()


_DUPLICATES = (
    b'{"address":"look#1","digest":"5e8f7e9bfcf9c5f9c5a3e1b9a6d0c9a1","args":{"n":0},'
    b'"value":{"n":5,"n":0,"words":[]},"started":1}'
)


def _refused(name: str, by: str, drive: Callable[[], Any], *prepare: Callable[[], None]) -> Flow:
    return Flow(name, _refusal(drive), prepare, damaged=True, refused=by)


def _resumed() -> Any:
    return linear.run("r")


FLOWS = {
    flow.name: flow
    for flow in (
        Flow("linear", _alone(linear)),
        Flow("loop", _alone(looping, 0)),
        Flow("probe", _alone(probing)),
        Flow("repair", _alone(repairing)),
        Flow("saga", _alone(saga)),
        Flow("fan", _alone(fan), threads=True),
        Flow("timer", _alone(timing)),
        Flow("approval", _alone(asking)),
        Flow("retry", _alone(retrying)),
        Flow("doubt", _alone(doubting)),
        Flow("transaction", _transact),
        Flow("large", _alone(growing)),
        Flow("event", _alone(hearing)),
        Flow("cancel", _cancel),
        Flow("secret", _alone(secretly)),
        Flow("files", _file),
        Flow("linear-async", _alone_async(linear_async), threads=True),
        Flow("fan-async", _alone_async(fan_async), threads=True),
        Flow("checkpoint", lambda: _checkpoint(None)),
        Flow("checkpoint-files", _checkpoint_files),
        Flow("fork", _fork),
        Flow("rewind", _rewind),
        Flow("prune", _prune),
        Flow("bury", _bury),
        Flow("tiny", _alone(tiny), (_make_store,)),
        Flow("adopt", _adopt, (_adopt_prepared,), damaged=True),
        Flow("fallback", _go_on, (_cut_off, _damage_entries), damaged=True),
        Flow("salvage", _go_on, (_cut_off, _damage_page), damaged=True),
        Flow("vague", _alone(guessing)),
        Flow("deaf", _alone(deafening)),
        Flow("change-of-mind", _change_of_mind),
        Flow("wire-again", _wire_again),
        Flow("race", _race),
        Flow("refuse", _alone(refusing)),
        Flow("pair", _alone(pairing)),
        Flow("conflict", _conflict),
        Flow("tail-cut", _go_on, (_cut_off, _beside, _tail_cut), damaged=True),
        _refused("forged-codec", "CodecMissing", _resumed, _ended, _forged("codec", 7)),
        _refused("forged-duplicates", "JournalCorrupt", _resumed, _cut_off, _forged("body", _DUPLICATES)),
        _refused("older-copy", "JournalRegressed", lambda: doubting.run("r"), _older),
        _refused("no-database", "JournalRegressed", lambda: doubting.run("r"), _without_database),
        _refused("other-code", "CodeChanged", _other_code(41), _wired),
        _refused("fewer-effects", "CodeChanged", _other_code(0), _wired),
    )
}
