"""The failure stories of LangGraph with `guard`: nothing is done twice, and nothing that was done is forgotten.

`test_damage.py`, `test_lines.py` and `test_upkeep.py` tell them of the Saver alone.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections import Counter
from pathlib import Path

import pytest
from langgraph.graph import END, START, StateGraph

import surefoot as sf
from surefoot.langgraph import guard
from surefoot.store.open import close_all, open_store
from tests.langgraph_guard import THREAD, WANTED, Broken, Order, act, graph, lines
from tests.langgraph_stories import DONE, GIVEN, Damaged, broken, outcome, saver

ROOT = Path(__file__).parents[3]
FLIPS = 40
NEWEST = "(SELECT max(seq) FROM entries WHERE kind = 70)"
OF_THREAD = "run LIKE '%thread%order-81'"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The ledger is in it."""
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    close_all()


@pytest.fixture
def database(folder):
    broken(folder / "store.db")
    return folder / "store.db"


# --- bits and rows ---------------------------------------------------------------------------------------------------


@pytest.mark.timeout(240)
def test_a_flipped_bit_never_has_an_effect_done_again(folder):
    """In the newest checkpoint, in the heads, in what the nodes have recorded. The proof flips 500."""
    damaged = Damaged(folder)
    places = damaged.places

    for seed in range(FLIPS):
        damaged.flip(seed, places)

    assert not [one for one in damaged.outcomes if one.startswith("WRONG")], damaged.outcomes


@pytest.mark.timeout(240)
def test_a_lost_row_never_has_an_effect_done_again(folder):
    """Each record of the thread and of the runs of its nodes, one at a time."""
    damaged = Damaged(folder)

    for run, seq in damaged.rows():
        damaged.changed(f"DELETE FROM entries WHERE run = {quoted(run)} AND seq = {seq}")

    assert not [one for one in damaged.outcomes if one.startswith("WRONG")], damaged.outcomes


def quoted(text):
    """For SQL."""
    return f"CAST(x'{text.encode().hex()}' AS TEXT)"


@pytest.mark.parametrize("how", ["damaged", "lost"])
def test_a_graph_that_fell_back_does_not_come_to_a_node_under_another_name(folder, how):
    """The checkpoint that the node was executed for is gone: from the one before, LangGraph makes another one."""
    damaged = Damaged(folder)
    change = "DELETE FROM entries" if how == "lost" else "UPDATE entries SET body = CAST(body || ' ' AS BLOB)"

    assert damaged.changed(f"{change} WHERE seq = {NEWEST} AND {OF_THREAD}") == "stopped: RunConflict"
    assert damaged.changed() == "right"


def test_a_person_says_that_what_a_lost_node_did_counts(folder):
    damaged = Damaged(folder)
    damaged.changed(f"UPDATE entries SET body = CAST(body || ' ' AS BLOB) WHERE seq = {NEWEST} AND {OF_THREAD}")
    app = graph(saver(folder / "damaged" / "store.db"))
    with pytest.raises(sf.RunConflict, match='as_node="charge"'):
        app.invoke(None, THREAD)

    app.invoke(None, app.update_state(THREAD, {"log": WANTED[:6]}, as_node="charge"))

    assert Counter(lines()) == Counter(f"act {name}" for name in WANTED)


def test_a_person_says_that_everything_is_to_be_done_again(folder):
    damaged = Damaged(folder)
    damaged.changed(f"UPDATE entries SET body = CAST(body || ' ' AS BLOB) WHERE seq = {NEWEST} AND {OF_THREAD}")
    app = graph(saver(folder / "damaged" / "store.db"))

    assert app.invoke(None, app.get_state(THREAD).config)["log"] == ["in", *WANTED]
    assert Counter(lines())["act charge0"] == 2


def test_a_damaged_checkpoint_that_the_graph_has_passed_stops_nothing(folder):
    damaged = Damaged(folder)

    assert (
        damaged.changed(f"UPDATE entries SET body = CAST(body || ' ' AS BLOB) WHERE seq = 3 AND {OF_THREAD}") == "right"
    )


