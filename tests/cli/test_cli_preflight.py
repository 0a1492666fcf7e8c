"""`surefoot preflight`: what new code would do to runs in flight, told before it is deployed; nothing is touched."""

from __future__ import annotations

import contextlib
import sqlite3
import subprocess
import sys

import pytest

OLD = r"""
import os
from dataclasses import dataclass
import surefoot as sf
import surefoot.aio as aio

def note(line):
    with open("ledger", "a") as ledger:
        ledger.write(line + "\n")

@dataclass
class Order:
    name: str
    cents: int

@sf.step
def fetch(name: str) -> Order:
    note(f"fetch {name}")
    return Order(name, 5)

@sf.step
async def fetch_async(name: str) -> Order:
    note(f"fetch {name}")
    return Order(name, 5)

@sf.effect
def charge(name: str, cents: int) -> str:
    note(f"charge {name}")
    return "charged"

@sf.effect
def ship(name: str) -> str:
    note(f"ship {name}")
    raise ConnectionError("lost")

@sf.step
def last(name: str) -> str:
    if os.path.exists("interrupt"):
        raise KeyboardInterrupt
    note(f"last {name}")
    return name

@sf.workflow(version=1)
def fitting(name: str) -> str:
    charge(name, 100)
    return last(name)

@sf.workflow
def changed(name: str) -> str:
    charge(name, 100)
    sf.wait_event("go")

@sf.workflow
def reshaped(name: str) -> str:
    fetch(name)
    sf.wait_event("go")

@sf.workflow
async def reshaped_async(name: str) -> str:
    await aio.gather(fetch_async(name), fetch_async(name + "!"))
    await aio.wait_event("go")

@sf.workflow
def ordering(order: Order) -> str:
    sf.wait_event("go")

@sf.workflow
def parameters(name: str) -> str:
    sf.wait_event("go")

@sf.workflow
def removed(name: str) -> str:
    sf.wait_event("go")

@sf.workflow
def shortened(name: str) -> str:
    charge(name, 100)
    sf.wait_event("go")

@sf.workflow
def failing(name: str) -> str:
    charge(name, 100)
    sf.wait_event("go")

@sf.workflow
def doubtful(name: str) -> str:
    return ship(name)

@sf.workflow
def patient(name: str) -> str:
    sf.wait_event("go")

@sf.workflow
def ended(name: str) -> str:
    return name
"""

NEW = OLD
for before, after in {
    "    cents: int\n\n": "    cents: int\n    currency: str = 'EUR'\n\n",
    "version=1": "version=2",
    "def changed(name: str) -> str:\n    charge(name, 100)": "def changed(name: str) -> str:\n    charge(name, 250)",
    "def parameters(name: str)": "def parameters(name: str, country: str)",
    "def removed(": "def renamed(",
    'def shortened(name: str) -> str:\n    charge(name, 100)\n    sf.wait_event("go")': "def shortened(name): pass",
    "def failing(name: str) -> str:\n    charge(name, 100)": "def failing(name: str) -> str:\n    charge(name, 100).no()",
}.items():
    assert NEW.count(before) == 1
    NEW = NEW.replace(before, after)

BEGIN = """
import asyncio, contextlib, os, app, surefoot as sf
from pathlib import Path

for name in ("fitting", "changed", "reshaped", "reshaped_async", "ordering", "parameters", "removed", "shortened",
             "failing", "doubtful", "patient", "ended"):
    given = app.Order("a", 5) if name == "ordering" else name
    Path("interrupt").touch()
    with contextlib.suppress(sf.Stopped, KeyboardInterrupt):
        begun = getattr(app, name).run(name, given)
        if asyncio.iscoroutine(begun):
            asyncio.run(begun)
    os.unlink("interrupt")
app.fitting.start("queued", "q")
"""


@pytest.fixture
def store(app):
    """Runs in flight, begun with the old code; the folder has the new code now."""
    begin(app, OLD)
    (app / "app.py").write_text(NEW)
    return app


