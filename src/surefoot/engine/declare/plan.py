"""A workflow and its arguments, made ready for a run: what is started, under which id, compared with the record."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec import Raw, Struct

from surefoot.core import values
from surefoot.core.code_changes import cures
from surefoot.core.entry import NOTHING, Kept, RunCreated, Stop, Value
from surefoot.core.state import RunState
from surefoot.core.stops import located, revive
from surefoot.engine.declare.defaults import Unplaced
from surefoot.engine.declare.identity import Identity, moved
from surefoot.engine.declare.request import Request
from surefoot.engine.declare.signals import ContinueSignal
from surefoot.engine.process import journal
from surefoot.engine.process.config import settings
from surefoot.errors import RunConflict, Stopped, UsageError, ValueRejected
from surefoot.store.contract import Store

if TYPE_CHECKING:
    from surefoot.engine.declare.registry import Definition
    from surefoot.engine.session.session import Session

LONGEST_ID = 200


class Options(Struct, frozen=True):
    """The settings of `.using(...)`, apart from the workflow's own parameters."""

    store: str | None = None
    queue: str = ""
    labels: dict[str, str] = {}
    delay_seconds: float | None = None
    wait_seconds: float | None = None
    child_of: str = ""


class Plan(Struct, frozen=True):
    """The workflow to run, and its arguments, encoded."""

    definition: Definition
    args: bytes | None = None
    """None: the recorded arguments (a resume)."""
    digest: str = ""
    secrets: tuple[values.Secret[Any], ...] = ()
    """The secrets among the arguments, as long as this process has them."""
    defaults: Raw = NOTHING
    """Defaults of the parameters that were not passed."""
    hosted: Hosted | None = None


class Hosted(Struct, frozen=True):
    """What a framework executes as a run."""

    body: Callable[[], Any]
    """In place of the workflow's function."""
    ready: Callable[[], object]
    """Called before the run is created, in a thread that may block: what names the run in the framework is durable then."""


def check_id(run: object) -> None:
    if not isinstance(run, str):
        raise UsageError(f"a run id is a string, not {type(run).__name__}: wf.run('task-42', ...)")
    if not run or len(run) > LONGEST_ID or run != run.strip():
        raise UsageError(f"a run id has 1 to {LONGEST_ID} characters and no space at its ends: {run[:40]!r}")
    if not run.isprintable() or unicodedata.normalize("NFC", run) != run:
        raise UsageError(f"a run id holds printable characters only, in Unicode's NFC form: {run[:40]!r}")


def created_entry(plan: Plan, options: Options, due: Any = None) -> RunCreated:
    mine = plan.definition.identity
    return RunCreated(
        mine.name, Raw(plan.args or b"{}"), plan.digest, plan.definition.version, settings.namespace, options.queue,
        dict(options.labels), due, child_of=options.child_of, module=mine.origin, named=mine.named,
        defaults=plan.defaults, hosted=plan.definition.hosted,
    )  # fmt: skip


def require_same(plan: Plan, state: RunState, store: Store) -> None:
    created, where = state.created, store.url
    if created is None:
        raise AssertionError(state.run)
    mine = plan.definition.identity
    if not mine.owns(created):
        raise _belongs_elsewhere(created, mine, state.run, where)
    if plan.args is None or created.digest == plan.digest:
        return
    if journal.digest_today(store, state.run, created.args) != plan.digest:
        raise RunConflict(
            f"run {state.run} in {where} was started with other arguments.\n"
            f"  recorded: {_shown(state, created.args)}\n  given now: {plan.args.decode()[:400]}\n"
            "  Use another run id for another task, or the same arguments to go on with this one."
        )


def _belongs_elsewhere(created: RunCreated, mine: Identity, run: str, where: str) -> RunConflict | Stopped:
    """The run belongs to another workflow; or to this one, from before it was moved. Only a person can decide which."""
    if created.workflow != mine.name:
        return RunConflict(
            f"run {run} in {where} belongs to workflow {created.workflow!r}, not {mine.name!r}. "
            f'Choose another run id; or, if it was renamed: @sf.workflow(was="{created.workflow}") on {mine.name}.'
        )
    message = (
        f"run {run}: it belongs to workflow {created.workflow!r} of {created.module}; the code at hand has {mine.origin}. "
        "Nothing was executed."
    )
    stop = Stop(
        "CodeChanged", message, facts={"recorded": created.module, "now": mine.origin}, cures=moved(created, mine)
    )
    return revive((stop,), run, where)


def _shown(state: RunState, args: Value) -> str:
    if state.pruned is not None:
        return "only their fingerprint is kept: the run was pruned"
    if isinstance(args, Kept):
        return f"{args.reference.size} bytes"
    return bytes(args).decode()[:400]


def recorded_arguments(session: Session, plan: Plan) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The recorded arguments and defaults, in the form that the function takes now; CodeChanged if it no longer takes
    them.

    A default of a parameter that the function no longer has is ignored.
    """
    session.mask.learn(plan.secrets)
    binder = plan.definition.binder
    try:
        bound: Any = values.decode(session.whole(session.state.args))
        bound.update(binder.defaults.others(session.whole(session.state.defaults), may_be_gone=True))
        return binder.call_with(bound)
    except Stopped as error:
        raise located(error, session.run, "its arguments") from None
    except Unplaced as error:
        why = f"a secret was in the default of {error}, where it has none now"
    except TypeError as error:
        why = str(error)
    message = f"run {session.run}: the parameters of workflow {plan.definition.name} have changed: {why}"
    stop = Stop("CodeChanged", message, cures=cures(session.run))
    raise revive((stop,), session.run, session.runtime.store.url)


def next_arguments(run: str, plan: Plan, signal: ContinueSignal) -> Request:
    """The arguments of the next segment, as stored."""
    binder = plan.definition.binder
    try:
        raw, digest = values.encode_args(binder.bind(signal.args_, signal.kwargs_))
        return Request(Raw(raw), digest, binder.left_out(signal.args_, signal.kwargs_))
    except (TypeError, ValueRejected) as error:
        raise UsageError(f"run {run}: sf.continue_as_new cannot go on with these arguments: {error}") from error
