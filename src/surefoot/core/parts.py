r"""Large and growing values by parts: what is new is stored, what was there before is named.

The canonical bytes of a value are cut (`cuts.py`); pieces become *leaves*, and a *recipe* says how they
follow each other. Stretches of a recipe become *nodes*, so that a value which grows changes few of them. The
entry keeps a `Reference`: size, SHA-256 of the whole, and the root recipe, all under the entry's seal. The
digest of a value knows nothing of parts, and nothing inside a value marks one: data cannot forge a reference.

A part is named by the hash of its content, with leaves and nodes kept apart:

    leaf = SHA-256("surefoot/leaf\0" + bytes)         recipe = item*
    node = SHA-256("surefoot/node\0" + recipe)        item   = "L" u16 bytes | "C" leaf id | "N" node id

*Presence is not health*: what is relied on when writing is looked at once, what is read is checked against its
name and its whole, and what is damaged is named, part by part, and healed when its content is written again.

Pure: stores answer through the functions they hand in.
"""

from __future__ import annotations

import binascii
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from hashlib import sha256
from itertools import islice
from struct import Struct as Layout
from typing import Final, NamedTuple

from msgspec import Struct

from surefoot.core.cure import NEWER_VERSION
from surefoot.core.cuts import Mark, pieces
from surefoot.core.forms import MAX_BYTES
from surefoot.errors import CodecMissing, Damaged, JournalCorrupt

LEAF: Final = 1
NODE: Final = 2
RAW: Final = 0
ZLIB: Final = 1

MAX_DEPTH: Final = 12
"""Nodes within nodes. Each holds four items or more, so this is enough for any value that can be stored."""
MAX_PART: Final = 64 * 1024
"""Bytes in one part, as content and as stored. Far above what is written (leaves 3 KB, nodes 12 KB), so the
rule for cuts can change; far below what would hurt when a forged part unfolds."""

_LITERAL: Final = ord("L")
_MARKS: Final = {ord("C"): LEAF, ord("N"): NODE}
_LEAF_DOMAIN: Final = b"surefoot/leaf\0"
_NODE_DOMAIN: Final = b"surefoot/node\0"
_DOMAINS: Final = {LEAF: _LEAF_DOMAIN, NODE: _NODE_DOMAIN}
_ID: Final = 32
_REFERENCE: Final = Layout(">Q32s")

_SHORT: Final = 160
"""Pieces up to here are written into the recipe: a row of their own would cost as much again."""
_TAIL: Final = 1024
"""The last piece is, up to here: it changes with every append."""
_FEWEST: Final = 4
_MOST: Final = 64
_BATCH: Final = 500
_MOST_KNOWN: Final = 100_000

Fetch = Callable[[Sequence[bytes]], Mapping[bytes, "Part"]]
"""The parts the store has for these ids."""


class Part(Struct, frozen=True):
    """A row of the store: one leaf or node. Stored once, however many values contain it."""

    id: bytes
    kind: int
    codec: int
    size: int
    """Bytes of the content, before compression."""
    body: bytes


class Reference(Struct, frozen=True):
    """What an entry holds in place of a value. Checks itself when made, by us or from stored text."""

    size: int
    digest: bytes
    """SHA-256 of the canonical bytes."""
    root: bytes

    def __post_init__(self) -> None:
        if not 0 <= self.size <= MAX_BYTES:
            raise _unreadable(f"it says {self.size} bytes, and no value has more than {MAX_BYTES}")
        if len(self.digest) != _ID:
            raise _unreadable(f"its digest has {len(self.digest)} bytes")
        try:
            _items(self.root)
        except ValueError as error:
            raise _unreadable(f"its recipe {error}") from None

    def encode(self) -> str:
        return binascii.b2a_base64(_REFERENCE.pack(self.size, self.digest) + self.root, newline=False).decode("ascii")

    @classmethod
    def decode(cls, text: str) -> Reference:
        try:
            packed = binascii.a2b_base64(text, strict_mode=True)
        except ValueError as error:
            raise _unreadable(f"it is not base64: {error}") from None
        if len(packed) < _REFERENCE.size:
            raise _unreadable("it is too short")
        size, digest = _REFERENCE.unpack_from(packed)
        reference = cls(size, digest, packed[_REFERENCE.size :])
        if reference.encode() != text:
            raise _unreadable("it is not written the one way it can be")
        return reference


