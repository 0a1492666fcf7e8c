"""The stops when code and journal no longer agree: what differs, that nothing was executed, what helps."""

from __future__ import annotations

import re
import shlex
from collections.abc import Container, Iterable, Sequence
from typing import Final

from surefoot.core import values
from surefoot.core.address import split
from surefoot.core.cure import Advice, Cure, Cures, Edit, command
from surefoot.core.differences import changes, hints
from surefoot.core.doubt import settling
from surefoot.core.entry import Stop
from surefoot.core.history import CHILD, DOUBTFUL, Past, PastState, PastWait, is_child, may_have_happened
from surefoot.core.matching.answers import Asked
from surefoot.core.reopening import Undone
from surefoot.errors import UsageError

_MOST_UNDONE: Final = 5
_MOST_NAMES: Final = 5
_TAKEN_OUT, _MOST_TAKEN_OUT = "taken out, this run only?", 3


def new_effect(
    run: str, asked: Asked, blocked: Sequence[Past], *, alike: int, in_use: Container[str], nothing: bool,
    unknown: frozenset[str] = frozenset(),
) -> Stop:  # fmt: skip
    """A new effect, while some recorded ones were not asked for: it may be one of those.

    `alike`: so many of them, the first, were executed with the same arguments. `in_use`: effects that the code has,
    asked for by now or not. `unknown`: those that no loaded code has. They may be plain functions now, and may have
    been called.
    """
    names = names_of(blocked)
    many = len(blocked) > 1
    were = f"{'were' if many else 'was'} executed{' with the same arguments' if alike == len(blocked) else ''}"
    if 0 < alike < len(blocked):
        were += f", {names_of(blocked[:alike])} with the same arguments"
    doubtful = [past for past in blocked if past.state is PastState.IN_DOUBT]
    if doubtful:
        were += f"; {names_of(doubtful)} {'are' if len(doubtful) > 1 else 'is'} in doubt"
    what = "child run" if asked.name == CHILD else "effect"
    called = [split(past.address)[1] for past in blocked]
    plain = perhaps_plain(name for name in called[alike:] if name in unknown and name not in called[:alike])
    executed = "No effect was executed." if plain and nothing else _nothing(asked.address, nothing=nothing)
    message = (
        f"run {run}: the code now asks for the {what} {asked.address}, which is not on record, and has not asked for "
        f"{names}, which {were}. Renamed, moved, or new? {executed}{plain}"
    )
    unasked = "\n".join(past.address for past in blocked)
    facts = {"asked": asked.address, "recorded": names, "unasked": unasked, "digest": asked.digest}
    return Stop("CodeChanged", message, blocked[0].address, facts, _cures_of_new(run, asked, blocked, alike, in_use))


def _cures_of_new(run: str, asked: Asked, blocked: Sequence[Past], alike: int, in_use: Container[str]) -> Cures:
    path, old, _ = split(blocked[0].address)
    told: list[Cure] = []
    is_run, was_run = asked.name == CHILD, old == CHILD
    if old not in (asked.name, *asked.names) and not (is_run or was_run):
        told.append(Edit("the same, renamed?", f'@sf.effect(was="{old}")', f"on {asked.name}"))
    if path != asked.path and (declared := _moved(path, asked.path)):
        told.append(Edit("the same, moved?", declared))
    if is_run is was_run:
        told.append(command("match", run, asked.address, is_=blocked[0].address, when="the same, this run only?"))
    as_new = "" if is_run else f"@sf.effect(was=None) on {asked.name}, or "
    told.append(Advice("new?", as_new + 'keep the old way for this run: if sf.patched("…"): … else: …'))
    told.append(command("match", run, asked.address, new=True, when="new, this run only?"))
    told += taken_out(run, blocked[alike:])
    gone = next((name for past in blocked[alike:] if (name := split(past.address)[1]) not in in_use), "")
    if gone and gone != CHILD:
        told.append(Edit("gone for good?", f'sf.removed("{gone}")', "in the module"))
    told.append(run_again("neither?", "put the old code back", run))
    return tuple(told)


