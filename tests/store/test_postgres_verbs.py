"""The same workflows and the same commands, with `postgresql://…` as the only difference."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys

import psycopg
import pytest

import surefoot as sf
from surefoot.cli.main import main
from surefoot.store.open import close_all
from surefoot.store.postgres.connection import place_of
from tests.postgres import Server, serving

LARGE = ["a large value, " * 10 + str(n) for n in range(200)]


@sf.step
def draft(n: int) -> list[str]:
    return [*LARGE, str(n)]


@sf.effect
def send(text: list[str]) -> str:
    return f"sent {text[-1]}"


@sf.workflow
def notify(count: int) -> list[str]:
    sent = [send(draft(n)) for n in range(count)]
    sf.ask("Was it right?", type=bool)
    return sent


@pytest.fixture
def store(server: Server, monkeypatch) -> str:
    url = server.url_of("verbs", password="geheim")
    server.emptied("verbs")
    monkeypatch.setenv("SUREFOOT_STORE", url)
    yield url
    close_all()


@pytest.fixture
def shell(capsys):
    def run(*words: str) -> tuple[int, str]:
        code = main(list(words))
        close_all()
        captured = capsys.readouterr()
        said = captured.out + captured.err
        assert "geheim" not in said
        return code, said

    return run


def stopped_run(run_id: str = "t") -> None:
    with pytest.raises(sf.WaitingForAnswer) as found:
        notify.run(run_id, 3)
    assert "geheim" not in str(found.value)


def test_run_stops_is_answered_and_ends(store, shell):
    """One sentence of the promise: the same user code runs on `postgresql://…`."""
    stopped_run()
    close_all()
    assert shell("runs")[0] == 0
    assert "WaitingForAnswer" in shell("runs", "show", "t")[1]
    code, said = shell("verify")
    assert (code, "damaged" in said) == (0, False), said

    sf.get_run("t").answer("ask#1", True)
    assert notify.run("t", 3) == ["sent 0", "sent 1", "sent 2"]
    close_all()
    assert sf.get_run("t").status == "done"


def test_damaged_record_is_found_and_the_run_falls_back(store, server, shell):
    """One flipped bit in a row is not read as something else."""
    stopped_run()
    close_all()
    with psycopg.connect(store, autocommit=True) as db:
        db.execute("UPDATE surefoot.entries SET body = set_byte(body, 20, get_byte(body, 20) # 1) WHERE seq = 5")

    code, said = shell("verify")
    assert code == 4, said
    code, said = shell("repair", "t", "--yes")
    assert code == 0, said
    assert shell("verify")[0] == 0


def test_pruning_gives_back_the_parts(store, server, shell):
    stopped_run()
    sf.get_run("t").answer("ask#1", True)
    notify.run("t", 3)
    close_all()

    code, said = shell("prune", "--older-than", "0s", "--yes")

    assert code == 0, said
    with psycopg.connect(store) as db:
        assert db.execute("SELECT count(*) FROM surefoot.parts").fetchone() == (0,)
        assert db.execute("SELECT count(*) FROM surefoot.entries").fetchone() == (1,)


def test_doctor_reads_the_settings_back(store, shell):
    stopped_run()
    close_all()

    code, said = shell("doctor", "--json")

    found = {one["what"]: one for one in json.loads(said)["findings"]}
    assert code == 0
    assert "fsync=on" in found["settings"]["said"]
    assert found["clock"]["verdict"] == found["anchor"]["verdict"] == "ok"


def test_doctor_without_a_store_or_a_server_says_so(store, shell, monkeypatch):
    assert "no store in" in shell("doctor")[1]
    monkeypatch.setenv("SUREFOOT_STORE", "postgresql://app:geheim@127.0.0.1:1/x")
    code, said = shell("doctor")
    assert code == 4
    assert "cannot be reached" in said


@pytest.mark.parametrize("words", [("backup", "copies/"), ("inspect",)])
def test_verbs_for_files_name_what_to_use_instead(store, shell, words):
    stopped_run()
    close_all()

    code, said = shell(*words)

    assert code == 2
    assert "pg_dump" in said


def test_store_that_lost_nothing_is_not_adopted(store, shell):
    stopped_run()
    close_all()

    code, said = shell("adopt", "--reason", "to be safe", "--yes")

    assert code == 2
    assert "nothing to adopt" in said


def test_older_state_of_the_server_is_adopted_and_what_it_does_not_know_is_in_doubt(tmp_path, monkeypatch, shell):
    """A person's word, on record; unfinished runs go on, and no effect runs twice silently."""
    with serving(tmp_path) as own:
        monkeypatch.setenv("SUREFOOT_STORE", own.url)
        stopped_run("known")
        close_all()
        own.stop(signal.SIGINT)
        shutil.copytree(own.data, tmp_path / "old")
        own.start()
        stopped_run("unknown")
        close_all()
        own.stop(signal.SIGINT)
        shutil.rmtree(own.data)
        shutil.move(tmp_path / "old", own.data)
        own.start()
        assert shell("runs")[0] == 4

        code, said = shell("adopt", "--reason", "restored from tape", "--yes", "--json")

        assert code == 0, said
        assert '"fell_back": [\n    "known"\n  ]' in said
        assert shell("verify")[0] == 0
        with psycopg.connect(own.url) as db:
            ((body,),) = db.execute(r"SELECT body FROM surefoot.entries WHERE run = E'\x1fstore'").fetchall()
        assert b"restored from tape" in body
        stopped_run("known")
        close_all()


