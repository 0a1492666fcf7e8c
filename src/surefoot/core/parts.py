r"""Large and growing values by parts: what is new is stored, what was there before is named.

The canonical bytes of a value are cut (`cuts.py`); pieces become *leaves*, and a *recipe* says how they
follow each other. Stretches of a recipe become *nodes*, so a growing value changes few of them. The
entry keeps a `Reference`: size, SHA-256 of the whole, and the root recipe, all under the entry's seal. The
digest of a value knows nothing of parts, and nothing inside a value marks one: data cannot forge a reference.

A part is named by the hash of its content, with leaves and nodes kept apart:

    leaf = SHA-256("surefoot/leaf\0" + bytes)         recipe = item*
    node = SHA-256("surefoot/node\0" + recipe)        item   = "L" u16 bytes | "C" leaf id | "N" node id

*Presence is not health*: parts that a write relies on are checked once, parts that are read are checked against their
name and their whole. Damage is named, part by part, and repaired when the content is written again.

Pure: stores answer through the functions they hand in.
"""

from __future__ import annotations

import binascii
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from hashlib import sha256
from struct import Struct as Layout
from typing import Final, NamedTuple

from msgspec import Struct

from surefoot.core import cuts
from surefoot.core.cure import NEWER_VERSION
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
rule for cuts can change; far below what would do harm when a forged part unfolds."""

_LITERAL: Final = ord("L")
_MARKS: Final = {ord("C"): LEAF, ord("N"): NODE}
_LEAF_DOMAIN: Final = b"surefoot/leaf\0"
_NODE_DOMAIN: Final = b"surefoot/node\0"
_DOMAINS: Final = {LEAF: _LEAF_DOMAIN, NODE: _NODE_DOMAIN}
_ID: Final = 32
_REFERENCE: Final = Layout(">Q32s")

_SHORT: Final = 160
"""Pieces up to this size are written into the recipe: a row of their own would cost as much again."""
_TAIL: Final = 1024
"""So is the last piece, up to this size: it changes with every append."""
_FEWEST: Final = 4
_MOST: Final = 64
_BATCH: Final = 500
_MOST_KNOWN_BYTES: Final = 32 * 1024 * 1024
"""Stored bytes that are kept in memory to compare with: enough for any state that is saved often."""

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
    """What an entry holds in place of a value. A reference checks itself when made, by us or from stored text."""

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
    rounds: list[cuts.Round] = []

    def part(self, name: bytes) -> Part:
        """One part, ready to be stored. Leaves are compressed here, so parts that are not new cost nothing."""
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


def cut(canonical: bytes, before: Cut | None = None) -> Cut:
    """The parts of a value. The same bytes give the same parts. `before`: a similar value. What it also contains is
    neither cut nor hashed again.
    """
    leaves: dict[bytes, bytes] = {}
    nodes: dict[bytes, bytes] = {}
    rounds, rest = cuts.cut(canonical, before.rounds if before is not None else ())
    known = {piece: name for name, piece in before.leaves.items()} if before is not None else {}
    items = _listed([*(piece for one in rounds for piece in one), *rest], leaves, known)
    root: list[bytes] = []
    for _ in range(MAX_DEPTH):
        items, open_ = _folded(items, nodes)
        root[:0] = open_
        if not items:
            break
    reference = Reference(len(canonical), sha256(canonical).digest(), b"".join([*items, *root]))
    return Cut(reference, leaves, nodes, rounds)


def lacking(value: Cut, sound: AbstractSet[bytes], fetch: Fetch) -> list[Part]:
    """The parts to write, children before parents: those that the store does not have, or not as they were written.

    `sound` are parts that need no check, since they were seen to be whole. All others are read: otherwise a part that
    is there but damaged would be relied on for ever. Writing a part again from memory repairs every value that has it.
    """
    unsure = [name for held in (value.leaves, value.nodes) for name in held if name not in sound]
    found = fetch(unsure) if unsure else {}
    return value._these({name for name in unsure if name not in found or fault(found[name])})


def _listed(found: list[bytes], leaves: dict[bytes, bytes], known: Mapping[bytes, bytes]) -> list[bytes]:
    """The items of a flat recipe."""
    items = [_item(piece, _SHORT, leaves, known) for piece in found[:-1]]
    return items + [_item(piece, _TAIL, leaves, known) for piece in found[-1:]]


def _item(piece: bytes, literal: int, leaves: dict[bytes, bytes], known: Mapping[bytes, bytes]) -> bytes:
    if len(piece) <= literal:
        return b"L" + len(piece).to_bytes(2, "big") + piece
    name = known.get(piece) if known else None
    if name is None:
        name = sha256(_LEAF_DOMAIN + piece).digest()
    leaves[name] = piece
    return b"C" + name


def _folded(items: list[bytes], nodes: dict[bytes, bytes]) -> tuple[list[bytes], list[bytes]]:
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

    What is below a damaged node cannot be found; fix the node and look again.
    """
    bad: dict[bytes, str] = {}

    def below(link: _Link, part: Part | None) -> list[_Item]:
        try:
            return _below(link, part)
        except Damaged as error:
            bad[link.id] = error.facts["why"]
            return []

    _visit([reference], fetch, below)
    return bad