class Cut(Struct, frozen=True):
    """A value in memory, cut: its reference, and the content of every part of it by id, children first."""

    reference: Reference
    leaves: dict[bytes, bytes]
    nodes: dict[bytes, bytes]

    def part(self, name: bytes) -> Part:
        """One part, ready to be stored. Leaves are compressed here, so what is not new costs nothing."""
        recipe = self.nodes.get(name)
        if recipe is not None:
            return Part(name, NODE, RAW, len(recipe), recipe)
        content = self.leaves[name]
        packed = zlib.compress(content)
        if len(packed) * 10 <= len(content) * 9:
            return Part(name, LEAF, ZLIB, len(content), packed)
        return Part(name, LEAF, RAW, len(content), content)

    def parts(self) -> list[Part]:
        """All parts, children before parents."""
        return self._these(self.leaves.keys() | self.nodes.keys())

    def _these(self, names: AbstractSet[bytes]) -> list[Part]:
        return [self.part(name) for held in (self.leaves, self.nodes) for name in held if name in names]


# --- writing ------------------------------------------------------------------------------------------------------


def cut(canonical: bytes, memo: Memo | None = None) -> Cut:
    """The parts of a value. The same bytes give the same parts, with a memo or without."""
    memo = memo or Memo()
    leaves, digest = memo.listed(canonical)
    items, root, nodes = memo.folded()
    for _ in range(MAX_DEPTH - 1):
        if not items:
            break
        items, open_ = _folded(items, nodes)
        root[:0] = open_
    return Cut(Reference(len(canonical), digest, b"".join([*items, *root])), leaves, nodes)


class Memo:
    """What was cut last under one name, so that a value which grows at its end costs what is new.

    It compares bytes, so it can save work and nothing else. It holds the last value in memory.
    """

    def __init__(self) -> None:
        self._raw = b""
        self._items: list[bytes] = []
        self._rest: list[bytes] = []
        """Items behind the last mark."""
        self._groups: list[tuple[int, bytes, bytes]] = []
        """Groups of items: how many items there are up to its end, its node, and the node's recipe."""
        self._leaves: list[tuple[bytes, bytes]] = []
        self._marks: list[tuple[Mark, int]] = []
        """Each with how many leaves are before it."""
        self._sum = (0, sha256())
        """The SHA-256 of so many bytes at the beginning."""

    def listed(self, canonical: bytes) -> tuple[dict[bytes, bytes], bytes]:
        """Cut the value. The leaves, and the digest of the whole."""
        same = _common(self._raw, canonical)
        while self._marks and self._marks[-1][0].at >= same:
            self._marks.pop()
        (at, count), leaves = self._marks[-1] if self._marks else (Mark(0, 0), 0)
        del self._items[count:], self._leaves[leaves:]
        while self._groups and self._groups[-1][0] > count:
            self._groups.pop()
        digest = self._digest(canonical, at)
        marks: list[Mark] = []
        found = pieces(canonical[at:] if at else canonical, marks)
        upto = marks[-1].pieces if marks else 0
        held: dict[bytes, bytes] = {}
        ends = {mark.pieces: mark for mark in marks}
        for number, piece in enumerate(found[:upto], 1):
            self._items.append(_item(piece, _SHORT, held))
            if number in ends:
                mark = Mark(at + ends[number].at, count + number)
                self._marks.append((mark, len(self._leaves) + len(held)))
        self._leaves += held.items()
        self._raw = canonical
        rest: dict[bytes, bytes] = {}
        self._rest = _listed(found[upto:], rest)
        leaves_ = dict(self._leaves)
        leaves_.update(rest)
        return leaves_, digest

    def folded(self) -> tuple[list[bytes], list[bytes], dict[bytes, bytes]]:
        """The first level of nodes over all items, the items after the last of them, and what the nodes contain."""
        items = self._items + self._rest
        done = self._groups[-1][0] if self._groups else 0
        new: dict[bytes, bytes] = {}
        stops: list[int] = []
        closed, open_ = _folded(items[done:], new, stops)
        self._groups += [(done + stop, item, new[item[1:]]) for stop, item in zip(stops, closed, strict=True)]
        nodes = [item for _, item, _ in self._groups]
        return nodes, open_, {item[1:]: recipe for _, item, recipe in self._groups}

    def _digest(self, canonical: bytes, at: int) -> bytes:
        upto, known = self._sum
        if upto > at:
            upto, known = 0, sha256()
        view = memoryview(canonical)
        known.update(view[upto:at])
        self._sum = at, known
        whole = known.copy()
        whole.update(view[at:])
        return whole.digest()


