"""Every object that surefoot gives to programs, made here and nowhere else.

`--json` prints these objects; an HTTP API or a tool server can return the same ones. Only this file makes a `Facts`,
and code that prints JSON accepts nothing else: a verb of the command line can choose text or JSON, but it cannot invent
a field. Nothing is shortened here, values are JSON, and times are ISO 8601 in UTC.

The types of the engine are named for the type checker only. At run time this file imports nothing above it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import msgspec

from surefoot.errors import Stopped
from surefoot.view import outlook, text, trouble
from surefoot.view.standing import Reason
from surefoot.view.words import Help, helps

if TYPE_CHECKING:
    from surefoot.console.jobs import Job
    from surefoot.console.tokens import Token
    from surefoot.core.entry import Drift, Value
    from surefoot.core.history import Past
    from surefoot.core.state import RunState
    from surefoot.engine.drive.fallback import Damage
    from surefoot.engine.operate.audit import Said
    from surefoot.engine.operate.comparison import Comparison
    from surefoot.engine.operate.forks import Fork
    from surefoot.engine.operate.handle import JournalEntry, Seen
    from surefoot.engine.operate.preflight import Finding as Rehearsal
    from surefoot.engine.operate.resume_plan import ResumePlan
    from surefoot.engine.operate.retries import Reopening
    from surefoot.engine.operate.supposing import Supposed
    from surefoot.engine.upkeep.adoption import Adoption
    from surefoot.engine.upkeep.exports import Exported
    from surefoot.engine.upkeep.imports import Imported
    from surefoot.engine.upkeep.moving import Gone, Moved, Stays
    from surefoot.engine.upkeep.tombstones import Candidate, Refusal, Swept
    from surefoot.engine.upkeep.verification import Flaw, VerifyResult
    from surefoot.store.backend import Backup
    from surefoot.store.contract import IndexRow, WorkerSeen
    from surefoot.store.findings import Finding
    from surefoot.store.inspection import Seen as Inspected
    from surefoot.testing.matrix import Report
    from surefoot.view.inbox import Item
    from surefoot.view.inbox import Page as Items
    from surefoot.view.lanes import Timeline
    from surefoot.view.listing import Seen as Listed
    from surefoot.view.page import CallLine, CallPage, Page
    from surefoot.view.standing import Asked


class Facts(dict[str, Any]):
    """An object for programs. Other modules pass it on; they do not make one."""


def of_lint(made: dict[str, Any]) -> Facts:
    """What the linter found. It lies beside this layer and has no facts of runs, so it makes its objects itself."""
    return Facts(made)


def _of(one: Any, names: str, **made: Any) -> Facts:
    """These fields of an object, in this order; `made`: fields that are not simply attributes of the object."""
    return Facts({name: made[name] if name in made else _plain(getattr(one, name)) for name in names.split()})


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


VERDICTS: Final = ("damaged", "stranded", "perhaps stranded", "in doubt", "waits", "goes on")
"""The results of a preflight for a run, in the engine's words, the most urgent first."""


# --- errors, stops, cures ----------------------------------------------------------------------------


def error(found: BaseException, *, run: str = "", exit_code: int = 1, cures: Iterable[Help] = ()) -> Facts:
    """The error that a command ended with."""
    kind, message = trouble.type_of(found), trouble.message_of(found)
    told = Facts(type=kind, message=message, run=run, address="", cures=_cures(cures), exit_code=exit_code)
    if isinstance(found, Stopped):
        told |= stop_facts(trouble.reason(found))
        told |= Facts(run=found.run_id or run, stops=[stop_facts(trouble.reason(stop)) for stop in found.stops])
    path = getattr(found, "path", None)
    if isinstance(path, str):
        told["path"] = path
    return told


def turned_away(kind: str, message: str, *, run: str = "", exit_code: int = 1) -> Facts:
    """Nothing failed: it was not allowed, or cannot be told."""
    return Facts(type=kind, message=message, run=run, address="", cures=[], exit_code=exit_code)


def passed_on(told: Mapping[str, Any]) -> Facts:
    """An error as another process has told it."""
    return Facts(told)


