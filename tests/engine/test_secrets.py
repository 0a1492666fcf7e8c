"""What was passed as `sf.Secret` is in nothing that a run records or shows, whatever user code makes of it."""

from __future__ import annotations

import asyncio
import inspect
import logging
import warnings
from pathlib import Path
from typing import Any

import pytest

import surefoot as sf
from surefoot import aio
from surefoot.store.open import close_all
from surefoot.witness import observe

CANARY = "https://api.example/?token=CANARY-77"
OTHER = sf.Secret("OTHER-88")
TOKEN = "TOKEN-99-secret"


class Crash(BaseException):
    """Unwinds like Ctrl-C: the run is left where it is."""


class Silent(Exception):
    """A class that nobody registered."""


@pytest.fixture
def heard():
    """What alerts were told."""
    told: list[Any] = []
    sf.configure(alerts=[told.append])
    yield told
    sf.configure(alerts=[])


def stored() -> bytes:
    close_all()
    return b"".join(path.read_bytes() for path in Path(".surefoot").rglob("*") if path.is_file())


def run(workflow: Any, run_id: str = "r") -> Any:
    found = workflow.run(run_id)
    return asyncio.run(found) if inspect.isawaitable(found) else found


def told_by(error: BaseException | None) -> str:
    """All that a caller can read of an exception and of what led to it."""
    if error is None:
        return ""
    return f"{error} {error!r} {vars(error)} {told_by(error.__cause__)} {told_by(error.__context__)}"


@pytest.mark.parametrize("kind", ["effect", "effect that fails", "step", "async step"])
def test_an_exception_that_repeats_a_secret_does_not_tell_it(kind, heard, caplog):
    """Real clients put the URL, and with it the token, into their messages: in journal, alert, stop and log."""
    caplog.set_level(logging.DEBUG)

    def call(url: sf.Secret[str]) -> None:
        try:
            raise Silent(f"socket to {url.reveal()}")
        except Silent as silent:
            silent.add_note(url.reveal())
            raise TimeoutError(f"no answer from {url.reveal()}") from silent

    async def in_task(url: sf.Secret[str]) -> None:
        call(url)

    if kind == "async step":
        awaited = sf.step(in_task)

        @sf.workflow
        async def wf() -> None:
            await awaited(sf.Secret(CANARY))
    else:
        on_crash = "fail" if kind == "effect that fails" else "ask"
        called = sf.step(call) if kind == "step" else sf.effect(on_crash=on_crash)(call)

        @sf.workflow
        def wf() -> None:  # type: ignore[misc]
            called(sf.Secret(CANARY))

    for _ in range(2):
        with pytest.raises(sf.SurefootError if kind.startswith("effect") else TimeoutError) as caught:
            run(wf)
        assert "CANARY-77" not in told_by(caught.value)
        assert "***" in str(caught.value)
    assert b"CANARY-77" not in stored()
    assert "CANARY-77" not in f"{heard} {caplog.text}"


def test_the_workflows_own_exception_does_not_tell(heard):
    """It handles a secret as well as its calls do."""

    @sf.step
    def use(key: sf.Secret[str]) -> int:
        return len(key.reveal())

    @sf.workflow
    def wf() -> None:
        key = sf.Secret(CANARY)
        use(key)
        sf.progress(1, 2, f"with {key.reveal()}")
        raise Silent(key.reveal())

    for _ in range(2):
        with pytest.raises(Silent) as caught:
            run(wf)
        assert "CANARY-77" not in told_by(caught.value)
    assert b"CANARY-77" not in stored()