def begin(folder, source, script=BEGIN):
    (folder / "app.py").write_text(source)
    subprocess.run([sys.executable, "-W", "error", "-c", script], cwd=folder, check=True, capture_output=True)


def found(ended):
    return {one["run"]: one for one in ended.json["runs"]}


def bytes_of(folder):
    """Every byte of the store. The index of the log (-shm) belongs to whoever has the store open."""
    files = [path for path in (folder / ".surefoot").rglob("*") if path.is_file() and not path.name.endswith("-shm")]
    return {path.name: path.read_bytes() for path in files if path.stat().st_size}


def test_it_lists_the_runs_that_new_code_would_strand_and_why(store, shell):
    """The question of every deployment, and the last moment at which the answer is cheap."""
    ended = shell("preflight", "--app", "app", "--json")

    verdicts = {name: (one["verdict"], [why["type"] for why in one["why"]]) for name, one in found(ended).items()}
    assert 3 == ended.code
    assert verdicts == {
        "fitting": ("goes on", []),
        "queued": ("goes on", []),
        "changed": ("stranded", ["CodeChanged"]),
        "reshaped": ("stranded", ["SchemaMismatch"]),
        "reshaped_async": ("stranded", ["SchemaMismatch"]),
        "ordering": ("stranded", ["SchemaMismatch"]),
        "parameters": ("stranded", ["CodeChanged"]),
        "removed": ("stranded", ["CodeChanged"]),
        "shortened": ("stranded", ["CodeChanged"]),
        "failing": ("stranded", ["AttributeError"]),
        "doubtful": ("in doubt", []),
        "patient": ("waits", ["WaitingForAnswer"]),
    }
    assert ended.json["counts"] == {
        "damaged": 0,
        "stranded": 8,
        "perhaps stranded": 0,
        "in doubt": 1,
        "waits": 1,
        "goes on": 2,
    }


def test_each_reason_names_the_place_and_what_differs(store, shell):
    """'Something changed' helps nobody at two in the morning."""
    runs = found(shell("preflight", "--app", "app", "--json"))
    why = {name: one["why"][0] for name, one in runs.items() if one["why"]}

    assert "charge#1" == why["changed"]["address"]
    assert '"cents":100' in why["changed"]["facts"]["recorded"]
    assert '"cents":250' in why["changed"]["facts"]["asked"]
    assert ("fetch#1", "currency") == (why["reshaped"]["address"], why["reshaped"]["facts"]["field"])
    assert "run reshaped, fetch#1: a recorded Order has no field 'currency'" in why["reshaped"]["message"]
    assert why["reshaped_async"]["address"].startswith("gather#1.")
    assert "run ordering, its arguments: a recorded Order has no field" in why["ordering"]["message"]
    assert "country" in why["parameters"]["message"]
    assert "'removed' is not in the code at hand" in why["removed"]["message"]
    assert "without asking for charge#1" in why["shortened"]["message"]
    assert "no attribute 'no'" in why["failing"]["message"]
    assert ["ship#1"] == [doubt["address"] for doubt in runs["doubtful"]["in_doubt"]]


def test_it_tells_the_versions_and_what_would_be_executed_next(store, shell):
    """A run keeps the version it was begun with; the code has its own."""
    fitting = found(shell("preflight", "--app", "app", "--json"))["fitting"]

    assert (1, 2) == (fitting["version"], fitting["code_version"])
    assert [{"kind": "step", "address": "last#1"}] == fitting["next"]


def test_nothing_is_executed_and_nothing_is_written(store, shell):
    """It is run against the live store: a preflight that changes anything is worse than none."""
    before, ledger = bytes_of(store), (store / "ledger").read_text()

    shell("preflight", "--app", "app")

    assert {"runs.db"} < set(before)
    assert bytes_of(store) == before
    assert (store / "ledger").read_text() == ledger