def _common(one: bytes, other: bytes) -> int:
    """About how many bytes are the same at the beginning of both; never too many."""
    low, high = 0, min(len(one), len(other))
    if not high or one[:64] != other[:64]:
        return 0
    while high - low > 64:
        middle = (low + high) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle
    return low


def lacking(value: Cut, sound: AbstractSet[bytes], fetch: Fetch) -> list[Part]:
    """The parts to write, children before parents: those that the store does not have, or not as they were written.

    `sound` are parts that need no look, since they were seen to be whole. All others are read: a part that is
    there but damaged would else be relied on for ever. Writing it again from memory heals every value that has it.
    """
    unsure = [name for held in (value.leaves, value.nodes) for name in held if name not in sound]
    found = fetch(unsure) if unsure else {}
    return value._these({name for name in unsure if name not in found or fault(found[name])})


def _listed(found: list[bytes], leaves: dict[bytes, bytes]) -> list[bytes]:
    """The items of a flat recipe."""
    items = [_item(piece, _SHORT, leaves) for piece in found[:-1]]
    return items + [_item(piece, _TAIL, leaves) for piece in found[-1:]]


def _item(piece: bytes, literal: int, leaves: dict[bytes, bytes]) -> bytes:
    if len(piece) <= literal:
        return b"L" + len(piece).to_bytes(2, "big") + piece
    name = sha256(_LEAF_DOMAIN + piece).digest()
    leaves[name] = piece
    return b"C" + name


def _folded(
    items: list[bytes], nodes: dict[bytes, bytes], stops: list[int] | None = None
) -> tuple[list[bytes], list[bytes]]:
    """Groups of items as nodes, and the items after the last group.

    The id of an item decides whether its group ends, so groups follow content as cuts do. The open group is left
    to the root: an append then rewrites the root and no row.
    """
    closed = []
    start = 0
    for stop, item in enumerate(items, 1):
        length = stop - start
        if length < _FEWEST or (length < _MOST and (item[0] == _LITERAL or item[-1] & 1)):
            continue
        recipe = b"".join(items[start:stop])
        name = sha256(_NODE_DOMAIN + recipe).digest()
        nodes[name] = recipe
        closed.append(b"N" + name)
        if stops is not None:
            stops.append(stop)
        start = stop
    return closed, items[start:]


# --- reading ------------------------------------------------------------------------------------------------------


def expand(reference: Reference, fetch: Fetch) -> bytes:
    """The canonical bytes of a value, exactly as they were cut; or JournalCorrupt, or CodecMissing."""
    recipes, leaves = _gathered(reference, fetch)
    whole = _joined(reference, recipes, leaves)
    if len(whole) != reference.size:
        raise _accused(leaves, f"make {len(whole)} bytes, where {reference.size} were recorded")
    if sha256(whole).digest() != reference.digest:
        raise _accused(leaves, "make other bytes than were recorded")
    return bytes(whole)


