"""Objects of frameworks as plain JSON and back, with the proof that the way is lossless.

No class of a framework is registered: they have new fields in every release, and a closed record of them would strand
runs at every upgrade. Plain JSON is read with `jq`, needs no import to be looked at, and keeps fields that are unknown.

Only fields that are set are recorded. A revived object that has every optional field set is another one to the framework:
it would send them, and the next call's arguments would differ between the first run and the replay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from surefoot.adapters.versions import installed
from surefoot.engine.seams import refused, storable, warn_once
from surefoot.errors import ValueRejected

MOST_TEXT: Final = 400
_told: set[str] = set()


class Form:
    """The plain form of one type of a framework that is known to pydantic."""

    def __init__(self, wanted: Any) -> None:
        from pydantic import TypeAdapter

        self._adapter: Any = TypeAdapter(wanted)
        self._is_plain = wanted is Any
        """Whether it comes back as what is recorded: there is nothing to prove."""
        self._name = getattr(wanted, "__name__", str(wanted))

    def plain(self, value: Any) -> Any:
        """As it is recorded. `ValueRejected` if it would not come back as it is."""
        return self.proved(value)[0]

    def proved(self, value: Any) -> tuple[Any, Any]:
        """As it is recorded, and as it comes back from that."""
        try:
            found = self._dumped(value)
            if self._is_plain:
                return found, found
            revived = self.revived(found)
            again = self._dumped(revived)
        except Exception as error:
            raise ValueRejected(f"{self._name} does not come back from its plain form: {_briefly(error)}") from error
        if again != found:
            raise ValueRejected(f"{self._name} comes back from its plain form as something else")
        return found, revived

    def _dumped(self, value: Any) -> Any:
        return self._adapter.dump_python(value, mode="json", by_alias=True, exclude_unset=True, warnings=False)

    def revived(self, plain: Any) -> Any:
        # In a rehearsal it may stand for an answer that is not known. It is looked into here: pydantic would try all its
        # classes on it, and write each signal to stderr.
        bool(plain)
        return self._adapter.validate_python(plain)

    def from_record(self, plain: Any, what: str, packages: Iterable[str]) -> Any:
        """As it comes back from a record, which another version of the framework may have made. `what`: whose answer it is."""
        return read_back(lambda: self.revived(plain), what, packages)


def read_back(read: Callable[[], Any], what: str, packages: Iterable[str]) -> Any:
    """What `read` makes of a record. If nothing, the run stands still and keeps the record: nothing is asked for again."""
    try:
        return read()
    except ValueError as error:  # pydantic's are ValueErrors
        found = ", ".join(f"{package} {installed(package)}" for package in packages)
        raise refused(
            ValueRejected(
                f"{what} is on record and cannot be read with {found}. The record is kept, and nothing was asked for again. Resume the "
                f"run with the version that it was recorded with, or a later one: {_briefly(error)}"
            )
        ) from error


def _briefly(error: BaseException) -> str:
    """Pydantic has a line for each class that a value might have been: a hundred thousand characters of an event."""
    text = str(error)
    return text if len(text) <= MOST_TEXT else f"{text[:MOST_TEXT]}…"


def jsonable(value: Any) -> Any:
    """What is only shown, not brought back: settings, schemas, names."""
    from pydantic_core import to_jsonable_python

    return to_jsonable_python(value, by_alias=True, exclude_none=True, fallback=lambda other: type(other).__name__)


def result_of(tool: str, value: Any, text: Any = str) -> Any:
    """What a tool returned, as it is recorded and as the framework gets it: itself, or the text that the model would get.

    Never refused: the tool has done what it does, and its outcome has to be recorded.
    """
    if storable(value):
        return value
    plain = _plain_parts(value)
    if plain is not None and storable(plain):
        return plain
    warn_once(
        _told, tool,
        f"tool {tool} returned {type(value).__name__}, which cannot be stored. Its text is recorded, and given to the model and "
        "to your code. Return plain data, or register the class with sf.register.",
    )  # fmt: skip
    return str(text(value))


def _plain_parts(value: Any) -> Any:
    """Of pydantic models with a `type`, and lists of them: structured outputs, which frameworks take as plain data too."""
    if isinstance(value, list | tuple):
        parts = [_plain_parts(each) for each in value]
        return None if None in parts else parts
    dump = getattr(value, "model_dump", None)
    if dump is None or not isinstance(getattr(value, "type", None), str):
        return None
    return dump(mode="json", exclude_none=True)
