"""`surefoot demo`: the main job, seen from outside."""

from __future__ import annotations

import tempfile
from pathlib import Path

import click

from surefoot.cli import output
from surefoot.cli.options import Settings, common
from surefoot.errors import UsageError


@click.command()
@click.option(
    "--keep", type=click.Path(path_type=Path), metavar="DIR", help="Work in this new or empty folder; keep it."
)
@common
@click.pass_obj
def demo(settings: Settings, keep: Path | None) -> int:
    """See it work, in well under a minute, without network or keys.

    A refactoring agent runs as a process of its own. It is killed with SIGKILL in the middle and resumed,
    killed again inside an effect, found in doubt, settled, and brought home. Every number that is printed was
    observed. Exit code 0 only if everything held.
    """
    from surefoot.cli.demo.stage import play
    from surefoot.cli.driving import Signals

    if settings.store is not None:
        raise UsageError("the demo has a store of its own, in a folder of its own: leave --store out.")
    if keep is not None:
        if keep.exists() and (not keep.is_dir() or any(keep.iterdir())):
            raise UsageError(f"--keep {keep}: it exists and is not an empty folder.")
        keep.mkdir(parents=True, exist_ok=True)
        with Signals():
            seen = play(keep.resolve(), settings, kept=True)
    else:
        with Signals(), tempfile.TemporaryDirectory(prefix="surefoot-demo-") as folder:
            seen = play(Path(folder).resolve(), settings, kept=False)
    if settings.json:
        output.say_json(seen)
    return 0 if seen["held"] else 1
