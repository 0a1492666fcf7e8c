"""The loop in Temporal by itself, with a drive that only pretends; and controls: what is broken on purpose is noticed."""

from __future__ import annotations

import asyncio
import json
import types
from pathlib import Path
from typing import Any

import flows
import pytest
from stage import Place, wait_until
from temporalio import activity
from temporalio.client import Client, WorkflowFailureError, WorkflowHistory
from temporalio.exceptions import is_cancelled_exception
from temporalio.worker import Replayer, UnsandboxedWorkflowRunner, Worker

import surefoot as sf
from surefoot.engine.process import engines
from surefoot.engine.worker.stand import Stand
from surefoot.temporal import bell, names, workflow
from surefoot.temporal.pages import shown
from tests.working import ended

HISTORIES = sorted(Path(__file__).parent.glob("histories/*.json"))
HEARD = "if self._rings == heard and not self._cancels:"


def forgetful() -> Any:
    """The same loop, but it looks only at rings that come while it waits."""
    source = Path(workflow.__file__).read_text()
    assert HEARD in source
    module = types.ModuleType("forgetful")
    exec(source.replace(HEARD, "heard = self._rings\n            if True:"), vars(module))
    return module.RunLoop


class Pretence:
    """The first drive is rung for before it ends, and says that the run waits; the next one says that it is done."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.drives = 0

    @activity.defn(name=names.DRIVE)
    async def drive(self, order: dict[str, Any]) -> dict[str, Any]:
        self.drives += 1
        if self.drives == 1:
            await self.client.get_workflow_handle(order["run"]).signal(names.BELL)
        status = "waiting" if self.drives == 1 else "done"
        return shown(Stand(order["run"], status), engines.opened(), attributes=False)


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("loop", "hears"), [(workflow.RunLoop, True), (forgetful(), False)], ids=["ours", "forgetful"])
def test_a_ring_during_a_drive_is_not_lost(temporal, cluster, loop, hears):
    """The answer comes when the drive is about to end. Without the counter in the loop the run would wait for ever."""

    async def told() -> int:
        client = await Client.connect(cluster.address, namespace=temporal.namespace)
        pretence = Pretence(client)
        async with Worker(
            client, task_queue="surefoot", workflows=[loop], activities=[pretence.drive], max_cached_workflows=0,
            max_concurrent_workflow_task_polls=1, workflow_runner=UnsandboxedWorkflowRunner(),
        ):  # fmt: skip
            await bell.begin(client, bell.Rung("run", "flow", "surefoot"))
            handle = client.get_workflow_handle("run")
            if hears:
                await handle.result()
                return pretence.drives
            while not await stands_still(client):  # noqa: ASYNC110 - it happens in the server
                await asyncio.sleep(0.05)
            before = pretence.drives
            await bell.ring(client, bell.Rung("run", "flow", "surefoot"))
            await handle.result()
            assert before == 1
            return pretence.drives

    assert 2 == asyncio.run(told())


class Late:
    """A request to cancel is written down when the first drive has looked already, and before it ends."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.drives = 0
        self.written = asyncio.Event()

    @activity.defn(name=names.DRIVE)
    async def drive(self, order: dict[str, Any]) -> dict[str, Any]:
        self.drives += 1
        if self.drives == 1:
            await self.client.get_workflow_handle(order["run"]).cancel()
            await self.written.wait()
        return shown(
            Stand(order["run"], "waiting" if self.drives == 1 else "cancelled"), engines.opened(), attributes=False
        )

    @activity.defn(name=names.CANCEL)
    async def cancel(self, order: dict[str, Any]) -> None:
        self.written.set()


@pytest.mark.timeout(300)
def test_a_request_to_cancel_that_a_drive_is_too_late_for_is_not_lost(temporal, cluster):
    """The drive would say that the run waits for an answer, and the run would wait for one although it is cancelled."""

    async def told() -> tuple[int, bool]:
        client = await Client.connect(cluster.address, namespace=temporal.namespace)
        late = Late(client)
        async with (
            Worker(client, task_queue=names.brief_queue("surefoot"), activities=[late.cancel]),
            Worker(
                client, task_queue="surefoot", workflows=[workflow.RunLoop], activities=[late.drive],
                max_cached_workflows=0, max_concurrent_workflow_task_polls=1,
                workflow_runner=UnsandboxedWorkflowRunner(),
            ),
        ):  # fmt: skip
            await bell.begin(client, bell.Rung("run", "flow", "surefoot"))
            with pytest.raises(WorkflowFailureError) as ended:
                await client.get_workflow_handle("run").result()
            return late.drives, is_cancelled_exception(ended.value.cause)

    assert (2, True) == asyncio.run(told())


async def stands_still(client: Client) -> bool:
    """The first drive is over, and the workflow task that came of it."""
    events = [event async for event in client.get_workflow_handle("run").fetch_history_events()]
    kinds = [event.WhichOneof("attributes") for event in events]
    return (
        "activity_task_completed_event_attributes" in kinds
        and kinds[-1] == "workflow_task_completed_event_attributes"
    )  # fmt: skip


@pytest.mark.parametrize("kept", HISTORIES, ids=lambda path: path.stem)
def test_kept_histories_are_replayed_by_the_loop_of_today(kept):
    """Runs of an earlier release are open when a new one comes: its loop has to give the same commands."""
    history = WorkflowHistory.from_json(kept.stem, json.loads(kept.read_text()))
    replayer = Replayer(workflows=[workflow.RunLoop], workflow_runner=UnsandboxedWorkflowRunner())
    asyncio.run(replayer.replay_workflow(history))


def test_there_are_kept_histories():
    assert len(HISTORIES) >= 4


@pytest.mark.timeout(300)
def test_without_bell_and_sweep_a_run_is_not_driven(temporal, cluster, ledger):
    """The control of the stories: they would notice an engine that drives by luck."""
    with sf.Worker():
        with engines.opened().quiet("unheard"):
            flows.plain.start("unheard", 5)
        flows.plain.start("heard", 5)
        wait_until(ended("heard"))
        assert "queued" == sf.get_run("unheard").status
        engines.opened().ring(sf.get_run("unheard").row or row("unheard"), sf.get_run("unheard").runtime.store.url)
        wait_until(ended("unheard"))


def row(run: str) -> Any:
    return next(each.row for each in sf.runs() if each.id == run)


def test_a_cluster_is_named_by_a_url_without_secrets():
    from surefoot.temporal.address import parsed

    found = parsed("temporals://temporal.example:7000/payments?heartbeat=2s&sweep=off&cell=north&mirror=values&polls=3")
    assert ("temporal.example:7000", "payments", True, "north", True, 2.0, None, 3) == (
        found.target, found.namespace, found.tls, found.cell, found.mirror, found.heartbeat_seconds,
        found.sweep_seconds, found.polls,
    )  # fmt: skip
    assert ("localhost:7233", "default", 30.0) == (
        (short := parsed("temporal://localhost")).target, short.namespace, short.sweep_seconds,
    )  # fmt: skip
    for wrong in (
        "temporal://",
        "temporal://u:p@h/n",
        "temporal://h/n?colour=red",
        "temporal://h/a/b",
        "temporal://h/n?polls=0",
    ):
        with pytest.raises(sf.UsageError):
            parsed(wrong)


def test_a_worker_without_a_named_store_is_refused(temporal: Place, monkeypatch):
    """Workers on several hosts have to mean the same store."""
    monkeypatch.delenv("SUREFOOT_STORE")
    with pytest.raises(sf.UsageError, match="name the store"):
        sf.Worker()
