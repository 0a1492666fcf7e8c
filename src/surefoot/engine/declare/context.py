"""What verbs, programs and adapters may use of the engine that drives a run.

The embedded engine's Context is a `Session`. Another engine, or a test, brings its own: it carries out `begin` and
`record` in its own way. `Stops`, `Replay`, `Scopes` and `Notices` do no I/O on their own, so any Context can be made of them.
Wishes that wait (`Append`, `Pause`, `Verify`) are yielded, and carried out by the performer of the verb.
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
"""What a function is called with."""


class Context(Protocol):
    """Eight facts, four parts, nine acts."""

    run: str
    """The id of the run."""
    state: RunState
    """What the run has been through, folded from its journal. To be read, never to be changed."""
    runtime: Runtime
    """The store, in which child runs are started and to which events are sent; and its observer."""
    clock: Clock
    """Time and random numbers, which verbs record."""
    mask: Mask
    """The secrets that may be in no text that is recorded or shown."""
    dry: bool
    """Whether the code is only replayed: nothing is executed, and nothing recorded."""
    wait_seconds: float
    """How long a verb waits for an answer or an event before it stops."""
    approve: str
    """Which effects a person has to agree to, as the workflow says."""
    stops: Stops
    """Who has stopped where. A verb that cannot go on says so here."""
    replay: Replay
    """What is on record, and what of it the code has asked for."""
    scopes: Scopes
    """Branches and tasks that are open side by side."""
    notices: Notices
    """What people were told."""

    def now(self) -> Moment:
        """The moment by which timers and limits are reckoned."""

    def enter_verb(self, place: Place) -> None:
        """Every verb begins with it: refused where the run has stopped, or by a stranger."""

    def begin(
        self, place: Place, spec: CallSpec, args: Args, kwargs: Kwargs, *, entered: bool = False
    ) -> Ending | Attempt:
        """A step or an effect is called: what the journal answers, or the attempt that has to be made. `entered`: its caller
        has just called `enter_verb`, and awaited nothing since.
        """

    def finish(self, place: Place, ending: Ending) -> Any:
        """What the caller of a step or an effect gets."""

    def recall(self, place: Place, name: str, fits: Callable[[Past], bool] | None = None) -> tuple[str, Past | None]:
        """The address of the next call of a verb, and what is on record of it."""

    def note(self, place: Place, name: str, make: Callable[[], object], entry: Callable[[str, Raw], Entry]) -> Any:
        """A value that is made once and recorded; on replay the same."""

    def record(self, entry: Entry) -> None:
        """Write this no later than anything that follows it. Does not wait."""

    def decoded(self, value: Value) -> Any:
        """A recorded value, as an object."""

    def whole(self, value: Value) -> Raw:
        """A recorded value, as bytes: put together, if it was cut into parts."""
