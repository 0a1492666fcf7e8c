"""May a new effect begin: the fence in front of calls that are not on record.

A new effect may be a recorded one under another name. While recorded effects are left that the code has not asked for,
a new one begins only where no open branch may still ask for them, or where a person or a declaration has excluded them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial

from surefoot.core.address import on_one_line, split
from surefoot.core.code_changes import new_effect, taken_for_done
from surefoot.core.doubt import open_question
from surefoot.core.entry import Stop
from surefoot.core.history import Past, PastCall, PastEffect
from surefoot.core.matching.answers import Asked
from surefoot.core.reopening import Undone
from surefoot.engine.declare.call_spec import effect_from, is_effect, unknown
from surefoot.engine.declare.removal import is_open, is_removed
from surefoot.engine.session.claim import Claim
from surefoot.engine.session.replay import Replay
from surefoot.engine.session.scopes import Scopes, may_ask, was_around
from surefoot.engine.session.stops import Stops


class Fence:
    def __init__(
        self, run: str, replay: Replay, scopes: Scopes, stops: Stops, claim: Claim, *, dry: bool = False,
        hides: Callable[[], bool] = bool, hidden: Callable[[], frozenset[str]] = frozenset,
    ) -> None:  # fmt: skip
        self._run = run
        self._replay = replay
        self._scopes = scopes
        self._stops = stops
        self._claim = claim
        self._dry = dry
        self._hides = hides
        """Whether a rehearsal has reached a call that hides what follows."""
        self._hidden = hidden
        """In a rehearsal: the scopes in which it has reached such a step or effect."""
        self._lock = threading.Lock()
        self.origins: dict[str, str] = {}
        """Name -> where the effect of that name is defined."""
        self.met: list[Asked] = []
        """In a rehearsal: the new effects that it reached."""
        self.patient: set[str] = set()
        """New effects of tasks that have waited for other tasks to ask for their recorded calls."""
        self.declared: set[str] = set()
        """New effects that a declaration or a person declares new: they are not judged."""
        self.may_hear_again = False
        """Whether the run may be released to be rehearsed once more."""

    def refuses(self, asked: Asked) -> Stop | None:
        """Why a new effect does not begin. A rehearsal judges that at its end, when all branches were followed."""
        if self._dry:
            self.meets(asked)
            return None
        return self._stops.changed_code() or self.stop(asked)

    def meets(self, asked: Asked) -> None:
        with self._lock:
            self.met.append(asked)

    def stop(self, asked: Asked) -> Stop | None:
        """The stop for this new effect as of now."""
        if undone := self._undone_before(asked):
            return self.goes_on_from(undone, asked)
        matcher = self._replay.matcher
        blocked = matcher.blocked(
            asked, may_still=partial(self._may_still, asked), was_around=partial(self._was_around, asked)
        )
        blocked = [past for past in blocked if not self._is_let_go(past, asked)]
        if not blocked and self._scopes.has_strays and not self._dry:
            blocked = [past for past in matcher.moved(asked) if not self._is_let_go(past, asked)]
        if not blocked:
            return next(iter(self.open_removed()), None)
        alike = [past for past in blocked if matcher.arguments.same_values(past, asked)]
        likely = [*alike, *(past for past in blocked if past not in alike)]
        names = {split(past.address)[1] for past in likely}
        in_use = matcher.effects.names | frozenset(filter(is_effect, names))
        nothing = not self._claim.live
        return new_effect(
            self._run, asked, likely, alike=len(alike), in_use=in_use, nothing=nothing, unknown=unknown(blocked)
        )

    def goes_on_from(self, undone: list[Undone], asked: Asked | None = None) -> Stop:
        """The stop if the code treats undone effects as done."""
        names = dict.fromkeys(split(one.undo.address)[1].removesuffix(".undo") for one in undone)
        specs = [effect_from(name, self.origins.get(name, "")) for name in names]
        gone = [spec.name for spec in specs if spec is not None and spec.undo is None]
        return taken_for_done(self._run, asked, undone, gone=gone, nothing=not self._claim.live)

    def open_removed(self) -> list[Stop]:
        """Effects in doubt that the code no longer has: leaving them out would be a guess."""
        pasts = [past for past in self._replay.unasked() if isinstance(past, PastEffect) and is_open(past)]
        return [open_question(self._run, past, "the code no longer has it (sf.removed)") for past in pasts]

    def _undone_before(self, asked: Asked) -> list[Undone]:
        """Undone effects that the new effect would build on. An undo itself follows the order of the code."""
        if asked.name.endswith(".undo"):
            return []
        return [
            one
            for one in self._replay.taken_back()
            if on_one_line(split(one.undo.address)[0], asked.path) or not self._may_still(asked, one.undo.address)
        ]

    def _is_let_go(self, past: PastCall, asked: Asked) -> bool:
        """Whether a new effect may begin despite this record: it has other arguments, and a person declared the record
        left out; or it also has another name, and `sf.removed` names the record's effect.
        """
        matcher = self._replay.matcher
        if matcher.is_left(past):
            return not matcher.arguments.is_alike(past, asked)
        is_other = split(past.address)[1] != asked.name and not matcher.arguments.same_values(past, asked)
        return is_other and is_removed(past)

    def _may_still(self, asked: Asked, address: str) -> bool:
        """Whether the code of another branch, which has not ended, may still ask for that effect."""
        if any(address.startswith(branch) for branch in self._replay.matcher.learned.ended):
            return False  # The rehearsal followed it to its end.
        if self._scopes.may_come(address, asked.path):
            return True
        # The workflow's own tasks may open a scope later. A task waits for that before a new effect; a thread does not.
        may_be_opened = self._scopes.has_strays and "[" in address
        return may_be_opened and (self._hides() or asked.address not in self.patient)

    def _was_around(self, asked: Asked, address: str) -> bool:
        """Whether another branch declares that this call of a scope around may be its own, while a new step hides what it
        asks for. In a drive the new effect then waits for the next rehearsal (`is_early`), and does not begin.
        """
        if not (self._dry or self.may_hear_again):
            return False
        others = self._scopes.cut_short(self._hidden() | self._replay.matcher.learned.hidden)
        return any(was_around(scope, address) for scope in others if not asked.path.startswith(scope.path))

    # -- what a rehearsal has not seen -------------------------------------------------------------------

    def was_hidden(self, past: Past) -> bool:
        """Whether a new call hid this one from the rehearsal: a later call may still be the recorded one."""
        is_behind_news = self.may_hear_again and self._claim.advanced
        return is_behind_news and past.address not in self._replay.matcher.learned.asked

    def is_unseen(self, address: str) -> bool:
        """Whether no rehearsal has checked what follows an effect that is declared new: it may be a stop."""
        self.declared.add(address)
        ahead = self._replay.matcher.learned.ahead
        heard = address in ahead or not (self.may_hear_again and self._claim.advanced)
        return not (heard or self._dry) and self._replay.may_stop()

    def is_early(self) -> bool:
        """Whether a new step, in an open branch, hides which recorded effects the code asks for there."""
        hidden = self._replay.matcher.learned.hidden
        if not (hidden and self.may_hear_again):
            return False
        unasked = [past.address for past in self._replay.missed()]
        branches = self._scopes.cut_short(hidden)
        return any(may_ask(scope, address) for scope in branches for address in unasked)
