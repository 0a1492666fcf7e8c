"""A decorator's declaration about a function: how to name, bind, retry and time it."""

from __future__ import annotations

import copy
import inspect
import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any

import msgspec
from msgspec import Raw

from surefoot.core import values
from surefoot.core.address import escape, split
from surefoot.core.choice import OnChange, OnCrash, OnEffectChange, one_of, yes_or_no
from surefoot.core.entry import NOTHING
from surefoot.core.history import Past
from surefoot.core.retry import Backoff, RetryPolicy
from surefoot.core.timer import Duration, seconds
from surefoot.engine.declare import current, rehearsal
from surefoot.engine.declare.context import Args, Arguments, Kwargs
from surefoot.engine.declare.defaults import FIXED, Defaults, Unplaced, completed, hides
from surefoot.engine.declare.identity import origin_of
from surefoot.engine.process.observer import observers
from surefoot.errors import UsageError
from surefoot.world.observation import distinct

_effects: dict[str, dict[str, CallSpec]] = {}
"""The effects that this process knows: by name, and by the place of definition."""
_noted: set[str] = set()
"""Names of steps, including old names, with parameters that are not compared."""
_CALL = re.compile(r"(?:.*/)?([^/]+)#\d+", re.DOTALL)


def _readable(raw: Raw | bytes) -> tuple[dict[str, Any], dict[str, Raw]]:
    """Recorded arguments by name; and those with a secret, which has to be passed, in their stored form."""
    if not hides(raw):
        return values.again(raw), {}
    forms = msgspec.json.decode(bytes(raw), type=dict[str, Raw])
    hidden = {name: form for name, form in forms.items() if hides(form)}
    return {name: values.again(form) for name, form in forms.items() if name not in hidden}, hidden


def _takes(signature: inspect.Signature, args: Args, kwargs: Kwargs) -> bool:
    try:
        signature.bind(*args, **kwargs)
    except TypeError:
        return False
    return True


