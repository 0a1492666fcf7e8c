"""Retries, back-off and time-outs are recorded, so that a crash does not start them over."""

from __future__ import annotations

import pytest

import surefoot as sf

AT_ONCE = sf.Backoff(first=0, jitter=False)


def test_a_step_is_tried_as_often_as_declared(ledger):
    @sf.step(retries=2, backoff=AT_ONCE)
    def flaky() -> int:
        ledger.write(sf.attempt())
        if sf.attempt() < 3:
            raise ValueError("not yet")
        return sf.attempt()

    @sf.workflow
    def wf() -> int:
        return flaky()

    assert wf.run("r") == 3
    assert ledger.lines == ["1", "2", "3"]


def test_a_step_that_keeps_failing_raises_its_last_failure():
    @sf.step(retries=1, backoff=AT_ONCE)
    def flaky() -> int:
        raise ValueError(f"attempt {sf.attempt()}")

    @sf.workflow
    def wf() -> int:
        return flaky()

    with pytest.raises(ValueError, match="attempt 2"):
        wf.run("r")


def test_only_what_retry_on_names_is_tried_again(ledger):
    @sf.step(retries=5, retry_on=OSError, backoff=AT_ONCE)
    def flaky() -> int:
        ledger.write("x")
        raise ValueError

    @sf.workflow
    def wf() -> int:
        return flaky()

    with pytest.raises(ValueError):
        wf.run("r")
    assert len(ledger.lines) == 1


def test_fatal_is_never_tried_again(ledger):
    @sf.step(retries=5, backoff=AT_ONCE)
    def flaky() -> int:
        ledger.write("x")
        raise sf.Fatal("no such model")

    @sf.workflow
    def wf() -> int:
        return flaky()

    with pytest.raises(sf.Fatal, match="no such model"):
        wf.run("r")
    assert len(ledger.lines) == 1


def test_retry_after_is_honoured_and_recorded():
    @sf.step
    def limited() -> int:
        if sf.attempt() == 1:
            raise sf.RetryAfter(0.01)
        return sf.attempt()

    @sf.workflow
    def wf() -> int:
        return limited()

    assert wf.run("r") == 2
    raised = next(entry for entry in sf.get_run("r").entries() if entry.kind == "StepRaised")
    assert raised.data["due"]["at"] >= raised.at.timestamp() * 1e6


def test_attempts_go_on_counting_after_a_crash(ledger):
    """Otherwise a crashing worker would retry for ever."""
    crashed: list[int] = []

    @sf.step(retries=2, backoff=AT_ONCE)
    def flaky() -> int:
        ledger.write(sf.attempt())
        if sf.attempt() == 2 and not crashed:
            crashed.append(1)
            raise KeyboardInterrupt
        raise ValueError

    @sf.workflow
    def wf() -> int:
        return flaky()

    with pytest.raises(KeyboardInterrupt):
        wf.run("r")
    with pytest.raises(ValueError):
        wf.run("r")
    assert ledger.lines == ["1", "2", "2", "3"]


def test_a_step_that_outlives_its_time_fails_that_attempt():
    import threading

    release = threading.Event()

    @sf.step(timeout="50ms", retries=1, backoff=AT_ONCE)
    def slow() -> int:
        if sf.attempt() == 1:
            release.wait(30)
        return sf.attempt()

    @sf.workflow
    def wf() -> int:
        return slow()

    assert wf.run("r") == 2
    release.set()


@pytest.mark.parametrize("bad", ["fast", "10", "-1s", -1, True, float("nan"), None])
def test_durations_that_make_no_sense_are_refused(bad):
    @sf.workflow
    def wf() -> None:
        sf.sleep(bad)

    with pytest.raises(sf.UsageError, match="duration"):
        wf.run("r")


def test_a_sleep_is_recorded_once_and_not_slept_again(kinds):
    crashed: list[int] = []

    @sf.step
    def mark() -> None: ...

    @sf.workflow
    def wf() -> None:
        sf.sleep(0.01)
        mark()
        if not crashed:
            crashed.append(1)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        wf.run("r")
    wf.run("r")

    assert kinds("r").count("TimerSet") == 1
    assert kinds("r").count("TimerFired") == 1
