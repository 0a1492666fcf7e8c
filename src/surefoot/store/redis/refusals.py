"""The meaning of Redis's refusals for users of the store, each with its cure. No message contains a password."""

from __future__ import annotations

from typing import Final

from surefoot.errors import JournalCorrupt, NotFound, StoreFull, StoreUnavailable, SurefootError
from surefoot.store import failure
from surefoot.store.failure import Rejected

_PASSING: Final = frozenset({"BUSY", "TRYAGAIN", "CLUSTERDOWN", "NOREPLICAS"})
"""Nothing has happened, and the same request may succeed a moment later."""

unreachable = failure.unreachable


def passing(error: Rejected) -> bool:
    return error.code in _PASSING


def explain(error: Rejected, where: str) -> SurefootError:
    code, said = error.code, f"{error}"
    if code == "OOM":
        return StoreFull(
            f"{where}: the server's memory is full, and nothing was written: {said}. Give it more (maxmemory), or make "
            "room (prune old runs), then resume."
        )
    if code == "MISCONF":
        return StoreFull(f"{where}: the server cannot write to its disk: {said}. Free some space there, then resume.")
    if code in ("NOAUTH", "WRONGPASS"):
        return StoreUnavailable(f"{where}: the server refused the user or the password in the URL: {said}")
    if code == "NOPERM":
        return StoreUnavailable(
            f"{where}: {said}. The user needs all commands on the keys of the store: ACL SETUSER NAME ~{{surefoot}}:* "
            "&{surefoot}:* +@all"
        )
    if code == "WRONGTYPE":
        return JournalCorrupt(
            f"{where}: a key of the store is not what we made: {said}. Who else uses keys that begin so?"
        )
    if code == "NOREPLICAS":
        return StoreUnavailable(f"{where}: the server has too few replicas at the moment and takes no writes: {said}")
    return StoreUnavailable(f"{where}: Redis refused: {said}.")


def no_store(where: str, prefix: str) -> NotFound:
    return NotFound(
        f"no store in {where}: the server has no key that begins with {prefix}. Nothing has been recorded there from here. "
        "Name another with --store or sf.configure."
    )