def test_a_lost_checkpoint_of_a_subgraph_does_not_have_its_nodes_executed_again(folder):
    """The outer graph stands where it stood, and the inner one would begin anew."""

    def app(breaks):
        def inner(_):
            done = {"log": [act("inner")]}
            if breaks:
                raise Broken
            return done

        sub = StateGraph(Order).add_node("first", lambda _: {"log": [act("first")]}).add_node("inner", inner)
        sub = sub.add_edge(START, "first").add_edge("first", "inner").add_edge("inner", END).compile()
        outer = StateGraph(Order).add_node("sub", sub).add_edge(START, "sub").add_edge("sub", END)
        return guard(outer.compile(checkpointer=saver(folder / "sub.db")))

    with pytest.raises(Broken):
        app(breaks=True).invoke(GIVEN, THREAD, durability="sync")
    close_all()
    import apsw

    connection = apsw.Connection(str(folder / "sub.db"))
    connection.execute(f"UPDATE entries SET body = CAST(body || ' ' AS BLOB) WHERE seq = {NEWEST} AND {OF_THREAD}")
    connection.close()

    with pytest.raises(sf.RunConflict, match="cannot be read"):
        app(breaks=False).invoke(None, THREAD)
    assert lines() == ["act first", "act inner"]


# --- two processes ---------------------------------------------------------------------------------------------------


PROCESS = """
    import sys, json
    import surefoot as sf
    from tests import langgraph_guard as g
    from surefoot.langgraph import Saver
    app = g.graph(Saver(store=sys.argv[1]))
    print("ready", flush=True)
    sys.stdin.readline()
    try:
        print(json.dumps(app.invoke(None, g.THREAD)["log"]))
    except sf.Fenced as error:
        print(json.dumps("fenced"))
"""


def process(database):
    command = [sys.executable, "-c", textwrap.dedent(PROCESS), f"sqlite:///{database}"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)


@pytest.mark.timeout(240)
def test_two_processes_on_one_thread_do_each_effect_once(database):
    """A deploy that overlaps, or a chat server that got the same message twice: both go on with the thread at once."""
    with process(database) as one, process(database) as other:
        for each in (one, other):
            assert each.stdout.readline() == "ready\n"
        for each in (one, other):
            each.stdin.write("go\n")
            each.stdin.flush()
        told = [json.loads(each.communicate(timeout=200)[0].splitlines()[-1]) for each in (one, other)]

    assert ["in", *WANTED] in told
    assert all(one in ("fenced", ["in", *WANTED]) for one in told)
    assert Counter(lines()) == Counter(f"act {name}" for name in WANTED)


# --- time travel and edits -------------------------------------------------------------------------------------------


def test_going_on_from_the_newest_by_name_is_going_on(database):
    """`get_state(…).config` names it, and LangGraph would make a fork of it, under other names."""
    app = graph(saver(database))

    assert app.invoke(None, app.get_state(THREAD).config)["log"] == ["in", *WANTED]
    assert Counter(lines()) == Counter(f"act {name}" for name in WANTED)


def test_time_travel_is_stopped_while_a_node_is_not_over_and_is_a_fork_afterwards(database):
    """What is named is meant: from there everything is done again. But not while nobody knows what was done."""
    app = graph(saver(database))
    (early,) = [state for state in app.get_state_history(THREAD) if state.next == ("charge",)]
    (first,) = [state for state in app.get_state_history(THREAD) if state.next == ("reserve",)]
    with pytest.raises(sf.RunConflict, match="a checkpoint that was named"):
        app.invoke(None, first.config)
    assert lines() == DONE
    app.invoke(None, THREAD)

    assert app.invoke(None, early.config)["log"] == ["in", *WANTED]
    assert Counter(lines()) == Counter(f"act {name}" for name in [*WANTED, *WANTED[3:]])


