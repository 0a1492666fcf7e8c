"""What a person is told when code and journal no longer agree: what differs, that nothing was executed, what helps."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from surefoot.core.differing import changes, hints
from surefoot.core.entry import Stop
from surefoot.core.history import Past, cures
from surefoot.core.matching import CHILD, Asked, is_child, split
from surefoot.errors import UsageError

MOST_NAMES = 5


def names_of(pasts: Sequence[Past]) -> str:
    shown = ", ".join(past.address for past in pasts[:MOST_NAMES])
    return shown + (f" and {len(pasts) - MOST_NAMES} more" if len(pasts) > MOST_NAMES else "")


def new_effect(
    run: str, asked: Asked, blocked: list[Past], *, alike: int, in_use: frozenset[str], nothing: bool
) -> Stop:
    """A new effect, while some on record were not asked for: it may be one of them.

    `alike`: so many of them, the first, were executed with the same arguments. `in_use`: effects that the code has.
    """
    names = names_of(blocked)
    many = len(blocked) > 1
    were = f"{'were' if many else 'was'} executed{' with the same arguments' if alike == len(blocked) else ''}"
    doubtful = [past for past in blocked if past.state.value == "in doubt"]
    if doubtful:
        were += f"; {names_of(doubtful)} {'are' if len(doubtful) > 1 else 'is'} in doubt"
    what = "child run" if asked.name == CHILD else "effect"
    message = (
        f"run {run}: the code now asks for the {what} {asked.address}, which is not on record, and has not asked for "
        f"{names}, which {were}. Renamed, moved, or new? {'Nothing' if nothing else asked.address + ': nothing'} "
        "was executed."
    )
    unasked = "\n".join(past.address for past in blocked)
    facts = {"asked": asked.address, "recorded": names, "unasked": unasked, "digest": asked.digest}
    return Stop("CodeChanged", message, blocked[0].address, facts, _cures_of_new(run, asked, blocked, alike, in_use))


def _cures_of_new(
    run: str, asked: Asked, blocked: list[Past], alike: int, in_use: frozenset[str]
) -> tuple[tuple[str, str], ...]:
    quoted, address = shlex.quote(run), shlex.quote(asked.address)
    path, old, _ = split(blocked[0].address)
    told: list[tuple[str, str]] = []
    is_run, was_run = asked.name == CHILD, old == CHILD
    if old != asked.name and not (is_run or was_run):
        told.append(("the same, renamed?", f'@sf.effect(was="{old}") on {asked.name}'))
    if path != asked.path:
        told.append(("the same, moved?", f'was= on its scope: sf.scope("…", was="{_label(path)}")'))
    if is_run is was_run:
        this_one = f"surefoot match {quoted} {address} --is {shlex.quote(blocked[0].address)}"
        told.append(("the same, this run only?", this_one))
    declared = "" if is_run else f"@sf.effect(was=None) on {asked.name}, or "
    told.append(("new?", declared + 'keep the old way for this run: if sf.patched("…"): … else: …'))
    told.append(("new, this run only?", f"surefoot match {quoted} {address} --new"))
    gone = next((name for past in blocked[alike:] if (name := split(past.address)[1]) not in in_use), "")
    if gone and gone != CHILD:
        told.append(("gone for good?", f'sf.removed("{gone}") in the module'))
    told.append(("neither?", f"put the old code back and run {quoted} again"))
    return tuple(told)


def _label(path: str) -> str:
    last = path.rstrip("/").rpartition("/")[2] if not path.endswith("]/") else path[path.rfind("[") :].rstrip("/")
    return last.strip("[]")


def other_arguments(
    run: str, past: Past, address: str, name: str, recorded: bytes, asked: bytes, *, kind: str = "", digest: str = "",
    nothing: bool = True, twin: str = "",
) -> Stop:  # fmt: skip
    """A recorded call that is asked for in another way than it was made.

    `twin`: another recorded call of that name, which nobody has asked for, was made with these arguments.
    """
    executed = _nothing(address, nothing=nothing)
    where = past.address if past.address == address else f"{address} (on record as {past.address})"
    if kind and past.kind != kind:
        message = f"run {run}, {where}: recorded as {_an(past.kind)}, and asked for as {_an(kind)} now. {executed}"
        facts = {"recorded": past.kind, "asked": kind, "call": address}
        still = (f"still {_an(past.kind)}?", f"put @sf.{past.kind} back on {name}")
        is_decorated = past.kind in ("step", "effect") and not is_child(past)
        return Stop("CodeChanged", message, past.address, facts, (still, *cures(run)) if is_decorated else cures(run))
    done = "executed" if past.kind == "effect" else "recorded"
    lines = [f"    {change.line()}" for change in changes(recorded, asked)]
    lines += [f"  {hint}" for hint in hints(recorded, asked)]
    message = "\n".join([f"run {run}, {where}: asked for with other arguments than it was {done} with:", *lines])
    message += f"\n  {executed}"
    facts = {"recorded": _short(recorded), "asked": _short(asked), "call": address, "digest": digest}
    names = tuple(dict.fromkeys(re.split(r"[.\[]", change.path)[0] for change in changes(recorded, asked)))
    told = _cures_of_other(run, past, address, name, tuple(filter(None, names)))
    if twin:
        same = f"surefoot match {shlex.quote(run)} {shlex.quote(address)} --is {shlex.quote(twin)}"
        told = ((f"it is {twin}?", same), *told)
    return Stop("CodeChanged", message, past.address, facts, told)


def held_by_another(
    run: str, past: Past, by: Asked, asked: Asked, recorded: bytes, *, is_said: bool, nothing: bool
) -> Stop:
    """A call asks for what another one was given, which asks with other arguments. `is_said`: by a person."""
    quoted, first, this = shlex.quote(run), shlex.quote(by.address), shlex.quote(asked.address)
    lines = [f"    {change.line()}" for change in changes(recorded, by.args)]
    what = f"was given to {by.address}" if by.address != past.address else "is asked for"
    message = (
        f"run {run}, {asked.address}: asked for with the arguments that {past.address} was executed with, which {what} "
        "with others:\n"
    )
    message += "\n".join(lines)
    message += f"\n  Was a call put in front, or taken out? {_nothing(asked.address, nothing=nothing)}"
    if is_said:  # That one is answered for: the question is this one.
        call, digest = asked.address, asked.digest
        told: tuple[tuple[str, str], ...] = (
            (f"{call} is new, and is made once more?", f"surefoot match {quoted} {this} --new"),
        )
    else:
        call, digest = by.address, by.digest
        told = (
            (f"{call} is new?", f"surefoot match {quoted} {first} --new"),
            (f"{call} is what was done?", f"surefoot match {quoted} {first} --keep"),
        )
    facts = {"recorded": past.address, "asked": _short(asked.args), "call": call, "digest": digest}
    return Stop("CodeChanged", message, past.address, facts, (*told, *cures(run)))


def _nothing(address: str, *, nothing: bool) -> str:
    """`nothing`: this drive has executed none so far, else only not this one."""
    return "Nothing was executed." if nothing else f"{address}: nothing was executed."


def _cures_of_other(
    run: str, past: Past, address: str, name: str, parameters: tuple[str, ...]
) -> tuple[tuple[str, str], ...]:
    quoted, where = shlex.quote(run), shlex.quote(address)
    told: list[tuple[str, str]] = []
    if past.state.value in ("in doubt", "unstorable"):
        told.append(
            (
                "in doubt: say first",
                f"surefoot settle {quoted} {shlex.quote(past.address)} --happened 'JSON' | --not-happened",
            )
        )
    else:
        stands = "what was done stands?" if past.kind == "effect" else "what it gave stands?"
        told.append((stands, f"surefoot match {quoted} {where} --keep"))
    if past.kind != "effect":
        told.append(("run it again?", f"surefoot match {quoted} {where} --rerun"))
    if parameters:
        listed = "".join(f'"{parameter}", ' for parameter in parameters).rstrip(" ")
        listed = listed if len(parameters) == 1 else listed.rstrip(",")
        told.append(("never compare it?", f"@sf.{past.kind}(noted=({listed})) on {name}"))
    told.append(("another call, new?", f"surefoot match {quoted} {where} --new"))
    return (*told, *cures(run))


def too_many(run: str, count: int, limit: int, first: Past, recorded: bytes, asked: bytes) -> Stop:
    difference = "; ".join(change.line() for change in changes(recorded, asked))
    quoted = shlex.quote(run)
    message = (
        f"run {run}: {count} recorded steps are asked for with other arguments and would run again (more than "
        f"{limit}); the first is {first.address}: {difference}. Nothing was executed."
    )
    told = (
        ("run them again?", f"surefoot match {quoted} '*' --rerun"),
        ("what they gave stands?", f"surefoot match {quoted} '*' --keep"),
        ("for every run:", f'@sf.step(on_change="keep" or "rerun") on {split(first.address)[1]}, or noted=("…",)'),
        *cures(run),
    )
    return Stop("CodeChanged", message, first.address, {"recorded": _short(recorded), "asked": _short(asked)}, told)


def undecorated(run: str, name: str, module: str, pasts: list[Past]) -> Stop:
    message = (
        f"run {run}: {names_of(pasts)} {'were' if len(pasts) > 1 else 'was'} executed as an effect, and {name} in "
        f"{module} is a plain function now: to replay the code would execute it, unrecorded. Nothing was executed."
    )
    told = (
        ("by mistake?", f"put @sf.effect back on {name}"),
        ("gone for good?", f'rename it, and sf.removed("{name}")'),
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
        else f"run {run}: somebody said that {name} is the recorded {old} (surefoot match), but the code still asks for {old} "
        f"by itself. Say what is true: surefoot match {shlex.quote(run)} {shlex.quote(name)} --new. Nothing was executed."
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


def _short(raw: bytes) -> str:
    text = raw.decode("utf-8", "replace")
    return text if len(text) <= 400 else text[:400] + f" … ({len(text)} characters)"