@pytest.fixture
def vanished(store, server) -> str:
    """A store in which something was acknowledged to this place, and then dropped with everything in it."""
    stopped_run()
    close_all()
    server.emptied("verbs")
    return store


def has_schema(url: str) -> bool:
    with psycopg.connect(url) as db:
        return db.execute("SELECT to_regnamespace('surefoot') IS NOT NULL").fetchone() == (True,)


@pytest.mark.parametrize(
    "words", [("runs",), ("runs", "show", "t"), ("verify",), ("doctor",), ("adopt", "--reason", "r", "--yes")]
)
def test_store_that_vanished_is_not_taken_for_one_that_never_was(vanished, shell, words):
    """A dropped schema, an empty database put back: to say "nothing was recorded" would be untrue."""
    code, said = shell(*words)

    assert (code, "has no store any more" in said) == (4, True), said
    assert "mv " in said


def test_run_does_not_start_afresh_where_the_store_vanished(vanished):
    """It would execute everything again."""
    with pytest.raises(sf.JournalRegressed, match="has no store any more"):
        notify.run("t", 3)

    assert not has_schema(vanished)


def test_vanished_store_is_missed_however_its_url_is_spelled(vanished, monkeypatch):
    """Another user or password is the same database; the environment may name what the URL does not."""
    rest, _, database = vanished.rpartition("/")
    host, _, port = rest.rpartition("@")[2].partition(":")
    monkeypatch.setenv("PGPORT", port)
    for url in (f"postgres://app@{host}/{database}", f"postgresql+psycopg://app:other@{host}:{port}/{database}"):
        monkeypatch.setenv("SUREFOOT_STORE", url)
        with pytest.raises(sf.JournalRegressed, match="has no store any more"):
            notify.run("t", 3)


def test_moving_the_named_file_away_is_all_that_starting_anew_takes(vanished, shell):
    _, said = shell("runs")
    (command,) = re.findall(r"gone for good\? +(mv .*)", said)
    subprocess.run(shlex.split(command), check=True)

    stopped_run()
    close_all()
    assert shell("runs")[0] == 0


def test_fresh_machine_starts_a_store_where_another_had_one(vanished, monkeypatch, tmp_path):
    """Whoever has seen nothing acknowledged has nothing to miss."""
    monkeypatch.setenv("SUREFOOT_ANCHORS", str(tmp_path / "fresh"))

    stopped_run()

    assert has_schema(vanished)


@pytest.fixture
def replaced(vanished, monkeypatch, tmp_path) -> str:
    """A machine that knew nothing has made another store meanwhile."""
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("SUREFOOT_ANCHORS", str(tmp_path / "fresh"))
        stopped_run("other")
        close_all()
    return vanished


