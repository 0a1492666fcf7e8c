"""Named tokens: for scripts, and for browsers of people who have no account on this machine.

They are kept as digests in a file of this user, readable by nobody else and outside of every store: who can write a store must
not be able to make people who may approve. A token itself is shown once, when it is made.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from surefoot.console.principals import Principal
from surefoot.console.sessions import digest
from surefoot.errors import NotFound, UsageError

PREFIX: Final = "sft_"
"""So that scanners for secrets can find one that was committed by mistake."""
_VARIABLE: Final = "SUREFOOT_TOKENS"


class Token(Struct, frozen=True):
    name: str
    sha256: str
    may: str
    groups: tuple[str, ...] = ()
    made: int = 0
    """Seconds since 1970."""
    until: int = 0
    """0: for ever."""

    @property
    def principal(self) -> Principal:
        return Principal(self.name, self.may, self.groups, via=f"console, token {self.name}")


class _Kept(Struct, frozen=True):
    tokens: tuple[Token, ...] = ()


def place() -> Path:
    """`SUREFOOT_TOKENS`, else `surefoot/tokens.json` among this user's settings."""
    if given := os.environ.get(_VARIABLE):
        return Path(given)
    settings = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(settings) / "surefoot" / "tokens.json"


class Tokens:
    """The file, read again whenever it has changed: a token that was revoked is refused at once."""

    def __init__(self, path: Path | None = None, clock: Callable[[], float] = time.time) -> None:
        self.path = path or place()
        self._clock = clock
        self._read: tuple[tuple[int, int, int], tuple[Token, ...]] | None = None

    def all(self) -> tuple[Token, ...]:
        try:
            found = os.stat(self.path, follow_symlinks=False)
        except FileNotFoundError:
            return ()
        mark = (found.st_ino, found.st_mtime_ns, found.st_size)
        if self._read is None or self._read[0] != mark:
            self._read = mark, self._load()
        return self._read[1]

    def of(self, token: str) -> Token | None:
        """The token that this is, if it still counts."""
        wanted = digest(token).hex()
        found = next((one for one in self.all() if secrets.compare_digest(one.sha256, wanted)), None)
        return None if found is None or (found.until and found.until <= self._clock()) else found

    def add(self, name: str, may: str, groups: tuple[str, ...] = (), seconds: float | None = None) -> str:
        """Make one. The token, which nobody can see again."""
        Principal(name, may, groups)
        token, now = PREFIX + secrets.token_urlsafe(32), int(self._clock())
        made = Token(name, digest(token).hex(), may, groups, now, 0 if seconds is None else int(now + seconds))
        with self._changing() as known:
            if any(one.name == name for one in known):
                raise UsageError(f"there is a token {name!r} already: surefoot console token revoke {name}")
            self._write((*known, made))
        return token

    def revoke(self, name: str) -> None:
        with self._changing() as known:
            left = tuple(one for one in known if one.name != name)
            if len(left) == len(known):
                raise NotFound(f"there is no token {name!r}. `surefoot console token list` shows all.")
            self._write(left)

    @contextmanager
    def _changing(self) -> Iterator[tuple[Token, ...]]:
        """One process at a time."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        lock = os.open(self.path.with_name(self.path.name + ".lock"), flags, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield self._load() if self.path.exists() else ()
        finally:
            os.close(lock)

    def _load(self) -> tuple[Token, ...]:
        try:
            file = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError as error:
            raise UsageError(f"{self.path}: {error.strerror}") from None
        with os.fdopen(file, "rb") as stream:
            mode = stat.S_IMODE(os.fstat(stream.fileno()).st_mode)
            if mode & 0o077:
                raise UsageError(f"{self.path} can be read or written by others (mode {mode:o}): chmod 600 {self.path}")
            try:
                return msgspec.json.decode(stream.read(), type=_Kept).tokens
            except msgspec.DecodeError as error:
                raise UsageError(f"{self.path} cannot be read: {error}. No token counts until it is mended.") from None

    def _write(self, tokens: tuple[Token, ...]) -> None:
        fresh = self.path.with_name(f"{self.path.name}.{secrets.token_hex(8)}")
        file = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(file, "wb") as stream:
            stream.write(msgspec.json.format(msgspec.json.encode(_Kept(tokens)), indent=1))
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(fresh, self.path)
