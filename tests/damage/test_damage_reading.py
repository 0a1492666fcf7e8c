"""Whatever happens to a store's files, a reader gets exactly what was written, or is told; never less in silence."""

from __future__ import annotations

import pytest

from surefoot.errors import CodeChanged, RunConflict, UsageError
from tests.damage import stores
from tests.damage.reading import sweep, truth

pytestmark = pytest.mark.timeout(180)  # seconds on an idle machine, but each case is a store of its own

ORIGINALS = tuple(stores.LIVES)
FLIPS = 700
"""For each of three originals: more than the 2,000 that are asked for. `make proof` does 21,000."""


@pytest.fixture(params=ORIGINALS)
def original(request, originals):
    return originals(request.param)


@pytest.fixture
def swept(original, folder, count):
    """Do these faults, check that none went unnoticed, and count."""
    expected = truth(original, folder / "truth")

    def sweep_and_count(what, faults):
        tally = sweep(faults, expected, folder / "damaged")
        count(f"{original.name} store, {what}", tally.line())
        tally.check()
        return tally

    return sweep_and_count


def test_flipped_bit_is_noticed_or_harmless(original, swept):
    """Spread over database, log and anchor; the same seed finds the same bits."""
    tally = swept("bits flipped one at a time", stores.flips(original, FLIPS, "test"))

    assert tally.cases >= FLIPS
    assert tally.said.total() > FLIPS / 5, "most of a store is evidence; a sweep that finds little looks at nothing"
    assert tally.same.total() > 0


def test_lost_tail_is_noticed_or_harmless(original, swept):
    """A copy that broke off, a log that lost its end."""
    tally = swept("tails cut off", stores.truncations(original, 40, "test"))

    assert tally.said.total() > 10


def test_block_that_never_reached_the_disk_is_noticed_or_harmless(original, swept):
    """Every block of the database and of the anchor, and a part of those of the log."""
    faults = [fault for n, fault in enumerate(stores.zeroed(original)) if n % 4 == 0 or "-wal" not in fault.what]
    tally = swept("blocks of 512 and 4096 bytes zeroed", faults)

    assert tally.said.total() > 50


def test_page_written_to_the_place_of_another_is_noticed_or_harmless(original, swept):
    """Each page is sound by itself, which is why SQLite does not mind."""
    tally = swept("pages misplaced", stores.misplaced(original, 60, "test"))

    assert tally.said.total() > 0


def test_older_copy_and_missing_file_are_noticed_or_harmless(original, swept):
    """A backup put back in part, a side file tidied away. That nothing is left is never the answer."""
    tally = swept("older copies, and files deleted", stores.replaced(original))

    assert tally.said.total() > 5


def test_rows_changed_by_another_hand_are_noticed(original, swept, folder):
    """Records swapped, moved, replaced by those of another run; parts deleted, altered, swapped, renamed."""
    tally = swept("rows swapped, replaced, deleted or altered", stores.rows(original, folder / "rows", 12, "test"))

    assert tally.same.total() < tally.cases / 20, "nearly every one of these rows counts"
    assert tally.said.total() > 120


def test_run_is_never_listed_under_another_name(originals, folder):
    """The name stands in several places; where one of them changed, the list says so or is still right."""
    original = originals("closed")
    expected = truth(original, folder / "truth")
    whole = original.files[""]
    places = [at for at in range(len(whole)) if whole.startswith(b"first", at)]
    faults = [
        stores.Fault("name altered", str(at), {**original.files, "": whole[:at] + b"farst" + whole[at + 5 :]})
        for at in places
    ]
    tally = sweep(faults, expected, folder / "damaged")

    assert tally.cases > 10
    tally.check()
    assert tally.said.total() > 0


def test_sweep_sees_what_it_must_not_see(originals, folder):
    """A store that lost a run together with every trace of it, as no single fault does: the judge must not be blind."""
    original = originals("closed")
    expected = truth(original, folder / "truth")
    everything = [(f"DELETE FROM {table} WHERE run = 'first'", ()) for table in ("entries", "heads", "runs")]
    newest = "(SELECT max(seq) FROM entries WHERE run = 'first')"
    cut_off = f"DELETE FROM entries WHERE run = 'first' AND seq = {newest}"
    end = f"SELECT seq, seal FROM entries WHERE run = 'first' AND seq = {newest}"
    last = [(cut_off, ()), (f"UPDATE heads SET (seq, seal) = ({end}) WHERE run = 'first'", ())]
    forged = stores.Fault("forged", "first never was", original.files, tuple(everything))
    shorter = stores.Fault("forged", "first ended earlier", original.files, tuple(last))
    tally = sweep([forged, shorter], expected, folder / "damaged")

    assert (len(tally.fresh), len(tally.silent)) == (1, 1)


@pytest.mark.parametrize("blame", [RunConflict, UsageError, CodeChanged])
def test_sweep_takes_no_blame_of_the_user_for_an_answer(originals, folder, monkeypatch, blame):
    """Told that the id is taken by other arguments, a person looks for the mistake anywhere but on the disk."""
    original = originals("closed")
    expected = truth(original, folder / "truth")

    def load(*_):
        raise blame("it is your fault")

    monkeypatch.setattr("surefoot.engine.process.journal.load", load)
    tally = sweep([stores.Fault("flip", "a bit", original.files)], expected, folder / "damaged")

    assert (len(tally.silent), tally.said.total()) == (1, 0)
