"""The same stories with every engine: the same results, the same calls of the world, the same entries."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import flows
import pytest
from stage import ENGINES, at, place_of

import surefoot as sf
from tests.ledger import ask, ledger_process
from tests.working import wait_until

PASSING = frozenset(
    {
        "claim",
        "folder",
        "started",
        "worker",
        "host",
        "pid",
        "at",
        "key",
        "code",
        "due",
        "seal",
        "epoch",
        "python",
        "shown",
        "boot",
        "boot_at",
        "process",
        "wall",
        "by",
    }
)
"""Facts about a process or a moment; everything else is to be the same."""
RANDOM = ("now#", "random#", "uuid4#")

Act = Callable[[sf.Run], object]


def approve(run: sf.Run) -> None:
    run.answer("approve#1", True, by="ada")


def deny(run: sf.Run) -> None:
    run.answer("approve#1", False, by="ada")


def five(run: sf.Run) -> None:
    run.answer("ask#1", 5, by="ada")


def event(run: sf.Run) -> None:
    run.send_event("more", 5, id="one", by="ada")


def cancel(run: sf.Run) -> None:
    run.cancel(by="ada")


STORIES: dict[str, tuple[Any, tuple[Any, ...], list[Act]]] = {
    "plain": (flows.plain, (5,), []),
    "plain, async": (flows.plain_async, (5,), []),
    "side by side": (flows.side_by_side, (5,), []),
    "side by side, async": (flows.side_by_side_async, (5,), []),
    "approved": (flows.approved, (5,), [approve]),
    "approved, async": (flows.approved_async, (5,), [approve]),
    "denied": (flows.approved, (5,), [deny]),
    "asked": (flows.asked, (5,), [five]),
    "event": (flows.hears, (5,), [event]),
    "sleep": (flows.naps, (5, 12.0), []),
    "children": (flows.parent, (5,), []),
    "saga": (flows.taken_back, (5,), []),
    "segments": (flows.segments, (1,), []),
    "witness": (flows.watched, ("watched.txt",), [approve]),
    "recorded values": (flows.recorded, (5,), []),
    "retries": (flows.again, (5,), []),
    "cancelled": (flows.approved, (5,), [cancel]),
    "failed": (flows.breaks, ("it",), []),
}


def start(story: str) -> None:
    workflow, args, _ = STORIES[story]
    begun = workflow.start(story, *args)
    if asyncio.iscoroutine(begun):
        asyncio.run(begun)


def tell_all() -> None:
    """Every run, from its start to its end, with what people do when it stands still."""
    left = {story: list(acts) for story, (_, _, acts) in STORIES.items()}
    for story in STORIES:
        start(story)

    def over() -> bool:
        for story in list(left):
            status = sf.get_run(story).status
            if status in ("waiting", "stopped") and left[story]:
                left[story].pop(0)(sf.get_run(story))
            elif status in ("done", "failed", "cancelled"):
                del left[story]
        return not left

    wait_until(over, 300)


def result(run: sf.Run) -> str:
    try:
        return repr(run.result())
    except sf.SurefootError as error:
        return f"{type(error).__name__}: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def scrubbed(data: Any, kind: str = "") -> Any:
    if isinstance(data, dict):
        hidden = kind == "ValueNoted" and str(data.get("address")).startswith(RANDOM)
        return {
            name: scrubbed(each)
            for name, each in data.items()
            if name not in PASSING and not (hidden and name == "value")
        }
    return [scrubbed(each) for each in data] if isinstance(data, list) else data


def entries(run: sf.Run) -> list[str]:
    """Without the starts of steps: whether one is written depends on how long the step takes."""
    kept = [entry for entry in run.entries() if entry.kind != "StepStarted"]
    return [f"{entry.kind} {json.dumps(scrubbed(entry.data, entry.kind), sort_keys=True)}" for entry in kept]


@pytest.fixture(scope="module")
def outcomes(request, tmp_path_factory) -> dict[str, dict[str, Any]]:
    """What came of every story, by engine."""
    found: dict[str, dict[str, Any]] = {}
    folder = tmp_path_factory.mktemp("stories")
    with pytest.MonkeyPatch.context() as patch, ledger_process() as ledger:
        patch.chdir(folder)
        patch.setenv("LEDGER", str(ledger))
        (folder / "watched.txt").write_text("as it is")
        for name in ENGINES:
            where = place_of(name, folder, request.getfixturevalue)
            with at(where), sf.Worker(concurrency=30):
                tell_all()
                found[name] = {story: outcome(story, ledger) for story in STORIES}
                found[name]["namespace"] = where.namespace
            for story in STORIES:
                ask(ledger, do="clear", room=story)
    return found


def outcome(story: str, ledger: int) -> tuple[Any, ...]:
    run = sf.get_run(story)
    made = Counter(json.dumps([line["what"], line["value"]]) for line in ask(ledger, do="look", room=story, what="*"))
    assert run.verify() == len(run.entries())
    return result(run), made, order_free(story, entries(run))


@pytest.mark.timeout(900)  # The first of them tells all stories.
@pytest.mark.parametrize("story", STORIES)
def test_every_engine_gives_the_same_result_and_the_same_entries(story, outcomes):
    """Who drives a run is no fact about the run."""
    expected = outcomes[ENGINES[0]][story]
    for name in ENGINES[1:]:
        for mine, theirs in zip(expected, outcomes[name][story], strict=True):
            assert theirs == mine, name


def order_free(story: str, lines: list[str]) -> list[str]:
    """What branches record side by side comes in any order, and not all of their progress is; how often a parent looks depends on when its children end."""
    if story == "children":
        return sorted(line for line in lines if not line.startswith(("RunAdopted", "RunSuspended")))
    return sorted(line for line in lines if not line.startswith("Progressed")) if "side" in story else lines


def test_nothing_is_left_open(outcomes, cluster):
    """A run that has ended has ended in Temporal, as what it is."""
    namespace = outcomes["Temporal"]["namespace"]
    ends = {"plain": "COMPLETED", "failed": "FAILED", "cancelled": "CANCELED"}
    assert ends == {run: cluster.ended(namespace, run) for run in ends}
