"""Recorded stops as the errors that callers get."""

from __future__ import annotations

from surefoot.core.entry import Stop
from surefoot.errors import STOPS, Stopped


def revive(stops: tuple[Stop, ...], run: str, store: str) -> Stopped:
    """The exception for recorded stops: the first stop, with all of them in `.stops`. `store`: the store's URL."""
    revived = tuple(_revived(stop, run, store) for stop in stops)
    revived[0].stops = revived
    return revived[0]


def _revived(stop: Stop, run: str, store: str) -> Stopped:
    kind = STOPS[stop.reason]
    error = kind(str(stop), run_id=run, address=stop.address, facts=stop.facts, cures=stop.cures, drift=stop.drift)
    error.store = store
    return error


def located(error: Stopped, run: str, where: str) -> Stopped:
    """The same stop, with the run and the call it belongs to. A stop that already names its run stays as it is."""
    if error.run_id:
        return error
    told = f"run {run}, {where}: {error.summary}" if where else f"run {run}: {error.summary}"
    return type(error)(told, run_id=run, address=where if "#" in where else "", facts=error.facts, cures=error.remedies)