def test_another_store_in_the_same_place_is_refused_until_it_is_adopted(replaced, shell):
    """A different backup was put back: its runs are not those that were acknowledged here."""
    code, said = shell("runs")
    assert (code, "holds another store" in said) == (4, True), said
    with pytest.raises(sf.JournalRegressed, match="holds another store"):
        notify.run("t", 3)

    code, said = shell("adopt", "--reason", "the old one is lost", "--yes")

    assert code == 0, said
    assert shell("runs")[0] == 0
    assert "nothing to adopt" in shell("adopt", "--reason", "again", "--yes")[1]


def test_note_that_cannot_be_read_is_not_taken_for_none(store, server, shell, tmp_path):
    """Unreadable is not the same as nothing there."""
    stopped_run()
    close_all()
    (note,) = (tmp_path / ".surefoot" / "anchors").glob("at-*")
    note.write_bytes(b"x" * note.stat().st_size)

    code, said = shell("runs")
    assert (code, "unreadable" in said) == (4, True), said
    assert shell("adopt", "--reason", "it is the same", "--yes")[0] == 0
    assert shell("runs")[0] == 0


def test_note_of_a_place_holds_no_user_and_no_password(store, tmp_path):
    stopped_run()
    close_all()

    (note,) = (tmp_path / ".surefoot" / "anchors").glob("at-*")

    assert b"geheim" not in note.name.encode() + note.read_bytes()
    assert "app" not in note.name
    assert note.stat().st_mode & 0o777 == 0o600


def test_handle_that_is_open_misses_its_store(store, server):
    """A server that is replaced under a worker, after which it connects again."""
    stopped_run()
    server.emptied("verbs")

    with pytest.raises(sf.JournalRegressed, match="has no store any more"):
        sf.get_run("t").status  # noqa: B018 - reads


def test_place_is_the_same_however_servers_are_listed():
    """Several hosts are one place, whichever is asked first."""
    one = place_of({"host": "A.example,b", "port": "5432", "dbname": "shop", "user": "x"})
    two = place_of({"host": "b,a.example", "port": "", "dbname": "shop", "user": "y"})

    assert one == two == "a.example:5432,b:5432/shop"
    assert place_of({"host": "a", "port": "1", "user": "u"}) == "a:1/u"
    assert place_of({"host": "a", "dbname": "shop"}) != place_of({"host": "a", "dbname": "Shop"})


@pytest.mark.parametrize("wrong", ["database", "role"])
def test_server_that_was_reached_is_not_called_unreachable(server, shell, monkeypatch, wrong):
    """Somebody would look at the network for a slip in the URL."""
    user, database = ("app", "nodb") if wrong == "database" else ("nobody", "postgres")
    monkeypatch.setenv("SUREFOOT_STORE", f"postgresql://{user}@127.0.0.1:{server.port}/{database}")

    code, said = shell("runs")

    assert code == 1
    assert "does not exist" in said
    assert "cannot be reached" not in said
    assert "in the URL" in said


KILLED_AT_WORK = """
import os, signal
import surefoot as sf

@sf.effect
def send() -> None:
    os.kill(os.getpid(), signal.SIGKILL)

@sf.workflow
def notify() -> None:
    send()

notify.run("killed")
"""


def test_worker_that_may_be_dead_is_not_said_to_be_alive(store, shell, tmp_path):
    """Killed a moment ago, it is alive for the server until its lease ends: "end that process" cannot be done.

    As on another host: its lock is where nobody here looks, so that nothing proves its death.
    """
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "XDG_RUNTIME_DIR": str(tmp_path)}
    killed = subprocess.run([sys.executable, "-c", KILLED_AT_WORK], env=env, capture_output=True, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr

    code, said = shell("settle", "killed", "send#1", "--not-happened")

    assert code == 2, said
    assert "which is alive" not in said
    found = re.search(r"lease runs until (\d\d:\d\d:\d\d) UTC", said)
    assert found, said
    with psycopg.connect(store) as db:
        ((ends,),) = db.execute("SELECT to_char(expires AT TIME ZONE 'UTC', 'HH24:MI:SS') FROM surefoot.workers")
    assert found[1] == ends