def damaged_parts(reference: Reference, fetch: Fetch) -> dict[bytes, str]:
    """Which parts of a value are missing or not what was written, each with what is wrong.

    What is below a damaged node cannot be found; mend the node and look again.
    """
    bad: dict[bytes, str] = {}
    seen: set[_Link] = set()
    level = [_items(reference.root)]
    for _ in range(MAX_DEPTH + 2):
        links = [link for link in _links(level) if link not in seen]
        seen.update(links)
        if not links:
            return bad
        found = fetch([link.id for link in links])
        level = []
        for link in links:
            try:
                level.append(_below(link, found.get(link.id)))
            except Damaged as error:
                bad[link.id] = error.facts["why"]
    raise _too_deep()


class Whole:
    """Parts that were found whole, and the row that each had then. Every row is read again; one that has not changed by a
    byte is whole without being unpacked again.
    """

    def __init__(self) -> None:
        self._rows: dict[bytes, tuple[int, int, int, bytes]] = {}

    def check(self, reference: Reference, fetch: Fetch) -> None:
        """Raised if a part of this value is missing, or not what its name says."""
        seen: set[_Link] = set()
        level = [_items(reference.root)]
        for _ in range(MAX_DEPTH + 2):
            links = [link for link in _links(level) if link not in seen]
            if not links:
                return
            seen.update(links)
            found = fetch([link.id for link in links])
            level = [items for link in links if (items := self._below(link, found.get(link.id)))]
        raise _too_deep()

    def _below(self, link: _Link, part: Part | None) -> list[_Item]:
        if part is None or type(part.body) is not bytes or part.kind != link.kind:
            return _below(link, part)
        row = (part.kind, part.codec, part.size, sha256(part.body).digest())
        if self._rows.get(link.id) == row:
            return _items(part.body) if link.kind == NODE else []
        items = _below(link, part)
        if len(self._rows) >= _MOST_KNOWN:
            self._rows.clear()
        self._rows[link.id] = row
        return items


def fault(part: Part) -> str:
    """What is wrong with one stored part, whoever needs it; empty if nothing is."""
    if part.kind == LEAF and _is_sound_leaf(part):
        return ""  # as nearly always; all else is looked at more slowly, to say what is wrong
    if type(part.id) is not bytes:
        return "is stored under something that is no name"
    try:
        _below(_Link(NODE if part.kind == NODE else LEAF, part.id), part)
    except Damaged as error:
        return str(error.facts["why"])
    return ""


def _is_sound_leaf(part: Part) -> bool:
    body, size = part.body, part.size
    if type(body) is not bytes or type(size) is not int or not 0 < size <= MAX_PART or len(body) > MAX_PART:
        return False
    if part.codec == ZLIB:
        inflater = zlib.decompressobj()
        try:
            body = inflater.decompress(body, size + 1)
        except zlib.error:
            return False
        if not inflater.eof or inflater.unused_data:
            return False
    elif part.codec != RAW:
        return False
    return len(body) == size and sha256(_LEAF_DOMAIN + body).digest() == part.id


def reachable(references: Iterable[Reference], fetch: Fetch) -> set[bytes]:
    """Every part that these references need. Only nodes are fetched, each once.

    All that is not in the answer may be deleted, so a node that is missing or damaged is raised: what it
    once named is not known.
    """
    reached: set[_Link] = set()
    level = _new_nodes((_items(reference.root) for reference in references), reached)
    for _ in range(MAX_DEPTH):
        below: list[_Link] = []
        for batch in _batches(level):
            found = fetch([link.id for link in batch])
            below += _new_nodes((_below(link, found.get(link.id)) for link in batch), reached)
        level = below
    if level:
        raise _too_deep()
    return {link.id for link in reached}


