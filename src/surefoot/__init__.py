"""surefoot: long-running agent workflows that survive crashes. Never silently twice, never silently wrong.

`import surefoot as sf` for blocking code, `import surefoot.aio as sf` for async code: the same words.
"""

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
from surefoot.errors import (
    Cancelled,
    CodeChanged,
    CodecMissing,
    CorruptCheckpoint,
    Denied,
    Drifted,
    Fatal,
    Fenced,
    InDoubt,
    JournalCorrupt,
    JournalRegressed,
    NotDone,
    NotFound,
    Quarantined,
    RetryAfter,
    RunConflict,
    SchemaMismatch,
    StepFailed,
    Stopped,
    StoreFull,
    StoreNotDurable,
    StoreUnavailable,
    SurefootError,
    Unavailable,
    UsageError,
    ValueRejected,
    WaitingForAnswer,
    WorkflowFailed,
)
from surefoot.view import words

errors.in_words = words.told

__version__ = "0.1.0"

__all__ = [
    "AsyncWorkflow", "Backoff", "Cancelled", "Checkpoint", "CodeChanged", "CodecMissing", "CorruptCheckpoint",
    "Decision", "Denied", "Drifted", "Effect", "Fatal", "Fenced", "Generation", "InDoubt", "JournalCorrupt", "JournalEntry",
    "JournalRegressed", "MapResult", "NotDone", "NotFound", "Quarantined", "Queue", "RecordedCall", "ResumePlan",
    "RetryAfter", "Run", "RunConflict", "SchemaMismatch", "Secret", "StepFailed", "Stopped", "StoreFull",
    "StoreNotDurable", "StoreUnavailable", "SurefootError", "Unavailable", "UsageError", "ValueRejected", "WaitingForAnswer",
    "Worker", "Workflow", "WorkflowFailed", "alerts", "approve", "ask", "attempt", "child", "configure", "continue_as_new", "effect", "gather", "get_run",
    "happened", "key", "map", "not_happened", "now", "outside", "partial", "patched", "progress", "publish",
    "random", "register", "removed", "run_id", "runs", "saga", "scope", "send_event", "sleep", "sleep_until", "step", "timeout", "tool", "transaction", "undo",
    "unknown", "upcast", "uuid4", "verify", "wait_event", "watch", "workflow", "wrap",
]  # fmt: skip
