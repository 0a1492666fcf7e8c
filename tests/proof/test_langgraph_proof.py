"""The Saver of LangGraph with full counts: flipped bits, and 400 growing steps against LangGraph's own."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.proof
pytest.importorskip("langgraph.checkpoint.sqlite", reason="needs the packages of tests/suites/langgraph")


def test_none_of_500_flipped_bits_is_silently_wrong(tmp_path, caplog):
    from tests.langgraph_threads import Flips

    flips = Flips(tmp_path)
    for seed in range(500):
        flips.flip(seed, caplog)

    print(flips.outcomes)  # noqa: T201 - the figures for docs/langgraph.md
    assert not [one for one in flips.outcomes if one.startswith("WRONG")]


def test_400_growing_steps_take_a_fortieth_of_the_bytes_and_little_more_cpu(tmp_path):
    """At most 1/40 of SqliteSaver's bytes, at most 1.5 times its CPU; the best of three, for a busy machine."""
    import sqlite3

    from langgraph.checkpoint.sqlite import SqliteSaver

    from surefoot.langgraph import Saver
    from surefoot.store.open import close_all
    from tests.langgraph_growth import grow

    ours, theirs = [], []
    for number in range(3):
        folder = tmp_path / str(number)
        folder.mkdir()
        connection = sqlite3.connect(folder / "theirs.db", check_same_thread=False)
        theirs.append(grow(SqliteSaver(connection), steps=400))
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.close()
        ours.append(grow(Saver(store=f"sqlite:///{folder}/ours.db"), steps=400))
        close_all()

    size = sum(path.stat().st_size for path in folder.glob("ours.db*") if path.is_file())
    print(f"{size} against {(folder / 'theirs.db').stat().st_size} bytes, {min(ours):.2f} against {min(theirs):.2f} s")  # noqa: T201
    assert size * 40 <= (folder / "theirs.db").stat().st_size
    assert min(ours) <= 1.5 * min(theirs)


@pytest.mark.parametrize("is_async", [False, True], ids=["blocking", "async"])
@pytest.mark.parametrize("durability", ["sync", "async"])
def test_a_guarded_graph_that_is_killed_20_times_does_nothing_twice(tmp_path, durability, is_async):
    from tests.langgraph_guard import killed

    struck = [killed(tmp_path / str(seed), seed, durability, is_async=is_async) for seed in range(20)]

    print(f"{durability}: killed {sum(struck)} times in 20 graphs")  # noqa: T201 - the figures for docs/langgraph.md
    assert sum(struck) >= 20
