"""Stores to damage, made by real processes and, where it says so, real kills; and the faults done to copies of them.

A store is three files. A fault is a copy of them with something wrong: bytes, or rows changed behind surefoot's back.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import apsw

from tests.damage.agent import RUNS

Files = dict[str, bytes]
"""Suffix -> content: "" is the database."""
SUFFIXES = ("", "-wal", "-anchor")
PAGE = 4096

LIVES = {
    # Each line is the life of one process: how it ends, and which runs it drives.
    "closed": [("end", "first"), ("end", "second"), ("end", "third")],
    "finished": [("end", "first", "second"), ("kill", "third")],
    "interrupted": [("end", "first"), ("pay second 2", "second"), ("step third 2", "third")],
}
"""`closed`: all of it is in the database. `finished`: done, but the newest is in the log. `interrupted`: a run that
died in an effect, and a newer one that died in a step; neither was folded into the database."""


@dataclass(frozen=True)
class Original:
    name: str
    files: Files
    older: list[Files]
    """As they were after each earlier process."""
    ledger: str

    def write(self, folder: Path) -> Path:
        """For another process: `read_original` gets it back."""
        for number, files in enumerate([*self.older, self.files]):
            place(files, folder / f"{number}")
        (folder / "ledger").write_text(self.ledger)
        return folder


def read_original(folder: Path, name: str) -> Original:
    stages = [_files(stage) for stage in sorted(folder.iterdir()) if stage.is_dir()]
    return Original(name, stages[-1], stages[:-1], (folder / "ledger").read_text())


def build(name: str, folder: Path) -> Original:
    stages: list[Files] = []
    for how, *runs in LIVES[name]:
        ended = subprocess.run(
            [sys.executable, "-m", "tests.damage.agent", str(folder), how, *runs],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == (0 if how == "end" else -signal.SIGKILL), ended.stderr
        stages.append(_files(folder))
    return Original(name, stages[-1], stages[:-1], (folder / "ledger").read_text())


def _files(folder: Path) -> Files:
    """In a process that never has this very store open."""
    found = {suffix: folder / f"runs.db{suffix}" for suffix in SUFFIXES}
    return {suffix: path.read_bytes() for suffix, path in found.items() if path.exists()}


def place(files: Files, folder: Path) -> Path:
    """A fresh folder with these files. The path of the database."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for suffix, content in files.items():
        (folder / f"runs.db{suffix}").write_bytes(content)
    return folder / "runs.db"


@contextmanager
def scratch(otherwise: Path) -> Iterator[Path]:
    """A folder in memory where there is one: thousands of stores are written, and none has to survive."""
    memory = "/dev/shm"
    folder = Path(tempfile.mkdtemp(prefix="surefoot-damage-", dir=memory if os.access(memory, os.W_OK) else otherwise))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


# --- faults ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fault:
    kind: str
    what: str
    files: Files
    statements: tuple[tuple[str, tuple[object, ...]], ...] = field(default=())

    def place(self, folder: Path) -> Path:
        path = place(self.files, folder)
        if self.statements:
            connection = apsw.Connection(str(path))
            for statement, bound in self.statements:
                connection.execute(statement, bound).fetchall()
            connection.close()
        return path

    def __str__(self) -> str:
        return f"{self.kind}: {self.what}"


