"""What PostgreSQL's refusals mean for users of the store, each with its cure. No message contains a password."""

from __future__ import annotations

import re
from typing import Final

from msgspec.structs import replace

from surefoot.core.cure import ADOPT, Advice
from surefoot.errors import JournalCorrupt, NotFound, StoreFull, StoreUnavailable, SurefootError, UsageError
from surefoot.store import failure
from surefoot.store.failure import Rejected

_PASSING: Final = frozenset({"40001", "40P01", "55P03", "57014", "53300", "53200", "55006"})
"""Nothing has happened, and the same statement may succeed a moment later: serialization failures, deadlocks, time-outs,
too many connections, no memory."""

_DAMAGED: Final = frozenset({"XX001", "XX002"})
_NOT_OURS: Final = frozenset({"42P01", "42703", "42883", "3F000", "42804"})
_UNSTORABLE: Final = frozenset({"22021", "22P05", "22P02", "54000", "22003"})


def passing(error: Rejected) -> bool:
    return error.code in _PASSING


def explain(error: Rejected, where: str) -> SurefootError:
    code, said = error.code, f"{error} (PostgreSQL error {error.code})"
    if code == "53100":
        return StoreFull(f"{where}: the server's disk is full: {said}. Free some space there, then resume.")
    if code == "25006":
        return StoreUnavailable(
            f"{where}: this server takes no writes: it is a replica, or default_transaction_read_only is on. "
            "Connect to the primary (target_session_attrs=read-write with several hosts in the URL)."
        )
    if code == "53300":
        return StoreUnavailable(
            f"{where}: the server has no connection left: {said}. A process needs up to four; raise max_connections, "
            "or put a pooler before it."
        )
    if code == "42501":
        return StoreUnavailable(
            f"{where}: {said}. The user needs all rights on the schema surefoot, or CREATE on the database to make it."
        )
    if code in _DAMAGED:
        return JournalCorrupt(f"{where}: the server found its own files damaged: {said}.", cures=_RESTORE)
    if code in _NOT_OURS:
        return JournalCorrupt(f"{where}: the tables in schema surefoot are not those we made: {said}.", cures=_RESTORE)
    if code in _UNSTORABLE:
        return UsageError(f"a run id or an index row cannot be stored: {said}")
    return StoreUnavailable(f"{where}: PostgreSQL refused: {said}.")


_RESTORE: Final = (
    Advice("look", "the server's log; pg_amcheck"),
    replace(ADOPT, when="have a backup?", first="restore it (pg_restore, or point-in-time recovery)"),
)


_ANSWERED: Final = re.compile(r"\bFATAL:\s+(?!the database system is|(sorry, )?too many|remaining connection slots)")
"""The server itself refused, and not because it is busy. (libpq does not tell the error's code while connecting.)"""


def unreachable(where: str, why: str, seconds: float) -> StoreUnavailable:
    if _ANSWERED.search(why):
        return StoreUnavailable(
            f"{where}: the server was reached, and refused the connection: {why}. Check the database, the user and the "
            "password in the URL, and the server's pg_hba.conf; a database is made with createdb NAME."
        )
    return failure.unreachable(where, why, seconds)


def no_store(where: str) -> NotFound:
    return NotFound(
        f"no store in {where}: the database has no schema surefoot. Nothing has been recorded there from here. Name "
        "another with --store or sf.configure."
    )
