"""A store that is refused, and one that is away: the console is there all the same, and says what it is."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest

import surefoot as sf
from surefoot.console.principals import Principal
from surefoot.store.open import close_all
from tests.console.conftest import Browser, working

STORE = Path(".surefoot/runs.db")


def regressed():
    """Somebody has put an older copy back."""
    close_all()
    shutil.copy(STORE, "older.db")
    working.run("later", 1)
    close_all()
    for one in Path(".surefoot").glob("runs.db*"):
        if one.name in ("runs.db", "runs.db-wal", "runs.db-shm"):
            one.unlink()
    shutil.copy("older.db", STORE)


def damaged():
    close_all()
    content = bytearray(STORE.read_bytes())
    content[:64] = b"x" * 64
    STORE.write_bytes(content)


def newer():
    close_all()
    with sqlite3.connect(STORE) as db:
        db.execute("UPDATE meta SET value = 9999 WHERE key = 'format'")
    db.close()


@pytest.mark.parametrize("harm", [regressed, damaged, newer], ids=["regressed", "damaged", "newer"])
def test_a_refused_store_has_its_page_and_no_other(consoles, stopped, harm):
    """Nothing can be said of runs that cannot be read; what helps can."""
    harm()
    who = Browser(consoles(), Principal("ann", "admin"))
    with pytest.raises(sf.SurefootError) as told:
        sf.get_run("r")

    page = who.get("/store")
    assert page.status_code == 200, page.text
    assert type(told.value).__name__ in page.text
    for path in ("/", "/runs", "/runs/r", "/workers", "/audit", "/checkpoints"):
        found = who.get(path)
        assert (found.status_code, found.headers.get("location")) == (303, "/store"), path
    answer = who.get("/api/v1/runs/r")
    assert answer.status_code in (400, 500)
    assert answer.json()["error"]["type"] == type(told.value).__name__
    said = who.post("/api/v1/runs/r/actions", {"do": "cancel", "seen": {"seq": 1, "seal": "00" * 32}})
    assert said.status_code == answer.status_code


def test_a_store_that_is_not_there_yet_says_so(consoles):
    who = Browser(consoles(), Principal("ann", "admin"))

    assert who.get("/api/v1/inbox").status_code == 404
    assert who.get("/").headers["location"] == "/store"
    assert who.get("/store").status_code == 200
    assert not STORE.exists()


def test_a_damaged_run_is_shown_and_repaired(ann):
    """The other runs are as they were."""
    from tests.engine.test_fallback import garble

    garble(2, "q")
    close_all()

    items = ann.get("/api/v1/inbox").json()["items"]
    assert [one["run"] for one in items if one["kind"] == "damage"] == ["q"]
    assert ann.get("/api/v1/runs/q").status_code == 500
    assert ann.get("/api/v1/runs/q").json()["error"]["type"] == "JournalCorrupt"
    assert ann.get("/runs/q").status_code == 200
    assert ann.get("/api/v1/runs/r").status_code == 200

    from surefoot.console.actions import damage_seen
    from surefoot.engine.drive import fallback

    seen = damage_seen(fallback.diagnose(ann.console.runtime().store, "q"))
    wrong = ann.send("/runs/q/repair", seen=f"{seen.seq}.{'0' * 64}")
    assert wrong.status_code == 409
    assert ann.get("/api/v1/runs/q").status_code == 500

    done = ann.send("/runs/q/repair", seen=f"{seen.seq}.{seen.seal}", note="went on before it")
    assert done.status_code == 303, done.text
    assert ann.get("/api/v1/runs/q").status_code == 200
    assert "FellBack" in [one.kind for one in sf.get_run("q").entries()]


def test_a_full_store_says_so_and_keeps_what_was_typed(ann, monkeypatch):
    seen = ann.seen()
    store = ann.console.runtime().store

    def full(*_):
        raise sf.StoreFull("no space left")

    monkeypatch.setattr(store, "append", full)
    form = {"address": "pay#1", "how": "failed", "seen": f"{seen['seq']}.{seen['seal']}", "note": "kept words"}
    found = ann.send("/runs/r/settle", back="/runs/r?do=settle&call=pay%231", **form)

    assert found.status_code == 507
    assert "kept words" in found.text
    assert ann.say(do="cancel", seen=seen).status_code == 507