def taken_for_done(run: str, asked: Asked | None, found: list[Undone], *, gone: Sequence[str], nothing: bool) -> Stop:
    """The code goes on from effects that were undone later. `asked`: the new effect that it comes to; None: its end.

    `gone`: effects among them that have no undo in the code any more.
    """
    found = sorted(found, key=lambda one: one.effect.first)
    told = [_undone(one) for one in found[:_MOST_UNDONE]]
    told += [f"{len(found) - _MOST_UNDONE} more were undone"] if len(found) > _MOST_UNDONE else []
    as_if = "as if it stood" if len(found) == 1 else "as if they stood"
    goes_on = f"and the code goes on {as_if}" if not gone else f"and the code has no undo of {', '.join(gone)} any more"
    where = f", {asked.address}" if asked is not None else ""
    executed = f" {_nothing(asked.address, nothing=nothing)}" if asked is not None else ""
    message = f"run {run}{where}: {', '.join(told)}, {goes_on}.{executed}"
    first = found[0]
    facts = {"recorded": first.undo.address, "asked": asked.address if asked is not None else "nothing"}
    if asked is not None:
        facts["digest"] = asked.digest
    return Stop("CodeChanged", message, first.effect.address, facts, _cures_of_undone(run, asked, found, gone))


def _undone(one: Undone) -> str:
    if one.undo.state is PastState.DONE:
        return f"{one.effect.address} was undone ({one.undo.address})"
    return f"{one.effect.address} may have been undone ({one.undo.address} is in doubt)"


def _cures_of_undone(run: str, asked: Asked | None, found: list[Undone], gone: Sequence[str]) -> Cures:
    told = [run_again("by mistake?", f"put the undo of {name} back,", run) for name in gone]
    for one in found:
        if one.undo.state is not PastState.DONE:
            when = f"{one.effect.address} was not undone?"
            told.append(command("settle", run, one.undo.address, not_happened=True, when=when))
    told.append(run_again("old code:", "put it back", run))
    if asked is not None and asked.name != CHILD and not gone:
        told.append(command("match", run, asked.address, new=True, when=f"still undone, behind {asked.address}?"))
    told.append(command("runs rewind", run, at=found[0].effect.address, when="do it once more, asked about each?"))
    told.append(command("runs cancel", run, when="leave it undone?"))
    return tuple(told)


def _moved(path: str, now: str) -> str:
    """What `was=` can declare for calls recorded in that scope. Nothing for branches without a label."""
    if path and not path.endswith("]/"):
        return ""
    if not now or now.endswith("]/"):
        return f'was= on its scope: sf.scope("…", was="{_label(path)}")'
    verb = now.rstrip("/").rpartition("/")[2].partition("#")[0]
    return f'sf.{verb}(…, was="{_label(path)}")'


def _label(path: str) -> str:
    last = path.rstrip("/").rpartition("/")[2] if not path.endswith("]/") else path[path.rfind("[") :].rstrip("/")
    return last.strip("[]")


def other_arguments(
    run: str, past: Past, address: str, name: str, recorded: bytes, asked: bytes, *, kind: str = "", digest: str = "",
    nothing: bool = True, twin: str = "", is_cut_off: bool = False, noted: frozenset[str] = frozenset(),
    parameters: frozenset[str] | None = None,
) -> Stop:  # fmt: skip
    """A recorded call that is asked for in another way than it was made. `noted`: what is not compared already.
    `parameters`: those that it has now.

    `twin`: another recorded call of that name, not asked for, that was made with these arguments. `is_cut_off`: the
    call was cut off by a time-out and the like, so another call in its place would be cut off too.
    """
    executed = _nothing(address, nothing=nothing)
    where = past.address if past.address == address else f"{address} (on record as {past.address})"
    if kind and past.kind != kind:
        message = f"run {run}, {where}: recorded as {_an(past.kind)}, and asked for as {_an(kind)} now. {executed}"
        facts = {"recorded": past.kind, "asked": kind, "call": address}
        still = Advice(f"still {_an(past.kind)}?", f"put @sf.{past.kind} back on {name}")
        is_decorated = past.kind in ("step", "effect") and not is_child(past)
        return Stop("CodeChanged", message, past.address, facts, (still, *cures(run)) if is_decorated else cures(run))
    done = "executed" if past.kind == "effect" else "recorded"
    lines = [f"    {change.line()}" for change in changes(recorded, asked)]
    lines += [f"  {hint}" for hint in hints(recorded, asked)]
    message = "\n".join([f"run {run}, {where}: asked for with other arguments than it was {done} with:", *lines])
    message += f"\n  {executed}"
    facts = {"recorded": _shown(recorded), "asked": _shown(asked), "call": address, "digest": digest}
    if is_child(past):
        told = _cures_of_child(run, past, address, recorded, asked)
    else:
        names = _not_to_compare(past, recorded, asked, noted)
        if parameters is not None and not parameters.issuperset(names):
            names = ()  # One of them is gone: `noted=` with it is refused, and without it does not help.
        told = _cures_of_other(run, past, address, name, names, is_cut_off=is_cut_off)
    if twin:
        told = (command("match", run, address, is_=twin, when=f"it is {twin}?"), *told)
    return Stop("CodeChanged", message, past.address, facts, told)


