"""`surefoot runs retry`: what failed is tried again, after a person has seen which effects that concerns."""

from __future__ import annotations

import pytest

import surefoot as sf
from surefoot.testing.clock import FastClock, installed

sent: list[str] = []
broken = [True]


@sf.step
def draft(name: str) -> str:
    if broken[0] and name == "Bob":
        raise sf.Fatal("no such customer")
    return f"Dear {name}"


@sf.effect
def send(name: str) -> str:
    sent.append(name)
    if broken[0] and name == "Cem":
        raise sf.NotDone("refused")
    return f"mail-{name}"


@sf.effect(on_crash="fail")
def fax(name: str) -> str:
    sent.append(f"fax {name}")
    raise TimeoutError("no answer")


@sf.workflow
def mailing() -> str:
    failures = []
    for call, name in ((draft, "Ada"), (send, "Ada"), (draft, "Bob"), (send, "Cem"), (fax, "Dan")):
        try:
            call(name)
        except Exception as error:
            failures.append(error)
    if broken[0]:
        raise failures[0]
    return "done"


@pytest.fixture
def failed(own_folder):
    sent.clear()
    broken[0] = True
    with pytest.raises(sf.Fatal):
        mailing.run("t")
    broken[0] = False


def recorded(run="t"):
    return [entry.data for entry in sf.get_run(run).entries() if entry.kind == "CallsReopened"]


def test_the_command_that_goes_on_names_the_module_that_was_named(cli, failed):
    ended = cli("runs", "retry", "t", "--failed", "--yes", "--app", "shop")

    assert "go on with: surefoot runs resume t --app shop" in ended.out


def test_without_a_terminal_it_lists_what_would_run_and_does_nothing(cli, failed):
    ended = cli("runs", "retry", "t", "--failed")

    assert (ended.code, ended.out, recorded()) == (2, "", [])
    assert "run t would be taken up again: 3 of its calls tried again. What succeeded stays.\n" in ended.err
    assert "  step       draft#2 runs again\n" in ended.err
    assert "  effect     send#2 did nothing, and runs under its key\n" in ended.err
    assert "  in doubt   fax#1: it happened or may have; a resume would stop and ask a person\n" in ended.err
    assert "send#1" not in ended.err
    assert "add --yes" in ended.err


def test_what_failed_is_tried_again_with_name_and_note(cli, failed):
    ended = cli("runs", "retry", "t", "--failed", "--yes", "--by", "ann", "--note", "mended")

    assert ended.code == 0
    assert "recorded: run t: draft#2, send#2, fax#1 to be tried again, said by ann: mended\n" in ended.out
    assert "InDoubt: run t, fax#1" in ended.out
    assert "go on with: surefoot runs resume t --app MODULE" in ended.out
    assert recorded() == [{"addresses": ["draft#2", "send#2", "fax#1"], "by": "ann", "note": "mended"}]
    cli("settle", "t", "fax#1", "--happened", '"ok"')
    assert mailing.run("t") == "done"
    assert sent == ["Ada", "Cem", "fax Dan", "Cem"]


def test_only_what_is_named(cli, failed):
    ended = cli("runs", "retry", "t", "--at", "send#2", "--at", "draft#2", "--yes", "--json").json

    assert ended["recorded"]["reopened"] == ["send#2", "draft#2"]
    assert ended["recorded"]["runs"] == [
        {"run": "t", "steps": ["draft#2"], "effects": ["send#2"], "in_doubt": [], "waits": []}
    ]
    assert ended["status"] == "queued"


