"""A value stored by parts comes back to the byte, and one that grows costs what is new."""

from __future__ import annotations

import base64
import hashlib
import random
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.core import parts
from surefoot.core.cuts import pieces
from surefoot.core.forms import dump
from surefoot.core.parts import LEAF, NODE, RAW, ZLIB, Memo, Part, Reference, Whole, cut, damaged_parts, expand, lacking
from surefoot.errors import CodecMissing, JournalCorrupt

ROW = 80
"""What a row of SQLite costs beside its body: the id in the table and in its index, and some bytes for the rest."""


class Shelf:
    """A store of parts in a dict, which insists on what stores promise each other."""

    def __init__(self) -> None:
        self.rows: dict[bytes, Part] = {}
        self.sound: set[bytes] = set()
        self.fetched: list[list[bytes]] = []
        self.cost = 0

    def fetch(self, ids):
        self.fetched.append(list(ids))
        return {name: self.rows[name] for name in ids if name in self.rows}

    def save(self, raw: bytes) -> str:
        value = cut(raw)
        self.put(lacking(value, self.sound, self.fetch))
        self.sound.update(value.leaves, value.nodes)
        text = value.reference.encode()
        self.cost += len(text)
        return text

    def put(self, found: list[Part]) -> None:
        for part in found:
            below = parts._items(part.body) if part.kind == NODE else []
            assert all(item.id in self.rows for item in below if not isinstance(item, bytes)), "a child was not there"
            self.rows[part.id] = part
            self.cost += len(part.body) + ROW

    def load(self, text: str) -> bytes:
        return expand(Reference.decode(text), self.fetch)


# --- values as agents have them ----------------------------------------------------------------------------------

WORDS = ["".join(random.Random(n).choices("abcdefghijklmnopqrstuvwxyz", k=2 + n % 9)) for n in range(2000)]


