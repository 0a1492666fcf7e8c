"""`surefoot approve`, `deny` and `answer`: a person sees what is asked, and answers that and nothing else."""

from __future__ import annotations

import json

import pytest

import surefoot as sf


@sf.workflow
def shipping(question: str = "Ship it?", details: object = None):
    return sf.approve(question, details=details, by=["ann", "bob"], timeout="1h").by


@sf.workflow
def several():
    return sf.map(lambda name: sf.approve(f"{name}?").approved, ["a", "b"], key=str)


@sf.workflow
def counting():
    return sf.ask("How many?", type=int)


@sf.effect(approve=True)
def pay(amount: int) -> int:
    return amount


@sf.workflow
def paying():
    return pay(5)


def asked(workflow, *args, run="t"):
    with pytest.raises(sf.WaitingForAnswer):
        workflow.run(run, *args)


def recorded(kind, run="t"):
    return [entry.data for entry in sf.get_run(run).entries() if entry.kind == kind]


def test_a_yes_is_recorded_with_name_and_note_and_says_how_to_go_on(cli):
    asked(shipping)

    ended = cli("approve", "t", "approve#1", "--by", "ann", "--note", "go ahead")

    assert (ended.code, ended.err) == (0, "")
    assert ended.out == (
        "recorded: run t, approve#1 (Ship it?) approved by ann: go ahead\n"
        "go on with: surefoot runs resume t --app MODULE\n"
    )
    [data] = recorded("AnswerGiven")
    assert (data["value"], data["by"], data["note"]) == (True, "ann", "go ahead")
    assert shipping.run("t") == "ann"


@pytest.mark.parametrize(
    ("verb", "note", "shown"),
    [("approve", "go on", "approved: go on (said by ann)"), ("deny", "no money", "denied: no money (said by ann)"),
     ("approve", "", "approved (said by ann)")],
)  # fmt: skip
def test_the_page_shows_the_verdict_with_its_note(cli, verb, note, shown):
    """A note alone does not tell a yes from a no."""
    asked(shipping)
    cli(verb, "t", "--by", "ann", "--note", note)

    assert shown in " ".join(cli("runs", "show", "t").out.split())


def test_without_a_name_the_only_open_question_is_meant(cli):
    asked(shipping)

    ended = cli("deny", "t", "--by", "bob", "--json").json

    assert ended["recorded"] == {
        "run": "t", "question": "approve#1", "asked": "Ship it?", "answer": False, "by": "bob", "note": "",
    }  # fmt: skip
    assert (ended["status"], ended["open"]) == ("queued", [])
    assert ended["resume"] == "surefoot runs resume t --app MODULE"


def test_with_several_open_questions_a_name_is_needed_and_they_are_listed(cli):
    asked(several)

    ended = cli("approve", "t")

    assert (ended.code, ended.out) == (2, "")
    assert "2 open questions" in ended.err
    assert "[a]/approve#1: a?" in ended.err
    assert "[b]/approve#1: b?" in ended.err
    assert recorded("AnswerGiven") == []


def test_what_is_still_open_is_told_after_an_answer(cli):
    asked(several)

    ended = cli("approve", "t", "[a]/approve#1")

    assert ended.code == 0
    assert "still open:\n  WaitingForAnswer: run t, [b]/approve#1: waiting for an answer: b?\n" in ended.out
    assert "surefoot approve t '[b]/approve#1'" in ended.out
    assert "go on with" not in ended.out


def test_a_second_answer_is_refused_and_names_who_answered(cli):
    asked(shipping)
    cli("approve", "t", "--by", "ann")

    named = cli("deny", "t", "approve#1", "--by", "bob")
    unnamed = cli("deny", "t", "--by", "bob")

    assert (named.code, unnamed.code) == (2, 2)
    assert "answered by ann" in named.err
    assert "no open question" in unnamed.err
    assert "approve#1: answered by ann" in unnamed.err
    assert len(recorded("AnswerGiven")) == 1


def test_somebody_else_is_refused(cli):
    asked(shipping)

    ended = cli("approve", "t", "--by", "mallory")

    assert (ended.code, recorded("AnswerGiven")) == (2, [])
    assert "is for ann, bob, not for mallory" in ended.err


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("approve", "t", "approve#9", "--by", "ann"), "no question 'approve#9'"),
        (("approve", "nobody"), "there is no run 'nobody'"),
        (("answer", "t", "approve#1", "1", "--by", "ann"), "yes-or-no"),
        (("answer", "t", "approve#1", "yes", "--by", "ann"), "A text needs its quotes"),
        (("approve", "t", "--by", "ann", "--shown", "0000"), "something else than you saw"),
    ],
)
def test_what_cannot_be_an_answer_is_refused_and_leaves_no_trace(cli, words, why):
    asked(shipping)

    ended = cli(*words)

    assert (ended.code, ended.out) == (2, "")
    assert why in ended.err
    assert recorded("AnswerGiven") == []


@pytest.mark.parametrize("given", ["5", "-5"])
def test_an_answer_is_json_of_the_type_that_was_asked_for(cli, given):
    asked(counting)
    assert "must be a whole number, not a text" in cli("answer", "t", "ask#1", '"five"').err

    assert cli("answer", "t", "ask#1", given).code == 0

    assert counting.run("t") == int(given)


