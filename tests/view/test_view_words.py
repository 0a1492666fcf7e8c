"""Cures and drift are data below, and text here. What is suggested works when it is pasted."""

from __future__ import annotations

import ast
import re
import shlex
from pathlib import Path
from typing import get_args

import click
import msgspec
import pytest

import surefoot
from surefoot.cli import main
from surefoot.core.cure import ADOPT, APP, JSON, NEW_ID, Advice, Ask, Edit, Verb, command
from surefoot.core.entry import Drift, RunStopped, Stop
from surefoot.core.seal import Sealer, from_record
from surefoot.core.stops import revive
from surefoot.view import words

SOURCE = Path(surefoot.__file__).parent
ABOVE = ("cli", "console", "lint", "view", "testing", "pytest_plugin.py")
"""What may know how a command is written: faces for people, and the linter, which names its own options."""
A_HEADER = "surefoot run"
"""What the file of an exported run says that it is."""
VERBS = "|".join(re.escape(verb) for verb in main.VERBS)
COMMAND_LINE = re.compile(rf"\bsurefoot ({VERBS})\b|\bsurefoot $")


def trees():
    for path in sorted(SOURCE.rglob("*.py")):
        if not str(path.relative_to(SOURCE)).startswith(ABOVE):
            yield str(path.relative_to(SOURCE)), ast.parse(path.read_text())


def text_of(tree):
    """Every text in it that is no docstring."""
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone:
            yield node.value


def verb_of(path):
    """The click command behind `runs rewind`."""
    found = main.surefoot
    for name in path.split():
        found = found.get_command(click.Context(found), name)
        assert found is not None, path
    return found


# --- below this layer ----------------------------------------------------------------------------------


def test_no_module_below_writes_a_command():
    """A command in a text cannot be given its store, cannot be a button, and is noticed by nobody when a verb changes."""
    found = [(path, text) for path, tree in trees() for text in text_of(tree) if COMMAND_LINE.search(text)]

    assert [(path, text) for path, text in found if text != A_HEADER] == []


@pytest.mark.parametrize("text", ["surefoot settle r a#1", "try `surefoot runs`", "surefoot "])
def test_a_command_that_is_put_back_is_noticed(text):
    tree = ast.parse(f'"""surefoot settle"""\nx = f"{text}{{y}}"')

    assert [one for one in text_of(tree) if COMMAND_LINE.search(one)]


def test_what_modules_below_suggest_is_what_the_command_line_takes():
    calls = [
        (call.args[0].value, [one.arg for one in call.keywords if one.arg not in ("when", "first")])
        for _, tree in trees()
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "command" and call.args
        and isinstance(call.args[0], ast.Constant)
    ]  # fmt: skip
    assert len(calls) > 50

    for verb, given in calls:
        params = verb_of(verb).params
        options = {name.lstrip("-").replace("-", "_") for one in params for name in (*one.opts, *one.secondary_opts)}
        bare = {words._BARE[verb]} if verb in words._BARE else set()
        assert {name.rstrip("_") for name in given} - bare <= options, verb


@pytest.mark.parametrize("verb", get_args(Verb))
def test_every_verb_is_one_of_the_command_line(verb):
    assert verb_of(verb).name == verb.split()[-1]


# --- what is recorded ------------------------------------------------------------------------------------

EVERY_KIND = (
    command("settle", "r", "pay#1", happened=JSON, when="happened?"),
    command("runs retry", "r", at=("a.undo#1", "b.undo#1"), when="again?"),
    command("runs resume", "r", app=APP, yes=True),
    command("adopt", reason=Ask("TEXT"), first="restore it"),
    Edit("renamed?", '@sf.effect(was="old")', "on pay"),
    Advice("look:", "see outside"),
)
CHANGED = Drift("file(a)", "file:a", "changed", "1" * 64, "2" * 64, "write#1", "host-1")


def test_a_stop_comes_back_from_the_journal_as_it_was():
    stopped = RunStopped((Stop("Drifted", "why", "pay#1", {}, EVERY_KIND, (CHANGED,)),))
    record, _ = Sealer(bytes(16), "r").entry(stopped, at=0)

    assert from_record(record) == stopped


