"""`surefoot console`: the page on which people see what needs them."""

from __future__ import annotations

import click

from surefoot.cli.options import Settings, verb


@click.command("console")
@click.option("--app", "apps", metavar="MODULE", multiple=True, envvar="SUREFOOT_APP", help="The code of the workflows.")
@click.option("--port", type=click.IntRange(0, 65535), default=4747, show_default=True)
@click.option("--read-only", is_flag=True, help="Nobody can do anything here but look.")
@verb
def console_(settings: Settings, apps: tuple[str, ...], port: int, read_only: bool) -> None:
    """Serve the console on this machine."""
    import uvicorn

    from surefoot.console import Principal, app

    served = app(
        store=settings.store, app=apps, identify=lambda _: Principal("ann", may="admin"), read_only=read_only
    )
    uvicorn.run(served, host="127.0.0.1", port=port, log_level="warning", server_header=False)
