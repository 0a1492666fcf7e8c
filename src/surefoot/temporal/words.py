"""What a caller of Temporal says of a run: the object that the console sends, said as the verb of the command line would."""

from __future__ import annotations

from typing import Any

from surefoot.engine.operate import decisions
from surefoot.engine.operate.handle import Run

VIA = "temporal"


def say(run: Run, given: Any, *, by: str) -> str:
    """The status of the run after that."""
    said = decisions.action(given)
    match said:
        case decisions.Fork(at=at, id=new):
            run.fork(new, at=at, by=by, via=VIA)
        case decisions.Cancel():
            run.cancel(by=by, via=VIA)
        case decisions.Retry(failed=failed, at=at_calls):
            run.retry(failed=failed, at=at_calls, by=by, via=VIA)
        case _:
            run._say(said, decisions.Who(by, via=VIA), None)
    return run.status
