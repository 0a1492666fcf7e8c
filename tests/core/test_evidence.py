"""What records beyond a gap prove, and what they do not."""

from __future__ import annotations

import msgspec
from msgspec import Raw

from surefoot.core.entry import (
    CancelRequested,
    EffectDone,
    EffectIntended,
    EffectRaised,
    EffectSettled,
    Entry,
    RunContinued,
    RunRewound,
    StepDone,
)
from surefoot.core.evidence import weigh
from surefoot.core.seal import GENESIS, Record, Sealer, to_body

SEALER = Sealer(b"s" * 16, "r")
ARGS = Raw(b"{}")


def sealed(*entries: Entry) -> list[Record]:
    seal, records = GENESIS, []
    for seq, entry in enumerate(entries, 1):
        kind, body, _ = to_body(entry)
        records.append(SEALER.seal(seq=seq, epoch=1, at=seq, kind=kind, body=body, previous=seal))
        seal = records[-1].seal
    return records


def damaged(record: Record) -> Record:
    return msgspec.structs.replace(record, body=record.body + b" ")


def intent(key: str = "k", attempt: int = 1, address: str = "e#1") -> EffectIntended:
    return EffectIntended(address, "digest", ARGS, key, "ask", attempt)


STEP = StepDone("s#1", "d", ARGS, ARGS, 1)
DONE = EffectDone("e#1", Raw(b"1"))


def proven(*records: Record) -> dict[str, bytes]:
    found = weigh(SEALER, [], records)
    return {key: bytes(proof.value) for key, proof in found.proven.items()}


def test_an_intact_intent_and_outcome_are_proof():
    first, *rest = sealed(STEP, intent(), DONE)

    assert proven(damaged(first), *rest) == {"k": b"1"}


def test_a_damaged_outcome_or_intent_is_none():
    for bad in (0, 1):
        records = sealed(intent(), DONE)
        records[bad] = damaged(records[bad])
        assert proven(*records) == {}


def test_a_begun_effect_without_outcome_is_known_as_open():
    found = weigh(SEALER, [], sealed(intent("a", address="e#1"), intent("b", address="e#2"), DONE))

    assert found.open == ("e#2",)


def test_a_gap_between_intent_and_outcome_proves_nothing():
    """The gap may hold the end of the segment: the same address in the next one is another call."""
    before, gap, after = sealed(intent("first segment"), RunContinued(ARGS, "d"), DONE)

    assert proven(before, damaged(gap), after) == {}
    assert proven(before, after) == {}


def test_the_end_of_a_segment_between_them_proves_nothing():
    assert proven(*sealed(intent("first segment"), RunContinued(ARGS, "d"), DONE)) == {}


def test_an_outcome_of_another_attempt_proves_nothing():
    assert proven(*sealed(intent(attempt=2), DONE)) == {}


def test_an_intent_that_ended_in_failure_is_used_up():
    assert proven(*sealed(intent(), EffectRaised("e#1", Raw(b"{}")), DONE)) == {}


def test_an_answer_counts_if_it_says_that_it_happened():
    yes = EffectSettled("e#1", happened=True, attempt=1, value=Raw(b"2"))
    no = EffectSettled("e#1", happened=False, attempt=1)

    assert proven(*sealed(intent(), yes)) == {"k": b"2"}
    assert proven(*sealed(intent(), no)) == {}


def test_a_record_of_another_run_or_place_is_none():
    """It is whole only behind the record it was written behind."""
    records = sealed(STEP, intent(), DONE)
    foreign = [msgspec.structs.replace(record, seq=record.seq + 5) for record in records]

    assert proven(*foreign) == {}
    assert weigh(Sealer(b"s" * 16, "other"), [], records).proven == {}


def test_rows_of_several_fallbacks_are_not_taken_for_one():
    """Their numbers may seem to fit; the seals do not."""
    first = sealed(STEP, intent("a"))
    second = sealed(STEP, STEP, DONE)

    assert proven(first[1], second[2]) == {}


def test_what_a_person_sent_back_is_begun_but_no_longer_proven():
    found = weigh(SEALER, [], sealed(intent(), DONE, RunRewound("e#1", "ann", seq=1)))

    assert found.proven == {}
    assert found.open == ("e#1",)


def test_a_request_to_cancel_from_before_a_rewind_is_not_carried_on():
    """A person cancelled the run, and a person sent it back to work afterwards."""
    cancel, rewound = CancelRequested("ann"), RunRewound("e#1", "ann", seq=1)

    assert weigh(SEALER, [], sealed(STEP, cancel, rewound)).messages == []
    assert len(weigh(SEALER, [], sealed(STEP, rewound, cancel)).messages) == 1