def failure(what: Facts) -> Facts:
    """The whole answer of a command that ended with an error."""
    return Facts(error=what)


def stop_facts(stop: Reason) -> Facts:
    """Why a run stopped, and what helps."""
    return _of(
        stop,
        "type message address cures drift facts",
        cures=_cures(stop.cures),
        drift=[msgspec.to_builtins(one) for one in stop.drift],
        facts={name: value if isinstance(value, int | float) else str(value) for name, value in stop.facts.items()},
    )


def _cures(cures: Iterable[Help]) -> list[dict[str, Any]]:
    return [cure.facts for cure in cures]


# --- runs --------------------------------------------------------------------------------------------


def runs(listed: Iterable[tuple[Listed, IndexRow | None]], *, following: str = "") -> Facts:
    """The list of runs. `following`: the run behind which the next page begins; empty: this was the last."""
    return Facts(runs=[_line(seen, row) for seen, row in listed], next=following)


def _line(seen: Listed, row: IndexRow | None) -> Facts:
    return _of(
        seen,
        "run workflow status stands needs_a_person why left created labels need until queue marks",
        stands=seen.stands.status,
        needs_a_person=seen.stands.needs_a_person,
        why=seen.stands.brief,
        left=list(seen.stands.left),
        created=_moment(seen.created),
        need=row.need if row else "",
        until=_moment(row.until) if row else None,
        queue=row.queue if row else "",
        marks=list(row.marks) if row else [],
    )


def inbox(page: Items) -> Facts:
    """What waits for a person."""
    return Facts(items=[_item(one) for one in page.items], next=page.next)


def _item(one: Item) -> Facts:
    since, until, href = _moment(one.since), _moment(one.until), f"/runs/{quote(one.run, safe='')}"
    names = "kind decide run workflow address title since until by actions href"
    return _of(one, names, since=since, until=until, href=href)


def run(seen: Page, head: Seen, *, last: int | None = None) -> Facts:
    """One run, with every call it made; or with the last ones, and how many were left out. `head`: where its journal
    ended when it was read.
    """
    calls = seen.calls if last is None else seen.calls[-last:]
    told = _of(
        seen,
        "run workflow version status stands needs_a_person headline created newest segment driver driven labels progress "
        "cancel_asked_by child_of forked_from rewinds landed_late retries stops cures args defaults result left error "
        "published calls",
        created=text.moment(seen.created),
        newest=text.moment(seen.newest),
        cancel_asked_by=seen.cancelled_by,
        stops=[stop_facts(one) | {"question": _question(one.asked)} for one in seen.reasons],
        cures=_cures(seen.cures),
        args=_parsed(seen.args),
        defaults=_parsed(seen.defaults),
        result=_parsed(seen.result),
        error=None if seen.error is None else {"type": seen.error[0], "message": seen.error[1]},
        published={name: _parsed(value) for name, value in seen.published.items()},
        calls=[_call(call, seen.processes) for call in calls],
    )
    if len(calls) < len(seen.calls):
        told["calls_left_out"] = len(seen.calls) - len(calls)
    told["head"] = _of(head, "seq seal")
    return told


def _call(call: CallLine, processes: Sequence[str]) -> Facts:
    return _of(
        call,
        "address kind status in_doubt attempts started ended by args defaults result error key on_crash learned_by "
        "cleared_by",
        started=text.moment(call.started),
        ended=_moment(call.ended),
        by=processes[call.process - 1] if call.process else "",
        args=_parsed(call.raw_args),
        defaults=_parsed(call.raw_defaults),
        result=_parsed(call.raw_result),
    )


def call(seen: CallPage, entries: Iterable[JournalEntry]) -> Facts:
    """One call, whole: its values however large, each attempt, and its entries."""
    told = _call(seen.line, [seen.process])
    names = "attempt outcome start end open_end by error set_aside until"
    return Facts(
        run=seen.run,
        **told,
        question=_question(seen.asked),
        made=[_of(one, names, **_moments(one.start, one.end), until=_moment(one.until)) for one in seen.attempts],
        entries=[entry(one) for one in entries],
    )


