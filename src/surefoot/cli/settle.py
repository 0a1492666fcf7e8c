"""`surefoot settle ID ADDR --happened JSON | --not-happened | --failed`: a person's answer to an effect in doubt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from surefoot.cli import confirmation, output
from surefoot.cli.options import Settings, app_option, operator
from surefoot.errors import Stopped, UsageError
from surefoot.view import facts, text

if TYPE_CHECKING:
    from surefoot.engine.operate.handle import Run


@click.command()
@click.argument("run_id", metavar="ID")
@click.argument("address", metavar="ADDR")
@click.option("--happened", metavar="JSON", help="It happened and gave this value: what the call shall return.")
@click.option("--not-happened", is_flag=True, help="It did not happen: it may run again, with the same key.")
@click.option("--failed", is_flag=True, help="It did not happen, and the call fails with the exception it raised.")
@app_option
@confirmation.yes_option
@operator
def settle(
    settings: Settings,
    run_id: str,
    address: str,
    happened: str | None,
    not_happened: bool,
    failed: bool,
    app: str | None,
    yes: bool,
    by: str,
    note: str,
) -> None:
    """Say whether an effect that is in doubt happened. Look at the world first: surefoot believes you.

    The value is JSON; a string needs its quotes: --happened '"re_123"'. With --app it is held against the type that the
    effect says to return, and plain JSON stands for that type: '{"id": "re_1", "cents": 5}' for a dataclass with these
    fields, "2026-01-31" for a date, a list for a tuple. Without --app other types are written as `surefoot runs show
    --json` prints them: '{"$tuple": [1, 2]}'; the value is then held against what the same effect gave before in this
    run, and you are asked if it looks different.
    With --failed the workflow meets the exception that the call ended with, so that its `except` and its sagas go on; a
    call that was cut off fails with sf.NotDone. The answer is recorded with your name and note, and nothing is executed.
    """
    from surefoot.cli import operators

    if (happened is not None) + not_happened + failed != 1:
        raise UsageError("say one of --happened JSON, --not-happened and --failed.")
    run = operators.open_run(settings, run_id)
    if happened is None:
        run.settle(address, not_happened=not_happened, failed=failed, by=by, note=note)
    else:
        value = _value(happened, app)
        _ask_if_unlike(run, address, value, app, yes=yes)
        run.settle(address, happened=value, by=by, note=note)
    said = "happened" if happened is not None else "did not happen, and fails" if failed else "did not happen"
    sentence = f"recorded: run {run_id}, {address} {said}, said by {by}"
    what = facts.settlement(address, happened=happened is not None, failed=failed)
    operators.report(settings, run, what, sentence, by=by, note=note, app=app)


def _ask_if_unlike(run: Run, address: str, value: Any, app: str | None, *, yes: bool) -> None:
    """A value that no code was held against: said so, and asked about if it looks unlike what the effect gave before."""
    from surefoot.cli import likeness
    from surefoot.core.address import as_recorded
    from surefoot.engine.operate import return_type

    address = as_recorded(address)
    if return_type.is_held(address):
        return
    why = "name it with --app MODULE" if app is None else f"{app} does not say what {address} returns"
    output.tell(text.visible(f"warning: run {run.id}, {address}: the value is not held against the code; {why}."))
    if unlike := likeness.unlike(run, address, value):
        output.tell(text.visible(f"  {unlike}."))
        confirmation.ask("record it all the same?", yes=yes)


def _value(given: str, app: str | None) -> Any:
    """Also JSON with tags, as the journal shows it; a class of the user's needs its module."""
    from surefoot.cli import code, execution
    from surefoot.core import registry, values

    is_json, plain = code.parse_word(given)
    if not is_json:
        raise UsageError(f"--happened {given[:40]!r} is not JSON. A string needs its quotes: --happened '\"…\"'.")
    with execution.answers_only():
        code.load_app(app)
    if '"$' not in given:
        return plain
    try:
        return values.decode(given.encode("utf-8", "surrogatepass"))
    except Stopped as error:
        known = ", ".join(registry.names()) or "none"
        cure = "name the module that registers it: --app MODULE" if app is None else f"{app} knows these: {known}"
        raise UsageError(f"--happened: {error.summary} If it is a class of yours, {cure}.") from None
