"""What a person said about a changed call holds for what was shown, and for nothing else."""

from __future__ import annotations

import asyncio

import pytest

import surefoot as sf


class Cut(BaseException):
    """The process ends here, as far as the run can tell."""


@pytest.fixture
def effects(ledger):
    @sf.effect
    def charge(to: str) -> str:
        ledger.write(f"charge {to} {sf.key()}")
        return f"charged {to}"

    @sf.effect
    def mail(to: str) -> str:
        ledger.write(f"mail {to}")
        return f"mailed {to}"

    return charge, mail


def deployed(body):
    return sf.workflow(name="wf")(body)


def cut_behind(body):
    """A process that does this much and then ends, in the middle of the run."""

    def cut():
        body()
        raise Cut

    with pytest.raises(Cut):
        deployed(cut).run("r")


def redeployed(*, old, new):
    """New code, for a run that the old code was cut off in. It stops: the code has changed."""
    cut_behind(old)
    wf = deployed(new)
    stopped(wf)
    return wf


def stopped(wf):
    with pytest.raises(sf.CodeChanged) as stop:
        wf.run("r")
    return stop.value


def done(ledger):
    return [" ".join(line.split()[:2]) for line in ledger.lines]


def both(first, second, to="ada"):
    """A body that makes two calls."""

    def body():
        first(to)
        second(to)
        return 1

    return body


def test_what_a_person_called_new_is_made_once(effects, ledger):
    """The word stays on record, and the call is replayed again and again."""
    charge, mail = effects

    def new():
        charge("ada")
        mail("ada")
        sf.wait_event("first")
        return sf.wait_event("second")

    wf = redeployed(old=lambda: mail("ada"), new=new)
    sf.get_run("r").match("charge#1", new=True)
    with pytest.raises(sf.WaitingForAnswer):
        wf.run("r")
    sf.send_event("r", "first", 1)
    with pytest.raises(sf.WaitingForAnswer):
        wf.run("r")
    sf.send_event("r", "second", 2)

    assert wf.run("r") == 2
    assert done(ledger) == ["mail ada", "charge ada"]


def test_a_call_put_in_front_of_its_like_is_made_and_the_others_keep_theirs(effects, ledger):
    _, mail = effects
    wf = redeployed(old=lambda: mail("ada"), new=lambda: (mail("cleo"), mail("ada")) and 1)
    sf.get_run("r").match("mail#1", new=True)

    assert wf.run("r") == 1
    assert done(ledger) == ["mail ada", "mail cleo"]


def test_a_word_is_void_once_the_code_asks_for_something_else(effects, ledger):
    """Said of cleo; then the deploy is rolled back, and the same address means ada again."""
    _, mail = effects
    redeployed(old=lambda: mail("ada"), new=lambda: mail("cleo"))
    sf.get_run("r").match("mail#1", new=True)

    cut_behind(lambda: mail("ada"))
    assert done(ledger) == ["mail ada"]


def test_what_was_kept_once_is_not_kept_for_other_arguments(effects):
    charge, _ = effects
    redeployed(old=lambda: charge("o1"), new=lambda: charge("o1, express"))
    sf.get_run("r").match("charge#1", keep=True)

    stopped(deployed(lambda: charge("o99")))


def swapped(mail):
    return {"old": lambda: (mail("ada"), mail("bob")), "new": lambda: (mail("bob"), mail("ada")) and 1}


def test_the_record_with_these_very_arguments_is_offered_first(effects):
    _, mail = effects
    wf = redeployed(**swapped(mail))

    assert stopped(wf).cures[0] == ("it is mail#2?", "surefoot match r 'mail#1' --is 'mail#2'")


def test_two_calls_that_were_swapped_need_one_word(effects, ledger):
    """The other record is left, with the very arguments that the other call has."""
    _, mail = effects
    wf = redeployed(**swapped(mail))
    sf.get_run("r").match("mail#1", is_="mail#2")

    assert wf.run("r") == 1
    assert done(ledger) == ["mail ada", "mail bob"]


