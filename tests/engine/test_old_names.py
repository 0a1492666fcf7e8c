"""`was=` and `sf.removed`: what the code says about calls on record. What cannot be true is refused where it is said."""

from __future__ import annotations

import pytest

import surefoot as sf
from surefoot.core.history import PastEffect, PastState
from surefoot.engine.declare import removal


@pytest.mark.parametrize("decorate", [sf.step, sf.effect, sf.workflow])
@pytest.mark.parametrize("was", [5, "", ("old", ""), ("old", None), {"old": 1}, b"old"])
def test_an_old_name_that_is_none_is_refused_when_it_is_said(decorate, was):
    """Found at import, and not when a run that lives for days is resumed."""
    with pytest.raises(sf.UsageError, match="what it was called before"):

        @decorate(was=was)
        def call(): ...


@pytest.mark.parametrize("decorate", [sf.step, sf.effect])
def test_an_old_name_that_is_its_own_is_refused(decorate):
    with pytest.raises(sf.UsageError, match="names itself"):

        @decorate(was="call")
        def call(): ...


def test_effects_that_are_each_others_old_names_are_refused():
    """Nobody could tell whose the recorded calls are."""

    @sf.effect(was="second")
    def first(): ...

    with pytest.raises(sf.UsageError, match=r"effect second: was= leads back to it \(second -> first -> second\)"):

        @sf.effect(was="first")
        def second(): ...


def test_a_longer_circle_of_old_names_is_refused():
    @sf.effect(was="two")
    def one(): ...

    @sf.effect(was=("other", "three"))
    def two(): ...

    with pytest.raises(sf.UsageError, match="leads back"):

        @sf.effect(was="one")
        def three(): ...


def test_a_chain_of_old_names_is_no_circle():
    """Two effects were renamed, one to what the other was called before."""

    @sf.effect(was="mail")
    def notify(): ...

    @sf.effect(was=("letter", "notify_old"))
    def mail(): ...

    assert notify.spec.was == ("mail",)
    assert mail.spec.was == ("letter", "notify_old")


def test_effects_of_other_places_do_not_make_a_circle():
    """The same names in two functions are not the same effects."""

    def here():
        @sf.effect(was="there_b")
        def there_a(): ...

        return there_a

    def elsewhere():
        @sf.effect(was="there_a")
        def there_b(): ...

        return there_b

    assert here().spec.was == ("there_b",)
    assert elsewhere().spec.was == ("there_a",)


@pytest.mark.parametrize("not_done", ["KeyError", 404, (KeyError, "x"), [KeyError], KeyError("x"), int])
def test_what_is_no_exception_class_proves_nothing(not_done):
    with pytest.raises(sf.UsageError, match="not_done= names exception classes"):

        @sf.effect(not_done=not_done)
        def call(): ...


@pytest.mark.parametrize("name", [None, 5, "", b"book"])
def test_a_removed_effect_has_a_name(name):
    with pytest.raises(sf.UsageError, match="no longer has"):
        sf.removed(name)


def test_a_removed_effect_is_known_in_every_scope_and_no_other_is(monkeypatch):
    monkeypatch.setattr(removal, "_removed", set())

    sf.removed("book", "pay a/b")

    def is_removed(address):
        return removal.is_removed(PastEffect(address, PastState.DONE, 0))

    assert is_removed("book#1")
    assert is_removed("[eu]/map#1[3]/book#12")
    assert is_removed("book.undo#1"), "an undo belongs to its effect"
    assert not is_removed("rebook#1")
    assert not is_removed("[book]/send#1")
    assert removal._removed == {"book", removal.escape("pay a/b")}