LEAVING = """
import surefoot as sf, surefoot.aio as aio

def note(line):
    with open("ledger", "a") as ledger:
        ledger.write(line + "\\n")

@sf.effect
def charge() -> None:
    note("charge")

@sf.workflow
def other() -> None:
    charge()

@sf.workflow
def patient() -> None:
    sf.wait_event("go")

@sf.workflow
def outside() -> None:
    with sf.outside():
        charge()

@sf.workflow
def starting() -> None:
    other.run("other")

@sf.workflow
async def starting_async() -> None:
    await aio_other.start("other")

@sf.workflow
async def aio_other() -> None:
    pass

@sf.workflow
def saving() -> None:
    sf.Checkpoint("progress").save({"n": 1})

@sf.workflow
def sending() -> None:
    with sf.outside():
        sf.send_event("patient", "go")

@sf.workflow
async def sending_async() -> None:
    with sf.outside():
        await aio.send_event("patient", "go")
"""
LEAVING_RUNS = ("outside", "starting", "starting_async", "saving", "sending", "sending_async")


def test_what_leaves_the_run_on_purpose_is_not_done_either(app, shell):
    """`sf.outside()` and runs started by a run are not held back by the run itself; a rehearsal holds them back."""
    script = "import app, contextlib, surefoot as sf, asyncio\nwith contextlib.suppress(sf.Stopped): app.patient.run('patient')\n"
    script += "".join(
        f"asyncio.run(app.{name}.start({name!r}))\n" if "async" in name else f"app.{name}.start({name!r})\n"
        for name in LEAVING_RUNS
    )
    begin(app, LEAVING, script)
    before = bytes_of(app)

    runs = found(shell("preflight", "--app", "app", "--json"))

    assert {"goes on"} == {runs[name]["verdict"] for name in LEAVING_RUNS}
    assert not (app / "ledger").exists()
    assert bytes_of(app) == before


CONTINUING = """
import surefoot as sf

@sf.workflow
def rounds(n: int) -> None:
    sf.continue_as_new(n + 1, "too many")
"""


def test_a_next_segment_with_arguments_that_do_not_fit_is_told_in_one_sentence(app, shell):
    """A resume would refuse it with the same words; no line of the user's own raised it, so none is shown."""
    begin(app, CONTINUING, "import app\napp.rounds.start('r', 1)\n")

    ended = shell("preflight", "--app", "app")

    assert ended.code == 3
    assert "UsageError: run r: sf.continue_as_new cannot go on with these arguments: " in ended.out
    assert "Traceback" not in ended.out


