"""`surefoot runs fork`: shows what would be done again, asks, and leaves the parent as it is."""

from __future__ import annotations

import pytest

import surefoot as sf


@sf.step
def fork_read(name: str) -> str:
    return name


@sf.effect
def fork_send(name: str) -> str:
    return f"sent {name}"


@sf.workflow
def fork_mailing(names: list) -> int:
    for name in names:
        fork_send(fork_read(name))
    return len(names)


@pytest.fixture
def mailing(own_folder):
    fork_mailing.run("m-1", ["ann", "bob"])
    return sf.get_run("m-1")


def test_what_would_be_executed_again_is_listed_and_the_fork_is_made(cli, mailing):
    before = mailing.runtime.store.read("m-1")

    ended = cli("runs", "fork", "m-1", "--at", "fork_send#2", "--id", "m-2", "--yes", "--by", "ada", "--note", "try")

    assert ended.code == 0
    assert ended.err == (
        "run m-2 would go on from run m-1, before fork_send#2\n"
        "  reused     3 recorded calls, none runs again\n"
        "  effect     fork_send#2 would be executed again, with a key of its own\n"
    )
    assert ended.out == (
        "recorded: run m-2, forked from m-1 before fork_send#2: try\n"
        "go on with: surefoot runs resume m-2 --app MODULE\n"
    )
    assert mailing.runtime.store.read("m-1") == before
    assert sf.get_run("m-2").entries()[-1].data["why"] == "forked from m-1 before fork_send#2 by ada: try"


def test_without_a_terminal_it_needs_yes_and_makes_nothing(shell):
    """A script must not fork by accident: a fork executes effects again."""
    shell("run", "app:notify", "--id", "m-1", '["Ada", "Bob"]')

    ended = shell("runs", "fork", "m-1", "--at", "send#2", "--id", "m-2")

    assert ended.code == 2
    assert "send#2 would be executed again" in ended.err
    assert "--yes" in ended.err
    assert shell("runs", "show", "m-2").code == 2


def test_a_fork_is_resumed_like_any_run(shell, app):
    shell("run", "app:notify", "--id", "m-1", '["Ada", "Bob"]')
    shell("runs", "fork", "m-1", "--at", "send#2", "--id", "m-2", "--yes")

    ended = shell("runs", "resume", "m-2", "--app", "app", "--yes")

    assert (ended.code, ended.out) == (0, "2\n")
    assert (app / "ledger").read_text().splitlines() == ["draft Ada", "send Ada", "draft Bob", "send Bob", "send Bob"]


def test_json_has_the_same_facts(cli, mailing):
    ended = cli("runs", "fork", "m-1", "--at", "fork_send#2", "--id", "m-2", "--yes", "--json").json

    recorded = ended["recorded"]
    assert (recorded["run"], recorded["parent"], recorded["at"]) == ("m-2", "m-1", "fork_send#2")
    assert recorded["reused"] == ["fork_read#1", "fork_send#1", "fork_read#2"]
    assert recorded["would_execute"] == ["fork_send#2"]
    assert ended["status"] == "queued"


def test_the_same_again_is_the_same_fork_and_does_not_ask(cli, mailing):
    words = ("runs", "fork", "m-1", "--at", "fork_send#2", "--id", "m-2")
    cli(*words, "--yes")

    again = cli(*words)

    assert (again.code, again.err) == (0, "")
    assert again.out.startswith("recorded: run m-2, forked from m-1 before fork_send#2\n")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("m-1", "--at", "fork_sned#2", "--id", "m-2"), "Near it: fork_send#2"),
        (("m-1", "--at", "fork_send#1", "--id", "m-1"), "exists already, and is no fork of it"),
        (("m-9", "--at", "fork_send#1", "--id", "m-2"), "there is no run 'm-9'"),
        (("m-1", "--at", "fork_send#1"), "--id"),
        (("m-1", "--id", "m-2"), "--at"),
        (("m-1", "--at", "fork_send#1", "--id", " "), "run id"),
    ],
)
def test_what_cannot_be_is_refused(cli, mailing, words, told):
    ended = cli("runs", "fork", *words, "--yes")

    assert (ended.code, ended.out) == (2, "")
    assert told in ended.err


def test_show_and_tail_tell_where_it_comes_from(cli, mailing):
    cli("runs", "fork", "m-1", "--at", "fork_send#2", "--id", "m-2", "--yes")

    assert "forked     from m-1 before fork_send#2" in cli("runs", "show", "m-2").out
    assert cli("runs", "show", "m-2", "--json").json["forked_from"] == "m-1 before fork_send#2"
    assert "forked from m-1 before fork_send#2" in cli("runs", "tail", "m-2", "--no-follow").out


def test_show_and_tail_tell_of_a_rewind(cli, mailing):
    """Whoever looks must see that what is in doubt is so because somebody sent the run back."""
    mailing.rewind("fork_read#2", by="ada", note="wrong address")

    shown = cli("runs", "show", "m-1").out

    assert "sent back  to before fork_read#2 by ada: wrong address" in shown
    assert "fork_send#2" in shown
    assert "in doubt" in shown
    assert "surefoot settle m-1 'fork_send#2' --not-happened" in shown
    assert cli("runs", "show", "m-1", "--json").json["rewinds"] == ["to before fork_read#2 by ada: wrong address"]
    assert "sent back" in cli("runs", "tail", "m-1", "--no-follow").out
