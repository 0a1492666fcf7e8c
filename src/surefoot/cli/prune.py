"""`surefoot prune --older-than 30d`: deletes runs that ended long ago, and leaves tombstones. A dry run by default."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import click

from surefoot.cli import flaws, operators, output, paint, progress
from surefoot.cli.flaws import many
from surefoot.cli.options import Settings, operator
from surefoot.core.state import CANCELLED, DONE, ENDED, FAILED
from surefoot.core.timer import seconds
from surefoot.errors import Damaged, UsageError
from surefoot.view import facts, text

if TYPE_CHECKING:
    from surefoot.engine.upkeep.tombstones import Candidate, Refusal, Swept
    from surefoot.store.contract import Store


@click.command()
@click.option("--older-than", required=True, metavar="TIME", help="Only runs whose last entry is older, e.g. 30d.")
@click.option("--status", metavar="LIST", help="Only runs that ended so: done, failed, cancelled, with commas between.")
@click.option(
    "--archive", metavar="URL", help="Put each run into a bucket first: s3://, gs:// or az://. See `restore`."
)
@click.option("--yes", is_flag=True, help="Do it. Without this, only say what would go.")
@operator
def prune(
    settings: Settings, older_than: str, status: str | None, archive: str | None, yes: bool, by: str, note: str
) -> int:
    """Delete the journals of runs that ended long ago, and parts of values that nobody needs any more.

    Each run leaves a sealed tombstone: its id stays taken, and asking for it says that it was pruned. Runs that
    have not ended are never touched. What is damaged is left as it is, and then no parts are deleted.
    """
    from surefoot.engine.process import config
    from surefoot.engine.upkeep import tombstones

    wanted = _statuses(status)
    age = seconds(older_than)
    runtime = config.runtime(settings.store, create=False)
    store, clock = runtime.store, runtime.clock
    found = list(tombstones.candidates(store, clock, older_than_seconds=age, statuses=wanted))
    going = [one for one in found if isinstance(one, tombstones.Candidate)]
    left = [one for one in found if isinstance(one, tombstones.Refusal)]
    damaged = bool(left)
    swept = None
    if yes:
        bury = partial(tombstones.bury, store, clock, by=by, note=note)
        refused = [bury(one) for one in going] if archive is None else _archived(store, archive, going, bury)
        left += [refusal for refusal in refused if refusal is not None]
        going = [one for one, refusal in zip(going, refused, strict=True) if refusal is None]
        with progress.journals(settings, "looking for parts that nobody needs") as watch:
            swept = tombstones.sweep(store, watch=watch)
        damaged = damaged or bool(swept.flaws) or any(one.damaged for one in left)
    if settings.json:
        output.say_json(facts.pruning(going, left, swept, operators.where(settings)))
    else:
        _tell(settings, going, left, swept)
    return flaws.DAMAGED if damaged else 0


def _archived(
    store: Store, url: str, going: list[Candidate], bury: Callable[..., Refusal | None]
) -> list[Refusal | None]:
    """Each is in the bucket, whole, before it is buried."""
    from surefoot.engine.upkeep.archives import Archive
    from surefoot.engine.upkeep.tombstones import Refusal
    from surefoot.store.bucket import open_bucket

    archive = Archive(open_bucket(url))
    done: list[Refusal | None] = []
    for one in going:
        try:
            kept = archive.keep(store, one)
        except Damaged as error:
            done.append(Refusal(one.run, error.summary, damaged=True))
        else:
            done.append(bury(one, archive=kept.url, sha256=kept.sha256))
    return done


def _statuses(given: str | None) -> frozenset[str]:
    if given is None:
        return ENDED
    words = frozenset(word.strip() for word in given.split(","))
    if not words <= ENDED:
        wrong = ", ".join(sorted(words - ENDED))
        raise UsageError(f"--status {wrong}: only runs that have ended can go: {DONE}, {FAILED}, {CANCELLED}.")
    return words


def _tell(settings: Settings, going: list[Candidate], left: list[Refusal], swept: Swept | None) -> None:
    now = time.time_ns() // 1000
    stones = [(text.visible(one.run), one.tombstone) for one in going]
    rows = [
        (left.status, run, text.visible(left.workflow), text.ago(left.ended, now), f"{left.entries:,}")
        for run, left in stones
    ]
    if rows:
        paint.draw(("STATUS", "RUN", "WORKFLOW", "ENDED", "ENTRIES"), rows, flexible=())
    for one in left:
        output.tell(text.visible(f"left as it is: run {one.run}: {one.why}"))
    what = f"{many(len(going), 'run')} with {many(sum(one.tombstone.entries for one in going), 'entry')}"
    if swept is None:
        output.say(f"{what} would go. Nothing was changed; --yes does it.")
        return
    output.say(f"{what} went, and {many(swept.deleted, 'part')} that nobody needs.")
    if swept.why:
        output.tell(f"no parts were deleted: {swept.why}")
    for flaw in swept.flaws:
        output.tell(flaws.told(flaw, operators.where(settings)))
