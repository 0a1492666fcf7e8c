"""Lines of control that somebody else starts and joins: an agent framework's tool calls, and the turns of its loop.

A framework runs tools side by side in tasks of its own. Which label each of them has is on record (a tool call's id is
part of the model's answer), so that no call is numbered by luck: a strand opens scopes under such labels in whichever task
runs. Like a branch of `sf.gather` it is joined, and a stop in it keeps no sibling from what it does: the code around feels
it only when it is passed on.

One strand may open one label after the other, or one again, from several tasks in turn: a loop that makes its first turn
in a task of its own is still one line. While it goes on, no other strand may count in its labels.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from surefoot.engine.declare import current, lines
from surefoot.engine.declare.current import Place
from surefoot.engine.declare.signals import RunSignal


class Strand:
    """One line of control below the place at which it is made."""

    def __init__(self) -> None:
        around = current.require_branch("scope")
        if current.running_loop() is not None and isinstance(around.owner, int):
            raise around.misused(
                "an agent's loop runs in tasks, and this workflow is blocking, so nothing it does could be recorded. "
                "Make the workflow `async def` and await the agent there: "
                "`await Runner.run(...)` instead of `Runner.run_sync(...)`, `await agent.run(...)` instead of `agent.run_sync(...)`."
            )
        around.session.stops.meet(around)
        self.around = around
        self._line = around.line.fork()
        self._opened: set[str] = set()
        self.stop: BaseException | None = None
        """What has stopped it, where the code around has not felt that yet."""

    def is_here(self) -> bool:
        """Whether the code at hand is at the place the strand was made at."""
        return current.get() is self.around

    @property
    def driver(self) -> object:
        """Whatever drives the run: another one for each drive and each rehearsal."""
        return self.around.session

    @property
    def path(self) -> str:
        """The scope around its labels."""
        return self.around.scope.path

    def is_owner(self, task: object) -> bool:
        """Whether that task is the one whose code is around: it makes one call after the other."""
        return task is self.around.owner

    @contextmanager
    def entered(self, label: str, *, felt: bool = False) -> Iterator[None]:
        """Calls in this block are counted under that label. `felt`: a stop is felt around at once."""
        around = self.around
        place = self._place(label, around if felt else None)
        if not felt:
            place.stop = self.stop
        token = current.set_place(place)
        error: BaseException | None = None
        try:
            yield
        except BaseException as raised:
            error = raised
            raise
        finally:
            current.reset(token)
            self.stop = self.stop or place.stop
            around.session.scopes.branch_ends(place.scope.path, error)

    def _place(self, label: str, parent: Place | None) -> Place:
        around = self.around
        around.session.stops.meet(around)
        scope = around.scope.labelled(label)
        if scope.path not in self._opened:
            lines.claim(around, scope, self._line)
            self._opened.add(scope.path)
        around.session.scopes.branch_opens([scope])
        place = Place(around.session, scope, current.whoami(), parent=parent, line=self._line)
        place.segment = around.segment  # A task that outlives its part of the run is refused, and not renewed.
        return place

    def join(self) -> None:
        """It has come to its end: what it did is done by the code around, which may use its labels again."""
        self.around.line.join_one(self._line)

    def pass_on(self, signal: RunSignal) -> RunSignal:
        """The code around stops, too, whatever a framework makes of the signal."""
        stop = self.stop if isinstance(self.stop, RunSignal) else signal
        return self.around.session.stops.felt(self.around, stop)
