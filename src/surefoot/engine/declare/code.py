"""Which code this process runs: one digest over the project's loaded modules and the packages it can reach.

The digest decides nothing about a call, nor whether a run is rehearsed: data that modules read is no part of it. It
only shows whether two processes run the same code: which worker tries a run first during a rollout. A digest that
differs for no reason costs a little; one that is equal by mistake is the fault to avoid. So where anything is unknown
(code from a notebook, code without a file), there is no digest, and a missing digest never counts as equal.
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
"""By the number of loaded modules: it grows as the code runs."""

_files: dict[str, bytes] = {}
"""The content of each file at the first read, close to its load. A later content does not run here."""


def digest() -> str:
    """The digest of the code as loaded now; empty: unknown. Files are read at the first call, and for new modules."""
    with _lock:
        known = _known.get(len(sys.modules))
        if known is None:
            known = _digest()
            _known.clear()
            _known[len(sys.modules)] = known
        return known


def is_projects(file: str) -> bool:
    """Whether it is a file of the user, not of Python, of a package or of ours."""
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
    """The file's name, without the folder of the project."""
    folder, name = os.path.split(file)
    return f"{os.path.basename(folder)}/{name}"


def _bytes(file: str) -> bytes:
    with open(file, "rb") as opened:
        return opened.read()


def _defining() -> Iterator[str]:
    """The files in which workflows and effects of this process are defined."""
    from surefoot.engine.declare.registry import registry  # It imports sessions, which ask for the digest.

    for definition in registry.all():
        yield definition.fn.__code__.co_filename
    for known in call_spec.all_effects():
        code = getattr(known.fn, "__code__", None)
        if code is not None:
            yield code.co_filename


def _file(module: ModuleType) -> str | None:
    file = getattr(module, "__file__", None)
    return os.path.abspath(file) if isinstance(file, str) else None