def prose(rng: random.Random, size: int = 2000) -> str:
    return " ".join(rng.choices(WORDS, k=size // 4))[:size]


def blob(rng: random.Random, size: int = 2000) -> str:
    return base64.b64encode(rng.randbytes(size * 3 // 4)).decode()


def quotes(rng: random.Random, size: int = 2000) -> str:
    """A tool's answer: JSON within JSON."""
    return ", ".join(f'"{a}": "{b}\\n"' for a, b in zip(*[iter(rng.choices(WORDS, k=size // 9))] * 2, strict=False))


def cyrillic(rng: random.Random, size: int = 2000) -> str:
    return "".join(rng.choices("абвгдежзиклмнопрстуфхцчшэюя   ", k=size // 2))


def messages(text):
    def grow(rng, steps):
        held = []
        for step in range(steps):
            said = text(rng)
            held.append({"role": "user" if step % 2 else "assistant", "content": said})
            yield dump(held), len(dump(said))

    return grow


def agent_state(rng, steps):
    """A dict in which the history grows, some fields change each time, and most stay as they are."""
    fixed = {"system": prose(rng, 6000), "tools": [{"name": f"t{n}", "doc": prose(rng, 300)} for n in range(20)]}
    held = []
    for step in range(steps):
        held.append({"role": "user", "content": prose(rng)})
        scratch = prose(rng, 1000)
        state = {"step": step, "cost": rng.random(), "messages": held, "scratch": scratch, **fixed}
        yield dump(state), 3100 if step else len(dump(state))


def edits(rng, steps):
    held = [prose(rng) for _ in range(steps)]
    for step in range(steps):
        held[rng.randrange(len(held))] = prose(rng)
        yield dump(held), 2000 if step else len(dump(held))


def numbers(rng, steps):
    held: list[float] = []
    for _ in range(steps):
        held += [rng.random() for _ in range(100)]
        yield dump(held), 1950


def integers(rng, steps):
    held: list[int] = []
    for _ in range(steps):
        held += [rng.randrange(10**6) for _ in range(300)]
        yield dump(held), 2070


def one_string(rng, steps):
    held = ""
    for _ in range(steps):
        held += prose(rng)
        yield dump(held), 2000


GROWING = {
    "messages of base64": messages(blob),
    "messages of text": messages(prose),
    "messages full of quotes": messages(quotes),
    "messages in Cyrillic": messages(cyrillic),
    "state of an agent": agent_state,
    "one old message edited": edits,
    "list of floats": numbers,
    "list of integers": integers,
    "one string": one_string,
}


@pytest.mark.parametrize("shape", GROWING)
def test_a_value_that_grows_costs_what_is_new(shape):
    """Whole copies of a 400 KB history cost 40 MB in 200 steps; the goal is three times what is new, store included."""
    shelf, kept, costs, new = Shelf(), [], [], 0

    for raw, unique in GROWING[shape](random.Random(shape), 200):
        before = shelf.cost
        kept.append((shelf.save(raw), hashlib.sha256(raw).digest()))
        costs.append(shelf.cost - before)
        new += unique

    assert shelf.cost <= 2 * new, f"{shelf.cost / new:.2f} x what is new, before the store's own overhead"
    assert sum(costs[110:]) <= 1.25 * sum(costs[20:110]), "each step costs the same, early and late"
    assert raw == shelf.load(kept[-1][0])
    for text, digest in kept[::25]:
        assert digest == hashlib.sha256(shelf.load(text)).digest()


@pytest.mark.parametrize("text", [prose, blob, quotes, cyrillic])
def test_a_text_is_one_part_wherever_it_occurs(text):
    """A step's result becomes a message in the next step's argument, and is not to be stored twice."""
    said = text(random.Random(1))
    shelf = Shelf()
    shelf.save(dump(said))
    leaves = {name for name, part in shelf.rows.items() if part.kind == LEAF}

    for around in ([{"role": "user", "content": said}], {"a": 1, "history": [said, said], "note": "short"}):
        assert leaves == cut(dump(around)).leaves.keys()


def test_texts_that_follow_an_insertion_are_stored_once():
    """Cuts follow content, not positions: what moved is still the same."""
    rng = random.Random(2)
    held = [prose(rng) for _ in range(100)]
    shelf = Shelf()
    shelf.save(dump(held))
    before = shelf.cost

    for _ in range(20):
        held.insert(3, prose(rng))
        shelf.save(dump(held))
        del held[50]
        shelf.save(dump(held))

    assert shelf.cost - before < 20 * 2 * 2000


def test_a_long_string_shares_what_lies_around_a_change():
    """A document is edited in the middle: there are no quotes to cut at, so its own content has to say where."""
    rng = random.Random(3)
    held = prose(rng, 200_000)
    shelf = Shelf()
    shelf.save(dump(held))
    before = shelf.cost

    for _ in range(20):
        at = rng.randrange(len(held))
        held = held[:at] + "a few words" + held[at + 3 :]
        shelf.save(dump(held))

    assert shelf.cost - before < 20 * 10_000


# --- there and back ----------------------------------------------------------------------------------------------

CHUNKS = st.one_of(
    st.binary(max_size=300),
    st.sampled_from([b'"', b'\\"', b"\\", b'\\\\"', b"a" * 700, b"0123456789," * 90, b'{"role":"user","content":"']),
    st.tuples(st.integers(0, 9), st.integers(1, 5000)).map(lambda pair: random.Random(pair[0]).randbytes(pair[1])),
    st.tuples(st.integers(0, 9), st.integers(1, 5000)).map(
        lambda pair: prose(random.Random(pair[0]), pair[1]).encode()
    ),
)
BYTES = st.lists(CHUNKS, max_size=12).map(b"".join)


@given(BYTES)
@settings(max_examples=60)
def test_the_pieces_put_together_are_the_bytes(raw):
    """Where the cuts fall may cost sharing; it must not cost a byte."""
    found = pieces(raw)

    assert raw == b"".join(found)
    assert all(0 < len(piece) <= 3072 for piece in found)


@given(BYTES)
@settings(max_examples=60)
def test_any_bytes_come_back(raw):
    """The cutter was written for JSON, but nothing depends on its being JSON."""
    shelf = Shelf()

    assert raw == shelf.load(shelf.save(raw))
    assert cut(raw).reference.digest == hashlib.sha256(raw).digest()


@given(BYTES, st.lists(st.tuples(st.floats(0, 1), st.integers(0, 3000), CHUNKS), max_size=8))
@settings(max_examples=40)
def test_every_generation_of_an_edited_value_comes_back(raw, changes):
    """Generations share their parts; a later save must not disturb an earlier one."""
    shelf, kept = Shelf(), []
    for where, gone, put in [(0.0, 0, b""), *changes]:
        at = int(where * len(raw))
        raw = raw[:at] + put + raw[at + gone :]
        kept.append((shelf.save(raw), raw))

    for text, expected in kept:
        assert expected == shelf.load(text)
        assert {} == damaged_parts(Reference.decode(text), shelf.fetch)


@pytest.mark.parametrize("size", [0, 1, 160, 161, 511, 512, 1024, 1025, 3072, 3073, 65_536, 3_000_000])
def test_values_at_the_edges_of_the_rules_come_back(size):
    """Off by one lives at limits; a value of one repeated byte has nothing to cut at, and shares all it has."""
    for raw in (b"x" * size, random.Random(size).randbytes(size)):
        shelf = Shelf()
        assert raw == shelf.load(shelf.save(raw))


def test_the_same_bytes_give_the_same_parts_in_the_same_order():
    """Two processes that save the same value must agree on what is stored."""
    raw = dump([prose(random.Random(n)) for n in range(40)])

    first, second = cut(raw), cut(bytes(bytearray(raw)))

    assert first == second
    assert first.parts() == second.parts()
    assert [part.id for part in first.parts()] == [*first.leaves, *first.nodes]


def test_what_is_on_disk_reads_the_same_for_ever():
    """The one structure of the format, written by hand: ids, recipe and reference must not change their meaning."""
    tail, text = b"a leaf as it is", b"a leaf that was packed " * 9
    leaf = hashlib.sha256(b"surefoot/leaf\0" + tail).digest()
    packed = hashlib.sha256(b"surefoot/leaf\0" + text).digest()
    recipe = b"C" + packed + b"L\0\2, " + b"C" + leaf
    node = hashlib.sha256(b"surefoot/node\0" + recipe).digest()
    rows = {
        leaf: Part(leaf, 1, 0, len(tail), tail),
        packed: Part(packed, 1, 1, len(text), zlib.compress(text)),
        node: Part(node, 2, 0, len(recipe), recipe),
    }
    whole = b"[" + text + b", " + tail + tail + b"]"
    stored = len(whole).to_bytes(8, "big") + hashlib.sha256(whole).digest()
    stored += b"L\0\1[" + b"N" + node + b"C" + leaf + b"L\0\1]"

    reference = Reference.decode(base64.b64encode(stored).decode())

    assert whole == expand(reference, lambda ids: {name: rows[name] for name in ids})


def test_leaves_are_compressed_where_it_pays_and_nodes_never():
    """A tenth must be saved: inflating costs time on every load. Nodes are hashes, which do not shrink."""
    rng = random.Random(3)
    raw = dump([prose(rng) for _ in range(20)]) + bytes(rng.choices(range(128), k=20_000))

    found = cut(raw).parts()

    assert {(LEAF, RAW), (LEAF, ZLIB), (NODE, RAW)} == {(part.kind, part.codec) for part in found}
    for part in found:
        assert part.codec == RAW or len(part.body) <= 0.9 * part.size


def test_a_small_value_needs_no_part():
    """Up to a kilobyte the reference itself carries the value."""
    for raw in (dump({"ok": True, "text": "x" * 100}), dump(list(range(250)))):
        assert cut(raw).parts() == []
        assert raw == expand(cut(raw).reference, Shelf().fetch)


# --- how much is asked of the store ------------------------------------------------------------------------------


def test_an_append_asks_for_few_parts_and_writes_fewer():
    """Two hundred parts are there already; asking for each of them would cost more than it saves."""
    shelf = Shelf()
    for raw, _ in messages(prose)(random.Random(4), 200):
        shelf.fetched.clear()
        rows = len(shelf.rows)
        shelf.save(raw)

        assert sum(map(len, shelf.fetched)) <= 6
        assert len(shelf.rows) - rows <= 6


def test_what_was_seen_whole_is_not_looked_at_again():
    """That is what makes saving cheap."""
    shelf = Shelf()
    raw = dump([prose(random.Random(n)) for n in range(100)])
    shelf.save(raw)
    shelf.fetched.clear()

    assert lacking(cut(raw), shelf.sound, shelf.fetch) == []
    assert shelf.fetched == []


def test_each_part_is_asked_for_once_and_level_by_level():
    """A value in which one text occurs thirty times is no reason to look it up or to read it thirty times."""
    shelf = Shelf()
    text = shelf.save(dump([prose(random.Random(n % 7)) for n in range(200)]))

    shelf.load(text)

    names = [name for ids in shelf.fetched[1:] for name in ids]
    assert len(names) == len(set(names))
    assert len(shelf.fetched) <= 6


# --- presence is not health --------------------------------------------------------------------------------------


def grown(steps: int) -> tuple[Shelf, list[tuple[str, bytes]]]:
    shelf, kept = Shelf(), []
    for raw, _ in messages(prose)(random.Random(5), steps):
        kept.append((shelf.save(raw), raw))
    return shelf, kept


def test_a_save_over_a_lost_part_is_healed_from_memory():
    """A save finds its old parts present and writes only what is new. If one of them is gone or rotten, all
    generations are lost, unless somebody reads back and writes it again: the bytes are still in memory."""
    shelf, kept = grown(60)
    value = cut(kept[-1][1])
    for name, part in list(shelf.rows.items()):
        if name not in value.leaves and name not in value.nodes:
            continue
        for broken in (None, Part(name, part.kind, RAW, 5, b"other")):
            shelf.rows.pop(name)
            shelf.rows |= {name: broken} if broken else {}

            bad = lacking(value, frozenset(), shelf.fetch)
            with pytest.raises(JournalCorrupt, match=name.hex()):
                shelf.load(kept[-1][0])
            shelf.put(bad)

            assert [name] == [part.id for part in bad]
            assert shelf.rows[name] == part
    for text, raw in kept:
        assert raw == shelf.load(text)


def test_many_lost_parts_are_all_found_with_the_value_in_memory():
    """What a lost node named is not known from the store, but it is from the value."""
    shelf, kept = grown(60)
    value = cut(kept[-1][1])
    for name in random.Random(6).sample(list(shelf.rows), 40):
        del shelf.rows[name]

    bad = lacking(value, frozenset(), shelf.fetch)
    assert (value.leaves.keys() | value.nodes.keys()) - shelf.rows.keys() == {part.id for part in bad}
    shelf.put(bad)

    assert kept[-1][1] == shelf.load(kept[-1][0])
    assert {} == damaged_parts(value.reference, shelf.fetch)


def test_a_row_that_changed_since_it_was_found_whole_is_not_taken_for_whole():
    """A save reads all rows back. Unpacking those that have not changed would cost more than the save itself."""
    shelf, kept = grown(60)
    reference, whole = Reference.decode(kept[-1][0]), Whole()
    whole.check(reference, shelf.fetch)
    whole.check(reference, shelf.fetch)

    for name, part in shelf.rows.items():
        spoilt = Part(part.id, part.kind, part.codec, part.size, part.body[:-1] + bytes([part.body[-1] ^ 1]))
        with pytest.raises(JournalCorrupt):
            whole.check(reference, lambda names, bad=spoilt: {**shelf.fetch(names), bad.id: bad})
        with pytest.raises(JournalCorrupt):
            whole.check(reference, lambda names, gone=name: {k: v for k, v in shelf.fetch(names).items() if k != gone})


def test_without_the_value_damage_is_found_as_far_as_nodes_can_be_followed():
    """`verify` has no value in memory: it names what it can see, and does not stop at the first."""
    shelf, kept = grown(60)
    reference = Reference.decode(kept[-1][0])
    leaves = [part for part in shelf.rows.values() if part.kind == LEAF][:3]
    for part in leaves:
        shelf.rows[part.id] = Part(part.id, LEAF, RAW, 5, b"other")

    bad = damaged_parts(reference, shelf.fetch)

    assert {part.id for part in leaves} == bad.keys()
    assert {"is not what was written: its content has another hash"} == set(bad.values())


def test_an_unknown_codec_is_named():
    """A newer version may pack otherwise. That is no damage, and guessing would be."""
    shelf, kept = grown(10)
    name = next(iter(shelf.rows))
    shelf.rows[name] = Part(name, LEAF, 7, 100, b"packed by a newer version")

    with pytest.raises(CodecMissing, match="codec 7") as caught:
        shelf.load(kept[-1][0])

    assert caught.value.facts["part"] == name.hex()
    assert "unknown codec 7" in damaged_parts(Reference.decode(kept[-1][0]), shelf.fetch)[name]


def test_each_row_can_be_judged_by_itself():
    """A whole store is verified row by row, not once for every value that shares the row."""
    shelf, _ = grown(20)

    for part in shelf.rows.values():
        assert parts.fault(part) == ""
        assert parts.fault(Part(part.id, part.kind, RAW, 5, b"other")) != ""
        assert parts.fault(Part(part.id, 3 - part.kind, part.codec, part.size, part.body)) != ""


# --- what may be deleted -----------------------------------------------------------------------------------------


def test_what_no_reference_reaches_can_be_deleted():
    """Retention drops old generations; whatever is left must load as before."""
    shelf, kept = Shelf(), []
    for raw, _ in edits(random.Random(7), 40):
        kept.append((shelf.save(raw), raw))
    stay = kept[5:8] + kept[-2:]

    reached = parts.reachable([Reference.decode(text) for text, _ in stay], shelf.fetch)

    needed = [cut(raw) for _, raw in stay]
    assert reached == {name for value in needed for name in (*value.leaves, *value.nodes)}
    assert len(reached) < len(shelf.rows)
    shelf.rows = {name: shelf.rows[name] for name in reached}
    assert [raw for _, raw in stay] == [shelf.load(text) for text, _ in stay]


def test_marking_reads_each_node_once_and_no_leaf():
    """Sixty generations share their nodes; the mark is to cost what is stored, not what was saved."""
    shelf, kept = grown(60)
    shelf.fetched.clear()

    parts.reachable([Reference.decode(text) for text, _ in kept], shelf.fetch)

    asked = [name for ids in shelf.fetched for name in ids]
    assert len(asked) == len(set(asked))
    assert {NODE} == {shelf.rows[name].kind for name in asked}


@pytest.mark.parametrize("damage", ["missing", "altered"])
def test_marking_refuses_when_a_node_cannot_be_trusted(damage):
    """What a lost node named would be deleted with it, though it could have been saved."""
    shelf, kept = grown(60)
    node = [part for part in shelf.rows.values() if part.kind == NODE][3]
    del shelf.rows[node.id]
    if damage == "altered":
        shelf.rows[node.id] = Part(node.id, NODE, RAW, node.size - 33, node.body[:-33])

    with pytest.raises(JournalCorrupt, match=node.id.hex()):
        parts.reachable([Reference.decode(text) for text, _ in kept], shelf.fetch)


def test_nothing_is_reachable_from_nothing():
    """An empty store is collected without a question."""
    assert parts.reachable([], Shelf().fetch) == set()


# --- a memo of what was cut last -------------------------------------------------------------------------------------


def texts(luck, count):
    alphabet = 'abcdefghijklmnop "\\\\éß\\n'
    return ["".join(luck.choices(alphabet, k=luck.choice([3, 40, 600, 1000, 5000]))) for _ in range(count)]


@pytest.mark.parametrize("seed", range(12))
def test_value_is_cut_the_same_with_a_memo_and_without(seed):
    """A memo may only save work: two processes with different memories must name the same parts."""
    luck = random.Random(seed)
    memo = Memo()
    items = texts(luck, luck.randrange(12))
    for step in range(30):
        match luck.randrange(6):
            case 0 if items:
                items[luck.randrange(len(items))] = texts(luck, 1)[0]
            case 1 if items:
                del items[luck.randrange(len(items)) :]
            case 2:
                items.insert(0, texts(luck, 1)[0])
            case 3:
                items.append(list(range(luck.randrange(1000))))
            case _:
                items += texts(luck, 2)
        raw = dump({"items": items, "step": step})

        assert cut(raw, memo) == cut(raw)


@given(st.lists(st.binary(max_size=4000), max_size=6))
@settings(max_examples=50)
def test_bytes_of_any_kind_are_cut_the_same_with_a_memo(values):
    memo = Memo()
    for value in values:
        for raw in (value, value + value, value[: len(value) // 2]):
            assert cut(raw, memo) == cut(raw)