class Binder:
    """Arguments as passed, by parameter name. Defaults are left out: a new default is no change."""

    def __init__(self, fn: Callable[..., Any], ignore: tuple[str, ...] = ()) -> None:
        self._signature = inspect.signature(fn)
        parameters = self._signature.parameters.values()

        def named(*kinds: object) -> tuple[str, ...]:
            return tuple(p.name for p in parameters if p.kind in kinds)

        kinds = inspect.Parameter
        self._names = named(kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)
        self._rest = "".join(named(kinds.VAR_POSITIONAL))
        self._named_rest = "".join(named(kinds.VAR_KEYWORD))
        self._keywords = frozenset(named(kinds.KEYWORD_ONLY, kinds.POSITIONAL_OR_KEYWORD))
        self._required = frozenset(
            p.name for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
        )
        self._by_keyword = len(self._keywords) == len(parameters)
        self._ignore = self.ignored = ignore
        self.secrets = tuple(p.default for p in parameters if isinstance(p.default, values.Secret))
        self.may_hide = bool(ignore or self.secrets)
        """Whether a call may be given a secret that is not in its recorded arguments."""
        self._by_position = frozenset(named(kinds.POSITIONAL_ONLY))
        optional = {p.name: p.default for p in parameters if p.default is not p.empty}
        self.defaults = Defaults(self._signature.parameters, optional, ignore)
        positional = self._required <= set(self._names) and not ignore
        self._plain = len(self._names) if positional else -1
        """With exactly this many positional arguments, and no others, there is nothing to check."""
        self._called = fn.__name__
        self.require(ignore, "ignore")

    def require(self, names: tuple[str, ...], option: str) -> None:
        """Found when decorated: an option that names no parameter of the function."""
        unknown = [name for name in names if name not in self._signature.parameters]
        if unknown:
            raise UsageError(f"{self._called}: {option}={names!r} names no parameter of it: {', '.join(unknown)}")

    def bind(self, args: Args, kwargs: Kwargs) -> dict[str, Any]:
        """The usual case by zipping names; everything else, and every TypeError, by Python's own rules."""
        if not kwargs and len(args) == self._plain:
            return dict(zip(self._names, args, strict=False))
        bound = dict(zip(self._names, args, strict=False))
        ordinary = len(args) <= len(self._names)
        if kwargs:
            ordinary = ordinary and self._keywords.issuperset(kwargs) and bound.keys().isdisjoint(kwargs)
            bound.update(kwargs)
        if not ordinary or not self._required <= bound.keys():
            bound = dict(self._bound(args, kwargs).arguments)
        for name in self._ignore:
            bound.pop(name, None)
        return bound

    def _bound(self, args: Args, kwargs: Kwargs, *, partial: bool = False) -> inspect.BoundArguments:
        """By Python's rules: `**` takes a keyword with the name of a positional-only parameter. Older `inspect` refuses it."""
        bind = self._signature.bind_partial if partial else self._signature.bind
        if not self._named_rest or self._by_position.isdisjoint(kwargs):
            return bind(*args, **kwargs)
        found = bind(*args, **{name: value for name, value in kwargs.items() if name not in self._by_position})
        rest = {name: value for name, value in kwargs.items() if name not in self._keywords}
        found.arguments[self._named_rest] = rest
        return found

    def left_out(self, args: Args, kwargs: Kwargs) -> Raw:
        """The defaults in force for the parameters that are left out, in recorded form."""
        return self.defaults.left_out(self._names, self._keywords, args, kwargs)

    def with_defaults(self, args: Args, kwargs: Kwargs, recorded: Raw | bytes) -> Arguments:
        """The same call, with the recorded defaults where the code has other ones now."""
        others = self.defaults.others(recorded, {*self._names[: len(args)], *self._keywords.intersection(kwargs)})
        if not others:
            return args, kwargs
        if self._by_position.isdisjoint(others):
            return args, {**kwargs, **others}
        bound = self._bound(args, kwargs, partial=True)
        bound.apply_defaults()
        bound.arguments.update(others)
        return bound.args, bound.kwargs

    def repeating(self, args: Args, kwargs: Kwargs, recorded: dict[str, Any], hidden: dict[str, Raw]) -> Arguments:
        """The recorded call. Only unrecorded values, secrets and parameters in `ignore=`, are as passed now."""
        passed = self._bound(args, kwargs, partial=True).arguments
        if hidden:
            recorded = {**recorded, **self._completed(passed, recorded, hidden)}
        if not self.names.issuperset(recorded):
            return self.with_recorded(args, kwargs, recorded)  # A renamed parameter: its value is the same.
        needed = {name: passed[name] for name in (*self._ignore, *self._required) if name in passed}
        return self.call_with({**needed, **recorded})

    def _completed(self, passed: dict[str, Any], recorded: dict[str, Any], hidden: dict[str, Raw]) -> dict[str, Any]:
        """The arguments with a secret, by today's names. A renamed one has the same form as before."""
        found: dict[str, Any] = {}
        for name, form in hidden.items():
            others = [other for other in passed if other not in recorded and other not in hidden and other not in found]
            same = (other for other in others if name not in self.names and values.encode(passed[other]) == bytes(form))
            now = name if name in passed else next(same, None)
            if now is None:
                raise Unplaced([name])
            found[now] = passed[now] if now in self._ignore else completed(name, form, passed[now])
        return found

    def with_recorded(self, args: Args, kwargs: Kwargs, recorded: dict[str, Any]) -> Arguments:
        """The same call with its recorded values; parameters in `ignore=` are not recorded, and passed on."""
        fixed = [recorded.get(name, value) for name, value in zip(self._names, args, strict=False)]
        rest = args[len(self._names) :]
        if rest:
            fixed += recorded.get(self._rest, rest)
        more = recorded.get(self._named_rest, kwargs)
        named = {
            name: recorded.get(name, value) if name in self._keywords else more[name] for name, value in kwargs.items()
        }
        return tuple(fixed), named

    def ordered(self, args: Args, kwargs: Kwargs) -> Arguments:
        """The same arguments, by position where possible, defaults included.

        For a companion (check, undo, touches=) that takes the same arguments, perhaps under other names.
        """
        bound = self._bound(args, kwargs)
        bound.apply_defaults()
        return bound.args, bound.kwargs

    def some_of(self, fn: Any, args: Args, kwargs: Kwargs) -> Arguments:
        """The arguments that a function in `touches=` gets of these, which are `ordered`: it need not take all of them.

        Those that it names, if all its names are the effect's own; else as many as it takes, by position.
        """
        code = fn.__code__
        taken = code.co_varnames[: code.co_argcount]
        given = {**kwargs, **dict(zip(self._names, args, strict=False))}
        if not code.co_flags & inspect.CO_VARARGS:
            by_name = given.keys() >= set(taken)
            args = tuple(given[name] for name in taken) if by_name else args[: len(taken)]
            kwargs = {name: value for name, value in kwargs.items() if not (by_name and name in taken)}
        if not code.co_flags & inspect.CO_VARKEYWORDS:
            names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
            kwargs = {name: value for name, value in kwargs.items() if name in names}
        return args, kwargs

    def require_some_of(self, fn: Any, what: str) -> None:
        """Found when decorated: a function in `touches=` that would get other arguments than it names, or too few."""
        theirs = inspect.signature(fn)
        taken = fn.__code__.co_varnames[: fn.__code__.co_argcount]
        by_name = self.names.issuperset(taken)
        moved = not by_name and any(n != own and n in self.names for n, own in zip(taken, self._names, strict=False))
        if moved or not (self._rest or self._named_rest or _takes(theirs, *self.some_of(fn, *self.example()))):
            raise UsageError(
                f"{what}: a function in touches= takes parameters of the effect, {self._signature}, by their names, or the "
                f"first of them; this one takes {theirs}"
            )

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self._signature.parameters)

    def example(self) -> Arguments:
        """Arguments as a companion gets them, to check whether it takes them."""
        named = {p.name: None for p in self._signature.parameters.values() if p.kind is p.KEYWORD_ONLY}
        return (None,) * len(self._names), named

    def call_with(self, bound: dict[str, Any]) -> Arguments:
        """Positional and keyword arguments that bind to the same values again."""
        unknown = [name for name in bound if name not in self._signature.parameters]
        if unknown or not self._required <= bound.keys():
            raise TypeError(f"recorded as {', '.join(bound) or 'none'}, but the code now takes {self._signature}")
        if self._by_keyword:
            return (), bound
        arguments = inspect.BoundArguments(self._signature, dict(bound))
        if self._by_position:
            arguments.apply_defaults()  # A parameter that was left out may come before one that was not.
        return arguments.args, arguments.kwargs


