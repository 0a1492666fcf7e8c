"""`surefoot repair` and `surefoot adopt`: a person accepts a loss; it is named before, and on record after."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import apsw
import pytest

from surefoot.store.open import close_all

WORDS = ("run", "app:notify", "--id", "t", '["Ada", "Bob", "Cem"]')
DATABASE = Path(".surefoot/runs.db")


def alter(folder: Path, *statements: str) -> None:
    close_all()
    connection = apsw.Connection(str(folder / DATABASE))
    for statement in statements:
        connection.execute(statement)
    connection.close()


def garble(folder: Path, seq: int) -> None:
    alter(folder, f"UPDATE entries SET body = cast(replace(body, 'a', 'o') as blob) WHERE run = 't' AND seq = {seq}")


def test_repair_names_the_price_asks_and_is_recorded(shell, app):
    shell(*WORDS)
    garble(app, 7)

    refused = shell("repair", "t")
    assert refused.code == 2
    assert "there is no terminal to ask at" in refused.err
    assert "entry 7 is damaged" in refused.err

    done = shell("repair", "t", "--yes", "--by", "ada", "--note", "disk replaced")
    assert done.code == 0
    assert done.out.startswith("repaired: run t goes on after entry 6.\n")
    told = shell("runs", "tail", "t", "--no-follow", "--json").out.splitlines()
    entry = next(found for found in map(json.loads, told) if found["kind"] == "FellBack")
    assert (entry["data"]["by"], entry["data"]["note"], entry["data"]["after"]) == ("ada", "disk replaced", 6)


def test_a_repaired_run_repeats_no_mail(shell, app):
    shell(*WORDS)
    garble(app, 7)
    shell("repair", "t", "--yes")

    ended = shell(*WORDS)
    assert ended.code == 3, "the effect whose intent was damaged is in doubt"
    shell("settle", "t", "send#2", "--happened", '"mail-Bob"')
    assert shell(*WORDS).out == "3\n"
    ledger = (app / "ledger").read_text().splitlines()
    assert [line for line in ledger if line.startswith("send")] == ["send Ada", "send Bob", "send Cem"]


def test_run_falls_back_by_itself_and_says_so_on_standard_error(shell, app):
    shell(*WORDS)
    garble(app, 7)

    ended = shell(*WORDS)

    assert ended.code == 3
    assert "fell back" in ended.err
    assert "quarantined" in ended.err


def test_a_sound_run_needs_no_repair(shell, app):
    shell(*WORDS)

    assert shell("repair", "t").out == "run t is sound: nothing to repair.\n"
    assert shell("repair", "u").code == 2
    assert shell("repair", "t", "--json").json == {"run": "t", "repaired": False}


def older_copy(shell, folder: Path, *more: str) -> None:
    """A run in doubt is copied; it goes on; the copy is put back."""
    shell(*WORDS, DIE_AFTER_SENDING_TO="Bob")
    assert shell(*WORDS).code == 3
    for suffix in ("", "-wal"):
        shutil.copy(folder / f"{DATABASE}{suffix}", folder / f"copy{suffix}")
    shell("settle", "t", "send#2", "--happened", '"mail-Bob"')
    assert shell(*WORDS).out == "3\n"
    for suffix in ("", "-wal"):
        shutil.copy(folder / f"copy{suffix}", folder / f"{DATABASE}{suffix}")
    (folder / f"{DATABASE}-shm").unlink(missing_ok=True)


def test_an_older_copy_is_adopted_and_what_it_does_not_know_is_in_doubt(shell, app):
    """Cem's mail went out, but the older copy has no record of it."""
    older_copy(shell, app)
    refused = shell(*WORDS)
    assert refused.code == 4
    assert "surefoot adopt --reason TEXT" in refused.err

    asked = shell("adopt", "--reason", "restored from tape")
    assert asked.code == 2
    assert "1 unfinished runs" in asked.err

    done = shell("adopt", "--reason", "restored from tape", "--yes")
    assert done.code == 0
    shell("settle", "t", "send#2", "--happened", '"mail-Bob"')
    assert shell(*WORDS).code == 3, "send#3 is not known to the older copy, and may have happened"
    shell("settle", "t", "send#3", "--happened", '"mail-Cem"')
    assert shell(*WORDS).out == "3\n"
    ledger = (app / "ledger").read_text().splitlines()
    assert [line for line in ledger if line.startswith("send")] == ["send Ada", "send Bob", "send Cem"]


def test_a_missing_anchor_can_be_adopted(shell, app):
    """Nobody can say whether the journal is complete: then everything unfinished is in doubt."""
    shell(*WORDS, DIE_AFTER_SENDING_TO="Bob")
    (app / f"{DATABASE}-anchor").unlink()
    assert shell("runs").code == 4

    assert shell("adopt", "--reason", "lost it", "--yes", "--json").json["fell_back"] == ["t"]
    assert shell("runs").code == 0
    assert shell("runs", "show", "t").code == 0


def test_a_crash_while_adopting_leaves_the_store_refused(shell, app):
    """Declined, or cut off: nothing is half accepted."""
    older_copy(shell, app)
    shell("adopt", "--reason", "restored from tape")

    assert shell(*WORDS).code == 4


def test_a_store_that_lost_nothing_is_not_adopted(shell, app):
    shell(*WORDS)

    refused = shell("adopt", "--reason", "to be safe", "--yes")
    assert refused.code == 2
    assert "nothing to adopt" in refused.err


@pytest.mark.parametrize("words", [("adopt",), ("adopt", "--reason", " ")])
def test_adopting_needs_a_reason(shell, app, words):
    older_copy(shell, app)

    assert shell(*words, "--yes").code == 2


def test_the_adoption_is_on_record(shell, app):
    older_copy(shell, app)
    shell("adopt", "--reason", "restored from tape", "--by", "ada", "--yes")

    close_all()
    connection = apsw.Connection(str(app / DATABASE))
    bodies = connection.execute("SELECT body FROM journal WHERE kind = 61").fetchall()
    connection.close()
    assert [json.loads(body)["reason"] for (body,) in bodies] == ["restored from tape"]
