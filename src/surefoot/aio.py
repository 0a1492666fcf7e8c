"""The same words as `surefoot`, for async code: awaitable where they wait.

`import surefoot.aio as sf`. Decorators are the very same objects; they look at the function's colour.
"""

from surefoot import common_face, errors
from surefoot.common_face import *  # noqa: F403 - those of its __all__
from surefoot.engine.checkpoint_async import AsyncCheckpoint as Checkpoint
from surefoot.engine.verbs.child_runs import child_async as child
from surefoot.engine.verbs.saga import undo_async as undo
from surefoot.engine.verbs.tasks import (
    AsyncRun,
    approve,
    ask,
    gather,
    get_run,
    map,  # noqa: A004 - the settled public name
    runs,
    send_event,
    sleep,
    sleep_until,
    verify,
    wait_event,
    watch,
)
from surefoot.errors import *  # noqa: F403 - those of its __all__

__all__ = [
    "AsyncRun", "Checkpoint", "approve", "ask", "child", "gather", "get_run", "map", "runs", "send_event", "sleep",
    "sleep_until", "undo", "verify", "wait_event", "watch",
]  # fmt: skip
__all__ += common_face.__all__
__all__ += errors.__all__