def test_the_page_and_the_story_tell_what_was_tried_again_and_by_whom(cli, failed):
    assert "surefoot runs retry t --failed\n" in cli("runs", "show", "t").out

    cli("runs", "retry", "t", "--at", "send#2", "--yes", "--by", "ann", "--note", "mended")

    assert "tried anew send#2, says ann: mended" in cli("runs", "show", "t").out
    assert cli("runs", "show", "t", "--json").json["retries"] == ["send#2, says ann: mended"]
    assert "to be tried again" in (story := cli("runs", "tail", "t", "--no-follow").out)
    assert "send#2; by ann: mended" in story


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("t", "--at", "send#1"), "send#1 did not fail: it is done."),
        (("t", "--at", "send#9"), "no recorded call 'send#9'. Near it: send#2, send#1"),
        (("u", "--failed"), "there is no run 'u'"),
        (("t",), "say either --failed or --at"),
        (("t", "--failed", "--at", "send#2"), "say either --failed or --at"),
        (("--failed",), "name the run, or say --all-failed"),
        (("t", "--all-failed"), "--all-failed takes no ID"),
        (("t", "--failed", "--since", "2h"), "--workflow and --since belong to --all-failed"),
        (("--all-failed", "--since", "long ago"), "not a duration: 'long ago'"),
    ],
)
def test_what_cannot_be_meant_is_refused(cli, failed, words, why):
    ended = cli("runs", "retry", *words, "--yes")

    assert (ended.code, ended.out, recorded()) == (2, "", [])
    assert why in ended.err


def test_a_run_that_a_living_process_drives_is_refused(child, shell):
    started = child.start("run", "app:acting", "--id", "x")
    child.wait_until_it_sits()

    ended = shell("runs", "retry", "x", "--failed", "--yes")

    assert ended.code == 2
    assert "which is alive" in ended.err
    child.let_go()
    assert started.communicate()[0] == '"acted"\n'


@sf.workflow
def other() -> None:
    draft("Bob")


@sf.workflow
def parent(run: str) -> None:
    sf.child(other, run)


def test_after_an_outage_all_that_failed_since_is_tried_again(cli, own_folder):
    """Hundreds of runs have failed in an hour, and nobody wants to type their names."""
    broken[0] = True
    with installed(FastClock()) as clock:
        with pytest.raises(sf.Fatal):
            other.run("old")
        clock.forward("3h")
        for run in ("a", "b"):
            with pytest.raises(sf.Fatal):
                other.run(run)
        with pytest.raises(sf.Fatal):
            mailing.run("another")
        with pytest.raises(sf.Fatal):
            parent.run("p", "c")

        told = cli("runs", "retry", "--all-failed", "--workflow", "other", "--since", "2h").err
        assert [run for run in ("a", "b", "c", "old", "another", "p") if f"run {run} would" in told] == ["a", "b", "c"]
        ended = cli("runs", "retry", "--all-failed", "--since", "2h", "--yes", "--json").json

    assert sorted(one["run"] for one in ended["reopened"]) == ["a", "another", "b", "c", "p"], "each once"
    assert ended["left"] == []
    assert sf.get_run("old").status == "failed"
    assert [len(recorded(run)) for run in ("a", "b", "c", "p", "another")] == [1] * 5


def test_a_run_that_cannot_be_tried_again_is_told_and_keeps_nobody_back(cli, own_folder):
    broken[0] = True

    @sf.effect
    def book() -> None: ...

    @book.undo
    def _(result: None) -> None: ...

    @sf.workflow
    def trip() -> None:
        with sf.saga():
            book()
            draft("Bob")

    for workflow, run in ((trip, "u"), (other, "a")):
        with pytest.raises(sf.Fatal):
            workflow.run(run)

    ended = cli("runs", "retry", "--all-failed", "--yes")

    assert ended.code == 1
    assert "left as it is: run u: draft#1 cannot be tried again by itself: book#1 came before" in ended.err
    assert "recorded: 1 failed run to be tried again" in ended.out


def test_a_child_says_that_its_parent_does_not_ask_again(cli, own_folder):
    broken[0] = True
    parent.start("p", "c")
    with sf.Worker(workflows=[parent, other]), pytest.raises(sf.Fatal):
        sf.get_run("p").result(timeout=30)

    told = cli("runs", "retry", "c", "--failed").err

    assert "its parent has recorded that it failed; to have both tried again: surefoot runs retry p --failed\n" in told
