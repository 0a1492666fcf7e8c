"""Forged and broken bytes for the decoders, and the hook that sees whatever a decoder makes the interpreter do.

An audit hook cannot be removed, so the long series runs in a process of its own: `python -m tests.hostile COUNT SEED`
writes how many inputs were read, how they ended, and what was found. Nothing here needs hypothesis: the inputs are
mutations of real encodings and arrangements of our own words, drawn from a seed.
"""

from __future__ import annotations

import json
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from msgspec import Raw

from surefoot.core import decoder, values
from surefoot.core.entry import KINDS, StepDone
from surefoot.core.parts import Reference, cut
from surefoot.core.seal import CODEC_JSON, NO_KEY, SCHEMA, Record, from_record, to_body
from surefoot.errors import SurefootError

FORBIDDEN = (
    "import", "exec", "compile", "open", "os.", "subprocess.", "socket.", "ctypes.", "marshal.", "pickle.",
    "code.__new__", "shutil.", "tempfile.", "glob.", "urllib.", "sqlite3.", "function.__new__",
)  # fmt: skip
TAGS = sorted(decoder._REVIVERS)
WORDS = (
    "nan", "inf", "0x1", "-0x" + "f" * 20, "AA==", "2024-01-01", "2024-01-01T00:00:00", "12:00:00+01:00", "+01:00", "Europe/Berlin", "1E+5", "NaN",
    "***", "<f8", "|O", "<U99999999999", "|b1", "hostile.Target", "hostile.Colour", "exact.Point", "exact.Pair", "exact.Colour", "RED", "os.system", "builtins", "registered", "surefoot",
    "ValueError", "OSError", "SystemExit", "ExceptionGroup", "UnicodeDecodeError", "SyntaxError", "ImportError", "__class__", "12345678123456781234567812345678",
)  # fmt: skip
NAMES = (
    *TAGS, "$", "$eval", "$import", "a", "x", "type", "message", "as", "parts", "args", "state", "errors", "notes", "version", "__class__",
)  # fmt: skip

_seen: list[str] | None = None


def _watch(event: str, args: tuple[Any, ...]) -> None:
    if _seen is not None and event.startswith(FORBIDDEN) and not _is_zone_table(event, args):
        _seen.append(f"{event} {args[:1]}")


def _is_zone_table(event: str, args: tuple[Any, ...]) -> bool:
    """The library's own table of time zones is the one thing that is looked up, by a key of a closed form."""
    where = str(args[0]) if args else ""
    if event == "import":
        return where == "tzdata" or where.startswith("tzdata.zoneinfo")
    return event in ("open", "os.listdir", "os.scandir") and "zoneinfo" in where and ".." not in where


@contextmanager
def watched() -> Iterator[list[str]]:
    """What was imported, opened or run meanwhile. Only what is needed for the hook stays behind."""
    global _seen  # noqa: PLW0603 - an audit hook has no other way to know
    if not getattr(sys, "_surefoot_watched", False):
        sys.addaudithook(_watch)
        sys._surefoot_watched = True  # type: ignore[attr-defined]
    _seen = found = []
    try:
        yield found
    finally:
        _seen = None


# --- inputs -------------------------------------------------------------------------------------------------------


def inputs(chance: random.Random, corpus: list[bytes]) -> Iterator[bytes]:
    """Without end."""
    ways: list[Callable[[random.Random, list[bytes]], bytes]] = [
        _flipped, _flipped, _cut_out, _repeated, _spliced, _reworded, _arranged, _arranged, _arranged, _key_twice,
        _nested, _huge_number, _noise,
    ]  # fmt: skip
    while True:
        yield chance.choice(ways)(chance, corpus)


def _flipped(chance: random.Random, corpus: list[bytes]) -> bytes:
    raw = bytearray(chance.choice(corpus))
    for _ in range(chance.randint(1, 4)):
        raw[chance.randrange(len(raw))] = chance.choice((chance.randrange(256), *b'"$[]{},:0-\\'))
    return bytes(raw)


def _cut_out(chance: random.Random, corpus: list[bytes]) -> bytes:
    raw = chance.choice(corpus)
    start, stop = sorted(chance.choices(range(len(raw) + 1), k=2))
    return raw[:start] + raw[stop:]


def _repeated(chance: random.Random, corpus: list[bytes]) -> bytes:
    raw = chance.choice(corpus)
    start, stop = sorted(chance.choices(range(len(raw) + 1), k=2))
    return raw[:start] + raw[start:stop] * chance.randint(2, 5) + raw[stop:]


def _spliced(chance: random.Random, corpus: list[bytes]) -> bytes:
    one, other = chance.choices(corpus, k=2)
    return one[: chance.randrange(len(one) + 1)] + other[chance.randrange(len(other) + 1) :]


def _reworded(chance: random.Random, corpus: list[bytes]) -> bytes:
    """A real encoding under another tag, or with one of its words replaced."""
    raw = chance.choice(corpus).decode()
    tags = [tag for tag in TAGS if f'"{tag}"' in raw]
    if tags and chance.random() < 0.7:
        return raw.replace(f'"{chance.choice(tags)}"', f'"{chance.choice(NAMES)}"', 1).encode()
    pieces = raw.split('"')
    if len(pieces) > 2:
        pieces[chance.randrange(1, len(pieces), 2)] = chance.choice(WORDS)
    return '"'.join(pieces).encode()


