"""A verb reads and verifies a journal once. Long runs have long journals, and people wait for every verb."""

from __future__ import annotations

import pytest

import surefoot as sf
from surefoot import witness
from surefoot.store.sqlite.store import SqliteStore

AGAIN = "--app tests.cli.test_cli_reads --yes"
VERBS = {
    "runs show": ("runs show doubtful", 1),
    "runs plan": ("runs plan doubtful", 1),
    "runs plan with the code": ("runs plan doubtful --app tests.cli.test_cli_reads", 1),
    "settle": ("settle doubtful pay#1 --not-happened", 1),
    "settle with a value": ("settle doubtful pay#1 --happened 1 --yes", 1),
    "approve": ("approve asking", 1),
    "deny": ("deny asking approve#1", 1),
    "answer": ("answer asking approve#1 true", 1),
    "accept": ("accept drifted", 1),
    "match, of what does not stand at changed code": ("match doubtful pay#1 --new", 1),
    "runs rewind": ("runs rewind doubtful --at look#1 --yes", 1),
    "runs retry": ("runs retry failed --failed --yes", 1),
    "runs cancel": ("runs cancel asking --yes", 2),
    "runs resume": (f"runs resume failed-never {AGAIN}", 1),
    "runs resume, of what stops": (f"runs resume doubtful {AGAIN}", 1),
}
"""Verb -> its words, and how often it may read the whole journal of its run. `cancel` drives the run to its end, and then
tells how it ended: it reads again what was written in between.
"""


@sf.step
def look() -> int:
    return 1


@sf.effect
def pay(cents: int) -> int:
    raise ConnectionError


@sf.step
def fail() -> None:
    raise ValueError


@sf.workflow
def doubtful_reads() -> None:
    pay(look())


@sf.workflow
def asking_reads() -> None:
    look()
    sf.approve("go on?")


@sf.workflow
def failing_reads() -> None:
    fail()


@sf.workflow
def drifting_reads() -> None:
    sf.watch(witness.file("watched"))
    sf.approve("go on?")


@pytest.fixture
def runs_to_read(own_folder):
    (own_folder / "watched").write_text("before")
    with pytest.raises(sf.InDoubt):
        doubtful_reads.run("doubtful")
    for workflow, run in ((asking_reads, "asking"), (drifting_reads, "drifted")):
        with pytest.raises(sf.WaitingForAnswer):
            workflow.run(run)
    with pytest.raises(ValueError):
        failing_reads.run("failed")
    asking_reads.start("failed-never")
    (own_folder / "watched").write_text("after")


@pytest.fixture
def whole_reads(monkeypatch):
    """The runs whose journals were read from their beginning, each time that they were."""
    found = []
    read = SqliteStore.read

    def counted(self, run, after=0, limit=None):
        if after == 0 and limit is None:
            found.append(run)
        return read(self, run, after, limit)

    monkeypatch.setattr(SqliteStore, "read", counted)
    return found


@pytest.mark.parametrize("verb", VERBS)
def test_verb_reads_the_journal_once(cli, runs_to_read, whole_reads, verb):
    """Up to five times it was: by the handle, the plan, the page, the visit and the resume."""
    words, most = VERBS[verb]

    ended = cli(*words.split())

    assert ended.code in (0, 3) or "changed code" in verb, ended.err
    assert len(whole_reads) <= most, whole_reads
