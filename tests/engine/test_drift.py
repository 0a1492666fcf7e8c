"""Before a run goes on, the world is held against what the run left; what the run itself did is not drift."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import signal
import sqlite3
import subprocess
from pathlib import Path

import pytest

import surefoot as sf
from surefoot import aio, witness
from surefoot.core.entry import RunAdopted, RunReleased
from surefoot.engine.process import config, journal
from surefoot.engine.process.journal import Journal
from tests.engine.test_checks import SetClock
from tests.world.test_foreign_changes import CHANGES

STOP_HERE = KeyboardInterrupt


@pytest.fixture
def clock():
    clock = SetClock()
    config.runtime(create=True).clock = clock
    return clock


class Refactor:
    """Writes files A, B, C and D; may be cut off before or after each."""

    def __init__(self, *, touches: bool = True, check: bool = True, **options):
        self.cut = ""
        self.ran: list[str] = []
        if "watch" not in options:
            options["watch"] = [witness.files("*.txt")]

        @sf.effect(touches=[lambda path, text: witness.file(path)] if touches else ())  # noqa: ARG005 - as called
        def write(path: str, text: str) -> int:
            self.maybe("before", path)
            self.ran.append(path)
            Path(path).write_text(text)
            self.maybe("after", path)
            return len(text)

        if check:

            @write.check
            def _(path, text):
                there = Path(path).exists() and Path(path).read_text() == text
                return sf.happened(len(text)) if there else sf.not_happened()

        @sf.workflow(**options)
        def wf() -> int:
            done = 0
            for name in "ABCD":
                self.maybe("between", name)
                done += write(f"{name}.txt", name * 3)
            return done

        self.write, self.wf = write, wf

    def maybe(self, moment, path):
        if self.cut == f"{moment} {path[0]}":
            raise STOP_HERE

    def until(self, cut, run_id="r"):
        self.cut = cut
        with pytest.raises(STOP_HERE):
            self.wf.run(run_id)
        self.cut, self.ran = "", []

    def drifts(self, run_id="r"):
        """It stops, executes nothing, and a cron job that meets the same again appends nothing."""
        with pytest.raises(sf.Drifted) as stop:
            self.wf.run(run_id)
        before = len(sf.get_run(run_id).entries())
        with pytest.raises(sf.Drifted):
            self.wf.run(run_id)
        assert (len(sf.get_run(run_id).entries()), self.ran) == (before, [])
        assert sf.get_run(run_id).status == "stopped"
        return stop.value


# -- files A, B, C -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda: os.unlink("C.txt"), "file:C.txt: removed (expected"),
        (lambda: Path("C.txt").write_text("edited"), "file:C.txt: changed (expected"),
    ],
    ids=["removed", "edited"],
)
def test_state_says_c_was_written_and_it_is_not_so(change, words):
    """X-05: expected, actual, and by which call; nothing is executed."""
    task = Refactor()
    task.until("between D")
    change()

    stop = task.drifts()

    assert words in stop.summary
    assert "recorded by write#3" in stop.summary
    assert "Nothing was executed" in stop.summary
    assert {found.part for found in stop.drift} == {"file:C.txt"}
    assert [(found.part, found.by) for found in sf.get_run("r").drift()] == [("file:C.txt", "write#3")]
    assert any("accept r" in command for _, command in stop.cures)
    assert any("rewind r --at 'write#3'" in command for _, command in stop.cures)
    assert any("cancel r" in command for _, command in stop.cures)


def gone():
    task = Refactor()
    task.until("between D")
    os.unlink("C.txt")
    task.drifts()
    return task, sf.get_run("r")


def test_drift_that_is_accepted_is_what_the_run_goes_on_from():
    task, run = gone()

    assert run.accept_drift(by="ann", note="C is not needed")

    assert task.wf.run("r") == 12
    assert task.ran == ["D.txt"]
    assert not Path("C.txt").exists()
    accepted = [entry.data for entry in run.entries() if entry.kind == "DriftAccepted"]
    assert [(entry["by"], entry["note"]) for entry in accepted] == [("ann", "C is not needed")]


def test_what_appears_after_it_was_accepted_as_gone_is_held_against_that():
    """Whoever is asked again has to hear whose word it is that nothing was there."""
    task, run = gone()
    run.accept_drift(by="ann")
    Path("C.txt").write_text("back again")

    assert "C.txt: added (expected absent, accepted by ann;" in str(task.drifts())


def test_the_run_is_sent_back_and_writes_it_again():
    task, run = gone()

    run.rewind("write#3", by="ann")

    assert task.wf.run("r") == 12
    assert task.ran == ["C.txt", "D.txt"]
    assert Path("C.txt").read_text() == "CCC"


def test_the_run_is_given_up():
    task, run = gone()

    run.cancel(by="ann")

    assert run.status == "cancelled"
    with pytest.raises(sf.Cancelled):
        task.wf.run("r")
    assert task.ran == []


def test_drift_that_went_away_by_itself_needs_nobody():
    task, _ = gone()
    Path("C.txt").write_text("CCC")

    assert task.wf.run("r") == 12


def test_other_drift_than_before_is_told():
    task, run = gone()
    Path("C.txt").write_text("CCC")
    os.unlink("A.txt")
    with pytest.raises(sf.Drifted, match=r"A\.txt"):
        task.wf.run("r")
    assert {found.part for found in run.stop.drift} == {"file:A.txt"}


def test_a_file_added_by_somebody_else_is_drift_and_one_the_run_made_is_not():
    task = Refactor()
    task.until("between D")
    Path("X.txt").write_text("who?")

    assert {found.part for found in task.drifts().drift} == {"file:X.txt"}


def test_what_cannot_be_accepted_is_refused_with_a_reason():
    task = Refactor()
    task.until("between B")
    run = sf.get_run("r")
    with pytest.raises(sf.UsageError, match=r"has(| not) drifted"):
        run.accept_drift()
    with pytest.raises(sf.UsageError, match="no-such"):
        run.accept_drift("no-such")


# -- databases, git -----------------------------------------------------------------------------------------


def execute(*statements):
    with sqlite3.connect("app.db", isolation_level=None) as connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()


def database_run():
    execute("PRAGMA user_version=4", "CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT)")
    cut = [True]

    @sf.effect(touches=[witness.sql("sqlite:///app.db", "SELECT * FROM t")])
    def copy(name: str) -> None:
        execute(f"INSERT INTO t (name) VALUES ('{name}')")

    url = "sqlite:///app.db"

    @sf.workflow(watch=[witness.db_schema(url), witness.sql(url, "PRAGMA user_version", name="schema version")])
    def migrate() -> str:
        copy("ann")
        if cut[0]:
            raise STOP_HERE
        copy("bob")
        return "done"

    with pytest.raises(STOP_HERE):
        migrate.run("r")
    cut[0] = False
    return migrate


def names():
    with sqlite3.connect("app.db") as connection:
        found = [name for (name,) in connection.execute("SELECT name FROM t ORDER BY id")]
    connection.close()
    return found


def test_schema_v4_became_v5_in_the_gap():
    """X-06: the rest of the migration would be done to tables that are not those it was planned for."""
    migrate = database_run()
    execute("PRAGMA user_version=5", "ALTER TABLE t ADD mail TEXT")

    with pytest.raises(sf.Drifted) as stop:
        migrate.run("r")

    parts = " ".join(found.part for found in stop.value.drift)
    assert "schema:sqlite:///app.db:t" in parts
    assert "PRAGMA user_version" in parts
    assert names() == ["ann"]
    sf.get_run("r").accept_drift(by="ann", note="v5 only adds a column")
    assert migrate.run("r") == "done"
    assert names() == ["ann", "bob"]


def test_rows_changed_in_the_gap_are_drift_and_own_rows_are_not():
    migrate = database_run()
    assert sf.get_run("r").drift() == []
    execute("UPDATE t SET name = 'ANN'")

    with pytest.raises(sf.Drifted, match=r"recorded by copy#1"):
        migrate.run("r")
    execute("UPDATE t SET name = 'ann'")
    assert migrate.run("r") == "done"


def test_a_database_that_cannot_be_reached_is_a_stop_whatever_on_drift_says(monkeypatch):
    migrate = database_run()
    monkeypatch.setattr(migrate.definition, "on_drift", "accept")
    os.rename("app.db", "away.db")

    with pytest.raises(sf.Drifted, match="cannot be observed"):
        migrate.run("r")
    with pytest.raises(sf.UsageError, match="Name the witness, if the run shall no longer watch it"):
        sf.get_run("r").accept_drift()
    os.rename("away.db", "app.db")
    assert migrate.run("r") == "done"


class Prices:
    """A database that is looked at from inside a run, and goes away."""

    witness = "db_schema(sqlite:///prices.db)"

    def __init__(self):
        self.cut, self.watches = True, True
        sqlite3.connect("prices.db").close()
        prices = witness.db_schema("sqlite:///prices.db")

        @sf.step
        def first() -> int:
            return 1

        @sf.effect(touches=[prices])
        def pay() -> str:
            return "paid"

        @sf.workflow(name="buy")
        def wf() -> str:
            first()
            if self.watches:
                sf.watch(prices)
            if self.cut:
                raise STOP_HERE
            return pay()

        self.wf = wf
        with pytest.raises(STOP_HERE):
            wf.run("r")
        self.cut = False

    def go_away(self):
        os.rename("prices.db", "away.db")
        with pytest.raises(sf.Drifted, match="cannot be observed") as stop:
            self.wf.run("r")
        return stop.value


def test_what_can_no_longer_be_observed_can_be_given_up_on_record():
    """A service that is gone for good must leave another way than to cancel, and the one that is offered works."""
    task = Prices()
    stop, run = task.go_away(), sf.get_run("r")
    assert [do for _, do in stop.cures] == [
        "surefoot runs resume r --app MODULE", f"surefoot accept r '{task.witness}'", "surefoot runs cancel r",
    ]  # fmt: skip
    with pytest.raises(sf.UsageError, match="Name the witness"):
        run.accept_drift()

    assert run.accept_drift(task.witness, by="ann", note="shut down") == [task.witness]

    [entry] = [entry.data for entry in run.entries() if entry.kind == "DriftAccepted"]
    assert (entry["by"], entry["note"], list(entry["unwatched"])) == ("ann", "shut down", [task.witness])
    assert run.drift() == []
    assert task.wf.run("r") == "paid", "also the effect that touches it runs: nobody looks there any more"


def test_what_the_workflow_names_and_nobody_can_observe_is_given_up_too():
    gone = []

    def look():
        if gone:
            raise ConnectionError("refused")
        return 1

    @sf.workflow(name="shop", watch=[witness.observe("prices", look), witness.file("a.txt")])
    def wf() -> str:
        if not gone:
            raise STOP_HERE
        return "done"

    with pytest.raises(STOP_HERE):
        wf.run("r")
    gone.append(1)
    Path("a.txt").write_text("theirs")
    run = sf.get_run("r")
    assert run.accept_drift() == ["file(a.txt)"], "what can be observed is accepted, and no more"
    with pytest.raises(sf.Drifted, match="prices"):
        wf.run("r")
    run.accept_drift("prices")
    assert run.plan().stops == []

    assert wf.run("r") == "done"


@pytest.mark.parametrize("at", ["first#1", "watch#1"])
def test_a_run_sent_back_to_before_it_watched_does_not_watch(at):
    """What was seen later is set aside, also that it was looked at."""
    task = Prices()
    task.go_away()
    task.watches = False

    sf.get_run("r").rewind(at)

    assert sf.get_run("r").drift() == []
    with pytest.raises(sf.Drifted, match="what it touches cannot be observed"):
        task.wf.run("r")
    os.rename("away.db", "prices.db")
    assert task.wf.run("r") == "paid"


def test_a_run_sent_back_to_after_it_began_to_watch_still_watches():
    task = Prices()
    assert task.wf.run("r") == "paid"
    sf.get_run("r").rewind("pay#1")

    assert "not as the run left it" in task.go_away().summary


@pytest.mark.processes
def test_git_head_moved():
    git = shutil.which("git")
    assert git, "this test needs git"

    def run_git(*args):
        subprocess.run([git, "-c", "user.name=a", "-c", "user.email=a@x", *args], check=True, capture_output=True)

    run_git("init", "-q", ".")
    run_git("commit", "-q", "--allow-empty", "-m", "one")
    task = Refactor(watch=[witness.git_head(".")])
    task.until("between B")
    run_git("commit", "-q", "--allow-empty", "-m", "two")

    assert "HEAD: changed" in task.drifts().summary
    run_git("reset", "-q", "--soft", "HEAD~1")
    assert task.wf.run("r") == 12


# -- in doubt ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("moment", ["before", "after"])
def test_an_effect_cut_off_around_its_write_is_settled_by_its_check_and_never_called_drift(moment):
    """The crash fell between the write and its record: what the run itself did is not drift."""
    task = Refactor()
    task.until(f"{moment} C")

    assert sf.get_run("r").drift() == []
    assert task.wf.run("r") == 12
    assert task.ran == (["C.txt", "D.txt"] if moment == "before" else ["D.txt"])


def test_killed_between_the_write_and_its_record_it_is_in_doubt_and_not_drift(program):
    """With a real SIGKILL, a glob as what is touched, and a file that nobody had seen before."""
    program.write(
        """
        import os, signal, sys
        from pathlib import Path
        import surefoot as sf
        from surefoot import witness

        @sf.effect(touches=[witness.files("out/*")])
        def write(name):
            Path("out", name).write_text(name)
            if name == "b" and sys.argv[1:]:
                os.kill(os.getpid(), signal.SIGKILL)
            return name

        @write.check
        def _(name):
            return sf.happened(name) if Path("out", name).exists() else sf.not_happened()

        @sf.workflow(watch=[witness.files("**/*")])
        def wf():
            return [write(name) for name in "abc"]

        os.makedirs("out", exist_ok=True)
        try:
            print(wf.run("r"))
        except sf.Stopped as stop:
            print(type(stop).__name__, stop)
        """
    )
    assert program.run("die").returncode == -signal.SIGKILL

    ended = program.run()

    assert ended.stdout == "['a', 'b', 'c']\n", ended
    assert [call.learned_by for call in sf.get_run("r").steps()] == ["", "check", ""]


def test_settled_as_happened_the_parts_are_taken_as_they_are_found():
    """A person says that it happened; how it left the file was never recorded."""
    task = Refactor(check=False)
    task.until("after C")
    with pytest.raises(sf.InDoubt):
        task.wf.run("r")
    sf.get_run("r").settle("write#3", happened=3)

    task.until("before D")
    Path("C.txt").write_text("edited later")
    assert {found.part for found in task.drifts().drift} == {"file:C.txt"}


@pytest.mark.parametrize("who", ["check", "person"])
def test_settled_as_not_happened_the_parts_must_be_as_they_were_before(who):
    """Somebody else wrote the file in the gap: our write would bury theirs."""
    task = Refactor(check=who == "check")
    task.until("before C")
    if who == "person":
        with pytest.raises(sf.InDoubt):
            task.wf.run("r")
    Path("C.txt").write_text("theirs")
    assert sf.get_run("r").drift() == []
    if who == "person":
        sf.get_run("r").settle("write#3", not_happened=True)

    stop = task.drifts()

    assert "recorded by write#3, before it ran" in stop.summary
    assert Path("C.txt").read_text() == "theirs"
    sf.get_run("r").accept_drift(by="ann")
    assert task.wf.run("r") == 12
    assert Path("C.txt").read_text() == "CCC"


@pytest.mark.parametrize("policy", ["fail", "retry", "ask"])
def test_a_failed_write_is_the_runs_own_doing_too(policy):
    """It wrote half of the file and raised: that is no drift at the next resume."""
    cut = [True]

    @sf.effect(on_crash=policy, touches=[witness.file("a.txt")], not_done=ValueError)
    def write() -> None:
        Path("a.txt").write_text("half")
        if policy == "fail":
            raise STOP_HERE
        raise ValueError("disk full")

    @sf.workflow(watch=[witness.files("*.txt")])
    def wf() -> str:
        try:
            write()
        except Exception as error:
            if cut[0]:
                raise STOP_HERE from None
            return type(error).__name__
        return "written"

    for _ in range(2 if policy == "fail" else 1):
        with pytest.raises(STOP_HERE):
            wf.run("r")
    cut[0] = False
    assert wf.run("r") == ("StepFailed" if policy == "fail" else "ValueError")


# -- random crashes, foreign changes ----------------------------------------------------------------------------

TWENTY = """
import os, random, signal, sys
from pathlib import Path
import surefoot as sf
sf.configure(in_flight="0s")
from surefoot import witness

