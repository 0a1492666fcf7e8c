"""Which engine drives the runs of this process: `sf.configure(engine=)`, then SUREFOOT_ENGINE, else embedded workers.

The scheme of a URL selects it: that is the table below. It holds names of modules, each with a function
`open_engine(url)`: engines depend on everything here, and are loaded only when needed. The journal stays the record,
with any engine.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any, Final, Protocol

from surefoot.errors import UsageError
from surefoot.store.contract import IndexRow
from surefoot.store.findings import Finding

EMBEDDED: Final = "embedded:"
_MODULES: Final = {
    "embedded": "surefoot.engine.worker.embedded",
    "temporal": "surefoot.temporal.engine",
    "temporals": "surefoot.temporal.engine",
}
FORMS: Final = f"{EMBEDDED} (surefoot's own workers, the default), temporal://HOST:PORT/NAMESPACE, temporals://… (TLS)"


class Bell(Protocol):
    """An engine's interface for writers into runs. Its interface for workers: `worker/protocol.py`."""

    url: str
    drives: bool
    """Whether the engine drives runs by itself as soon as they can go on. Then no other process ends or undoes one."""

    def ring(self, row: IndexRow, store: str) -> None:
        """This run of that store can go on, from `row.wake` on. Called after the commit. It takes a bounded time, and may be lost."""

    def reopen(self, row: IndexRow, store: str) -> None:
        """A person has this run go on, whatever was done to it in the engine. The same bounds."""

    def examine(self) -> list[Finding]:
        """What `surefoot doctor` says of the engine."""


_opened: Final[dict[str, Any]] = {}
_configured: str | None = None


def configure(url: str) -> None:
    """Let this process use that engine."""
    global _configured  # noqa: PLW0603 - what a process is told once
    _module(url)
    _configured = url


def url() -> str:
    return _configured or os.environ.get("SUREFOOT_ENGINE") or EMBEDDED


def require_known() -> None:
    """`UsageError`, if there is no such engine. The engine is not loaded: readers do not need it."""
    _module(url())


def opened() -> Any:
    """The engine of this process, a `worker.protocol.Engine`."""
    where = url()
    if where not in _opened:
        _opened[where] = import_module(_module(where)).open_engine(where)
    return _opened[where]


def bell() -> Bell:
    """The same, for callers that only ring."""
    engine: Bell = opened()
    return engine


def _module(where: str) -> str:
    scheme = where.partition(":")[0]
    if scheme not in _MODULES:
        # Only the scheme is shown: the rest may hold a password.
        raise UsageError(f"{scheme!r} is no engine that surefoot knows. The forms of an engine URL are: {FORMS}.")
    return _MODULES[scheme]
