"""What people point surefoot at by mistake, and what they lose: a clear error at every door, and nothing is made anew.

The doors are `sf.get_run`, `.run` and the command. Behind each the file stays as it was found.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import apsw
import pytest

import surefoot as sf
from surefoot.cli.main import main
from surefoot.engine.process.config import settings
from surefoot.store.open import close_all
from tests.damage import agent, stores


@pytest.fixture(autouse=True)
def _as_found(tmp_path, monkeypatch):
    """Effects would write here; none may. Settings of one test are not those of the next."""
    monkeypatch.setenv("LEDGER", str(tmp_path / "ledger"))
    for name in ("store", "on_corruption"):
        monkeypatch.setattr(settings, name, getattr(settings, name))
    yield
    close_all()
    assert not (tmp_path / "ledger").exists(), "something was executed"


# --- situations: each takes a folder with a whole store, and leaves it as a person might find it ----------------------


def text_file(path: Path) -> None:
    clear(path)
    path.write_text("dear diary\n" * 500)


def empty_file(path: Path) -> None:
    clear(path)
    path.touch()


def directory(path: Path) -> None:
    clear(path)
    path.mkdir()


def pipe(path: Path) -> None:
    clear(path)
    os.mkfifo(path)


def under_a_file(path: Path) -> None:
    shutil.rmtree(path.parent)
    path.parent.write_text("a file where a folder should be")


def database_of_another_program(path: Path) -> None:
    clear(path)
    change(path, "CREATE TABLE mine (x)", "INSERT INTO mine VALUES (1)")


def newer_format(path: Path) -> None:
    change(path, "UPDATE meta SET value = 99 WHERE key = 'format'")


def no_anchor(path: Path) -> None:
    side(path, "-anchor").unlink()


def garbled_anchor(path: Path) -> None:
    side(path, "-anchor").write_bytes(b"x" * 582)


def no_log(path: Path) -> None:
    side(path, "-wal").unlink()


def no_database(path: Path) -> None:
    path.unlink()


def only_the_log(path: Path) -> None:
    path.unlink()
    side(path, "-anchor").unlink()


def emptied_database(path: Path) -> None:
    path.write_bytes(b"")


def text_over_the_database(path: Path) -> None:
    side(path, "-wal").write_bytes(b"")
    path.write_text("dear diary\n" * 500)


def text_under_the_log(path: Path) -> None:
    path.write_text("dear diary\n" * 5000)


def another_program_over_the_database(path: Path) -> None:
    path.unlink()
    side(path, "-wal").unlink()
    change(path, "CREATE TABLE mine (x)")


def bytes_of_another_run(path: Path) -> None:
    change(
        path,
        "UPDATE entries SET (epoch, at, kind, body, seal) = "
        "(SELECT epoch, at, kind, body, seal FROM entries WHERE run = 'third' AND seq = 4) WHERE run = 'first' AND seq = 4",
    )


def clear(path: Path) -> None:
    for file in path.parent.iterdir():
        file.unlink()


def side(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def change(path: Path, *statements: str) -> None:
    connection = apsw.Connection(str(path))
    for statement in statements:
        connection.execute(statement).fetchall()
    connection.close()


DAMAGED_RUN = "entry 4 of 37 is damaged"
SITUATIONS = [
    (text_file, sf.UsageError, "not a surefoot store: it is not a SQLite database"),
    (empty_file, sf.UsageError, "not a surefoot store: the file is empty"),
    (directory, sf.UsageError, "not a surefoot store: it is a directory"),
    (pipe, sf.UsageError, "not a surefoot store: it is no plain file"),
    (under_a_file, sf.StoreUnavailable, "Not a directory"),
    (database_of_another_program, sf.UsageError, "a SQLite database of another program"),
    (newer_format, sf.SchemaMismatch, "this store has format 99"),
    (no_anchor, sf.JournalRegressed, "the anchor is missing or unreadable"),
    (garbled_anchor, sf.JournalRegressed, "the anchor is missing or unreadable"),
    (no_log, sf.JournalRegressed, "the store is older than it once was"),
    (no_database, sf.JournalRegressed, "the database is missing"),
    (only_the_log, sf.JournalRegressed, "the database is missing, but its log is still there"),
    (emptied_database, sf.JournalRegressed, "the database is empty"),
    (text_over_the_database, sf.JournalCorrupt, "it is no SQLite file"),
    (text_under_the_log, sf.JournalCorrupt, "the database is damaged"),
    (another_program_over_the_database, sf.JournalRegressed, "it is a SQLite database of another program"),
    (bytes_of_another_run, sf.JournalCorrupt, DAMAGED_RUN),
]


@pytest.fixture(params=SITUATIONS, ids=lambda situation: situation[0].__name__)
def situation(request, originals, tmp_path):
    """(path, error, words)."""
    spoil, error, words = request.param
    path = stores.place(originals("interrupted").files, tmp_path / "here")
    spoil(path)
    return path, error, words


LOOKED = (("runs.db-wal", b""), ("runs.db-anchor", b""))


def as_found(path: Path) -> dict[str, bytes | str]:
    """Every file but those that looking may make: SQLite's own index of the log, and side files with nothing in them."""
    if not path.parent.is_dir():
        return {"": path.parent.read_text()}
    found = {file.name: file.read_bytes() if file.is_file() else "no file" for file in path.parent.iterdir()}
    return {
        name: content for name, content in found.items() if not name.endswith("-shm") and (name, content) not in LOOKED
    }


