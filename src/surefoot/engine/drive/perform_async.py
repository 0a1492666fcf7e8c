"""Performs wishes in tasks. Its twin for blocking code is `perform.py`; neither decides anything.

It adds two things. What blocks goes to threads. And once a call has begun, its outcome is found out and recorded before a
cancellation is passed on.
"""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

from surefoot.core import command
from surefoot.core.command import After, Append, Ending, Execute, Looking, Pause, Routine, T
from surefoot.core.entry import CallCancelled
from surefoot.core.history import PastCall
from surefoot.engine.declare import current
from surefoot.engine.declare.call_spec import CallSpec
from surefoot.engine.declare.current import Place, session_of
from surefoot.engine.declare.signals import PlanSignal
from surefoot.engine.drive import acts, acts_async, cancellations, perform, timeouts
from surefoot.engine.drive.acts_async import hop, to_the_end
from surefoot.engine.session import turns
from surefoot.engine.session.attempt import Attempt, recorded_ending
from surefoot.engine.session.effects_done import note
from surefoot.engine.session.frame import NOWHERE, Frame


async def call(spec: CallSpec, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A decorated coroutine function is awaited."""
    place = current.get()
    if place is None:
        return await spec.stray(args, kwargs)
    if place is current.OUTSIDE or place.inside is not None:
        return await spec.nested(place, args, kwargs)
    session = place.session
    if isinstance(place.owner, int):
        raise session.stops.misuse(
            f"run {session.run}: async {spec.kind} {spec.name} inside a blocking workflow. "
            "Make the workflow `async def` and await the call, or make the call blocking."
        )
    session.enter_verb(place)
    coming = place.scope.coming(spec.name)
    cancellations.entering(place, coming)
    if (cut := cancellations.recorded(place, coming)) is not None and _is_there(place, spec, args, kwargs, cut):
        place.scope.take(spec.name)
        await _again(place, spec, args, kwargs, cut)
    entered = True  # Until something is awaited: the run may stop meanwhile.
    if session.replay.matcher.cuts or session.stops.limits:
        await held(place, spec.name, coming)
        entered = False
    is_new = not session.replay.matcher.is_blank and session.replay.matcher.past(coming) is None
    if session.scopes.has_strays and spec.kind == "effect" and is_new:
        await turns.heard_out(place, coming)
        entered = False
    try:
        begun = session.begin(place, spec, args, kwargs, entered=entered)
    except PlanSignal:
        await turns.others_heard(session)
        raise
    address = place.called
    if address != coming and (cut := cancellations.recorded(place, address)) is not None:
        await _again(place, spec, args, kwargs, cut)  # It is on record under another name.
    asked = None
    if type(begun) is Attempt:
        attempt, args, kwargs, asked = begun, begun.args, begun.kwargs, begun.call
        try:
            begun = await attempted(attempt)
            if not session.replay.matcher.is_blank:
                await turns.in_turn(place, address, on_record=False)
        except asyncio.CancelledError:
            attempt.cut_short()
            cancellations.cut_off(place, address)
            raise
    else:
        try:
            await turns.in_turn(place, address, on_record=True)
        except asyncio.CancelledError:
            cancellations.cut_off_in_turn(place, address)
            raise
    if spec.kind == "effect":
        note(place, spec, args, kwargs, begun, asked)
    return session.finish(place, begun)


async def held(place: Place, name: str, address: str) -> None:
    """Wait for what cancelled the code before it came to this call; and in a block whose time is over, to be cut off.

    What is on record, and has not ended, is cut off as if it had been begun. `name`: whose number it takes then; empty: it
    has taken it already.
    """
    await cancellations.awaited(place, address)
    if not place.session.stops.limits:
        return
    past = timeouts.on_record(place, address)
    try:
        await timeouts.held(place, address)
    except asyncio.CancelledError:
        if past is not None:
            if name:
                place.scope.take(name)
            cancellations.cut_off(place, address)
        raise


def _is_there(place: Place, spec: CallSpec, args: tuple[Any, ...], kwargs: dict[str, Any], cut: CallCancelled) -> bool:
    past = place.session.replay.matcher.past(cut.address)
    return past is None or session_of(place).is_cut_off_there(place, past, spec, args, kwargs)


async def _again(
    place: Place, spec: CallSpec, args: tuple[Any, ...], kwargs: dict[str, Any], cut: CallCancelled
) -> None:
    """A call that was cut off before. If it was done all the same, a saga has to know."""
    session = session_of(place)
    past = session.state.calls.get(cut.address)
    if isinstance(past, PastCall) and past.digest and past.kind == spec.kind:
        session.require_same(place, past, spec, args, kwargs)
    if past is not None and (ending := recorded_ending(past)) is not None:
        note(place, spec, args, kwargs, ending, None)
    await cancellations.again(place, cut.address, cut)


async def attempted(attempt: Attempt) -> Ending:
    """Make a call that the journal does not answer."""
    session, program = attempt.session, attempt.program
    try:
        session.flight.call_begins(attempt.call.address, attempt.spec.kind)
        if not session.claim.live and not attempt.looks_first():
            await acts_async.go_live(session)
            program = attempt.overtaken() or program
        return await run(program, attempt)
    except asyncio.CancelledError:
        raise  # An ordinary event in async code: what was in flight is finished or was never begun.
    except BaseException as error:
        session.stops.struck_by(error)
        raise
    finally:
        session.flight.call_ended(attempt.call.address)
        session.flight.made_at = asyncio.get_running_loop().time()


async def verb(place: Place, called: str, program: Routine[T], address: str = "") -> T:
    """Carry out a verb that may wait. `address`: if it has taken one already."""
    taken, address = bool(address), address or place.scope.coming(called)
    cancellations.entering(place, address)
    if (cut := cancellations.recorded(place, address)) is not None:
        if not taken:
            place.scope.take(called)
        await cancellations.again(place, address, cut)
    if place.session.replay.matcher.cuts or place.session.stops.limits:
        await held(place, "" if taken else called, address)
    try:
        return await run(program, Frame(place.session, place))
    except acts_async.CancelledAgain:
        raise
    except asyncio.CancelledError:
        cancellations.cut_off(place, address)
        raise


async def run(program: Routine[T], frame: Any = NOWHERE) -> T:
    """Perform what the program wishes until it returns. What goes wrong is thrown into it."""
    session, answer, error = frame.session, None, None  # type: Any, Any, BaseException | None
    executed = False
    cancelled: asyncio.CancelledError | None = None
    while True:
        try:
            while True:  # No `match`: it costs six times as much here.
                wish = program.send(answer) if error is None else program.throw(error)
                answer = error = None
                if session.stops.found and (instead := frame.held_back(wish)) is not None:
                    program = instead
                    continue
                if not session.claim.live and frame.needs_claim(wish):
                    await acts_async.go_live(session)
                    if (instead := frame.overtaken()) is not None:
                        program = instead
                        continue
                if isinstance(wish, Execute):
                    executed = True
                    answer, struck = await acts_async.execute(frame, wish.attempt)
                    cancelled = struck or cancelled
                elif isinstance(wish, Append):
                    try:
                        await acts_async.append(session, wish.entry)
                    except asyncio.CancelledError as strike:
                        if not frame.shields:
                            raise
                        # The entry is durable. What it belongs to is finished before this is passed on.
                        cancelled = strike
                elif isinstance(wish, After):
                    answer = acts.moment(session, wish.seconds, jitter=wish.jitter)
                elif isinstance(wish, Pause):
                    if cancelled is not None:
                        # The failed attempt is on record; the next one is for the next resume.
                        raise cancelled  # noqa: TRY301 - handled like any other cancellation
                    session.notices.say_why(wish)
                    await acts_async.pause(frame.place, wish.due, frame.is_settled)
                    program = frame.overtaken() or program
                elif executed and isinstance(wish, Looking):
                    # The call was made: how it ended is found out and recorded before a cancellation is passed on.
                    answer, struck = await to_the_end(_performed(wish, frame))
                    cancelled = struck or cancelled
                else:
                    answer = await _performed(wish, frame)
        except StopIteration as end:
            frame.ending = end.value
            if cancelled is not None:
                raise cancelled from None
            return end.value  # type: ignore[no-any-return]
        except BaseException as failure:
            if inspect.getgeneratorstate(program) == inspect.GEN_CLOSED:
                raise  # That is how the program itself ended.
            error = failure


async def _performed(wish: Looking | command.Doing, frame: Any) -> Any:
    if isinstance(wish, command.Within):  # These three first: every run has them.
        return await run(wish.program, wish.frame)
    if isinstance(wish, command.Claim):
        return await acts_async.claim(frame.session, wish.created)
    if isinstance(wish, command.Invoke):
        return await acts_async.invoke(wish.session, wish.fn)
    if isinstance(wish, command.Do):
        return await hop(wish.fn)
    if isinstance(wish, command.RunCheck):
        return await acts_async.look(frame)
    if isinstance(wish, command.Repair):
        begun = frame.repair(wish.attempt)
        if not isinstance(begun, Attempt):
            return begun
        # The undo of an async effect may be a blocking function.
        return await attempted(begun) if inspect.iscoroutinefunction(begun.spec.fn) else perform.attempted(begun)
    if isinstance(wish, command.Verify):
        return await run(frame.session.world.verified(), Frame(frame.session))
    if isinstance(wish, command.Make):
        made = call if inspect.iscoroutinefunction(wish.spec.fn) else perform.call
        given = made(wish.spec, wish.args, wish.kwargs)
        return await given if made is call else given
    if isinstance(wish, command.Nap):
        return await asyncio.sleep(wish.seconds)
    attempt: Attempt = frame
    return attempt.seen(wish) if isinstance(wish, command.Hold) else await hop(attempt.seen, wish)
