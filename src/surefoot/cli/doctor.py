"""`surefoot doctor`: does this place keep what surefoot promises? A verdict per line, and what to do."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from surefoot.cli import output, paint
from surefoot.cli.options import Settings, verb
from surefoot.errors import Damaged, NotFound, Stopped, SurefootError
from surefoot.view import facts, text

if TYPE_CHECKING:
    from surefoot.store.contract import Store
    from surefoot.store.findings import Finding


@click.command()
@verb
def doctor(settings: Settings) -> int:
    """Look at the store's settings, disk, locks, clock and files, at the engine, and try out what can be tried.

    Changes nothing; a probe file beside the store is written and removed. Whether the recorded data is whole is
    another question: surefoot verify. Exit code: 0, or 4 if something is bad.
    """
    from surefoot import __version__
    from surefoot.engine.process import config
    from surefoot.store.findings import BAD
    from surefoot.store.open import shown

    url = config.store_url(settings.store)
    found = _examined(url)
    if settings.json:
        output.say_json(facts.health(__version__, shown(url), found))
    else:
        output.say(text.visible(f"surefoot {__version__}, store {shown(url)}"))
        rows = [(one.level, one.what, text.visible(f"{one.said} -> {one.do}" if one.do else one.said)) for one in found]
        paint.draw(("VERDICT", "ABOUT", "FOUND"), rows, flexible=())
    return Damaged.exit_code if any(one.level == BAD for one in found) else 0


def _examined(url: str) -> list[Finding]:
    from surefoot.engine.process import config, engines
    from surefoot.store.findings import BAD, OK, WARN, Finding
    from surefoot.store.open import backend_of

    backend = backend_of(url)
    found = backend.before_opening(url)
    store: Store | None = None
    if backend.durable:
        try:
            store = config.runtime(url, create=False).store
            found.append(Finding(OK, "store", "opens, and ends where its anchor says"))
        except NotFound as error:
            found.append(Finding(WARN, "store", str(error), "start a run: it is made then"))
        except SurefootError as error:
            summary = error.summary if isinstance(error, Stopped) else str(error)
            cures = "; ".join(f"{when} {do}" for when, do in getattr(error, "cures", ()))
            found.append(Finding(BAD, "store", f"{type(error).__name__}: {summary}", cures))
    engine = engines.bell().examine()
    return [*found, *backend.examine(url, store, now=time.time_ns() // 1000), *engine]