# --- doors ------------------------------------------------------------------------------------------------------------


def test_handle_says_what_is_wrong(situation):
    """A program that asks for its run is never told that there is none."""
    path, error, words = situation
    before = as_found(path)

    with pytest.raises(error, match=words) as caught:
        sf.get_run("first", store=f"sqlite:///{path}").status  # noqa: B018 - the look is what is tested

    assert type(caught.value) is error
    close_all()
    assert as_found(path) == before


def test_starting_a_run_says_what_is_wrong_and_starts_nothing(situation):
    """`.run` makes a store where there is none; here there was one, or something else."""
    path, error, words = situation
    before = as_found(path)
    sf.configure(on_corruption="stop")

    with pytest.raises(error, match=words):
        agent.agent.using(store=f"sqlite:///{path}").run("first", "first")

    close_all()
    if error is sf.JournalCorrupt:
        return  # the store itself opened; closing it folds its log into the database
    assert as_found(path) == before


COMMANDS = [("runs",), ("runs", "show", "first"), ("run", "tests.damage.agent:agent", "--id", "first", "first")]


@pytest.mark.parametrize("words", COMMANDS, ids=[" ".join(command[:2]) for command in COMMANDS])
def test_command_says_what_is_wrong_with_the_right_exit_code(situation, words, capsys):
    """People read it on a terminal, scripts by its exit code and as JSON. Nobody sees a traceback."""
    path, error, said = situation
    if said == DAMAGED_RUN and words == ("runs",):
        return  # one damaged run does not spoil the list of all
    sf.configure(on_corruption="stop")
    store = ("--store", f"sqlite:///{path}")

    code = main([*words, *store])
    out, err = capsys.readouterr()
    close_all()

    assert code == error.exit_code
    assert out == ""
    assert said in err
    assert err.startswith(f"{error.__name__}: ")
    assert "Traceback" not in err

    code = main([*words, *store, "--json"])
    told = json.loads(capsys.readouterr().out)["error"]
    assert (code, told["type"], told["exit_code"]) == (error.exit_code, error.__name__, error.exit_code)


def test_run_with_bytes_of_another_run_goes_on_from_what_is_valid_and_repeats_nothing(originals, tmp_path, caplog):
    """By default it steps back, loudly: only the end was lost here, and it is found again without doing anything."""
    original = originals("closed")
    path = stores.place(original.files, tmp_path / "here")
    change(
        path,
        "UPDATE entries SET (epoch, at, kind, body, seal) = "
        "(SELECT epoch, at, kind, body, seal FROM entries WHERE run = 'third' AND seq = 37) "
        "WHERE run = 'first' AND seq = 37",
    )

    result = agent.agent.using(store=f"sqlite:///{path}").run("first", "first")

    assert result == agent.result("first")
    assert "entry 37 of 37 is damaged" in caplog.text
    assert "fell back" in caplog.text


# --- what this user may not read --------------------------------------------------------------------------------------

AS_NOBODY = """
import os, sys
from surefoot.cli.main import main
whole, store, *words = sys.argv[1:]
main(["runs", "--store", whole])  # so that everything is loaded while we may
main(["runs", "show", "first", "--store", whole])
sys.stdout.flush()
if os.getuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
print("as somebody else", flush=True)
sys.exit(main([*words, "--store", store]))
"""


@pytest.mark.parametrize("words", [("runs",), ("runs", "show", "first")], ids=" ".join)
@pytest.mark.parametrize("which", ["runs.db", "runs.db-anchor", "the folder"])
def test_file_without_permission_is_named(originals, which, words):
    """As a user who lacks the right. Root may read everything, so the process becomes somebody else first."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    whole, path = (stores.place(originals("closed").files, folder / name) for name in ("whole", "here"))
    denied = path.parent if which == "the folder" else path.parent / which
    try:
        for file in path.parent.iterdir():
            file.chmod(0o666)
        path.parent.chmod(0o777)
        denied.chmod(0)
        ended = subprocess.run(
            [sys.executable, "-c", AS_NOBODY, f"sqlite:///{whole}", f"sqlite:///{path}", *words],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        denied.chmod(0o700)
        shutil.rmtree(folder)

    assert ended.stdout.endswith("as somebody else\n")
    assert ended.returncode == sf.StoreUnavailable.exit_code
    assert "StoreUnavailable: " in ended.stderr
    assert "Permission denied" in ended.stderr or "unable to open" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("runs.db", "Did you mean sqlite:///runs.db?"),
        ("sqlite://runs.db", "three slashes"),
        ("sqlite:///", "names no file"),
        ("mysql://localhost/db", "not a store URL"),
        ("file:///tmp/x", "not runs"),
    ],
)
def test_store_url_that_is_none_is_named_with_a_cure(url, said, capsys):
    """A slip of the keyboard, which must not end in a new store somewhere."""
    code = main(["runs", "--store", url])

    assert code == sf.UsageError.exit_code
    assert said in capsys.readouterr().err
    assert list(Path().iterdir()) == []