def _gathered(reference: Reference, fetch: Fetch) -> tuple[dict[bytes, list[_Item]], dict[bytes, Part]]:
    """Every part of a value, level by level, each fetched once; nodes are checked before they are followed.

    A level is walked again if it is met again further down, so depth is that of the longest way, and parts that
    contain themselves end at the limit.
    """
    recipes: dict[bytes, list[_Item]] = {}
    leaves: dict[bytes, Part] = {}
    level = [_items(reference.root)]
    room = reference.size - _literal_bytes(level)
    for _ in range(MAX_DEPTH + 1):
        links = _links(level)
        new = [link for link in links if link.id not in (recipes if link.kind == NODE else leaves)]
        if len(new) > room:  # each of them makes a byte at least
            raise _accused(leaves, _too_much(reference))
        found = fetch([link.id for link in new]) if new else {}
        for link in new:
            part = found.get(link.id)
            if link.kind == NODE:
                recipes[link.id] = _below(link, part)
                room -= _literal_bytes([recipes[link.id]])
            else:
                leaves[link.id] = part = _row(link, part)
                room -= part.size
        level = [recipes[link.id] for link in links if link.kind == NODE]
        if not level:
            return recipes, leaves
    raise _too_deep()


def _joined(reference: Reference, recipes: dict[bytes, list[_Item]], leaves: dict[bytes, Part]) -> bytearray:
    """The bytes the recipes make; raised as soon as they are more than recorded.

    What occurs again is copied from where it first came out, so work and memory follow the stored bytes and
    the recorded size, however often parts name each other.
    """
    whole = bytearray()
    places: dict[bytes, tuple[int, int]] = {}

    def write(items: list[_Item]) -> None:
        for item in items:
            if isinstance(item, bytes):
                content: bytes | bytearray = item
            elif item.id in places:
                start, stop = places[item.id]
                content = whole[start:stop]
            elif item.kind == LEAF:
                content = _content(item, leaves[item.id])
                places[item.id] = (len(whole), len(whole) + len(content))
            else:
                start = len(whole)
                write(recipes[item.id])
                places[item.id] = (start, len(whole))
                continue
            if len(whole) + len(content) > reference.size:
                raise _accused(leaves, _too_much(reference))
            whole.extend(content)

    write(_items(reference.root))
    return whole


def _accused(leaves: dict[bytes, Part], what: str) -> Damaged:
    """The error for a value that did not come out right: the damaged part, if it is one of these.

    Nodes were checked on the way. Leaves are hashed only now: the whole has a hash of its own, and mostly it holds.
    """
    try:
        for name, part in leaves.items():
            link = _Link(LEAF, name)
            _check_name(link, _content(link, part))
    except Damaged as error:
        return error
    return JournalCorrupt(f"The parts of a value {what}; each part is what its name says.", facts={"why": what})


# --- parts, one by one --------------------------------------------------------------------------------------------


def _row(link: _Link, part: Part | None) -> Part:
    """The part, if what surrounds its content can be right. Stores may answer with anything."""
    if part is None:
        raise _bad(link, "is missing")
    if part.kind != link.kind:
        raise _bad(link, f"is stored as kind {part.kind!r}, not as a {_kind(link)}")
    if type(part.codec) is not int or type(part.size) is not int or type(part.body) is not bytes:
        raise _bad(link, "is stored with fields of the wrong type")
    if part.codec not in (RAW, ZLIB):
        raise CodecMissing(
            f"part {link.id.hex()} is stored with codec {part.codec}, which this version of surefoot does not have.",
            facts={"part": link.id.hex(), "codec": part.codec, "why": f"is stored with the unknown codec {part.codec}"},
            cures=(NEWER_VERSION,),
        )
    if not 0 < part.size <= MAX_PART or len(part.body) > MAX_PART:
        raise _bad(
            link, f"says it has {part.size} bytes and is stored in {len(part.body)}: 1 to {MAX_PART} can be right"
        )
    return part


def _content(link: _Link, part: Part | None) -> bytes:
    """What a stored part contains, whether or not it is what its name says."""
    part = _row(link, part)
    if part.codec == RAW:
        content = part.body
    elif link.kind == NODE:
        raise _bad(link, "is a compressed node, and nodes never are")
    else:
        content = _inflated(link, part)
    if len(content) != part.size:
        raise _bad(link, f"says it has {part.size} bytes, but its content is shorter or longer")
    return content


