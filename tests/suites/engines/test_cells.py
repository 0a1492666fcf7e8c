"""Cells: two databases behind one namespace. The id of a run says which one has it."""

from __future__ import annotations

from collections import Counter

import flows
import pytest
from stage import Place, at, wait_until
from test_temporal import Crew, made

import surefoot as sf
from surefoot.temporal import cell_of
from surefoot.temporal.cells import chosen

RUNS = [f"run-{n}" for n in range(12)]


@pytest.mark.timeout(300)
def test_each_run_is_driven_in_its_cell_with_its_children(cluster, database, ledger, tmp_path, monkeypatch):
    """One client starts runs in both; each worker has one database, and sees no run of the other."""
    stores = {"north": database.database(), "south": database.database()}
    namespace = cluster.namespace()
    url = cluster.url(namespace, heartbeat="2s", sweep="off")
    monkeypatch.setenv("SUREFOOT_CELLS", " ".join(f"{name}={store}" for name, store in stores.items()))
    assert {"north", "south"} == {cell_of(run).name for run in RUNS}
    crews = {name: Crew(Place("Temporal", store, url, namespace), tmp_path) for name, store in stores.items()}
    try:
        with at(Place("Temporal", "", url, namespace)):
            for run in RUNS:
                flows.approving_parent.using(store=cell_of(run).store).start(run, 5)
            for crew in crews.values():
                crew.start()
            for run in RUNS:
                here = sf.get_run(run, store=cell_of(run).store)
                wait_until(lambda here=here: here.status == "waiting")
                here.answer("approve#1", True)
            for run in RUNS:
                assert "ch_5" == sf.get_run(run, store=cell_of(run).store).result("120s")
            for name, store in stores.items():
                found = {each.id for each in sf.runs(store=store)}
                mine = {run for run in RUNS if cell_of(run).name == name}
                assert mine | {f"{run}/child" for run in mine} == found
            assert all(made(ledger, f"{run}/child")["charge 5"] == 1 for run in RUNS)
            memo = cluster.described(namespace, RUNS[0])["workflowExecutionInfo"]["memo"]["fields"]
            assert "cell" in memo
    finally:
        for crew in crews.values():
            crew.close()


def test_with_one_cell_more_only_its_own_runs_are_elsewhere():
    """A hash that moved every run would lose them all."""
    runs = [f"order-{n}" for n in range(3000)]
    before = {run: chosen(run, ["a", "b", "c"]) for run in runs}
    after = {run: chosen(run, ["a", "b", "c", "d"]) for run in runs}
    assert {"d"} == {after[run] for run in runs if after[run] != before[run]}
    assert all(600 < count < 900 for count in Counter(after.values()).values())


@pytest.mark.parametrize("wrong", ["north", "north=", "a=memory: a=memory:", "a@b=memory:"])
def test_a_list_of_cells_that_is_none_is_refused(wrong, monkeypatch):
    monkeypatch.setenv("SUREFOOT_CELLS", wrong)
    with pytest.raises(sf.UsageError, match="SUREFOOT_CELLS"):
        cell_of("run")
