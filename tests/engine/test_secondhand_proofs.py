"""What a call inside an effect raises speaks of that call. The effect around it may have acted before."""

from __future__ import annotations

import asyncio

import pytest

import surefoot as sf

WORDS = [
    sf.Unavailable("receipts are away", retry_after=0.01),
    sf.Fatal("no receipt"),
    sf.NotDone("no receipt"),
    sf.RetryAfter(0.01),
    ConnectionRefusedError("receipts"),
]


def raising(error):
    raise error


def fresh(error):
    """One that has been raised nowhere yet."""
    return error.with_traceback(None)


def run_it(workflow, run_id="r"):
    found = workflow.run(run_id)
    return asyncio.run(found) if asyncio.iscoroutine(found) else found


def paying(how, after_it, **options):
    """A workflow with one effect that acts, and then does this."""
    if how == "async":

        @sf.effect(name="pay", **options)
        async def pay_async():
            return await after_it()

        @sf.workflow(name="wf_async")
        async def wf_async():
            return await pay_async()

        return wf_async

    @sf.effect(name="pay", **options)
    def pay():
        return after_it()

    @sf.workflow
    def wf():
        return pay()

    return wf


@pytest.mark.parametrize("error", WORDS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("how", ["blocking", "async"])
def test_what_a_step_inside_an_effect_raises_leaves_the_effect_in_doubt(how, error, ledger):
    """It has paid, and the receipt cannot be had: to pay again, or to call it failed, would be wrong."""
    if how == "async":

        @sf.step
        async def receipt():
            raising(fresh(error))

        async def paid():
            ledger.write("paid")
            return await receipt()
    else:

        @sf.step
        def receipt():
            raising(fresh(error))

        def paid():
            ledger.write("paid")
            return receipt()

    with pytest.raises(sf.InDoubt, match="a call inside of it"):
        run_it(paying(how, paid, retries=3, not_done=ConnectionRefusedError))

    assert ledger.lines == ["paid"]


@pytest.mark.parametrize("way", ["raised again", "kept and raised later", "in a group", "in a group of groups"])
def test_to_raise_it_again_makes_it_no_word_of_the_effect(way, ledger):
    @sf.step
    def receipt():
        raise sf.NotDone("no receipt")

    def paid():
        ledger.write("paid")
        try:
            receipt()
        except sf.NotDone as error:
            if way == "raised again":
                raise
            kept = error
        if way == "kept and raised later":
            raise kept
        group = ExceptionGroup("by hand", [sf.NotDone("mine"), kept])
        raise group if way == "in a group" else ExceptionGroup("by hand", [group])

    with pytest.raises(sf.InDoubt):
        run_it(paying("blocking", paid))

    assert ledger.lines == ["paid"]


def test_a_new_exception_is_the_word_of_the_effect(ledger):
    """It knows what a failure inside of it means."""

    @sf.step
    def rate():
        raise OSError("no rates today")

    def quoted():
        try:
            return rate()
        except OSError as error:
            raise sf.NotDone("nothing was sent") from error

    with pytest.raises(sf.NotDone, match="nothing was sent"):
        run_it(paying("blocking", quoted))


def test_the_effects_own_word_counts_after_a_step_that_went_well():
    @sf.step
    def rate():
        return 2

    def quoted():
        raise sf.NotDone(f"too dear at {rate()}")

    with pytest.raises(sf.NotDone, match="too dear"):
        run_it(paying("blocking", quoted))


@pytest.mark.parametrize("way", ["run", "run again", "result"])
@pytest.mark.parametrize("how", ["blocking", "async"])
def test_failure_of_another_run_proves_nothing_about_the_effect_that_drove_it(how, way, ledger):
    """That run's own effect was done before it failed."""
    if how == "async":

        @sf.effect
        async def charge():
            ledger.write("charged")

        @sf.workflow
        async def sub():
            await charge()
            raise sf.NotDone("of the other run")

        async def driven():
            return sf.get_run("sub").result() if way == "result" else await sub.run("sub")
    else:

        @sf.effect
        def charge():
            ledger.write("charged")

        @sf.workflow
        def sub():
            charge()
            raise sf.NotDone("of the other run")

        def driven():
            return sf.get_run("sub").result() if way == "result" else sub.run("sub")

    if way != "run":
        with pytest.raises(sf.NotDone):
            run_it(sub, "sub")

    with pytest.raises(sf.InDoubt, match="another run"):
        run_it(paying(how, driven))

    assert ledger.lines == ["charged"]
