"""A real SIGKILL, real processes: nothing acknowledged is lost, nothing recorded runs again."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import subprocess
import sys

import pytest

import surefoot as sf
from surefoot import aio
from surefoot.core.entry import EffectDone
from surefoot.engine.drive import acts, acts_async

APP = """
    import os, signal, sys
    import surefoot as sf

    def ledger(line):
        with open("ledger", "a") as file:
            file.write(line + "\\n")

    def die(at):
        if os.environ.get("DIE") == at:
            os.kill(os.getpid(), signal.SIGKILL)

    @sf.step
    def look(i):
        ledger(f"look {i}")
        die(f"in look {i}")
        return i

    @sf.effect(on_crash=os.environ.get("POLICY", "ask"))
    def charge(i):
        die(f"before charge {i}")
        ledger(f"charge {i} {sf.key()}")
        die(f"after charge {i}")
        return f"ch_{i}"

    @sf.workflow
    def wf(n):
        for i in range(n):
            look(i)
            die(f"between {i}")
            charge(i)
        return n

    if __name__ == "__main__":
        try:
            print(wf.run("r", 3))
        except sf.Stopped as stop:
            print(type(stop).__name__, stop)
            sys.exit(stop.exit_code)
"""


def test_killed_in_a_step_only_that_step_runs_again(program, ledger):
    program.write(APP)
    assert program.run(DIE="in look 1").returncode == -signal.SIGKILL

    done = program.run()

    assert (done.returncode, done.stdout) == (0, "3\n")
    assert [line for line in ledger.lines if line.startswith("look")] == ["look 0", "look 1", "look 1", "look 2"]
    assert len({line for line in ledger.lines if line.startswith("charge")}) == 3


def test_killed_between_calls_nothing_runs_again(program, ledger):
    program.write(APP)
    program.run(DIE="between 1")

    assert program.run().stdout == "3\n"
    assert max(ledger.counts.values()) == 1


@pytest.mark.parametrize("moment", ["before charge 1", "after charge 1"])
def test_killed_inside_an_effect_the_run_stops_in_doubt_until_a_person_settles(program, ledger, moment):
    """Before or after the charge: from the journal alone nobody can tell, so nobody guesses."""
    program.write(APP)
    program.run(DIE=moment)

    for _ in range(2):
        stopped = program.run()
        assert stopped.returncode == 3
        assert stopped.stdout.startswith("InDoubt run r, charge#2: started ")
        assert "(pid " in stopped.stdout
    sf.get_run("r").settle("charge#2", happened="ch_1", by="ann")
    assert program.run().stdout == "3\n"
    assert len([line for line in ledger.lines if line.startswith("charge 1")]) == (moment.startswith("after"))


def test_killed_inside_a_keyed_effect_it_is_retried_with_the_same_key(program, ledger):
    program.write(APP)
    program.run(DIE="after charge 1", POLICY="retry")

    assert program.run(POLICY="retry").stdout == "3\n"
    lines = [line for line in ledger.lines if line.startswith("charge 1")]
    assert len(lines) == 2
    assert len(set(lines)) == 1


def test_a_killed_run_is_shown_with_its_last_call_and_taken_over_at_once(program):
    program.write(APP)
    program.run(DIE="in look 1")
    run = sf.get_run("r")

    assert run.status == "running"
    assert not run.is_driven()
    assert program.run().returncode == 0


def test_two_processes_starting_one_run_execute_it_once(program, ledger):
    """Five times here; fifty in `make proof`."""
    program.write(
        """
        import sys
        import surefoot as sf

        @sf.step
        def look(run, i):
            with open("ledger", "a") as file:
                file.write(f"{run} {i}\\n")
            return i

        @sf.workflow
        def wf(run):
            return sum(look(run, i) for i in range(5))

        sys.stdin.readline()
        print(wf.run(sys.argv[1], sys.argv[1]))
        """
    )
    for number in range(5):
        processes = [
            subprocess.Popen(
                [sys.executable, "app.py", f"r{number}"],
                cwd=program.folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            )
            for _ in range(2)
        ]  # fmt: skip
        for process in processes:
            process.stdin.write("go\n")
            process.stdin.flush()
        answers = [process.communicate(timeout=50) for process in processes]
        assert [out for out, _ in answers] == ["10\n", "10\n"], answers
    assert max(ledger.counts.values()) == 1
    assert len(ledger.lines) == 25


def test_a_claimant_that_lost_its_claim_is_fenced(tmp_path):
    """A writer that was taken over cannot write, and starts no further effect."""
    from surefoot.core.entry import RunAdopted
    from surefoot.engine.process import config, journal
    from surefoot.engine.process.journal import Journal

    ran = []

    @sf.effect
    def act(i: int) -> int:
        ran.append(i)
        if i == 1:
            runtime = config.runtime(create=False)
            state, head = journal.load(runtime.store, "r")
            thief = Journal(runtime.committer, runtime.clock, state, head)
            thief.commit(thief.claim(RunAdopted("somebody else", "host", 1, "claim")))
        return i

    @sf.workflow
    def wf() -> None:
        act(1)
        act(2)

    with pytest.raises(sf.Fenced, match="another process has taken over"):
        wf.run("r")
    assert ran == [1]


def test_a_visitor_does_not_cost_the_claimant_its_claim(kinds):
    """An answer that arrives while the run goes on is let in, and the run goes on."""

    @sf.step
    def work(i: int) -> int:
        from surefoot.engine.operate.handle import Run
        from surefoot.engine.process.config import runtime

        Run(runtime(create=False), "r").send_event("note", i, id=str(i))
        return i

    @sf.workflow
    def wf() -> list[object]:
        work(0)
        work(1)
        return [sf.wait_event("note"), sf.wait_event("note")]

    assert wf.run("r") == [0, 1]
    assert kinds("r").count("EventSent") == 2


def test_a_store_used_in_a_forked_child_is_refused(program):
    program.write(
        """
        import os
        import surefoot as sf

        @sf.step
        def look():
            return 1

        @sf.workflow
        def wf():
            look()
            pid = os.fork()
            if pid == 0:
                try:
                    look()
                except sf.StoreUnavailable as error:
                    print("child:", error, flush=True)
                os._exit(0)
            os.waitpid(pid, 0)
            return look()

        print(wf.run("r"))
        """
    )
    done = program.run()

    assert "child:" in done.stdout
    assert done.stdout.endswith("1\n"), done.stderr


def test_ctrl_c_leaves_a_resumable_run_that_nobody_waits_for(program):
    program.write(
        """
        import sys
        import surefoot as sf

        @sf.step
        def wait():
            if sys.argv[1:]:
                print("ready", flush=True)
                sys.stdin.read()
            return "went on"

        @sf.workflow
        def wf():
            return wait()

        print(wf.run("r"))
        """
    )
    process = subprocess.Popen(
        [sys.executable, "app.py", "block"],
        cwd=program.folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)

    assert sf.get_run("r").status == "queued"
    assert program.run().stdout == "went on\n"


def test_a_damaged_journal_is_an_error_and_never_a_fresh_start(ledger):
    """One stored value altered: nothing runs, nothing is returned, nothing is overwritten."""
    import apsw

    from surefoot.store.open import close_all

    @sf.step
    def price() -> int:
        ledger.write("price")
        return 100

    @sf.workflow(on_corruption="stop")
    def wf() -> int:
        return price()

    wf.run("r")
    close_all()
    connection = apsw.Connection(".surefoot/runs.db")
    connection.execute("update entries set body = cast(replace(body, '100', '900') as blob) where kind = 21")
    connection.close()

    with pytest.raises(sf.JournalCorrupt, match="entry 3"):
        wf.run("r")
    with pytest.raises(sf.JournalCorrupt):
        sf.get_run("r")
    assert ledger.lines == ["price"]


def test_an_effect_settled_while_the_run_is_being_claimed_is_not_run(program, ledger):
    """A person answers between our reading of the journal and our claim."""
    program.write(
        """
        import os, subprocess, sys
        import surefoot as sf

        phase = sys.argv[1]

        @sf.effect
        def pay():
            with open("ledger", "a") as file:
                file.write("pay\\n")
            os._exit(9)

        @sf.workflow
        def wf():
            if phase == "resume" and sf.get_run("r").state().in_doubt():
                subprocess.run([sys.executable, "app.py", "settle"], check=True)
            return pay()

        if phase == "settle":
            sf.get_run("r").settle("pay#1", happened="by person")
        else:
            print(wf.run("r"))
        """
    )
    assert program.run("start").returncode == 9

    assert program.run("resume").stdout == "by person\n"
    assert ledger.lines == ["pay"]


def test_a_swallowed_interrupt_inside_an_effect_does_not_let_the_run_go_on(ledger):
    """The effect is in doubt; a result that ignores that would be silently wrong."""

    @sf.effect
    def pay() -> None:
        ledger.write("pay")
        raise KeyboardInterrupt

    @sf.effect
    def other() -> None:
        ledger.write("other")

    @sf.workflow
    def wf() -> str:
        with contextlib.suppress(BaseException):
            pay()
        with contextlib.suppress(BaseException):
            other()
        return "done"

    with pytest.raises(KeyboardInterrupt):
        wf.run("r")
    assert ledger.lines == ["pay"]
    with pytest.raises(sf.InDoubt):
        wf.run("r")


class Soft(Exception):
    """What a signal handler raises when the time is nearly over, wherever the program is."""


@pytest.fixture
def strike(monkeypatch):
    """The alarm goes off in the engine, right before an outcome is recorded."""

    def arm(address):
        def struck(entry):
            return type(entry) is EffectDone and entry.address == address

        def append(session, *entries):
            if any(map(struck, entries)):
                raise Soft("soft limit")
            blocking(session, *entries)

        async def append_async(session, *entries):
            if any(map(struck, entries)):
                raise Soft("soft limit")
            await in_tasks(session, *entries)

        monkeypatch.setattr(acts, "append", append)
        monkeypatch.setattr(acts_async, "append", append_async)

    blocking, in_tasks = acts.append, acts_async.append
    yield arm
    monkeypatch.undo()


@pytest.mark.parametrize("colour", ["blocking", "async"])
def test_an_exception_of_a_signal_handler_is_not_taken_for_the_failure_of_an_effect(colour, strike, ledger):
    """It acted, and nothing is on record: to pay in another way instead would be to pay twice."""

    def acting(name):
        def act() -> None:
            ledger.write(name)

        async def act_async() -> None:
            ledger.write(name)

        return sf.effect(act if colour == "blocking" else act_async, name=name)

    pay, fallback = acting("pay"), acting("fallback")

    @sf.workflow(name="struck_blocking")
    def blocking() -> None:
        with sf.saga():
            try:
                pay()
            except Soft:
                fallback()

    @sf.workflow(name="struck_async")
    async def in_tasks() -> None:
        async with aio.saga():
            try:
                await pay()
            except Soft:
                await fallback()

    def run():
        return blocking.run("r") if colour == "blocking" else asyncio.run(in_tasks.run("r"))

    strike("pay#1")
    with pytest.raises(Soft):
        run()
    assert ledger.lines == ["pay"]
    assert sf.get_run("r").status == "queued"

    with pytest.raises(sf.InDoubt):
        run()
    assert ledger.lines == ["pay"]


@pytest.mark.parametrize("at", ["book#2", "book.undo#1"])
def test_a_saga_that_is_struck_by_a_signal_handler_is_not_undone_further(at, strike, ledger):
    """The run is intact, as after Ctrl-C: it goes on another time."""

    @sf.effect(on_crash="retry")
    def book(what) -> None:
        ledger.write(f"book {what}")

    @book.undo
    def _(what, result):
        ledger.write(f"cancel {what}")

    @sf.workflow
    def wf() -> None:
        with sf.saga():
            book("a")
            book("b")
            raise ValueError("no")

    strike(at)
    with pytest.raises(Soft):
        wf.run("r")

    assert "cancel a" not in ledger.lines
    assert sf.get_run("r").status == "queued"


def test_an_unexpected_error_while_committing_leaves_nobody_waiting(monkeypatch):
    """Memory ran out in the writer thread: the run ends with an error, the next one works."""
    import asyncio

    import surefoot.aio as asf
    from surefoot.store.sqlite.store import SqliteStore

    whole, calls = SqliteStore.append, []

    def append(self, batch):
        calls.append(1)
        if len(calls) == 2:
            raise MemoryError
        return whole(self, batch)

    monkeypatch.setattr(SqliteStore, "append", append)

    @asf.step
    async def look() -> int:
        return 1

    @asf.workflow
    async def wf() -> int:
        return await look()

    with pytest.raises(sf.StoreUnavailable, match="MemoryError"):
        asyncio.run(wf.run("r"))
    assert asyncio.run(wf.run("other")) == 1
    assert asyncio.run(wf.run("r")) == 1


RENAMED = """
    import os, signal, sys
    import surefoot as sf

    @sf.effect(name=os.environ["NAME"])
    def pay(cents):
        with open("ledger", "a") as file:
            file.write(f"paid {cents}\\n")
        if os.environ["NAME"] == "pay":
            os.kill(os.getpid(), signal.SIGKILL)

    @sf.workflow
    def wf():
        pay(100)
        sf.wait_event("go")

    try:
        wf.run("r")
    except sf.Stopped as stop:
        print(type(stop).__name__, stop)
