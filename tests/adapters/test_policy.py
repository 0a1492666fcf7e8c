"""What a tool is, as far as no framework is needed to say it."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

import surefoot as sf
import surefoot.aio as asf
from surefoot.adapters import policy
from surefoot.engine.seams import declared


@sf.effect
def write(path: str) -> str:
    return path


@sf.step
def look(path: str) -> str:
    return path


def helper(path: str) -> str:
    return write(path)


def _is_effect(value: Any) -> bool:
    found = declared(value)
    return found is not None and found.kind != "step"


def writes(path: str) -> str:
    return write(path)


def through_a_helper(path: str) -> list[str]:
    return [helper(each) for each in path]


def through_its_module(path: str) -> str:
    return here.write(path)


here = sys.modules[__name__]


def to_a_file(file: Any) -> None:
    file.write(look("x"))


@pytest.mark.parametrize("fn", [writes, through_a_helper])
def test_an_effect_that_a_tool_calls_is_found(fn):
    """It would be inside of the tool's own effect, whose intent is on disk by then."""
    assert policy.effect_in(fn, _is_effect) == "write"
    assert policy.effect_in(through_its_module, _is_effect) == "here.write"


def test_an_effect_in_a_closure_is_found():
    inner = write

    def tool(path: str) -> str:
        return inner(path)

    assert policy.effect_in(tool, _is_effect) == "inner"


def test_an_attribute_of_the_same_name_and_a_step_are_no_effect():
    """`file.write` is what most tools do, and has nothing to do with an effect called `write`."""
    assert policy.effect_in(to_a_file, _is_effect) == ""
    assert policy.effect_in(print, _is_effect) == ""


@pytest.mark.parametrize(
    ("hints", "kind", "on_crash"),
    [
        ({"readOnlyHint": True}, "step", "ask"),
        ({"read_only_hint": True}, "step", "ask"),
        ({"idempotentHint": True, "destructiveHint": True}, "effect", "retry"),
        ({"idempotent_hint": True}, "effect", "retry"),
    ],
)
def test_hints_of_a_server_are_read_in_both_spellings(hints, kind, on_crash):
    found = policy.hinted(SimpleNamespace(**hints))
    assert (found.kind, found.on_crash, found.hinted) == (kind, on_crash, True)


def test_a_contradiction_and_silence_are_no_hint():
    """What nobody has said anything about asks."""
    assert policy.hinted(SimpleNamespace(readOnlyHint=True, destructiveHint=True)) is None
    assert policy.hinted(SimpleNamespace(readOnlyHint=False)) is None
    assert policy.hinted(None) is None
    assert (policy.ASKS.kind, policy.ASKS.on_crash) == ("effect", "ask")


def test_a_check_says_what_a_crash_means():
    assert sf.tool(check=look).on_crash == "check"
    assert sf.tool(on_crash="retry").on_crash == "retry"
    assert asf.tool is sf.tool


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"on_crash": "check"}, "needs check="),
        ({"on_crash": "never"}, "on_crash"),
        ({"kind": "thing"}, "kind"),
        ({"kind": "step", "check": look}, "belong to an effect"),
        ({"kind": "inline", "timeout": 3}, "workflow code"),
    ],
)
def test_words_that_do_not_fit_are_found_when_they_are_said(options, why):
    with pytest.raises(sf.UsageError, match=why):
        sf.tool(**options)


def test_a_companion_gets_the_arguments_that_it_names():
    """A check of a tool with five parameters wants one of them."""
    assert policy.some_of(lambda title: title)(title="a", body="b") == "a"
    assert policy.some_of(lambda **given: given)(title="a", body="b") == {"title": "a", "body": "b"}
