"""Moving a store of SQLite to PostgreSQL, over reading its rows and writing them with a raw COPY."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter

import apsw
import psycopg
from msgspec.structs import replace

import surefoot as sf
from surefoot.engine.process import config
from surefoot.engine.upkeep import parcels
from surefoot.engine.upkeep.moving import Moved, Mover
from surefoot.store.contract import Extend
from surefoot.store.open import open_store

COLUMNS = ("pos", "run", "seq", "epoch", "at", "kind", "schema", "codec", "key", "body", "seal")
TYPES = ("int8", "text", "int8", "int8", "int8", "int8", "int8", "int8", "int8", "bytea", "bytea")
_TOGETHER = 50


@sf.step
def noted(n: int) -> dict[str, object]:
    return {"n": n, "text": "x" * 200}


@sf.workflow
def noting(count: int) -> int:
    return sum(noted(n)["n"] == n for n in range(count))


def copied(folder: Path, url: str, runs: str = "400", steps: str = "50") -> dict[str, float]:
    """Both read the same file and write into the same server, one after the other."""
    source = f"sqlite:///{folder}/moving.db"
    _fill(source, int(runs), int(steps))
    file = open_store(source, create=False).file
    raw = [_raw(file, url) for _ in range(2)][-1]
    mover = Mover(config.runtime(source, create=False), config.runtime(url, create=True))
    started = perf_counter()
    outcomes = list(mover.move(mover.groups()))
    seconds = perf_counter() - started
    if not all(isinstance(one, Moved) for one in outcomes):
        raise AssertionError(outcomes)
    entries = sum(one.entries for one in outcomes if isinstance(one, Moved))
    return {"ratio": raw / seconds, "rate": entries / seconds, "entries": float(entries)}


def _fill(url: str, runs: int, steps: int) -> None:
    noting.using(store=url).run("r0", steps)
    store = open_store(url, create=False)
    first = store.read("r0").records
    for at in range(1, runs, _TOGETHER):
        batch = []
        for name in (f"r{number}" for number in range(at, min(at + _TOGETHER, runs))):
            records = parcels.sealed(store.id, name, [replace(one, run=name) for one in first])
            batch.append(Extend(name, None, records, parcels.row_of(name, records)))
        store.append(batch)


def _raw(file: str, url: str) -> float:
    """Seconds to read all rows and to COPY them into a table without an index."""
    database = apsw.Connection(file, flags=apsw.SQLITE_OPEN_READONLY)
    names = ", ".join(COLUMNS)
    with psycopg.connect(url) as server:
        columns = ", ".join(f"{name} {kind}" for name, kind in zip(COLUMNS, TYPES, strict=True))
        server.execute(f"DROP TABLE IF EXISTS raw_rows; CREATE TABLE raw_rows ({columns})")
        server.commit()
        started = perf_counter()
        with server.cursor().copy(f"COPY raw_rows ({names}) FROM STDIN (FORMAT BINARY)") as out:
            out.set_types(TYPES)
            for row in database.execute(f"SELECT {names} FROM entries ORDER BY pos"):  # noqa: S608 - names of ours
                out.write_row(row)
        server.commit()
        seconds = perf_counter() - started
    database.close()
    return seconds