PAYING = r"""
import asyncio, os, threading
import surefoot as sf
import surefoot.aio as aio

def note(line):
    with open("ledger", "a") as ledger:
        ledger.write(line + "\n")

@sf.effect
def pay(name: str) -> str:
    note(f"pay {name}")
    return name

@sf.effect
async def pay_async(name: str) -> str:
    note(f"pay {name}")
    return name

told = threading.Semaphore(0)

@sf.step
def tell() -> None:
    told.release()  # What the branch did before is on record now.

@sf.step
async def tell_async() -> None:
    told.release()

@sf.step
def pause(others: int = 0) -> None:
    if os.path.exists("interrupt"):
        for _ in range(others):
            assert told.acquire(timeout=20)
        raise KeyboardInterrupt

@sf.step
async def pause_async(others: int) -> None:
    if os.path.exists("interrupt"):
        for _ in range(others):
            assert await asyncio.to_thread(told.acquire, timeout=20)
        raise KeyboardInterrupt

@sf.effect
def mail(name: str) -> str:
    note(f"mail {name}")
    return name

@sf.workflow
def dropped(name: str) -> str:
    pay(name)
    pause()
    return mail(name)

@sf.workflow
def asking(name: str) -> str:
    pay(name)
    sf.approve("Go on?")
    return mail(name)

@sf.workflow
def narrowed(name: str) -> None:
    sf.gather(lambda: pause(1), lambda: (pay(name), tell()))

@sf.workflow
def in_branches(name: str) -> None:
    sf.gather(lambda: (pause(2), pay("never")), lambda: (pay("a"), tell()), lambda: (pay("b"), pay("c"), tell()))

@sf.workflow
def in_a_map(name: str) -> None:
    sf.map(lambda item: (pay(item), tell()) if item else pause(2), ["", "a", "b"], concurrency=2)

async def paying(name):
    await pay_async(name)
    await tell_async()

@sf.workflow
async def in_async_branches(name: str) -> None:
    await aio.gather(pause_async(3), paying("a"), aio.map(paying, ["b", "c"]))

async def in_its_scope(name):
    with aio.scope(name):
        if name == "first":
            return await pause_async(1)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await paying(name)

@sf.workflow
async def in_tasks(name: str) -> None:
    async with asyncio.TaskGroup() as group:
        for one in ("first", "second"):
            group.create_task(in_its_scope(one))

@sf.workflow
def sent_back(name: str) -> str:
    pause()
    return pay(name)
"""
PAYING_RUNS = (
    "dropped", "asking", "narrowed", "in_branches", "in_a_map", "in_async_branches", "in_tasks", "sent_back",
)  # fmt: skip
PAY = f"""
import asyncio, contextlib, os, app, surefoot as sf
from pathlib import Path

for name in {PAYING_RUNS}:
    if name != "sent_back":
        Path("interrupt").touch()
    with contextlib.suppress(sf.Stopped, BaseExceptionGroup, KeyboardInterrupt):
        begun = getattr(app, name).run(name, name)
        if asyncio.iscoroutine(begun):
            asyncio.run(begun)
    Path("interrupt").unlink(missing_ok=True)
sf.get_run("sent_back").rewind("pause#1")
"""


@pytest.fixture
def paid(app):
    """Runs that were cut off after they had paid."""
    begin(app, PAYING, PAY)
    return app


def without_paying(folder):
    """The same code, and the line that pays is gone."""
    source = PAYING.replace("    pay(name)\n    ", "    ").replace(", lambda: (pay(name), tell()))", ")")
    (folder / "app.py").write_text(source)


def test_code_that_has_not_changed_is_not_suspected(paid, shell):
    """What is on record in other branches comes in its own time: a suspicion that meets every run warns of nothing."""
    ended = shell("preflight", "--app", "app", "--json")

    expected = dict.fromkeys(PAYING_RUNS, "goes on") | {"asking": "waits", "sent_back": "in doubt"}
    assert expected == {name: one["verdict"] for name, one in found(ended).items()}
    assert 0 == ended.code
    assert 13 == (paid / "ledger").read_text().count("pay")


@pytest.mark.parametrize(
    ("run", "verdict", "why"),
    [
        ("dropped", "stranded", "asks for the effect mail#1, which is not on record, and has not asked for pay#1"),
        ("narrowed", "stranded", "the code came to its end without asking for gather#1.1/pay#1"),
        (
            "asking",
            "perhaps stranded",
            "pay#1 was executed before and has not been asked for when the run stands still",
        ),
    ],
)
def test_an_executed_effect_that_the_code_has_left_behind_is_told_before_anything_else_runs(
    paid, shell, run, verdict, why
):
    """The step that would run next hides nothing; where a person has to answer first, nobody knows what comes then."""
    without_paying(paid)

    one = found(shell("preflight", "--app", "app", "--json"))[run]

    assert verdict == one["verdict"]
    assert why in one["why"][0]["message"]
    assert "CodeChanged" == one["why"][0]["type"]


@pytest.fixture
def asking(app):
    """A run that waits for a person; the code may have lost what it paid for."""
    script = (
        "import app, contextlib, surefoot as sf\nwith contextlib.suppress(sf.Stopped): app.asking.run('asking', 'a')\n"
    )
    begin(app, PAYING, script)
    without_paying(app)


def test_what_is_only_perhaps_so_is_a_line_and_no_failure(asking, shell):
    """A gate that closes at every suspicion is soon left open: the fence keeps it harmless."""
    ended = shell("preflight", "--app", "app")

    assert 0 == ended.code
    assert "perhaps stranded: run asking, workflow asking version 1, waiting\n  CodeChanged: run asking:" in ended.out
    assert "comes later?" in ended.out
    assert "1 would perhaps be stranded by it" in ended.out


