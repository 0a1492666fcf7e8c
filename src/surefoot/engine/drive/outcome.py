"""What the caller that waits for a run gets: its result, its failure, or its stop."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from surefoot.core import values
from surefoot.core.command import Done, Failed, Halted
from surefoot.core.cure import command
from surefoot.core.state import DONE, ENDED, FAILED, RunState
from surefoot.core.stops import located, revive
from surefoot.engine.process import journal
from surefoot.engine.session.session import Session
from surefoot.errors import Cancelled, NotFound, Stopped, UsageError
from surefoot.store.contract import Store


def answer(session: Session, ending: Done | Failed | Halted | BaseException) -> Any:
    """Return or raise how a drive ended."""
    if isinstance(ending, Done):
        return session.decoded(ending.raw)
    raise raised(session, ending)


def raised(session: Session, ending: Failed | Halted | BaseException) -> BaseException:
    """What `.run` raises for a drive that ended like this."""
    match ending:
        case Failed():
            return session.originals.traced(session.revive(ending), ending.cause)
        case Halted():
            return revive(tuple(session.stops.found), session.run, session.runtime.store.url)
        case _:
            return ending


def recorded_end(store: Store, state: RunState) -> Any:
    """Return or raise how a run ended, as recorded."""
    if state.pruned is not None:
        when = datetime.fromtimestamp(state.pruned_at / 1e6, UTC).strftime("%Y-%m-%d")
        if state.pruned.archive:
            raise NotFound(
                f"run {state.run} ended {state.status} and was pruned on {when}: what it recorded is in "
                f"{state.pruned.archive}. `{command('restore', state.run)}` brings it back. It does not run again."
            )
        raise NotFound(
            f"run {state.run} ended {state.status} and was pruned on {when}: what it recorded is no longer kept in "
            f"{store.url}. It does not run again; for a new task use another run id."
        )
    try:
        if state.status == DONE:
            return values.decode(journal.whole(store, state.run, state.value))
        failure = values.decode_error(state.error) if state.status == FAILED else None
    except Stopped as error:
        raise located(error, state.run, "its result") from None
    if failure is not None:
        raise failure
    raise Cancelled(f"run {state.run} was cancelled")


def not_found(run: str, where: str) -> NotFound:
    return NotFound(f"there is no run {run!r} in {where}. `{command('runs')}` lists those that are there.")


def refuse_ended(state: RunState) -> None:
    """For changes of a run that goes on afterwards."""
    if state.status in ENDED:
        raise UsageError(f"run {state.run} has ended already: {state.status}")
