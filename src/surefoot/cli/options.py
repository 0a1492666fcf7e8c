"""What all verbs share: `--store` and `--json` before or after the verb, and groups that load verbs when used."""

from __future__ import annotations

import atexit
import gc
import importlib
import shlex
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar, cast

import click
from msgspec import Struct

from surefoot.errors import UsageError

F = TypeVar("F", bound=Callable[..., Any])

atexit.register(gc.freeze)  # The interpreter collects garbage several times as it ends, although all memory is freed.


class Settings(Struct):
    """The settings of the command line, apart from the verb's own options."""

    argv: list[str] = []
    store: str | None = None
    said_json: bool = False
    script: list[str] = []
    """The whole command, if it is a script's own and not `surefoot`."""

    @property
    def again(self) -> str:
        """This command, to paste."""
        return shlex.join(self.script or ["surefoot", *self.argv])

    @property
    def json(self) -> bool:
        """Also if the command line cannot be parsed: a program that asked for JSON gets JSON."""
        return self.said_json or "--json" in self.argv


def _keep_store(ctx: click.Context, _param: click.Parameter, value: str | None) -> None:
    if value is not None:
        ctx.ensure_object(Settings).store = value


def _keep_json(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value:
        ctx.ensure_object(Settings).said_json = True


def common(fn: F) -> F:
    """`--store` and `--json`, understood at every level."""
    store = click.option(
        "--store",
        metavar="URL",
        expose_value=False,
        callback=_keep_store,
        help="Where runs are kept. Default: SUREFOOT_STORE, else sqlite:///.surefoot/runs.db.",
    )
    as_json = click.option(
        "--json", is_flag=True, expose_value=False, callback=_keep_json, help="Answer in JSON on standard output."
    )
    return store(as_json(fn))


def verb(fn: F) -> F:
    """A verb gets the `Settings` first; it understands `--store` and `--json`."""
    return common(cast("F", click.pass_obj(fn)))


def _person(_ctx: click.Context, _param: click.Parameter, name: str | None) -> str:
    from surefoot.engine.operate.handle import whoami

    return name or whoami()


by_option = click.option(
    "--by", metavar="NAME", callback=_person, help="Who says so. Default: the operating-system user."
)


def operator(fn: F) -> F:
    """A verb that also gets the acting person, and the reason: every action of a person is an entry of the journal."""
    note = click.option("--note", metavar="TEXT", default="", help="Why; kept in the journal.")
    return by_option(note(verb(fn)))


def _app_option(about: str) -> Callable[[F], F]:
    return click.option("--app", metavar="MODULE", envvar="SUREFOOT_APP", show_envvar=True, help=about)


app_option = _app_option("The module that defines the workflow. Stored data never decides what is imported.")
told_app_option = _app_option(
    "The module that defines the workflow, for the commands that are suggested. It is not imported."
)


def pairs(words: Iterable[str], option: str, form: str = "NAME=VALUE") -> dict[str, str]:
    """The values of `option NAME=VALUE`, which may be given several times."""
    found = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise UsageError(f"{option} {word!r}: write {form}.")
        found[name] = value
    return found


class LazyGroup(click.Group):
    """A group whose verbs are imported when they are used, not to print the help."""

    def __init__(
        self,
        *args: Any,
        verbs: Mapping[str, tuple[str, str]],
        default: str | None = None,
        exit_codes: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self._verbs = verbs
        self._default = default
        self._exit_codes = exit_codes or {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._verbs)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in self._verbs:
            return None
        module, _, attribute = self._verbs[name][0].partition(":")
        collecting = gc.isenabled()
        gc.disable()  # Modules are no garbage: searching for it while they are loaded takes a tenth of a short command.
        try:
            found = getattr(importlib.import_module(module), attribute)
        finally:
            if collecting:
                gc.enable()
        return found if isinstance(found, click.Command) else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in self._verbs:
            from difflib import get_close_matches

            if close := get_close_matches(args[0], self._verbs, n=1):
                ctx.fail(f"No such command {args[0]!r}. Did you mean {close[0]}?")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Verbs"):
            formatter.write_dl([(name, about) for name, (_, about) in self._verbs.items()])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if self._exit_codes:
            with formatter.section("Exit codes"):
                formatter.write_dl(list(self._exit_codes.items()))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, self._with_default(args))

    def _with_default(self, args: list[str]) -> list[str]:
        """`surefoot runs --status stopped` means `surefoot runs list --status stopped`."""
        if self._default is None or "--help" in args[:1]:
            return args
        at = 0
        while at < len(args) and (args[at] == "--json" or args[at].startswith("--store")):
            at += 2 if args[at] == "--store" else 1
        if at >= len(args) or (args[at].startswith("-") and args[at] != "--help"):
            return [*args[:at], self._default, *args[at:]]
        return args
