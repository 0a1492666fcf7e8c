"""A bit of SQLite's index is flipped: the entries are whole, and not found. Nothing is written over that."""

from __future__ import annotations

import apsw
import pytest

import surefoot as sf
from surefoot.store.open import close_all

NAME = "named-in-the-index"


class Cut(BaseException):
    """The process ends here, as far as the run can tell."""


def flip_in_index(path, name, nth):
    """One bit of the name under which the n-th entry is found."""
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    sql = "SELECT rootpage FROM sqlite_master WHERE name = 'sqlite_autoindex_entries_1'"
    ((page,),) = connection.execute(sql).fetchall()
    ((size,),) = connection.execute("PRAGMA page_size").fetchall()
    connection.close()
    content = bytearray(path.read_bytes())
    at = page * size
    for _ in range(nth):  # Those that came first are at the end of the page.
        at = content.rindex(name.encode(), (page - 1) * size, at)
    content[at] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("nth", [1, 2, 3, 4])
def test_a_run_whose_entries_are_hidden_by_the_index_goes_on_with_all_of_them(own_folder, ledger, nth):
    """It fell back to before the hidden entry, and wrote where nobody finds it either."""

    @sf.effect
    def pay(to: str) -> str:
        ledger.write(f"pay {to}")
        return f"paid {to}"

    @sf.workflow(name="wf")
    def old():
        pay("ada")
        raise Cut

    @sf.workflow(name="wf")
    def new():
        return [pay("ada"), pay("bob")]

    with pytest.raises(Cut):
        old.run(NAME)
    close_all()
    flip_in_index(own_folder / ".surefoot" / "runs.db", NAME, nth)

    assert new.run(NAME) == ["paid ada", "paid bob"]
    assert ledger.lines == ["pay ada", "pay bob"]
    assert [call.address for call in sf.get_run(NAME).steps()] == ["pay#1", "pay#2"]
    assert sf.get_run(NAME).state().fallbacks == ()
