"""The differential oracle: whatever user code can see is the same the first time and on every replay.

`told` says everything that code can find out about a value or an exception: exact types, order, which parts are one
object, what an `except` would match, what led to it. A flow that looks through `Eyes` has all of it written down in the
ledger, which outlives the process, at the first delivery and again in every rehearsal, replay and resume. `differences`
holds the lives of a run against each other.

What was seen counts only once it is durable. A recorded value, a cancellation and how a time-out ended are on record no
later than the next thing that comes of them; whoever dies in between may see something else next time. So they are
held back until a call that began after them has been answered.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import enum
import hashlib
import itertools
import json
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Final

import surefoot as sf
from surefoot.engine.declare import current
from surefoot.engine.declare.signals import RunSignal
from tests.crash.stage import stage

MOST_TOLD: Final = 5
NO_OUTCOME: Final = (sf.Stopped, sf.UsageError, sf.StoreUnavailable, sf.Fenced)
"""Says that the run stands still, and not what a call came to. Whoever catches it makes no further call."""
_QUIET: Final = frozenset({"args", "__notes__"})
_passes = itertools.count()


# --- what can be seen of a value ---------------------------------------------------------------------------------------


def told(value: Any) -> str:
    return json.dumps(_Teller().tell(value))


def digest(value: Any) -> str:
    return hashlib.sha256(told(value).encode()).hexdigest()[:16]


class _Teller:
    """Walks through a value once. Things that are met again are told as the same thing: that can be seen, too."""

    def __init__(self) -> None:
        self._met: dict[int, tuple[int, Any]] = {}

    def tell(self, value: Any) -> Any:
        if value is None or type(value) in (bool, str, int):
            return [type(value).__name__, value if type(value) is not int else str(value)]
        if type(value) is float:
            return ["float", value.hex()]
        if isinstance(value, enum.Enum):
            return [_name(type(value)), value.name, self.tell(value.value)]
        if id(value) in self._met:
            return ["the same as", self._met[id(value)][0]]
        if not isinstance(value, (bytes, tuple, frozenset, dt.date, dt.time)):
            self._met[id(value)] = (len(self._met), value)
        return [_name(type(value)), *self._inside(value)]

    def _inside(self, value: Any) -> Iterator[Any]:
        match value:
            case BaseException():
                yield from self._exception(value)
                return
            case bytes() | bytearray():
                yield bytes(value).hex()
            case str() | int() | float() | complex():
                yield repr(value)
            case dict():
                yield [[self.tell(key), self.tell(item)] for key, item in value.items()]
            case list() | tuple():
                yield [self.tell(item) for item in value]
            case set() | frozenset():
                yield sorted(json.dumps(self.tell(item)) for item in value)
            case dt.datetime() | dt.time():
                yield [value.isoformat(), value.fold, repr(value.tzinfo)]
            case _ if not _fields(value):
                yield repr(value)
            case _:
                pass
        yield {name: self.tell(item) for name, item in _fields(value).items()}

    def _exception(self, error: BaseException) -> Iterator[Any]:
        """Which `except` it meets, what it holds and says, and what led to it. Not the lines of code behind it."""
        yield [_name(cls) for cls in type(error).__mro__]
        yield self.tell(error.args)
        yield [_answer(lambda: str(error)), _answer(lambda: repr(error))]
        yield {name: self.tell(item) for name, item in _fields(error).items() if name not in _QUIET}
        yield self.tell(getattr(error, "__notes__", None))
        if isinstance(error, BaseExceptionGroup):
            yield [self.tell(one) for one in error.exceptions]
        yield [error.__suppress_context__, *(self.tell(one) for one in (error.__cause__, error.__context__))]


def _fields(value: Any) -> dict[str, Any]:
    """What it holds: its attributes, also those in slots, and those of built-in exceptions."""
    found = dict(getattr(value, "__dict__", {}))
    names = [name for cls in type(value).__mro__ for name in _slots(cls)]
    if isinstance(value, OSError):
        names += ["errno", "strerror", "filename", "filename2"]
    for name in names:
        with contextlib.suppress(Exception):
            found[name] = getattr(value, name)
    return dict(sorted(found.items()))


def _slots(cls: type) -> tuple[str, ...]:
    slots = cls.__dict__.get("__slots__", ())
    slots = (slots,) if isinstance(slots, str) else tuple(slots)
    return tuple(
        f"_{cls.__name__}{name}" if name.startswith("__") and not name.endswith("__") else name
        for name in slots
        if name not in ("__dict__", "__weakref__")
    )


def _name(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def _answer(ask: Callable[[], str]) -> str:
    try:
        return ask()
    except Exception as error:
        return f"raised {error!r}"


# --- eyes --------------------------------------------------------------------------------------------------------------


class Eyes:
    """Of one pass of the code through one run. A line of control has its own order of things; `main` is that of the run."""

    def __init__(self) -> None:
        self._pass = f"{stage().life}.{next(_passes)}"
        self._run = sf.run_id()
        self._segment = current.get().segment
        self._counts: defaultdict[str, int] = defaultdict(int)
        self._held: defaultdict[str, list[tuple[str, Any]]] = defaultdict(list)
        self._closed: set[str] = set()
        self._unwinds = False
        """A part of the run stands still: what the others see of that is no part of it."""

    def saw(self, label: str, what: Any, line: str = "main") -> None:
        """On record already: the next thing in this line."""
        self._note(label, what, line, self._counts[line])
        self._counts[line] += 1

    def _note(self, label: str, what: Any, line: str, index: int | str) -> None:
        if not self._unwinds:
            where = f"{self._segment} {line}"
            stage().note("saw", label, run=self._run, line=where, index=index, by=self._pass, value=told(what))

    def saw_lately(self, label: str, what: Any, line: str = "main") -> Any:
        """On record with the next thing that comes of it."""
        self._held[line].append((label, what))
        return what

    def leave(self, line: str) -> None:
        """This line makes no call any more. What it saw last is on record with whatever others do from here on."""
        self._closed.add(line)

    def called(self, line: str = "main") -> Callable[[], None]:
        """A call begins. What is returned is to be called when it has been answered."""
        owed = [(one, held) for one in (line, *sorted(self._closed)) for held in self._held[one]]

        def answered() -> None:
            for one, held in owed:
                if held in self._held[one]:
                    self._held[one].remove(held)
                    self.saw(*held, one)

        return answered

    def call(self, fn: Callable[..., Any], *args: Any, line: str = "main") -> Any:
        """Make a call, and have seen whatever it comes to."""
        answered, label = self.called(line), _label(fn, args)
        try:
            value = fn(*args)
        except Exception as error:
            if not isinstance(error, NO_OUTCOME):
                answered()
                self.saw(f"{label} raised", error, line)
            raise
        answered()
        self.saw(label, value, line)
        return value

    async def acall(self, fn: Callable[..., Awaitable[Any]], *args: Any, line: str = "main") -> Any:
        """The same for async code. That it was answered, and not cut off, is certain only with what follows."""
        answered, label = self.called(line), _label(fn, args)
        try:
            value: Any = await fn(*args)
        except NO_OUTCOME:
            raise
        except Exception as error:
            answered()
            self._came(f"{label} raised", error, line)
            raise
        except BaseException as error:
            self._unwinds = self._unwinds or isinstance(error, RunSignal)
            raise
        answered()
        self._came(label, value, line)
        return value

    def _came(self, label: str, what: Any, line: str) -> None:
        """Whenever this call is answered, it is answered so."""
        self._note(label, what, line, label)
        self.saw_lately(label, None, line)


@contextlib.contextmanager
def refusals() -> Iterator[None]:
    """What the code sees in here until it is refused as changed is not silent: somebody is told, and nothing goes on."""
    begun = next(_passes)
    try:
        yield
    except sf.CodeChanged:
        passes = [f"{stage().life}.{one}" for one in range(begun, next(_passes))]
        stage().note("refused", "", run="r", passes=passes)
        raise


def _label(fn: Callable[..., Any], args: tuple[Any, ...]) -> str:
    return f"{getattr(fn, '__name__', fn)}{args!r}"


# --- lives, held against each other ------------------------------------------------------------------------------------


def differences(lines: list[dict[str, Any]]) -> list[tuple[bool, str]]:
    """What user code saw otherwise than the first time; True: it went another way."""
    first: dict[tuple[str, str, int | str], dict[str, Any]] = {}
    found: list[tuple[bool, str]] = []
    refused = {one for line in lines if line["do"] == "refused" for one in line["passes"]}
    for line in lines:
        if line["do"] != "saw" or line["by"] in refused:
            continue
        place = (line["run"], line["line"], line["index"])
        before = first.setdefault(place, line)
        passes = f"{place}: pass {before['by']} and pass {line['by']}"
        if before["what"] != line["what"]:
            found.append((True, f"{passes} came to {before['what']} and to {line['what']}"))
        elif before["value"] != line["value"]:
            found.append((False, f"{passes} saw {line['what']} as {_apart(before['value'], line['value'])}"))
    return found[:MOST_TOLD]


def _apart(one: str, other: str) -> str:
    at = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return f"…{one[max(at - 40, 0) : at + 60]}… and later …{other[max(at - 40, 0) : at + 60]}…"