"""


def test_effect_in_doubt_is_not_passed_over_by_one_with_another_name(program, ledger):
    """The same payment under a new name would be a second one, long before the code comes to its end."""
    program.write(RENAMED)
    assert program.run(NAME="pay").returncode == -signal.SIGKILL

    stopped = program.run(NAME="charge")

    assert stopped.stdout.startswith(
        "CodeChanged run r: the code now asks for the effect charge#1, which is not on record"
    )
    assert "has not asked for pay#1, which was executed with the same arguments; pay#1 is in doubt" in stopped.stdout
    assert ledger.lines == ["paid 100"]

    sf.get_run("r").settle("pay#1", not_happened=True)
    assert "waiting for event 'go'" in program.run(NAME="charge").stdout
    assert ledger.lines == ["paid 100", "paid 100"]


PATCHED = """
    import os, signal, sys
    import surefoot as sf

    @sf.effect
    def tell(how, i):
        with open("ledger", "a") as file:
            file.write(f"{how} {i}\\n")

    def is_new():
        return os.environ["CODE"] == "new" and sf.patched("sms")

    def one(i):
        tell("sms" if is_new() else "mail", i)

    @sf.workflow
    def loop():
        for i in range(6):
            if str(i) == os.environ.get("DIE"):
                os.kill(os.getpid(), signal.SIGKILL)
            one(i)

    @sf.workflow
    def branches():
        sf.map(one, range(2), key=str)
        if os.environ.get("DIE"):
            os.kill(os.getpid(), signal.SIGKILL)
        sf.map(one, range(6), key=lambda i: str(i), concurrency=6)

    {"loop": loop, "branches": branches}[sys.argv[1]].run(sys.argv[2])