class CallSpec:
    """A step or an effect."""

    def __init__(
        self,
        fn: Callable[..., Any],
        kind: str,
        *,
        name: str | None = None,
        retries: int | None = None,
        backoff: Backoff | None = None,
        timeout: Duration | None = None,
        retry_on: type[BaseException] | tuple[type[BaseException], ...] | None = None,
        ignore: str | tuple[str, ...] = (),
        on_crash: str = "ask",
        touches: Sequence[Any] = (),
        key_ttl: Duration | None = None,
        approve: bool = False,
        not_done: type[BaseException] | tuple[type[BaseException], ...] | None = None,
        in_flight: Duration | None = None,
        noted: str | tuple[str, ...] = (),
        on_change: OnChange | None = None,
        was: str | tuple[str, ...] | None = (),
    ) -> None:
        self.fn = require_named(fn, f"@sf.{kind}")
        self.kind = kind
        self.name = escape(name or fn.__name__)
        self.on_crash = on_crash if kind == "effect" else ""
        self.timeout = None if timeout is None else seconds(timeout)
        self.retry = RetryPolicy(_checked_retries(retries), _checked_backoff(backoff), _types(retry_on, "retry_on="))
        self.touches = tuple(touches)
        self.key_ttl = None if key_ttl is None else seconds(key_ttl)
        self.approve = approve
        self.not_done: tuple[type[BaseException], ...] | None = _types(not_done, "not_done=")
        """Exceptions that prove that nothing was done; None: not declared."""
        self.in_flight = None if in_flight is None else seconds(in_flight)
        """For how many seconds a call that was cut off may still be on its way; None: not declared."""
        self.guarded: Callable[..., Any] = fn
        """The function whose guard clauses prove that nothing was done: of a tool, the user's own below our wrapper."""
        self.marks: Callable[[], str] | None = None
        """Of a transaction: the database in which its marker commits with it. Its key prevents a second execution."""
        self.noted = (noted,) if isinstance(noted, str) else tuple(noted)
        """Parameters that are recorded and shown, but not compared."""
        words = OnEffectChange if kind == "effect" else OnChange
        self.on_change = None if on_change is None else one_of(on_change, words, f"{kind} {self.name}: on_change")
        """What happens to a recorded call that is asked for with other arguments; None: as configured."""
        self.is_new = was is None
        """Declared as new: no effect on record is this one."""
        self.was = tuple(map(escape, checked_was(was, f"{kind} {self.name}")))
        """Names under which calls on record are its own."""
        self.check: Callable[..., Any] | None = None
        self.undo: CallSpec | None = None
        self.undoes: CallSpec | None = None
        self.leaves: Callable[..., dict[str, str]] | None = None
        """How it leaves what it touches, part by part: from the parts before, the parts found and its arguments."""
        self._result_by_name = False
        self.binder = Binder(fn, (ignore,) if isinstance(ignore, str) else tuple(ignore))
        self.binder.require(self.noted, "noted")
        self.uncompared = frozenset((*self.noted, *self.binder.ignored))
        """Parameters that are not compared, or not even recorded."""
        if self.name in self.was:
            raise UsageError(f"{kind} {self.name}: was={was!r} names itself")
        self._warned = False
        self.origin = f"{fn.__module__}:{fn.__qualname__}"
        """The place of definition."""
        self.made_by_hand: bool | None = None
        """Whether that place has the plain function, though this is an effect (`origins.py`); None: not checked."""
        self.is_ours = str(fn.__module__).partition(".")[0] == __name__.partition(".")[0]
        """Whether it is a part of surefoot."""
        values.register_annotations(fn)
        if kind == "effect":
            self._check_effect()
            self._refuse_circle()
            _effects.setdefault(self.name, {})[self.origin] = self
        elif self.noted:
            _noted.update((self.name, *self.was))

    @cached_property
    def known_as(self) -> str:
        """`origin` in recorded form: a script counts as the module that it would be; empty: not known."""
        return origin_of(self.fn)

    def _check_effect(self) -> None:
        one_of(self.on_crash, OnCrash, f"effect {self.name}: on_crash")
        every = 'For every effect of a workflow: @sf.workflow(approve="every").'
        yes_or_no(self.approve, f"effect {self.name}: approve", hint=every)
        if self.retry.retry_on is not None:
            raise UsageError(
                f"effect {self.name}: retry_on= is for steps. To try an effect again is safe only if nothing was done: "
                "name the exceptions that prove it in not_done=(…), and say how often in retries=."
            )
        if self.retry.retries and self.on_crash not in ("retry", "check") and not self.not_done:
            raise UsageError(
                f"effect {self.name}: retries={self.retry.retries} could repeat it. Say why that is safe: "
                'on_crash="retry" (the other side knows the key), on_crash="check" with a check, or not_done=(…) with '
                "exceptions that prove that nothing was done."
            )
        for witness in self.touches:
            if inspect.isfunction(witness):  # It returns a witness when the effect is called.
                self.binder.require_some_of(witness, f"effect {self.name}")
            else:
                distinct([witness])

    def _refuse_circle(self) -> None:
        """Refuse effects whose names are each other's old names: recorded calls could belong to either."""
        place = _place(self.fn)
        path, ahead = [self.name], list(self.was)
        while ahead:
            name = ahead.pop()
            if name == self.name:
                told = " -> ".join([*path, name])
                raise UsageError(
                    f"effect {name}: was= leads back to it ({told}). Say it of one of them, or rename anew."
                )
            found = [spec for spec in _effects.get(name, {}).values() if _place(spec.fn) == place]
            if name not in path and found:
                path.append(name)
                ahead += [old for spec in found for old in spec.was]

    def set_check(self, fn: Callable[..., Any]) -> None:
        """The function that checks whether this effect happened. It takes the effect's arguments."""
        if self.check is not None:
            raise UsageError(f"effect {self.name} has a check already")
        self._require_companion(fn, "check", *self.binder.example())
        self.check = fn
        if self.on_crash in ("ask", "check"):
            self.on_crash = "check"

    def set_undo(self, fn: Callable[..., Any], on_crash: str | None) -> CallSpec:
        """The compensation: an effect of its own, which takes the arguments and the result."""
        if self.undo is not None:
            raise UsageError(f"effect {self.name} has an undo already")
        if callable(fn):
            self._result_by_name = "result" in inspect.signature(fn).parameters.keys() - self.binder.names
        self._require_companion(fn, "undo", *self._with_result(*self.binder.example(), None))
        inherited = self.on_crash if self.on_crash != "check" else "ask"
        self.undo = CallSpec(
            fn, "effect", name=f"{self.name}.undo", timeout=self.timeout,
            ignore=tuple(name for name in self.binder.ignored if name in inspect.signature(fn).parameters),
            on_crash=on_crash or inherited, not_done=(), touches=self.touches, in_flight=self.in_flight,
        )  # fmt: skip
        self.undo.undoes = self
        self.undo.was = tuple(f"{old}.undo" for old in self.was)
        return self.undo

    def own(
        self, args: Args, kwargs: Kwargs, raw: Raw | bytes, defaults: Raw | bytes = NOTHING, *,
        recorded: bool = False,
    ) -> Arguments:  # fmt: skip
        """The arguments that user code is called with: a copy of the recorded ones, with the recorded defaults.
        `recorded`: the arguments of an earlier call on record; those passed now may differ.

        The function may change its arguments: its check, its undo and another attempt still get the original ones, and
        its caller sees no change that it would not see on replay.
        """
        fixed = FIXED.issuperset(map(type, args)) and FIXED.issuperset(map(type, kwargs.values()))
        if not fixed and hides(raw):
            args, kwargs = copy.deepcopy(args), copy.deepcopy(kwargs)
        if recorded:
            args, kwargs = self.binder.repeating(args, kwargs, *_readable(raw))
        elif not (fixed or hides(raw)):
            args, kwargs = self.binder.with_recorded(args, kwargs, values.again(raw))
        return (args, kwargs) if defaults is NOTHING else self.binder.with_defaults(args, kwargs, defaults)

    def undoing(self, args: Args, kwargs: Kwargs, result: Any) -> Arguments:
        """The arguments of the undo of a call with these arguments."""
        return self._with_result(*self.binder.ordered(args, kwargs), result)

    def _with_result(self, args: Args, kwargs: Kwargs, result: Any) -> Arguments:
        return (args, {**kwargs, "result": result}) if self._result_by_name else ((*args, result), kwargs)

    def touched_by(self, args: Args, kwargs: Kwargs) -> list[Any]:
        """The witnesses of what a call with these arguments touches. An undo touches what its effect does."""
        if self.undoes is not None:
            effect = self.undoes
            kwargs = {name: value for name, value in kwargs.items() if name != "result" or not effect._result_by_name}
            return effect.touched_by(args if effect._result_by_name else args[:-1], kwargs)
        args, kwargs = self.binder.ordered(args, kwargs)
        return [self._asked(one, args, kwargs) if inspect.isfunction(one) else one for one in self.touches]

    def _asked(self, touched: Any, args: Args, kwargs: Kwargs) -> Any:
        args, kwargs = self.binder.some_of(touched, args, kwargs)
        return touched(*args, **kwargs)

    def _require_companion(self, fn: Callable[..., Any], what: str, args: Args, kwargs: Kwargs) -> None:
        """Whether it can be called with these arguments. Found when decorated, not at night when it is needed."""
        require_function(fn, f"effect {self.name}: its {what}")
        if inspect.iscoroutinefunction(fn) and not inspect.iscoroutinefunction(self.fn):
            raise UsageError(f"effect {self.name} is blocking, so its {what} must be too")
        mine, theirs = inspect.signature(self.fn), inspect.signature(fn)
        if not _takes(theirs, args, kwargs):
            extra = " and the result" if what == "undo" else ""
            raise UsageError(
                f"effect {self.name}: its {what} takes the effect's own arguments{extra}, {mine}; this one takes {theirs}"
            )

    def stray(self, args: Args, kwargs: Kwargs) -> Any:
        """A call outside every run: just the function, unless that would hide an effect from a run."""
        if current.driven.count:
            if self.kind == "effect":
                error = UsageError(
                    f"effect {self.name} was called from a thread or task that belongs to no run while a run is being "
                    "driven in this process, so it would not be recorded. Use sf.map or sf.gather instead of a pool, "
                    "asyncio.to_thread in async code, or `with sf.outside():` if it really is not part of a run."
                )
                observers.call_refused("", self.name, self.kind, error)
                raise error
            if not self._warned:
                self._warned = True
                warnings.warn(
                    f"step {self.name} was called from a thread or task that belongs to no run while a run is being "
                    "driven in this process; it is not recorded. Use sf.map or sf.gather, or sf.outside().",
                    RuntimeWarning,
                    stacklevel=4,
                )
        return self.fn(*args, **kwargs)

    def nested(self, place: Any, args: Args, kwargs: Kwargs) -> Any:
        """A call inside another call, whose record covers it; an effect must have a record of its own."""
        if place is not current.OUTSIDE and self.kind == "effect":
            raise place.misused(
                f"effect {self.name} was called inside {place.inside.kind} {place.inside.address}, "
                "where it would have no intent of its own on record. Call it from the workflow instead."
            )
        if self.kind == "effect":
            rehearsal.would_do("effect outside of the run", self.name)
        return self.fn(*args, **kwargs)


