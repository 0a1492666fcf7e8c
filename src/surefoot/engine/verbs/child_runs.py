"""Child runs: a run starts others, and gets their results as if it had called a step.

Starting is idempotent by the child's id, so the call is recorded like any step: once, with the result. In a process of
its own the parent drives its child itself. In a worker the child is queued for any worker, and the parent is released.
The process that ends the child notifies the parent. If that message is lost, the parent checks by itself from time to
time.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import msgspec

from surefoot.core.command import Do, Make, Routine
from surefoot.core.history import Past, is_child
from surefoot.core.state import ENDED
from surefoot.engine.declare import current
from surefoot.engine.declare.call_spec import CallSpec
from surefoot.engine.declare.context import Context
from surefoot.engine.declare.current import Place, session_of
from surefoot.engine.declare.plan import Options, Plan, created_entry, require_same
from surefoot.engine.declare.signals import CancelSignal
from surefoot.engine.drive import acts, parents, perform, start
from surefoot.engine.drive.outcome import recorded_end
from surefoot.engine.process import journal
from surefoot.engine.session.frame import Frame
from surefoot.errors import UsageError


def child(workflow: Any, run_id: str, /, *args: Any, **kwargs: Any) -> Any:
    """Start another run and wait for its result; `run_id` is its own, so that the same call never starts two."""
    current.require_blocking("child")
    return perform.run(*_calling(_BLOCKING, workflow, run_id, args, kwargs))


async def child_async(workflow: Any, run_id: str, /, *args: Any, **kwargs: Any) -> Any:
    """Start another run and wait for its result; `run_id` is its own, so that the same call never starts two."""
    from surefoot.engine.drive import perform_async

    return await perform_async.run(*_calling(_ASYNC, workflow, run_id, args, kwargs))


def _calling(
    spec: CallSpec, workflow: Any, run_id: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Routine[Any], Frame]:
    place = current.require_branch("child")
    definition = getattr(workflow, "definition", None)
    if definition is None:
        raise place.session.stops.misused(
            UsageError(f"sf.child(workflow, id, …): {workflow!r:.100} is not a function decorated with @sf.workflow")
        )
    made = Make(spec, (_name(place, definition, run_id), run_id, list(args), kwargs, definition, place), {})
    return _made(place, made, run_id), Frame(place.session, place)


def _made(place: Place, call: Make, run_id: str) -> Routine[Any]:
    try:
        return (yield call)
    except CancelSignal:
        yield Do(partial(parents.cancel, place.session.runtime, _on_record(place, run_id), place.session.run))
        raise


def _name(place: Place, definition: Any, run_id: str) -> str:
    """The name of the workflow in the call: an old name (`was=`), if this child run is recorded under it."""
    session = session_of(place)
    if definition.was and run_id:
        for past in session.replay.matcher.recorded():
            made = _arguments(session, past) if is_child(past) else {}
            if made.get("run_id") == run_id and made["workflow"] in definition.identity.names:
                return str(made["workflow"])
    return str(definition.name)


def _on_record(place: Place, run_id: str) -> str:
    """The child run of the call: the recorded one, if a person declared that it is kept."""
    past = place.session.replay.matcher.past(place.called)
    return str(_arguments(place.session, past).get("run_id", run_id)) if past is not None and is_child(past) else run_id


def _arguments(session: Context, past: Past) -> dict[str, Any]:
    """The arguments of a recorded child. Only those that name the child are read: no class of the user is needed."""
    forms = msgspec.json.decode(session.replay.bytes_of(past) or b"{}", type=dict[str, msgspec.Raw])
    return {name: msgspec.json.decode(forms[name]) for name in ("workflow", "run_id") if name in forms}


def _blocking(workflow: str, run_id: str, args: list[Any], kwargs: dict[str, Any], definition: Any, place: Any) -> Any:
    session = session_of(place)
    plan = definition.plan(run_id, tuple(args), kwargs)
    acts.write_down(place)  # Before the child begins: changed code has to find it on record.
    if session.stops.unwind_seconds is not None:
        return _queued(session, plan, run_id, place)
    if definition.is_async:
        from surefoot.engine.drive import acts_async

        return acts_async.in_a_thread(start.run_async(session.runtime, plan, run_id, Options()))
    return start.run_blocking(session.runtime, plan, run_id, Options())


async def _asynchronous(
    workflow: str, run_id: str, args: list[Any], kwargs: dict[str, Any], definition: Any, place: Any
) -> Any:
    from surefoot.engine.drive import acts_async

    session = session_of(place)
    plan = definition.plan(run_id, tuple(args), kwargs)
    await acts_async.hop(acts.write_down, place)
    if session.stops.unwind_seconds is not None:
        return await acts_async.hop(_queued, session, plan, run_id, place)
    if definition.is_async:
        return await start.run_async(session.runtime, plan, run_id, Options())
    import asyncio

    return await asyncio.to_thread(start.run_blocking, session.runtime, plan, run_id, Options())


_BLOCKING: Final = CallSpec(_blocking, "step", name="child", ignore=("definition", "place"))
_ASYNC: Final = CallSpec(_asynchronous, "step", name="child", ignore=("definition", "place"))


def _queued(session: Context, plan: Plan, run_id: str, place: Place) -> Any:
    """The child's result if it has ended; else the parent is released until then."""
    runtime = session.runtime
    created = created_entry(plan, Options(child_of=session.run))
    state = journal.create(runtime.store, runtime.clock, run_id, created)
    require_same(plan, state, runtime.store)
    if state.status in ENDED:
        return recorded_end(runtime.store, state)
    raise session.stops.suspended(place, run_id)
