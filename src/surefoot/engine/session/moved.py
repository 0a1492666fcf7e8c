"""Where a verb (a wait, a sleep, a question, a recorded value) is on record if its scope was renamed or added.

Verbs without arguments are known by their number. `sf.scope("eu", was="europe")` declares that the calls counted there
are counted here now. `was=""` declares that its calls were counted together with others in the enclosing scope: then
the first record that was not asked for yet is meant, and calls that stay in the enclosing scope take the next numbers.
That holds on one line of control. With branches side by side, the owner of a number is unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import takewhile

from surefoot.core.address import split
from surefoot.core.history import Past
from surefoot.engine.declare.current import Place


def recorded(
    place: Place, name: str, fits: Callable[[Past], bool] | None = None, *, address: str = ""
) -> tuple[str, Past | None]:
    """The address of the next call of this verb here, and its record.

    `fits`: whether a record that was counted together with others can be this call's. `address`: has been taken already.
    """
    scope, session = place.scope, place.session
    address = address or scope.take(name)
    while (place.segment, address) in session.replay.moved:
        address = scope.take(name)
    past: Past | None = session.state.calls.get(address)
    if scope.also or session.replay.labels:
        claim(place, name, address)
    if scope.also:
        counted = next(_elsewhere(place, name, fits, counted=True), None)
        moved = counted or (next(_elsewhere(place, name, fits, counted=False), None) if past is None else None)
        if moved is not None:
            session.replay.moved.add((place.segment, moved.address))
            return moved.address, moved
    return address, past


def claim(place: Place, name: str, address: str) -> None:
    """A scope with `was=` asks for calls of that name. Refused if the code also uses the old label for them."""
    scope, labels = place.scope, place.session.replay.labels
    by = labels.get((place.segment, scope.path, name), scope.path)
    rival = next((old.path for old in scope.before() if old.count(name)), None)
    if rival is None and by == scope.path:
        for path, counted in scope.also:
            if counted:
                labels[place.segment, path, name] = scope.path
        return
    new, old = (scope.path, rival) if rival is not None else (by, scope.path)
    new, old = new.rstrip("/"), old.rstrip("/")
    raise place.session.stops.misuse(
        f"run {place.session.run}, {address}: {new} says that it was {old} (was=), and the code makes "
        f"calls of {name} in {old} by itself, too, so nobody can tell whose the recorded ones are. Give what is "
        "new a label that no run has, or take was= away once no run needs it. It was not executed."
    )


def _elsewhere(place: Place, name: str, fits: Callable[[Past], bool] | None, *, counted: bool) -> Iterator[Past]:
    matcher = place.session.replay.matcher
    for path, as_here in place.scope.also:
        if as_here is not counted:
            continue
        if counted:
            past = place.session.state.calls.get(f"{path}{name}#{place.scope.count(name)}")
            if past is not None and past.address not in matcher.asked:
                yield past
        elif _is_on_its_line(place, path):
            around = [past for past in matcher.recorded() if split(past.address)[:2] == (path, name)]
            for past in sorted(around, key=lambda one: one.first):
                if past.address not in matcher.asked and (fits is None or fits(past)):
                    yield past


def _is_on_its_line(place: Place, path: str) -> bool:
    """Whether this line of control counts in that scope too."""
    on_line = takewhile(lambda at: at.line is place.line, place.around())
    return any(at.scope.path == path for at in on_line)