@pytest.mark.parametrize("how", ["unknown", "partial", "raises"])
def test_what_a_check_says_does_not_tell(how, heard):
    """A check looks with the same token, and fails with the same messages."""

    @sf.effect(on_crash="check")
    def call(url: sf.Secret[str]) -> None:
        raise Crash

    @call.check
    def _(url: sf.Secret[str]) -> Any:
        text = f"asked {url.reveal()}"
        if how == "raises":
            raise Silent(text)
        return sf.unknown(text) if how == "unknown" else sf.partial(text)

    @sf.workflow
    def wf() -> None:
        call(sf.Secret(CANARY))

    with pytest.raises(Crash):
        run(wf)
    with pytest.raises(sf.InDoubt, match=r"\*\*\*") as caught:
        run(wf)

    assert "CANARY-77" not in told_by(caught.value)
    assert b"CANARY-77" not in stored()
    assert "CANARY-77" not in str(heard)


def test_secrets_that_are_not_recorded_at_all_are_known_too():
    """`ignore=` and defaults: nothing of them is in the journal, and their text must not get there either."""

    class Client:
        def __init__(self) -> None:
            self.token = sf.Secret(CANARY)

    @sf.step(ignore="client")
    def call(client: Client, other: sf.Secret[str] = OTHER) -> None:
        raise Silent(f"{client.token.reveal()} {other.reveal()}")

    @sf.workflow
    def wf() -> None:
        call(Client())

    with pytest.raises(Silent, match=r"\*\*\* \*\*\*"):
        run(wf)
    assert b"CANARY-77" not in stored()
    assert b"OTHER" not in stored()


def test_misuse_does_not_tell():
    """It is no failure of the run, but the caller reads it, and why the run was let go of is recorded."""

    @sf.effect(touches=[lambda url: 1 / len([]) if url is None else {}[url.reveal()]])
    def call(url: sf.Secret[str]) -> None: ...

    @sf.workflow
    def wf() -> None:
        call(sf.Secret(CANARY))

    with pytest.raises(sf.UsageError, match="touches=") as caught:
        run(wf)
    assert "CANARY-77" not in told_by(caught.value)
    assert b"CANARY-77" not in stored()


def test_a_secret_of_a_workflow_is_warned_of_when_it_is_declared():
    """No workflow can reveal one; the cure is to read it where it is used."""
    with pytest.warns(RuntimeWarning, match=r"workflow wf: it declares a parameter that is an sf\.Secret.*os\.environ"):

        @sf.workflow
        def wf(key: sf.Secret[str]) -> None: ...

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        wf.run("told-once", sf.Secret(CANARY))

    @sf.workflow
    def silent(key) -> None:
        raise Silent(CANARY)

    with pytest.warns(RuntimeWarning, match="it was given an sf.Secret"), pytest.raises(Silent, match=r"\*\*\*"):
        silent.run("s", sf.Secret(CANARY))
    assert b"CANARY-77" not in stored()


def test_what_a_witness_could_not_see_does_not_tell(heard):
    """It looks with the token of the effect, and the stop repeats why it could not."""

    def failing(url: sf.Secret[str]) -> Any:
        def look() -> Any:
            raise Silent(f"no answer from {url.reveal()}")

        return observe("page", look)

    @sf.effect(touches=[failing])
    def call(url: sf.Secret[str]) -> None: ...

    @sf.workflow
    def wf() -> None:
        call(sf.Secret(CANARY))

    with pytest.raises(sf.Drifted, match=r"\*\*\*") as caught:
        run(wf)
    assert "CANARY-77" not in told_by(caught.value)
    assert "CANARY-77" not in str(heard)
    assert b"CANARY-77" not in stored()


@pytest.mark.parametrize("where", ["step", "workflow"])
def test_why_a_run_is_parked_does_not_tell(where, caplog):
    """`sf.Unavailable` is raised with the text of the client: it is recorded, shown, and said to whoever waits."""
    caplog.set_level(logging.DEBUG)
    tried: list[int] = []

    def away(url: sf.Secret[str]) -> None:
        tried.append(1)
        if len(tried) == 1:
            raise sf.Unavailable(f"no answer from {url.reveal()}", retry_after=0.01)

    @sf.step
    def call(url: sf.Secret[str]) -> None:
        if where == "step":
            away(url)

    @sf.workflow
    def wf() -> str:
        url = sf.Secret(CANARY)
        call(url)
        if where == "workflow":
            away(url)
        return "through"

    assert run(wf) == "through"
    assert len(tried) == 2
    assert "CANARY-77" not in caplog.text
    assert b"CANARY-77" not in stored()


