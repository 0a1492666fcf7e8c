"""Whatever a store answers, reading parts gives the exact bytes or a named stop, in bounded time and memory."""

from __future__ import annotations

import base64
import hashlib
import random
import time
import tracemalloc
import zlib
from contextlib import contextmanager, suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.core import parts
from surefoot.core.forms import MAX_BYTES, dump
from surefoot.core.parts import LEAF, MAX_DEPTH, MAX_PART, NODE, RAW, ZLIB, Part, Reference, cut, expand
from surefoot.errors import CodecMissing, JournalCorrupt

MEGABYTE = 1024 * 1024
BOMB = zlib.compress(bytes(20 * MEGABYTE), 9)


@contextmanager
def bounded(*, memory: int, seconds: float = 5.0):
    """Fails if the block holds more memory at once than it may. The time is generous: bombs take hours."""
    began = time.process_time()
    tracemalloc.start()
    try:
        yield
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < memory
    assert time.process_time() - began < seconds


class Forge(dict[bytes, Part]):
    """A store in somebody else's hands: parts with true names and any content."""

    def leaf(self, content: bytes, *, codec: int = RAW, size: int | None = None, body: bytes | None = None) -> bytes:
        return b"C" + self.add(LEAF, content, codec=codec, size=size, body=body)

    def node(self, recipe: bytes, *, codec: int = RAW, size: int | None = None, body: bytes | None = None) -> bytes:
        return b"N" + self.add(NODE, recipe, codec=codec, size=size, body=body)

    def add(self, kind: int, content: bytes, *, codec: int, size: int | None, body: bytes | None) -> bytes:
        name = hashlib.sha256((b"surefoot/leaf\0" if kind == LEAF else b"surefoot/node\0") + content).digest()
        size = len(content) if size is None else size
        self[name] = Part(name, kind, codec, size, content if body is None else body)
        return name

    def chain(self, links: int, end: bytes) -> bytes:
        for _ in range(links):
            end = self.node(end)
        return end

    def fetch(self, ids):
        return {name: self[name] for name in ids if name in self}


def refers(root: bytes, whole: bytes | None = None, *, size: int | None = None) -> Reference:
    whole = b"?" if whole is None else whole
    return Reference(len(whole) if size is None else size, hashlib.sha256(whole).digest(), root)


def refused(forge: Forge, reference: Reference, saying: str) -> JournalCorrupt:
    """Refused by everyone who reads, in these words by the one who expands."""
    with pytest.raises(JournalCorrupt, match=saying) as caught:
        expand(reference, forge.fetch)
    return caught.value


# --- bombs --------------------------------------------------------------------------------------------------------


def test_a_leaf_that_inflates_to_more_than_it_says_is_refused():
    """Twenty megabytes of zeros fit into 20 KB of zlib."""
    forge = Forge()
    root = forge.leaf(b"x" * 2000, codec=ZLIB, body=BOMB)

    with bounded(memory=MEGABYTE):
        error = refused(forge, refers(root, size=2000), "shorter or longer")

    assert error.facts["part"] == root[1:].hex()


@pytest.mark.parametrize("size", [-1, 0, MAX_PART + 1, 2**40, 2**63 - 1])
def test_a_part_that_says_it_is_larger_than_parts_are_is_refused(size):
    """Else the size would be the bomb: it is what inflating is capped at."""
    forge = Forge()
    root = forge.leaf(b"x" * 2000, codec=ZLIB, size=size, body=BOMB)

    with bounded(memory=MEGABYTE):
        refused(forge, refers(root, size=MAX_BYTES), f"1 to {MAX_PART} can be right")


@pytest.mark.parametrize("size", [1, 10_000, MEGABYTE])
def test_nodes_that_multiply_stop_at_the_recorded_size(size):
    """Twelve nodes that each name the next a thousand times would make 10^36 copies of a leaf."""
    forge = Forge()
    root = forge.leaf(b"ha" * 500)
    for _ in range(MAX_DEPTH):
        root = forge.node(root * 1000)

    with bounded(memory=5 * MEGABYTE):
        refused(forge, refers(root, size=size), f"more than the {size} bytes")


