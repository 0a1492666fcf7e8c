"""URLs that may carry a password: used as given, shown with *** in its place."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from msgspec import Struct

from surefoot.errors import UsageError

HIDDEN: Final = "***"
DEFAULT_STORE: Final = "sqlite:///.surefoot/runs.db"
"""The store that is used where none is named."""
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9.-]*)(\+[A-Za-z0-9_]+)?:")
_TELLING: Final = re.compile(
    r"key|jwt|sig|pwd|auth|(.*[_.-]|ssl)?(pass|passwd|password|passphrase|secret|token|signature|authorization|credentials?)|"
    r"(.*[_.-])?(api|access|secret|auth|private|subscription|account|client)[_.-]?key",
    re.IGNORECASE,
)
"""Names of query fields that give access."""
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


class Url(Struct, frozen=True):
    given: str
    shown: str
    scheme: str
    secrets: tuple[str, ...] = ()

    @property
    def is_secret(self) -> bool:
        return bool(self.secrets)

    def hide(self, text: str) -> str:
        """The text, with *** in place of every secret of this URL."""
        for secret in self.secrets:
            text = text.replace(secret, HIDDEN)
        return text


def parse(text: str, schemes: Collection[str]) -> Url:
    found = _SCHEME.match(text)
    scheme = found[1].lower() if found else ""
    if scheme not in schemes or found is None:
        raise UsageError(
            f"a URL is needed that starts with one of {', '.join(f'{each}:' for each in sorted(schemes))}."
        )
    if not text.isprintable() or " " in text or not text.isascii():
        raise UsageError(f"a {scheme} URL is written with printable ASCII only; all else is percent-encoded (%20).")
    rest = text[found.end() :]
    if scheme == "sqlite":
        return Url(f"sqlite:{rest}", f"sqlite:{rest}", scheme)
    scheme = {"postgres": "postgresql"}.get(scheme, scheme)
    return _without_secrets(f"{scheme}:{rest}", scheme)


def _without_secrets(text: str, scheme: str) -> Url:
    if not text.startswith(f"{scheme}://"):
        raise UsageError(f"a {scheme} URL starts with {scheme}://")
    try:
        pieces = urlsplit(text)
        if scheme in ("http", "https"):
            _ = pieces.port  # a password with a slash in it ends up here
    except ValueError:
        # Not quoted: a URL that cannot be taken apart may have a password anywhere.
        raise UsageError(f"this {scheme} URL cannot be read; is a sign in it not percent-encoded?") from None
    if scheme in ("http", "https") and not pieces.hostname:
        raise UsageError(f"this {scheme} URL names no host.")
    if scheme == "postgresql" and (pieces.fragment or "@" in pieces.path + pieces.query):
        raise UsageError("this postgresql URL cannot be read: in a password, @ / ? # are written %40 %2F %3F %23.")
    user, at, host = pieces.netloc.rpartition("@")
    shown_user, secrets = _hide_user(user, scheme)
    shown_query, more = _hide_fields(pieces.query)
    question = "?" if shown_query else ""
    # By hand: `urlunsplit` makes `x:/db` of `x:///db`.
    shown = f"{scheme}://{shown_user}{at}{host}{pieces.path}{question}{shown_query}"
    given = f"{scheme}://{pieces.netloc}{pieces.path}{question}{pieces.query}"
    every = {form for secret in (*secrets, *more) for form in (secret, unquote(secret), quote(secret, safe="")) if form}
    return Url(given, shown, scheme, tuple(sorted(every, key=len, reverse=True)))


def _hide_user(user: str, scheme: str) -> tuple[str, list[str]]:
    name, colon, password = user.partition(":")
    if colon and password:
        return f"{name}:{HIDDEN}", [password]
    if name and scheme != "postgresql":  # https://TOKEN@host
        return HIDDEN, [name]
    return user, []


def _hide_fields(query: str) -> tuple[str, list[str]]:
    secrets: list[str] = []
    shown: list[str] = []
    for field in query.split("&"):
        name, equals, value = field.partition("=")
        if value and _TELLING.fullmatch(_HUMP.sub("_", unquote(name))):
            secrets += [value, *(plain for _, plain in parse_qsl(field))]
            value = HIDDEN
        shown.append(f"{name}{equals}{value}")
    return "&".join(shown), secrets
