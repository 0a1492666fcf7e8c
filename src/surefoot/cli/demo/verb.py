"""`surefoot demo`: the main job, seen from outside."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path

import click

from surefoot.cli import output
from surefoot.cli.options import Settings, verb
from surefoot.errors import UsageError


@click.command()
@click.option(
    "--keep", type=click.Path(path_type=Path), metavar="DIR", help="Work in this new or empty folder; keep it."
)
@verb
def demo(settings: Settings, keep: Path | None) -> int:
    """See it work, in well under a minute, without network or keys.

    A refactoring agent runs as a process of its own. It is killed with SIGKILL in the middle; a file it wrote is
    changed while it is down, which it notices; it is resumed, killed again inside an effect, found in doubt, settled,
    and brought home. Every number that is printed was observed. Exit code 0 only if everything held.
    """
    from surefoot.cli.demo.stage import play
    from surefoot.cli.execution import Signals

    if settings.store is not None:
        raise UsageError("the demo has a store of its own, in a folder of its own: leave --store out.")
    with Signals(), ExitStack() as cleared:
        folder = _kept(keep) if keep is not None else _passing(cleared)
        seen = play(folder, settings, kept=keep is not None)
    if settings.json:
        output.say_json(seen)
    return 0 if seen["held"] else 1


def _kept(folder: Path) -> Path:
    """A folder that stays: made if needed, checked to be empty and writable."""
    try:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise UsageError(f"--keep {folder}: it exists and is not an empty folder.")
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder.resolve()
    except OSError as error:
        raise UsageError(
            f"--keep {folder}: {error.strerror}. Name a new or empty folder that can be written to."
        ) from error


def _passing(cleared: ExitStack) -> Path:
    """A folder that is deleted when the demo ends."""
    try:
        return Path(cleared.enter_context(tempfile.TemporaryDirectory(prefix="surefoot-demo-"))).resolve()
    except OSError as error:
        raise UsageError(
            f"no temporary folder: {error.strerror}. Name one that can be written to: --keep DIR."
        ) from error
