"""`surefoot settle`: a person's answer, recorded with name and reason; nothing is executed by answering."""

from __future__ import annotations

import pytest


def entry(cli, run, kind):
    import json

    lines = cli("runs", "tail", run, "--no-follow", "--json").out.splitlines()
    return next(found for found in map(json.loads, lines) if found["kind"] == kind)


def test_it_happened_is_recorded_with_value_name_and_note(cli, runs):
    """Months later somebody asks who said so."""
    ended = cli(
        "settle", "stopped-1", "charge#1", "--happened", '"re_123"', "--by", "ada", "--note", "seen at the bank"
    )

    assert ended.code == 0
    assert ended.out == (
        "recorded: run stopped-1, charge#1 happened, said by ada: seen at the bank\n"
        "go on with: surefoot runs resume stopped-1 --app MODULE\n"
    )
    data = entry(cli, "stopped-1", "EffectSettled")["data"]
    assert (data["happened"], data["value"], data["by"], data["note"]) == (True, "re_123", "ada", "seen at the bank")


def test_it_did_not_happen_is_recorded_and_says_how_to_go_on(cli, runs, monkeypatch):
    monkeypatch.setenv("LOGNAME", "grace")

    ended = cli("settle", "stopped-1", "charge#1", "--not-happened", "--json").json

    assert ended["recorded"] == {
        "run": "stopped-1",
        "address": "charge#1",
        "happened": False,
        "by": "grace",
        "note": "",
    }
    assert (ended["status"], ended["open"]) == ("queued", [])
    assert ended["resume"] == "surefoot runs resume stopped-1 --app MODULE"


def test_a_settled_effect_is_not_repeated(shell, app):
    """The whole point: the mail went out once."""
    words = ("run", "app:notify", "--id", "t", '["Ada", "Bob"]')
    shell(*words, DIE_AFTER_SENDING_TO="Bob")
    assert shell(*words).code == 3

    shell("settle", "t", "send#2", "--happened", '"mail-Bob"')

    assert shell(*words).out == "2\n"
    assert (app / "ledger").read_text().count("send Bob") == 1


@pytest.mark.parametrize(
    "given", ['{"$path": "a/b"}', '{"$tuple": [1, {"a": null}]}', "123456789012345678901234567890"]
)
def test_a_value_may_be_given_as_the_journal_shows_it(cli, runs, given):
    """An effect that returned a path must be settled with a path, or replay goes another way."""
    import surefoot as sf
    from surefoot.core import values

    assert cli("settle", "stopped-1", "charge#1", "--happened", given).code == 0

    recorded = sf.get_run("stopped-1").state().calls["charge#1"].value
    expected = values.decode(given.encode()) if "$" in given else int(given)
    assert values.decode(recorded) == expected
    assert type(values.decode(recorded)) is type(expected)


@pytest.mark.parametrize(
    ("words", "cure"),
    [
        (("charge#1", "--happened", "re_123"), "A string needs its quotes"),
        (("charge#1", "--happened", "NaN"), "is not JSON"),
        (("charge#1", "--happened", '{"$nonsense": 1}'), "--app MODULE"),
        (("charge#1",), "say either --happened JSON or --not-happened"),
        (("charge#1", "--happened", "1", "--not-happened"), "say either --happened JSON or --not-happened"),
        (("read#1", "--not-happened"), "read#1 is not in doubt. In doubt: charge#1."),
        (("charge#9", "--not-happened"), "charge#9 is not in doubt"),
    ],
)
def test_an_answer_that_cannot_be_right_is_refused_and_leaves_no_trace(cli, runs, words, cure):
    """A wrong answer here is worse than none."""
    before = cli("runs", "tail", "stopped-1", "--no-follow").out

    ended = cli("settle", "stopped-1", *words)

    assert (ended.code, ended.out) == (2, "")
    assert cure in ended.err
    assert cli("runs", "tail", "stopped-1", "--no-follow").out == before


def test_a_second_answer_is_refused(cli, runs):
    cli("settle", "stopped-1", "charge#1", "--happened", "1")

    assert cli("settle", "stopped-1", "charge#1", "--not-happened").code == 2


def test_an_effect_that_is_being_executed_is_not_settled(child, shell):
    """Its process lives: the outcome is on its way."""
    started = child.start("run", "app:acting", "--id", "x")
    child.wait_until_it_sits()

    ended = shell("settle", "x", "act#1", "--not-happened")

    assert ended.code == 2
    assert "which is alive" in ended.err
    child.let_go()
    assert started.communicate()[0] == '"acted"\n'