def _arranged(chance: random.Random, corpus: list[bytes]) -> bytes:
    return json.dumps(_tree(chance, 5), separators=(",", ":")).encode()


def _tree(chance: random.Random, room: int) -> Any:
    pick = chance.random() if room else 1.0
    if pick < 0.3:
        return {chance.choice(TAGS): _tree(chance, room - 1)}
    if pick < 0.5:
        return [_tree(chance, room - 1) for _ in range(chance.randint(0, 4))]
    if pick < 0.65:
        return {chance.choice(NAMES): _tree(chance, room - 1) for _ in range(chance.randint(0, 4))}
    numbers = (0, 1, -1, 2, 55296, 2**31, 2**53 + 1, 2**63, -(2**63) - 1, 10**30, 0.5, -0.0, 1e308, True, False, None)
    return chance.choice(numbers) if chance.random() < 0.4 else chance.choice(WORDS)


def _key_twice(chance: random.Random, corpus: list[bytes]) -> bytes:
    key = json.dumps(chance.choice(NAMES))
    one, other = (chance.choice(corpus).decode() for _ in range(2))
    return f"{{{key}:{one},{key}:{other}}}".encode()


def _nested(chance: random.Random, corpus: list[bytes]) -> bytes:
    opening, closing = chance.choice((("[", "]"), ('{"a":', "}"), (f'{{"{chance.choice(TAGS)}":[', "]}")))
    depth = chance.choice((50, 100, 199, 200, 201, 1_000, 20_000))
    core = chance.choice(corpus).decode()
    return (opening * depth + core + closing * chance.choice((depth, depth, depth - 1, 0))).encode()


def _huge_number(chance: random.Random, corpus: list[bytes]) -> bytes:
    digits = chance.choice((19, 20, 400, 4_300, 4_301, 90_000))
    number = chance.choice(
        ("9" * digits, "-" + "9" * digits, f"1e{digits}", f"1.{'3' * digits}", f"-0.{'0' * digits}1")
    )
    text = chance.choice((number, f'"0x{"f" * digits}"', f'"{number}"'))
    return chance.choice(
        (text, f'{{"{chance.choice(TAGS)}":{text}}}', f'{{"{chance.choice(TAGS)}":[{text},1]}}')
    ).encode()


def _noise(chance: random.Random, corpus: list[bytes]) -> bytes:
    if chance.random() < 0.5:
        return chance.randbytes(chance.randint(0, 40))
    return "".join(chance.choices('{}[]":,\\$ \tautple0123456789.e-nl\ud800é', k=chance.randint(0, 40))).encode(
        "utf-8", "surrogatepass"
    )


# --- the series ---------------------------------------------------------------------------------------------------


def readers(chance: random.Random) -> list[tuple[str, Callable[[bytes], object]]]:
    """The ways in which stored bytes become objects. Values are by far the most."""

    def as_entry(raw: bytes) -> object:
        kind = chance.choice(list(KINDS))
        return from_record(Record("r", 1, 1, 1, kind, SCHEMA, CODEC_JSON, NO_KEY, raw, bytes(32)))

    def as_reference(raw: bytes) -> object:
        return Reference.decode(raw.decode("latin-1"))

    value = ("value", values.decode)
    return [value] * 7 + [
        ("failure", values.decode_error),
        ("summary of a failure", values.error_summary),
        ("entry", as_entry),
        ("reference", as_reference),
    ]


def corpus() -> list[bytes]:
    from tests.exact import EXACT, Colour, Pair, Point

    errors: list[Exception] = [
        ValueError("x"),
        OSError(2, "no", "file"),
        KeyError(("a", 1)),
        ExceptionGroup("g", [ValueError()]),
    ]
    samples = [*EXACT, Point(1, (2,)), Pair([], {}), Colour.RED]
    found = [values.encode(value) for value in samples] + [values.encode_error(error) for error in errors]
    small = [raw for raw in found if len(raw) < 2_000]
    large = values.encode([{"n": n, "text": "word " * 20} for n in range(40)])
    bodies = [
        to_body(StepDone("s#1", "d", Raw(b"1"), Raw(large), 1))[1],
        cut(large).reference.encode().encode(),
    ]
    return small + bodies


def series(count: int, seed: int) -> dict[str, Any]:
    """Read so many inputs, the hook watching. Whatever is neither a value nor an error of ours is a finding."""
    chance = random.Random(seed)
    real = corpus()
    ways = readers(chance)
    for raw in real:  # the imports that are written in the codec happen once, before we watch
        for _, read in ways:
            _end(read, raw)
    _end(values.decode, b'{"$timezone":"Unknown"}')
    source = inputs(chance, real)
    ends: Counter[str] = Counter()
    findings: list[str] = []
    for _ in range(count):
        raw = next(source)
        name, read = chance.choice(ways)
        with watched() as seen:
            end = _end(read, raw)
        if seen or end.startswith("!"):
            findings.append(f"{name} {raw[:200]!r} ({len(raw)} bytes): {end} {seen}")
        ends[end] += 1
    return {"read": count, "ends": ends, "findings": findings}


def _end(read: Callable[[bytes], object], raw: bytes) -> str:
    try:
        read(raw)
    except SurefootError as error:
        return type(error).__name__
    except BaseException as error:
        return f"!{error!r}"
    return "value"


if __name__ == "__main__":
    sys.stdout.write(json.dumps(series(int(sys.argv[1]), int(sys.argv[2]))))
