"""Behind a proxy that signs people in: whose name it says they have, and what they may do.

The header with the name is believed only together with the secret that console and proxy share, and only from a listed peer.
What somebody may do is in a file; who is not in it may look.
"""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct
from starlette.requests import Request

from surefoot.console.principals import VIEW, Principal
from surefoot.errors import UsageError

SECRET_HEADER: Final = "x-surefoot-proxy"  # noqa: S105 - the name of a header
_SHORTEST: Final = 32


class _Role(Struct, frozen=True, forbid_unknown_fields=True):
    may: str = VIEW
    groups: tuple[str, ...] = ()


class Proxy:
    """An `identify`."""

    def __init__(self, header: str, secret_file: Path, roles_file: Path | None, peers: tuple[str, ...]) -> None:
        self._header = header
        self._peers = frozenset(peers)
        self._secret = secret_file.read_bytes().strip()
        if len(self._secret) < _SHORTEST:
            raise UsageError(f"{secret_file}: the secret must have at least {_SHORTEST} characters")
        self._roles = _roles(roles_file)

    def __call__(self, request: Request) -> Principal | None:
        peer = request.client.host if request.client is not None else ""
        shown, names = request.headers.getlist(SECRET_HEADER), request.headers.getlist(self._header)
        if peer not in self._peers or len(shown) != 1 or len(names) != 1 or not names[0]:
            return None
        if not secrets.compare_digest(shown[0].encode("latin-1"), self._secret):
            return None
        role = self._roles.get(names[0], _Role())
        return Principal(names[0], role.may, role.groups, via="console, proxy")


def _roles(path: Path | None) -> dict[str, _Role]:
    if path is None:
        return {}
    try:
        found = msgspec.json.decode(path.read_bytes(), type=dict[str, _Role])
    except msgspec.DecodeError as error:
        raise UsageError(
            f'{path}: {error}. It is JSON: {{"ann": {{"may": "decide", "groups": ["release"]}}}}'
        ) from None
    for name, role in found.items():
        Principal(name, role.may, role.groups)
    return found
