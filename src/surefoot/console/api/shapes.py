"""The answers of the API, as types: what OpenAPI is written from. A test holds every answer against them.

The objects themselves are made in `view/facts.py`. Nothing is made here.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from msgspec import UNSET, Struct, UnsetType

from surefoot.engine.operate.decisions import Action


class Shape(Struct, frozen=True, forbid_unknown_fields=True):
    pass


class Cure(Shape, frozen=True, forbid_unknown_fields=False):
    """What helps: a command, an edit of the code, or advice."""

    when: str
    do: str


class Seen(Shape, frozen=True):
    """Where a journal ended when it was looked at."""

    seq: int
    seal: str


class Drift(Shape, frozen=True):
    witness: str
    part: str
    what: str
    expected: str
    actual: str
    by: str
    host: str | UnsetType = UNSET


class Question(Shape, frozen=True):
    form: str
    question: str
    details: Any
    wanted: Any
    """A JSON Schema, or null."""
    by: list[str]
    until: datetime | None
    shown: str
    """The digest of all that is shown; an answer names it."""


class Stop(Shape, frozen=True):
    type: str
    message: str
    address: str
    cures: list[Cure]
    drift: list[Drift]
    facts: dict[str, str | int | float]
    question: Question | UnsetType | None = UNSET


class Error(Shape, frozen=True):
    type: str
    message: str
    run: str
    address: str
    cures: list[Cure]
    exit_code: int
    drift: list[Drift] | UnsetType = UNSET
    facts: dict[str, str | int | float] | UnsetType = UNSET
    stops: list[Stop] | UnsetType = UNSET
    path: str | UnsetType = UNSET


class Failure(Shape, frozen=True):
    error: Error


class Item(Shape, frozen=True):
    kind: str
    decide: bool
    run: str
    workflow: str
    address: str
    title: str
    since: datetime | None
    until: datetime | None
    by: list[str]
    actions: list[str]
    href: str


class Inbox(Shape, frozen=True):
    items: list[Item]
    next: str


class RunLine(Shape, frozen=True):
    run: str
    workflow: str
    status: str
    stands: str
    needs_a_person: bool
    why: str
    left: list[str]
    created: datetime | None
    labels: dict[str, str]
    need: str
    until: datetime | None
    queue: str
    marks: list[str]


class Runs(Shape, frozen=True):
    runs: list[RunLine]
    next: str


class Call(Shape, frozen=True):
    address: str
    kind: str
    status: str
    in_doubt: bool
    attempts: int
    started: datetime
    ended: datetime | None
    by: str
    args: Any
    defaults: Any
    result: Any
    error: str
    key: str
    on_crash: str
    learned_by: str
    cleared_by: str


class ErrorTold(Shape, frozen=True):
    type: str
    message: str


class Run(Shape, frozen=True):
    run: str
    workflow: str
    version: int
    status: str
    stands: str
    needs_a_person: bool
    headline: str
    created: datetime
    newest: datetime
    segment: int
    driver: str
    driven: bool
    labels: dict[str, str]
    progress: str
    cancel_asked_by: str
    child_of: str
    forked_from: str
    rewinds: list[str]
    landed_late: list[str]
    retries: list[str]
    stops: list[Stop]
    cures: list[Cure]
    args: Any
    defaults: Any
    result: Any
    left: list[str]
    error: ErrorTold | None
    published: dict[str, Any]
    calls: list[Call]
    head: Seen


class Calls(Shape, frozen=True):
    run: str
    calls: list[Call]
    next: int | None
    head: Seen


class Attempt(Shape, frozen=True):
    attempt: int
    outcome: str
    start: datetime
    end: datetime
    open_end: bool
    by: str
    error: str
    set_aside: bool
    until: datetime | None


class Entry(Shape, frozen=True):
    seq: int
    at: datetime
    epoch: int
    kind: str
    data: dict[str, Any]


class WholeCall(Shape, frozen=True):
    run: str
    address: str
    kind: str
    status: str
    in_doubt: bool
    attempts: int
    started: datetime
    ended: datetime | None
    by: str
    args: Any
    defaults: Any
    result: Any
    error: str
    key: str
    on_crash: str
    learned_by: str
    cleared_by: str
    question: Question | None
    made: list[Attempt]
    entries: list[Entry]


class Entries(Shape, frozen=True):
    entries: list[Entry]
    next: int | None


class Stretch(Shape, frozen=True):
    epoch: int
    process: str
    start: datetime
    end: datetime
    ended: bool
    gap: int
    set_back: bool
    x: float
    width: float


class Lane(Shape, frozen=True):
    path: str
    label: str
    depth: int
    is_folded: bool
    branches: int


class Bar(Shape, frozen=True):
    lane: int
    address: str
    kind: str
    attempt: int
    outcome: str
    start: datetime
    end: datetime
    seq: int
    last: int
    segment: int
    x: float
    width: float
    open_end: bool
    by: str
    error: str
    set_aside: bool
    until: datetime | None
    calls: int


class Sign(Shape, frozen=True):
    kind: str
    at: datetime
    seq: int
    x: float
    by: str


class Lanes(Shape, frozen=True):
    width: float
    hidden: int
    stretches: list[Stretch]
    lanes: list[Lane]
    bars: list[Bar]
    signs: list[Sign]


class Part(Shape, frozen=True):
    part: str
    hash: str
    by: str
    seq: int


class World(Shape, frozen=True):
    run: str
    folder: str
    witnesses: list[str]
    unwatched: list[str]
    parts: list[Part]


class Doubt(Shape, frozen=True):
    address: str
    resume_would: str


class Next(Shape, frozen=True):
    kind: str
    address: str


class Asked(Shape, frozen=True):
    address: str
    question: str


class Plan(Shape, frozen=True):
    run: str
    status: str
    stands: str
    headline: str
    replayed: list[str]
    recorded: int
    in_doubt: list[Doubt]
    next: list[Next] | None
    effects: list[str]
    stops: list[str]
    ending: str
    unasked: list[str]
    drift: list[str]
    on_drift: str
    questions: list[Asked]
    cures: list[Cure]


class Supposed(Shape, frozen=True):
    do: str
    sets_aside: list[str]
    runs_again: list[str]
    in_doubt: list[Doubt]
    next: list[Next] | None
    stops: list[str]
    ending: str


class Planned(Shape, frozen=True):
    plan: Plan
    supposed: Supposed | None
    seen: Seen


class Supposing(Shape, frozen=True):
    supposing: Action | None = None


class Open(Shape, frozen=True):
    type: str
    address: str
    message: str


class Recorded(Shape, frozen=True):
    recorded: dict[str, Any]
    status: str
    open: list[Open]
    resume: str
    """The command that resumes it; empty: it goes on by itself, has ended, or something is still open."""


class Difference(Shape, frozen=True, forbid_unknown_fields=False):
    address: str
    verdict: str


class Diff(Shape, frozen=True):
    a: str
    b: str
    differs: list[str]
    same: int
    different: int
    only_in_a: int
    only_in_b: int
    calls: list[Difference]


class Serving(Shape, frozen=True):
    workflows: list[str]
    queues: list[str]
    code: str


class Worker(Shape, frozen=True):
    worker: str
    host: str
    pid: int
    since: datetime
    heard: datetime | None
    serving: Serving | None


class Workers(Shape, frozen=True):
    workers: list[Worker]


class Said(Shape, frozen=True):
    pos: int
    run: str
    by: str
    entry: Entry | None
    seal: str


class Audit(Shape, frozen=True):
    said: list[Said]


class Store(Shape, frozen=True):
    store: str
    runs: dict[str, int]
    durability: dict[str, str]
    anchor: str
    position: int
    now: datetime


class Begun(Shape, frozen=True):
    job: str


class Job(Shape, frozen=True):
    id: str
    what: str
    by: str
    began: datetime
    ended: datetime | None
    exit_code: int
    result: Any
