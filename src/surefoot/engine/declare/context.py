"""What verbs, programs and adapters may use of the engine that drives a run.

The embedded engine's Context is a `Session`. Another engine, or a test, brings its own, with its own `begin` and
`record`. `Stops`, `Replay`, `Scopes` and `Notices` do no I/O on their own, so any Context can use them.
Wishes that wait (`Append`, `Pause`, `Verify`) are yielded, and the performer of the verb performs them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Raw

from surefoot.core.command import Ending
from surefoot.core.entry import Entry, Value
from surefoot.core.history import Past
from surefoot.core.masking import Mask
from surefoot.core.state import RunState
from surefoot.core.timer import Moment
from surefoot.engine.process.clock import Clock

if TYPE_CHECKING:
    from surefoot.engine.declare.call_spec import CallSpec
    from surefoot.engine.declare.current import Place
    from surefoot.engine.process.runtime import Runtime
    from surefoot.engine.session.attempt import Attempt
    from surefoot.engine.session.notices import Notices
    from surefoot.engine.session.replay import Replay
    from surefoot.engine.session.scopes import Scopes
    from surefoot.engine.session.stops import Stops

Args = tuple[Any, ...]
Kwargs = dict[str, Any]
Arguments = tuple[Args, Kwargs]
"""The arguments of a function."""


class Context(Protocol):
    """Eight facts, four parts, nine acts."""

    run: str
    """The id of the run."""
    state: RunState
    """The history of the run, folded from its journal. Read-only."""
    runtime: Runtime
    """The store, in which child runs are started and to which events are sent; and its observer."""
    clock: Clock
    """Time and random numbers, which verbs record."""
    mask: Mask
    """The secrets that no recorded or shown text may contain."""
    dry: bool
    """Whether the code is only replayed: nothing is executed or recorded."""
    wait_seconds: float
    """How long a verb waits for an answer or an event before it stops."""
    approve: str
    """Which effects a person has to approve, as the workflow declares."""
    stops: Stops
    """What has stopped where. A verb that cannot go on reports it here."""
    replay: Replay
    """The records, and which of them the code has asked for."""
    scopes: Scopes
    """Branches and tasks that are open side by side."""
    notices: Notices
    """Messages to people."""

    def now(self) -> Moment:
        """The moment that timers and limits are compared with."""

    def enter_verb(self, place: Place) -> None:
        """Every verb begins with it: refused if the run has stopped, or if the caller is a foreign task or thread."""

    def begin(
        self, place: Place, spec: CallSpec, args: Args, kwargs: Kwargs, *, entered: bool = False
    ) -> Ending | Attempt:
        """A step or an effect is called: the journal's answer, or the attempt that has to be made. `entered`: its
        caller has just called `enter_verb`, and awaited nothing since.
        """

    def finish(self, place: Place, ending: Ending) -> Any:
        """The result for the caller of a step or an effect."""

    def recall(self, place: Place, name: str, fits: Callable[[Past], bool] | None = None) -> tuple[str, Past | None]:
        """The address of the next call of a verb, and its record."""

    def note(self, place: Place, name: str, make: Callable[[], object], entry: Callable[[str, Raw], Entry]) -> Any:
        """A value that is made once and recorded; the same on replay."""

    def record(self, entry: Entry) -> None:
        """Write this no later than any entry after it. Does not wait."""

    def decoded(self, value: Value) -> Any:
        """A recorded value, as an object."""

    def whole(self, value: Value) -> Raw:
        """A recorded value, as bytes: joined, if it was cut into parts."""
