"""`surefoot langgraph import --from URL`: threads of LangGraph's own savers, read in and held against theirs."""

from __future__ import annotations

import click

from surefoot.cli import code, output
from surefoot.cli.options import Settings, app_option, common
from surefoot.errors import UsageError
from surefoot.view import facts, text

SOME_REFUSED = 1


@click.command(name="import")
@click.argument("threads", metavar="[THREAD]...", nargs=-1)
@click.option("--from", "source", metavar="URL", required=True, help="sqlite:///FILE or postgresql://… of their saver.")
@click.option("--allow", metavar="MODULE:CLASS", multiple=True, help="A class that their serialiser may load.")
@app_option
@common
@click.pass_obj
def import_(settings: Settings, threads: tuple[str, ...], source: str, allow: tuple[str, ...], app: str | None) -> int:
    """Import threads of SqliteSaver or PostgresSaver: all, or those that are named.

    Their database is opened to be read only. Each thread is imported whole or not at all, under its own id and with the
    ids of its checkpoints, and is read back and compared afterwards. One that is there already is left as it is, so the
    command can be given again. Exit code: 0 all are there, 1 some were refused.
    """
    import surefoot.langgraph  # noqa: F401 - refuses a version that was not tested
    from surefoot.adapters.langgraph import imports
    from surefoot.langgraph import Saver
    from surefoot.store.open import shown

    allowed = [_named(word) for word in allow]
    if app is not None:
        code.load_module(app)
    target = Saver(settings.store, serde=imports.Careful(allowed))
    outcomes = []
    with imports.opened(source, allowed) as saver:
        for outcome in imports.import_threads(saver, target, threads or None):
            outcomes.append(outcome)
            if not settings.json:
                why = f": {outcome.why}" if outcome.why else f", {outcome.checkpoints} checkpoints"
                output.say(text.visible(f"{outcome.what:<13} {outcome.thread}{why}"))
    if settings.json:
        output.say_json(facts.imported(outcomes, shown(source)))
    else:
        output.tell(f"{len(outcomes)} threads")
    return SOME_REFUSED if any(one.what == imports.REFUSED for one in outcomes) else 0


def _named(word: str) -> tuple[str, ...]:
    module, colon, name = word.partition(":")
    if not (module and colon and name):
        raise UsageError(f"--allow {word!r}: write MODULE:CLASS.")
    return module, name