def calls(run: Facts, after: int, limit: int) -> Facts:
    """A window of the calls of a run (`run`), by number."""
    found = run["calls"][after : after + limit]
    more = after + len(found) < len(run["calls"])
    return Facts(run=run["run"], calls=found, next=after + len(found) if more else None, head=run["head"])


def entries(found: Iterable[JournalEntry], *, more: bool) -> Facts:
    """Entries of a journal, in order; behind the last one of them there may be more."""
    told = [entry(one) for one in found]
    return Facts(entries=told, next=told[-1]["seq"] if more and told else None)


def world(state: RunState) -> Facts:
    """What a run expects of the world, part by part, and which call left it like that."""
    parts = [Facts(part=part, hash=one.hash, by=one.by, seq=one.seq) for part, one in sorted(state.world.parts.items())]
    return Facts(
        run=state.run,
        folder=state.world.folder,
        witnesses=sorted(state.world.sights),
        unwatched=sorted(state.world.unwatched),
        parts=parts,
    )


def _moments(start: int, end: int) -> dict[str, datetime]:
    return {"start": text.moment(start), "end": text.moment(end)}


def lanes(found: Timeline) -> Facts:
    """A run as a picture of its time. Positions are fractions of one screen."""
    bars = (
        "lane address kind attempt outcome start end seq last segment x width open_end by error set_aside until calls"
    )
    return Facts(
        width=found.width,
        hidden=found.hidden,
        stretches=[
            _of(one, "epoch process start end ended gap set_back x width", **_moments(one.start, one.end))
            for one in found.stretches
        ],
        lanes=[_of(one, "path label depth is_folded branches") for one in found.lanes],
        bars=[_of(one, bars, **_moments(one.start, one.end), until=_moment(one.until)) for one in found.bars],
        signs=[_of(one, "kind at seq x by", at=text.moment(one.at)) for one in found.signs],
    )


def audit(lines: Iterable[Said]) -> Facts:
    """What people did, newest first."""
    return Facts(said=[_said(one) for one in lines])


def _said(one: Said) -> Facts:
    return _of(one, "pos run by entry seal", entry=entry(one.entry) if one.entry is not None else None)


def workers(seen: Iterable[WorkerSeen]) -> Facts:
    """The living processes, and what they serve."""
    return Facts(workers=[_worker(one) for one in seen])


def _worker(one: WorkerSeen) -> Facts:
    serving = None if one.serving is None else _of(one.serving, "workflows queues code")
    names = "worker host pid since heard serving"
    return _of(one, names, since=text.moment(one.since), heard=_moment(one.heard), serving=serving)


def _question(asked: Asked | None) -> Facts | None:
    if asked is None:
        return None
    details, wanted, until = _parsed(asked.details), _parsed(asked.wanted), _moment(asked.due)
    return _of(asked, "form question details wanted by until shown", details=details, wanted=wanted, until=until)


def questions(asking: Iterable[Page]) -> Facts:
    """What people are asked, over all runs, with the commands that answer."""
    found = [(seen, one) for seen in asking for one in seen.reasons if one.asked is not None]
    return Facts(
        questions=[
            Facts(run=seen.run, workflow=seen.workflow, name=one.address, cures=_cures(one.cures))
            | (_question(one.asked) or {})
            for seen, one in found
        ]
    )


def entry(one: JournalEntry) -> Facts:
    """One entry of a journal."""
    return _of(one, "seq at epoch kind data")


def plan(found: ResumePlan, seen: Page, cures: Iterable[Help]) -> Facts:
    """What a resume would do now."""
    next_ = outlook.upcoming(found)
    return _of(
        found,
        "run status stands headline replayed recorded in_doubt next effects stops ending unasked drift on_drift questions "
        "cures",
        run=found.run_id,
        stands=seen.stands,
        headline=seen.headline,
        in_doubt=_doubts(found.in_doubt),
        next=None if found.next is None else _kinds(next_),
        effects=[address for kind, address in next_ if kind == "effect"],
        questions=[{"address": address, "question": question} for address, question in found.questions],
        cures=_cures(cures),
    )