def test_strict_makes_it_a_failure(asking, shell):
    assert 3 == shell("preflight", "--app", "app", "--strict").code
    assert 3 == shell("preflight", "--app", "app", "--strict", "--json").json["exit_code"]


def test_the_plan_of_a_run_tells_it_too(paid, shell):
    """Whoever resumes by hand is shown the plan, and asked."""
    without_paying(paid)

    shown = shell("runs", "plan", "dropped", "--app", "app")

    assert "  next       step pause#1\n" in shown.out
    assert "  unasked    pay#1 was executed before, and the code has not asked for it up to there:\n" in shown.out
    assert ["pay#1"] == shell("runs", "plan", "dropped", "--app", "app", "--json").json["unasked"]
    assert [] == shell("runs", "plan", "in_tasks", "--app", "app", "--json").json["unasked"]


def test_people_read_what_is_stranded_and_only_the_number_of_the_others(store, shell):
    """A thousand runs that go on must not hide the one that does not."""
    ended = shell("preflight", "--app", "app")

    assert (
        "stranded: run changed, workflow changed version 1, waiting\n  CodeChanged: run changed, charge#1:" in ended.out
    )
    assert (
        "replayed with this code, the workflow fails:\n  AttributeError: 'str' object has no attribute 'no'"
        in ended.out
    )
    assert 'app.py", line' in ended.out
    assert "in doubt: run doubtful" in ended.out
    assert "run fitting" not in ended.out
    assert ended.out.endswith(
        "12 unfinished runs in sqlite:///.surefoot/runs.db: 2 would go on with app, 8 would be stranded by it, "
        "1 in doubt, whatever the code, 1 waiting for a person or an event, whatever the code.\n"
    )


def test_the_code_that_began_the_runs_strands_none(store, shell):
    """Doubt and waiting are not the code's doing: a deployment need not wait for them."""
    (store / "app.py").write_text(OLD)

    ended = shell("preflight", "--app", "app", "--json")

    assert 0 == ended.code
    assert 0 == ended.json["counts"]["stranded"]


def test_an_earlier_stop_is_asked_anew(store, shell):
    """It was stopped by code that has been mended since: this code would go on with it."""
    sending = "import surefoot as sf; sf.send_event('changed', 'go')"
    subprocess.run([sys.executable, "-c", sending], cwd=store, check=True)
    assert 3 == shell("run", "app:changed", "--id", "changed", "changed").code

    (store / "app.py").write_text(OLD)

    assert "goes on" == found(shell("preflight", "--app", "app", "--json"))["changed"]["verdict"]


def test_a_damaged_run_is_told_apart_and_hides_none_of_the_others(store, shell):
    """Damage is not the code's doing either, but nobody should deploy over it."""
    with contextlib.closing(sqlite3.connect(store / ".surefoot" / "runs.db")) as database, database:
        database.execute("UPDATE entries SET body = zeroblob(length(body)) WHERE run = 'patient' AND seq = 2")

    ended = shell("preflight", "--app", "app", "--json")

    assert 4 == ended.code
    assert ("damaged", "JournalCorrupt") == (
        found(ended)["patient"]["verdict"],
        found(ended)["patient"]["why"][0]["type"],
    )
    assert 8 == ended.json["counts"]["stranded"]


def test_workflows_may_be_spread_over_several_modules(store, shell):
    """One store serves all of an application."""
    (store / "more.py").write_text(
        "import surefoot as sf\n@sf.workflow(was='app:removed')\ndef removed(name):\n    sf.wait_event('go')\n"
    )

    runs = found(shell("preflight", "--app", "app", "--app", "more", "--json"))

    assert "waits" == runs["removed"]["verdict"]