def test_single_bytes_that_multiply_cost_what_they_make():
    """The same with items of one byte: a loop over what comes out would take minutes for a few kilobytes stored."""
    forge = Forge()
    root = forge.node(b"L\0\1x" * 1000)
    for times in (1000, 8):
        root = forge.node(root * times)
    whole = b"x" * 8_000_000

    with bounded(memory=40 * MEGABYTE, seconds=2):
        assert whole == expand(refers(root, whole), forge.fetch)


def test_a_level_of_more_parts_than_the_value_has_bytes_is_not_fetched():
    """The store is not asked for a million rows to make a value of ten bytes; what is already sure to come counts."""
    forge = Forge()
    root = forge.leaf(b"a" * 300) + forge.node(b"".join(b"C" + n.to_bytes(32, "big") for n in range(1000)))
    asked = []

    with pytest.raises(JournalCorrupt, match="more than the 1299 bytes"):
        expand(refers(root, size=1299), lambda ids: (asked.append(len(ids)), forge.fetch(ids))[1])

    assert asked == [2]


def test_no_value_is_larger_than_values_may_be():
    """The recorded size is the budget of everything else, so it has a limit itself."""
    text = base64.b64encode((MAX_BYTES + 1).to_bytes(8, "big") + bytes(32)).decode()

    with pytest.raises(JournalCorrupt, match=f"{MAX_BYTES + 1} bytes"):
        Reference.decode(text)


# --- depth and cycles ---------------------------------------------------------------------------------------------


def test_nodes_nest_as_deep_as_the_limit_and_no_deeper():
    """Depth is bounded whoever walks: expanding, looking for damage, marking what may not be deleted."""
    forge = Forge()
    leaf = forge.leaf(b"deep")
    deepest, deeper = forge.chain(MAX_DEPTH, leaf), forge.chain(MAX_DEPTH + 1, leaf)

    assert expand(refers(deepest, b"deep"), forge.fetch) == b"deep"
    assert parts.damaged_parts(refers(deepest, b"deep"), forge.fetch) == {}
    assert len(parts.reachable([refers(deepest)], forge.fetch)) == MAX_DEPTH + 1
    refused(forge, refers(deeper, b"deep"), "deeper than 12")
    for look in (parts.damaged_parts, lambda reference, fetch: parts.reachable([reference], fetch)):
        with pytest.raises(JournalCorrupt, match="deeper than 12"):
            look(refers(deeper, b"deep"), forge.fetch)


def test_the_longest_way_down_counts():
    """A part met near the root is not fetched again further down, but it is as deep as it is."""
    forge = Forge()
    near = forge.chain(MAX_DEPTH - 1, forge.leaf(b"deep"))
    far = forge.chain(2, near)

    refused(forge, refers(near + far, b"deepdeep"), "deeper than 12")


