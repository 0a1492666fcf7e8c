"""`surefoot console`: the page on which people see what needs them; and the tokens for it."""

from __future__ import annotations

import getpass
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from msgspec import Struct

from surefoot.cli import output
from surefoot.cli.options import LazyGroup, Settings, common, verb
from surefoot.console.principals import ADMIN, SCOPES, Principal
from surefoot.errors import UsageError

if TYPE_CHECKING:
    from surefoot.console.application import Console

PORT: Final = 4747
_TRIED: Final = 20
_LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
_EXTRA: Final = "the console needs its extra: pip install 'surefoot[console]'"


class Wanted(Struct, frozen=True):
    """How the console was asked for."""

    apps: tuple[str, ...]
    host: str
    port: int | None
    names: tuple[str, ...]
    read_only: bool
    with_worker: bool
    by: str
    user_header: str | None
    proxy_secret_file: Path | None
    roles_file: Path | None
    proxy_peers: tuple[str, ...]
    tls_cert: Path | None
    tls_key: Path | None


class _Group(LazyGroup):
    """`surefoot console` without another word serves."""


@click.group(
    "console", cls=_Group, invoke_without_command=True,
    verbs={"token": ("surefoot.cli.console:token", "Tokens for scripts and for other people's browsers.")},
)  # fmt: skip
@click.option(
    "--app", "apps", metavar="MODULE", multiple=True, envvar="SUREFOOT_APP", help="The code of the workflows."
)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), help=f"Default: {PORT}, or the next free one.")
@click.option("--name", "names", metavar="HOST[:PORT]", multiple=True, help="A name by which browsers reach it.")
@click.option("--read-only", is_flag=True, help="Nobody can do anything here but look.")
@click.option("--with-worker", is_flag=True, help="Also start a worker for --app, which ends with the console.")
@click.option("--as", "by", metavar="NAME", help="Who you are. Default: the operating-system user.")
@click.option("--user-header", metavar="NAME", help="Behind a proxy that signs people in: the header with the name.")
@click.option(
    "--proxy-secret-file", type=click.Path(path_type=Path), help="What the proxy shows, so that it is believed."
)
@click.option("--roles-file", type=click.Path(path_type=Path), help="Who may do what, as JSON. Others may look.")
@click.option("--proxy-peer", "proxy_peers", multiple=True, default=("127.0.0.1", "::1"), help="Where the proxy is.")
@click.option(
    "--tls-cert", type=click.Path(path_type=Path), help="To listen on another address than this machine's own."
)
@click.option("--tls-key", type=click.Path(path_type=Path))
@common
@click.pass_context
def console_(ctx: click.Context, /, **asked: Any) -> None:
    """Serve the console: what waits for a person, what each answer would lead to, and what every run did.

    Prints a link that signs you in, once, within five minutes; Enter prints another one. Everything that you do there is
    recorded with your name. The same as an HTTP API: /api/v1/openapi.json.
    """
    if ctx.invoked_subcommand is None:
        serve(ctx.ensure_object(Settings), Wanted(**asked))


# --- serving -----------------------------------------------------------------------------------------


def serve(settings: Settings, wanted: Wanted) -> None:
    try:
        import uvicorn

        from surefoot.console.application import Console
        from surefoot.console.options import Options
    except ModuleNotFoundError as error:
        raise UsageError(f"{_EXTRA} ({error.name} is missing)") from None
    proxy = _proxy(wanted)
    _require_safe(wanted)
    listening = _listening(wanted.host, wanted.port)
    port = listening.getsockname()[1]
    console = Console(Options(settings.store, wanted.apps, proxy, read_only=wanted.read_only, hosts=wanted.names))
    if proxy is None:
        _print_links(console, wanted, port)
    else:
        output.tell(f"the console serves {console.where} at {_url(wanted, port)}; the proxy signs people in")
    threading.Thread(target=console.planner.warm, daemon=True).start()
    worker = _Worker(settings, wanted) if wanted.with_worker else None
    config = uvicorn.Config(
        console, log_level="warning", access_log=False, server_header=False, date_header=False, lifespan="on",
        timeout_keep_alive=20, h11_max_incomplete_event_size=32_768, limit_concurrency=1_000, proxy_headers=False,
        ssl_certfile=wanted.tls_cert, ssl_keyfile=wanted.tls_key, timeout_graceful_shutdown=2,
    )  # fmt: skip
    try:
        with suppress(KeyboardInterrupt):
            uvicorn.Server(config).run(sockets=[listening])
    finally:
        listening.close()
        console.close()
        if worker is not None:
            worker.end()


def _require_safe(wanted: Wanted) -> None:
    """Passwords of a session do not cross a network in the open."""
    if wanted.host in _LOOPBACK or (wanted.tls_cert and wanted.tls_key) or wanted.user_header:
        return
    raise UsageError(
        f"--host {wanted.host}: others could read along. Give --tls-cert and --tls-key, or put a proxy before it "
        "(--user-header, --proxy-secret-file), or tunnel: ssh -L 4747:127.0.0.1:4747 HOST"
    )