def _visit(
    references: Iterable[Reference], fetch: Fetch, below: Callable[[_Link, Part | None], list[_Item]], *,
    leaves: bool = True,
) -> set[_Link]:  # fmt: skip
    """Every part of these values, level by level, each once. `below` looks at a part, and gives the items of a node.

    Without `leaves`, only nodes are fetched and looked at.
    """
    seen: set[_Link] = set()
    level = _links(_items(reference.root) for reference in references)
    for _ in range(MAX_DEPTH + 1 + leaves):
        new = [link for link in dict.fromkeys(level) if link not in seen]
        seen.update(new)
        wanted = new if leaves else [link for link in new if link.kind == NODE]
        if not wanted:
            return seen
        level = []
        for at in range(0, len(wanted), _BATCH):
            batch = wanted[at : at + _BATCH]
            found = fetch([link.id for link in batch])
            level += _links(below(link, found.get(link.id)) for link in batch)
    raise _too_deep()


class Whole:
    """Parts that were found whole, as they were stored then. Every part is read again; one that has not changed by a byte is
    whole without being unpacked and hashed again.
    """

    def __init__(self) -> None:
        self._known: dict[bytes, tuple[Part, list[_Item]]] = {}
        self._bytes = 0
        self.newest: Cut | None = None
        """The value that was cut last: the next one is similar. It may not have been stored."""

    def check(self, reference: Reference, fetch: Fetch) -> None:
        """Raises if a part of this value is missing, or does not match its name."""
        _visit([reference], fetch, self._below)

    def _below(self, link: _Link, part: Part | None) -> list[_Item]:
        known = self._known.get(link.id)
        if known is not None and known[0] == part and part.kind == link.kind and type(part.body) is bytes:
            return known[1]
        links: list[_Item] = [item for item in _below(link, part) if isinstance(item, _Link)]
        if part is not None:
            if self._bytes > _MOST_KNOWN_BYTES:
                self._known.clear()
                self._bytes = 0
            self._known[link.id] = part, links
            self._bytes += len(part.body)
        return links


def fault(part: Part) -> str:
    """What is wrong with one stored part by itself; empty if nothing is."""
    if part.kind == LEAF and _is_sound_leaf(part):
        return ""  # nearly always; the slow checks below say what is wrong
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

    Everything not in the answer may be deleted, so a missing or damaged node is raised: what it
    once named is not known.
    """
    return {link.id for link in _visit(references, fetch, _below, leaves=False)}


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
        if len(new) > room:  # each of them gives at least one byte
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
    """The bytes that the recipes give; raises as soon as they are more than recorded.

    A part that occurs again is copied from its first place, so work and memory follow the stored bytes and
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

    Nodes were checked on the way. Leaves are hashed only now: the whole has a hash of its own, which mostly holds.
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
    """The part, if its other fields can be right. Stores may answer with anything."""
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
    """What a stored part contains, whether or not it matches its name."""
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
        # One byte more than allowed: it shows a bomb, and lets zlib read its own checksum.
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
    """The items of a node, none for a leaf; raises if the part does not match its name."""
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


def _literal_bytes(recipes: Iterable[list[_Item]]) -> int:
    return sum(len(item) for items in recipes for item in items if isinstance(item, bytes))


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