def test_parts_that_contain_themselves_are_refused():
    """No hash is found by accident in its own content; a store that answers so is lying, and must not hang us."""
    forge = Forge()
    one, other = bytes(32), b"\1" * 32
    forge[one] = Part(one, NODE, RAW, 33, b"N" + other)
    forge[other] = Part(other, NODE, RAW, 33, b"N" + one)

    for root in (b"N" + one, b"N" + one + b"N" + other):
        refused(forge, refers(root, size=9), "another hash")
        assert parts.damaged_parts(refers(root), forge.fetch).keys() == set([one, other][: len(root) // 33])
        with pytest.raises(JournalCorrupt):
            parts.reachable([refers(root)], forge.fetch)


# --- parts that lie -----------------------------------------------------------------------------------------------

TEXT = b"the quick brown fox " * 20
PACKED = zlib.compress(TEXT)
LIES = {
    "missing": (None, "is missing"),
    "other content": ({"body": TEXT.swapcase()}, "another hash"),
    "other content, packed": ({"codec": ZLIB, "body": zlib.compress(TEXT.swapcase())}, "another hash"),
    "shorter than it says": ({"body": TEXT[:-1]}, "shorter or longer"),
    "longer than it says": ({"body": TEXT + b"!"}, "shorter or longer"),
    "empty": ({"size": 0, "body": b""}, "0 bytes"),
    "packed, cut off": ({"codec": ZLIB, "body": PACKED[:-1]}, "is cut off"),
    "packed, with more behind it": ({"codec": ZLIB, "body": PACKED + b"x"}, "followed by 1 bytes"),
    "packed, shorter than it says": ({"codec": ZLIB, "size": 401, "body": PACKED}, "shorter or longer"),
    "packed, longer than it says": ({"codec": ZLIB, "size": 399, "body": PACKED}, "shorter or longer"),
    "packed, not zlib": ({"codec": ZLIB, "body": b"not zlib"}, "cannot be decompressed"),
    "packed twice": ({"codec": ZLIB, "body": zlib.compress(PACKED)}, "shorter or longer"),
    "packed, empty": ({"codec": ZLIB, "body": b""}, "shorter or longer"),
    "a node": ({"kind": NODE}, "stored as kind 2, not as a leaf"),
    "neither leaf nor node": ({"kind": 3}, "stored as kind 3, not as a leaf"),
    "no kind": ({"kind": None}, "stored as kind None"),
    "no codec": ({"codec": None}, "wrong type"),
    "a size in words": ({"size": "400"}, "wrong type"),
    "a size that is a fraction": ({"size": 400.0}, "wrong type"),
    "text for a body": ({"body": TEXT.decode()}, "wrong type"),
    "no body": ({"body": None}, "wrong type"),
    "a huge body": ({"body": bytes(MAX_PART + 1)}, "can be right"),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_part_that_is_not_what_was_written_is_named_with_what_is_wrong(lie):
    """Who repairs needs to know which of two hundred parts it is."""
    changes, saying = LIES[lie]
    forge = Forge()
    good = [forge.leaf(bytes([n]) * 300) for n in range(9)]
    bad = forge.leaf(TEXT)
    whole = b"".join(forge[item[1:]].body for item in (*good, bad))
    reference = refers(b"".join(good[:4]) + forge.node(b"".join(good[4:]) + bad), whole)
    assert expand(reference, forge.fetch) == whole
    part = forge.pop(bad[1:])
    if changes is not None:
        fields = {"kind": part.kind, "codec": part.codec, "size": part.size, "body": part.body}
        forge[part.id] = Part(part.id, **(fields | changes))

    error = refused(forge, reference, saying)

    assert error.facts["part"] == part.id.hex()
    assert part.id.hex() in str(error)
    assert [part.id] == list(parts.damaged_parts(reference, forge.fetch))


@pytest.mark.parametrize(
    ("recipe", "saying"),
    [
        (b"X", "unknown kind 88"),
        (b"\0", "unknown kind 0"),
        (b"L\0\0", "empty item"),
        (b"L\0\1ab", "unknown kind 98"),
        (b"L", "ends within an item"),
        (b"L\0", "ends within an item"),
        (b"L\0\2a", "ends within an item"),
        (b"L\xff\xff" + b"a" * 65_534, "ends within an item"),
        (b"C", "ends within an item"),
        (b"N" + bytes(31), "ends within an item"),
    ],
)
def test_a_recipe_that_is_none_is_refused_in_the_reference_and_in_a_node(recipe, saying):
    """The name of a node may hold while its recipe is nonsense: somebody else may have written it."""
    forge = Forge()
    root = forge.node(recipe) if len(recipe) <= MAX_PART else b""
    text = base64.b64encode(bytes(40) + recipe).decode()

    with pytest.raises(JournalCorrupt, match=saying):
        Reference.decode(text)
    if root:
        error = refused(forge, refers(root, size=100), saying)
        assert error.facts["part"] == root[1:].hex()
        assert [root[1:]] == list(parts.damaged_parts(refers(root), forge.fetch))
        assert saying in parts.fault(forge[root[1:]])
        with pytest.raises(JournalCorrupt, match=saying):
            parts.reachable([refers(root)], forge.fetch)


def test_a_node_that_makes_nothing_is_refused():
    """Without empty items whatever is named makes a byte, so the recorded size bounds how much is looked at."""
    forge = Forge()

    refused(forge, refers(forge.node(b""), b"", size=1), "0 bytes")


def test_a_compressed_node_is_refused():
    """We never write one, so there is one way less to be fooled."""
    forge = Forge()
    recipe = forge.leaf(b"a" * 300)
    root = forge.node(recipe, codec=ZLIB, body=zlib.compress(recipe))

    refused(forge, refers(root, b"a" * 300), "nodes never are")


@pytest.mark.parametrize("kind", [LEAF, NODE])
def test_a_part_under_the_mark_of_the_other_kind_is_refused(kind):
    """A leaf of user data may look like a recipe. It must never be followed."""
    forge = Forge()
    recipe = forge.leaf(b"a" * 300)
    true = forge.leaf(recipe) if kind == LEAF else forge.node(recipe)
    false = (b"N" if kind == LEAF else b"C") + true[1:]

    for root in (false, true + false, false + true):
        refused(forge, refers(root, size=700), "not as a")


def test_a_false_mark_cannot_hide_from_the_collector_what_a_node_needs():
    """A reference that calls a node a leaf must not have its content deleted under the others that use it."""
    forge = Forge()
    leaf = forge.leaf(b"a" * 300)
    node = forge.node(leaf)

    for order in ([b"C" + node[1:], node], [node, b"C" + node[1:]]):
        assert {leaf[1:], node[1:]} == parts.reachable([refers(root) for root in order], forge.fetch)


@pytest.mark.parametrize("size", [0, 1, 299, 301, MAX_BYTES])
def test_a_reference_with_another_size_is_refused_though_each_part_is_right(size):
    """The error must not accuse a healthy part."""
    forge = Forge()
    whole = b"a" * 300

    error = refused(forge, refers(forge.leaf(whole), whole, size=size), "each part is what its name says")

    assert "part" not in error.facts


def test_a_reference_with_another_digest_is_refused_though_each_part_is_right():
    """Parts of another value put together are a value that nobody stored."""
    forge = Forge()

    refused(forge, refers(forge.leaf(b"a" * 300), b"b" * 300), "other bytes than were recorded; each part is what")


@pytest.mark.parametrize(
    "text",
    ["", "A", "AAAA", "====", "é", "\udc80", "AA AA", "A" * 60 + "\n", base64.b64encode(bytes(39)).decode(), "\0" * 60],
)
def test_a_reference_that_is_none_is_refused(text):
    """Whatever stands in the place of a reference, it is one or it is a named stop."""
    with pytest.raises(JournalCorrupt, match="cannot be read"):
        Reference.decode(text)


def test_a_reference_is_written_in_one_way():
    """Base64 has spare bits at its end; two texts for one reference would be two digests for one entry."""
    text = cut(b"abc").reference.encode()

    assert Reference.decode(text) == cut(b"abc").reference
    assert base64.b64decode(text) == base64.b64decode(text[:-3] + chr(ord(text[-3]) + 1) + "==")
    with pytest.raises(JournalCorrupt, match="the one way"):
        Reference.decode(text[:-3] + chr(ord(text[-3]) + 1) + "==")


# --- damage of every kind -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def stored() -> tuple[Reference, dict[bytes, Part], bytes]:
    rng = random.Random(8)
    words = [rng.randbytes(n % 5 + 2).hex() for n in range(400)]
    raw = dump([{"role": "user", "content": " ".join(rng.choices(words, k=250))} for _ in range(12)])
    value = cut(raw)
    return value.reference, {part.id: part for part in value.parts()}, raw


def read(reference: Reference, rows: dict[bytes, Part], raw: bytes) -> bool:
    """Whether the bytes came back; if not, it was a stop with a name."""
    try:
        found = expand(reference, lambda ids: {name: rows[name] for name in ids if name in rows})
    except (JournalCorrupt, CodecMissing):
        return False
    assert found == raw
    return True


def test_a_flipped_bit_anywhere_in_a_part_is_noticed(stored):
    """Never other bytes: the same, or a stop."""
    reference, rows, raw = stored
    rng = random.Random(9)
    for name, part in rows.items():
        places = range(len(part.body) * 8)
        for bit in rng.sample(places, min(40, len(places))):
            body = bytearray(part.body)
            body[bit // 8] ^= 1 << bit % 8
            read(reference, rows | {name: Part(name, part.kind, part.codec, part.size, bytes(body))}, raw)
        for field in range(16):
            codec = Part(name, part.kind, part.codec ^ 1 << field, part.size, part.body)
            size = Part(name, part.kind, part.codec, part.size ^ 1 << field, part.body)
            assert not read(reference, rows | {name: codec}, raw)
            assert not read(reference, rows | {name: size}, raw)


def test_parts_exchanged_or_cut_off_are_noticed(stored):
    """Bodies in the wrong rows, and rows that lost their end."""
    reference, rows, raw = stored
    for part in rows.values():
        for other in rows.values():
            changed = Part(part.id, other.kind, other.codec, other.size, other.body)
            assert read(reference, rows | {part.id: changed}, raw) == (part is other)
        for length in range(0, len(part.body), 19):
            cut_off = Part(part.id, part.kind, part.codec, part.size, part.body[:length])
            assert not read(reference, rows | {part.id: cut_off}, raw)


def test_a_reference_changed_anywhere_is_noticed(stored):
    """The entry's seal covers it; this is the second line."""
    reference, rows, raw = stored
    packed = base64.b64decode(reference.encode())
    for bit in range(0, len(packed) * 8, 3):
        changed = bytearray(packed)
        changed[bit // 8] ^= 1 << bit % 8
        assert not reads(base64.b64encode(changed).decode(), rows, raw)
    for length in range(len(packed)):
        assert not reads(base64.b64encode(packed[:length]).decode(), rows, raw)
    assert not reads(base64.b64encode(packed + packed[40:73]).decode(), rows, raw)


def reads(text: str, rows: dict[bytes, Part], raw: bytes) -> bool:
    try:
        reference = Reference.decode(text)
    except JournalCorrupt:
        return False
    return read(reference, rows, raw)


FORGED = st.lists(
    st.tuples(
        st.sampled_from([LEAF, NODE, NODE, 3]),
        st.lists(
            st.integers(0, 40) | st.binary(min_size=1, max_size=5) | st.sampled_from(["L", "L\0\0", "?"]), max_size=6
        ),
        st.sampled_from([RAW, RAW, RAW, ZLIB, 2]),
        st.sampled_from([0, 0, 0, 1, -1, 70_000]),
    ),
    max_size=14,
)


def forged_item(item: int | bytes | str, before: list[bytes]) -> bytes:
    """A link to a part made before, a literal, or something that is no item."""
    if isinstance(item, int):
        return before[item % len(before)] if before else b""
    return item.encode() if isinstance(item, str) else b"L" + len(item).to_bytes(2, "big") + item


@given(FORGED, st.integers(0, 300))
@settings(max_examples=150)
def test_parts_in_any_arrangement_end_in_bytes_or_in_a_named_stop(forged, size):
    """Somebody who can write to the store knows the format as well as we do."""
    forge, marks = Forge(), []
    for kind, recipe, codec, lie in forged:
        content = b"".join(forged_item(item, marks) for item in recipe)
        body = zlib.compress(content) if codec == ZLIB else None
        name = forge.add(kind, content, codec=codec, size=len(content) + lie, body=body)
        marks.append((b"N" if kind == NODE else b"C") + name)
    reference = refers(b"".join(marks[-3:]), size=size)

    for look in (expand, parts.damaged_parts, lambda reference, fetch: parts.reachable([reference], fetch)):
        with suppress(JournalCorrupt, CodecMissing):
            look(reference, forge.fetch)
    for part in forge.values():
        parts.fault(part)
