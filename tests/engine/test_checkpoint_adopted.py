"""A checkpoint in a store that was adopted: it says that it may be older than it was, and no number is given twice."""

from __future__ import annotations

import json
import logging
import shutil
from pathlib import Path

import apsw
import pytest

import surefoot as sf
from surefoot.cli.main import main
from surefoot.engine.process.clock import SystemClock
from surefoot.engine.upkeep import adoption
from surefoot.store import generation_journal
from surefoot.store.contract import RESERVED
from surefoot.store.open import close_all, open_regressed

URL = "sqlite:///runs.db"
NAME = "nightly"


def checkpoint(name=NAME):
    return sf.Checkpoint(name, store=URL)


def saved(count, name=NAME):
    """So many more generations; their numbers."""
    ckpt = checkpoint(name)
    state = ckpt.load() or {"page": 0}
    return [ckpt.save({"page": state["page"] + n}) for n in range(1, count + 1)]


def copied(to):
    close_all()
    shutil.copy("runs.db", to)


def put_back(copy):
    close_all()
    shutil.copy(copy, "runs.db")
    for side in ("-wal", "-shm"):
        Path(f"runs.db{side}").unlink(missing_ok=True)


def adopt(reason="restored"):
    store = open_regressed(URL)
    adoption.adopt(store, SystemClock(), reason=reason, by="ada")
    store.close()


@pytest.fixture
def restored():
    """Three generations were copied, nine had been saved; the copy is in its place again, and adopted."""
    saved(3)
    copied("old.db")
    assert saved(6) == [4, 5, 6, 7, 8, 9]
    put_back("old.db")
    adopt()


def warnings(caplog, ckpt=None):
    caplog.clear()
    with caplog.at_level(logging.WARNING, "surefoot"):
        state = (ckpt or checkpoint()).load()
    return state, caplog.text


def test_an_older_generation_is_never_given_in_silence(restored, caplog):
    """Six generations are gone, and the loop would do their work again as if nothing had been."""
    state, said = warnings(caplog)

    assert state == {"page": 3}
    assert "checkpoint nightly: fell back to an older state" in said
    assert "adopted" in said
    assert "generation 3" in said


def test_it_is_said_until_something_is_saved_on_top(restored, caplog):
    """Who saves has loaded, and so was told."""
    assert "fell back" in warnings(caplog)[1]
    assert "fell back" in warnings(caplog)[1]
    saved(1)
    close_all()

    assert warnings(caplog)[1] == ""


def test_no_number_is_given_twice(restored):
    """Numbers 4 to 9 are in somebody's log, for states that are lost."""
    first, second = saved(2)

    assert first > 1000
    assert second == first + 1


def test_no_number_is_given_twice_however_often_old_copies_come_back(restored, monkeypatch):
    """The same copy again, and one that was made after an adoption: what went before is not known to either."""
    monkeypatch.setattr(generation_journal, "_JUMP", 20)  # a smaller step, so that the numbers could meet soon
    given = [*range(1, 10), *saved(4)]
    copied("newer.db")
    for number, copy in enumerate(["newer.db", "old.db", "newer.db", "old.db", "old.db"]):
        given += saved(3 + number % 2)
        put_back(copy)
        adopt(f"again {number}")
    given += saved(100)

    assert len(set(given)) == len(given)


def test_a_checkpoint_that_the_older_state_does_not_know_does_not_begin_in_silence(caplog):
    """None means that nothing was ever saved. Here nobody can say that."""
    saved(1)
    copied("old.db")
    assert saved(3, "later") == [1, 2, 3]
    put_back("old.db")
    adopt()

    later = checkpoint("later")
    state, said = warnings(caplog, later)

    assert state is None
    assert "nothing under this name" in said
    assert later.save({"page": 1}) > 1000
    assert warnings(caplog, checkpoint("later")) == ({"page": 1}, "")


def test_what_the_store_knew_is_not_shown_as_a_witness(restored):
    """It is our own note, and must neither be seen nor made by others."""
    saved(1)

    assert [one.watch for one in checkpoint().generations()] == [{}] * 4

    class Forger:
        name = f"{RESERVED}store"

        def fingerprint(self):
            return {"adopted": "x"}

    ckpt = checkpoint()
    ckpt.load()
    with pytest.raises(sf.UsageError, match="control character"):
        ckpt.save({"page": 1}, watch=[Forger()])


def test_an_adoption_whose_record_is_damaged_is_not_forgotten(restored, caplog):
    """It is there, whatever it says."""
    saved(1, "another")  # the store does not open if its very last record is damaged
    close_all()
    connection = apsw.Connection("runs.db")
    connection.execute("UPDATE entries SET body = x'00', seal = 'text' WHERE run = ?", (f"{RESERVED}store",))
    connection.execute("UPDATE heads SET seal = 'text' WHERE run = ?", (f"{RESERVED}store",))
    connection.close()

    assert "fell back" in warnings(caplog)[1]
    assert saved(1)[0] > 1000


def test_the_price_names_the_checkpoints(capsys):
    """Whoever accepts the loss should know what is lost."""
    saved(3)
    saved(1, "another")
    copied("old.db")
    saved(6)
    put_back("old.db")

    assert main(["adopt", "--reason", "restored", "--yes", "--json", "--store", URL]) == 0

    out, err = capsys.readouterr()
    assert json.loads(out)["checkpoints"] == ["another", "nightly"]
    assert "2 checkpoints may have lost generations" in err
    assert "  nightly\n" in err
