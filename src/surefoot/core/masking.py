"""Texts without the secrets that are known: clients put URLs, headers and bodies into their exceptions.

What was passed to a call or a run as `sf.Secret` is known, and is written as *** wherever else it turns up: as it is, and in
the forms in which it usually travels (quoted for a URL, in base64, as in source code). Secrets shorter than four
characters are left: to mask them would blot out ordinary words.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final
from urllib.parse import parse_qsl, quote, quote_plus, unquote, urlsplit

import msgspec

from surefoot.core import registry
from surefoot.core.entry import Stop
from surefoot.core.forms import RECORDED, Secret
from surefoot.core.urls import HIDDEN
from surefoot.errors import Stopped, SurefootError

SHORTEST: Final = 4
MANY: Final = 50_000
FEW: Final = 300
_MOST_LEVELS: Final = 8
_CUT: Final = re.compile(r"(?s)(.*)(\.\.\. \[cut: \d+ characters\])")
_PLAIN_FIELDS: Final = frozenset({"type", "as", "module", "bases", "version", "suppress"})
"""Of a recorded failure: what names classes, and no text of the user's."""


class Mask:
    """The secrets that one run knows. Without any it is false, and nothing is looked at."""

    __slots__ = ("_forms", "_pattern", "_patterned")

    def __init__(self) -> None:
        self._forms: set[str] = set()
        self._pattern = re.compile("")
        self._patterned = 0

    def __bool__(self) -> bool:
        return bool(self._forms)

    def learn(self, secrets: Iterable[Secret[Any]]) -> None:
        for secret in secrets:
            for text in _texts(secret):
                if len(text) >= SHORTEST:
                    self._forms.update(form for form in _forms(text) if len(form) >= SHORTEST)

    def __call__(self, text: str) -> str:
        if not self._forms:
            return text
        if self._patterned != len(self._forms):  # Branches learn at the same time; none of theirs is lost.
            forms = sorted(self._forms.copy(), key=len, reverse=True)
            self._pattern, self._patterned = re.compile("|".join(map(re.escape, forms))), len(forms)
        return self._ended(self._pattern.sub(HIDDEN, text))

    def _ended(self, text: str) -> str:
        """A long text is cut; what is left of a secret at the cut goes too."""
        cut = _CUT.fullmatch(text)
        if cut is None:
            return text
        left = max((_overlap(cut[1], form) for form in self._forms.copy()), default=0)
        return cut[1][:-left] + HIDDEN + cut[2] if left else text

    def stop(self, stop: Stop) -> Stop:
        if not self._forms:
            return stop
        told = {name: self._hidden(getattr(stop, name)) for name in ("message", "facts", "cures", "drift")}
        return msgspec.structs.replace(stop, **told)

    def _hidden(self, value: Any) -> Any:
        """The same data, with *** for what is secret in its texts."""
        if isinstance(value, str):
            return self(value)
        if isinstance(value, tuple):
            return tuple(map(self._hidden, value))
        if isinstance(value, dict):
            return {name: self._hidden(each) for name, each in value.items()}
        if not isinstance(value, msgspec.Struct):
            return value
        told = {name: self._hidden(getattr(value, name)) for name in value.__struct_fields__ if name != "verb"}
        return msgspec.structs.replace(value, **told)

    def error(self, error: SurefootError) -> SurefootError:
        """One of ours that goes to the caller as it is. What led to it is let go of where its text would tell."""
        if self._forms:
            error.args = tuple(self(arg) if isinstance(arg, str) else arg for arg in error.args)
            if isinstance(error, Stopped):
                error.summary = self(error.summary)
                error.facts = {key: self(fact) if isinstance(fact, str) else fact for key, fact in error.facts.items()}
                error.remedies, error.drift = self._hidden(error.remedies), self._hidden(error.drift)
            if any(self._tells(earlier) for earlier in _led_to(error)):
                error.__cause__, error.__context__ = None, None
        return error

    def _tells(self, error: BaseException) -> bool:
        try:
            text = f"{error} {error!r} {getattr(error, '__notes__', '')}"
        except Exception:  # noqa: BLE001 - __str__ of user code; better no story than one that tells
            return True
        return self(text) != text

    def failure(self, node: Any) -> Any:
        """The tagged tree of a failure, with every text in it masked."""
        kind = type(node)
        if kind is str:
            return self(node)
        if kind is int or kind is float:
            return HIDDEN if str(node) in self._forms else node
        if kind is list:
            return [self.failure(item) for item in node]
        if kind is not dict:
            return node
        if len(node) == 1:
            ((tag, payload),) = node.items()
            if tag in _TAGS:
                return {tag: _TAGS[tag](self, payload)}
        return {self(name) if name[:1] != "$" else name: self.failure(item) for name, item in node.items()}


