"""`surefoot langgraph`: threads of LangGraph."""

from __future__ import annotations

import click

from surefoot.cli.options import LazyGroup, common

VERBS = {
    "import": (
        "surefoot.cli.langgraph.take_in:import_",
        "Read threads of LangGraph's own savers into a store of ours.",
    ),
}


@click.group(cls=LazyGroup, verbs=VERBS)
@common
def langgraph() -> None:
    """Threads of LangGraph."""