def test_the_page_shows_all_that_an_answer_is_bound_to(cli):
    """Whoever says yes must have been able to see to what."""
    asked(shipping, "Ship it?", {"to": ["Ada", "Bob"]})

    page = cli("runs", "show", "t").out
    told = cli("runs", "show", "t", "--json").json["stops"][0]["question"]

    assert "question   Ship it?" in page
    assert "details    {" in page
    assert '"Ada",' in page
    assert "for        ann, bob" in page
    assert "until      20" in page
    assert (told["details"], told["by"], told["form"]) == ({"to": ["Ada", "Bob"]}, ["ann", "bob"], "approve")
    shown = next(line.split()[-1] for line in page.splitlines() if "shown as" in line)
    assert told["shown"].startswith(shown)
    assert cli("approve", "t", "--by", "ann", "--shown", shown).code == 0


def test_a_supervised_effect_is_shown_with_its_arguments(cli):
    asked(paying)

    page = cli("runs", "show", "t").out

    assert "Run pay#1?" in page
    assert '"amount": 5' in page
    assert "surefoot approve t 'pay#1.approval'" in page
    assert cli("approve", "t").code == 0
    assert paying.run("t") == 5


def test_nothing_in_a_question_or_an_answer_can_act_on_the_terminal(cli, hostile):
    asked(shipping, hostile, {hostile: hostile})
    outputs = [cli("runs", "show", "t").out, cli("runs").out]
    outputs.append(cli("approve", "t", "--by", "ann", "--note", hostile).out)
    outputs.append(cli("runs", "show", "t").out)
    outputs.append(cli("runs", "tail", "t", "--no-follow").out)

    for out in outputs:
        assert all(line.isprintable() for line in out.split("\n"))
    assert recorded("AnswerGiven")[0]["note"] == hostile


def test_large_details_are_cut_on_the_page_and_whole_in_json(cli):
    details = [f"line {number}" for number in range(5000)]
    asked(shipping, "Ship it?", details)

    page = cli("runs", "show", "t").out

    assert "that is not all of it" in page
    assert len(page) < 20_000
    assert cli("runs", "show", "t", "--json").json["stops"][0]["question"]["details"] == details


def test_the_list_begins_with_what_needs_a_person_and_tells_the_question(cli):
    asked(shipping, run="old")
    for number in range(3):
        with pytest.raises(sf.WaitingForAnswer):
            counting.run(f"n{number}")
        sf.get_run(f"n{number}").answer("ask#1", number)
        counting.run(f"n{number}")

    first = cli("runs").out.splitlines()[1]

    assert first.startswith("waiting")
    assert "old" in first
    assert "approve#1: Ship it?" in first


def test_a_question_whose_process_was_killed_is_shown_and_answered(shell, app):
    """It died after asking and before it could say that it stopped."""
    (app / "asking.py").write_text(
        "import os, signal, sys\n"
        "import surefoot as sf\n\n"
        "@sf.workflow\n"
        "def wf():\n"
        "    try:\n"
        "        return sf.approve('Go?').by\n"
        "    except BaseException:\n"
        "        if 'DIE' in os.environ:\n"
        "            os.kill(os.getpid(), signal.SIGKILL)\n"
        "        raise\n"
    )
    assert shell("run", "asking:wf", "--id", "t", DIE="1").code == -9

    page = shell("runs", "show", "t")
    listed = json.loads(shell("runs", "--json").out)["runs"][0]

    assert "surefoot approve t 'approve#1'" in page.out
    assert (listed["stands"], listed["needs_a_person"]) == ("waiting", True)
    assert shell("approve", "t", "--by", "ann").code == 0
    assert shell("runs", "resume", "t", "--app", "asking", "--yes").out == '"ann"\n'


def test_the_story_tells_of_questions_and_answers(cli):
    asked(shipping)
    cli("approve", "t", "--by", "ann", "--note", "fine")

    story = cli("runs", "tail", "t", "--no-follow").out

    assert "question asked" in story
    assert "for ann, bob: Ship it? until 20" in story
    assert "answered" in story
    assert "true by ann: fine" in story


def test_a_process_that_waits_is_said_to_go_on_by_itself(child, shell, app):
    (app / "asking.py").write_text(
        "import surefoot as sf\n"
        "@sf.workflow\n"
        "def wf():\n"
        "    with open('here', 'w') as here:\n"
        "        here.write('here\\n')\n"
        "    return sf.approve('Go?').by\n"
        "def main():\n"
        "    print(wf.using(wait='50s').run('t'))\n"
    )
    import subprocess
    import sys

    waiting = subprocess.Popen(
        [sys.executable, "-c", "import asking; asking.main()"], cwd=app, stdout=subprocess.PIPE, text=True
    )
    try:
        child.wait_until_it_sits()
        while not (page := shell("runs", "show", "t", "--json").json)["stops"]:
            pass
        assert (page["stands"], page["driven"]) == ("waiting", True)

        ended = shell("approve", "t", "--by", "ann")

        assert "its process is alive and goes on by itself." in ended.out
        assert "go on with" not in ended.out
        assert waiting.communicate(timeout=30)[0] == "ann\n"
    finally:
        waiting.kill()
        waiting.wait()
        waiting.stdout.close()