def require_function(fn: Callable[..., Any], what: str) -> Callable[..., Any]:
    """A function that runs when it is called. Found when decorated, not when it is needed."""
    if not callable(fn):
        raise UsageError(f"{what}: {fn!r:.100} is not a function")
    if inspect.isgeneratorfunction(fn) or inspect.isasyncgenfunction(fn):
        raise UsageError(
            f"{what}: {getattr(fn, '__name__', repr(fn))} is a generator function. To call one runs nothing, so that "
            "there would be nothing to record. Write a function that returns what it makes, for example as a list."
        )
    return fn


def require_named(fn: Callable[..., Any], what: str) -> Callable[..., Any]:
    """The same, with a name to be recorded by: no `functools.partial`."""
    require_function(fn, what)
    if not hasattr(fn, "__qualname__"):
        raise UsageError(
            f"{what}: {fn!r:.100} has no name to be recorded by. Write a function that calls it: def send(...): ..."
        )
    return fn


def is_decorated(fn: Any) -> bool:
    """Whether calls of this function are recorded: a step, an effect or a workflow."""
    return hasattr(fn, "spec") or is_workflow(fn)


def is_workflow(fn: Any) -> bool:
    return hasattr(fn, "definition")


def is_effect(name: str) -> bool:
    """Whether this process has an effect of that name."""
    return name in _effects


