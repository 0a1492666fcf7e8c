"""A worker meets code that only a second rehearsal can judge."""

from __future__ import annotations

import pytest

import surefoot as sf

EDITED: list[bool] = []
RAN: list[str] = []


@sf.step
def fresh() -> None:
    RAN.append("fresh")


@sf.step
def read(n: int) -> str:
    RAN.append(f"read {n}")
    return f"answer {n}"


@sf.effect
def pay(n: int, about: str) -> str:
    RAN.append(f"pay {n} for {about}")
    return about


@sf.workflow
def agent() -> list[str]:
    got = []
    if EDITED:
        fresh()
        got.append(read(0))
    got.append(pay(1, read(1)))
    if not EDITED:
        raise KeyboardInterrupt
    got.append(read(2))
    return got


@pytest.fixture(autouse=True)
def _as_at_first():
    EDITED.clear()
    RAN.clear()


def test_two_new_steps_in_front_of_an_executed_effect_do_not_mix_up_answers(store):
    """The first hides from the rehearsal that the second, by a name on record, stands where a recorded call stood."""
    with pytest.raises(KeyboardInterrupt):
        agent.run("r")
    EDITED.append(True)

    with sf.Worker(concurrency=1):
        result = sf.get_run("r").result(timeout=30)

    assert result == ["answer 0", "answer 1", "answer 2"]
    assert RAN == ["read 1", "pay 1 for answer 1", "fresh", "read 0", "read 2"]
