"""An effect in the user's own database happens exactly once, whenever the process dies (R08)."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
import sys
import threading

import pytest

import surefoot as sf
from surefoot.engine.effects.databases.sqlite import SqliteWork

URL = "sqlite:///app.db"

APP = """
    import os, signal, sys
    import surefoot as sf
    from surefoot.engine.effects.databases.sqlite import SqliteDatabase, SqliteWork

    def die(at):
        if os.environ.get("DIE") == at:
            os.kill(os.getpid(), signal.SIGKILL)

    def around(cls, name):
        real = getattr(cls, name)
        def watched(*args):
            die(f"before {name}")
            result = real(*args)
            die(f"after {name}")
            return result
        setattr(cls, name, watched)

    for cls, name in ((SqliteDatabase, "begin"), (SqliteWork, "mark"), (SqliteWork, "finish"), (SqliteWork, "commit"),
                      (SqliteWork, "close"), (SqliteDatabase, "find")):
        around(cls, name)

    @sf.transaction("sqlite:///app.db")
    def put(db, x, y=5, *, z="z"):
        db.execute("CREATE TABLE IF NOT EXISTS t (x)")
        db.execute("INSERT INTO t VALUES (?)", [x])
        die("inside")
        return {"put": x, "rows": db.execute("SELECT count(*) FROM t").fetchone()[0]}

    @sf.workflow
    def wf():
        return put(7)

    if __name__ == "__main__":
        print(wf.run("r"))
"""


def rows(query="SELECT x FROM t ORDER BY x"):
    db = sqlite3.connect("app.db")
    try:
        return [row[0] for row in db.execute(query)]
    finally:
        db.close()


def markers():
    return rows("SELECT value FROM surefoot_markers")


@pytest.fixture
def table():
    db = sqlite3.connect("app.db")
    db.execute("CREATE TABLE t (x INTEGER UNIQUE)")
    db.commit()
    db.close()


# -- killed -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "moment",
    [
        "before begin", "after begin", "before mark", "after mark", "inside", "before finish", "after finish",
        "before commit", "after commit", "before close", "after close",
    ],
)  # fmt: skip
def test_killed_at_any_moment_the_row_is_there_exactly_once(program, moment):
    """C-03 to C-06: the marker tells, so nobody has to guess and nobody is asked."""
    program.write(APP)
    assert program.run(DIE=moment).returncode == -signal.SIGKILL

    done = program.run()

    assert done.stdout == "{'put': 7, 'rows': 1}\n", done.stderr
    assert rows() == [7]
    assert len(markers()) == 1


def test_killed_after_the_commit_the_value_comes_from_the_marker(program, kinds):
    program.write(APP)
    program.run(DIE="after commit")

    program.run()

    settled = next(entry for entry in sf.get_run("r").entries() if entry.kind == "EffectSettled")
    assert "check" in str(settled)
    assert "EffectDone" not in kinds("r")


@pytest.mark.parametrize("again", ["before find", "after find"])
def test_killed_again_while_it_is_being_looked_for(program, again):
    """C-09: looking changes nothing, so it may be cut off as often as it likes."""
    program.write(APP)
    program.run(DIE="after commit")
    assert program.run(DIE=again).returncode == -signal.SIGKILL

    assert program.run().stdout == "{'put': 7, 'rows': 1}\n"
    assert rows() == [7]


# -- in one process ---------------------------------------------------------------------------------


@pytest.mark.usefixtures("table")
def test_the_marker_commits_with_the_rows_and_the_connection_is_not_among_the_arguments():
    @sf.transaction(URL)
    def put(db: sqlite3.Connection, x: int) -> int:
        db.execute("INSERT INTO t VALUES (?)", [x])
        return x * 2

    @sf.workflow
    def wf():
        return put(1) + put(x=2)

    assert wf.run("r") == 6
    assert wf.run("r") == 6
    assert (rows(), markers()) == ([1, 2], ["2", "4"])
    assert all("db" not in call.args for call in sf.get_run("r").steps())  # else the id of a worker may hold it by luck


@pytest.mark.usefixtures("table")
def test_a_function_that_raises_is_rolled_back_and_tried_again():
    """Rolled back proves that nothing happened: no doubt, and retries are allowed."""
    tries = []

    @sf.transaction(URL, retries=2, backoff=sf.Backoff(first=0.001))
    def put(db, x):
        tries.append(x)
        db.execute("INSERT INTO t VALUES (?)", [x])
        if len(tries) < 3:
            raise ValueError("not yet")
        return x

    @sf.workflow
    def wf():
        return put(1)

    assert wf.run("r") == 1
    assert (len(tries), rows(), len(markers())) == (3, [1], 1)
    assert "EffectDoubted" not in [entry.kind for entry in sf.get_run("r").entries()]


@pytest.mark.usefixtures("table")
def test_a_function_that_fails_for_good_leaves_nothing_behind():
    @sf.transaction(URL)
    def put(db, x):
        db.execute("INSERT INTO t VALUES (?)", [x])
        raise ValueError("no")

    @sf.workflow
    def wf():
        try:
            put(1)
        except ValueError as error:
            return str(error)

    assert wf.run("r") == "no"
    assert rows() == []


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize("went_through", [True, False])
def test_a_commit_whose_outcome_is_unknown_is_settled_by_the_marker_at_once(monkeypatch, went_through):
    """The connection was lost while COMMIT was on its way."""
    real = SqliteWork.commit
    lost = []

    def losing(work):
        if went_through or lost:
            real(work)
        else:
            work.rollback()
        if not lost:
            lost.append(True)
            raise ConnectionError("lost in COMMIT")

    monkeypatch.setattr(SqliteWork, "commit", losing)

    @sf.transaction(URL, retries=1, backoff=sf.Backoff(first=0.001))
    def put(db, x):
        db.execute("INSERT INTO t VALUES (?)", [x])
        return x

    @sf.workflow
    def wf():
        return put(1)

    assert wf.run("r") == 1
    assert rows() == [1]
    assert ("EffectDone" in [entry.kind for entry in sf.get_run("r").entries()]) is not went_through


@pytest.mark.usefixtures("table")
def test_a_marker_with_other_arguments_is_a_stop(program):
    """Somebody's database says that something else was done under this key. Not ours to judge."""
    program.write(APP)
    program.run(DIE="after commit")
    db = sqlite3.connect("app.db")
    db.execute("UPDATE surefoot_markers SET digest = 'other'")
    db.commit()
    db.close()

    stopped = program.run()

    assert "InDoubt" in stopped.stderr
    assert "with other arguments" in stopped.stderr
    assert rows() == [7]


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize("how", ["commit", "rollback", "sql", "with"])
def test_a_function_may_not_end_its_transaction_and_mended_code_goes_on(how):
    """Its rows would be there without a marker, and after a crash once more."""
    mended = []

    @sf.transaction(URL)
    def put(db, x):
        db.execute("INSERT INTO t VALUES (?)", [x])
        if not mended:
            with pytest.raises(sqlite3.Error):
                if how == "with":
                    with db:
                        pass
                else:
                    db.execute("COMMIT") if how == "sql" else getattr(db, how)()
        return x

    @sf.workflow
    def wf():
        return put(1)

    with pytest.raises(sf.UsageError, match="ended by the function"):
        wf.run("r")
    assert rows() == []
    mended.append(True)
    assert wf.run("r") == 1
    assert rows() == [1]


