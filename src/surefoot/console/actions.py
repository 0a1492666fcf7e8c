"""What people say here: each word is one entry, by whoever is signed in, about the run as that person saw it.

A word carries what was seen. If the run has moved since, nothing is recorded. Where the code decides what is written (a typed
value, what the world looks like now) the entry is made by the planner's child, for the very state it was seen in; it is written
here and nowhere else. The console drives no run: a cancellation is recorded, and whoever drives the run ends it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, Final, assert_never

import msgspec
from msgspec import UNSET, Struct

from surefoot.console import reads
from surefoot.console.plans import ENTRY, Planned, Wanted, untagged
from surefoot.console.principals import ADMIN, DECIDE
from surefoot.console.refusals import Refusal
from surefoot.core.address import as_recorded
from surefoot.core.entry import KINDS, Drift, Entry
from surefoot.core.state import ENDED
from surefoot.engine.drive import fallback
from surefoot.engine.operate.decisions import (
    Accept,
    Acknowledge,
    Action,
    Answer,
    Cancel,
    Fork,
    Match,
    Release,
    Retry,
    Rewind,
    SendEvent,
    Settle,
    Who,
)
from surefoot.engine.operate.handle import Run, Seen
from surefoot.engine.process.runtime import Runtime
from surefoot.errors import Outdated, SurefootError
from surefoot.view import facts
from surefoot.view.facts import Facts

SCOPES: Final = {
    "settle": DECIDE, "answer": DECIDE, "match": DECIDE, "retry": DECIDE, "accept": DECIDE, "event": DECIDE,
    "acknowledge": DECIDE, "rewind": ADMIN, "fork": ADMIN, "cancel": ADMIN, "release": ADMIN, "repair": ADMIN,
}  # fmt: skip
"""What somebody must be allowed to do who says that."""
REPAIR: Final = "repair"
Made = Callable[[Wanted], Planned]


class Unknown(SurefootError):
    """The code has to decide what is recorded, and could not be asked. Nothing was recorded."""

    exit_code = 1


class Recorded(Struct, frozen=True):
    """What was recorded, and where the journal ends now."""

    told: Facts
    """As the `--json` of the verb."""
    run: str
    seq: int


def say(
    runtime: Runtime, run_id: str, said: Action, who: Who, *, seen: Seen | None, ask: Made | None, where: str, app: str
) -> Recorded:
    """Record it, or refuse it as the verb would. `ask`: the process that has the code; None: there is none."""
    run = reads.open_run(runtime, run_id)
    run.looks_anywhere = False
    if seen is not None:
        run.require_unmoved(seen)  # Here for a quick answer; the verb holds its entry against it, too.
    what, about = _said(run, said, who, seen, ask)
    head = about._loaded()[1]
    told = reads.report(about, what, by=who.by, note=who.note, where=where, app=app).told
    return Recorded(told, about.id, head.seq)


def repair(runtime: Runtime, run_id: str, who: Who, *, seen: Seen | None) -> Facts:
    """Set aside what is damaged, if it is the damage that was seen."""
    damage = fallback.diagnose(runtime.store, run_id)
    if damage is None:
        fallback.renew_row(runtime.store, run_id)
        reads.open_run(runtime, run_id)
        return facts.repair(run_id, None)
    if seen is not None and seen != damage_seen(damage):
        raise Outdated(f"run {run_id}: the damage is not as you saw it. Nothing was changed.")
    made = fallback.fall_back(runtime.store, runtime.clock, run_id, seen=damage, by=who.by, note=who.note)
    return facts.repair(run_id, made)


def damage_seen(damage: fallback.Damage) -> Seen:
    """What a repair is bound to: the valid entries, and what is lost behind them."""
    return Seen(damage.entry.after, hashlib.sha256(msgspec.json.encode(damage.entry)).hexdigest())


def _said(run: Run, said: Action, who: Who, seen: Seen | None, ask: Made | None) -> tuple[Facts, Run]:
    """What was recorded, as facts, and of which run."""
    by: dict[str, Any] = {"by": who.by, "note": who.note, "via": who.via, "seen": seen}
    match said:
        case Settle(address=address):
            if ask is not None and said.happened is not UNSET:
                _made_by_code(run, said, who, seen, ask)
            else:
                run._say(untagged(said), who, seen)
            return facts.settlement(address, happened=said.happened is not UNSET, failed=said.failed), run
        case Accept():
            if ask is not None:
                taken = _made_by_code(run, said, who, seen, ask).drift or []
                return facts.acceptance([msgspec.convert(one, Drift) for one in taken]), run
            return facts.acceptance(run.take_as_found(said.witness, only=said.found, **by)), run
        case Match():
            run._say(said, who, seen)
            return facts.match(said.address, _how(said)), run
        case Retry():
            told = run.would_retry(failed=said.failed, at=said.at)
            return facts.retry(run.retry(failed=said.failed, at=said.at, **by), told), run
        case Answer():
            state = run._say(said, who, seen)
            asked = state.question(as_recorded(said.question))
            return facts.answer(said.question, asked.question if asked else "", said.value), run
        case Rewind(at=at):
            state = run._say(said, who, seen)
            return facts.rewind(at, [past.address for past in state.in_doubt()]), run
        case Fork():
            made = run.fork(said.id, at=said.at, **by)
            return facts.fork(made), made.run
        case Cancel():
            state = run._say(said, who, seen)
            return facts.cancellation([], ended=state.status in ENDED), run
        case Release():
            run._say(said, who, seen)
            return facts.release(), run
        case SendEvent():
            event_id = said.id or str(run.runtime.clock.uuid4())
            run.send_event(said.name, said.value, id=event_id, by=who.by, via=who.via, seen=seen)
            return facts.event(said.name, said.value, event_id), run
        case Acknowledge(about=about):
            seen_now = run.acknowledge(about, **by)
            return facts.acknowledgements([(run.id, seen_now)], by=who.by, note=who.note), run
        case _:
            assert_never(said)


def _made_by_code(run: Run, said: Action, who: Who, seen: Seen | None, ask: Made) -> Planned:
    """The entry as the code makes it, written behind the very state that it was made for."""
    planned = ask(Wanted(ENTRY, run.id, who, msgspec.to_builtins(said)))
    if planned.error is not None:
        raise Refusal(planned.error, planned.status)
    if planned.unknown or planned.seen is None:
        raise Unknown(f"run {run.id}: nothing was recorded. {planned.unknown}")
    made = Seen(planned.seen["seq"], planned.seen["seal"])
    if seen is not None and made != seen:
        run.require_unmoved(seen)
        raise Outdated(f"run {run.id}: it has moved since you looked. Nothing was recorded.")
    kind, body = planned.entry or (0, "")
    entry: Entry | None = msgspec.json.decode(bytes.fromhex(body), type=KINDS[kind]) if kind else None
    run._visit(lambda _: entry, made)
    return planned


def _how(said: Match) -> str:
    if said.is_ is not None:
        return f"is {said.is_}"
    return "is new" if said.new else "is kept" if said.keep else "runs again"
