"""The public names that are the same in blocking and in async code: `surefoot` and `surefoot.aio` import them."""

from surefoot import alerts
from surefoot.adapters.policy import tool
from surefoot.adapters.wrapping import wrap
from surefoot.core.retry import Backoff
from surefoot.core.values import Secret, register, upcast
from surefoot.core.verdict import happened, not_happened, partial, unknown
from surefoot.engine.checkpoint import Generation
from surefoot.engine.declare.removal import removed
from surefoot.engine.drive.timeouts import timeout
from surefoot.engine.effects.transaction import transaction
from surefoot.engine.operate.handle import JournalEntry, RecordedCall, Run
from surefoot.engine.operate.resume_plan import ResumePlan
from surefoot.engine.process.config import configure
from surefoot.engine.session.questions import Decision
from surefoot.engine.verbs.blocking import (
    attempt,
    continue_as_new,
    key,
    now,
    outside,
    patched,
    progress,
    publish,
    random,
    run_id,
    scope,
    uuid4,
)
from surefoot.engine.verbs.branches import MapResult
from surefoot.engine.verbs.saga import saga
from surefoot.engine.worker.queues import Queue
from surefoot.engine.worker.worker import Worker
from surefoot.engine.workflow import AsyncWorkflow, Effect, Workflow, effect, step, workflow
from surefoot.script import main

__all__ = [
    "AsyncWorkflow", "Backoff", "Decision", "Effect", "Generation", "JournalEntry", "MapResult", "Queue",
    "RecordedCall", "ResumePlan", "Run", "Secret", "Worker", "Workflow", "alerts", "attempt", "configure",
    "continue_as_new", "effect", "happened", "key", "main", "not_happened", "now", "outside", "partial", "patched",
    "progress", "publish", "random", "register", "removed", "run_id", "saga", "scope", "step", "timeout", "tool", "transaction",
    "unknown", "upcast", "uuid4", "workflow", "wrap",
]  # fmt: skip
