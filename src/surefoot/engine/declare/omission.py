"""An argument that cannot be stored, and may be no input of the call at all: `self`, a client, a connection.

It is the usual first error after decorating a method, and `ignore=` is the answer; so the refusal names it.
"""

from __future__ import annotations

import re
from typing import Final

from surefoot.engine.declare.call_spec import CallSpec

_PARAMETER: Final = re.compile(r"\$\.(\w+)(.*)", re.DOTALL)
_OWN: Final = ("self", "cls")


def hint(spec: CallSpec, path: str) -> str:
    """What helps against a rejection at this path; empty: the path is inside data that the call needs."""
    found = _PARAMETER.fullmatch(path)
    if found is None or found[1] not in spec.binder.names:
        return ""
    name, inside = found.groups()
    names = ", ".join(f'"{each}"' for each in (*spec.binder.ignored, name))
    declare = f"@sf.{spec.kind}(ignore={f'({names})' if spec.binder.ignored else names})"
    if name in _OWN:
        return f' {spec.name} is a method: {declare} leaves "{name}" out of the record, and passes it on.'
    if inside:
        return ""  # A part of the argument can be stored, so it is data.
    return f" If {name} is no input but a means (a client, a connection): {declare} leaves it out, and passes it on."