def _inflated(link: _Link, part: Part) -> bytes:
    inflater = zlib.decompressobj()
    try:
        # One byte more than there may be: it shows a bomb, and leaves zlib room to see its own checksum.
        content = inflater.decompress(part.body, part.size + 1)
    except zlib.error as error:
        raise _bad(link, f"cannot be decompressed: {error}") from None
    if len(content) == part.size and not inflater.eof:
        raise _bad(link, "is cut off")
    if inflater.unused_data:
        raise _bad(link, f"is followed by {len(inflater.unused_data)} bytes that do not belong to it")
    return content


def _check_name(link: _Link, content: bytes) -> None:
    if sha256(_DOMAINS[link.kind] + content).digest() != link.id:
        raise _bad(link, "is not what was written: its content has another hash")


def _below(link: _Link, part: Part | None) -> list[_Item]:
    """The items of a node, none for a leaf; raised if the part is not what its name says."""
    content = _content(link, part)
    _check_name(link, content)
    if link.kind == LEAF:
        return []
    try:
        return _items(content)
    except ValueError as error:
        raise _bad(link, str(error)) from None


# --- recipes ------------------------------------------------------------------------------------------------------


class _Link(NamedTuple):
    kind: int
    id: bytes


_Item = bytes | _Link


def _items(recipe: bytes) -> list[_Item]:
    """The items of a recipe: literals as bytes. ValueError says what is wrong with it."""
    items: list[_Item] = []
    at, end = 0, len(recipe)
    while at < end:
        mark = recipe[at]
        if mark == _LITERAL:
            start = at + 3
            at = start + int.from_bytes(recipe[at + 1 : start], "big")
            if at == start <= end:
                raise ValueError("has an empty item")
            items.append(recipe[start:at])
        elif mark in _MARKS:
            start = at + 1
            at = start + _ID
            items.append(_Link(_MARKS[mark], recipe[start:at]))
        else:
            raise ValueError(f"has an item of the unknown kind {mark}")
        if at > end:
            raise ValueError("ends within an item")
    return items


def _links(recipes: Iterable[list[_Item]]) -> list[_Link]:
    """The parts that recipes name, each once."""
    return list(dict.fromkeys(item for items in recipes for item in items if isinstance(item, _Link)))


def _new_nodes(recipes: Iterable[list[_Item]], reached: set[_Link]) -> list[_Link]:
    """The nodes that recipes name and that were not reached before; leaves are only noted."""
    new = [link for link in _links(recipes) if link not in reached]
    reached.update(new)
    return [link for link in new if link.kind == NODE]


def _literal_bytes(recipes: Iterable[list[_Item]]) -> int:
    return sum(len(item) for items in recipes for item in items if isinstance(item, bytes))


def _batches(links: list[_Link]) -> Iterator[list[_Link]]:
    rest = iter(links)
    while batch := list(islice(rest, _BATCH)):
        yield batch


# --- what is said when something is wrong --------------------------------------------------------------------------


def _kind(link: _Link) -> str:
    return "node" if link.kind == NODE else "leaf"


def _bad(link: _Link, why: str) -> JournalCorrupt:
    name = link.id.hex()
    return JournalCorrupt(f"part {name} ({_kind(link)}) {why}.", facts={"part": name, "why": why})


def _too_deep() -> JournalCorrupt:
    why = f"nest deeper than {MAX_DEPTH} levels"
    return JournalCorrupt(f"The parts of a value {why}.", facts={"why": why})


def _too_much(reference: Reference) -> str:
    return f"make more than the {reference.size} bytes that were recorded"


def _unreadable(why: str) -> JournalCorrupt:
    return JournalCorrupt(f"The reference to a value stored by parts cannot be read: {why}.", facts={"why": why})
