"""Asking people: the question is durable before anybody answers, and what was answered is what was shown."""

from __future__ import annotations

import asyncio
import json
import signal
import threading
from dataclasses import dataclass
from typing import Literal

import msgspec
import pytest

import surefoot as sf
from surefoot import aio
from surefoot.engine.process.clock import SystemClock
from surefoot.store.open import close_all

HOSTILE = "\x1b[31mred\x07\u202eevil\x9b2J"
DAY = 86_400_000_000


@sf.workflow
def going(details=None):
    given = sf.approve("Go?", details=details, timeout="1h")
    return [given.approved, given.by, given.note]


@sf.workflow
def listening():
    return sf.wait_event("go")


def stopped(work, kind=sf.WaitingForAnswer):
    with pytest.raises(kind) as met:
        work()
    return met.value


def refused(work, *words):
    with pytest.raises(sf.UsageError) as met:
        work()
    for word in words:
        assert word in str(met.value)


@pytest.fixture
def clock(monkeypatch):
    """The clocks of this machine, with the wall clock or both of them moved by so many seconds."""

    class Shift:
        wall = 0.0
        boot = 0.0

    now, read = SystemClock.now, SystemClock.read
    monkeypatch.setattr(SystemClock, "now", lambda self: now(self) + round(Shift.wall * 1e6))

    def shifted(self):
        moment = read(self)
        return msgspec.structs.replace(moment, boot_at=moment.boot_at + round(Shift.boot * 1e6))

    monkeypatch.setattr(SystemClock, "read", shifted)
    return Shift


@pytest.fixture
def alerts():
    heard = []
    sf.configure(alerts=[heard.append])
    yield heard
    sf.configure(alerts=[])


# --- asked and answered --------------------------------------------------------------------------------------


def test_a_yes_is_true_and_tells_who_why_and_when():
    stop = stopped(lambda: going.run("r"))
    assert (stop.address, stop.exit_code, stop.facts["question"]) == ("approve#1", 3, "Go?")
    assert sf.get_run("r").status == "waiting"

    sf.get_run("r").answer("approve#1", True, by="ann", note="fine")

    assert going.run("r") == [True, "ann", "fine"]
    assert going.run("r") == [True, "ann", "fine"]


def test_a_no_is_false_and_the_run_goes_on():
    stopped(lambda: going.run("r"))
    sf.get_run("r").answer("approve#1", False, by="ann")

    assert going.run("r") == [False, "ann", ""]


APP = """
import os, signal, sys
import surefoot as sf

@sf.effect
def ship(what):
    with open("ledger", "a") as ledger:
        ledger.write(f"ship {what}\\n")
    return what

def die():
    os.kill(os.getpid(), signal.SIGKILL)

@sf.workflow
def wf():
    try:
        given = sf.approve("Ship it?", details={"what": "tea"})
    except BaseException:
        if "die" in sys.argv:
            die()
        raise
    return [ship("tea") if given else None, given.by]

@sf.effect(approve=True)
def guarded(amount):
    with open("ledger", "a") as ledger:
        ledger.write(f"pay {amount}\\n")
    return amount

from surefoot.engine.session import session
if "die-before-effect" in sys.argv:
    before = session.Journal.append
    def append(self, *entries):
        if any(type(entry).__name__ == "EffectIntended" for entry in entries):
            die()
        return before(self, *entries)
    session.Journal.append = append

@sf.workflow
def supervised():
    return guarded(5)

if __name__ == "__main__":
    which = supervised if "supervised" in sys.argv else wf
    if "answer" in sys.argv:
        sf.get_run("r").answer(sys.argv[2], True, by="ann")
    else:
        try:
            print(which.run("r"))
        except sf.WaitingForAnswer as stop:
            print(stop.address)
            sys.exit(3)
"""


def test_an_answer_in_another_process_reaches_a_run_whose_process_was_killed(program, ledger):
    """The asking process died without a word; the question was durable before anybody could see it."""
    program.write(APP)
    assert program.run("die").returncode == -signal.SIGKILL
    assert [past.address for past in sf.get_run("r").state().questions()] == ["approve#1"]

    assert program.run("answer", "approve#1").returncode == 0

    assert program.run().stdout == "['tea', 'ann']\n"
    assert ledger.lines == ["ship tea"]


