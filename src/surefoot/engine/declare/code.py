"""Which code this process runs: one digest over the project's loaded modules and the packages it can reach.

It decides nothing about a call, nor whether a run is rehearsed: what modules read is no part of it. It says whether two
processes can be taken to run the same code: who tries a run first while a new version is rolled out. So a digest that differs for
no reason costs a little, and one that is equal by mistake is the fault to avoid: where anything cannot be told (code from
a notebook, code without a file), there is no digest, which is never taken for equal.
"""

from __future__ import annotations

import hashlib
import os
import sys
import sysconfig
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Final

from surefoot.engine.declare import call_spec

UNKNOWN: Final = ""
_INSTALLED: Final = ("site-packages", "dist-packages")
_PYTHON: Final = tuple(os.path.abspath(sysconfig.get_path(name)) + os.sep for name in ("stdlib", "platstdlib"))
_SUREFOOT: Final = str(Path(os.path.abspath(__file__)).parents[2]) + os.sep
_lock = threading.Lock()
_known: dict[int, str] = {}
"""By how many modules are loaded: more are as the code runs."""

_files: dict[str, bytes] = {}
"""What was in each file when it was first looked at: about when it was loaded. What is there later is not what runs here."""


def digest() -> str:
    """Of the code as it is loaded now; empty: unknown. Files are read at the first call, and when more were loaded."""
    with _lock:
        known = _known.get(len(sys.modules))
        if known is None:
            known = _digest()
            _known.clear()
            _known[len(sys.modules)] = known
        return known


def is_projects(file: str) -> bool:
    """Whether it is the user's own, and none of Python's, of a package's or of ours."""
    file = os.path.abspath(file)
    installed = any(f"{os.sep}{part}{os.sep}" in file for part in _INSTALLED)
    return not installed and not file.startswith((*_PYTHON, _SUREFOOT))


def _digest() -> str:
    if not all(os.path.isfile(file) for file in _defining()):
        return UNKNOWN
    hashed = hashlib.sha256(repr(sys.version_info).encode())
    folders: set[str] = set()
    ours: set[str] = set()
    for module in list(sys.modules.values()):
        file = _file(module)
        if file is None:
            continue
        installed = next((part for part in _INSTALLED if f"{os.sep}{part}{os.sep}" in file), None)
        if installed is not None:
            folders.add(file[: file.index(installed) + len(installed)])
        elif not file.startswith(_PYTHON):
            ours.add(file)
    try:
        for name, file in sorted((_told_apart(file), file) for file in ours):
            if file not in _files:
                _files[file] = hashlib.sha256(_bytes(file)).digest()
            hashed.update(name.encode() + _files[file])
        for folder in folders:
            for name in sorted(name for name in os.listdir(folder) if name.endswith(".dist-info")):
                hashed.update(name.encode())
    except OSError:
        return UNKNOWN
    return hashed.hexdigest()[:32]


def _told_apart(file: str) -> str:
    """The file's name, without the folder that the project happens to lie in."""
    folder, name = os.path.split(file)
    return f"{os.path.basename(folder)}/{name}"


def _bytes(file: str) -> bytes:
    with open(file, "rb") as opened:
        return opened.read()


def _defining() -> Iterator[str]:
    """The files that the workflows and effects of this process come from."""
    from surefoot.engine.declare.registry import registry  # It stands on sessions, which ask for the digest.

    for definition in registry.all():
        yield definition.fn.__code__.co_filename
    for known in call_spec.all_effects():
        code = getattr(known.fn, "__code__", None)
        if code is not None:
            yield code.co_filename


def _file(module: ModuleType) -> str | None:
    file = getattr(module, "__file__", None)
    return os.path.abspath(file) if isinstance(file, str) else None
