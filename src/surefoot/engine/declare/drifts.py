"""Looking at the world for a run: what its witnesses observe now, compared with what the run expects."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final, get_args

from msgspec import Raw, Struct
from msgspec.structs import replace

from surefoot.core import values
from surefoot.core.choice import OnDriftWord, one_of
from surefoot.core.code_changes import changed
from surefoot.core.command import Append, Do, Routine, Verify
from surefoot.core.cure import APP, Command, command
from surefoot.core.entry import Drift, Sight, Stop, WorldSeen
from surefoot.core.expectation import UNSEEN, Expectation, Unseen
from surefoot.core.timer import Moment, after, remaining
from surefoot.engine.declare.current import Place
from surefoot.errors import UsageError, ValueRejected
from surefoot.world.base import sight
from surefoot.world.observation import distinct, observe_all
from surefoot.world.observation import look as look_once
from surefoot.world.specs import from_spec

STOP: Final = "stop"
WARN: Final = "warn"
ACCEPT: Final = "accept"
SHOWN: Final = 20
LONG_WAIT_SECONDS: Final = 60.0
"""After a longer wait the world is observed again."""

LOOKED_AGAIN: Final = "It stopped when it looked again; what it did before is done."
CODE_NEEDED: Final = "only the code that watched it can look; name it in watch= of the workflow"

OnDrift = OnDriftWord | Callable[[list[Drift]], str]


class Findings(Struct, frozen=True):
    """The result of observing every witness of a run again."""

    drift: list[Drift]
    sights: tuple[Sight, ...]
    changed: frozenset[str]
    """Witnesses whose observation differs from the recorded one."""

    def news(self) -> tuple[Sight, ...]:
        return tuple(sight for sight in self.sights if sight.witness in self.changed)


def observe(witnesses: Sequence[Any]) -> tuple[tuple[Sight, ...], tuple[str, ...]]:
    """What these witnesses see now; and which could not be observed, in words."""
    by_name = {witness.name: witness for witness in witnesses}
    found = observe_all(witnesses)
    sights = tuple(sight(by_name[name], seen) for name, seen in found.items() if not isinstance(seen, Unseen))
    return sights, tuple(f"{name}: {seen.why}" for name, seen in found.items() if isinstance(seen, Unseen))


def watch(witness: Any) -> tuple[Any, Sight | str]:
    """The value that a witness sees now, and its sight at the same moment; or why it could not be observed."""
    distinct([witness])
    seen = look_once(witness)
    if isinstance(seen, Unseen):
        return None, f"{witness.name}: {seen.why}"
    return seen.value, sight(witness, seen.parts)


def unobservable(run: str, address: str, why: str) -> Stop:
    message = f"run {run}, {address}: cannot be observed: {why}. Once it can be, or the code no longer asks, resume"
    return Stop("Drifted", message, address, {"unseen": why}, (give_up(run),))


def give_up(run: str) -> Command:
    return command("runs cancel", run, when="give up?")


def look(world: Expectation, at_hand: Sequence[Any]) -> Findings:
    """Observe every witness that the run knows or the code names. A new witness is no drift: it begins now."""
    given = {witness.name: witness for witness in at_hand if witness.name not in world.unwatched}
    actual = _again(world, given)
    judged = dict(actual)
    for name, seen in observe_all([witness for name, witness in given.items() if name not in actual]).items():
        actual[name] = seen
        if isinstance(seen, Unseen):
            judged[name] = seen
    specs = {name: dict(seen.spec) for name, seen in world.sights.items()}
    specs.update({name: dict(getattr(witness, "spec", {})) for name, witness in given.items()})
    sights = tuple(Sight(name, seen, specs[name]) for name, seen in actual.items() if not isinstance(seen, Unseen))
    changed = frozenset(seen.witness for seen in sights if _is_news(world, seen))
    unsettled = world.unsettled(actual)
    # Witnesses of parts that an effect in doubt touches are recorded once the effect is settled.
    in_doubt = frozenset(seen.witness for seen in sights if unsettled & seen.parts.keys())
    return Findings(world.drift(judged), sights, changed - in_doubt)


def overtaken(findings: Findings, before: Expectation, after: Expectation) -> Findings:
    """The run changed its own world during the observation: its changes cannot be judged by what was seen."""
    actual = {seen.witness: seen.parts for seen in findings.sights}
    still = {found.part for found in after.drift(actual)}
    drift = [
        found
        for found in findings.drift
        if not found.part or (found.part in still and before.parts.get(found.part) == after.parts.get(found.part))
    ]
    return Findings(drift, findings.sights, frozenset())


def _again(world: Expectation, given: dict[str, Any]) -> dict[str, dict[str, str] | Unseen]:
    """Observe every recorded witness: with the code's witness of that name, else from its spec."""
    found: dict[str, dict[str, str] | Unseen] = {}
    witnesses = []
    for name, seen in world.sights.items():
        witness = given.get(name) or (from_spec(seen.spec) if seen.spec else None)
        if witness is None:
            found[name] = Unseen(CODE_NEEDED)
        else:
            witnesses.append(witness)
    return {**found, **observe_all(witnesses)}