"""


def test_a_patch_in_a_loop_keeps_the_old_way_of_a_run_in_flight_to_its_end(program, ledger):
    """Half of the customers by mail and half by text message is neither the old way nor the new one."""
    program.write(PATCHED)
    assert program.run("loop", "r", CODE="old", DIE="2").returncode == -signal.SIGKILL
    assert program.run("loop", "r", CODE="new", DIE="4").returncode == -signal.SIGKILL
    assert program.run("loop", "r", CODE="new").returncode == 0
    assert ledger.lines == [f"mail {i}" for i in range(6)]

    ledger.path.unlink()
    assert program.run("loop", "fresh", CODE="new", DIE="3").returncode == -signal.SIGKILL
    assert program.run("loop", "fresh", CODE="new").returncode == 0
    assert ledger.lines == [f"sms {i}" for i in range(6)]


def test_a_patch_in_branches_keeps_one_way_for_all_of_them(program, ledger):
    """A branch that has not begun yet belongs to a run that went the old way all the same."""
    program.write(PATCHED)
    assert program.run("branches", "r", CODE="old", DIE="now").returncode == -signal.SIGKILL
    done = program.run("branches", "r", CODE="new")

    assert (done.returncode, done.stderr) == (0, "")
    assert {line.split()[0] for line in ledger.lines} == {"mail"}
    assert len(ledger.lines) == 8
