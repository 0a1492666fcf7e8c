"""`surefoot settle`: a person's answer, recorded with name and reason; nothing is executed by answering."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

import surefoot as sf


@sf.effect
def settle_anything():
    raise ConnectionError


@sf.workflow
def settling_anything() -> None:
    settle_anything()


@dataclass
class Receipt:
    id: str
    cents: int
    file: Path | None = None


TYPED = """
import surefoot as sf
from dataclasses import dataclass
from pathlib import Path

@dataclass
class Receipt:
    id: str
    cents: int
    file: Path | None = None

@sf.effect
def charge() -> Receipt:
    raise ConnectionError

@sf.workflow
def charging() -> str:
    receipt = charge()
    return f"{receipt.id}, {receipt.cents + 1}, {receipt.file!r}"
"""


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
def test_a_value_may_be_given_as_the_journal_shows_it(cli, own_folder, given):
    """An effect that returned a path must be settled with a path, or replay goes another way."""
    from surefoot.core import values

    with pytest.raises(sf.InDoubt):
        settling_anything.run("s")

    assert cli("settle", "s", "settle_anything#1", "--happened", given).code == 0

    recorded = sf.get_run("s").state().calls["settle_anything#1"].value
    expected = values.decode(given.encode()) if "$" in given else int(given)
    assert values.decode(recorded) == expected
    assert type(values.decode(recorded)) is type(expected)


@pytest.mark.parametrize(
    ("words", "cure"),
    [
        (("charge#1", "--happened", "re_123"), "A string needs its quotes"),
        (("charge#1", "--happened", "NaN"), "is not JSON"),
        (("charge#1", "--happened", '{"$nonsense": 1}'), "--app MODULE"),
        (("charge#1",), "say one of --happened JSON, --not-happened"),
        (("charge#1", "--happened", "1", "--not-happened"), "say one of --happened JSON, --not-happened"),
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
    """The first one counts; and whoever was mistaken is told how it is taken back."""
    cli("settle", "stopped-1", "charge#1", "--happened", '"re_1"', "--by", "ada")

    ended = cli("settle", "stopped-1", "charge#1", "--not-happened")

    assert ended.code == 2
    assert "charge#1 is not in doubt: settled by ada at 2" in ended.err
    assert "as \"re_1\"; take it back: surefoot runs rewind stopped-1 --at 'charge#1'. In doubt: nothing." in ended.err


def test_a_second_answer_after_it_did_not_happen_is_refused(cli, runs):
    cli("settle", "stopped-1", "charge#1", "--not-happened", "--by", "ada")

    ended = cli("settle", "stopped-1", "charge#1", "--happened", '"re_1"')

    assert ended.code == 2
    assert "UTC as not happened, so that the next resume runs it. In doubt: nothing." in ended.err


@pytest.fixture
def charging(app, shell):
    """A run in doubt about an effect that returns a class."""
    (app / "typed.py").write_text(TYPED)
    assert shell("run", "typed:charging", "--id", "c").code == 3
    return app


def test_plain_json_stands_for_the_class_that_the_effect_returns(charging, shell):
    """Nobody should have to know how a journal writes a class down, at night."""
    given = '{"id": "re_1", "cents": 5, "file": "a/b"}'

    assert shell("settle", "c", "charge#1", "--happened", given, "--app", "typed").code == 0

    assert shell("run", "typed:charging", "--id", "c").out == "\"re_1, 6, PosixPath('a/b')\"\n"


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ('"re_1"', 'charge#1 returns Receipt with id, cents, file, and "re_1" is none: Expected `object`, got `str`'),
        ('{"id": "re_1", "cents": "5"}', "Expected `int`, got `str` - at `$.cents`"),
        ('{"id": "re_1"}', "missing required field `cents`"),
        ('{"$type": ["Invoice", {"id": "a"}]}', "typed knows these: Receipt."),
    ],
)
def test_a_value_that_the_code_could_not_go_on_with_is_refused(charging, shell, given, reason):
    """The run would go on with it, and fail for good."""
    before = shell("runs", "tail", "c", "--no-follow").out

    ended = shell("settle", "c", "charge#1", "--happened", given, "--app", "typed")

    assert (ended.code, ended.out) == (2, "")
    assert reason in ended.err
    assert shell("runs", "tail", "c", "--no-follow").out == before


@pytest.mark.parametrize(
    ("wanted", "given", "taken"),
    [
        (Receipt, Receipt("a", 1, Path("b")), Receipt("a", 1, Path("b"))),
        (Receipt, {"id": "a", "cents": 2**70}, Receipt("a", 2**70)),
        (list[Receipt], [{"id": "a", "cents": 1, "file": Path("b")}], [Receipt("a", 1, Path("b"))]),
        (tuple[int, ...], [1, 2], (1, 2)),
        (Sequence[int], (1, 2), (1, 2)),
        (list[int], (1, 2), [1, 2]),
        (float, 5, 5),
        (None, None, None),
        (dict | Receipt, 5, 5),
    ],
)
def test_what_fits_is_taken_with_the_type_that_the_code_expects(own_folder, wanted, given, taken):
    """Also from Python: what a replay gives to the workflow is what the effect would have given."""

    def settle_typed():
        raise ConnectionError

    settle_typed.__annotations__["return"] = wanted
    called = sf.effect(settle_typed)

    @sf.workflow(name="settling_typed")
    def wf() -> str:
        return repr(called())

    with pytest.raises(sf.InDoubt):
        wf.run("s")

    sf.get_run("s").settle("settle_typed#1", happened=given)

    assert wf.run("s") == repr(taken)


def test_a_value_of_another_type_is_refused_from_python_too(own_folder):
    """Whoever calls `run.settle` has the code at hand."""

    @sf.effect
    def settle_number() -> int:
        raise ConnectionError

    @sf.workflow(name="settling_number")
    def wf() -> int:
        return settle_number()

    with pytest.raises(sf.InDoubt):
        wf.run("s")

    with pytest.raises(sf.UsageError, match="settle_number#1 returns int, and true is none"):
        sf.get_run("s").settle("settle_number#1", happened=True)


def test_an_effect_that_is_being_executed_is_not_settled(child, shell):
    """Its process lives: the outcome is on its way."""
    started = child.start("run", "app:acting", "--id", "x")
    child.wait_until_it_sits()

    ended = shell("settle", "x", "act#1", "--not-happened")

    assert ended.code == 2
    assert "which is alive" in ended.err
    child.let_go()
    assert started.communicate()[0] == '"acted"\n'


def test_an_effect_that_was_cleared_and_then_ran_is_not_said_by_whoever_cleared_it(shell):
    """Whose word is it that the mail went out? That of the process that sent it."""
    words = ("run", "app:notify", "--id", "t", '["Bob"]')
    shell(*words, DIE_AFTER_SENDING_TO="Bob")
    shell("settle", "t", "send#1", "--not-happened", "--by", "ann")

    assert shell(*words).out == "1\n"

    shown = shell("runs", "show", "t")
    assert '"mail-Bob" (ann said: not happened; then run by process 2)' in shown.out
    assert "said by ann" not in shown.out
    (_, call) = shell("runs", "show", "t", "--json").json["calls"]
    assert (call["learned_by"], call["cleared_by"]) == ("", "person ann")


def test_without_code_it_is_said_that_nothing_was_held_against_it(cli, runs, monkeypatch):
    """Whoever is not told believes that the type was looked at."""
    monkeypatch.setattr("surefoot.engine.operate.return_type.known_effect", lambda _: None)

    ended = cli("settle", "stopped-1", "charge#1", "--happened", "12")

    assert ended.code == 0, "there is nothing to compare it with"
    assert "charge#1: the value is not held against the code; name it with --app MODULE." in ended.err


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ('{"id": "m-1"}', "this is an object, and what it gave before was a text (send#1)"),
        ("null", "this is null, and what it gave before was a text (send#1)"),
    ],
)
def test_a_value_unlike_what_the_effect_gave_before_is_asked_about(shell, given, why):
    """No code at hand: but the first mail gave a text, so this is most likely a slip."""
    shell("run", "app:notify", "--id", "t", '["Ada", "Bob"]', DIE_AFTER_SENDING_TO="Bob")

    asked = shell("settle", "t", "send#2", "--happened", given)

    assert (asked.code, asked.out) == (2, "")
    assert why in asked.err
    assert "add --yes" in asked.err
    assert shell("runs", "show", "t", "--json").json["calls"][-1]["in_doubt"]
    assert shell("settle", "t", "send#2", "--happened", given, "--yes").code == 0


LIKENESS = """
import surefoot as sf

@sf.effect
def charge(n: int):
    if n == 2:
        raise ConnectionError
    return {"id": f"c-{n}", "cents": n}

@sf.workflow
def charging():
    return [charge(n) for n in (1, 2)]
"""


@pytest.mark.parametrize(("given", "code"), [('{"id": "c-2"}', 2), ('{"id": "c-2", "cents": 2, "more": 1}', 0)])
def test_a_field_that_all_others_have_is_missed(shell, app, given, code):
    (app / "likeness.py").write_text(LIKENESS)
    assert shell("run", "likeness:charging", "--id", "t").code == 3

    ended = shell("settle", "t", "charge#2", "--happened", given)

    assert ended.code == code
    assert ("this has no cents" in ended.err) == bool(code)
