"""The names that the engine uses of this package."""

from surefoot.world.base import Look, NotObservable, Pulse, Witness, sight
from surefoot.world.observing import look, observe_all
from surefoot.world.specs import from_spec

__all__ = ["Look", "NotObservable", "Pulse", "Witness", "from_spec", "look", "observe_all", "sight"]
