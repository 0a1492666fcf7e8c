"""Who did what, in all runs, newest first."""

from __future__ import annotations

import pytest

import surefoot as sf
from surefoot.engine.operate import audit
from surefoot.engine.process.config import runtime
from surefoot.view import facts


@sf.effect
def pay() -> int:
    raise ConnectionError("lost")


@pay.check
def _():
    return sf.happened(1)


@sf.workflow(name="audit_checked")
def checked() -> int:
    return pay()


@sf.workflow(name="audit_asking")
def asking() -> bool:
    return bool(sf.approve("Go on?"))


@pytest.fixture
def busy():
    """Two runs: about one, people said something."""
    assert checked.run("checked") == 1
    with pytest.raises(sf.WaitingForAnswer):
        asking.run("asks")
    run = sf.get_run("asks")
    run.send_event("news", 1, id="1", by="bob")
    run.answer("approve#1", True, by="ann", via="console")
    asking.run("asks")
    run.rewind("approve#1", by="ann", note="wrong")


def told(**query):
    found = audit.said(runtime(None, create=False), **query)
    return [(one.run, one.by, one.entry.kind) for one in found]


def test_what_people_said_is_listed_and_what_checks_said_is_not(busy):
    """An audit is about people: what the code found out is in the journal."""
    assert told() == [
        ("asks", "ann", "RunRewound"), ("asks", "ann", "AnswerGiven"), ("asks", "bob", "EventSent"),
    ]  # fmt: skip


def test_it_is_filtered_by_person_and_kind_and_read_on_behind_a_line(busy):
    first, *_ = audit.said(runtime(None, create=False))

    assert told(who="bob") == [("asks", "bob", "EventSent")]
    assert told(kinds=["AnswerGiven"]) == [("asks", "ann", "AnswerGiven")]
    assert told(before=first.pos) == told()[1:]


def test_line_has_the_seal_of_its_entry(busy):
    """By it the entry is found again in any copy of the journal."""
    (line,) = facts.audit(audit.said(runtime(None, create=False), who="bob"))["said"]

    assert line["entry"]["data"]["name"] == "news"
    assert len(line["seal"]) == 64
    assert (line["run"], line["by"]) == ("asks", "bob")
