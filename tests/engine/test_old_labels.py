"""What a scope or a key was called before (`was=`) is believed before the label it has now; and two never share one."""

from __future__ import annotations

import pytest

import surefoot as sf


class Cut(BaseException):
    """The process ends here, as far as the run can tell."""


@pytest.fixture
def made(ledger):
    """No arguments: only its place tells which call it is."""

    @sf.effect
    def pay() -> str:
        ledger.write(f"pay {len(ledger.lines)}")
        return f"paid {len(ledger.lines)}"

    return pay


def scopes(call, *labels, cut=False, **was):
    def body():
        found = {}
        for label in labels:
            with sf.scope(label, was=was.get(label)):
                found[label] = call()
        if cut:
            raise Cut
        return found

    return sf.workflow(name="wf")(body)


def mapped(call, items, key, *, cut=False, was=None):
    def body():
        found = sf.map(lambda _: call(), items, key=key, was=was, concurrency=1)
        if cut:
            raise Cut
        return found

    return sf.workflow(name="wf")(body)


def begun(wf):
    with pytest.raises(Cut):
        wf.run("r")


@pytest.mark.parametrize("recorded", ["AB", "A", "B"])
@pytest.mark.parametrize("now", ["AB", "BA"])
def test_two_labels_that_were_swapped_are_refused(recorded, now, made, ledger):
    """Nobody can tell whether a record is from before or after: one call would be skipped, or be made twice."""
    begun(scopes(made, *recorded, cut=True))

    with pytest.raises(sf.UsageError, match="nobody can tell whose the recorded ones are"):
        scopes(made, *now, A="B", B="A").run("r")
    assert len(ledger.lines) == len(recorded)


@pytest.mark.parametrize("now", ["AB", "BA"])
def test_an_old_label_that_is_in_use_again_is_refused(now, made, ledger):
    begun(scopes(made, "A", cut=True))

    with pytest.raises(sf.UsageError, match=r"\[B\] says that it was \[A\]"):
        scopes(made, *now, B="A").run("r")
    assert len(ledger.lines) == 1


def test_that_is_found_by_the_first_run_too(made):
    """So that it is found by whoever writes it, and not in a run that was cut off weeks later."""
    with pytest.raises(sf.UsageError, match="nobody can tell"):
        scopes(made, "A", "B", A="B", B="A").run("r")


def test_other_calls_may_stay_behind_under_the_old_label(made, ledger):
    """Two loops over the same labels, one of which was relabelled."""

    @sf.effect
    def mail() -> str:
        ledger.write("mail")
        return "sent"

    def old():
        with sf.scope("A"):
            mail()
            made()
        raise Cut

    def new():
        with sf.scope("A"):
            sent = mail()
        with sf.scope("B", was="A"):
            return sent, made()

    begun(sf.workflow(name="wf")(old))

    assert sf.workflow(name="wf")(new).run("r") == ("sent", "paid 2")
    assert len(ledger.lines) == 2


@pytest.mark.parametrize("verb", [sf.random, lambda: str(sf.uuid4())], ids=["random", "uuid4"])
def test_a_declared_label_comes_before_the_same_label_on_record(verb):
    """The old B is gone, and A is called B now."""
    seen = {}

    def old():
        for label in "AB":
            with sf.scope(label):
                seen[label] = verb()
        raise Cut

    begun(sf.workflow(name="wf")(old))

    assert scopes(verb, "B", B="A").run("r") == {"B": seen["A"]}


def test_a_declared_label_comes_first_for_calls_as_well(ledger):
    @sf.step
    def ask() -> int:
        ledger.write("asked")
        return len(ledger.lines)

    begun(scopes(ask, "A", "B", cut=True))

    assert scopes(ask, "B", B="A").run("r") == {"B": 1}


@pytest.mark.parametrize("now", [lambda n: "ba"[n], lambda n: "bc"[n]], ids=["swapped", "shifted"])
def test_keys_that_were_other_items_are_refused(now, made, ledger):
    """Each item would be given what the other one did."""
    begun(mapped(made, range(2), lambda n: "ab"[n], cut=True))

    with pytest.raises(sf.UsageError, match="is one item's now, and was another one's"):
        mapped(made, range(2), now, was=lambda n: "ab"[n]).run("r")
    assert len(ledger.lines) == 2


def test_an_old_key_that_two_items_share_is_refused(made):
    with pytest.raises(sf.UsageError, match="the old key 'a' twice"):
        mapped(made, range(2), str, was=lambda _: "a").run("r")


def test_keys_of_a_form_of_their_own_are_found(made, ledger):
    begun(mapped(made, range(2), str, cut=True))

    assert mapped(made, range(2), lambda n: f"v2 {n}", was=str).run("r") == ["paid 1", "paid 2"]
    assert len(ledger.lines) == 2


def test_a_loop_in_a_scope_that_became_a_map_is_found_by_arguments(ledger):
    """All items were counted together there: whichever asks first must not be given another one's record."""

    @sf.effect
    def pay(to: str) -> str:
        ledger.write(to)
        return f"paid {to}"

    def old():
        with sf.scope("eu"):
            for to in "abc":
                pay(to)
        raise Cut

    begun(sf.workflow(name="wf")(old))
    new = sf.workflow(name="wf")(lambda: sf.map(pay, "cab", key=str, was="eu", concurrency=1))

    assert new.run("r") == ["paid c", "paid a", "paid b"]
    assert len(ledger.lines) == 3