def test_a_question_that_repeats_a_secret_does_not_tell_it_and_its_answer_holds(heard, caplog, ledger):
    """The URL with its token is what a careless question shows: it goes to the journal, the alert and the log."""

    @sf.effect
    def log_in(token: sf.Secret[str]) -> None:
        ledger.write("in")

    @sf.workflow
    def wf() -> bool:
        log_in(sf.Secret(TOKEN))
        return sf.approve(f"post to ?token={TOKEN}?", details={"url": TOKEN, TOKEN: 1}).approved

    with pytest.raises(sf.WaitingForAnswer) as caught:
        wf.run("r")
    assert "post to ?token=***?" in str(caught.value)
    sf.get_run("r").answer("approve#1", True)

    assert wf.run("r") is True
    told = "".join([*map(str, heard), caplog.text, told_by(caught.value)])
    assert TOKEN not in told
    assert TOKEN.encode() not in stored()
    assert ledger.lines == ["in"]


def test_what_is_published_does_not_tell():
    @sf.step
    def log_in(token: sf.Secret[str]) -> None: ...

    @sf.workflow
    def wf() -> None:
        log_in(sf.Secret(TOKEN))
        sf.publish("at", {"url": f"?token={TOKEN}", "page": 3})

    wf.run("r")

    assert sf.get_run("r").published == {"at": {"url": "?token=***", "page": 3}}
    assert TOKEN.encode() not in stored()


@sf.step
def log_in(token: sf.Secret[str]) -> None: ...


@sf.workflow
def waits_by_its_secret() -> Any:
    log_in(sf.Secret(TOKEN))
    return sf.wait_event(f"callback-{TOKEN}")


@sf.workflow
def sends_by_its_secret() -> None:
    log_in(sf.Secret(TOKEN))
    sf.send_event("r", f"callback-{TOKEN}")


@sf.workflow
async def sends_by_its_secret_async() -> None:
    log_in(sf.Secret(TOKEN))
    await aio.send_event("r", f"callback-{TOKEN}")


@pytest.mark.parametrize("workflow", [waits_by_its_secret, sends_by_its_secret, sends_by_its_secret_async])
def test_an_event_is_not_named_by_a_secret(workflow, heard, caplog):
    """It cannot be masked: whoever sends it has to know its name, and two secrets would become one name."""
    with pytest.raises(sf.UsageError, match=r"the event 'callback-\*\*\*' has a secret in its name") as caught:
        run(workflow)

    assert TOKEN not in "".join([*map(str, heard), caplog.text, told_by(caught.value)])
    assert TOKEN.encode() not in stored()


def test_a_name_under_which_something_is_published_does_not_tell():
    @sf.workflow
    def wf() -> None:
        log_in(sf.Secret(TOKEN))
        sf.publish(f"at {TOKEN}", 3)

    wf.run("r")

    assert sf.get_run("r").published == {"at ***": 3}
    assert TOKEN.encode() not in stored()


def test_an_event_that_was_waited_for_before_its_name_was_a_secret_does_not_tell_on(heard, caplog):
    """On record it stays; but the log and the alert of a process that waits need not repeat it."""
    secret = []

    @sf.workflow
    def wf() -> Any:
        if secret:
            log_in(sf.Secret(TOKEN))
        return sf.wait_event(f"callback-{TOKEN}")

    with pytest.raises(sf.WaitingForAnswer):
        wf.run("r")
    secret.append(1)
    heard.clear()
    caplog.clear()

    with pytest.raises(sf.WaitingForAnswer, match=r"waiting for event 'callback-\*\*\*'"):
        wf.using(wait="10ms").run("r")
    assert "waiting for event 'callback-***'. Waiting" in caplog.text
    assert TOKEN not in "".join([*map(str, heard), caplog.text])
