"""`surefoot doctor`: does this place keep what surefoot promises? A verdict per line, and what to do."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from surefoot.cli import output, paint
from surefoot.cli.options import Settings, common
from surefoot.errors import Damaged, NotFound, Stopped, SurefootError
from surefoot.view import text

if TYPE_CHECKING:
    from surefoot.store.probe import Finding


@click.command()
@common
@click.pass_obj
def doctor(settings: Settings) -> int:
    """Look at the store's settings, disk, locks, clock and files, and try out what can be tried.

    Changes nothing; a probe file beside the store is written and removed. Whether the recorded data is whole is
    another question: surefoot verify. Exit code: 0, or 4 if something is bad.
    """
    from surefoot import __version__
    from surefoot.engine import config
    from surefoot.store import probe
    from surefoot.store.open import shown

    url = config.store_url(settings.store)
    found = _in_memory() if url.startswith("memory:") else _examined(url)
    if settings.json:
        output.say_json({"surefoot": __version__, "store": shown(url), "findings": [_facts(one) for one in found]})
    else:
        output.say(text.visible(f"surefoot {__version__}, store {shown(url)}"))
        rows = [(one.level, one.what, text.visible(_told(one))) for one in found]
        paint.draw(paint.console(), ("VERDICT", "ABOUT", "FOUND"), rows, flexible=())
    return Damaged.exit_code if any(one.level == probe.BAD for one in found) else 0


def _in_memory() -> list[Finding]:
    from surefoot.store import probe

    return list(probe.in_memory())


def _examined(url: str) -> list[Finding]:
    from surefoot.engine import config
    from surefoot.store import probe
    from surefoot.store.open import is_postgres

    path = "" if is_postgres(url) else probe.path_of(url)
    found = probe.before_opening(path) if path else []
    store: Any = None
    try:
        store = config.runtime(url, create=False).store
        found.append(probe.Finding(probe.OK, "store", "opens, and ends where its anchor says"))
    except NotFound as error:
        found.append(probe.Finding(probe.WARN, "store", str(error), "start a run: it is made then"))
    except SurefootError as error:
        summary = error.summary if isinstance(error, Stopped) else str(error)
        cures = "; ".join(f"{when} {do}" for when, do in getattr(error, "cures", ()))
        found.append(probe.Finding(probe.BAD, "store", f"{type(error).__name__}: {summary}", cures))
    more = probe.examine(path, store, now=time.time_ns() // 1000) if path else probe.in_postgres(store)
    return [*found, *more]


def _told(one: Finding) -> str:
    return f"{one.said} -> {one.do}" if one.do else one.said


def _facts(one: Finding) -> dict[str, str]:
    return {"verdict": one.level, "what": one.what, "said": one.said, "do": one.do}