def supposed(found: Supposed, seen: Page) -> Facts:
    """What would follow from a word that is only supposed, and about which state of the run that is."""
    told = _of(
        found,
        "do sets_aside runs_again in_doubt next stops ending",
        in_doubt=_doubts(found.in_doubt),
        next=None if found.next is None else _kinds(found.next),
        ending=found.plan.ending,
    )
    return Facts(plan=plan(found.plan, seen, ()), supposed=told, seen=_of(found.seen, "seq seal"))


def planned(plan: Mapping[str, Any], supposed: Mapping[str, Any] | None, seen: Mapping[str, Any] | None) -> Facts:
    """A plan that another process has made."""
    return Facts(plan=plan, supposed=supposed, seen=seen)


def _doubts(doubts: Iterable[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"address": address, "resume_would": what} for address, what in doubts]


def comparison(a: str, b: str, found: Comparison) -> Facts:
    """Two runs, call by call."""
    counts = Counter(pair.verdict for pair in found.calls)
    return Facts(
        a=a,
        b=b,
        differs=found.differs,
        same=counts["same"],
        different=counts["differs"],
        only_in_a=counts["only in a"],
        only_in_b=counts["only in b"],
        calls=[_of(pair, "address verdict differs a b", a=_side(pair.a), b=_side(pair.b)) for pair in found.calls],
    )


def _side(past: Past | None) -> Facts | None:
    if past is None:
        return None
    return Facts(
        kind=past.kind,
        status=past.state.value,
        args=_parsed(recorded(past.args)),
        result=_parsed(recorded(past.value)),
        error=raised(past),
    )


def recorded(value: Value | None) -> str:
    """A value as recorded, as JSON; for a large one its size and digest. Empty: there is none."""
    from surefoot.core.entry import Kept

    if value is None:
        return ""
    if isinstance(value, Kept):
        return f'{{"$large": {value.reference.size}, "sha256": "{value.reference.digest.hex()}"}}'
    return bytes(value).decode("utf-8", "replace")


def raised(past: Past) -> str:
    from surefoot.core import values

    return "" if past.error is None else ": ".join(values.error_summary(past.error))


def _moment(micros: int | None) -> datetime | None:
    return text.moment(micros) if micros else None


def _parsed(raw: str) -> Any:
    return json.loads(raw) if raw else None


def _kinds(calls: Iterable[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"kind": kind, "address": address} for kind, address in calls]


# --- what operators declared -----------------------------------------------------------------------------


def action(what: Facts, seen: Page, *, by: str, note: str, resume: str) -> Facts:
    """What was recorded for an operator, the state of the run now, and the command that resumes it."""
    still = [{"type": one.type, "address": one.address, "message": one.message} for one in seen.reasons]
    said = {"run": seen.run, **what, "by": by, "note": note}
    return Facts(recorded=said, status=seen.status, open=still, resume=resume)


def settlement(address: str, *, happened: bool, failed: bool) -> Facts:
    told = Facts(address=address, happened=happened)
    if failed:
        told["failed"] = True
    return told


def answer(question: str, asked: str, value: Any) -> Facts:
    return Facts(question=question, asked=asked, answer=value)


def event(name: str, value: Any, event_id: str) -> Facts:
    return Facts(event=name, value=value, id=event_id)


def acceptance(accepted: Iterable[Drift]) -> Facts:
    return Facts(accepted=[_of(one, "witness part what expected found", found=one.actual) for one in accepted])


def match(address: str, how: str) -> Facts:
    return Facts(address=address, how=how)


def matches(runs: list[str], address: str, how: str, *, by: str, note: str) -> Facts:
    """The same declaration for many runs."""
    return Facts(matched=runs, address=address, how=how, by=by, note=note)


def cancellation(left_done: list[str], *, ended: bool) -> Facts:
    return Facts(cancelled=ended, left_done=left_done)


def acknowledgements(seen: Iterable[tuple[str, list[str]]], *, by: str, note: str) -> Facts:
    """What was seen of which runs."""
    return Facts(seen=[{"run": run, "about": about} for run, about in seen], by=by, note=note)


def release() -> Facts:
    return Facts(released=True)


def rewind(address: str, in_doubt: list[str]) -> Facts:
    return Facts(at=address, in_doubt=in_doubt)