def _masked_error(mask: Mask, payload: dict[str, Any]) -> Any:
    return {name: item if name in _PLAIN_FIELDS else mask.failure(item) for name, item in payload.items()}


def _masked_bytes(mask: Mask, payload: str) -> Any:
    text = binascii.a2b_base64(payload).decode("latin-1")
    masked = mask(text)
    if masked == text:
        return payload
    return binascii.b2a_base64(masked.encode("latin-1", "replace"), newline=False).decode("ascii")


_TAGS: Final[dict[str, Callable[[Mask, Any], Any]]] = {
    "$error": _masked_error,
    "$type": lambda mask, payload: [payload[0], *map(mask.failure, payload[1:])],
    "$bytes": _masked_bytes,
    "$bytearray": _masked_bytes,
}


def secrets_in(*given: Any, most: int = MANY) -> Iterator[Secret[Any]]:
    """The secrets in arguments, also inside of containers and objects; `most`: it looks at so many of these only."""
    pending: list[tuple[Any, int]] = [(item, 0) for item in given]
    seen: set[int] = set()
    met = 0
    while pending and met < most:
        item, level = pending.pop()
        if isinstance(item, Secret):
            yield item
        elif id(item) not in seen and level < _MOST_LEVELS:
            seen.add(id(item))
            met += 1
            pending += ((inside, level + 1) for inside in _held_by(item))


def _held_by(item: Any) -> list[Any]:
    kind = type(item)
    if kind in (str, int, float, bool, bytes, type(None)) or isinstance(item, type):
        return []
    try:
        if isinstance(item, dict):
            return [*item.keys(), *item.values()]
        if isinstance(item, list | tuple | set | frozenset):
            return list(item)
        names = registry.fields_of(kind)
        held = [getattr(item, name, None) for name in names]
        held += list(vars(item).values()) if hasattr(item, "__dict__") else []
    except Exception:  # noqa: BLE001 - properties of user code, or another thread changed a dict
        return []
    return held


def _texts(secret: Secret[Any]) -> Iterator[str]:
    value = secret._Secret__value  # type: ignore[attr-defined] # reveal() refuses what was only recorded
    if value is RECORDED:
        return
    pending, met = [value], 0
    while pending and met < MANY:
        item = pending.pop()
        met += 1
        if isinstance(item, str):
            yield item
        elif isinstance(item, bytes | bytearray):
            yield bytes(item).decode("latin-1")
        elif isinstance(item, int | float) and not isinstance(item, bool):
            yield str(item)
        elif isinstance(item, dict | list | tuple | set | frozenset):
            pending += item.values() if isinstance(item, dict) else item


def _forms(text: str) -> Iterator[str]:
    """What a secret looks like in messages."""
    yield text
    yield repr(text)[1:-1]
    yield msgspec.json.encode(text.encode("utf-8", "replace").decode()).decode()[1:-1]
    raw = text.encode("utf-8", "surrogatepass")
    yield from (quote(raw), quote(raw, safe=""), quote_plus(raw))
    encoded = binascii.b2a_base64(raw, newline=False).decode("ascii")
    yield from (encoded, encoded.rstrip("="), encoded.translate(_URL_SAFE), encoded.translate(_URL_SAFE).rstrip("="))
    if "://" in text:
        yield from _parts_of_url(text)


_URL_SAFE: Final = str.maketrans("+/", "-_")


def _parts_of_url(text: str) -> Iterator[str]:
    """Clients tell host and path apart: `Max retries exceeded with url: /?token=…`."""
    try:
        url = urlsplit(text)
        parts = [url.password or "", *(value for _, value in parse_qsl(url.query))]
    except ValueError:
        return
    if len(url.path) >= 2 * SHORTEST or url.query:
        parts += [url.path + (f"?{url.query}" if url.query else ""), url.query]
    for part in parts:
        yield from (part, unquote(part), quote(part, safe=""))


def _overlap(text: str, form: str) -> int:
    """How many characters at the end of a text are the beginning of a secret."""
    return next((size for size in range(len(form) - 1, SHORTEST - 1, -1) if text.endswith(form[:size])), 0)


def _led_to(error: BaseException) -> Iterator[BaseException]:
    pending, seen = [error.__cause__, error.__context__], {id(error)}
    while pending:
        earlier = pending.pop()
        if earlier is not None and id(earlier) not in seen:
            seen.add(id(earlier))
            yield earlier
            pending += [earlier.__cause__, earlier.__context__]