@pytest.mark.usefixtures("table")
def test_what_follows_a_rollback_by_the_database_is_not_committed_line_by_line():
    """INSERT OR ROLLBACK ends the transaction; a function that goes on would then work without one."""

    @sf.transaction(URL)
    def put(db):
        db.execute("INSERT INTO t VALUES (1)")
        with pytest.raises(sqlite3.IntegrityError):
            db.execute("INSERT OR ROLLBACK INTO t VALUES (1)")
        with pytest.raises(sqlite3.Error):
            db.execute("INSERT INTO t VALUES (2)")

    @sf.workflow
    def wf():
        return put()

    with pytest.raises(sf.UsageError, match="ended by the function"):
        wf.run("r")
    assert rows() == []


@pytest.mark.usefixtures("table")
def test_a_result_that_cannot_be_stored_is_rolled_back():
    """Found out before the commit: mended code simply goes on."""
    mended = []

    @sf.transaction(URL)
    def put(db):
        db.execute("INSERT INTO t VALUES (1)")
        return 5 if mended else object()

    @sf.workflow
    def wf():
        return put()

    with pytest.raises(sf.ValueRejected):
        wf.run("r")
    assert rows() == []
    mended.append(True)
    assert wf.run("r") == 5
    assert rows() == [1]


@pytest.mark.usefixtures("table")
def test_an_attempt_that_outlives_its_time_is_found_and_not_repeated():
    """The thread commits late, while the run has stopped in doubt."""
    go, runs = threading.Event(), []

    @sf.transaction(URL, timeout=0.05)
    def put(db):
        runs.append(threading.current_thread())
        go.wait(20)
        db.execute("INSERT INTO t VALUES (1)")
        return "late"

    @sf.workflow
    def wf():
        return put()

    with pytest.raises(sf.InDoubt, match="still running"):
        wf.run("r")
    go.set()
    runs[0].join(20)

    assert wf.run("r") == "late"
    assert (rows(), len(runs)) == ([1], 1)