def fork(made: Fork) -> Facts:
    return _of(made, "parent at reused would_execute")


def retry(calls: list[str], reopened: Iterable[Reopening]) -> Facts:
    return Facts(reopened=calls, runs=[_reopening(one) for one in reopened])


def retries(reopened: Iterable[Reopening], left: Iterable[tuple[str, str]]) -> Facts:
    """The same for many runs."""
    return Facts(reopened=[_reopening(one) for one in reopened], left=_left(left))


def _reopening(one: Reopening) -> Facts:
    return _of(one, "run steps effects in_doubt waits")


def _left(runs: Iterable[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"run": run, "why": why} for run, why in runs]


# --- code about to be deployed, and processes --------------------------------------------------------


def preflight(apps: Sequence[str], store: str, rehearsed: Sequence[Mapping[str, Any]], *, exit_code: int) -> Facts:
    """Which unfinished runs some code would strand."""
    counts = Counter(one["verdict"] for one in rehearsed)
    by_verdict = {verdict: counts[verdict] for verdict in VERDICTS}
    return Facts(app=list(apps), store=store, exit_code=exit_code, counts=by_verdict, runs=list(rehearsed))


def rehearsal(one: Rehearsal) -> Facts:
    """The result of that code for one run."""
    return _of(
        one,
        "run verdict workflow version code_version status driven why in_doubt next unclaimed kept again filled_in",
        version=one.version or None,
        code_version=one.code_version or None,
        why=[_obstacle(found) for found in one.why],
        in_doubt=[_obstacle(found) for found in one.in_doubt],
        next=_kinds(one.next),
        kept=[{"address": address, "why": why} for address, why in one.kept],
    )


def _obstacle(found: BaseException) -> dict[str, Any]:
    told = error(found)
    return {name: told[name] for name in ("type", "message", "address", "cures", "drift", "facts") if name in told}


def worker(store: str, *, ended: Mapping[str, int], unfinished: Iterable[str]) -> Facts:
    """The work of a worker when it ended."""
    return Facts(store=store, ended=dict(ended), unfinished=list(unfinished))


def crashtest(report: Report) -> Facts:
    """The result of killing a workflow at every point."""
    figures = {"held": report.held, "kills": report.kills, "kills_per_core_second": round(report.rate, 1)}
    return Facts(**figures, **msgspec.to_builtins(report))


def demo(
    claims: Sequence[tuple[bool, str]], exit_codes: list[int], *, made: int, needed: int, mails: int, files: int,
    seconds: float,
) -> Facts:  # fmt: skip
    """The observations of the demo."""
    return Facts(
        held=all(held for held, _ in claims),
        claims=[{"held": held, "claim": claim} for held, claim in claims],
        exit_codes=exit_codes,
        calls_made=made,
        calls_needed=needed,
        mails=mails,
        files=files,
        seconds=round(seconds, 1),
    )


# --- the store ---------------------------------------------------------------------------------------


def verdict(found: VerifyResult, store: str) -> Facts:
    """Whether everything is whole."""
    return _of(
        found,
        "whole runs journals entries bytes parts unneeded_parts quarantined damaged",
        whole=not found.flaws,
        unneeded_parts=found.unneeded,
        damaged=[_flaw(one, store) for one in found.flaws],
    )


def _flaw(flaw: Flaw, store: str) -> Facts:
    return _of(
        flaw,
        "journal entry entries valid why message cures",
        entry=flaw.entry or None,
        entries=flaw.entries if flaw.entries >= 0 else None,
        message=str(flaw),
        cures=_cures(helps(cure, store) for cure in flaw.cures),
    )


def health(version: str, store: str, found: Iterable[Finding]) -> Facts:
    """Whether a place keeps the promises of a store."""
    told = [{"verdict": one.level, "what": one.what, "said": one.said, "do": one.do} for one in found]
    return Facts(surefoot=version, store=store, findings=told)


