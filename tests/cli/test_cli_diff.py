"""`surefoot runs diff A B`: what two runs did, side by side."""

from __future__ import annotations

import contextlib

import pytest

import surefoot as sf

LARGE = "x" * 3000
odd: list[str] = []


@sf.step
def diff_read(name: str) -> str:
    return name.upper() if name in odd else name


@sf.step
def diff_extra(name: str) -> str:
    return LARGE + name


@sf.effect
def diff_send(text: str) -> str:
    if text == "BOB":
        raise sf.NotDone("bounced")
    return "sent"


@sf.workflow
def diffing(names: list, extra: str = "") -> int:
    for name in names:
        text = diff_read(name)
        if extra:
            diff_extra(extra)
        with contextlib.suppress(sf.NotDone):
            diff_send(text)
    return len(names)


@pytest.fixture(autouse=True)
def _nothing_odd():
    odd.clear()


def verdicts(ended):
    return {call["address"]: (call["verdict"], call["differs"]) for call in ended.json["calls"]}


def test_two_runs_of_the_same_are_the_same(cli):
    """Keys, times and processes always differ; that is no difference."""
    diffing.run("a", ["ann"], LARGE)
    diffing.run("b", ["ann"], LARGE)

    ended = cli("runs", "diff", "a", "b")

    assert ended.code == 0
    assert ended.out == (
        "A = a, B = b: same workflow, arguments and outcome\ncalls: 3 same, 0 differ, 0 only in A, 0 only in B\n"
    )


def test_results_arguments_and_outcomes_that_differ_are_named(cli):
    diffing.run("a", ["ann", "bob"])
    odd.append("bob")
    diffing.run("b", ["ann", "bob"])

    ended = cli("runs", "diff", "a", "b", "--json")

    assert ended.code == 0
    assert verdicts(ended) == {
        "diff_read#1": ("same", []),
        "diff_send#1": ("same", []),
        "diff_read#2": ("differs", ["result"]),
        "diff_send#2": ("differs", ["arguments", "outcome", "result"]),
    }
    last = ended.json["calls"][-1]
    assert (last["a"]["args"], last["b"]["args"]) == ({"text": "bob"}, {"text": "BOB"})
    assert (last["a"]["result"], last["b"]["error"]) == ("sent", "NotDone: bounced")
    shown = cli("runs", "diff", "a", "b").out
    assert "diff_read#1" not in shown, "what is the same is counted, not listed"
    assert "differs: arguments, outcome, result" in shown
    assert "NotDone: bounced" in shown
    assert "diff_read#1" in cli("runs", "diff", "a", "b", "--all").out


def test_what_only_one_of_them_has_stands_where_it_belongs(cli):
    diffing.run("a", ["ann", "bob"])
    diffing.run("b", ["ann"], "p.s.")

    ended = cli("runs", "diff", "a", "b", "--json")

    assert ended.json["differs"] == ["arguments", "result"]
    assert list(verdicts(ended).items()) == [
        ("diff_read#1", ("same", [])),
        ("diff_extra#1", ("only in b", [])),
        ("diff_send#1", ("same", [])),
        ("diff_read#2", ("only in a", [])),
        ("diff_send#2", ("only in a", [])),
    ]
    assert ended.json["calls"][1]["a"] is None


def test_large_values_are_compared_without_being_shown(cli):
    diffing.run("a", ["ann"], "1")
    diffing.run("b", ["ann"], "2")

    call = cli("runs", "diff", "a", "b", "--json").json["calls"][1]

    assert (call["address"], call["differs"]) == ("diff_extra#1", ["arguments", "result"])
    assert call["a"]["result"]["$large"] == call["b"]["result"]["$large"] == len(LARGE) + 3
    assert call["a"]["result"]["sha256"] != call["b"]["result"]["sha256"]


def test_a_fork_is_held_against_its_parent(cli):
    """The question a fork is made for: what came out differently?"""
    diffing.run("a", ["ann", "bob"])
    sf.get_run("a").fork("b", at="diff_read#2")
    odd.append("bob")
    diffing.run("b", ["ann", "bob"])

    assert {address for address, found in verdicts(cli("runs", "diff", "a", "b", "--json")).items() if found[1]} == {
        "diff_read#2",
        "diff_send#2",
    }


def test_nothing_recorded_can_act_on_the_terminal(cli, hostile):
    diffing.run("a", [hostile])
    odd.append(hostile)
    diffing.run("b", [hostile])

    ended = cli("runs", "diff", "a", "b", "--all")

    assert all(char.isprintable() or char == "\n" for char in ended.out)


def test_a_run_that_is_not_there_is_told(cli):
    diffing.run("a", ["ann"])

    ended = cli("runs", "diff", "a", "nobody")

    assert ended.code == 2
    assert "there is no run 'nobody'" in ended.err
