"""The negative controls: for each broken engine, the scenarios of the lab that have to catch it.

The scenarios are those of the levels; only fewer of them. Which level caught an engine, and by which invariant, is said
by running them, and goes into the report.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from tests.crash import deploys, levels, power, simulation, worldly
from tests.crash.broken import ENGINES
from tests.crash.faults import RENAME, SYNC, WORLD, WRITE, modes
from tests.crash.lab import Lab
from tests.crash.scenario import Scenario

MOST = 60
"""So many scenarios are tried before an engine counts as not caught."""
Hunt = Callable[[Lab, str], Iterable[Scenario]]


@dataclass(frozen=True)
class Caught:
    engine: str
    level: str
    line: str
    by: str
    """The first violation."""
    tried: int


def hunted(lab: Lab, engine: str) -> Caught | None:
    """None: the lab did not notice what is wrong. That a run does not end (I-20) tells nothing: a crash would look the same."""
    scenarios = list(islice(HUNTS.get(engine, around_acts("linear"))(lab, engine), MOST))
    for tried, (scenario, outcome) in enumerate(zip(scenarios, levels.run_all(lab, scenarios), strict=False), 1):
        proof = [violation.partition(":")[0] for violation in outcome.violations if not violation.startswith("I-20")]
        if proof:
            return Caught(engine, scenario.level, str(scenario), proof[0], tried)
    return None


# --- where to look ---------------------------------------------------------------------------------------------------


def around_acts(flow: str) -> Hunt:
    """L3, before and after everything that is done in the world."""

    def hunt(lab: Lab, engine: str) -> Iterator[Scenario]:
        for number, (kind, _) in enumerate(lab.golden(flow, engine).log, 1):
            if kind == WORLD:
                yield from (Scenario(flow, "L3", f"{number}:{mode}", 0, engine) for mode in reversed(modes(kind, "L3")))

    return hunt


def at_writes(flow: str, name: str = "", every: int = 1, sort: str = WRITE) -> Hunt:
    """L3, at writes of this file (or whatever else is done to it), beginning with the last."""

    def hunt(lab: Lab, engine: str) -> Iterator[Scenario]:
        log = lab.golden(flow, engine).log
        found = [number for number, (kind, file) in enumerate(log, 1) if kind == sort and file.endswith(name)]
        yield from (Scenario(flow, "L3", f"{number}:kill", 0, engine) for number in reversed(found[::every]))

    return hunt


def failing_syncs(flow: str) -> Hunt:
    """L4, one failed sync of the log."""

    def hunt(lab: Lab, engine: str) -> Iterator[Scenario]:
        log = lab.golden(flow, engine).log
        found = [number for number, (kind, file) in enumerate(log, 1) if kind == SYNC and file.endswith("-wal")]
        yield from (Scenario(flow, "L4", f"{number}:eio", 0, engine) for number in reversed(found))

    return hunt


def power_cuts(flow: str, way: str = "none") -> Hunt:
    """L5, everything that was not certain is lost."""

    def hunt(lab: Lab, engine: str) -> Iterator[Scenario]:
        yield from (one for one in reversed(power.scenarios(lab, flow, engine)) if one.at.endswith(way))

    return hunt


def damage(flow: str) -> Hunt:
    """L6: what the flow finds is damaged already."""

    def hunt(lab: Lab, engine: str) -> list[Scenario]:
        return [Scenario(flow, "L6", "", 0, engine)]

    return hunt


def schedules(flow: str, count: int = MOST) -> Hunt:
    """L1: simulated stores, workers and clocks."""

    def hunt(lab: Lab, engine: str) -> list[Scenario]:
        return simulation.scenarios(flow, range(count), engine)

    return hunt


def seen(*flows: str, every: int = 3) -> Hunt:
    """L14, at writes of the log and around acts, beginning with the last."""

    def hunt(lab: Lab, engine: str) -> Iterator[Scenario]:
        for flow in flows:
            log = lab.golden(flow, engine).log
            found = [at for at, (kind, file) in enumerate(log, 1) if kind == WORLD or file.endswith("-wal")]
            for at in reversed(found[::every]):
                yield Scenario(flow, "L14", f"{at}:kill", 0, engine)

    return hunt


def edited(case: str) -> Hunt:
    """L13s: the code is edited after a kill behind the first boundary, the second …"""

    def hunt(lab: Lab, engine: str) -> list[Scenario]:
        return [Scenario(case, "L13s", f"{at}:{deploys.STRUCK}", 0, engine) for at in range(1, MOST // 2)]

    return hunt


HUNTS: dict[str, Hunt] = {
    "no-intent": around_acts("linear"),
    "intent-not-durable": around_acts("linear"),
    "outcome-not-durable": at_writes("linear", "-wal", every=2),
    "step-not-durable": at_writes("linear", "-wal", every=2),
    "outcome-before-effect": around_acts("linear"),
    "lazy-entries-dropped": around_acts("loop"),
    "synchronous-off": power_cuts("linear"),
    "synchronous-normal": power_cuts("linear"),
    "no-folder-sync": power_cuts("secret"),
    "anchor-before-commit": at_writes("secret", "-wal"),
    "anchor-not-read": damage("older-copy"),
    "empty-store-is-new": damage("no-database"),
    "unreadable-is-nothing-there": damage("fallback"),
    "lost-tail-not-noticed": damage("tail-cut"),
    "parts-after-record": at_writes("large", "-wal", every=2),
    "sweep-without-condition": at_writes("race", every=40),
    "prune-without-tombstone": at_writes("prune", every=60),
    "half-a-prune": at_writes("bury", "-wal"),
    "seal-without-run-id": at_writes("secret", every=9),
    "seal-without-seq": at_writes("secret", every=9),
    "seal-without-epoch": at_writes("secret", every=9),
    "seal-without-chain": at_writes("secret", every=9),
    "unknown-codec-accepted": damage("forged-codec"),
    "duplicate-keys-accepted": damage("forged-duplicates"),
    "secrets-recorded": at_writes("secret", every=9),
    "tuple-read-as-a-list": around_acts("linear"),
    "checkpoint-begun-anew": at_writes("checkpoint-files", "json", sort=RENAME),
    "newest-generation-lost": at_writes("checkpoint-files", "json", sort=RENAME),
    "checkpoint-one-step-back": at_writes("checkpoint", "-wal", every=5),
    "new-key-per-attempt": around_acts("linear"),
    "key-without-run-id": around_acts("fork"),
    "key-without-segment": around_acts("loop"),
    "fork-shares-keys": around_acts("fork"),
    "unknown-is-not-happened": around_acts("vague"),
    "partial-is-done": around_acts("probe"),
    "partial-is-not-happened": around_acts("probe"),
    "failing-check-is-a-no": around_acts("vague"),
    "doubt-is-retried": around_acts("linear"),
    "doubt-is-done": around_acts("linear"),
    "replay-without-comparison": damage("other-code"),
    "settled-answer-reused": around_acts("deaf"),
    "timer-armed-again": at_writes("timer", "-wal", every=3),
    "approval-not-bound": at_writes("change-of-mind", every=30),
    "second-answer-taken": at_writes("approval", "-wal", every=5),
    "approval-reusable": at_writes("wire-again", every=40),
    "no-approval-after-a-crash": at_writes("approval", "-wal", every=5),
    "rewind-forgets-effects": at_writes("rewind", every=40),
    "cancel-without-undo": at_writes("cancel", every=30),
    "blind-stretch-ignored": damage("fallback"),
    "adopted-without-doubt": damage("adopt"),
    "fallback-in-silence": damage("fallback"),
    "transaction-without-marker": at_writes("transaction", "-wal"),
    "epoch-not-raised": schedules("linear"),
    "living-process-taken-over": schedules("linear"),
    "fenced-writer-goes-on": schedules("linear"),
    "lost-acknowledgement-retried": failing_syncs("linear"),
    "undo-retried-blindly": around_acts("saga"),
    "done-effect-repeated": around_acts("linear"),
    "failure-forgotten": around_acts("refuse"),
    "fail-is-retried": around_acts("refuse"),
    "event-taken-twice": at_writes("pair", every=9),
    "event-ids-not-compared": at_writes("pair", every=9),
    "other-arguments-accepted": at_writes("conflict", every=9),
    "dropped-effect-ignored": damage("fewer-effects"),
    "failing-store-answers-nothing": failing_syncs("linear"),
    "cause-known-only-once": seen("seen:step.caused,effect.one,step.chain"),
    "notes-known-only-once": seen("seen:async:step.noted,effect.one,map.notes"),
    "first-delivery-is-the-original": seen("seen:step.shared,effect.kept,step.shared"),
    "class-known-only-once": seen("seen:step.own,effect.slotted,child.picky"),
    "attributes-known-only-once": seen("seen:step.picky,effect.mutable,step.one"),
    "cancellation-not-recorded": seen("aw:timed.2@quick", "aw:timed.3@busy"),
    "time-out-not-recorded": seen("aw:limited.4@quick", "aw:limited.2@quick"),
    "tasks-in-the-order-of-luck": seen("aw:completed.6@mixed", "aw:completed.4@idle", "aw:group.3@mixed"),
    "outcomes-overtake-each-other": seen("aw:first.7@wild"),
    "cancellation-that-was-dealt-with-forgotten": seen("aw:timed.2@wild", "aw:timed.2@quick"),
    "something-new-before-a-cancellation": seen("aw:timed.2@wild", "aw:timed.2@quick"),
    "label-shared": seen("aw:shared.3@same"),
    **worldly.HUNTS,
    "no-rehearsal": edited("read(1),pay(2,1),read(3);insert:read@1;back"),
    "no-fence": edited("pay(1),look(2);rename:pay>bill;back"),
    "fence-by-scope-only": edited("pay(1),look(2);box:1;back"),
    "number-before-arguments": edited("read(1),read(2),pay(3);swap:1-2;back"),
    "renamed-gets-a-new-key": edited("put(1),look(2);rename:put>bill!;back"),
    "removed-is-ignored": edited("pay(1),put(2);delete:1!;back"),
    "changed-step-always-kept": edited("look(1),look(2),pay(3);reword:1;back"),
    "changed-step-never-kept": edited("look(1),pay(2);reword:1;back"),
    "changed-effect-accepted": edited("pay(1),look(2);reword:1;back"),
    "rerun-limit-ignored": edited(f"{','.join(f'look({n})' for n in range(1, 13))},pay(13);rewordall:look;back"),
    "new-default-on-a-retry": edited("put(1),look(2);default:put;back"),
    "enum-value-ignored": edited("put(1),look(2);enum:;back"),
    "step-behind-its-effects-kept": edited("read(1),copy(2),read(3);delete:1;back"),
    "hidden-step-not-heard-again": edited("read(1),pay(2,1),read(3);insert:fresh@1+insert:read@1;back"),
    "unproven-answer-kept": edited("pay(1),read(2),pay(3);insert:read@1+insert:fresh@2;back"),
    "effect-becomes-a-step": edited("pay(1),look(2);demote:pay+box:1;back"),
    "plain-function-replayed": edited("pay(1),look(2);plain:pay;back"),
    "ended-branch-may-still-ask": edited(
        "async:gather([look(1),look(2),look(3),look(4),look(5),look(6),put(7)],[pay(8),copy(9)]);delete:9;back"
    ),
}
if HUNTS.keys() != ENGINES.keys():
    raise AssertionError(HUNTS.keys() ^ ENGINES.keys())