def _not_to_compare(past: Past, recorded: bytes, asked: bytes, noted: frozenset[str]) -> tuple[str, ...]:
    """Parameters that `noted=` could name. None if all of several differ: that suggests another call."""
    names = dict.fromkeys(re.split(r"[.\[]", change.path)[0] for change in changes(recorded, asked))
    found = tuple(name for name in names if name and name not in noted)
    is_another = past.kind == "effect" and len(found) > 1 and len(found) == len(values.again(asked))
    return () if is_another else found


def held_by_another(
    run: str, past: Past, by: Asked, asked: Asked, recorded: bytes, *, is_said: bool, nothing: bool
) -> Stop:
    """The record of this call was given to another call, with other arguments. `is_said`: a person gave it."""
    lines = [f"    {change.line()}" for change in changes(recorded, by.args)]
    what = f"was given to {by.address}" if by.address != past.address else "is asked for"
    message = (
        f"run {run}, {asked.address}: asked for with the arguments that {past.address} was executed with, which {what} "
        "with others:\n"
    )
    message += "\n".join(lines)
    message += f"\n  Was a call put in front, or taken out? {_nothing(asked.address, nothing=nothing)}"
    if is_said:  # The other call is answered: the question is about this one.
        call, digest = asked.address, asked.digest
        told: Cures = (command("match", run, call, new=True, when=f"{call} is new, and is made once more?"),)
    else:
        call, digest = by.address, by.digest
        told = (
            command("match", run, call, new=True, when=f"{call} is new?"),
            command("match", run, call, keep=True, when=f"{call} is what was done?"),
        )
    facts = {"recorded": past.address, "asked": _shown(asked.args), "call": call, "digest": digest}
    return Stop("CodeChanged", message, past.address, facts, (*told, *cures(run)))


def _nothing(address: str, *, nothing: bool) -> str:
    """`nothing`: this drive has executed no effect so far; else only this one was not executed."""
    return "Nothing was executed." if nothing else f"{address}: nothing was executed."


def _cures_of_other(
    run: str, past: Past, address: str, name: str, parameters: tuple[str, ...], *, is_cut_off: bool
) -> Cures:
    told: list[Cure] = []
    if past.state in DOUBTFUL:
        told += settling(run, past.address, "in doubt; it happened?", "it did not?")
    else:
        stands = "what was done stands?" if past.kind == "effect" else "what it gave stands?"
        told.append(command("match", run, address, keep=True, when=stands))
    if past.kind != "effect":
        told.append(command("match", run, address, rerun=True, when="run it again?"))
    if parameters:
        listed = "".join(f'"{parameter}", ' for parameter in parameters).rstrip(" ")
        listed = listed if len(parameters) == 1 else listed.rstrip(",")
        told.append(Edit("never compare it?", f"@sf.{past.kind}(noted=({listed}))", f"on {name}"))
    if not is_cut_off:
        told.append(command("match", run, address, new=True, when="another call, new?"))
    return (*told, *cures(run))


def _cures_of_child(run: str, past: Past, address: str, recorded: bytes, asked: bytes) -> Cures:
    """Our own verb calls a child run, so declarations in code belong on its workflow. A child run that has not ended
    can be continued only by the workflow that it is a run of.
    """
    old, new = (_text_at(raw, "workflow") for raw in (recorded, asked))
    told: list[Cure] = []
    if old != new:
        told.append(Edit("the same workflow, renamed?", f'@sf.workflow(was="{old}")', f"on {new}"))
    if old == new or past.state in (PastState.DONE, PastState.FAILED):
        told.append(command("match", run, address, keep=True, when="the child run on record stands?"))
    return (*told, command("match", run, address, new=True, when="another child run, new?"), *cures(run))