def test_the_first_durable_answer_wins():
    """Two people answer at once; both must know whose word counts."""
    stopped(lambda: going.run("r"))
    run = sf.get_run("r")
    run.answer("approve#1", False, by="ann")

    refused(lambda: run.answer("approve#1", True, by="bob"), "answered by ann already")

    assert going.run("r") == [False, "ann", ""]
    refused(lambda: run.answer("approve#1", True, by="bob"), "answered by ann already")


def test_of_two_answers_at_the_same_moment_one_is_refused():
    stopped(lambda: going.run("r"))
    start, outcomes = threading.Barrier(8), []

    def answer(number):
        start.wait()
        try:
            sf.get_run("r").answer("approve#1", number % 2 == 0, by=f"p{number}")
            outcomes.append(f"p{number}")
        except sf.UsageError:
            outcomes.append("")

    threads = [threading.Thread(target=answer, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    winners = [name for name in outcomes if name]
    assert len(winners) == 1
    assert going.run("r")[1] == winners[0]


def test_an_answer_behind_the_first_one_in_the_journal_is_nothing():
    """Whoever wrote it there: what a run has once been told stays true."""
    from msgspec import Raw

    from surefoot.core.entry import AnswerGiven
    from surefoot.engine.process import journal

    shown = stopped(lambda: going.run("r")).facts["shown"]
    run = sf.get_run("r")
    for answer in (b"false", b"true"):
        entry = AnswerGiven("approve#1", shown, Raw(answer), f"said {answer.decode()}")
        journal.visit(run.runtime.store, run.runtime.clock, "r", lambda _, entry=entry: entry)

    assert going.run("r") == [False, "said false", ""]


def test_an_answer_to_nothing_is_refused():
    stopped(lambda: going.run("r"))
    run = sf.get_run("r")

    refused(lambda: run.answer("approve#2", True), "no question 'approve#2'", "Open: approve#1")
    refused(lambda: run.answer("approve#1", "yes"), "yes-or-no")
    run.cancel()
    refused(lambda: run.answer("approve#1", True), "has ended already: cancelled")


def test_a_question_for_somebody_else_is_not_answered():
    @sf.workflow
    def only_ann():
        return sf.approve("Go?", by=["ann", "amy"]).by

    assert "(for ann, amy)" in str(stopped(lambda: only_ann.run("r")))

    refused(lambda: sf.get_run("r").answer("approve#1", True, by="bob"), "is for ann, amy, not for bob")
    sf.get_run("r").answer("approve#1", True, by="amy")
    assert only_ann.run("r") == "amy"


def test_a_cron_job_that_meets_the_same_question_appends_nothing(kinds):
    stopped(lambda: going.run("r"))
    before = kinds("r")

    for _ in range(3):
        close_all()
        stopped(lambda: going.run("r"))

    assert kinds("r") == before


@pytest.mark.parametrize(
    ("by", "told"), [(None, ""), ("cfo", " --by cfo"), (["the cfo"], " --by 'the cfo'"), (["ann", "bob"], " --by NAME")]
)
def test_the_command_that_answers_names_who_may(by, told):
    """Without --by it is the operating-system user who answers, and is refused."""

    @sf.workflow
    def spending():
        sf.approve("Spend it?", by=by, details={"euro": 5})

    stop = stopped(lambda: spending.run("r"))

    assert stop.cures[0] == ("yes:", f"surefoot approve r 'approve#1'{told}")
    assert stop.summary.endswith('Spend it? {"euro":5}')


# --- when the time is over -----------------------------------------------------------------------------------


def test_nobody_in_time_means_no_and_is_recorded_at_the_next_look(clock, kinds):
    stopped(lambda: going.run("r"))
    clock.boot = 3601

    refused(
        lambda: sf.get_run("r").answer("approve#1", True, by="late"),
        "time to answer approve#1 is over. Resume the run: the no, or what on_timeout= says, is recorded then",
    )
    assert "QuestionExpired" not in kinds("r")
    assert going.run("r") == [False, "", "nobody answered in time"]
    assert kinds("r").count("QuestionExpired") == 1

    refused(lambda: sf.get_run("r").answer("approve#1", True, by="later"), "time to answer approve#1 is over")
    assert going.run("r") == [False, "", "nobody answered in time"]


@pytest.mark.parametrize(("on_timeout", "expected"), [("deny", False), ("approve", True), ("raise", "TimeoutError")])
def test_what_silence_means_can_be_said_and_replays_the_same(clock, on_timeout, expected):
    crash = [True]

    @sf.workflow(name=f"silent-{on_timeout}")
    def silent():
        try:
            found = sf.approve("Go?", timeout="1m", on_timeout=on_timeout).approved
        except TimeoutError as error:
            found = type(error).__name__
        if crash[0]:
            raise KeyboardInterrupt
        return found

    stopped(lambda: silent.run("r"))
    clock.boot = 61
    with pytest.raises(KeyboardInterrupt):
        silent.run("r")
    crash[0] = False

    assert silent.run("r") == expected


def test_an_unknown_meaning_of_silence_is_refused():
    @sf.workflow
    def odd():
        sf.approve("Go?", on_timeout="shrug")

    refused(lambda: odd.run("r"), "on_timeout='shrug'")


def test_an_ask_that_nobody_answers_is_a_time_out(clock):
    @sf.workflow
    def asking():
        try:
            return sf.ask("How many?", type=int, timeout="1m")
        except TimeoutError as error:
            return str(error)

    stopped(lambda: asking.run("r"))
    clock.boot = 61

    assert asking.run("r") == "nobody answered ask#1 in time"


def test_an_answer_that_is_durable_before_the_expiry_wins_over_it(clock, kinds, monkeypatch):
    """It comes while the expiry is being written: whichever is first in the journal is right, for everybody."""
    from surefoot.engine.process.journal import Journal

    stopped(lambda: going.run("r"))
    append = Journal.append

    def racing(self, *entries):
        if entries and type(entries[0]).__name__ == "QuestionExpired":
            clock.boot = 0.0
            sf.get_run("r").answer("approve#1", True, by="ann")
            clock.boot = 3601.0
        return append(self, *entries)

    monkeypatch.setattr(Journal, "append", racing)
    clock.boot = 3601.0

    assert going.run("r") == [True, "ann", ""]
    assert kinds("r").index("AnswerGiven") < kinds("r").index("QuestionExpired")
    monkeypatch.setattr(Journal, "append", append)
    assert going.run("r") == [True, "ann", ""]
    close_all()
    assert sf.get_run("r").state().calls["approve#1"].learned_by == "ann"


@pytest.mark.parametrize("days", [10, -10])
def test_a_wall_clock_that_is_ten_days_wrong_changes_nothing_within_one_boot(clock, days, recwarn):
    stopped(lambda: going.run("r"))
    clock.wall = days * 86_400

    stopped(lambda: going.run("r"))
    sf.get_run("r").answer("approve#1", True, by="ann")

    assert going.run("r") == [True, "ann", ""]


# --- what was shown is what is answered ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "changed",
    [
        {"question": "Really?"},
        {"details": {"amount": 6}},
        {"by": ["bob", "ann"]},
    ],
)
def test_an_answer_is_void_once_the_question_is_another(changed, kinds):
    """Somebody approved 5; the code now asks about 6."""
    asked = [{"question": "Pay?", "details": {"amount": 5}, "by": None}]

    @sf.workflow
    def proposing():
        now = asked[0]
        return sf.approve(now["question"], details=now["details"], by=now["by"]).by

    stopped(lambda: proposing.run("r"))
    sf.get_run("r").answer("approve#1", True, by="ann")
    asked[0] = asked[0] | changed

    stopped(lambda: proposing.run("r"))
    assert kinds("r").count("QuestionAsked") == 2
    stopped(lambda: proposing.run("r"))
    assert kinds("r").count("QuestionAsked") == 2
    sf.get_run("r").answer("approve#1", True, by="bob")

    assert proposing.run("r") == "bob"


def test_an_answer_to_what_was_seen_is_not_given_to_what_is_asked_now():
    """A person looked, the question changed, then the answer came."""
    asked = [5]

    @sf.workflow
    def proposing():
        return sf.approve("Pay?", details=asked[0]).by

    seen = stopped(lambda: proposing.run("r")).facts["shown"]
    asked[0] = 6
    sf.get_run("r").answer("approve#1", True, by="ann")
    now = stopped(lambda: proposing.run("r")).facts["shown"]

    refused(lambda: sf.get_run("r").answer("approve#1", True, by="ann", shown=seen), "something else than you saw")
    sf.get_run("r").answer("approve#1", True, by="ann", shown=now[:12])
    assert proposing.run("r") == "ann"


def test_a_question_where_the_code_used_to_do_something_else_is_code_that_changed():
    new = [False]

    @sf.step(name="approve")
    def other():
        return 1

    @sf.workflow
    def swapping():
        if new[0]:
            return sf.approve("Go?")
        other()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        swapping.run("r")
    new[0] = True

    stopped(lambda: swapping.run("r"), sf.CodeChanged)


def test_large_details_are_kept_by_parts_and_shown_whole():
    details = {"diff": "\n".join(f"line {n}" for n in range(20_000))}

    stopped(lambda: going.run("r", details))
    close_all()

    run = sf.get_run("r")
    past = run.state().questions()[0]
    assert json.loads(bytes(run.whole(past.args))) == details
    asked = next(entry for entry in run.entries() if entry.kind == "QuestionAsked")
    assert asked.data["details"]["$large"] > 100_000
    run.answer("approve#1", True, by="ann")
    assert going.run("r", details) == [True, "ann", ""]


def test_control_characters_of_a_question_reach_no_terminal():
    """A model wrote the question. It must not be able to paint over what the person is asked."""

    @sf.workflow
    def hostile():
        return sf.approve(HOSTILE, by=HOSTILE + "ann").note

    stop = stopped(lambda: hostile.run("r"))

    assert all(line.isprintable() for line in str(stop).split("\n"))
    assert stop.facts["question"] == HOSTILE
    sf.get_run("r").answer("approve#1", True, by=HOSTILE + "ann", note=HOSTILE)
    assert hostile.run("r") == HOSTILE


@pytest.mark.parametrize("question", ["", "  ", None, 5])
def test_a_question_needs_words(question):
    @sf.workflow
    def silent():
        sf.approve(question)

    refused(lambda: silent.run("r"), "needs a question")


def test_details_that_cannot_be_stored_are_refused_where_they_are_given():
    @sf.workflow
    def odd():
        sf.approve("Go?", details=object())

    with pytest.raises(sf.ValueRejected, match="details"):
        odd.run("r")


# --- typed answers -------------------------------------------------------------------------------------------


@dataclass
class Order:
    item: str
    count: int = 1


class Address(msgspec.Struct):
    street: str
    number: int


@pytest.mark.parametrize(
    ("wanted", "wrong", "reason", "right", "result"),
    [
        (int, "five", "must be a whole number, not a text", 5, 5),
        (int, True, "must be a whole number, not true or false", 5, 5),
        (int, 5.5, "must be a whole number", 5, 5),
        (list[str], ["a", 1], "$[1]: must be a text", ["a"], ["a"]),
        (Literal["red", "blue"], "green", "must be one of 'blue', 'red'", "red", "red"),
        (Order, {"count": 2}, "lacks item", {"item": "tea"}, Order("tea")),
        (Order, {"item": "tea", "colour": 1}, "'colour', which is not asked for", Order("tea", 2), Order("tea", 2)),
        (Address, {"street": "s", "number": "x"}, "$.number: must be a whole number", Address("s", 1), Address("s", 1)),
        (int | None, "x", "must be a whole number, not a text or $: must be null", None, None),
        (bool, 1, "must be true or false", False, False),
        (dict[str, int], {"a": "b"}, "$.a: must be a whole number", {"a": 1}, {"a": 1}),
    ],
)
def test_an_answer_that_does_not_fit_is_refused_with_the_reason(wanted, wrong, reason, right, result):
    """The person who can mend it is there now; the run, later, is not."""

    @sf.workflow(name="typed")
    def typed():
        found = sf.ask("What?", type=wanted)
        assert found == result
        return type(found).__name__

    stopped(lambda: typed.run("r"))

    refused(lambda: sf.get_run("r").answer("ask#1", wrong), reason)
    sf.get_run("r").answer("ask#1", right)

    assert typed.run("r") == type(result).__name__


def test_a_date_is_checked_when_it_is_given():
    import datetime as dt

    @sf.workflow
    def when():
        return sf.ask("When?", type=dt.date)

    stopped(lambda: when.run("r"))
    refused(lambda: sf.get_run("r").answer("ask#1", "tomorrow"), "must be a date, 2026-01-31")
    sf.get_run("r").answer("ask#1", dt.date(2026, 1, 31))

    assert when.run("r") == dt.date(2026, 1, 31)


def test_an_answer_that_only_the_code_can_judge_is_asked_for_again(kinds, caplog):
    """A schema cannot say "a moment"; a run that was stuck with a wrong answer could never go on."""
    import datetime as dt

    @sf.workflow
    def when():
        return sf.ask("When?", type=dt.datetime).year

    stopped(lambda: when.run("r"))
    sf.get_run("r").answer("ask#1", "tomorrow")

    stopped(lambda: when.run("r"))
    assert "does not fit" in caplog.text
    sf.get_run("r").answer("ask#1", "2026-01-31T09:30:00")
    assert when.run("r") == 2026


def test_a_type_that_no_answer_can_have_is_refused():
    @sf.workflow
    def odd():
        sf.ask("What?", type=threading.Lock)

    refused(lambda: odd.run("r"), "an answer is plain data")


def test_without_a_type_any_plain_answer_is_taken():
    @sf.workflow
    def open_question():
        return sf.ask("What?")

    stopped(lambda: open_question.run("r"))
    sf.get_run("r").answer("ask#1", {"a": [1, None, "x"]})

    assert open_question.run("r") == {"a": [1, None, "x"]}


# --- effects that need a yes ---------------------------------------------------------------------------------


paid: list[int] = []


@pytest.fixture(autouse=True)
def _nothing_paid():
    paid.clear()


@sf.effect(approve=True)
def pay(amount: int) -> int:
    paid.append(amount)
    return amount


@sf.workflow(name="paying with a yes")
def paying(amount: int):
    try:
        return pay(amount)
    except sf.Fatal as error:
        return str(error)


def test_an_effect_that_needs_a_yes_shows_what_would_run():
    stop = stopped(lambda: paying.run("r", 5))

    assert (stop.address, paid) == ("pay#1.approval", [])
    run = sf.get_run("r")
    past = run.state().questions()[0]
    assert json.loads(bytes(run.whole(past.args))) == {"effect": "pay", "arguments": {"amount": 5}}
    run.answer("pay#1.approval", True, by="ann")
    assert (paying.run("r", 5), paid) == (5, [5])


def test_a_denied_effect_fails_the_same_way_the_first_time_and_on_replay(kinds):
    crash = [True]

    @sf.workflow
    def denied():
        try:
            pay(5)
        except sf.Fatal as error:
            if crash[0]:
                raise KeyboardInterrupt from None
            return str(error)

    stopped(lambda: denied.run("r"))
    sf.get_run("r").answer("pay#1.approval", False, by="ann", note="too much")
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            denied.run("r")
    assert kinds("r").count("EffectRaised") == 1, "a no is what became of the call: recorded once, then replayed"
    crash[0] = False

    assert denied.run("r") == "pay#1 was denied by ann: too much"
    assert denied.run("r") == "pay#1 was denied by ann: too much"
    assert paid == []


def test_an_approved_effect_is_not_asked_about_again_after_a_crash_before_it_ran(program, ledger):
    program.write(APP)
    assert program.run("supervised").stdout == "guarded#1.approval\n"
    program.run("answer", "guarded#1.approval")

    assert program.run("supervised", "die-before-effect").returncode == -signal.SIGKILL
    assert ledger.lines == []

    assert program.run("supervised").stdout == "5\n"
    assert ledger.lines == ["pay 5"]
    assert [entry.kind for entry in sf.get_run("r").entries()].count("QuestionAsked") == 1


def test_an_approval_is_void_once_the_arguments_are_others():
    amount = [5]

    @sf.workflow
    def changing():
        return pay(amount[0])

    stopped(lambda: changing.run("r"))
    sf.get_run("r").answer("pay#1.approval", True, by="ann")
    amount[0] = 500

    stopped(lambda: changing.run("r"))
    assert paid == []


def test_an_approval_is_void_once_what_the_effect_touches_has_changed(tmp_path):
    """The person agreed to overwrite the file as it was then."""
    from surefoot import witness

    (tmp_path / "a.txt").write_text("old")

    @sf.effect(approve=True, touches=[witness.file("a.txt")])
    def write(text):
        (tmp_path / "a.txt").write_text(text)

    @sf.workflow
    def writing():
        write("new")

    stopped(lambda: writing.run("r"))
    sf.get_run("r").answer("write#1.approval", True, by="ann")
    (tmp_path / "a.txt").write_text("somebody's work")

    stopped(lambda: writing.run("r"))
    assert (tmp_path / "a.txt").read_text() == "somebody's work"
    sf.get_run("r").answer("write#1.approval", True, by="ann")
    writing.run("r")
    assert (tmp_path / "a.txt").read_text() == "new"


def test_the_policy_of_a_workflow_reaches_from_every_effect_to_none():
    @sf.effect
    def plain():
        paid.append(1)

    @sf.workflow(approve="every")
    def careful():
        plain()

    @sf.workflow(approve="never")
    def free():
        pay(2)

    @sf.workflow
    def ordinary():
        plain()

    assert stopped(lambda: careful.run("careful")).address == "plain#1.approval"
    free.run("free")
    ordinary.run("ordinary")
    assert paid == [2, 1]
    with pytest.raises(sf.UsageError, match="'declared', 'every', 'never'"):
        sf.workflow(approve="sometimes")(lambda: None)


def test_a_plan_tells_what_waits_for_a_yes_and_executes_nothing():
    run = stopped(lambda: paying.run("r", 5)) and sf.get_run("r")
    planned = run.plan()
    assert (planned.effects, planned.questions) == ([], [("pay#1.approval", "Run pay#1?")])

    run.answer("pay#1.approval", True)
    assert run.plan().effects == ["pay#1"]
    assert paid == []


def test_a_plan_does_not_promise_an_effect_that_was_denied():
    stopped(lambda: paying.run("r", 5))
    sf.get_run("r").answer("pay#1.approval", False)

    assert sf.get_run("r").plan().effects == []


def test_a_rewind_to_before_an_approved_effect_asks_for_a_new_yes():
    """One yes is for one execution."""

    @sf.effect(approve=True, on_crash="retry")
    def repeatable():
        paid.append(1)

    @sf.workflow
    def repeating():
        repeatable()

    stopped(lambda: repeating.run("r"))
    sf.get_run("r").answer("repeatable#1.approval", True)
    repeating.run("r")
    sf.get_run("r").rewind("repeatable#1.approval")

    assert stopped(lambda: repeating.run("r")).address == "repeatable#1.approval"
    assert paid == [1]


def damage(kind):
    """Turn one byte of the first entry of that kind."""
    import apsw

    seq = next(entry.seq for entry in sf.get_run("r").entries() if entry.kind == kind)
    return lambda: _flip(apsw.Connection(".surefoot/runs.db"), seq)


def _flip(database, seq):
    ((body,),) = database.execute("SELECT body FROM entries WHERE run = 'r' AND seq = ?", (seq,)).fetchall()
    altered = bytes([*body[:9], body[9] ^ 4, *body[10:]])
    database.execute("UPDATE entries SET body = ? WHERE run = 'r' AND seq = ?", (altered, seq))
    database.close()


@pytest.mark.parametrize("kinds_lost", [["StepDone"], ["StepDone", "EffectDone"]])
def test_after_entries_were_lost_a_proven_effect_needs_no_yes_and_a_suspected_one_does(kinds_lost):
    """A no to an effect that has run would be a lie, so first it is asked whether it has; a lost yes is given again."""

    @sf.step
    def look():
        return 1

    @sf.workflow
    def losing():
        look()
        return pay(5)

    stopped(lambda: losing.run("r"))
    sf.get_run("r").answer("pay#1.approval", True)
    assert losing.run("r") == 5
    flips = [damage(kind) for kind in kinds_lost]
    close_all()
    for flip in flips:
        flip()

    if kinds_lost == ["StepDone"]:
        assert losing.run("r") == 5
        assert paid == [5]
        return
    stopped(lambda: losing.run("r"), sf.InDoubt)
    sf.get_run("r").settle("pay#1", not_happened=True)
    assert stopped(lambda: losing.run("r")).address == "pay#1.approval"
    assert paid == [5]
    sf.get_run("r").answer("pay#1.approval", True)
    assert losing.run("r") == 5
    assert paid == [5, 5]


# --- several at once, waiting, async -------------------------------------------------------------------------


def test_branches_ask_side_by_side_and_every_question_is_listed():
    @sf.workflow
    def many():
        return sf.map(lambda name: sf.approve(f"{name}?").by, ["a", "b", "c"], key=str)

    stop = stopped(lambda: many.run("r"))
    names = [f"[{name}]/approve#1" for name in "abc"]
    assert sorted(one.address for one in stop.stops) == names
    run = sf.get_run("r")
    assert sorted(one.address for one in run.stops) == names

    for name in names[:2]:
        run.answer(name, True, by=name[1])
    assert [one.address for one in stopped(lambda: many.run("r")).stops] == names[2:]
    run.answer(names[2], True, by="c")

    assert many.run("r") == ["a", "b", "c"]


def test_supervised_effects_in_branches_ask_side_by_side():
    @sf.workflow
    def many():
        return sf.gather(lambda: pay(1), lambda: pay(2))

    stop = stopped(lambda: many.run("r"))
    assert sorted(one.address for one in stop.stops) == ["gather#1.0/pay#1.approval", "gather#1.1/pay#1.approval"]
    for one in stop.stops:
        sf.get_run("r").answer(one.address, True)

    assert many.run("r") == [1, 2]
    assert sorted(paid) == [1, 2]


def answer_when_asked(run_id, name, **said):
    """A person who answers as soon as the question is there."""

    def work():
        pause = threading.Event()
        while True:
            try:
                run = sf.get_run(run_id)
            except sf.NotFound:
                pass
            else:
                if any(past.address == name for past in run.state().questions()):
                    run.answer(name, True, **said)
                    return
            pause.wait(0.01)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


@pytest.mark.parametrize("name", ["approve#1", "pay#1.approval"])
def test_a_process_that_waits_notices_the_answer(name):
    @sf.workflow
    def waiting():
        return sf.approve("Go?").by if name == "approve#1" else pay(5)

    person = answer_when_asked("r", name, by="ann")

    assert waiting.using(wait="50s").run("r") in ("ann", 5)
    person.join()


def test_a_process_that_waits_in_vain_stops_in_the_end(kinds):
    stop = stopped(lambda: going.using(wait=0.05).run("r"))

    assert stop.address == "approve#1"
    before = kinds("r")
    stopped(lambda: going.using(wait=0.05).run("r"))
    assert kinds("r") == before


def test_a_question_of_this_process_does_not_make_a_patch_look_old():
    """`sf.patched` asks whether earlier processes had passed this point; a new question proves nothing of the kind."""

    @sf.workflow
    def patching():
        sf.approve("Go?")
        return sf.patched("new-way")

    person = answer_when_asked("r", "approve#1")

    assert patching.using(wait="50s").run("r") is True
    person.join()


def test_the_async_words_do_the_same():
    async def work():
        @aio.effect(approve=True)
        async def send(what: str) -> str:
            paid.append(what)
            return what

        @aio.workflow
        async def mixed():
            first, count = await aio.gather(aio.approve("Go?", by="ann"), aio.ask("How many?", type=int))
            return [first.by, count, await send("mail")]

        with pytest.raises(sf.WaitingForAnswer) as met:
            await mixed.run("r")
        assert [stop.address for stop in met.value.stops] == ["gather#1.0/approve#1", "gather#1.1/ask#1"]
        run = await aio.get_run("r")
        await run.answer("gather#1.0/approve#1", True, by="ann")
        with pytest.raises(sf.UsageError):
            await run.answer("gather#1.1/ask#1", "x")
        await run.answer("gather#1.1/ask#1", 3)
        with pytest.raises(sf.WaitingForAnswer) as met:
            await mixed.run("r")
        assert (met.value.address, paid) == ("send#1.approval", [])
        await run.answer("send#1.approval", True)
        return await mixed.run("r")

    assert asyncio.run(work()) == ["ann", 3, "mail"]
    assert paid == ["mail"]


# --- alerts --------------------------------------------------------------------------------------------------


def test_a_stop_is_told_once_however_often_a_cron_job_meets_it(alerts):
    stopped(lambda: going.run("r"))
    for _ in range(3):
        stopped(lambda: going.run("r"))

    assert [(one.run, one.kind) for one in alerts] == [("r", "WaitingForAnswer")]
    assert "waiting for an answer: Go?" in alerts[0]
    assert "surefoot approve r 'approve#1'" in alerts[0]


def test_who_waits_tells_people_when_the_waiting_begins_and_only_once(alerts, caplog):
    """Told when the patience is over, nobody could have answered in time."""
    heard = threading.Event()
    sf.configure(alerts=[alerts.append, lambda _: heard.set()])
    answered = threading.Thread(target=lambda: heard.wait(30) and sf.get_run("r").answer("approve#1", value=True))
    answered.start()

    assert going.using(wait="50s").run("r")[0] is True
    answered.join()

    assert [one.kind for one in alerts] == ["WaitingForAnswer"]
    assert "run r, approve#1: waiting for an answer: Go? Waiting 50 s for it." in caplog.messages


def test_patience_that_is_over_tells_nobody_again(alerts, caplog):
    for _ in range(2):
        stopped(lambda: going.using(wait=0.05).run("r"))
        stopped(lambda: listening.using(wait=0.05).run("l"))

    assert [one.run for one in alerts] == ["r", "l"]
    assert "run l, wait_event#1: waiting for event 'go'. Waiting 0.05 s for it." in caplog.messages


def test_of_several_stops_only_the_new_ones_are_told(alerts):
    @sf.effect
    def charge():
        raise ConnectionError("lost")

    @sf.workflow
    def many():
        return sf.gather(lambda: sf.approve("a?").by, lambda: [sf.approve("b?"), charge()])

    stopped(lambda: many.run("r"))
    assert sorted(one.kind for one in alerts) == ["WaitingForAnswer"] * 2
    alerts.clear()
    sf.get_run("r").answer("gather#1.1/approve#1", True)
    stopped(lambda: many.run("r"))

    assert [one.kind for one in alerts] == ["InDoubt"]


def test_a_question_that_became_another_is_told_again(alerts):
    """It has the same name and stands where the old one stood, but nobody has been told what it asks now."""
    asked = [5]

    @sf.workflow
    def changing():
        return sf.gather(lambda: sf.approve("Go?").by, lambda: sf.approve("Pay?", details=asked[0]).by)

    stopped(lambda: changing.run("r"))
    alerts.clear()
    asked[0] = 6
    sf.get_run("r").answer("gather#1.0/approve#1", True)
    stopped(lambda: changing.run("r"))

    assert [one.kind for one in alerts] == ["WaitingForAnswer"]


def test_an_alert_cannot_act_on_the_terminal_it_ends_up_on(alerts):
    @sf.effect
    def charge():
        raise ConnectionError(HOSTILE)

    @sf.workflow
    def hostile():
        charge()

    stopped(lambda: hostile.run("r"), sf.InDoubt)

    assert all(line.isprintable() for line in alerts[0].split("\n"))


def test_a_sink_that_fails_changes_nothing_for_the_run_or_the_next_sink(caplog):
    heard = []

    def broken(text):
        raise RuntimeError("no")

    sf.configure(alerts=[broken, heard.append])
    try:
        stopped(lambda: going.run("r"))
    finally:
        sf.configure(alerts=[])

    assert len(heard) == 1
    assert "an alert failed" in caplog.text


@pytest.mark.parametrize("bad", ["text", print, [None], ["webhook"]])
def test_what_is_no_sink_is_refused_when_configured(bad):
    with pytest.raises(sf.UsageError, match=r"takes? a text"):
        sf.configure(alerts=bad)


@pytest.mark.parametrize("policy", ["check", "retry", "ask"])
def test_a_yes_is_for_one_execution(policy):
    """Sent back to before it, with other arguments or the same: nothing runs on a yes that was used."""
    executed, amount = [], [10]

    @sf.step
    def quote() -> int:
        return amount[0]

    @sf.effect(approve=True, on_crash=policy)
    def pay_out(given: int) -> None:
        executed.append(given)

    if policy == "check":

        @pay_out.check
        def _(given):
            return sf.not_happened()

    @sf.workflow
    def pay_once() -> None:
        pay_out(quote())

    with pytest.raises(sf.WaitingForAnswer):
        pay_once.run("r")
    sf.get_run("r").answer("pay_out#1.approval", True)
    pay_once.run("r")
    sf.get_run("r").rewind("pay_out#1" if policy == "retry" else "quote#1", by="ann")
    amount[0] = 100_000

    with pytest.raises(sf.Stopped) as caught:
        pay_once.run("r")
    if policy == "ask":
        assert isinstance(caught.value, sf.InDoubt)
        sf.get_run("r").settle("pay_out#1", not_happened=True)
        with pytest.raises(sf.WaitingForAnswer):
            pay_once.run("r")
    else:
        assert isinstance(caught.value, sf.WaitingForAnswer)
    assert executed == [10]
