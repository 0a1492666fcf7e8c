"""The invariants of the fault model, as one checker that every level of the lab uses.

It is given what is left on disk and what the world has written down, first as the crash left them, then again after
recovery. It reads the store with SQLite. Seals, chains, heads and the anchor are computed here once more, from the
format's description. What an entry says, and what values mean, is read with surefoot's own decoder: a decoder that is
wrong in the same way each time is noticed by what user code has in its hands, not here. Then surefoot's own
verification is asked as well.

`TABLE` says where each invariant is checked, and which do not apply yet and why.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import struct
import zlib
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apsw

from surefoot.core import values
from surefoot.core.entry import KIND_OF, KINDS, RunAdopted, RunPruned
from surefoot.core.seal import Record, from_record
from surefoot.engine.upkeep import verification
from surefoot.errors import NotFound, SurefootError
from surefoot.store.contract import RunQuery
from surefoot.store.sqlite.store import SqliteStore
from tests.crash.flows import CANARY, KEEP
from tests.crash.seeing import differences
from tests.crash.stage import parts_of

TABLE = {
    "I-01": "crashed, recovered: an outcome in the journal has its act in the ledger",
    "I-02": "crashed, recovered: an act in the ledger, an undo too, has its intent in the journal, same key and attempt",
    "I-03": "crashed, recovered: one key for each call; acts of `once` and `probed` effects and undos are not repeated",
    "I-04": "crashed, recovered: digest in the ledger = digest in the intent = arguments that were approved",
    "I-05": "recovered: what the world holds in the end, and the results, are those of the undisturbed run",
    "I-06": "recovered: user code sees the same value each time; what is on record as done or failed is not executed again",
    "I-07": "crashed, recovered: whatever user code has seen is on record; a load gives no less than was saved",
    "I-10": "crashed, recovered: seq without a gap, every seal computed anew from the format's description",
    "I-11": "recovered: what was there after the crash is the beginning of what is there now; the newest generations "
    "stay. Only what was damaged on purpose may be set aside, whole",
    "I-12": "crashed, recovered: the anchor names a record that is there",
    "I-13": "crashed, recovered: epochs never fall, and rise with every claim",
    "I-14": "crashed, recovered: a run that has left a trace in the world is known, and listed",
    "I-15": "crashed, recovered: every value can be put together; after a sweep no part is left over; no temporary files",
    "I-16": "crashed, recovered: each intent is closed before the next one of its call, or its policy allows the next",
    "I-17": "recovered: a parent is the same after a fork (as I-11). No snapshots exist yet",
    "I-18": "crashed, recovered: surefoot's own verification and SQLite's integrity check",
    "I-20": "recovered: done or failed as the undisturbed run, within so many answers and seconds",
    "I-21": "recovered: each stop says what happened and what helps; what it offers is done, and helps. In the process "
    "that met it: a write or sync that failed is said by name",
    "I-22": "recovered: timers fire once and not early; one answer for each question, bound to what was shown",
    "I-23": "recovered: a second resume changes nothing, neither journal nor world",
    "I-24": "crashed, recovered: the canary is in no file",
    "I-25": "recovered: no descriptors, threads or children left; not many times the undisturbed run's bytes on disk",
    "I-26": "recovered: all that user code can see of a value or a failure is the same at the first delivery, in every "
    "rehearsal and on every replay",
    "I-27": "recovered: in each line of control the code comes to the same calls in the same order, in every life",
    "I-31": "L10z, L11: failed is only what proves that nothing was done, or what somebody has looked at; what is in doubt is "
    "never undone, is on record as left when the run ends, and somebody is told",
    "I-32": "L10: nothing is undone while it is on its way; what is there in the end is known, or somebody was told",
    "I-33": "L10z: whoever executes an effect after it has lost its claim leaves an entry, and both ends say so",
    "I-34": "L12: what somebody else wrote is not overwritten once it was seen, nor taken for the run's own",
}
NOT_YET = {
    "I-12, on a server": "the lab breaks SQLite's files; what is noted of a PostgreSQL store has tests of its own",
    "I-13, leases": "here claims end with a process's lock; leases are proven by killing workers on PostgreSQL, above",
    "I-17, snapshots": "there are none",
    "I-24, console": "there is no console yet",
}

VALUE_DAMAGED = "a value of it is damaged"
"""So verification says that an entry is whole, and a part of its value is not."""
MOST_TIMES = 3
"""So many times the bytes of the undisturbed run may be on disk in the end."""
Line = dict[str, Any]


@dataclass
class Golden:
    """The undisturbed run."""

    result: str
    """As `comparable` tells it."""
    world: dict[str, list[int]]
    log: list[tuple[str, str]]
    """Its boundaries."""
    damaged: bool = False
    """Whether what was prepared is damaged on purpose."""
    refused: str = ""
    """The error by which the damage has to be refused, if it has to be; then it stays."""
    lines: list[Line] = field(default_factory=list)
    """What the ledger holds before the flow begins."""
    bytes: int = 0
    """What it leaves on disk."""
    free: bool = False
    """Whether what it comes to is a matter of timing."""


@dataclass
class Case:
    """What is left after a scenario."""

    golden: Golden
    crashed: Path
    """A copy of the folder as the crash left it."""
    crashed_lines: list[Line]
    after: Path
    lines: list[Line]
    life: dict[str, Any]
    """What the process that recovered has told."""


@dataclass
class Journal:
    """A store as SQLite reads it."""

    records: dict[str, list[Record]]
    heads: dict[str, tuple[int, bytes]]
    aside: dict[str, list[Record]]
    store: bytes


class Findings(list[str]):
    def add(self, invariant: str, what: str) -> None:
        self.append(f"{invariant}: {what}")


def examine(case: Case) -> Findings:
    found = Findings()
    before = None
    if case.golden.refused:
        _life(found, case)
        return found
    if not case.golden.damaged:
        before = state_holds(found, case.crashed, case.crashed_lines, "crashed")
    elif (case.crashed / "runs.db").exists():
        with contextlib.suppress(apsw.Error, ValueError, TypeError):  # damaged on purpose, and not mended yet
            before = read(case.crashed / "runs.db")
    now = state_holds(found, case.after, case.lines, "recovered")
    for another_way, what in differences(case.lines):
        found.add("I-27" if another_way else "I-26", what)
    _life(found, case)
    if now is not None:
        if before is not None:
            monotone(found, before, now, damaged=case.golden.damaged)
            not_again(found, before, now, case.crashed_lines, case.lines)
        waits_hold(found, now)
    return found


# --- one state -------------------------------------------------------------------------------------------------------


def state_holds(found: Findings, folder: Path, lines: list[Line], when: str) -> Journal | None:
    """Whatever must hold at any moment."""
    path = folder / "runs.db"
    _no_canary(found, folder)
    if not path.exists() or not path.stat().st_size:
        runs = {line["run"] for line in lines if line.get("run")}
        if runs or any(line["do"] == "saved" and "saved" not in os.listdir(folder) for line in lines):
            found.add("I-14", f"{when}: there is no store, but the world knows runs {sorted(runs)}")
        return None
    try:
        _anchor(found, folder, when)
        stored = read(path)
    except (apsw.Error, ValueError, TypeError) as error:
        found.add("I-18", f"{when}: SQLite cannot read it: {error!r}")
        return None
    journal_holds(found, stored, lines, when)
    _own_verification(found, path, stored, lines, when)
    return stored


def journal_holds(found: Findings, stored: Journal, lines: list[Line], when: str) -> None:
    """The journal by itself, and held against the world."""
    _chains(found, stored, when)
    _calls(found, stored, lines, when)
    _acts(found, stored, lines, when)


def waits_hold(found: Findings, stored: Journal) -> None:
    _timers(found, stored)
    _answers(found, stored)


def read(path: Path) -> Journal:
    """With nothing but SQLite. A copy is read where the original may still be needed as it is."""
    db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        if (said := db.execute("PRAGMA integrity_check").fetchall()) != [("ok",)]:
            raise ValueError(f"integrity_check: {said[:3]}")
        columns = "run, seq, epoch, at, kind, schema, codec, key, body, seal"
        records: dict[str, list[Record]] = defaultdict(list)
        for row in db.execute(f"SELECT {columns} FROM entries ORDER BY run, seq"):
            records[row[0]].append(Record(*row))
        aside: dict[str, list[Record]] = defaultdict(list)
        for row in db.execute(f"SELECT {columns} FROM quarantine ORDER BY n"):
            aside[row[0]].append(Record(*row))
        heads = {run: (seq, seal) for run, seq, seal in db.execute("SELECT run, seq, seal FROM heads")}
        meta = dict(db.execute("SELECT key, value FROM meta").fetchall())
        return Journal(dict(records), heads, dict(aside), meta["store"])
    finally:
        db.close()


def sealed(store: bytes, record: Record, previous: bytes) -> bytes:
    """The seal, from docs/JOURNAL_FORMAT.md."""
    name = record.run.encode()
    header = struct.pack(
        ">QQQHHHH", record.seq, record.epoch, record.at, record.kind, record.schema, record.codec, record.key
    )
    parts = (b"surefoot/journal/1\0", store, struct.pack(">I", len(name)), name, header, previous)
    return hashlib.sha256(b"".join(parts) + struct.pack(">I", len(record.body)) + record.body).digest()


def _chains(found: Findings, stored: Journal, when: str) -> None:
    for run in stored.records.keys() | stored.heads.keys():
        previous, epoch = bytes(32), 0
        records = stored.records.get(run, [])
        for expected, record in enumerate(records, 1):
            if record.seq != expected or sealed(stored.store, record, previous) != record.seal:
                found.add("I-10", f"{when}: entry {expected} of {run!r} does not follow what is before it")
                break
            if record.epoch < epoch + (KINDS[record.kind] is RunAdopted):
                found.add("I-13", f"{when}: entry {expected} of {run!r} has epoch {record.epoch} after {epoch}")
            previous, epoch = record.seal, record.epoch
        if stored.heads.get(run) != ((records[-1].seq, records[-1].seal) if records else None):
            found.add("I-10", f"{when}: the head of {run!r} is not its last entry")


def _anchor(found: Findings, folder: Path, when: str) -> None:
    """Read before anybody opens the store, which would bring it up to date."""
    raw = (folder / "runs.db-anchor").read_bytes() if (folder / "runs.db-anchor").exists() else b""
    marks = [mark for mark in (_mark(raw[:70]), _mark(raw[512:582])) if mark is not None]
    if not marks:
        found.add("I-12", f"{when}: there is a database, but no anchor that can be read")
        return
    store, pos, seal = max(marks, key=lambda mark: mark[1])
    db = apsw.Connection(str(folder / "runs.db"), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        meta = dict(db.execute("SELECT key, value FROM meta").fetchall())
        row = db.execute("SELECT seal FROM entries WHERE pos = ?", (pos,)).fetchone()
    finally:
        db.close()
    if store != meta["store"]:
        found.add("I-12", f"{when}: the anchor belongs to another store")
    elif pos and row != (seal,) and meta["rewritten"] < pos:
        found.add("I-12", f"{when}: the anchor names record {pos}, which is not there")


def _mark(slot: bytes) -> tuple[bytes, int, bytes] | None:
    if len(slot) != 70 or zlib.crc32(slot[:66]) != struct.unpack(">I", slot[66:])[0]:
        return None
    magic, _, store, pos, seal = struct.unpack(">8sH16sQ32s", slot[:66])
    return (store, pos, seal) if magic == b"sfanchor" else None


def _no_canary(found: Findings, folder: Path) -> None:
    for path in folder.rglob("*"):
        if path.is_file() and CANARY.encode() in path.read_bytes():
            found.add("I-24", f"the canary is in {path.name}")


def _own_verification(found: Findings, path: Path, stored: Journal, lines: list[Line], when: str) -> None:
    """What surefoot itself says, and whether it knows every run that the world knows."""
    try:
        store = SqliteStore.open(str(path), create=False, url="x")
    except NotFound as error:
        found.add("I-14", f"{when}: {error}")
        return
    except SurefootError as error:
        found.add("I-18", f"{when}: cannot be opened: {type(error).__name__}: {error}")
        return
    try:
        verdict = verification.verify_store(store)
        for flaw in verdict.flaws:
            found.add("I-15" if VALUE_DAMAGED in flaw.why else "I-18", f"{when}: verification says {flaw}")
        if (
            when == "recovered"
            and verdict.unneeded
            and any(record.kind == KIND_OF[RunPruned] for run in stored.records.values() for record in run)
        ):
            found.add("I-15", f"after a sweep {verdict.unneeded} parts are left that nobody needs")
        listed = {item.run for item in store.runs(RunQuery(limit=1000))}
        for run in {line["run"] for line in lines if line.get("run")}:
            if run not in stored.records or run not in listed:
                found.add("I-14", f"{when}: the world knows run {run!r}, the store does not")
    except SurefootError as error:
        found.add("I-18", f"{when}: cannot be verified: {type(error).__name__}: {error}")
    finally:
        store.close()


# --- calls, held against the world -----------------------------------------------------------------------------------


def _entries(stored: Journal, run: str) -> list[tuple[Record, Any]]:
    """What stands, and what was set aside: both prove what was done."""
    found = []
    for record in [*stored.aside.get(run, []), *stored.records.get(run, [])]:
        try:
            found.append((record, from_record(record)))
        except SurefootError:
            continue  # damaged on purpose; chains and verification look at what stands
    return found


def _name(entry: Any) -> str:
    return type(entry).__name__


def _calls(found: Findings, stored: Journal, lines: list[Line], when: str) -> None:
    acts = defaultdict(set)
    for line in lines:
        if line["do"] in ("did", "undid", "tried"):
            acts[line["run"]].add(line.get("key") or line["what"])
    for run in stored.records:
        opened: dict[str, Any] = {}
        cleared: set[str] = set()
        """Known not to have happened: then its failure may still follow."""
        keys: dict[str, str] = {}
        parent = any(_name(entry) == "RunCreated" and entry.parent for _, entry in _entries(stored, run))
        fell = any(_name(entry) in ("FellBack", "RunRewound") for _, entry in _entries(stored, run))
        for record in stored.records[run]:
            try:
                entry = from_record(record)
            except SurefootError as error:
                found.add("I-18", f"{when}: entry {record.seq} of {run!r} cannot be read: {error}")
                continue
            match _name(entry):
                case "EffectIntended" | "EffectSuspected" | "EffectRecovered":
                    open_ = opened.get(entry.address)
                    if open_ is not None and open_.policy not in ("retry", "check") and not fell:
                        found.add("I-16", f"{when}: {entry.address} of {run!r} is intended again while it is open")
                    if keys.setdefault(entry.address, entry.key) != entry.key and not parent:
                        found.add("I-03", f"{when}: {entry.address} of {run!r} has two keys")
                    cleared.discard(entry.address)
                    if _name(entry) != "EffectRecovered":
                        opened[entry.address] = entry
                    elif entry.key not in acts[run] and not parent:
                        found.add(
                            "I-01", f"{when}: {entry.address} of {run!r} is recovered, and the world knows nothing"
                        )
                case "EffectDone" | "EffectRaised" | "EffectUnstorable" | "EffectSettled":
                    open_ = opened.pop(entry.address, None)
                    if _name(entry) == "EffectSettled" and not entry.happened:
                        cleared.add(entry.address)
                    elif open_ is None and not fell and entry.address not in cleared and not _is_denied(entry):
                        found.add("I-16", f"{when}: {entry.address} of {run!r} has an outcome without an open intent")
                    _has_its_act(found, run, entry, keys.get(entry.address, ""), acts[run], parent, when)
                case "CallsReopened":
                    cleared.update(entry.addresses)  # One that gave up is in doubt again, and may be settled.
                case "RunContinued":
                    opened, keys = {}, {}
                case _:
                    pass


def _is_denied(entry: Any) -> bool:
    """A no is recorded as what became of a call that was never begun."""
    return _name(entry) == "EffectRaised" and entry.denied


_LEAVES_TRACE = (
    "charge", "put", "copy", "move", "reserve", "lost", "wire", "fussy", "acharge", "aput", "vague", "deaf",
    "decline", "risky",
)  # fmt: skip


def _has_its_act(found: Findings, run: str, entry: Any, key: str, acts: set[str], parent: bool, when: str) -> None:
    happened = _name(entry) == "EffectDone" or (_name(entry) == "EffectSettled" and entry.happened)
    name = entry.address.rsplit("/", 1)[-1].partition("#")[0]
    if happened and name in _LEAVES_TRACE and not parent and key not in acts:
        found.add("I-01", f"{when}: {entry.address} of {run!r} is on record as done, and the world knows nothing of it")


def _acts(found: Findings, stored: Journal, lines: list[Line], when: str) -> None:
    intents: dict[tuple[str, str], list[Any]] = defaultdict(list)
    done: set[tuple[str, str]] = set()
    shown: dict[tuple[str, str], str] = {}
    agreed: Counter[tuple[str, str, str]] = Counter()
    pruned = set()
    for run in stored.records:
        for _, entry in _entries(stored, run):
            name = _name(entry)
            if name in ("EffectIntended", "EffectSuspected", "EffectRecovered"):
                intents[run, entry.address].append(entry)
            if name in ("StepDone", "EffectDone", "EffectSettled", "EffectRecovered"):
                done.add((run, entry.address))
            if name == "QuestionAsked" and entry.address.endswith(".approval"):
                shown[run, entry.address] = _digest_of(entry.details)
            if name == "AnswerGiven" and bytes(entry.value) == b"true":
                agreed[run, entry.address.removesuffix(".approval"), shown.get((run, entry.address), "")] += 1
            if name == "RunPruned":
                pruned.add(run)
    keys: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for line in lines:
        if line["do"] == "broken in":
            found.add("I-13", f"{when}: a run was driven while the process that had claimed it was alive")
        if line["do"] not in ("did", "undid") or "key" not in line or line["run"] in pruned:
            continue
        call = (line["run"], line["address"])
        if line["do"] == "undid" and "by" not in line:
            _intended(found, line, intents[call], when)
        if line["do"] == "did":
            keys[line["key"]].add((line["run"], line["what"]))
            _intended(found, line, intents[call], when)
            if line["what"].startswith("wire"):
                agreed[*call, line["digest"]] -= 1
                if agreed[*call, line["digest"]] < 0:
                    found.add("I-04", f"{when}: {line['what']} of {call[0]!r} was executed without a yes for it")
    for key, calls in keys.items():
        if len(calls) > 1:
            found.add("I-03", f"{when}: the key {key[:8]} stands for several calls: {sorted(calls)}")
    _repeated(found, lines, when)
    _acknowledged(found, stored, lines, done, pruned, when)


def _digest_of(details: Any) -> str:
    return values.encode_args(dict(values.decode(details)["arguments"]))[1]


def _intended(found: Findings, line: Line, intents: list[Any], when: str) -> None:
    same = [entry for entry in intents if entry.key == line["key"]]
    if not same or not any(entry.attempt >= line["attempt"] for entry in same):
        found.add("I-02", f"{when}: {line['what']} of {line['run']!r} was done without its intent on record")
    elif "digest" in line and any(entry.digest != line["digest"] for entry in same):
        found.add("I-04", f"{when}: {line['what']} of {line['run']!r} was done with other arguments than on record")


def _repeated(found: Findings, lines: list[Line], when: str) -> None:
    """Nothing is done twice by our own decision, but for what is declared to be harmless, under one key."""
    calls: dict[tuple[str, str], list[Line]] = defaultdict(list)
    for line in lines:
        if line["do"] in ("did", "undid"):
            calls[line["run"], line["what"]].append(line)
    for (run, what), told in calls.items():
        parts: Counter[int] = Counter()
        segments = {line["key"] for line in told if line["do"] == "did"}
        if len(segments) > 1:
            found.add("I-03", f"{when}: {what} of {run!r} was done under {len(segments)} keys")
        for line in told:
            if line["do"] == "undid":
                if not parts and line.get("kind") == "probed":
                    found.add("I-03", f"{when}: {what} of {run!r} was undone twice")
                parts.clear()
                continue
            parts[line["part"]] += 1
            if parts[line["part"]] > 1 and line["kind"] != "keyed":
                found.add("I-03", f"{when}: {what} of {run!r} was done twice")


def _acknowledged(
    found: Findings, stored: Journal, lines: list[Line], done: set[tuple[str, str]], pruned: set[str], when: str
) -> None:
    known: set[tuple[str, str]] = set()
    for run in stored.records:
        for _, entry in _entries(stored, run):
            address = getattr(entry, "address", "")
            if (run, address) in done and hasattr(entry, "args"):
                name = address.rsplit("/", 1)[-1].partition("#")[0]
                known.add((run, f"{name} {_number(entry)}"))
    told: dict[tuple[str, str], set[str]] = defaultdict(set)
    for line in lines:
        if line["do"] == "seen" and line["run"] not in pruned:
            told[line["run"], line["what"]].add(line["value"])
            if (line["run"], line["what"]) not in known and not line["what"].startswith("now"):
                found.add(
                    "I-07", f"{when}: user code has seen {line['what']} of {line['run']!r}, and it is not on record"
                )
    for (run, what), different in told.items():
        if len(different) > 1:
            found.add("I-06", f"{when}: user code saw {len(different)} values of {what} of {run!r}")
    saved = [int(line["what"].split()[1]) for line in lines if line["do"] == "saved"]
    generations = [
        entry.generation
        for run in stored.records
        for _, entry in _entries(stored, run)
        if _name(entry) == "GenerationSaved"
    ]
    if saved and max(generations, default=0) < max(saved):
        found.add("I-07", f"{when}: generation {max(saved)} was saved, and there are {generations}")


def _number(entry: Any) -> int:
    """The `n` of a call. Of large arguments only the beginning is needed, and it is in front."""
    try:
        return int(json.loads(bytes(entry.args))["n"])
    except (TypeError, KeyError, ValueError):
        return int(entry.address.rpartition("#")[2]) - 1  # `think`, whose arguments are kept by parts, counts from 0


# --- two states, and the life that led from one to the other ----------------------------------------------------------


def monotone(found: Findings, before: Journal, now: Journal, *, damaged: bool = False) -> None:
    """Nobody steps back from what is whole."""
    for run, records in before.records.items():
        later = now.records.get(run, [])
        if later[: len(records)] == records:
            continue
        kept = {record.seal for record in later} | {record.seal for record in now.aside.get(run, [])}
        names = [KINDS[record.kind].__name__ for record in later]
        if "RunPruned" in names:
            continue
        if run.startswith("\x1fcheckpoint"):
            newest_stay(found, _generations(records), _generations(later))
            continue
        if damaged and "FellBack" in names and all(record.seal in kept for record in records):
            continue
        found.add("I-11", f"{len(records)} entries of {run!r} were there after the crash, and are not what follows")


def _generations(records: list[Record]) -> dict[int, Any]:
    """What each was, by its number: it may be sealed anew, behind others."""
    return {record.epoch: (record.at, record.body) for record in records}


def _generation_files(folder: Path) -> dict[int, Any]:
    """The same, of a checkpoint in files."""
    return {int(path.stem): path.read_bytes() for path in folder.glob("saved/*/*.json") if path.stem.isdecimal()}


def newest_stay(found: Findings, before: dict[int, Any], now: dict[int, Any]) -> None:
    """Older generations may go for the sake of newer ones. The newest stay, as they are."""
    for number in sorted(before | now)[-KEEP:]:
        if number in before and now.get(number) != before[number]:
            found.add("I-11", f"generation {number} was there after the crash, and is not among {sorted(now)}")


def _loads(found: Findings, lines: list[Line]) -> None:
    """A load gives what was last saved, or something newer of which nobody heard back."""
    saved = 0
    for line in lines:
        if line["do"] == "saved":
            saved = max(saved, int(line["what"].split()[1]))
        elif line["do"] == "loaded" and int(line["what"].split()[1]) < saved:
            found.add("I-07", f"a load gave {line['what']}, and {saved} was saved before")


def not_again(found: Findings, before: Journal, now: Journal, first: list[Line], then: list[Line]) -> None:
    """Of a call that was on record, as done or as failed for good, nothing is executed afterwards."""

    def executed(lines: list[Line]) -> Counter[tuple[str, str]]:
        return Counter(
            (line["run"], line["address"])
            for line in lines
            if line["do"] in ("step", "did", "undid") and "by" not in line and "address" in line
        )

    earlier, later = executed(first), executed(then)
    for run, records in before.records.items():
        names = {KINDS[record.kind].__name__ for record in now.records.get(run, [])}
        if names & {"FellBack", "RunRewound", "RunPruned", "RunContinued"}:
            continue  # Then calls are made again by intention, or addresses begin anew, and counting tells nothing.
        for address in _over(records) - _reopened(now.records.get(run, [])):
            if later[run, address] > earlier[run, address]:
                found.add("I-06", f"{address} of {run!r} was on record, and was executed again")


def _reopened(records: list[Record]) -> set[str]:
    """Calls that failed and that somebody has had tried again."""
    kinds = (record for record in records if KINDS[record.kind].__name__ == "CallsReopened")
    return {address for record in kinds for address in from_record(record).addresses}


def _over(records: list[Record]) -> set[str]:
    """Calls that have ended for good: nothing on record says that another attempt follows."""
    over = set()
    for record in records:
        try:
            entry = from_record(record)
        except SurefootError:
            continue  # damaged on purpose
        if _name(entry) in ("StepDone", "EffectDone", "StepRaised", "EffectRaised") and not getattr(entry, "due", None):
            over.add(entry.address)
        elif _name(entry) in ("EffectIntended", "EffectSuspected", "EffectSettled"):
            over.discard(entry.address)
    return over


def _life(found: Findings, case: Case) -> None:
    life, golden = case.life, case.golden
    if not golden.damaged:
        _loads(found, case.lines)
        newest_stay(found, _generation_files(case.crashed), _generation_files(case.after))
    if life.get("wrong"):
        found.append(went_wrong(life))
        return
    if life.get("error"):
        found.add("I-20", f"recovery ended with {life['error']}")
        return
    if life["loud"] and not golden.damaged:
        found.add("I-11", f"nothing is damaged, and it said {life['loud']}")
    wanted = life["result"] if golden.free else golden.result
    if life["result"] != wanted:
        found.add("I-05", f"the result is {life['result']}, and should be {golden.result}")
    if world_of(case.lines) != golden.world and not golden.free:
        found.add("I-05", f"the world is left as {world_of(case.lines)}, and should be {golden.world}")
    stands = life["declined"] and (golden.free or "UsageError" in life["result"])  # refused, and each time it says so
    if not stands and (life["again"]["result"] != wanted or life["again"]["changed"]):
        found.add("I-23", f"a second resume changed {life['again']['changed'] or life['again']['result']}")
    for leak in life["leaks"]:
        found.add("I-25", leak)
    size = bytes_in(case.after)
    if size > MOST_TIMES * golden.bytes:
        found.add("I-25", f"{size} bytes on disk, and {golden.bytes} after the undisturbed run")
    strange = [path.name for path in case.after.rglob("*") if ".surefoot-" in path.name or path.name.endswith("-new")]
    if strange:
        found.add("I-15", f"temporary files are left: {strange}")


def went_wrong(life: dict[str, Any]) -> str:
    """A process that met something that must not be: a stop that does not say what helps, or anything else."""
    invariant = "I-21" if life.get("bare") else "I-20"
    return f"{invariant}: {life['wrong']}"


def bytes_in(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def world_of(lines: list[Line]) -> dict[str, list[int]]:
    """What the world holds in the end: each thing once, however often it was asked for under one key."""
    things: dict[str, list[Line]] = defaultdict(list)
    for line in lines:
        if line["do"] in ("did", "undid") and line.get("kind") != "maybe":
            things[f"{line['run']} {line['what']}"].append(line)
    return {name: sorted(parts) for name, told in sorted(things.items()) if (parts := parts_of(told))}


def _timers(found: Findings, now: Journal) -> None:
    for run in now.records:
        due: dict[str, int] = {}
        for record, entry in _entries(now, run):
            if _name(entry) == "TimerSet":
                if entry.address in due:
                    found.add("I-22", f"{entry.address} of {run!r} was set twice")
                due[entry.address] = entry.due.at
            elif _name(entry) == "TimerFired" and record.at < due.pop(entry.address, 1 << 63):
                found.add("I-22", f"{entry.address} of {run!r} fired early, or twice")


def _answers(found: Findings, now: Journal) -> None:
    for run in now.records:
        shown: dict[str, str] = {}
        answered: set[str] = set()
        for _, entry in _entries(now, run):
            if _name(entry) == "QuestionAsked":
                shown[entry.address] = entry.shown
                answered.discard(entry.address)
            elif _name(entry) == "AnswerGiven":
                if shown.get(entry.address) != entry.shown:
                    found.add("I-22", f"an answer to {entry.address} of {run!r} is not bound to what was shown")
                if entry.address in answered:
                    found.add("I-22", f"the question {entry.address} of {run!r} was answered twice")
                answered.add(entry.address)