def test_a_store_without_unfinished_runs_is_said_to_be_safe(app, shell):
    shell("run", "app:echo", "--id", "e")

    ended = shell("preflight", "--app", "app")

    assert (0, "sqlite:///.surefoot/runs.db has no unfinished runs: app can strand none.\n") == (ended.code, ended.out)


@pytest.mark.parametrize(
    ("words", "cure"),
    [
        (("--app", "app"), "no store at"),
        ((), "--app"),
        (("--app", "no_such_module"), "no module 'no_such_module'"),
    ],
)
def test_what_cannot_be_answered_is_refused(app, shell, words, cure):
    """No store and no code are no reason to say that all is well; and looking creates nothing."""
    ended = shell("preflight", *words)

    assert (2, "") == (ended.code, ended.out)
    assert cure in ended.err
    assert not (app / ".surefoot").exists()


def test_a_module_that_starts_runs_when_imported_is_refused(store, shell):
    """Looking at code must not run it."""
    before = bytes_of(store)
    (store / "app.py").write_text(OLD + "\nended.run('sneaky', 'x')\n")

    ended = shell("preflight", "--app", "app")

    assert 2 == ended.code
    assert "while it is only being imported" in ended.err
    assert bytes_of(store) == before


def test_what_a_run_recorded_cannot_act_on_the_terminal(app, shell, hostile):
    """Names of runs come from outside."""
    script = f"import app, contextlib, surefoot as sf\nwith contextlib.suppress(sf.Stopped): app.removed.run('x', {hostile!r})\n"
    begin(app, OLD, script)
    (app / "app.py").write_text(NEW.replace("def renamed(name: str)", f"def removed(name: str = {hostile!r}, *, b)"))

    ended = shell("preflight", "--app", "app")

    assert 3 == ended.code
    assert all(line.isprintable() for line in ended.out.splitlines())


def test_the_page_of_a_run_shows_the_version_it_keeps(app, shell):
    """Which code began it is the first question when a run is stranded."""
    (app / "app.py").write_text(NEW)
    shell("run", "app:fitting", "--id", "f", "f")

    assert 2 == shell("runs", "show", "f", "--json").json["version"]
    assert "workflow fitting (version 2)" in shell("runs", "show", "f").out


SDK = "from dataclasses import dataclass\n@dataclass\nclass Answer:\n    text: str\n"
USING_IT = """
import os, sys
sys.path.insert(0, "lib/site-packages")
sys.dont_write_bytecode = True
import surefoot as sf
from acme import Answer

@sf.step
def ask(question: str) -> Answer:
    return Answer(question)

@sf.effect
def send(text: str) -> None:
    pass

@sf.workflow
def wf(name: str) -> None:
    ask("who are you?")
    send(name)
    ask("what is new?")
    sf.wait_event("go")
"""


def test_what_would_be_kept_run_again_and_filled_in_is_listed_run_by_run(app, shell):
    """Nothing is stranded, and a person may still want to know before it is so."""
    acme = app / "lib" / "site-packages" / "acme.py"
    acme.parent.mkdir(parents=True)
    acme.write_text(SDK)
    begin(app, USING_IT, "import app, contextlib\nwith contextlib.suppress(app.sf.Stopped): app.wf.run('r', 'a')\n")
    acme.write_text(SDK + "    tokens: int = 0\n")
    (app / "app.py").write_text(USING_IT.replace("who are", "WHO ARE").replace("is new", "IS NEW"))

    told, ended = shell("preflight", "--app", "app").out, shell("preflight", "--app", "app", "--json")

    one = found(ended)["r"]
    assert (0, "waits") == (ended.code, one["verdict"])
    assert [{"address": "ask#1", "why": "effects were executed after it"}] == one["kept"]
    assert ["ask#2"] == one["again"]
    assert "tokens=0 was filled in" in one["filled_in"][0]
    assert "  kept: ask#1: effects were executed after it\n" in told
    assert "  would run again, with other arguments: ask#2\n" in told
    assert "  filled in: recorded values of acme.Answer are from another version" in told
    assert "warning" not in ended.err
