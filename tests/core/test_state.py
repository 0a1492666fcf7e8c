"""What entries mean, and which of them cannot follow each other."""

from __future__ import annotations

import pytest
from msgspec import Raw

from surefoot.core.entry import (
    KINDS,
    EffectDone,
    EffectIntended,
    EffectSettled,
    EventSent,
    RunAdopted,
    RunCreated,
    RunDone,
    RunStopped,
    StepDone,
    Stop,
)
from surefoot.core.history import PastState
from surefoot.core.seal import Sealer, from_record, verify
from surefoot.errors import CodecMissing, JournalCorrupt, SchemaMismatch
from tests.folded import folded, sealed

NULL = Raw(b"null")
CREATED = RunCreated("wf", Raw(b"{}"), "d")
ADOPTED = RunAdopted("w", "h", 1, "c")
STEP = StepDone("a#1", "d", Raw(b"{}"), NULL, 1)
INTENT = EffectIntended("e#1", "d", Raw(b"{}"), "k", "ask")
STOPPED = RunStopped((Stop("InDoubt", "why", "e#1"),))


@pytest.mark.parametrize(
    "entries",
    [
        [ADOPTED],
        [CREATED, CREATED],
        [CREATED, STEP],
        [CREATED, ADOPTED, RunDone(NULL), STEP],
        [CREATED, ADOPTED, RunDone(NULL), ADOPTED],
        [CREATED, ADOPTED, (ADOPTED, 1)],
        [CREATED, ADOPTED, ADOPTED, (STEP, 1)],
        [CREATED, ADOPTED, (STEP, 2)],
        [CREATED, ADOPTED, INTENT, STOPPED, STEP],
        [EventSent("n", NULL, "i")],
    ],
    ids=lambda entries: "-".join(type(e[0] if isinstance(e, tuple) else e).__name__ for e in entries),
)
def test_entries_that_cannot_follow_each_other_are_damage(entries):
    """Seals may hold and the story still be impossible: then nothing of it is believed."""
    with pytest.raises(JournalCorrupt, match="cannot follow"):
        folded(*entries)


def test_an_intent_without_an_outcome_is_in_doubt():
    state = folded(CREATED, ADOPTED, INTENT)

    assert [past.address for past in state.in_doubt()] == ["e#1"]


def test_a_settlement_answers_only_the_attempt_it_names():
    """An old answer must not clear a new doubt."""
    later = EffectIntended("e#1", "d", Raw(b"{}"), "k", "ask", 2)
    state = folded(CREATED, ADOPTED, INTENT, later, EffectSettled("e#1", happened=False, attempt=1))

    assert state.calls["e#1"].state is PastState.IN_DOUBT


def test_a_settled_stop_makes_the_run_ready_to_go_on():
    state = folded(CREATED, ADOPTED, INTENT, STOPPED)
    assert state.status == "stopped"

    state = folded(CREATED, ADOPTED, INTENT, STOPPED, EffectSettled("e#1", happened=True, attempt=1, value=NULL))
    assert (state.status, state.stops) == ("queued", ())


def test_an_event_sent_twice_is_one_event():
    state = folded(CREATED, ADOPTED, EventSent("n", NULL, "same"), EventSent("n", NULL, "same"))

    assert len(state.events) == 1


def test_every_kind_round_trips_and_has_its_number_for_ever():
    """Golden numbers: a number in a released journal never changes its meaning."""
    assert {number: cls.__name__ for number, cls in KINDS.items()} == {
        1: "RunCreated", 2: "RunAdopted", 3: "RunReleased", 4: "RunStopped", 5: "RunDone", 6: "RunFailed",
        7: "CancelRequested", 8: "RunCancelled", 9: "RunContinued", 10: "CallsUnclaimed", 11: "FellBack", 12: "RunPruned", 13: "RunRewound", 14: "CallsReopened",
        15: "Acknowledged",
        16: "RunLeft", 17: "RunSuspended", 18: "QuarantineLifted", 19: "RunMoved",
        20: "StepStarted", 21: "StepDone", 22: "StepRaised", 23: "EffectIntended", 24: "EffectDone",
        25: "EffectRaised", 26: "EffectDoubted", 27: "EffectSettled", 28: "EffectUnstorable",
        29: "EffectSuspected", 30: "EffectRecovered", 31: "SagaCancelled", 32: "CallKept", 33: "CodeMatched", 34: "CallCancelled", 35: "EffectLandedLate",
        40: "ValueNoted", 41: "Progressed", 42: "Published", 43: "TimerSet", 44: "TimerFired",
        45: "WaitStarted", 46: "EventSent", 47: "EventTaken", 48: "WaitExpired", 49: "ChildEnded",
        50: "WorldSeen", 51: "DriftAccepted", 52: "QuestionAsked", 53: "AnswerGiven", 54: "QuestionExpired",
        60: "GenerationSaved", 61: "StoreAdopted", 70: "ThreadSaved", 71: "ThreadWrote", 72: "ThreadCleared",
    }  # fmt: skip