def other_event(run: str, past: PastWait, name: str) -> Stop:
    """A recorded wait that has an outcome, or whose event has come, and that waits for an event of another name now."""
    stop = changed(run, past.address, f"waiting for event {past.name!r}", f"waiting for event {name!r}")
    stands = {"done": "what was received stands?", "failed": "that it did not come in time stands?"}
    what = stands.get(past.state.value, f"take {past.name!r}, which has come?")
    keep = command("match", run, past.address, keep=True, when=what)
    facts = {**stop.facts, "call": past.address, "digest": values.digest(name)}
    return Stop(stop.reason, stop.message, stop.address, facts, (keep, *stop.cures))


def _text_at(raw: bytes, name: str) -> str:
    found = values.again(raw) if raw else {}
    return str(found.get(name, ""))


def too_many(run: str, count: int, limit: int, first: Past, recorded: bytes, asked: bytes) -> Stop:
    difference = "; ".join(change.line() for change in changes(recorded, asked))
    message = (
        f"run {run}: {count} recorded steps are asked for with other arguments and would run again (more than "
        f"{limit}); the first is {first.address}: {difference}. Nothing was executed."
    )
    told = (
        command("match", run, "*", rerun=True, when="run them again?"),
        command("match", run, "*", keep=True, when="what they gave stands?"),
        Advice(
            "for every run:", f'@sf.step(on_change="keep" or "rerun") on {split(first.address)[1]}, or noted=("…",)'
        ),
        *cures(run),
    )
    return Stop("CodeChanged", message, first.address, {"recorded": _shown(recorded), "asked": _shown(asked)}, told)


def undecorated(
    run: str, name: str, module: str, pasts: Sequence[Past], *, qualname: str = "", now: str = "a plain function"
) -> Stop:
    """`qualname`: the function's name in its module, if that is not the effect's name."""
    function = qualname or name
    happened = [past for past in pasts if may_have_happened(past)]
    pasts = happened or pasts
    were = f"{'were' if len(pasts) > 1 else 'was'} {'executed' if happened else 'tried'}"
    message = (
        f"run {run}: {names_of(pasts)} {were} as an effect, and {function} in {module} is {now} now: to replay the code "
        "would execute it, unrecorded. Nothing was executed."
    )
    named = "" if function.rpartition(".")[2] == name else f'(name="{name}")'
    told = (
        Advice("by mistake?", f"put @sf.effect{named} back on {function}"),
        Advice("gone for good?", f'rename it, and sf.removed("{name}")'),
    )
    return Stop(
        "CodeChanged", message, pasts[0].address, {"recorded": "effect", "asked": "a function"}, (*told, *cures(run))
    )


def two_of_one_name(run: str, name: str, first: str, second: str) -> UsageError:
    return UsageError(
        f"run {run}: two effects are called {name}: {first} and {second}. Recorded calls are known by name and number, so "
        f'that one could be given what the other did. Give one of them a name of its own: @sf.effect(name="…").'
    )


def still_in_use(run: str, name: str, old: str) -> UsageError:
    return UsageError(
        f"run {run}: {name} says was={old!r}, but the code still asks for {old} by itself, so that nobody can tell whose "
        f"the recorded calls are. Take was={old!r} away, or rename what is still called {old}. Nothing was executed."
        if "#" not in old
        else f"run {run}: somebody said that {name} is the recorded {old} ({command('match')}), but the code still asks for "
        f"{old} by itself. Say what is true: {command('match', run, name, new=True)}. Nothing was executed."
    )


def kept_notes(run: str, kept: Sequence[tuple[Past, bytes, bytes, str]]) -> list[str]:
    """One line for all steps of one name with the same difference."""
    groups: dict[tuple[str, str, str], list[str]] = {}
    for past, recorded, asked, why in kept:
        difference = "; ".join(change.line() for change in changes(recorded, asked)[:2])
        groups.setdefault((split(past.address)[1], why, difference), []).append(past.address)
    return [_kept_note(run, addresses, why, difference) for (_, why, difference), addresses in groups.items()]


def _kept_note(run: str, addresses: list[str], why: str, difference: str) -> str:
    they, their, after = ("they", "their", "after them") if len(addresses) > 1 else ("it", "its", "after it")
    return (
        f"run {run}: {_span(addresses)}: what {they} gave is kept ({why.replace('after it', after)}), though {their} "
        f"arguments have changed: {difference}"
    )


def _span(addresses: list[str]) -> str:
    return addresses[0] if len(addresses) == 1 else f"{addresses[0]} … {addresses[-1]}"


def _an(kind: str) -> str:
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"