def test_a_kind_or_a_verb_that_nobody_knows_is_not_taken_for_a_cure():
    for unknown in (b'{"kind":"spell","when":"w"}', b'{"kind":"command","when":"w","verb":"rm -rf"}'):
        with pytest.raises(msgspec.ValidationError):
            msgspec.json.decode(b'{"reason":"InDoubt","message":"m","cures":[' + unknown + b"]}", type=Stop)


# --- in words --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cure", "line"),
    [
        (command("settle", "r", "pay#1", happened=JSON), "surefoot settle r 'pay#1' --happened 'JSON'"),
        (command("settle", "r", "pay#1", not_happened=True), "surefoot settle r 'pay#1' --not-happened"),
        (command("match", "r", "*", is_="pay#2"), "surefoot match r '*' --is 'pay#2'"),
        (command("answer", "r", "ask#1", value=JSON, by="Ann B"), "surefoot answer r 'ask#1' 'JSON' --by 'Ann B'"),
        (command("runs fork", "r", at="pay#1", id=NEW_ID), "surefoot runs fork r --at 'pay#1' --id NEW"),
        (command("runs retry", "r", at=("a#1", "b#1")), "surefoot runs retry r --at 'a#1' --at 'b#1'"),
        (command("accept", "r", witness="file(a b)"), "surefoot accept r 'file(a b)'"),
        (command("worker", app=APP), "surefoot worker MODULE"),
        (ADOPT, "surefoot adopt --reason TEXT"),
        (Edit("", "@sf.effect(was=None)", "on pay"), "@sf.effect(was=None) on pay"),
        (Edit("", "sf.register(X)"), "sf.register(X)"),
        (Advice("", "look"), "look"),
    ],
)
def test_a_cure_in_words(cure, line):
    assert words.told(cure) == line


def test_a_store_is_named_unless_it_is_the_default_one_or_a_file_is():
    repair = command("repair", "r")

    assert words.told(repair, "sqlite:///.surefoot/runs.db") == "surefoot repair r"
    assert words.told(repair, "sqlite:///a b.db") == "surefoot repair r --store 'sqlite:///a b.db'"
    assert words.told(command("inspect", path="a b.db"), "sqlite:///x.db") == "surefoot inspect 'a b.db'"
    assert words.told(Advice("", "put it back"), "sqlite:///x.db") == "put it back"


def test_a_module_that_is_known_stands_where_one_is_asked_for():
    assert words.told(command("runs resume", "r", app=APP), app="a:b") == "surefoot runs resume r --app a:b"
    assert words.told(command("worker", app=APP), app="a:b") == "surefoot worker a"


def test_what_comes_first_is_said_and_is_no_part_of_the_command():
    cure = command("adopt", reason=Ask("TEXT"), first="restore it")

    told = words.helps(cure, "sqlite:///x.db")

    assert told.do == "restore it, then surefoot adopt --reason TEXT --store sqlite:///x.db"
    assert told.facts["command"] == "surefoot adopt --reason TEXT --store sqlite:///x.db"
    assert told.facts["arguments"] == {"reason": {"ask": "TEXT"}}


def test_a_hostile_name_stays_one_word():
    """Cures are pasted."""
    hostile = "r; rm -rf $HOME '"

    line = words.told(command("settle", hostile, hostile, by=hostile), hostile)

    assert shlex.split(line) == ["surefoot", "settle", hostile, hostile, "--by", hostile, "--store", hostile]


def test_drift_is_told_part_by_part_behind_the_message():
    unseen = Drift("file(b)", "", "not observable", "", "no such folder", "")
    facts = {"more": "3", "folder": "/then", "looked_in": "/now"}

    assert str(Stop("Drifted", "run r: changed.", "", facts, (), (CHANGED, unseen))).split("\n") == [
        "run r: changed.",
        "  file:a: changed (expected 111111111111…, recorded by write#1; found 222222222222…)",
        "  file(b): cannot be observed: no such folder",
        "  … and 3 more",
        "  relative paths: recorded in /then, looked for in /now",
    ]


def test_an_error_names_the_store_that_was_said_first():
    """Whoever is nearest knows; those further up may be at work in another one."""
    error = revive((Stop("InDoubt", "m", cures=EVERY_KIND[:1]),), "r", "")
    error.name_store("sqlite:///near.db")
    error.name_store("sqlite:///far.db")

    assert error.cures == (("happened?", "surefoot settle r 'pay#1' --happened 'JSON' --store sqlite:///near.db"),)
    assert str(error).endswith(error.cures[0][1])
