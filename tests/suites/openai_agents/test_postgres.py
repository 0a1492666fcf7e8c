"""An agent on PostgreSQL: the same promises as in a file, with a real server."""

from __future__ import annotations

import pytest

import surefoot as sf
from surefoot.store.open import close_all
from tests import postgres
from tests.suites.openai_agents.stage import addresses, call, counted, killed_at
from tests.suites.openai_agents.test_stories import STREAMED, flow, one_agent

pytestmark = pytest.mark.timeout(240)  # A server is made and started.


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with postgres.serving(tmp_path_factory.mktemp("postgres")) as running:
        yield running


@pytest.fixture(autouse=True)
def _store(server, monkeypatch):
    close_all()
    monkeypatch.setenv("SUREFOOT_STORE", server.emptied("agents"))
    yield
    close_all()


@STREAMED
def test_killed_in_one_of_three_parallel_tools_the_others_are_not_done_again(streamed):
    calls = [call("charge", number, card=f"c{number}", cents=number) for number in (1, 2, 3)]
    run = flow(one_agent(*calls), streamed=streamed)
    killed_at("charge c2", run)
    with pytest.raises(sf.InDoubt) as doubt:
        run()
    for stop in doubt.value.stops:
        number = stop.address[len("[call_")]
        sf.get_run("r").settle(stop.address, happened=f"charged c{number} {number}", by="ann")

    assert run() == run() == "charged c1 1; charged c2 2; charged c3 3"
    assert max(counted()[f"charge c{number}"] for number in (1, 2, 3)) == 1
    assert counted()["model 0"] == 1


@pytest.mark.parametrize("at", ["model 0", "model 1", "refund a"])
def test_killed_anywhere_else_it_goes_on_by_itself(at):
    run = flow(one_agent(call("refund", 1, card="a")))
    killed_at(at, run)

    assert run() == "refunded a"
    assert counted()["refund a"] == (2 if at == "refund a" else 1)
    assert addresses() == ["[billing]/model#1", "[call_1]/refund#1", "[billing]/model#2"]