def _is_news(world: Expectation, sight: Sight) -> bool:
    known = sight.witness in world.sights and sight.witness not in world.fresh_witnesses
    return not known or not _as_expected(world, sight) or bool(world.fresh & sight.parts.keys())


def _as_expected(world: Expectation, sight: Sight) -> bool:
    return all(part in world.parts and world.parts[part].hash == value for part, value in sight.parts.items()) and all(
        part in sight.parts for part in world.sights[sight.witness].parts
    )


def verdict(drift: list[Drift], on_drift: OnDrift) -> str:
    """The workflow's decision about drift. An unobservable witness is always a stop."""
    if any(found.what == UNSEEN for found in drift):
        return STOP
    if not drift or isinstance(on_drift, str):
        return on_drift if isinstance(on_drift, str) else ACCEPT
    try:
        said: Any = on_drift(drift)
    except Exception as error:
        raise UsageError(f"on_drift= raised {type(error).__name__}: {error}. The run stays as it is.") from error
    if said not in (words := get_args(OnDriftWord)):
        raise UsageError(f"on_drift= answered {said!r}; it must be one of {', '.join(map(repr, words))}")
    return str(said)


def checked_on_drift(on_drift: OnDrift) -> OnDrift:
    if inspect.iscoroutinefunction(on_drift):
        raise UsageError("on_drift= takes a plain function, not an async one")
    if callable(on_drift):
        return on_drift
    return one_of(on_drift, OnDriftWord, "@sf.workflow: on_drift", more=", nor a function")


def checked_witnesses(watch: Sequence[Any]) -> tuple[Any, ...]:
    """Wrong witnesses are refused when decorated, not at the first resume."""
    if callable(getattr(watch, "fingerprint", None)) or not isinstance(watch, Iterable):
        raise UsageError(f'watch={watch!r:.200}: must be a list of witnesses: watch=[witness.file("a.txt"), …]')
    return tuple(distinct(watch))


def watching(place: Place, witness: Any) -> Routine[Any]:
    """`sf.watch`: observed once, then the same for ever. From here on the run relies on it."""
    session = place.session
    session.enter_verb(place)
    address, past = session.recall(place, "watch")
    if past is not None:
        if past.kind != "sight":
            raise session.stops.stopped(place, changed(session.run, address, f"a {past.kind}", "sf.watch()"))
        return None if past.value is None else session.decoded(past.value)
    session.stops.would_do("watch", address)
    try:
        value, found = yield Do(partial(watch, witness))
    except UsageError as error:
        raise session.stops.misused(error) from None
    if isinstance(found, str):
        raise session.stops.stopped(place, unobservable(session.run, address, found))
    try:
        raw = Raw(values.encode(value))
    except ValueRejected as error:
        where = f"run {session.run}, {address}: {error}"
        raise session.stops.misused(ValueRejected(where, path=error.path)) from error
    yield Append(WorldSeen((found,), address, value=raw))
    return session.decoded(raw)


def looked_around(place: Place, begun: Moment) -> Routine[None]:
    """After a long wait the world may have changed: it is observed again before the run goes on."""
    if remaining(after(begun, LONG_WAIT_SECONDS), place.session.now()) < 0:
        stop = yield Verify()
        if stop is not None:
            raise place.session.stops.stopped(place, stop)


def here() -> str:
    """The working folder, the base of relative paths; empty if it is gone."""
    try:
        return os.getcwd().encode("utf-8", "backslashreplace").decode()
    except OSError:
        return ""


def before_effect(stop: Stop, address: str) -> Stop:
    """The same stop, for an effect right before it runs."""
    message = stop.message.replace(LOOKED_AGAIN, f"{address} was not executed; what was done before it is done.", 1)
    return replace(stop, message=message)


def drifted(run: str, drift: Sequence[Drift], folder: str = "", *, resuming: bool = True) -> Stop:
    """The stop: what was expected, what was found, and which call had recorded it. `folder`: the folder then."""
    so_far = "Nothing was executed." if resuming else LOOKED_AGAIN
    message = f"run {run}: the world is not as the run left it. {so_far}"
    return Stop("Drifted", message, "", _about(drift, folder), tuple(_cures(run, drift)), found_here(drift[:SHOWN]))


def _about(drift: Sequence[Drift], folder: str) -> dict[str, str]:
    more = {"more": str(len(drift) - SHOWN)} if len(drift) > SHOWN else {}
    return more | ({"folder": folder, "looked_in": here()} if folder not in ("", here()) else {})


def found_here(drift: Iterable[Drift]) -> tuple[Drift, ...]:
    return tuple(replace(found, host=os.uname().nodename) for found in drift)


def _cures(run: str, drift: Sequence[Drift]) -> Iterator[Command]:
    unseen = [found.witness for found in drift if found.what == UNSEEN]
    call = next((found.by.split(",")[0] for found in drift if "#" in found.by), "")
    if len(unseen) < len(drift):
        yield command("accept", run, when="it is all right?")
    if call:
        yield command("runs rewind", run, at=call, when="do it again?")
    if unseen:
        yield command("runs resume", run, app=APP, when="can be observed again?")
    yield from (command("accept", run, witness=name, when="no longer watch it?") for name in unseen[:SHOWN])
    yield give_up(run)
