"""`surefoot runs rewind`: back to before a call, after a person has seen what that puts in doubt."""

from __future__ import annotations

import pytest

import surefoot as sf

sent: list[str] = []
broken = [True]


@sf.step
def draft(name: str) -> str:
    return f"Dear {name}"


@sf.effect
def send(name: str) -> str:
    sent.append(name)
    return f"mail-{name}"


@sf.workflow
def mailing():
    for name in ("Ada", "Bob"):
        draft(name)
        send(name)
    if broken[0]:
        raise ValueError("no")
    return "done"


@pytest.fixture
def failed(own_folder):
    sent.clear()
    broken[0] = True
    with pytest.raises(ValueError):
        mailing.run("t")
    broken[0] = False


def recorded():
    return [entry.data for entry in sf.get_run("t").entries() if entry.kind == "RunRewound"]


def test_without_a_terminal_it_lists_the_effects_and_does_nothing(cli, failed, monkeypatch):
    ended = cli("runs", "rewind", "t", "--at", "draft#2")

    assert (ended.code, ended.out, recorded()) == (2, "", [])
    assert (
        "run t would go back to before draft#2: 2 recorded calls are set aside and kept, 1 of them a step" in ended.err
    )
    assert "in doubt   send#2: it happened or may have; a resume would stop and ask a person" in ended.err
    assert "send#1" not in ended.err
    assert "add --yes" in ended.err


def test_it_goes_back_with_name_and_note_and_the_effects_are_in_doubt(cli, failed):
    ended = cli("runs", "rewind", "t", "--at", "draft#2", "--yes", "--by", "ann", "--note", "wrong text")

    assert ended.code == 0
    assert "recorded: run t goes back to before draft#2, said by ann: wrong text\n" in ended.out
    assert "InDoubt: run t, send#2: it " in ended.out
    assert "surefoot settle t 'send#2' --not-happened" in ended.out
    assert "go on with: surefoot runs resume t --app MODULE" in ended.out
    [data] = recorded()
    assert (data["address"], data["by"], data["note"]) == ("draft#2", "ann", "wrong text")

    with pytest.raises(sf.InDoubt):
        mailing.run("t")
    cli("settle", "t", "send#2", "--happened", '"mail-Bob"')
    assert mailing.run("t") == "done"
    assert sent == ["Ada", "Bob"]


def test_json_names_the_effects_in_doubt(cli, failed):
    ended = cli("runs", "rewind", "t", "--at", "send#1", "--yes", "--json", "--by", "ann").json

    assert ended["recorded"] == {
        "run": "t", "at": "send#1", "in_doubt": ["send#1", "send#2"], "by": "ann", "note": "",
    }  # fmt: skip
    assert [one["address"] for one in ended["open"]] == ["send#1", "send#2"]


def test_a_rewind_that_touches_no_effect_says_so(cli, failed):
    cli("runs", "rewind", "t", "--at", "draft#2", "--yes")
    cli("settle", "t", "send#2", "--not-happened")
    assert mailing.run("t") == "done"
    assert sent == ["Ada", "Bob", "Bob"]

    @sf.workflow
    def quiet():
        return draft("Cem")

    quiet.run("q")
    assert "no effect was executed from there on" in cli("runs", "rewind", "q", "--at", "draft#1").err


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("t", "--at", "send#9"), "no recorded call 'send#9'. Near it: send#2, send#1"),
        (("u", "--at", "send#1"), "there is no run 'u'"),
        (("t",), "Missing option '--at'"),
    ],
)
def test_a_place_that_is_not_there_is_refused(cli, failed, words, why):
    ended = cli("runs", "rewind", *words, "--yes")

    assert (ended.code, ended.out, recorded()) == (2, "", [])
    assert why in ended.err


def test_a_run_that_a_living_process_drives_is_not_sent_back(child, shell):
    started = child.start("run", "app:acting", "--id", "x")
    child.wait_until_it_sits()

    ended = shell("runs", "rewind", "x", "--at", "act#1", "--yes")

    assert ended.code == 2
    assert "which is alive" in ended.err
    child.let_go()
    assert started.communicate()[0] == '"acted"\n'


def test_the_story_tells_who_sent_it_back(cli, failed):
    cli("runs", "rewind", "t", "--at", "send#2", "--yes", "--by", "ann")

    assert "sent back" in (story := cli("runs", "tail", "t", "--no-follow").out)
    assert "to before send#2; by ann" in story


def test_an_effect_that_was_undone_since_is_listed_as_one_to_settle(cli, own_folder):
    """Under its used key the other side would do nothing: whoever agrees shall know that before."""

    @sf.effect(on_crash="retry")
    def book() -> None: ...

    @book.undo
    def _(result: None) -> None: ...

    @sf.workflow
    def failing_trip() -> None:
        with sf.saga():
            book()
            raise ValueError("no")

    with pytest.raises(ValueError):
        failing_trip.run("t")

    told = cli("runs", "rewind", "t", "--at", "book#1").err

    assert "book#1: it happened or may have; a resume would stop and ask a person, unless its check finds it" in told
    assert ": book.undo#1 may have undone it" in told


@pytest.mark.parametrize("policy", ["ask", "retry", "fail"])
def test_it_says_before_what_the_plan_says_afterwards(cli, own_folder, policy):
    """Whoever agrees to the one must not be surprised by the other."""

    @sf.effect(on_crash=policy)
    def pay() -> None: ...

    @sf.workflow(name=f"paying-{policy}")
    def paying() -> None:
        pay()

    paying.run("t")

    before = cli("runs", "rewind", "t", "--at", "pay#1").err
    cli("runs", "rewind", "t", "--at", "pay#1", "--yes")

    [(address, then)] = sf.get_run("t").plan().in_doubt
    assert f"in doubt   {address}: it happened or may have; a resume would {then}\n" in before
