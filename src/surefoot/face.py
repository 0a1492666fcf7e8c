"""Every public name of `surefoot`. The package hands them on and loads this module when the first one is asked for."""

import surefoot.view.words  # noqa: F401 - here, and not once in every process that a run forks
from surefoot import alerts, errors
from surefoot.adapters.policy import tool
from surefoot.adapters.wrapping import wrap
from surefoot.core.retry import Backoff
from surefoot.core.values import Secret, register, upcast
from surefoot.core.verdict import happened, not_happened, partial, unknown
from surefoot.engine.checkpoint import Checkpoint, Generation
from surefoot.engine.declare.removal import removed
from surefoot.engine.drive.timeouts import timeout
from surefoot.engine.effects.transaction import transaction
from surefoot.engine.operate.handle import JournalEntry, RecordedCall, Run, get_run, runs
from surefoot.engine.operate.resume_plan import ResumePlan
from surefoot.engine.process.config import configure
from surefoot.engine.session.questions import Decision
from surefoot.engine.verbs.blocking import (
    MapResult,
    approve,
    ask,
    attempt,
    continue_as_new,
    gather,
    key,
    map,  # noqa: A004 - the settled public name
    now,
    outside,
    patched,
    progress,
    publish,
    random,
    run_id,
    scope,
    sleep,
    sleep_until,
    uuid4,
    verify,
    wait_event,
    watch,
)
from surefoot.engine.verbs.child_runs import child
from surefoot.engine.verbs.events import send_event
from surefoot.engine.verbs.saga import saga, undo
from surefoot.engine.worker.queues import Queue
from surefoot.engine.worker.worker import Worker
from surefoot.engine.workflow import AsyncWorkflow, Effect, Workflow, effect, step, workflow
from surefoot.errors import *  # noqa: F403 - those of its __all__

__all__ = [
    "AsyncWorkflow", "Backoff", "Checkpoint", "Decision", "Effect", "Generation", "JournalEntry", "MapResult",
    "Queue", "RecordedCall", "ResumePlan", "Run", "Secret", "Worker", "Workflow", "alerts", "approve", "ask",
    "attempt", "child", "configure", "continue_as_new", "effect", "gather", "get_run", "happened", "key", "map",
    "not_happened", "now", "outside", "partial", "patched", "progress", "publish", "random", "register", "removed",
    "run_id", "runs", "saga", "scope", "send_event", "sleep", "sleep_until", "step", "timeout", "tool", "transaction",
    "undo", "unknown", "upcast", "uuid4", "verify", "wait_event", "watch", "workflow", "wrap",
]  # fmt: skip
__all__ += errors.__all__
