"""The one auditor: every way in which a journal can be wrong is found at the right entry, and nothing is folded behind it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from surefoot.core.audit import Audit
from surefoot.core.entry import RunReleased
from surefoot.core.seal import GENESIS, Record, Sealer, checked_body, verify
from surefoot.errors import JournalCorrupt

SEALER = Sealer(bytes(16), "r")


def chain(count: int = 5, *, sealer: Sealer = SEALER) -> list[Record]:
    kind, body, _ = checked_body(RunReleased("x"))
    records: list[Record] = []
    for seq in range(1, count + 1):
        previous = records[-1].seal if records else GENESIS
        records.append(sealer.seal(seq=seq, epoch=1, at=seq, kind=kind, body=body, previous=previous))
    return records


def audited(records, head="last", **more):
    audit = Audit(SEALER, **more)
    audit.take_all(records)
    if head == "last":
        head = (records[-1].seq, records[-1].seal)
    return audit, audit.ends(head)


def test_sound_journal_has_no_break():
    records = chain()

    audit, broken = audited(records)

    assert broken is None
    assert (audit.valid, audit.beyond) == (5, 0)


@pytest.mark.parametrize(
    "field", ["seq", "epoch", "at", "kind", "schema", "codec", "key", "body", "seal"],
)  # fmt: skip
def test_any_altered_field_is_a_break_at_its_entry(field):
    """Every field is under the seal: whichever is altered, that entry is blamed, and no earlier one."""
    records = chain()
    value = getattr(records[2], field)
    records[2] = replace(records[2], **{field: bytes(32) if isinstance(value, bytes) else value + 1})

    _, broken = audited(records)

    assert broken is not None
    assert (broken.entry, broken.valid) == (3, 2)


@pytest.mark.parametrize(
    ("order", "why"),
    [
        ([0, 1, 3, 4], "it is missing, the next one found is 4"),
        ([0, 1, 1, 2, 3, 4], "there is a second entry 2"),
        ([1, 2, 3, 4], "it is missing, the next one found is 2"),
        ([0, 2, 1, 3, 4], "it is missing, the next one found is 3"),
    ],
    ids=["gap", "twice", "first", "swapped"],
)
def test_records_out_of_their_places_are_told_apart(order, why):
    records = chain()

    _, broken = audited([records[at] for at in order])

    assert broken is not None
    assert why in broken.why


def test_head_decides_whether_the_end_is_the_end():
    """A chain that was cut off still holds; only the head knows that there was more."""
    records = chain()

    assert (6, 5) == _where(audited(records, (7, bytes(32)))[1])
    assert (4, 3) == _where(audited(records, (3, records[2].seal))[1])
    assert (5, 4) == _where(audited(records, (5, bytes(32)))[1])
    assert (6, 5) == _where(audited(records, None)[1])
    assert (1, 0) == _where(audited([], None)[1])


def _where(broken):
    return broken.entry, broken.valid


def test_what_is_whole_behind_a_break_is_counted_but_never_folded():
    """No state is merged from behind damage."""
    records = chain()
    folded = []
    records[1] = replace(records[1], at=99)

    audit, broken = audited(records, read=lambda record: folded.append(record.seq))

    assert folded == [1]
    assert (audit.valid, audit.beyond) == (1, 3)
    assert _where(broken) == (2, 1)


def test_entry_that_cannot_follow_is_a_break_like_any_other():
    def read(record):
        if record.seq == 3:
            raise JournalCorrupt("it cannot follow")

    audit, broken = audited(chain(), read=read)

    assert _where(broken) == (3, 2)
    assert broken.why == "it cannot follow"
    assert audit.beyond == 2


@pytest.mark.parametrize("bad", range(5))
def test_auditor_and_the_quick_look_agree_on_how_much_holds(bad):
    """Loading uses the quick look and asks the auditor only for the reason: they must never differ."""
    records = chain()
    records[bad] = replace(records[bad], epoch=7)

    audit, _ = audited(records)

    assert audit.valid == verify(SEALER, records) == bad