def store(
    url: str, runs: Mapping[str, int], durability: Mapping[str, str], *, anchor: str, position: int, now: int
) -> Facts:
    """What is known of a store without reading all of it. `anchor`: where it disagrees with its anchor; empty: nowhere."""
    return Facts(
        store=url, runs=dict(runs), durability=dict(durability), anchor=anchor, position=position, now=text.moment(now)
    )


def tokens(found: Iterable[Token]) -> Facts:
    """Who has a token of the console. The tokens themselves are known to nobody."""
    return Facts(tokens=[_token(one) for one in found])


def _token(one: Token) -> Facts:
    made, until = _moment(one.made * 1_000_000), _moment(one.until * 1_000_000)
    return _of(one, "name may groups made until", made=made, until=until)


def begun(job: str) -> Facts:
    """Work that takes longer than an answer."""
    return Facts(job=job)


def job(one: Job) -> Facts:
    ended = _moment(one.ended)
    return _of(one, "id what by began ended exit_code result", began=text.moment(one.began), ended=ended)


def inspection(seen: Inspected) -> Facts:
    """The content of a file of ours."""
    from surefoot.store.inspection import AnchorSeen, StoreSeen

    kind = "store" if isinstance(seen, StoreSeen) else "anchor" if isinstance(seen, AnchorSeen) else "checkpoints"
    return Facts(kind=kind, sound=seen.sound, **msgspec.to_builtins(seen))


def inspected_export(path: str, found: Exported) -> Facts:
    return Facts(kind="export", path=path, sound=found.whole, **export(found))


def export(found: Exported) -> Facts:
    """The content of an exported file."""
    return Facts(msgspec.structs.asdict(found))


def imported(outcomes: Iterable[Any], source: str) -> Facts:
    """What became of each thread that was to be imported."""
    from msgspec.structs import asdict

    return Facts(source=source, threads=[asdict(one) for one in outcomes])


def backup(made: Backup) -> Facts:
    return Facts(**msgspec.structs.asdict(made), verified=True)


def pruning(going: Iterable[Candidate], left: Iterable[Refusal], swept: Swept | None, store: str) -> Facts:
    """What was deleted, or without a sweep: what would be deleted."""
    told = Facts(
        done=swept is not None,
        left=_left((one.run, one.why) for one in left),
        parts_deleted=swept.deleted if swept else 0,
        parts_kept_because=swept.why if swept else "",
        damaged=[_flaw(one, store) for one in swept.flaws] if swept else [],
    )
    told["pruned" if swept else "would_prune"] = [_candidate(one) for one in going]
    return told


def _candidate(one: Candidate) -> Facts:
    left = one.tombstone
    created, ended = text.moment(left.created), text.moment(left.ended)
    return _of(left, "run workflow status entries created ended labels", run=one.run, created=created, ended=ended)


def moves(
    moved: Iterable[Moved], stays: Iterable[Stays], gone: Iterable[Gone], source: str, target: str, *, done: bool
) -> Facts:
    """What moved from one store to another, or would move; what stays; what had moved before."""
    return Facts(
        {"from": source},
        to=target,
        done=done,
        moved=[_of(one, "name entries status") for one in moved],
        stays=[_of(one, "name why damaged") for one in stays],
        moved_before=[_of(one, "name url") for one in gone],
    )


def taken_in(found: Imported) -> Facts:
    """A run that was taken from a file."""
    return _of(found, "run entries status is_back")


def adoption(found: Adoption, checkpoints: list[str], threads: list[str]) -> Facts:
    """An older state of the store that was accepted."""
    names = "expected found fell_back hopeless checkpoints threads"
    return _of(found, names, fell_back=found.unfinished, checkpoints=checkpoints, threads=threads)


def giving_up(run: str) -> Facts:
    return Facts(run=run, given_up=True)


def repair(run: str, damage: Damage | None) -> Facts:
    """The entries of a run that were set aside; without damage: none."""
    if damage is None:
        return Facts(run=run, repaired=False)
    return _of(
        damage.entry,
        "run repaired after quarantined lost in_doubt proven why",
        run=run,
        repaired=True,
        after=damage.entry.after,
        lost=None if damage.entry.lost < 0 else damage.entry.lost,
        in_doubt=list(damage.entry.in_doubt),
        proven=damage.proven,
    )
