"""`surefoot mcp`: the runs of a store as tools of an MCP server, over standard input and output. Reading only.

There is no tool that starts, answers, settles or cancels: an agent must not answer for itself. What a tool gives has the
commands that would help, as `--json` has them; a person gives them.
"""

from __future__ import annotations

import click

from surefoot.cli.options import Settings, app_option, verb


@click.command()
@app_option
@verb
def mcp(settings: Settings, app: str | None) -> None:
    """Serve an MCP client that is started with this command: list runs, show one, plan a resume, open questions.

    Nothing of it changes anything. Needs: pip install 'surefoot[mcp]'.
    """
    import surefoot.adapters.mcp  # noqa: F401 - refuses if mcp is missing, or of a version that was not tried
    from surefoot.cli import tool_server
    from surefoot.engine.process import config

    config.runtime(settings.store, create=False)  # A store that is not there is told now, and not by the first tool.
    tool_server.made(settings, app).run("stdio")