def _proxy(wanted: Wanted) -> Any:
    if wanted.user_header is None:
        if wanted.proxy_secret_file or wanted.roles_file:
            raise UsageError("--proxy-secret-file and --roles-file belong to --user-header")
        return None
    if wanted.proxy_secret_file is None:
        raise UsageError("--user-header: without --proxy-secret-file anybody could say who they are")
    from surefoot.console.proxies import Proxy

    return Proxy(wanted.user_header, wanted.proxy_secret_file, wanted.roles_file, wanted.proxy_peers)


def _listening(host: str, port: int | None) -> socket.socket:
    """On that port; without a wish on the usual one, or the next that is free."""
    tried = [port] if port is not None else [*range(PORT, PORT + _TRIED), 0]
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for one in tried:
        made = socket.socket(family, socket.SOCK_STREAM)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            made.bind((host, one))
            made.listen()  # Whoever gets the link may use it at once.
        except OSError as error:
            made.close()
            if one == tried[-1]:
                raise UsageError(f"--host {host} --port {one}: {error.strerror}") from None
        else:
            return made
    raise AssertionError


def _url(wanted: Wanted, port: int) -> str:
    scheme = "https" if wanted.tls_cert else "http"
    host = next(iter(wanted.names), "") or f"{f'[{wanted.host}]' if ':' in wanted.host else wanted.host}:{port}"
    return f"{scheme}://{host}/"


def _print_links(console: Console, wanted: Wanted, port: int) -> None:
    me = Principal(wanted.by or getpass.getuser(), ADMIN, via="console")

    def show() -> None:
        output.say(f"{_url(wanted, port)}sign-in?token={console.sessions.link(me)}")

    output.tell(f"the console serves {console.where}. Sign in, once, within five minutes:")
    show()
    sys.stdout.flush()
    if sys.stdin is not None and sys.stdin.isatty():
        output.tell("Enter prints another link; Ctrl-C ends the console.")

        def more() -> None:
            for _ in sys.stdin:
                show()

        threading.Thread(target=more, daemon=True).start()


class _Worker:
    """`surefoot worker`, as a child of the console: it drives the runs, the console does not."""

    def __init__(self, settings: Settings, wanted: Wanted) -> None:
        if len(wanted.apps) != 1:
            raise UsageError("--with-worker: name the code with one --app")
        store = ["--store", settings.store] if settings.store else []
        command = [sys.executable, "-m", "surefoot", "worker", wanted.apps[0], *store]
        self._child = subprocess.Popen(command, stdin=subprocess.DEVNULL)  # noqa: S603 - our own command
        threading.Thread(target=self._watch, daemon=True).start()
        self._ending = False

    def _watch(self) -> None:
        code = self._child.wait()
        if not self._ending:
            output.tell(f"the worker has ended, exit code {code}; nobody drives runs here any more")

    def end(self) -> None:
        self._ending = True
        with suppress(ProcessLookupError):
            self._child.send_signal(signal.SIGTERM)
        self._child.wait()


# --- tokens ------------------------------------------------------------------------------------------


@click.group("token")
def token() -> None:
    """Tokens for scripts, and for browsers of people who have no account on this machine."""


@token.command("add")
@click.argument("name")
@click.option("--may", type=click.Choice(SCOPES), required=True, help="What its owner may do.")
@click.option("--groups", multiple=True, metavar="NAME", help="Groups that its owner answers for.")
@click.option("--for", "for_", metavar="TIME", help="How long it counts: 90d. Default: until it is revoked.")
@verb
def add(settings: Settings, name: str, may: str, groups: tuple[str, ...], for_: str | None) -> None:
    """Make a token, and print it: nobody can see it again. Its name is who is recorded."""
    from surefoot.console.tokens import Tokens
    from surefoot.core.timer import seconds

    tokens = Tokens()
    made = tokens.add(name, may, groups, None if for_ is None else seconds(for_))
    output.say(made)
    output.tell(f"{name} may {may}. It is kept as a digest in {tokens.path}; keep the token itself in a safe place.")


@token.command("list")
@verb
def list_(settings: Settings) -> None:
    """Show who has a token, what it allows, and until when."""
    from surefoot.cli import paint
    from surefoot.console.tokens import Tokens
    from surefoot.view import facts, text

    found = Tokens().all()
    if settings.json:
        output.say_json(facts.tokens(found))
        return
    rows = [
        (
            text.visible(one.name), one.may, text.visible(", ".join(one.groups)),
            text.clock_time(one.until * 1_000_000) if one.until else "for ever",
            "over" if one.until and one.until <= time.time() else "",
        )
        for one in found
    ]  # fmt: skip
    paint.draw(("NAME", "MAY", "GROUPS", "UNTIL", ""), rows, flexible=())


@token.command("revoke")
@click.argument("name")
@verb
def revoke(settings: Settings, name: str) -> None:
    """Take a token back. It is refused from the next request on."""
    from surefoot.console.tokens import Tokens

    Tokens().revoke(name)
    output.tell(f"revoked: {name}")
