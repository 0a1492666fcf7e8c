"""Transactions and rows in a real PostgreSQL, also through SQLAlchemy: exactly once, whenever somebody dies."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import threading

import pytest

import surefoot as sf
from surefoot import effects
from tests.postgres import postgres

pytestmark = [pytest.mark.proof, pytest.mark.timeout(120)]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with postgres(tmp_path_factory.mktemp("server")) as url:
        yield url


@pytest.fixture
def url(server, tmp_path, monkeypatch):
    import psycopg

    monkeypatch.chdir(tmp_path)
    name = f"d{os.urandom(6).hex()}"
    with psycopg.connect(server, autocommit=True) as db:
        db.execute(f"CREATE DATABASE {name}")
    made = server.rpartition("/")[0] + f"/{name}"
    with psycopg.connect(made) as db:
        db.execute("CREATE TABLE t (x INTEGER UNIQUE DEFERRABLE INITIALLY DEFERRED)")
    return made


def rows(url, query="SELECT x FROM t ORDER BY x"):
    import psycopg

    with psycopg.connect(url) as db:
        return [row[0] for row in db.execute(query).fetchall()]


APP = """
    import os, signal, sys
    import surefoot as sf
    from surefoot.engine.effects.databases import alchemy, postgres

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

    database = os.environ["DATABASE"]
    if os.environ["WAY"] == "alchemy":
        import sqlalchemy
        text = sqlalchemy.text
        database = sqlalchemy.create_engine(database.replace("postgresql:", "postgresql+psycopg:"))
        work = alchemy.AlchemyWork
    else:
        text, work = str, postgres.PostgresWork
    for name in ("mark", "finish", "commit", "close"):
        around(work, name)

    @sf.transaction(database)
    def put(db, x, y=1):
        db.execute(text(f"INSERT INTO t VALUES ({int(x)})"))
        die("inside")
        return {"put": x}

    @sf.workflow
    def wf():
        return put(7)

    print(wf.run("r"))
