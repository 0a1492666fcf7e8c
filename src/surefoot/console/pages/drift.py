"""What changed outside of a run, part by part. A difference is shown only if both sides are proven.

The expected side is a text on record whose SHA-256 is the expected one; the found side is read, and has the hash that was found. Of
anything else only the fingerprints are shown. The console looks at files itself only where it runs on the host where they were
last seen, in the same folder.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from surefoot.console.context import Page, Request
from surefoot.console.pages import decisions, follows
from surefoot.console.pages.looked import Broken, Looked
from surefoot.console.pages.parts import Line, Piece, code, many, say
from surefoot.console.pages.run import _broken, _common, _looked
from surefoot.core.entry import Drift, RunAdopted, RunStopped
from surefoot.core.expectation import UNSEEN
from surefoot.engine.operate import places
from surefoot.view import text

MOST: Final = 256 * 1024
_HASH: Final = re.compile(r"^([0-9a-f]{64})(.*)$", re.DOTALL)
_FILE: Final = "file:"
_AROUND: Final = 3


class DiffLine(Struct, frozen=True):
    sign: str
    a: int
    b: int
    pieces: Sequence[Piece]


class Part(Struct, frozen=True):
    """One part of the world that is not as it was left."""

    witness: str
    part: str
    what: str
    expected: str
    expected_more: str
    by: str
    when: str
    proof: str
    found: str
    found_more: str
    read: str
    lines: Sequence[DiffLine]
    mode_only: bool = False


class Rewound(Struct, frozen=True):
    address: str
    lines: Sequence[Line]


async def show(request: Request) -> Page:
    looked = await _looked(request)
    if isinstance(looked, Broken):
        return await _broken(request, looked)
    found = await decisions.drift_now(request, looked)
    values: dict[str, Any] = await _common(request, looked, "world")
    parts = await request.look(lambda _: [_part(looked, one, _texts(looked)) for one in found])
    accept = await decisions.accept(request, looked, found)
    rewound = await _rewound(request, looked, found)
    stop = next((one for one in looked.state.stops if one.drift), None)
    values |= {
        "parts": parts,
        "accept": accept,
        "accept_lines": accept.ways[0].then if accept else [],
        "rewound": rewound,
        "as_it_should": _as_it_should(looked, found) if places.is_here(looked.state) else [],
        "first_found": _first_found(looked, stop is not None),
        "here_now": places.is_here(looked.state),
        "many": many(len(found), "part"),
    }
    return Page("drift.html", values)


def _as_it_should(looked: Looked, found: Iterable[Drift]) -> list[str]:
    drifted = {one.part for one in found}
    return [part.removeprefix(_FILE) for part in sorted(looked.state.world.parts) if part not in drifted]


def _first_found(looked: Looked, stopped: bool) -> str:
    if not stopped:
        return ""
    at = next((record.at for record, entry in reversed(looked.story) if isinstance(entry, RunStopped)), 0)
    who = next(
        (
            f"worker {entry.worker[:8]} on {entry.host}"
            for _, entry in reversed(looked.story)
            if isinstance(entry, RunAdopted)
        ),
        "",
    )
    return f"First found at {text.moment(at):%H:%M} UTC by {who}." if at else ""


async def _rewound(request: Request, looked: Looked, found: Sequence[Drift]) -> Rewound | None:
    """If it went back to before the call that left what has changed."""
    first = next((one.by for one in found if one.by in looked.state.calls), "")
    if not first:
        return None
    plan = await request.suppose(looked.id, {"do": "rewind", "at": first})
    return Rewound(
        first,
        [Line("back", say("What was recorded from ", code(first), " on is set aside and kept.")), *follows.lines(plan)],
    )


# --- proofs ------------------------------------------------------------------------------------------


def _texts(looked: Looked) -> dict[str, tuple[str, str]]:
    """SHA-256 -> (text, where it is on record), of every text that calls were given or gave."""
    known: dict[str, tuple[str, str]] = {}
    for call in looked.page.calls:
        for where, raw in (("arguments", call.raw_args), ("result", call.raw_result)):
            for found in _strings(raw):
                digest = hashlib.sha256(found.encode("utf-8", "surrogatepass")).hexdigest()
                known[digest] = (found, f"the {where} of {call.address}")
    return known


def _strings(raw: str) -> Iterator[str]:
    if not raw:
        return
    waiting: list[Any] = [json.loads(raw)]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str) and len(one) <= MOST:
            yield one
        elif isinstance(one, dict):
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one


def _part(looked: Looked, one: Drift, known: dict[str, tuple[str, str]]) -> Part:
    expected, expected_more = _hash(one.expected)
    found, found_more = _hash(one.actual)
    was, where = known.get(expected, (None, ""))
    now = _content(looked, one, found)
    lines: Sequence[DiffLine] = ()
    if was is not None and now is not None:
        lines = diff(was, now)
    elif one.what == "added" and now is not None:
        lines = diff("", now)
    elif one.what == "removed" and was is not None:
        lines = diff(was, "")
    past = looked.state.calls.get(one.by)
    proof = (
        f"content proven: {where} {'have' if where.startswith('the arguments') else 'has'} this hash"
        if was is not None
        else ""
    )
    if not proof and one.what not in ("added", UNSEEN):
        proof = "Only the fingerprint was kept"
    return Part(
        one.witness, one.part.removeprefix(_FILE), one.what, expected or one.expected, expected_more, one.by,
        text.ago(past.ended or past.at, looked.now) if past else "", proof, found or one.actual, found_more,
        "content read, and has this hash" if now is not None else "", lines, bool(expected) and expected == found,
    )  # fmt: skip


def _hash(told: str) -> tuple[str, str]:
    match = _HASH.match(told)
    return (match[1], match[2].strip().strip("()")) if match else ("", "")


def _content(looked: Looked, one: Drift, digest: str) -> str | None:
    """What is there now, if it is here, is text, and has that hash."""
    if not digest or not one.part.startswith(_FILE) or not places.is_here(looked.state):
        return None
    path = Path(looked.state.world.folder or ".", one.part.removeprefix(_FILE))
    try:
        with path.open("rb") as file:
            content = file.read(MOST + 1)
        if len(content) > MOST or hashlib.sha256(content).hexdigest() != digest:
            return None
        return content.decode("utf-8")
    except (OSError, ValueError):
        return None


# --- two texts, line by line -------------------------------------------------------------------------


def diff(a: str, b: str) -> list[DiffLine]:
    """Unified, with the words that differ marked in lines that belong to each other."""
    old, new = a.splitlines(), b.splitlines()
    found: list[DiffLine] = []
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for group in matcher.get_grouped_opcodes(_AROUND):
        if found:
            found.append(DiffLine("…", 0, 0, [Piece("…")]))
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                found += [DiffLine(" ", i + 1, j1 + i - i1 + 1, [Piece(old[i])]) for i in range(i1, i2)]
            else:
                found += _changed(old[i1:i2], new[j1:j2], i1, j1)
    return found


def _changed(old: Sequence[str], new: Sequence[str], i: int, j: int) -> Iterator[DiffLine]:
    twins = _twins(old, new)
    for number, line in enumerate(old):
        other = twins.get(number)
        yield DiffLine("-", i + number + 1, 0, _marked(line, new[other])[0] if other is not None else [Piece(line)])
    backwards = {other: number for number, other in twins.items()}
    for number, line in enumerate(new):
        other = backwards.get(number)
        yield DiffLine("+", 0, j + number + 1, _marked(old[other], line)[1] if other is not None else [Piece(line)])


def _twins(old: Sequence[str], new: Sequence[str]) -> dict[int, int]:
    """Which line became which, where they are alike."""
    if len(old) * len(new) > 400:
        return {}
    scored = sorted(
        (
            (difflib.SequenceMatcher(None, one, other).ratio(), number, place)
            for number, one in enumerate(old)
            for place, other in enumerate(new)
        ),
        reverse=True,
    )
    found: dict[int, int] = {}
    for ratio, number, place in scored:
        if ratio > 0.5 and number not in found and place not in found.values():
            found[number] = place
    return found


def _marked(a: str, b: str) -> tuple[list[Piece], list[Piece]]:
    words_a, words_b = re.findall(r"\w+|\W", a), re.findall(r"\w+|\W", b)
    left: list[Piece] = []
    right: list[Piece] = []
    for tag, i1, i2, j1, j2 in difflib.SequenceMatcher(None, words_a, words_b, autojunk=False).get_opcodes():
        kind = "" if tag == "equal" else "b"
        left += [Piece("".join(words_a[i1:i2]), kind)] if i2 > i1 else []
        right += [Piece("".join(words_b[j1:j2]), kind)] if j2 > j1 else []
    return left, right
