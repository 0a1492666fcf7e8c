"""One run as a page needs it: read once and verified, with its story, what it needs, and who would go on with it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from msgspec import Struct

from surefoot.console import reads
from surefoot.core.entry import Entry, RunCreated
from surefoot.core.seal import Record, Sealer, from_record, verify
from surefoot.core.state import RunState
from surefoot.engine.drive import fallback
from surefoot.engine.operate.handle import Run, Seen
from surefoot.engine.process.runtime import Runtime
from surefoot.errors import Damaged
from surefoot.store.contract import WorkerSeen
from surefoot.view import inbox, page, words
from surefoot.view.inbox import Item
from surefoot.view.lanes import Timeline, timeline


class Looked(Struct, frozen=True):
    run: Run
    state: RunState
    driven: bool
    page: page.Page
    seen: Seen
    story: Sequence[tuple[Record, Entry]]
    items: Sequence[Item]
    workers: Sequence[WorkerSeen]
    now: int

    @property
    def id(self) -> str:
        return self.run.id

    @property
    def serving(self) -> int:
        """How many living workers take it up by themselves."""
        return sum(inbox.serves([one], self.state) for one in self.workers)

    def timeline(self, first: int = 0, last: int = 0) -> Timeline:
        return timeline(self.story, driven=self.driven, now=self.now, first=first, last=last)


class Broken(Struct, frozen=True):
    """A run whose journal is damaged."""

    id: str
    why: str
    damage: fallback.Damage | None
    """What going on before the damage would mean; None: nothing can be said."""
    workflow: str
    now: int


def look_at(runtime: Runtime, run_id: str, apps: Sequence[str] = ()) -> Looked | Broken:
    """`NotFound`, if there is no such run."""
    now = runtime.clock.now()
    try:
        run = reads.open_run(runtime, run_id)
        state, driven = reads.look(run)
        story = run.story()
    except Damaged as error:
        return _broken(runtime, run_id, error, now)
    workers = runtime.store.workers()
    found = page.page(
        state, driven=driven, now=now, where=runtime.store.url, app=" ".join(apps) or words.UNKNOWN_APP, whole=run.whole
    )
    items = inbox.of_run(state, workers, driven=driven, now=now)
    return Looked(run, state, driven, found, run.seen, story, items, workers, now)


def _broken(runtime: Runtime, run_id: str, error: Damaged, now: int) -> Broken:
    try:
        damage = fallback.diagnose(runtime.store, run_id)
    except Damaged:
        damage = None
    return Broken(run_id, error.summary, damage, _workflow(runtime, run_id), now)


def _workflow(runtime: Runtime, run_id: str) -> str:
    """By its first entry; empty, if that is damaged too."""
    with suppress(Damaged):
        first = runtime.store.read(run_id, limit=1).records
        entry = from_record(first[0]) if verify(Sealer(runtime.store.id, run_id), first) else None
        return entry.workflow if isinstance(entry, RunCreated) else ""
    return ""