def unknown(pasts: Iterable[Past]) -> frozenset[str]:
    """The names of recorded effects that this process does not have."""
    return frozenset(name for past in pasts if past.kind == "effect" and not is_effect(name := split(past.address)[1]))


def is_old_name(name: str) -> bool:
    """Whether an effect of this process had this name before (`was=`)."""
    return any(name in spec.was for spec in all_effects())


def is_noted(name: str) -> bool:
    """Whether a step of that name has parameters that are not compared."""
    return name in _noted


def decorated_as(name: str, fn: Callable[..., Any]) -> bool:
    """Whether another function is an effect of that name."""
    return any(origin != _origin(fn) for origin in _effects.get(name, {}))


def makes_effect(fn: Callable[..., Any]) -> bool:
    """Whether an effect was made of this function, by whatever name: `charge = sf.effect(_charge)`."""
    return any(_origin(fn) in known for known in _effects.values())


def _origin(fn: Any) -> str:
    return f"{getattr(fn, '__module__', '')}:{getattr(fn, '__qualname__', '')}"


def known_effect(address: str) -> CallSpec | None:
    """The effect of that call, by its name; None if this process knows none of that name, or several."""
    call = _CALL.fullmatch(address)
    known = _effects.get(call[1], {}) if call is not None else {}
    return next(iter(known.values())) if len(known) == 1 else None