def test_a_pattern_that_hits_what_is_on_record_is_no_new_call(effects):
    charge, mail = effects
    redeployed(old=lambda: mail("ada"), new=both(charge, mail))

    with pytest.raises(sf.UsageError, match="also hits mail#1"):
        sf.get_run("r").match("*", new=True)


@pytest.mark.parametrize("before", [1, 2])
def test_a_record_that_was_given_away_is_not_made_again(effects, ledger, before):
    """Somebody pasted the wrong cure: the code still asks for the old effect by itself. The word can be taken back."""
    charge, mail = effects
    wf = redeployed(
        old=lambda: [mail("ada") for _ in range(before)],
        new=lambda: (charge("ada"), [mail("ada") for _ in range(before)]) and 1,
    )
    sf.get_run("r").match("charge#1", is_="mail#1")

    with pytest.raises(sf.UsageError, match=r"still asks for mail#1.*surefoot match r 'charge#1' --new"):
        wf.run("r")
    assert done(ledger) == ["mail ada"] * before
    sf.get_run("r").match("charge#1", new=True)
    assert wf.run("r") == 1
    assert done(ledger) == ["mail ada"] * before + ["charge ada"]


def test_one_recorded_call_is_not_given_to_two(effects, ledger):
    """The second word would be an answer to nothing: the run would stop at the same call again."""
    charge, mail = effects
    wf = redeployed(old=both(mail, mail), new=both(charge, charge))
    sf.get_run("r").match("charge#1", is_="mail#1", by="ann")
    stopped(wf)

    with pytest.raises(sf.UsageError, match="mail#1 is on record once, and ann has said that it is charge#1"):
        sf.get_run("r").match("charge#2", is_="mail#1")
    sf.get_run("r").match("charge#2", is_="mail#2")
    assert wf.run("r") == 1
    assert done(ledger) == ["mail ada"] * 2


def test_two_effects_of_one_name_are_refused(ledger):
    """Recorded calls are known by name and number: one would be given what the other did."""

    class Bank:
        @staticmethod
        @sf.effect
        def send(to: str) -> None:
            ledger.write(f"bank {to}")

    class Mail:
        @staticmethod
        @sf.effect
        def send(to: str) -> None:
            ledger.write(f"mail {to}")

    def body():
        Bank.send("ann")
        Mail.send("ann")

    with pytest.raises(sf.UsageError, match="two effects are called send"):
        deployed(body).run("r")
    assert ledger.lines == ["bank ann"]


def test_what_others_did_in_the_same_group_is_not_denied(ledger):
    """One task was refused, its sibling has paid."""

    @sf.effect
    async def pay() -> None:
        async def other():
            ledger.write("paid")

        async def refused():
            raise ConnectionRefusedError

        async with asyncio.TaskGroup() as group:
            group.create_task(other())
            group.create_task(refused())

    @sf.workflow
    async def wf() -> None:
        await pay()

    with pytest.raises(sf.InDoubt):
        asyncio.run(wf.run("r"))
    assert ledger.lines == ["paid"]


def test_a_refusal_that_follows_a_doubt_proves_nothing(ledger):
    """The first request may have got through; that a second one was refused says nothing about it."""

    @sf.effect
    def pay() -> None:
        try:
            ledger.write("paid")
            raise TimeoutError("no answer")
        except TimeoutError:
            raise ConnectionRefusedError from None

    @sf.workflow
    def wf() -> None:
        pay()

    with pytest.raises(sf.InDoubt):
        wf.run("r")


def test_a_pattern_is_no_word_on_what_is_recorded_later(effects, ledger):
    """All that was on record was kept; a charge that came after it was not meant."""
    charge, mail = effects
    redeployed(old=lambda: mail("ada"), new=lambda: mail("cleo"))
    sf.get_run("r").match("*", keep=True)
    cut_behind(both(mail, charge, "cleo"))

    stopped(deployed(lambda: (mail("cleo"), charge("cleo, express")) and 1))
    assert done(ledger) == ["mail ada", "charge cleo"]
