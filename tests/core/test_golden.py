"""A journal of every released format stays readable for ever. Golden files are never written again."""

from __future__ import annotations

import json
import re
from pathlib import Path

from surefoot.core import values
from surefoot.core.entry import KINDS, VISITORS
from surefoot.core.seal import Record, Sealer, from_record, verify
from surefoot.core.state import RunState

GOLDEN = Path(__file__).parents[1] / "golden"


def test_a_journal_of_format_1_verifies_folds_and_decodes():
    """If this fails, existing runs of users can no longer be resumed: mend the code, not the file."""
    golden = json.loads((GOLDEN / "format-1.json").read_text())
    records = [
        Record(golden["run"], *numbers, body.encode(), bytes.fromhex(seal))
        for *numbers, body, seal in golden["records"]
    ]
    assert verify(Sealer(bytes.fromhex(golden["store"]), golden["run"]), records) == len(records)

    state = RunState(golden["run"])
    for record in records:
        state.fold(record)

    assert (state.status, state.segment, state.epoch) == ("done", 2, 4)
    assert values.decode(state.value) == {"n": 1}
    assert {address: past.state.value for address, past in state.calls.items() if past.kind == "effect"} == {
        "[a%2Fb]/charge#1": "done",
        "refuse#1": "failed",
        "odd#1": "done",
    }
    assert values.decode_error(state.calls["refuse#1"].error).args == ("declined",)
    assert values.decode(state.calls["odd#1"].value) == "one"
    assert state.created is not None
    assert (state.created.version, state.created.labels) == (2, {"who": "ann"})


def test_a_step_value_of_format_1_comes_back_with_its_types():
    golden = json.loads((GOLDEN / "format-1.json").read_text())
    body = next(json.loads(record[7]) for record in golden["records"] if record[3] == 21)
    value = values.decode(json.dumps(body["value"]).encode())

    assert value["tuple"] == (1, 2.5, None)
    assert (value["bytes"], value["set"], value["$key"]) == (b"\x00\xff", {1, 2}, "escaped")


def test_a_thread_of_format_1_verifies_and_is_read():
    """If this fails, chats of users are lost: mend the code, not the file."""
    golden = json.loads((GOLDEN / "thread-format-1.json").read_text())
    records = [
        Record(golden["run"], *numbers, body.encode(), bytes.fromhex(seal))
        for *numbers, body, seal in golden["records"]
    ]
    assert verify(Sealer(bytes.fromhex(golden["store"]), golden["run"]), records) == len(records)

    cleared, first, wrote, second = map(from_record, records)

    assert cleared.why == "pruned: the newest of each namespace stay"
    assert (first.ns, first.id, first.parent, first.host, first.pid, first.adopted) == ("", "1efa", "", "vm", 7, "")
    assert (wrote.ns, wrote.id, wrote.task, wrote.path) == ("", "1efa", "task-1", "~__pregel_pull, n")
    assert (second.ns, second.parent, second.adopted) == ("sub:1", "1efa", "ab")
    assert json.loads(bytes(first.state))["channel_values"]["messages"][0]["$type"][0] == "langchain.HumanMessage"


def test_a_run_that_moved_in_format_1_verifies_and_folds_on_both_sides():
    """If this fails, a run that moved is driven in two stores, or in none: mend the code, not the file."""
    golden = json.loads((GOLDEN / "moved-format-1.json").read_text())
    states = {}
    for part, store in (("leaving", "source"), ("left", "source"), ("arrived", "target")):
        records = [
            Record(golden["run"], *numbers, body.encode(), bytes.fromhex(seal)) for *numbers, body, seal in golden[part]
        ]
        assert verify(Sealer(bytes.fromhex(golden["stores"][store]), golden["run"]), records) == len(records)
        states[part] = RunState(golden["run"])
        for record in records:
            states[part].fold(record)

    assert [states[part].status for part in ("leaving", "left", "arrived")] == ["moved", "moved", "done"]
    gone = states["left"].gone
    assert (gone.url, gone.status, gone.workflow, gone.entries) == ("postgresql://app@db/app", "queued", "sell", 5)
    assert states["leaving"].gone == gone
    (came,) = states["arrived"].came
    assert (came.store, came.seal, came.entries) == (golden["stores"]["source"], gone.seal, 5)
    assert states["arrived"].effect("charge#1").key == "k" * 40


def test_the_description_of_the_format_names_every_kind_with_its_fields():
    """It is for a stranger who has nothing else."""
    text = (GOLDEN.parents[1] / "docs" / "JOURNAL_FORMAT.md").read_text()
    rows = re.findall(r"^\| (\d+) \| (\w+)( †)?(?: ‡)? \| (.*)\|$", text, re.MULTILINE)

    told = {int(number): (name, bool(mark), re.sub(r" \(.*?\)", "", what).strip()) for number, name, mark, what in rows}

    assert told == {number: (cls.__name__, cls in VISITORS, ", ".join(_fields(cls))) for number, cls in KINDS.items()}


def _fields(cls):
    return [name for name in cls.__struct_fields__ if name != "large"]
