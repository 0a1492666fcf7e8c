"""What a resume would do, and what would follow from a word: asked for as data, answered as data.

The same function answers in the process of the console, which has no code of the user, and in the child that has it.
"""

from __future__ import annotations

import json
from typing import Any, Final

import msgspec
from msgspec import UNSET, Struct
from msgspec.structs import replace

from surefoot.console import reads, refusals
from surefoot.core import values
from surefoot.core.entry import Drift, Entry
from surefoot.core.seal import checked_body
from surefoot.engine.operate import decisions, supposing
from surefoot.engine.operate.decisions import Who
from surefoot.engine.operate.handle import Run, Seen
from surefoot.engine.process.runtime import Runtime
from surefoot.errors import SurefootError, UsageError
from surefoot.view import facts, outlook, text

PLAN: Final = "plan"
ENTRY: Final = "entry"
DRIFT: Final = "drift"


class Wanted(Struct, frozen=True):
    """A question about one run."""

    want: str
    run: str
    who: Who
    supposing: Any = None
    """As an object for programs; None: as the run is."""
    app: str = ""
    """For the commands that are suggested."""

    @property
    def key(self) -> tuple[Any, ...]:
        said = json.dumps(self.supposing, sort_keys=True)
        return self.want, self.run, said, self.who.by, self.who.groups


class Planned(Struct, frozen=True):
    """The answer. One of `plan`, `error` and `unknown` is there."""

    plan: dict[str, Any] | None = None
    """As `surefoot runs plan --json`."""
    supposed: dict[str, Any] | None = None
    """As `--supposing`."""
    outlook: dict[str, Any] | None = None
    """The same in words: a sentence, and lines with label, text and address."""
    seen: dict[str, Any] | None = None
    """The run as it was when this was asked."""
    error: dict[str, Any] | None = None
    """Why it would be refused."""
    status: int = 200
    is_stale: bool = False
    """The code has changed on disk since this process imported it: another one has to answer."""
    unknown: str = ""
    """Why nothing can be told."""
    entry: tuple[int, str] | None = None
    """Of `ENTRY`: its kind and body (hexadecimal), for that state and no other."""
    drift: list[dict[str, Any]] | None = None
    """Of `DRIFT`: what the witnesses see now."""


def answered(runtime: Runtime, wanted: Wanted, where: str) -> Planned:
    """Blocking. What the verb would refuse is refused here too."""
    try:
        run = reads.open_run(runtime, wanted.run)
        run.looks_anywhere = False
        match wanted.want:
            case "entry":
                return _entry(run, wanted)
            case "drift":
                return Planned(drift=[msgspec.to_builtins(one) for one in run.drift()], seen=_seen(run.seen))
            case _:
                return _plan(run, wanted, where)
    except SurefootError as error:
        return Planned(error=_plain(refusals.told(error))["error"], status=refusals.status(error))


def _plan(run: Run, wanted: Wanted, where: str) -> Planned:
    seen = reads.page_of(run, where=where, app=wanted.app)
    if wanted.supposing is None:
        found, told = run.plan(), None
        lines = outlook.of_plan(found, seen.headline)
        plan, at = facts.plan(found, seen, reads.after_failure(run, where)), run.seen
    else:
        supposed = supposing.suppose(run, untagged(decisions.action(wanted.supposing)), wanted.who)
        told = facts.supposed(supposed, seen)
        lines, plan, at = outlook.of_supposed(supposed), told["plan"], supposed.seen
    return Planned(
        plan=_plain(plan),
        supposed=None if told is None else _plain(told)["supposed"],
        outlook=msgspec.to_builtins(lines),
        seen=_seen(at),
    )


def _entry(run: Run, wanted: Wanted) -> Planned:
    """What saying that writes into the run as it is, made where the code is."""
    state, head = run._loaded_anew()
    said, taken = untagged(decisions.action(wanted.supposing)), list[Drift]()
    entry: Entry | None
    if isinstance(said, decisions.Accept):
        entry, taken = decisions.accepted(run, state, said, wanted.who)
    else:
        entry = decisions.entry(run, state, said, wanted.who)
    drift = [msgspec.to_builtins(one) for one in taken]
    if entry is None:
        return Planned(seen=_seen(Seen.at(head)))
    kind, body, cuts = checked_body(entry)
    if cuts:
        raise UsageError(f"run {run.id}: that value is too large to be given here: surefoot settle takes it")
    return Planned(entry=(kind, body.hex()), drift=drift, seen=_seen(Seen.at(head)))


def untagged(said: decisions.Action) -> decisions.Action:
    """A value may be written with tags, as the journal has it: `{"$tuple": [1, 2]}`."""
    if not isinstance(said, decisions.Settle) or said.happened is UNSET:
        return said
    try:
        raw = json.dumps(said.happened, ensure_ascii=False)
        return replace(said, happened=values.decode(raw.encode("utf-8", "surrogatepass"))) if '"$' in raw else said
    except TypeError:
        return said  # It is no plain data: an object of this process.


def _seen(seen: Seen) -> dict[str, Any]:
    return {"seq": seen.seq, "seal": seen.seal}


def _plain(told: Any) -> Any:
    """As it arrives at a program: the child sends it as text, so here it is the same."""
    return json.loads(text.to_json(told))