def test_an_edit_of_the_state_does_not_have_a_node_executed_again_that_is_not_over(database):
    """`update_state` makes a checkpoint, and the node that is next has another name in it."""
    app = graph(saver(database))
    app.update_state(THREAD, {"log": ["edited"]}, as_node="reserve")

    with pytest.raises(sf.RunConflict, match="update_state"):
        app.invoke(None, THREAD)
    assert lines() == DONE
    (run,) = [
        run for run in sf.runs(labels={"thread": "order-81"}, store=f"sqlite:///{database}") if "charge" in run.id
    ]
    run.cancel()
    app.invoke(None, THREAD)
    assert Counter(lines())["act charge0"] == 2


# --- a full disk -----------------------------------------------------------------------------------------------------


def test_a_full_disk_at_any_moment_loses_and_repeats_nothing(folder):
    """The limit of the database is set so that it strikes later and later, until it does not strike any more."""
    database, struck = folder / "store.db", 0
    graph(saver(database)).get_state(THREAD)
    store = open_store(f"sqlite:///{database}", create=True)
    store._open_writer()
    ((pages,),) = store._execute("PRAGMA page_count").fetchall()
    given = GIVEN
    for more in range(200):
        store = open_store(f"sqlite:///{database}", create=True)
        store._open_writer()
        store._execute(f"PRAGMA max_page_count = {pages + more}")
        app = graph(saver(database))
        try:
            found = app.invoke(given, THREAD, durability="sync")
        except sf.SurefootError:
            struck += 1
            assert max(Counter(lines()).values(), default=1) == 1
        else:
            break
        finally:
            close_all()
        given = None if app.get_state(THREAD).created_at else GIVEN
        close_all()

    assert struck > 2
    assert found["log"] == ["in", *WANTED]
    assert Counter(lines()) == Counter(f"act {name}" for name in WANTED)


# --- changed code ----------------------------------------------------------------------------------------------------


def renamed(database, *, node="charge", key="log"):
    """The graph after a deploy: a node or a key of the state has another name."""
    from tests import langgraph_guard

    shape = type("Order", (dict,), {"__annotations__": {key: Order.__annotations__["log"]}})
    builder = StateGraph(shape if key != "log" else Order)
    names = ["reserve", node, "mail"]
    for name, old in zip(names, langgraph_guard.NODES, strict=True):
        builder.add_node(
            name, lambda _, old=old: {key: [act(f"{old}{number}") for number in range(langgraph_guard.EACH)]}
        )
    for before, after in zip([START, *names], [*names, END], strict=True):
        builder.add_edge(before, after)
    return guard(builder.compile(checkpointer=saver(database)))


def test_a_node_that_was_renamed_while_it_was_not_over_is_stopped(database):
    """LangGraph ends the graph early, without a word; nobody would ever look at what the node did."""
    with pytest.raises(sf.RunConflict, match="no such node any more"):
        renamed(database, node="pay").invoke(None, THREAD)
    assert lines() == DONE

    assert outcome(database) == "right"


def test_a_key_that_was_renamed_repeats_nothing(database):
    """LangGraph drops its value, without a word; what is on record is answered all the same."""
    renamed(database, key="entries").invoke(None, THREAD)

    assert Counter(lines()) == Counter(f"act {name}" for name in WANTED)


def test_an_effect_that_is_called_with_other_values_is_stopped(folder):
    """The key that its argument came from was renamed: it is not the effect that is on record."""

    class Old(dict):
        __annotations__ = {"order": str}

    class New(dict):
        __annotations__ = {"number": str}

    def app(shape, breaks, key):
        def node(state):
            act(f"refund {state.get(key)}")
            if breaks:
                raise Broken
            return {}

        builder = StateGraph(shape).add_node("node", node).add_edge(START, "node").add_edge("node", END)
        return guard(builder.compile(checkpointer=saver(folder / "store.db")))

    with pytest.raises(Broken):
        app(Old, breaks=True, key="order").invoke({"order": "o-7"}, THREAD, durability="sync")
    with pytest.raises(sf.CodeChanged):
        app(New, breaks=False, key="number").invoke(None, THREAD)
    assert lines() == ["act refund o-7"]
