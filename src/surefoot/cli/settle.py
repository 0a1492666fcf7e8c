"""`surefoot settle ID ADDR --happened JSON | --not-happened`: a person's answer to an effect in doubt."""

from __future__ import annotations

from typing import Any

import click

from surefoot.cli.options import Settings, app_option, common, operator
from surefoot.errors import Stopped, UsageError


@click.command()
@click.argument("run_id", metavar="ID")
@click.argument("address", metavar="ADDR")
@click.option("--happened", metavar="JSON", help="It happened and gave this value: what the call shall return.")
@click.option("--not-happened", is_flag=True, help="It did not happen: it may run again, with the same key.")
@app_option
@operator
@common
@click.pass_obj
def settle(
    settings: Settings,
    run_id: str,
    address: str,
    happened: str | None,
    not_happened: bool,
    app: str | None,
    by: str | None,
    note: str,
) -> None:
    """Say whether an effect that is in doubt happened. Look at the world first: surefoot believes you.

    The value is JSON; a string needs its quotes: --happened '"re_123"'. With --app it is held against the type that the
    effect says to return, and plain JSON stands for that type: '{"id": "re_1", "cents": 5}' for a dataclass with these
    fields, "2026-01-31" for a date, a list for a tuple. Without --app other types are written as `surefoot runs show
    --json` prints them: '{"$tuple": [1, 2]}'.
    The answer is recorded with your name and note, and nothing is executed.
    """
    from surefoot.cli import acting
    from surefoot.engine.handle import whoami

    if (happened is None) == (not not_happened):
        raise UsageError("say either --happened JSON or --not-happened, not both and not neither.")
    run = acting.open_run(settings, run_id)
    who = by or whoami()
    if happened is None:
        run.settle(address, not_happened=True, by=who, note=note)
    else:
        run.settle(address, happened=_value(happened, app), by=who, note=note)
    acting.report(
        settings,
        run,
        {"run": run_id, "address": address, "happened": happened is not None, "by": who, "note": note},
        f"recorded: run {run_id}, {address} {'happened' if happened is not None else 'did not happen'}, said by {who}",
        app=app,
    )


def _value(given: str, app: str | None) -> Any:
    """Also JSON with tags, as the journal shows it; a class of the user's needs its module."""
    from surefoot.cli import code, driving
    from surefoot.core import registry, values

    is_json, plain = code.parse_word(given)
    if not is_json:
        raise UsageError(f"--happened {given[:40]!r} is not JSON. A string needs its quotes: --happened '\"…\"'.")
    with driving.answers_only():
        code.load_app(app)
    if '"$' not in given:
        return plain
    try:
        return values.decode(given.encode("utf-8", "surrogatepass"))
    except Stopped as error:
        known = ", ".join(registry.names()) or "none"
        cure = "name the module that registers it: --app MODULE" if app is None else f"{app} knows these: {known}"
        raise UsageError(f"--happened: {error.summary} If it is a class of yours, {cure}.") from None