@pytest.mark.usefixtures("table")
def test_two_executions_of_one_key_never_both_commit():
    """What the check said may be old when the transaction begins: the marker is looked for again, inside."""
    ran = []

    @sf.transaction(URL)
    def put(db):
        ran.append(1)
        db.execute("INSERT INTO t VALUES (1)")
        return "first"

    put.spec.check = sf.not_happened
    real, lost = SqliteWork.commit, []

    def losing(work):
        real(work)
        if not lost:
            lost.append(True)
            raise ConnectionError("lost")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SqliteWork, "commit", losing)

        @sf.workflow
        def wf():
            with pytest.raises(ConnectionError):
                put()
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            wf.run("a")
    sf.get_run("a").rewind("put#1", by="ann")

    @sf.workflow(name="wf")
    def again():
        return put()

    assert again.run("a") == "first"
    assert (rows(), ran) == ([1], [1])


@pytest.mark.usefixtures("table")
def test_outside_a_run_it_is_a_plain_function_in_a_transaction():
    @sf.transaction(URL)
    def put(db, x):
        """Puts."""
        db.execute("INSERT INTO t VALUES (?)", [x])
        if x < 0:
            raise ValueError
        return x

    assert put(1) == 1
    with pytest.raises(ValueError):
        put(-1)
    assert (rows(), put.__doc__) == ([1], "Puts.")
    assert rows("SELECT count(*) FROM sqlite_schema WHERE name = 'surefoot_markers'") == [0]


@pytest.mark.usefixtures("table")
def test_its_undo_is_a_transaction_too():
    @sf.transaction(URL)
    def put(db, x):
        db.execute("INSERT INTO t VALUES (?)", [x])
        return x * 10

    undone = []

    @put.undo
    def _(db, x, result):
        undone.append((x, result))
        db.execute("DELETE FROM t WHERE x = ?", [x])

    @sf.workflow
    def wf():
        with sf.saga():
            put(1)
            put(2)
            raise ValueError("no")

    with pytest.raises(ValueError):
        wf.run("r")
    assert (rows(), undone) == ([], [(2, 20), (1, 10)])
    assert len(markers()) == 4


# -- async ------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("table")
def test_async_functions_await_the_connection():
    @sf.transaction(URL)
    async def put(db, x: int) -> int:
        await db.execute("INSERT INTO t VALUES (?)", [x])
        await db.executemany("INSERT INTO t VALUES (?)", [[x + 10], [x + 20]])
        found = await db.execute("SELECT max(x) FROM t")
        return (await found.fetchone())[0]

    @sf.workflow
    async def wf():
        return await put(1), await put(2)

    assert asyncio.run(wf.run("r")) == (21, 22)
    assert rows() == [1, 2, 11, 12, 21, 22]
    assert len(markers()) == 2


@pytest.mark.usefixtures("table")
def test_an_async_function_whose_time_is_over_commits_nothing():
    @sf.transaction(URL, timeout=0.05)
    async def put(db):
        await db.execute("INSERT INTO t VALUES (1)")
        await asyncio.Event().wait()

    @sf.workflow
    async def wf():
        try:
            await put()
        except TimeoutError:
            return "late"

    assert asyncio.run(wf.run("r")) == "late"
    assert rows() == []


@pytest.mark.usefixtures("table")
def test_a_blocking_transaction_runs_in_a_thread_of_an_async_workflow():
    @sf.transaction(URL)
    def put(db, x):
        db.execute("INSERT INTO t VALUES (?)", [x])
        return x

    @sf.workflow
    async def wf():
        return await asyncio.to_thread(put, 1)

    assert asyncio.run(wf.run("r")) == 1
    assert (rows(), len(markers())) == ([1], 1)


# -- bad input --------------------------------------------------------------------------------------


def test_a_store_of_ours_is_refused(kinds):
    """Its rows are sealed; a row of somebody else's in it would be damage."""

    @sf.transaction("sqlite:///.surefoot/runs.db")
    def put(db):
        db.execute("CREATE TABLE mine (x)")

    @sf.step
    def look():
        return 1

    @sf.workflow
    def wf():
        look()
        return put()

    with pytest.raises(sf.UsageError, match="surefoot store"):
        wf.run("r")
    assert "EffectRaised" not in kinds("r"), "what was misused can be mended"


@pytest.mark.parametrize("url", ["mysql://h/db", "app.db", "sqlite:///", "sqlite://:memory:", 7, None])
def test_what_names_no_database_is_refused_when_decorated(url):
    with pytest.raises(sf.UsageError):
        sf.transaction(url)


def test_a_function_without_a_parameter_for_the_connection_is_refused():
    with pytest.raises(sf.UsageError, match="first parameter is the connection"):

        @sf.transaction(URL)
        def put():
            pass


def test_postgres_without_its_driver_names_the_cure(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)

    @sf.transaction("postgresql://u@127.0.0.1/db")
    def put(db):
        pass

    with pytest.raises(sf.UsageError, match="pip install"):
        put()


def test_an_async_engine_is_refused_with_the_cure():
    class Engine:
        dialect = connect = sync_engine = None

    with pytest.raises(sf.UsageError, match="create_engine"):
        sf.transaction(Engine())
