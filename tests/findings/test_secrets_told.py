"""What people are asked and shown has no secret in it that a call of the run was given."""

from __future__ import annotations

from pathlib import Path

import pytest

import surefoot as sf
from surefoot.store.open import close_all

CANARY = "CANARY-77-token"


def stored() -> bytes:
    close_all()
    return b"".join(path.read_bytes() for path in Path(".surefoot").rglob("*") if path.is_file())


@pytest.fixture
def heard():
    told: list[str] = []
    sf.configure(alerts=[lambda alert: told.append(str(alert))])
    yield told
    sf.configure(alerts=[])


def test_a_question_that_repeats_a_secret_does_not_tell_it_and_its_answer_holds(heard, caplog, ledger):
    """The URL with its token is what a careless question shows: it goes to the journal, the alert and the log."""

    @sf.effect
    def log_in(token: sf.Secret[str]) -> None:
        ledger.write("in")

    @sf.workflow
    def wf() -> bool:
        log_in(sf.Secret(CANARY))
        return sf.approve(f"post to ?token={CANARY}?", details={"url": CANARY, CANARY: 1}).approved

    with pytest.raises(sf.WaitingForAnswer) as caught:
        wf.run("r")
    assert "post to ?token=***?" in str(caught.value)
    sf.get_run("r").answer("approve#1", True)

    assert wf.run("r") is True
    told = "".join([*heard, caplog.text, str(caught.value)])
    assert CANARY not in told
    assert CANARY.encode() not in stored()
    assert ledger.lines == ["in"]


def test_what_is_published_does_not_tell():
    @sf.step
    def log_in(token: sf.Secret[str]) -> None: ...

    @sf.workflow
    def wf() -> None:
        log_in(sf.Secret(CANARY))
        sf.publish("at", {"url": f"?token={CANARY}", "page": 3})

    wf.run("r")

    assert sf.get_run("r").published == {"at": {"url": "?token=***", "page": 3}}
    assert CANARY.encode() not in stored()
