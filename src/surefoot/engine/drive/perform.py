"""Performs wishes in blocking code. Its twin for tasks is `perform_async.py`; neither decides anything.

`run` is the one loop: calls, verbs, starts and undos are all generators of the same wishes. `acts.py` has how each wish
is carried out.
"""

from __future__ import annotations

import inspect
from typing import Any

from surefoot.core import command
from surefoot.core.command import After, Append, Ending, Execute, Pause, Routine, T
from surefoot.engine.declare import current
from surefoot.engine.declare.call_spec import CallSpec
from surefoot.engine.declare.current import Place, session_of
from surefoot.engine.drive import acts
from surefoot.engine.session.attempt import Attempt
from surefoot.engine.session.effects_done import note
from surefoot.engine.session.frame import NOWHERE, Frame


def call(spec: CallSpec, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A decorated blocking function is called."""
    place = current.get()
    if place is None:
        return spec.stray(args, kwargs)
    if place is current.OUTSIDE or place.inside is not None:
        return spec.nested(place, args, kwargs)
    session = place.session
    begun = session.begin(place, spec, args, kwargs)
    asked = None
    if type(begun) is Attempt:
        args, kwargs, asked = begun.args, begun.kwargs, begun.call
        is_lent = not isinstance(place.owner, int) and place.lend()
        try:
            begun = attempted(begun)
        finally:
            if is_lent:
                place.lent_to = None
    if spec.kind == "effect":
        note(place, spec, args, kwargs, begun, asked)
    return session.finish(place, begun)


def attempted(attempt: Attempt) -> Ending:
    """Make a call that the journal does not answer."""
    session, program = attempt.session, attempt.program
    try:
        session.flight.call_begins(attempt.call.address, attempt.spec.kind)
        if not session.claim.live and not attempt.looks_first():
            acts.go_live(session)
            program = attempt.overtaken() or program
        return run(program, attempt)
    except BaseException as error:
        session.stops.struck_by(error)
        raise
    finally:
        session.flight.call_ended(attempt.call.address)


def verb(place: Place, program: Routine[T]) -> T:
    """Carry out a verb that may wait."""
    session = session_of(place)
    try:
        return run(program, Frame(session, place))
    except BaseException as error:
        session.stops.interrupted_by(error)
        raise


def run(program: Routine[T], frame: Any = NOWHERE) -> T:
    """Perform what the program wishes until it returns. What goes wrong is thrown into it."""
    session, answer, error = frame.session, None, None  # type: Any, Any, BaseException | None
    while True:
        try:
            while True:  # No `match`: it costs six times as much here.
                wish = program.send(answer) if error is None else program.throw(error)
                answer = error = None
                if session.stops.found and (instead := frame.held_back(wish)) is not None:
                    program = instead
                    continue
                if not session.claim.live and frame.needs_claim(wish):
                    acts.go_live(session)
                    if (instead := frame.overtaken()) is not None:
                        program = instead
                        continue
                if isinstance(wish, Execute):
                    answer = acts.execute(frame, wish.attempt)
                elif isinstance(wish, Append):
                    acts.append(session, wish.entry)
                elif isinstance(wish, After):
                    answer = acts.moment(session, wish.seconds, jitter=wish.jitter)
                elif isinstance(wish, Pause):
                    session.notices.say_why(wish)
                    acts.pause(frame.place, wish.due, frame.is_settled)
                    program = frame.overtaken() or program
                else:
                    answer = _performed(wish, frame)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        except BaseException as failure:
            if inspect.getgeneratorstate(program) == inspect.GEN_CLOSED:
                raise  # That is how the program itself ended.
            error = failure  # Also Ctrl-C between two wishes: a program that holds a claim has to let go of it.


def _performed(wish: command.Looking | command.Doing, frame: Any) -> Any:
    if isinstance(wish, command.Do):
        return wish.fn()
    if isinstance(wish, command.RunCheck):
        return acts.look(frame)
    if isinstance(wish, command.Repair):
        begun = frame.repair(wish.attempt)
        return attempted(begun) if isinstance(begun, Attempt) else begun
    if isinstance(wish, command.Verify):
        return run(frame.session.world.verified(), Frame(frame.session))
    if isinstance(wish, command.Make):
        if inspect.iscoroutinefunction(wish.spec.fn):
            raise frame.session.stops.misuse(f"{wish.spec.name} is async: `await sf.undo(...)` with surefoot.aio")
        return call(wish.spec, wish.args, wish.kwargs)
    if isinstance(wish, command.Nap):
        return acts.nap(wish.seconds)
    if isinstance(wish, command.Claim):
        return acts.claim(frame.session, wish.created)
    if isinstance(wish, command.Invoke):
        return acts.invoke(wish.session, wish.fn)
    if isinstance(wish, command.Within):
        return run(wish.program, wish.frame)
    attempt: Attempt = frame
    return attempt.seen(wish)