def effect_from(name: str, origin: str) -> CallSpec | None:
    """The effect of that name that is defined at that place."""
    return _effects.get(name, {}).get(origin)


def all_effects() -> list[CallSpec]:
    """The effects that this process knows."""
    return [spec for found in list(_effects.values()) for spec in list(found.values())]


def is_undoable(address: str) -> bool:
    """Whether an effect of that name in this process's code has an undo."""
    name = f"/{address.rpartition('#')[0]}"
    return any(spec.undo is not None and name.endswith(f"/{spec.name}") for spec in all_effects())


def _checked_retries(retries: int | None) -> int | None:
    if retries is not None and (type(retries) is not int or retries < 0):
        raise UsageError(f"retries={retries!r}: must be a whole number, zero or more")
    return retries


def checked_was(was: Any, what: str) -> tuple[str, ...]:
    """The old names that were given; none for `None`, which declares it new."""
    names = (was,) if isinstance(was, str) else () if was is None else was
    if not isinstance(names, tuple | list) or not all(isinstance(name, str) and name for name in names):
        raise UsageError(f'{what}: was={was!r:.100}: what it was called before, as was="old" or was=("older", "old")')
    return tuple(names)


def _place(fn: Callable[..., Any]) -> tuple[str, str]:
    """The module, and the function or class in it, where a function is defined."""
    return fn.__module__, fn.__qualname__.rpartition(".")[0]


def _checked_backoff(backoff: object) -> Backoff:
    if backoff is None:
        return Backoff()
    if not isinstance(backoff, Backoff):
        raise UsageError(f'backoff={backoff!r:.100}: must be an sf.Backoff, for example sf.Backoff(first="3s")')
    return backoff


def _types(given: Any, option: str) -> Any:
    if given is None:
        return None
    types = given if isinstance(given, tuple) else (given,)
    for cls in types:
        if not (isinstance(cls, type) and issubclass(cls, BaseException)):
            raise UsageError(f"{option} names exception classes, and {cls!r:.100} is none")
    return types