def flips(original: Original, count: int, seed: str) -> Iterator[Fault]:
    """Single bits, spread evenly: each file is cut into stretches, and one bit of each is flipped."""
    chance = random.Random(f"{original.name} {seed}")
    for suffix, share in _shares(original.files, count).items():
        bits = len(original.files[suffix]) * 8
        for n in range(share):
            bit = chance.randrange(bits * n // share, max(bits * (n + 1) // share, bits * n // share + 1))
            yield flip(original, suffix, bit)


def flip(original: Original, suffix: str, bit: int) -> Fault:
    bad = bytearray(original.files[suffix])
    bad[bit // 8] ^= 1 << bit % 8
    return _altered(original, "bit flipped", f"bit {bit} of runs.db{suffix}", suffix, bytes(bad))


def _shares(files: Files, count: int) -> dict[str, int]:
    """By size, but the anchor gets a tenth at least: it is small, and everything depends on it."""
    anchor = min(count // 10, len(files["-anchor"]) * 8)
    rest = {suffix: len(content) for suffix, content in files.items() if content and suffix != "-anchor"}
    total = sum(rest.values())
    return {"-anchor": anchor, **{suffix: (count - anchor) * size // total + 1 for suffix, size in rest.items()}}


def truncations(original: Original, count: int, seed: str) -> Iterator[Fault]:
    """Copies that broke off: at nothing, at and around the borders of pages and frames, and at random."""
    chance = random.Random(f"{original.name} {seed}")
    for suffix, content in original.files.items():
        size = len(content)
        unit = {"": PAGE, "-wal": PAGE + 24, "-anchor": 512}[suffix]
        borders = [at + more for at in range(32 if suffix == "-wal" else 0, size, unit) for more in (-1, 0, 1)]
        picked = chance.sample(borders, min(count // 2, len(borders)))
        lengths = {0, 1, 100, size - 1, *picked, *(chance.randrange(size) for _ in range(count // 2 if size else 0))}
        for length in sorted(at for at in lengths if 0 <= at < size):
            yield _altered(original, "tail cut off", f"runs.db{suffix} ends at byte {length}", suffix, content[:length])


def zeroed(original: Original) -> Iterator[Fault]:
    """Blocks that never reached the disk: every one of them."""
    for suffix, content in original.files.items():
        for length in (512, 4096):
            for start in range(0, len(content), length):
                bad = content[:start] + bytes(len(content[start : start + length])) + content[start + length :]
                yield _altered(original, "block zeroed", f"{length} bytes of runs.db{suffix} at {start}", suffix, bad)


def misplaced(original: Original, count: int, seed: str) -> Iterator[Fault]:
    """Pages that were written to the place of another."""
    chance = random.Random(f"{original.name} {seed}")
    content = original.files[""]
    pages = len(content) // PAGE
    for _ in range(count):
        source, target = chance.sample(range(pages), 2)
        page = content[source * PAGE : (source + 1) * PAGE]
        bad = content[: target * PAGE] + page + content[(target + 1) * PAGE :]
        yield _altered(original, "page misplaced", f"page {source + 1} over page {target + 1}", "", bad)


def replaced(original: Original) -> Iterator[Fault]:
    """Older copies put back in part or whole, the anchor kept; and files that are gone."""
    now = original.files
    for number, older in enumerate(original.older):
        for label, files in (
            ("database and log", {**now, "": older[""], "-wal": older["-wal"]}),
            ("database, without a log", {"": older[""], "-anchor": now["-anchor"]}),
            ("database, under the newer log", {**now, "": older[""]}),
            ("log, over the newer database", {**now, "-wal": older["-wal"]}),
            ("anchor", {**now, "-anchor": older["-anchor"]}),
        ):
            yield Fault("older copy", f"{label} of process {number + 1}", files)
    for gone in SUFFIXES:
        yield Fault("file deleted", f"runs.db{gone}", {key: value for key, value in now.items() if key != gone})
    yield Fault("file deleted", "runs.db and its anchor", {"-wal": now["-wal"]})


def _altered(original: Original, kind: str, what: str, suffix: str, content: bytes) -> Fault:
    return Fault(kind, what, {**original.files, suffix: content})


# --- rows --------------------------------------------------------------------------------------------------------

_CONTENT = ("epoch", "at", "kind", "schema", "codec", "key", "body", "seal")
_COLUMNS = ", ".join(_CONTENT)
_HEAD_BACK = "UPDATE heads SET (seq, seal) = (SELECT seq, seal FROM entries WHERE pos = ?) WHERE run = ? AND seq > ?"
_HEAD_ALTERED = (
    "UPDATE heads SET seal = zeroblob(32) WHERE run = ? AND NOT EXISTS "
    "(SELECT 1 FROM entries e WHERE e.run = heads.run AND e.seq > heads.seq)"
)
"""Where the head was at the end already."""


def rows(original: Original, folder: Path, count: int, seed: str) -> Iterator[Fault]:
    """Records and parts deleted, altered, swapped, and put in the place of others."""
    chance = random.Random(f"{original.name} {seed}")
    entries, parts = _rows_of(original, folder)
    for kind, what, *statements in [
        *_few(chance, count, list(_record_faults(entries, chance))),
        *_few(chance, count, list(_part_faults(parts, chance))),
        *_head_faults(),
    ]:
        yield Fault(kind, what, original.files, tuple((sql, tuple(bound)) for sql, *bound in statements))


def _few(chance: random.Random, count: int, faults: list[tuple]) -> list[tuple]:
    """So many of each kind."""
    kinds: dict[str, list[tuple]] = {}
    for fault in faults:
        kinds.setdefault(fault[0], []).append(fault)
    return [fault for found in kinds.values() for fault in chance.sample(found, min(count, len(found)))]


def _rows_of(original: Original, folder: Path) -> tuple[list[tuple[int, str, int]], list[int]]:
    connection = apsw.Connection(str(place(original.files, folder)))
    entries = connection.execute("SELECT pos, run, seq FROM entries ORDER BY run, seq").fetchall()
    parts = [n for (n,) in connection.execute("SELECT n FROM parts").fetchall()]
    connection.close()
    return entries, parts


def _record_faults(entries: list[tuple[int, str, int]], chance: random.Random) -> Iterator[tuple]:
    for (pos, run, seq), (other, run2, seq2) in pairwise(entries):
        if run == run2:
            yield "records swapped", f"{run} {seq} and {seq2}", *_swapped("entries", "pos", _CONTENT, pos, other)
            yield "records swapped", f"places of {run} {seq} and {seq2}", *_places_swapped(pos, seq, other, seq2)
    for pos, run, seq in entries:
        other, run2, seq2 = chance.choice([entry for entry in entries if entry[1] != run])
        copy = f"UPDATE entries SET ({_COLUMNS}) = (SELECT {_COLUMNS} FROM entries WHERE pos = ?) WHERE pos = ?"
        yield "record of another run", f"{run2} {seq2} as {run} {seq}", (copy, other, pos)
        yield "records swapped", f"{run} {seq} and {run2} {seq2}", *_swapped("entries", "pos", _CONTENT, pos, other)
        yield "record deleted", f"{run} {seq}", ("DELETE FROM entries WHERE pos = ?", pos)
        yield "record deleted", f"{run} from {seq}", ("DELETE FROM entries WHERE run = ? AND seq >= ?", run, seq)
        yield "record altered", f"epoch of {run} {seq}", ("UPDATE entries SET epoch = epoch + 1 WHERE pos = ?", pos)
        yield (
            "record altered", f"body of {run} {seq}",
            ("UPDATE entries SET body = CAST(replace(CAST(body AS TEXT), '1', '2') || ' ' AS BLOB) WHERE pos = ?", pos),
        )  # fmt: skip
        yield "head moved back", f"{run} to {seq}", (_HEAD_BACK, pos, run, seq), (_HEAD_ALTERED, run)


def _places_swapped(pos: int, seq: int, other: int, seq2: int) -> list[tuple]:
    move = "UPDATE entries SET seq = ? WHERE pos = ?"
    return [(move, -1, pos), (move, seq, other), (move, seq2, pos)]


def _part_faults(parts: list[int], chance: random.Random) -> Iterator[tuple]:
    for n in parts:
        other = chance.choice([m for m in parts if m != n])
        yield "part deleted", f"{n}", ("DELETE FROM parts WHERE n = ?", n)
        for label, body in (
            ("is longer", "CAST(body || x'00' AS BLOB)"), ("is shorter", "substr(body, 1, length(body) - 1)"),
            ("is empty", "x''"), ("is a text", "CAST('x' AS TEXT)"),
            ("has another byte", "CAST(substr(body, 1, 20) || x'07' || substr(body, 22) AS BLOB)"),
        ):  # fmt: skip
            yield "part altered", f"body of {n} {label}", (f"UPDATE parts SET body = {body} WHERE n = ?", n)
        for column in ("kind", "codec", "size"):
            yield "part altered", f"{column} of {n}", (f"UPDATE parts SET {column} = {column} + 1 WHERE n = ?", n)
        yield "parts swapped", f"{n} and {other}", *_swapped("parts", "n", ("kind", "codec", "size", "body"), n, other)
        yield (
            "part renamed", f"{n}",
            ("UPDATE parts SET id = CAST(substr(id, 1, 31) || x'07' AS BLOB) WHERE n = ?", n),
        )  # fmt: skip


def _swapped(table: str, key: str, names: tuple[str, ...], one: int, other: int) -> list[tuple]:
    columns = ", ".join(names)
    return [
        (f"CREATE TEMP TABLE held AS SELECT * FROM {table} WHERE {key} = ?", one),
        (
            f"UPDATE {table} SET ({columns}) = (SELECT {columns} FROM {table} WHERE {key} = ?) WHERE {key} = ?",
            other,
            one,
        ),
        (f"UPDATE {table} SET ({columns}) = (SELECT {columns} FROM held) WHERE {key} = ?", other),
    ]


def _head_faults() -> Iterator[tuple]:
    for run, other in zip(RUNS, (*RUNS[1:], RUNS[0]), strict=True):
        yield "head deleted", run, ("DELETE FROM heads WHERE run = ?", run)
        yield "head altered", run, ("UPDATE heads SET seq = seq + 1 WHERE run = ?", run)
        yield "head altered", f"{run} has that of {other}", (
            "UPDATE heads SET (seq, seal) = (SELECT seq, seal FROM heads WHERE run = ?) WHERE run = ?", other, run)  # fmt: skip
        yield "run renamed", run, ("UPDATE heads SET run = 'x' || run WHERE run = ?", run)
        yield "run renamed", f"entries of {run}", ("UPDATE entries SET run = 'x' || run WHERE run = ?", run)
        yield "list altered", f"row of {run}", ("UPDATE runs SET status = 'failed' WHERE run = ?", run)
        yield "list altered", f"row of {run} deleted", ("DELETE FROM runs WHERE run = ?", run)
    yield "identity altered", "store id", ("UPDATE meta SET value = randomblob(16) WHERE key = 'store'",)
