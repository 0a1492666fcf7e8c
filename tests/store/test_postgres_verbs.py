"""The same workflows and the same commands, with `postgresql://…` as the only difference."""

from __future__ import annotations

import json
import shutil
import signal

import psycopg
import pytest

import surefoot as sf
from surefoot.cli.main import main
from surefoot.store.open import close_all
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


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("server")) as started:
        yield started


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
