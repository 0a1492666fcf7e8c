"""Words that no option knows, for the type checker: `make check` fails if it accepts one of them.

Every `type: ignore` here is needed, or mypy (strict) calls it unused. Nothing of this is executed.
"""

import surefoot as sf
import surefoot.aio as sfa


@sf.effect(on_crash="retry", on_change="keep")
def pay(cents: int) -> str:
    return str(cents)


@pay.undo(on_crash="check")
def _(cents: int, result: str) -> None:
    """Right words are no error."""


sf.effect(on_crash="rety")  # type: ignore[call-overload]
sf.effect(on_change="kept")  # type: ignore[call-overload]
sf.step(on_change="always")  # type: ignore[call-overload]
sf.workflow(on_drift="halt")  # type: ignore[call-overload]
sf.workflow(on_corruption="fall back")  # type: ignore[call-overload]
sf.workflow(on_failure="retry")  # type: ignore[call-overload]
sf.workflow(approve="all")  # type: ignore[call-overload]
pay.undo(on_crash="no")  # type: ignore[call-overload]
sf.configure(on_corruption="ignore")  # type: ignore[arg-type]
sf.configure(on_change="ask")  # type: ignore[arg-type]
sf.map(pay, [1], on_error="ignore")  # type: ignore[call-overload]
sf.approve("go on?", on_timeout="no")  # type: ignore[arg-type]
sfa.approve("go on?", on_timeout="no")  # type: ignore[arg-type, unused-coroutine]
sf.Checkpoint("nightly", on_drift="halt")  # type: ignore[arg-type]