def no_longer_asked(
    run: str, pasts: Sequence[Past], in_use: Container[str] = frozenset(), unknown: frozenset[str] = frozenset()
) -> Stop:
    """Recorded effects which the code, now at its end, did not ask for. `in_use`: effects that it asks for; `unknown`:
    those that no loaded code has.
    """
    names = names_of(pasts)
    message = (
        f"run {run}: the code came to its end without asking for {names}, "
        f"but {'these effects were' if len(pasts) > 1 else 'this effect was'} executed before."
    ) + perhaps_plain(name for past in pasts if (name := split(past.address)[1].removesuffix(".undo")) in unknown)
    called = dict.fromkeys(split(past.address)[1].removesuffix(".undo") for past in pasts if past.kind == "effect")
    gone = ", ".join(f'"{name}"' for name in called if name not in in_use)
    told: Cures = (Edit("gone for good?", f"sf.removed({gone})", "in the module"),) if gone else ()
    facts = {"recorded": names, "asked": "nothing", "unasked": "\n".join(past.address for past in pasts)}
    told = (*_settle(run, pasts), *taken_out(run, pasts), *told, *cures(run))
    return Stop("CodeChanged", message, pasts[0].address, facts, told)


def _settle(run: str, pasts: Sequence[Past]) -> Cures:
    """First a person has to settle whether each of them happened."""
    doubtful = next((past.address for past in pasts if past.state in DOUBTFUL), "")
    return settling(run, doubtful, f"{doubtful} happened?", "it did not?") if doubtful else ()


def taken_out(run: str, pasts: Sequence[Past]) -> Cures:
    """What a person may declare about recorded effects that the code leaves out. Doubt is settled first."""
    known = [past.address for past in pasts if past.state in (PastState.DONE, PastState.FAILED)]
    return tuple(command("match", run, address, keep=True, when=_TAKEN_OUT) for address in known[:_MOST_TAKEN_OUT])


def perhaps_plain(names: Iterable[str]) -> str:
    """Effects that no loaded code has may be plain functions now: then a replay calls them, and this text says so."""
    listed = " or ".join(dict.fromkeys(names))
    return f" If {listed} has lost its decorator, the replay has called it as a plain function: look." if listed else ""


def not_asked_yet(run: str, pasts: Sequence[Past], at: str) -> Stop:
    """Recorded effects that the code has not asked for when the replay ends. It may ask for them later on."""
    names = names_of(pasts)
    were, have, them = ("were", "have", "them") if len(pasts) > 1 else ("was", "has", "it")
    message = (
        f"run {run}: {names} {were} executed before and {have} not been asked for when {at}. "
        f"If the code no longer asks for {them}, the run stops before its next new effect, or else at its end."
    )
    later = Advice("comes later?", f"then all is well: calls were put in front of {them}")
    return Stop("CodeChanged", message, pasts[0].address, {"recorded": names, "asked": at}, (later, *cures(run)))


def not_known_yet(run: str, addresses: list[str], step: str) -> Stop:
    """Recorded effects that the code asks for with the result of a step that has not run."""
    names = _first_few(addresses)
    message = (
        f"run {run}: {names} {'are' if len(addresses) > 1 else 'is'} on record, and asked for with what {step} gives, which "
        "would run first. If that is not what was passed before, the run stops there, before anything else is executed."
    )
    same = Advice("gives the same?", "then all is well")
    return Stop("CodeChanged", message, addresses[0], {"recorded": names, "asked": step}, (same, *cures(run)))


def names_of(pasts: Sequence[Past]) -> str:
    return _first_few([past.address for past in pasts])


def _first_few(names: list[str]) -> str:
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more


def changed(run: str, address: str, recorded: str, asked: str) -> Stop:
    message = (
        f"run {run}, {address}: the code no longer matches the journal.\n  recorded: {recorded}\n  asked now: {asked}"
    )
    return Stop("CodeChanged", message, address, {"recorded": recorded, "asked": asked}, cures(run))


def cures(run: str) -> Cures:
    return (
        run_again("old code:", "put it back", run),
        Advice("new code:", 'keep the old way for runs in flight: if sf.patched("what-changed"): … else: …'),
    )


def run_again(when: str, first: str, run: str) -> Cure:
    return Advice(when, f"{first} and run {shlex.quote(run)} again")


def _shown(raw: bytes) -> str:
    text = raw.decode("utf-8", "replace")
    return text if len(text) <= 400 else text[:400] + f" … ({len(text)} characters)"
