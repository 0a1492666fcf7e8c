"""`surefoot match`: a person's word on changed code, for one run or for all that stand there; nothing is executed."""

from __future__ import annotations

import pytest

import surefoot as sf


def version(name, *, first="a"):
    """The same workflow with its effect under that name."""

    @sf.effect(name=name)
    def effect(to):
        with open("ledger", "a") as ledger:
            ledger.write(f"{to}\n")

    @sf.workflow(name="job")
    def job():
        effect(first)
        effect("b")
        with open("ledger") as ledger:
            if "stay" not in ledger.read():
                raise KeyboardInterrupt
        effect("c")
        return "done"

    return job


@pytest.fixture
def standing():
    """Runs that stand at a renamed effect."""
    for run in ("r-1", "r-2"):
        with pytest.raises(KeyboardInterrupt):
            version("send").run(run)
    new = version("tell")
    for run in ("r-1", "r-2"):
        with pytest.raises(sf.CodeChanged, match="tell#1"):
            new.run(run)
    return new


def words(run):
    return [entry.data for entry in sf.get_run(run).entries() if entry.kind == "CodeMatched"]


def go_on(workflow, run):
    with open("ledger", "a") as ledger:
        ledger.write("stay\n")
    return workflow.run(run)


def lines():
    with open("ledger") as ledger:
        return ledger.read().split()


def test_a_word_is_recorded_with_name_and_note_and_nothing_is_executed(cli, standing):
    done = cli("match", "r-1", "tell#*", "--is", "send#*", "--by", "ann", "--note", "renamed")

    assert done.code == 0, done.err
    assert "recorded: run r-1, tell#* is send#*, said by ann: renamed" in done.out
    (said,) = words("r-1")
    assert (said["address"], said["how"], said["other"], said["by"], said["note"]) == (
        "tell#*", "is", "send#*", "ann", "renamed",
    )  # fmt: skip
    assert words("r-2") == []
    assert lines() == ["a", "b"] * 2
    assert go_on(standing, "r-1") == "done"
    assert lines() == ["a", "b"] * 2 + ["stay", "c"]


def test_for_every_run_that_stands_there(cli, standing):
    done = cli("match", "--all", "--workflow", "job", "tell#*", "--is", "send#*", "--by", "ann")

    assert done.code == 0, done.err
    assert done.out.splitlines()[0] == "recorded for 2 runs: tell#* is send#*, said by ann"
    assert [go_on(standing, run) for run in ("r-1", "r-2")] == ["done", "done"]


def test_for_every_run_as_json(cli, standing):
    done = cli("match", "--all", "--workflow", "job", "tell#1", "--new", "--by", "ann", "--json")

    assert done.json == {"matched": ["r-2", "r-1"], "address": "tell#1", "how": "is new", "by": "ann", "note": ""}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["tell#9", "--new"], "no call that it stands at is tell#9. Those that it does: tell#1."),
        (["tell#1", "--is", "mail#1"], "mail#1 hits no recorded step or effect"),
        (["tell#1", "--is", "mail#*"], "mail#* hits no recorded step or effect"),
        (["tell#1", "--is", "send#*"], "send#* hits 2 recorded calls, send#1, send#2 …: name one"),
        (["tell#*", "--is", "send#1"], "tell#* may be several calls, and send#1 is one"),
        (["mail#*", "--keep"], "mail#* hits no recorded step or effect"),
        (["send#1", "--rerun"], "send#1 is an effect, and was executed"),
        (["tell#1"], "say one of --is OLD, --new, --keep and --rerun"),
        (["tell#1", "--new", "--keep"], "say one of --is OLD, --new, --keep and --rerun"),
        (["tell#1", "--is", "send#1", "--new"], "say one of --is OLD, --new, --keep and --rerun"),
    ],
)
@pytest.mark.parametrize("every", [False, True])
def test_a_word_that_answers_nothing_is_refused(cli, standing, arguments, told, every):
    """It would only seem to help. For all runs together as well: none was hit."""
    whose = ["--all", "--workflow", "job"] if every else ["r-1"]

    done = cli("match", *whose, *arguments)

    assert done.code == 2
    assert told in done.err
    assert words("r-1") == words("r-2") == []


@pytest.mark.parametrize(
    "arguments",
    [["r-1"], ["--all", "tell#1"], ["--workflow", "job", "r-1", "tell#1"], ["tell#1"], []],
)
def test_whose_run_and_which_call_have_to_be_said(cli, standing, arguments):
    done = cli("match", *arguments, "--new")

    assert done.code == 2
    assert "say surefoot match ID ADDR" in done.err


def test_all_runs_of_a_workflow_that_has_none_there(cli, standing):
    done = cli("match", "--all", "--workflow", "other", "tell#1", "--new")

    assert done.code == 2
    assert "nothing was recorded: no run of workflow other stands at changed code" in done.err


def test_a_run_that_has_ended_takes_no_word(cli, standing):
    cli("match", "r-1", "tell#*", "--is", "send#*")
    go_on(standing, "r-1")

    done = cli("match", "r-1", "tell#1", "--new")

    assert done.code == 2
    assert "run r-1 has ended already: done" in done.err


def test_what_is_kept_is_named_by_the_call_of_today(cli, standing):
    """The stop names it so."""
    with pytest.raises(KeyboardInterrupt):
        version("send").run("k-1")
    other = version("send", first="A")
    with pytest.raises(sf.CodeChanged, match="surefoot match k-1 'send#1' --keep"):
        other.run("k-1")

    assert cli("match", "k-1", "send#1", "--keep").code == 0

    assert go_on(other, "k-1") == "done"
    assert lines()[-3:] == ["b", "stay", "c"]


def test_a_recorded_call_that_the_code_goes_on_without(cli):
    """The command that the stop prints works, for this run."""

    @sf.effect(name="send")
    def send(to):
        with open("ledger", "a") as ledger:
            ledger.write(f"{to}\n")

    @sf.workflow(name="fewer")
    def fewer(*names):
        for name in names:
            send(name)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fewer.run("f-1", "a", "b")

    @sf.workflow(name="fewer")
    def fewer(*names):
        send(names[0])
        return "done"

    with pytest.raises(sf.CodeChanged, match="surefoot match f-1 'send#2' --keep"):
        fewer.run("f-1", "a", "b")

    done = cli("match", "f-1", "send#2", "--keep", "--by", "ann")

    assert done.code == 0, done.err
    assert "recorded: run f-1, send#2 is kept, said by ann" in done.out
    assert fewer.run("f-1", "a", "b") == "done"
    assert lines() == ["a", "b"]


def test_an_effect_in_doubt_is_settled_first(cli):
    @sf.effect(name="send")
    def send(to):
        raise ConnectionError(to)

    @sf.workflow(name="doubtful")
    def doubtful():
        send("a")

    with pytest.raises(sf.InDoubt):
        doubtful.run("d")

    done = cli("match", "d", "send#1", "--keep")

    assert done.code == 2
    assert "send#1 is in doubt. Settle it first" in done.err