"""


def run(folder, url, way, **env):
    (folder / "app.py").write_text(textwrap.dedent(APP))
    return subprocess.run(
        [sys.executable, "app.py"], cwd=folder, env={**os.environ, "DATABASE": url, "WAY": way, **env},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("way", ["psycopg", "alchemy"])
@pytest.mark.parametrize(
    "moment", ["before mark", "after mark", "inside", "after finish", "before commit", "after commit", "after close"]
)
def test_killed_at_any_moment_the_row_is_there_exactly_once(url, tmp_path, way, moment, report):
    assert run(tmp_path, url, way, DIE=moment).returncode == -signal.SIGKILL

    done = run(tmp_path, url, way)

    assert done.stdout == "{'put': 7}\n", done.stderr
    assert rows(url) == [7]
    assert rows(url, "SELECT count(*) FROM surefoot_markers") == [1]
    report(
        f"PostgreSQL by {way}, an @sf.transaction killed {moment}", "the row is there exactly once, nobody was asked"
    )


def test_a_transaction_of_a_dead_claimant_that_is_still_under_way_is_waited_for(url):
    """Its process is dead, but the server still has its COMMIT before it: "absent" would be a guess."""
    import psycopg

    from surefoot.engine.effects.databases.opening import database_of

    database = database_of(url)
    work = database.begin()
    assert work.mark("k", "d", "now") is None
    found = []
    looking = threading.Thread(target=lambda: found.append(database.find("k")))
    looking.start()
    with psycopg.connect(url, autocommit=True) as db:
        while not db.execute("SELECT 1 FROM pg_locks WHERE NOT granted").fetchone():
            assert looking.is_alive(), "it did not wait"
    work.finish("k", "5")
    work.commit()
    work.close()
    looking.join(20)

    assert (found[0].digest, found[0].value) == ("d", "5")


def test_a_backend_killed_in_commit_is_settled_by_the_marker(url, monkeypatch):
    """The connection is gone when COMMIT returns; in truth it went through."""
    from surefoot.engine.effects.databases import postgres as module

    real, lost = module.PostgresWork.commit, []

    def losing(work):
        real(work)
        if not lost:
            lost.append(True)
            raise ConnectionError("lost in COMMIT")

    monkeypatch.setattr(module.PostgresWork, "commit", losing)

    @sf.transaction(url)
    def put(db, x):
        db.execute("INSERT INTO t VALUES (%s)", [x])
        return x

    @sf.workflow
    def wf():
        return put(1)

    assert wf.run("r") == 1
    assert rows(url) == [1]


def test_a_connection_lost_before_commit_committed_nothing_and_is_tried_again(url):
    import psycopg

    tries = []

    @sf.transaction(url, retries=1, backoff=sf.Backoff(first=0.001))
    def put(db, x):
        tries.append(x)
        db.execute("INSERT INTO t VALUES (%s)", [x])
        if len(tries) == 1:
            with psycopg.connect(url, autocommit=True) as other:
                other.execute("SELECT pg_terminate_backend(%s)", [db.info.backend_pid])
        return x

    @sf.workflow
    def wf():
        return put(1)

    assert wf.run("r") == 1
    assert (rows(url), len(tries)) == ([1], 2)


def test_a_commit_that_the_server_refuses_is_a_failure_and_no_doubt(url):
    """A deferred constraint is looked at in COMMIT."""

    @sf.transaction(url)
    def put(db):
        db.execute("INSERT INTO t VALUES (1), (1)")

    @sf.workflow
    def wf():
        put()

    with pytest.raises(sf.StepFailed, match="UniqueViolation"):
        wf.run("r")
    assert "EffectDoubted" not in [entry.kind for entry in sf.get_run("r").entries()]
    assert rows(url) == []


@pytest.mark.parametrize("how", ["commit", "COMMIT", "COMMIT; BEGIN"])
def test_a_function_that_commits_by_itself_is_found_out(url, how):
    @sf.transaction(url)
    def put(db):
        db.execute("INSERT INTO t VALUES (1)")
        if how == "commit":
            db.commit()
        else:
            for part in how.split("; "):
                db.execute(part)

    @sf.workflow
    def wf():
        put()

    if how == "commit":  # psycopg refuses, and it is rolled back
        with pytest.raises(sf.StepFailed, match="ProgrammingError"):
            wf.run("r")
        assert rows(url) == []
        return
    with pytest.raises(sf.UsageError, match="ended by the function"):
        wf.run("r")
    with pytest.raises(sf.InDoubt, match="committed half-way"):
        wf.run("r")
    assert rows(url) == [1]


def test_async_functions_await_the_connection(url):
    @sf.transaction(url)
    async def put(db, x: int) -> int:
        await db.execute("INSERT INTO t VALUES (%s)", [x])
        found = await db.execute("SELECT count(*) FROM t")
        return (await found.fetchone())[0]

    @sf.workflow
    async def wf():
        return await put(1) + await put(2)

    assert asyncio.run(wf.run("r")) == 3
    assert rows(url) == [1, 2]


def test_rows_are_put_by_their_key(url):
    import psycopg

    with psycopg.connect(url) as db:
        db.execute('CREATE TABLE "order" (id INTEGER PRIMARY KEY, "group" TEXT)')

    @sf.workflow
    def wf():
        effects.upsert(url, "order", "id", {"id": 1, "group": "a"})
        effects.upsert(url, "public.order", "id", {"id": 1, "group": "b"})

    wf.run("r")
    assert rows(url, 'SELECT "group" FROM "order"') == ["b"]


def test_an_engine_that_commits_every_statement_is_refused(url):
    import sqlalchemy

    for engine in (
        sqlalchemy.create_engine(url.replace("postgresql:", "postgresql+psycopg:"), isolation_level="AUTOCOMMIT"),
        sqlalchemy.create_engine("sqlite:///app.db", isolation_level="AUTOCOMMIT"),
    ):

        @sf.transaction(engine)
        def put(db):
            raise AssertionError("must not run")

        @sf.workflow
        def wf():
            put()

        with pytest.raises(sf.UsageError, match="AUTOCOMMIT"):
            wf.run(f"r-{engine.dialect.name}")
        engine.dispose()


def test_sqlalchemy_on_sqlite(tmp_path, monkeypatch):
    import sqlalchemy

    monkeypatch.chdir(tmp_path)
    engine = sqlalchemy.create_engine("sqlite:///app.db")
    with engine.begin() as db:
        db.execute(sqlalchemy.text("CREATE TABLE t (x)"))

    @sf.transaction(engine)
    def put(db, x):
        db.execute(sqlalchemy.text("INSERT INTO t VALUES (:x)"), {"x": x})
        if x < 0:
            raise ValueError("no")
        return x

    @sf.transaction(engine)
    def meddle(db):
        db.execute(sqlalchemy.text("INSERT INTO t VALUES (9)"))
        db.commit()

    @sf.workflow
    def wf():
        put(1)
        try:
            put(-1)
        except ValueError:
            return put(2)

    @sf.workflow
    def bad():
        meddle()

    assert wf.run("r") == 2
    with engine.connect() as db:
        assert list(db.execute(sqlalchemy.text("SELECT x FROM t ORDER BY x")).scalars()) == [1, 2]
    with pytest.raises(sf.UsageError, match="ended by the function"):
        bad.run("b")
    with pytest.raises(sf.InDoubt, match="committed half-way"):
        bad.run("b")
    engine.dispose()