luck = random.Random(int(sys.argv[1]))
left = [luck.randint(0, 60)]

def maybe():
    left[0] -= 1
    if left[0] == 0:
        os.kill(os.getpid(), signal.SIGKILL)

@sf.step
def propose(path):
    maybe()
    return Path(path).read_text().upper()

@sf.effect(touches=[lambda path, text: witness.file(path)])
def write(path, text):
    maybe()
    Path(path).write_text(text[:3])
    maybe()
    Path(path).write_text(text)
    maybe()
    return len(text)

@write.check
def _(path, text):
    return sf.happened(len(text)) if Path(path).read_text() == text else sf.partial("torn")

@write.undo(on_crash="retry")
def _(path, text, result):
    maybe()

@sf.workflow(watch=[witness.files("src/*")])
def wf():
    for number in range(20):
        path = f"src/{number}"
        write(path, propose(path))
        maybe()
    return "done"

try:
    print(wf.run("r"))
except sf.Stopped as stop:
    print(type(stop).__name__, stop)
"""


def twenty_files(folder, program, *, cycles, seed):
    """Kill at random points until it is through, again and again. How often it was killed."""
    program.write(TWENTY)
    luck, kills = random.Random(seed), 0
    while kills < cycles:
        shutil.rmtree(folder / ".surefoot", ignore_errors=True)
        shutil.rmtree(folder / "src", ignore_errors=True)
        (folder / "src").mkdir()
        for number in range(20):
            (folder / "src" / str(number)).write_text(f"file {number}")
        while (ended := program.run(str(luck.randint(0, 10**9)))).returncode == -signal.SIGKILL:
            kills += 1
        assert ended.stdout == "done\n", (ended.stdout, ended.stderr)
        for number in range(20):
            assert (folder / "src" / str(number)).read_text() == f"FILE {number}"
    return kills


def test_own_writes_are_no_drift_however_often_the_run_is_killed(tmp_path, program):
    """A few cycles here, 200 in `make proof`."""
    assert twenty_files(tmp_path, program, cycles=8, seed=1) >= 8


FILE_CHANGES = {name: change for name, (change, parts) in CHANGES.items() if all("file:src/" in each for each in parts)}


@pytest.mark.parametrize("name", ["content", "same size, same time-stamp", "removed", "added", "made executable"])
def test_a_foreign_change_is_found_before_anything_runs(name, monkeypatch):
    """Each of the 60 and more is shown in `tests/world`; here, that a resume goes by it."""
    for path, text in {"src/a.txt": "alpha", "src/b.txt": "beta"}.items():
        Path(path).parent.mkdir(exist_ok=True)
        Path(path).write_text(text)
    task = Refactor(watch=[witness.files("src/**")])
    task.until("between C")
    FILE_CHANGES[name](None, monkeypatch)

    task.drifts()


# -- on_drift ------------------------------------------------------------------------------------------------------


def edited(**options):
    task = Refactor(**options)
    task.until("between D")
    Path("A.txt").write_text("edited")
    return task


@pytest.mark.parametrize("watch", [witness.file("a.txt"), 7])
def test_what_is_no_list_of_witnesses_is_refused_with_the_cure(watch):
    """The first mistake that anybody makes here."""
    with pytest.raises(sf.UsageError, match=r"a list of witnesses: watch=\[witness"):
        sf.workflow(watch=watch)(lambda: None)


def test_on_drift_warn_says_so_and_goes_on(caplog):
    task = edited(on_drift="warn")

    assert task.wf.run("r") == 12
    assert "the world has drifted" in caplog.text
    assert "file:A.txt: changed" in caplog.text


def test_on_drift_accept_goes_on_and_keeps_it_on_record():
    task = edited(on_drift="accept")

    assert task.wf.run("r") == 12
    assert any("on_drift" in entry.data.get("why", "") for entry in sf.get_run("r").entries())


@pytest.mark.parametrize(("answer", "stops"), [("stop", True), ("warn", False), ("accept", False)])
def test_on_drift_function_is_given_the_differences_and_decides(answer, stops):
    seen = []

    def decide(drift):
        seen.append([(found.part, found.what, found.by) for found in drift])
        return answer

    task = edited(on_drift=decide)
    if stops:
        task.drifts()
    else:
        assert task.wf.run("r") == 12
    assert seen[0] == [("file:A.txt", "changed", "write#1")]


@pytest.mark.parametrize("answer", ["sure", None, RuntimeError("oops")])
def test_on_drift_function_that_answers_nonsense_leaves_the_run_as_it_is(answer):
    def decide(_):
        if isinstance(answer, Exception):
            raise answer
        return answer

    task = edited(on_drift=decide)
    with pytest.raises(sf.UsageError, match="on_drift="):
        task.wf.run("r")
    assert task.ran == []
    assert sf.get_run("r").status == "queued"


def test_on_drift_nonsense_is_refused_when_decorated():
    async def decide(_): ...

    for wrong in ("ignore", 5, decide):
        with pytest.raises(sf.UsageError, match="on_drift="):
            sf.workflow(on_drift=wrong)(lambda: None)


# -- witnesses come and go --------------------------------------------------------------------------------------


def test_a_witness_added_in_the_code_begins_now_and_one_removed_is_still_held():
    task = Refactor(watch=[])
    task.until("between B")
    Path("conf").write_text("1")
    task.wf.definition.watch = (witness.file("conf"),)
    task.until("between C")
    task.wf.definition.watch = ()
    Path("conf").write_text("2")

    assert {found.part for found in task.drifts().drift} == {"file:conf"}


def test_a_function_that_watched_and_is_gone_is_a_stop_that_names_the_cure():
    """Only the code that watched it can look."""
    seen = ["v1"]
    prompt = witness.observe("prompt", lambda: seen[0])
    task = Refactor(watch=[prompt])
    task.until("between B")
    task.wf.definition.watch = ()
    assert "name it in watch= of the workflow" in task.drifts().summary
    task.wf.definition.watch = (prompt,)
    seen[0] = "v2"
    assert "changed" in task.drifts().summary
    seen[0] = "v1"
    assert task.wf.run("r") == 12


# -- sf.watch and sf.verify --------------------------------------------------------------------------------------


def test_what_is_watched_inside_is_recorded_once_and_held_from_there_on():
    cut = [True]
    Path("conf").write_text("blue")

    @sf.workflow
    def wf() -> str:
        seen = sf.watch(witness.env("STAGE")), sf.watch(witness.file("conf"))
        if cut[0]:
            raise STOP_HERE
        return str(seen[0])

    os.environ["STAGE"] = "test"
    try:
        with pytest.raises(STOP_HERE):
            wf.run("r")
        cut[0] = False
        assert wf.run("r") == "test"
    finally:
        del os.environ["STAGE"]


def test_watched_inside_and_changed_in_the_gap_is_drift():
    Path("conf").write_text("blue")
    cut = [True]

    @sf.step
    def look() -> int:
        return 1

    @sf.workflow
    def wf() -> None:
        sf.watch(witness.file("conf"))
        look()
        if cut[0]:
            raise STOP_HERE

    with pytest.raises(STOP_HERE):
        wf.run("r")
    cut[0] = False
    Path("conf").write_text("red")
    with pytest.raises(sf.Drifted, match=r"recorded by watch#1"):
        wf.run("r")
    sf.get_run("r").accept_drift()
    assert wf.run("r") is None


def test_what_cannot_be_observed_inside_is_a_stop():
    @sf.workflow
    def wf() -> None:
        sf.watch(witness.sql("sqlite:///no.db", "SELECT 1"))

    with pytest.raises(sf.Drifted, match="cannot be observed"):
        wf.run("r")
    sqlite3.connect("no.db").close()


def test_verify_finds_what_others_did_and_not_what_the_run_did():
    """In the middle of a run: own writes of this very process are known too."""
    foreign = [""]

    @sf.effect(touches=[witness.file])
    def write(path: str) -> None:
        Path(path).write_text("ours")

    @sf.effect(touches=[witness.files("out/*")])
    def make() -> None:
        Path("out").mkdir()
        Path("out/new").touch()

    @sf.workflow(watch=[witness.files("*.txt"), witness.files("out/*")])
    def wf() -> str:
        write("a.txt")
        sf.verify()
        write("a.txt")
        make()
        sf.verify()
        if foreign[0]:
            Path(foreign[0]).write_text("theirs")
            foreign[0] = ""
        sf.verify()
        return "fine"

    assert wf.run("r") == "fine"
    shutil.rmtree("out")
    foreign[0] = "b.txt"
    with pytest.raises(sf.Drifted, match=r"b\.txt: added") as met:
        wf.run("r2")
    assert "Nothing was executed" not in str(met.value)
    assert "what it did before is done" in str(met.value)
    os.unlink("b.txt")
    assert wf.run("r2") == "fine"


def test_drift_that_is_met_again_by_a_resume_leaves_no_second_trace(monkeypatch):
    """The resume may say that nothing was executed; that is no news to alert anybody of."""
    heard = []
    monkeypatch.setattr(config.settings, "alerts", (heard.append,))

    @sf.effect(touches=[witness.file("a.txt")])
    def write() -> None:
        Path("a.txt").write_text("ours")

    @sf.workflow(watch=[witness.files("*.txt")])
    def wf() -> None:
        write()
        Path("b.txt").write_text("theirs")
        sf.verify()

    with pytest.raises(sf.Drifted, match="what it did before is done"):
        wf.run("r")
    before = [entry.kind for entry in sf.get_run("r").entries()]
    with pytest.raises(sf.Drifted, match="Nothing was executed"):
        wf.run("r")

    assert [entry.kind for entry in sf.get_run("r").entries()] == before
    assert len(heard) == 1


def test_verify_in_one_branch_is_not_confused_by_the_writes_of_another():
    """What a look saw before a write cannot be held against what was recorded after it."""

    @sf.effect(touches=[lambda n, i: witness.file(f"{n}.txt")])  # noqa: ARG005 - as called
    def write(n: int, i: int) -> None:
        Path(f"{n}.txt").write_text(f"{i}" * 20_000)

    def branch(n):
        for i in range(15):
            write(n, i)
            sf.verify()

    @sf.workflow(watch=[witness.files("*.txt")])
    def wf() -> str:
        sf.gather(*[lambda n=n: branch(n) for n in range(4)])
        return "done"

    assert wf.run("r") == "done"


# -- long waits --------------------------------------------------------------------------------------------------


def waits(kind):
    def sleeps():
        sf.sleep("2h")

    def event():
        sf.wait_event("go")

    def expires():
        with pytest.raises(TimeoutError):
            sf.wait_event("never", timeout="2h")

    def approval():
        sf.approve("go?", timeout="2h")

    def supervised():
        with pytest.raises(sf.Fatal):
            guarded()

    return {"sleep": sleeps, "event": event, "expires": expires, "approve": approval, "supervised": supervised}[kind]


@sf.effect(approve=True)
def guarded() -> None: ...


def after(seconds, act):
    """A clock whose naps take no time; once so much of it has passed, somebody does something."""
    clock = SetClock()
    real, done = clock.forward, []

    def forward(by):
        real(by)
        if clock.boot >= seconds and not done:
            done.append(True)
            act()

    clock.forward = forward
    clock.nap = lambda left: clock.forward(min(left, 10.0)) or 0.0
    config.runtime(create=True).clock = clock


ANSWERS = {
    "event": lambda: sf.send_event("r", "go"),
    "supervised": lambda: sf.get_run("r").answer("guarded#1.approval", value=False),
}


def waiting(kind, *, seconds):
    """A run that waits; meanwhile, after so many seconds, somebody writes a file."""

    def somebody():
        Path("a.txt").write_text("theirs")
        with sf.outside():
            ANSWERS.get(kind, lambda: None)()

    after(seconds, somebody)
    ran = []

    @sf.step
    def go_on() -> None:
        ran.append(1)

    @sf.workflow(watch=[witness.files("*.txt")])
    def wf() -> None:
        waits(kind)()
        go_on()

    return wf.using(wait="3h"), ran


@pytest.mark.parametrize("kind", ["sleep", "event", "expires", "approve", "supervised"])
def test_after_a_long_wait_the_world_is_looked_at_before_the_run_goes_on(kind):
    """Hours have passed in this process, and somebody else was busy."""
    wf, ran = waiting(kind, seconds=70)

    with pytest.raises(sf.Drifted, match=r"a\.txt: added"):
        wf.run("r")
    assert ran == []
    os.unlink("a.txt")
    wf.run("r")
    assert ran == [1]


@pytest.mark.parametrize("kind", ["event", "supervised"])
def test_after_a_wait_of_less_than_a_minute_nobody_looks(kind):
    wf, ran = waiting(kind, seconds=20)

    wf.run("r")
    assert ran == [1]


def test_after_a_long_wait_of_an_async_run_too():
    after(70, lambda: Path("a.txt").write_text("theirs"))

    @aio.workflow(watch=[witness.files("*.txt")])
    async def wf() -> str:
        await aio.sleep("2h")
        return "done"

    with pytest.raises(sf.Drifted):
        asyncio.run(wf.run("r"))
    os.unlink("a.txt")
    assert asyncio.run(wf.run("r")) == "done"


# -- folders and clocks -------------------------------------------------------------------------------------------


def test_a_changed_working_folder_is_named():
    """Relative paths mean something else there."""
    store = f"sqlite:////{Path.cwd()}/runs.db"
    task = Refactor()
    task.cut = "between C"
    with pytest.raises(STOP_HERE):
        task.wf.using(store=store).run("r")
    task.cut, here = "", os.getcwd()
    Path("elsewhere").mkdir()
    os.chdir("elsewhere")

    for _ in range(2):
        with pytest.raises(sf.Drifted) as stop:
            task.wf.using(store=store).run("r")
        assert f"recorded in {here}, looked for in {os.getcwd()}" in stop.value.summary
    os.chdir(here)
    assert task.wf.using(store=store).run("r") == 12


@pytest.mark.parametrize("days", [-10, 10])
def test_a_wall_clock_ten_days_wrong_changes_no_drift_verdict(clock, days):
    """R05: content is the evidence, never a time."""
    task = Refactor()
    task.until("after B")
    clock.wall += days * 86400
    for path in Path().glob("*.txt"):
        os.utime(path, (0, 0))
    assert sf.get_run("r").drift() == []
    task.until("between D")
    clock.wall -= 2 * days * 86400
    Path("A.txt").write_text("BBB")
    task.drifts()
    Path("A.txt").write_text("AAA")
    assert task.wf.run("r") == 12
    assert task.ran == ["D.txt"]


# -- async ------------------------------------------------------------------------------------------------------


def test_async_runs_look_at_the_world_the_same_way():
    cut = [True]

    @aio.effect(touches=[witness.file])
    async def write(path: str) -> None:
        Path(path).write_text("ours")  # noqa: ASYNC240 - nobody else waits
        if cut[0] and path == "b.txt":
            raise STOP_HERE

    @write.check
    async def _(path):
        return sf.happened() if os.path.exists(path) else sf.not_happened()  # noqa: ASYNC240 - nobody else waits

    @aio.workflow(watch=[witness.files("*.txt")])
    async def wf() -> object:
        await aio.gather(write("a.txt"), write("c.txt"))
        await aio.verify()
        seen = await aio.watch(witness.env("HOME"))
        await write("b.txt")
        await aio.verify()
        return seen

    with pytest.raises(STOP_HERE):
        asyncio.run(wf.run("r"))
    cut[0] = False
    Path("a.txt").write_text("theirs")
    for _ in range(2):
        with pytest.raises(sf.Drifted, match=r"a\.txt: changed .*recorded by gather#1\.0/write#1"):
            asyncio.run(wf.run("r"))
    Path("a.txt").write_text("ours")
    assert asyncio.run(wf.run("r")) == os.environ.get("HOME")


# -- bad input --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("touches", [lambda path: path, lambda: "x", lambda path: 1 / 0])  # noqa: ARG005 - as called
def test_touches_that_name_no_witness_are_refused_before_anything_runs(touches):
    ran = []

    @sf.effect(touches=[touches])
    def write(path: str) -> None:
        ran.append(path)

    @sf.workflow
    def wf() -> None:
        write("a")

    with pytest.raises(sf.UsageError, match=r"run r, write#1: touches= names no witness"):
        wf.run("r")
    assert (ran, sf.get_run("r").status) == ([], "queued")


def test_what_an_effect_touches_cannot_be_observed_so_it_does_not_run():
    ran = []

    @sf.effect(touches=[witness.sql("sqlite:///none.db", "SELECT 1")])
    def write() -> None:
        ran.append(1)

    @sf.workflow
    def wf() -> None:
        write()

    with pytest.raises(sf.Drifted, match="cannot be observed, so it was not run"):
        wf.run("r")
    assert ran == []
    sqlite3.connect("none.db").execute("CREATE TABLE t (x)").connection.close()
    assert wf.run("r") is None
    assert ran == [1]


# -- checkpoints --------------------------------------------------------------------------------------------------


@pytest.fixture(params=["journal", "files"])
def place(request, tmp_path):
    return None if request.param == "journal" else f"file:///{tmp_path}/points"


def saved(place, **options):
    Path("in.txt").write_text("1")
    sf.Checkpoint("c", store=place).save({"done": 1}, watch=[witness.files("*.txt"), witness.env("NONE")])
    return sf.Checkpoint("c", store=place, **options)


def test_a_checkpoint_is_loaded_only_into_the_world_it_was_saved_in(place):
    """By another process, which has only what is stored."""
    ckpt = saved(place)
    assert ckpt.load() == {"done": 1}
    Path("in.txt").write_text("2")

    with pytest.raises(sf.Drifted, match=r"in\.txt: changed .*recorded by generation 1") as stop:
        ckpt.load()
    assert {found.part for found in stop.value.drift} == {"file:in.txt"}
    with pytest.raises(sf.Fenced):
        ckpt.save({"done": 2})
    Path("in.txt").write_text("1")
    assert ckpt.load() == {"done": 1}


def test_drift_of_a_checkpoint_is_accepted_on_record(place):
    ckpt = saved(place)
    Path("in.txt").write_text("2")
    with pytest.raises(sf.UsageError, match="has not drifted"):
        ckpt.accept_drift("env(NONE)")

    assert ckpt.accept_drift(by="ann", note="input grew") == ["files(*.txt)"]

    with pytest.raises(sf.Fenced):
        ckpt.save({"done": 9})
    assert ckpt.load() == {"done": 1}
    assert [(one.number, one.accepted_by, one.note) for one in ckpt.generations()] == [
        (1, "", ""),
        (2, "ann", "input grew"),
    ]
    assert ckpt.save({"done": 2}) == 3
    with pytest.raises(sf.UsageError, match="has not drifted"):
        ckpt.accept_drift()


@pytest.mark.parametrize(("on_drift", "words"), [("warn", "not as it was"), ("accept", ""), (lambda _: "accept", "")])
def test_on_drift_of_a_checkpoint(place, on_drift, words, caplog):
    ckpt = saved(place, on_drift=on_drift)
    Path("in.txt").write_text("2")

    assert ckpt.load() == {"done": 1}
    assert words in caplog.text


def test_a_checkpoints_witness_that_only_code_can_look_at_has_to_be_given(place):
    seen = ["v1"]
    prompt = witness.observe("prompt", lambda: seen[0])
    first = sf.Checkpoint("c", store=place)
    first.save({"n": 1}, watch=[prompt])
    assert first.load() == {"n": 1}
    other = sf.Checkpoint("c", store=place)
    with pytest.raises(sf.Drifted, match="cannot be observed"):
        other.load()
    with pytest.raises(sf.UsageError, match="cannot be accepted"):
        other.accept_drift()
    assert other.load(watch=[prompt]) == {"n": 1}
    seen[0] = "v2"
    with pytest.raises(sf.Drifted):
        other.load()


def test_async_checkpoints_look_too(place):
    Path("in.txt").write_text("1")

    async def main():
        ckpt = aio.Checkpoint("c", store=place)
        await ckpt.save({"n": 1}, watch=[witness.file("in.txt")])
        Path("in.txt").write_text("2")  # noqa: ASYNC240 - nobody else waits
        with pytest.raises(sf.Drifted):
            await ckpt.load()
        assert await ckpt.accept_drift(by="ann") == ["file(in.txt)"]
        return await ckpt.load()

    assert asyncio.run(main()) == {"n": 1}


def test_nothing_saved_has_not_drifted(place):
    with pytest.raises(sf.UsageError, match="nothing was ever saved"):
        sf.Checkpoint("c", store=place).accept_drift()


def test_a_run_that_another_process_took_up_while_we_looked_is_waited_for():
    """It claimed the run between our reading and our writing what we saw: that is no error."""
    runtime = config.runtime(create=True)

    stolen = []

    def steal():
        if stolen:
            return "same"
        stolen.append(True)
        state, head = journal.load(runtime.store, "r")
        thief = Journal(runtime.committer, runtime.clock, state, head)
        thief.commit(thief.claim(RunAdopted("somebody else", "host", 1, "claim")))
        thief.append(RunReleased("done here"))
        return "same"

    task = Refactor()
    task.until("between B")
    task.wf.definition.watch = (witness.observe("new", steal),)
    assert task.wf.run("r") == 12
