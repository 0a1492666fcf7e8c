"""What only the drive can find: a branch stops because the code has changed, and no other begins an effect."""

from __future__ import annotations

import asyncio

import pytest

import surefoot as sf
import surefoot.aio
from surefoot.testing.clock import FastClock, installed
from tests.working import kinds, wait_until

HOUR = 3600.0
COLOURS = ("blocking", "async")


@pytest.fixture
def clock():
    with installed(FastClock()) as clock:
        yield clock


class Versions:
    """Old code that waits for a retry in its second branch, and new code that has renamed what the first one did."""

    def __init__(self, colour, ledger):
        self.colour = colour
        self.ledger = ledger
        self.busy = True

    def old(self):
        return self._workflow("send", new_step=False)

    def new(self):
        return self._workflow("tell", new_step=True)

    def _workflow(self, name, *, new_step):
        options = {"retries": 3, "not_done": LookupError, "backoff": sf.Backoff(first="1h", jitter=False)}

        def paid():
            self.ledger.write("pay" if not self.busy else "busy")
            if self.busy:
                raise LookupError("busy")

        if self.colour == "async":
            return self._in_tasks(name, new_step, options, paid)

        @sf.effect(name=name)
        def send():
            self.ledger.write("send")

        @sf.effect(name="pay", **options)
        def pay():
            paid()

        @sf.step
        def extra():
            return 1

        def handle(item):
            if item == "pay":
                return pay()
            if new_step:
                extra()
            return send()

        @sf.workflow(name="two_branches")
        def two_branches():
            sf.map(handle, ["send", "pay"], key=str, concurrency=1)

        return two_branches

    def _in_tasks(self, name, new_step, options, paid):
        @sf.effect(name=name)
        async def send():
            self.ledger.write("send")

        @sf.effect(name="pay", **options)
        async def pay():
            paid()

        @sf.step
        async def extra():
            return 1

        async def handle(item):
            if item == "pay":
                return await pay()
            if new_step:
                await extra()
            return await send()

        @sf.workflow(name="two_branches")
        async def two_branches():
            await surefoot.aio.map(handle, ["send", "pay"], key=str, concurrency=1)

        return two_branches

    def until_it_waits(self, old, clock):
        """A worker has let go of the run; then the hour is over."""
        started = old.start("r")
        if self.colour == "async":
            asyncio.run(started)
        with sf.Worker(workflows=[old]) as worker:
            wait_until(lambda: kinds("r").count("RunSuspended") == 1 and not worker.busy)
        self.busy = False
        clock.forward(HOUR + 1)

    def run(self, workflow):
        return asyncio.run(workflow.run("r")) if self.colour == "async" else workflow.run("r")


@pytest.mark.parametrize("colour", COLOURS)
def test_an_effect_that_waits_for_a_retry_is_not_tried_once_another_branch_found_changed_code(colour, clock, ledger):
    """It would be done for a run that a person has to look at first."""
    versions = Versions(colour, ledger)
    old = versions.old()
    versions.until_it_waits(old, clock)

    with pytest.raises(sf.CodeChanged, match="tell#1"):
        versions.run(versions.new())

    assert ledger.lines == ["send", "busy"]


@pytest.mark.parametrize("colour", COLOURS)
def test_an_effect_that_waits_for_a_retry_is_tried_when_the_code_is_as_it_was(colour, clock, ledger):
    """The other side of it: nothing is held back for nothing."""
    versions = Versions(colour, ledger)
    old = versions.old()
    versions.until_it_waits(old, clock)

    versions.run(old)

    assert ledger.lines == ["send", "busy", "pay"]