def test_a_seal_of_format_1_is_what_the_format_says():
    """A golden record: the seal can be recomputed from docs/JOURNAL_FORMAT.md alone."""
    import hashlib

    record = sealed(CREATED)[0]
    expected = hashlib.sha256(
        b"surefoot/journal/1\0" + b"s" * 16 + (1).to_bytes(4, "big") + b"r"
        + (1).to_bytes(8, "big") + (0).to_bytes(8, "big") + (1).to_bytes(8, "big")
        + (1).to_bytes(2, "big") + (1).to_bytes(2, "big") + (1).to_bytes(2, "big") + (0).to_bytes(2, "big")
        + bytes(32) + len(record.body).to_bytes(4, "big") + record.body
    ).digest()  # fmt: skip

    assert record.body == b'{"workflow":"wf","args":{},"digest":"d"}'
    assert record.seal == expected


@pytest.mark.parametrize("field", ["run", "seq", "epoch", "at", "kind", "schema", "codec", "key", "body", "seal"])
def test_no_field_of_a_record_can_be_changed_unnoticed(field):
    import msgspec

    records = sealed(CREATED, ADOPTED, STEP)
    value = getattr(records[1], field)
    other = value + (b"x" if isinstance(value, bytes) else "x" if isinstance(value, str) else 1)
    changed = [records[0], msgspec.structs.replace(records[1], **{field: other}), records[2]]
    sealer = Sealer(b"s" * 16, changed[1].run)

    assert verify(Sealer(b"s" * 16, "r"), records) == 3
    if field == "run":
        assert not sealer.holds(changed[1], records[0].seal)
    else:
        assert verify(sealer, changed) == 1


def test_records_of_another_run_or_store_or_order_do_not_verify():
    records = sealed(CREATED, ADOPTED, STEP)

    assert verify(Sealer(b"s" * 16, "other"), records) == 0
    assert verify(Sealer(b"t" * 16, "r"), records) == 0
    assert verify(Sealer(b"s" * 16, "r"), [records[0], records[2], records[1]]) == 1
    assert verify(Sealer(b"s" * 16, "r"), [records[0], records[2]]) == 1


def test_a_record_of_a_newer_version_is_refused_not_guessed():
    import msgspec

    record = sealed(CREATED)[0]
    with pytest.raises(SchemaMismatch, match="newer version"):
        from_record(msgspec.structs.replace(record, kind=999))
    with pytest.raises(SchemaMismatch, match="newer version"):
        from_record(msgspec.structs.replace(record, schema=2))
    with pytest.raises(CodecMissing, match="codec 7"):
        from_record(msgspec.structs.replace(record, codec=7))
    with pytest.raises(JournalCorrupt, match="cannot be read"):
        from_record(msgspec.structs.replace(record, body=b"{"))


def test_a_repair_is_no_longer_in_doubt_once_its_effect_is_done():
    """It undid a part, and whether it got to its end does not matter any more: somebody looked at what is there."""
    repair = EffectIntended("e#1.repair1", "d", Raw(b"{}"), "k2", "ask")

    assert [past.address for past in folded(CREATED, ADOPTED, INTENT, repair).in_doubt()] == ["e#1", "e#1.repair1"]
    settled = EffectSettled("e#1", happened=False, attempt=1, learned_by="check")
    again = EffectIntended("e#1", "d", Raw(b"{}"), "k", "check", 2)
    assert folded(CREATED, ADOPTED, INTENT, repair, settled, again, EffectDone("e#1", NULL, 2)).in_doubt() == []


def test_whoever_cleared_an_effect_is_not_the_one_who_tells_its_result():
    """Ann said that it had not happened. Then it ran, and what it gave is its own word, not hers."""
    cleared = EffectSettled("e#1", happened=False, attempt=1, learned_by="person", by="ann")
    again = EffectIntended("e#1", "d", Raw(b"{}"), "k", "ask", attempt=2)
    state = folded(CREATED, ADOPTED, INTENT, cleared, again, EffectDone("e#1", NULL, 2))

    past = state.calls["e#1"]
    assert (past.state, past.learned_by, past.cleared_by) == (PastState.DONE, "", "person ann")
