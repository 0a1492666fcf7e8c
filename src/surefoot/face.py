"""Every public name of `surefoot`. The package hands them on and loads this module when the first one is asked for."""

import surefoot.view.words  # noqa: F401 - here, and not once in every process that a run forks
from surefoot import common_face, errors
from surefoot.common_face import *  # noqa: F403 - those of its __all__
from surefoot.engine.checkpoint import Checkpoint
from surefoot.engine.operate.handle import get_run, runs
from surefoot.engine.verbs.blocking import (
    approve,
    ask,
    gather,
    map,  # noqa: A004 - the settled public name
    sleep,
    sleep_until,
    verify,
    wait_event,
    watch,
)
from surefoot.engine.verbs.child_runs import child
from surefoot.engine.verbs.events import send_event
from surefoot.engine.verbs.saga import undo
from surefoot.errors import *  # noqa: F403 - those of its __all__

__all__ = [
    "Checkpoint", "approve", "ask", "child", "gather", "get_run", "map", "runs", "send_event", "sleep", "sleep_until",
    "undo", "verify", "wait_event", "watch",
]  # fmt: skip
__all__ += common_face.__all__
__all__ += errors.__all__
