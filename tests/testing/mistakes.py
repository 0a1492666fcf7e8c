"""Small workflows, each with one of the classic mistakes; and those that have none."""

from __future__ import annotations

import os
import random
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import surefoot as sf
from surefoot import aio, effects, witness
from surefoot.testing import Ledger


def append(name: str, line: str) -> None:
    with open(name, "a", encoding="utf-8") as file:
        file.write(line + "\n")


def has(name: str, line: str) -> bool:
    return Path(name).exists() and line in Path(name).read_text().splitlines()


@sf.step
def read(page: object) -> object:
    return page


# --- an effect declared as a step ------------------------------------------------------------------


@sf.step
def mail(to: str) -> str:
    append("outbox.txt", to)
    return f"sent to {to}"


@sf.workflow
def effect_as_step() -> list[str]:
    return [mail("ada"), mail("bob")]


# --- a check that lies -----------------------------------------------------------------------------


@sf.effect
def charge(card: str) -> str:
    append("bank.txt", card)
    return card


@charge.check
def _(card: str) -> object:
    return sf.not_happened()


@sf.workflow
def check_denies() -> str:
    return charge("4242")


@sf.effect
def ship(order: str) -> str:
    append("shipped.txt", order)
    return order


@ship.check
def _(order: str) -> object:
    return sf.happened(order)


@sf.workflow
def check_believes() -> str:
    return ship("o-1")


@sf.effect
def book(seat: str) -> str:
    append("plan.txt", seat)
    append("paid.txt", seat)
    return seat


@book.check
def _(seat: str) -> object:
    return sf.happened(seat) if has("paid.txt", seat) else sf.not_happened()


@sf.workflow
def check_looks_at_half() -> str:
    return book("12a")


# --- a retry of an effect that is not idempotent ---------------------------------------------------


@sf.effect(on_crash="retry")
def post(text: str) -> str:
    append("wall.txt", text)
    return text


@sf.workflow
def retry_repeats() -> str:
    return post(str(read("hello")))


# --- an undo that is not idempotent ----------------------------------------------------------------


@sf.effect
def reserve(seat: str) -> str:
    append("seats.txt", f"+{seat}")
    return seat


@reserve.undo(on_crash="retry")
def _(seat: str, result: str) -> None:
    append("seats.txt", f"-{seat}")


@sf.workflow
def undo_repeats() -> str:
    try:
        with sf.saga():
            reserve("1a")
            reserve("2b")
            raise ValueError("no third seat")
    except ValueError:
        return "undone"


# --- state outside the run -------------------------------------------------------------------------

_pages = 0


@sf.step
def visit(page: int) -> int:
    global _pages  # noqa: PLW0603 - the mistake
    _pages += 1
    return page


@sf.effect
def report(pages: int) -> None:
    Path("report.txt").write_text(str(pages))


@sf.workflow
def state_in_global() -> int:
    for page in range(2):
        visit(page)
    report(_pages)
    return _pages


@sf.workflow
def call_skipped() -> str:
    visit(1)
    if _pages:
        read("what only the first process would")
    return "done"


@sf.workflow
def result_of_another_type() -> object:
    visit(1)
    return True if _pages else 1


@sf.workflow
def fails_without_global() -> str:
    visit(1)
    return {1: "one page"}[_pages]


@sf.effect(on_crash="retry")
def save(text: str) -> None:
    Path("state.txt").write_text(text)


@sf.workflow
def state_in_file() -> str:
    before = Path("state.txt").read_text() if Path("state.txt").exists() else "empty"
    read(before)
    save("new")
    return before


# --- effects called from a thread pool -------------------------------------------------------------


@sf.effect
def notify(user: str) -> None:
    append("notes.txt", user)


@sf.workflow
def pool_refused() -> None:
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(notify, ["ada", "bob"]))


@sf.workflow
def pool_unnoticed() -> str:
    with ThreadPoolExecutor(2) as pool:
        pool.submit(notify, "ada")
    return "done"


# --- more ------------------------------------------------------------------------------------------


@sf.workflow
def effect_in_body() -> str:
    append("log.txt", "begins")
    read(1)
    read(2)
    return "done"


@sf.effect
def rewrite(path: str) -> None:
    Path(path).write_text("rewritten")


@sf.workflow(watch=[witness.file("watched.txt")])
def own_change_is_drift() -> str:
    rewrite("watched.txt")
    read(1)
    return "done"


# --- nothing to explore ----------------------------------------------------------------------------


@sf.workflow
def failing() -> None:
    read(1)
    raise ValueError("the model is down")


@sf.workflow
def endless() -> None:
    read(1)
    while True:
        time.sleep(0.01)


@sf.workflow
def by_luck() -> object:
    return read(random.random())


@sf.workflow
def writes_elsewhere(folder: str) -> None:
    append(f"{folder}/here.txt", "x")


# --- no mistake ------------------------------------------------------------------------------------


@sf.effect
def send(to: str, text: str) -> str:
    append("sent.txt", f"{to} {text}")
    return f"sent to {to}"


@sf.effect
def pay(cents: int) -> str:
    append("paid.txt", f"{sf.key()} {cents}")
    return sf.key()


@pay.check
def _(cents: int) -> object:
    return sf.happened(sf.key()) if has("paid.txt", f"{sf.key()} {cents}") else sf.not_happened()


@sf.effect(on_crash="fail")
def once(word: str) -> str:
    append("once.txt", word)
    return word


@sf.workflow
def sound(names: list[str]) -> list[object]:
    sent = [send(name, str(read(f"dear {name}"))) for name in names]
    sf.sleep("3h")
    agreed = sf.approve("pay?")
    return [*sent, pay(100) if agreed else None, sf.now(), sf.random(), sf.uuid4()]


@sf.workflow
def paying(cents: int) -> str:
    read("the bill")
    return pay(cents)


@sf.workflow
def later() -> object:
    sf.sleep("3h")
    read("the bill")
    return sf.now()


@sf.workflow
def declared_to_fail() -> list[str]:
    return [once("a"), once("b")]


@sf.workflow
def asking() -> str:
    return f"{sf.ask('how many?', type=int)} {sf.wait_event('go')}"


@aio.step
async def fetch(page: int) -> int:
    return page * 2


@aio.effect
async def store(number: int) -> int:
    append(f"{number}.txt", str(number))
    return number


@store.check
def _(number: int) -> object:
    return sf.happened(number) if has(f"{number}.txt", str(number)) else sf.not_happened()


@aio.workflow
async def sound_async(pages: int) -> list[int]:
    found = await aio.map(fetch, range(pages), key=str)
    await aio.sleep("1h")
    return [*found, *await aio.gather(*(store(page) for page in found))]


@aio.step
async def mail_async(to: str) -> None:
    append("outbox.txt", to)


@aio.workflow
async def effect_as_async_step() -> str:
    await mail_async("ada")
    return "done"


ledger = Ledger()


@sf.effect(on_crash="retry")
def sms(to: str) -> str:
    ledger.note(f"sms {to}")
    return to


@sf.workflow
def text_twice() -> str:
    return sms("ada")


class Database:
    """A world of the user's own: outlives every process, and is put back by hand."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def reset(self) -> None:
        self.path.unlink(missing_ok=True)

    def snapshot(self) -> list[str]:
        return self.path.read_text().splitlines() if self.path.exists() else []


@sf.effect(on_crash="retry")
def insert(row: str) -> None:
    append(os.environ["DATABASE"], row)


@sf.effect(on_crash="retry")
def upsert(row: str) -> None:
    if not has(os.environ["DATABASE"], row):
        append(os.environ["DATABASE"], row)


@sf.transaction("sqlite:///app.db")
def exactly_once(db: sqlite3.Connection, number: int) -> None:
    db.execute("CREATE TABLE IF NOT EXISTS numbers (number)")
    db.execute("INSERT INTO numbers VALUES (?)", [number])


@sf.effect(on_crash="retry")
def as_often_as_you_like(number: int) -> None:
    db = sqlite3.connect("app.db")
    db.execute("INSERT INTO numbers VALUES (?)", [number])
    db.commit()
    db.close()


@sf.workflow
def transaction() -> str:
    exactly_once(1)
    exactly_once(2)
    effects.write_file("done.txt", "2")
    return "done"


@sf.workflow
def no_transaction() -> str:
    exactly_once(1)
    as_often_as_you_like(2)
    return "done"


@sf.workflow
def inserting() -> None:
    insert("row 1")


@sf.workflow
def upserting() -> None:
    upsert("row 1")
    upsert("row 2")


# --- mistakes that are easily blamed on something else ------------------------------------------------------------------

_token = ""
_spent = 0


@sf.step
def login() -> str:
    global _token  # noqa: PLW0603 - the mistake
    _token = "secret"
    return "in"


@sf.effect
def pay_as_whoever(number: int) -> int:
    append("paid.txt", f"{_token} {number}")
    return number


@sf.workflow
def effect_reads_global() -> int:
    login()
    return pay_as_whoever(1)


@sf.effect(on_crash="retry")
def put_as_whoever(number: int) -> int:
    Path("put.txt").write_text(f"{_token} {number}")
    return number


@sf.workflow
def retry_reads_global() -> int:
    login()
    return put_as_whoever(1)


@sf.effect
def spend(amount: int) -> int:
    global _spent  # noqa: PLW0603 - the mistake
    _spent += amount
    append("spent.txt", str(amount))
    return amount


@sf.workflow
def one_call_too_many() -> str:
    for amount in (50, 40, 30):
        if _spent + amount <= 100:
            spend(amount)
    return "done"


@sf.step
def think() -> str:
    return os.urandom(8).hex()


@sf.workflow
def others_each_time() -> str:
    think()
    mail("ada")
    return "done"


@sf.effect(on_crash="retry")
def publish() -> str:
    os.replace("draft.txt", "final.txt")
    return "published"


@sf.step
def draft() -> None:
    Path("draft.txt").write_text("text")


@sf.workflow
def retry_raises() -> str:
    draft()
    return publish()


@sf.effect
def post_both(number: int) -> int:
    append("left.txt", str(number))
    append("right.txt", str(number))
    return number


@post_both.check
def _(number: int) -> object:
    sides = [Path(name).exists() and str(number) in Path(name).read_text() for name in ("left.txt", "right.txt")]
    return sf.happened(number) if all(sides) else sf.partial("one side") if any(sides) else sf.not_happened()


@post_both.undo
def _(number: int, result: int | None) -> None:
    for name in ("left.txt", "right.txt"):
        Path(name).unlink(missing_ok=True)


@sf.workflow
def undo_takes_too_much() -> int:
    return post_both(1) + post_both(2)


@sf.effect
def file_away(number: int) -> int:
    append("filed.txt", str(number))
    return number


@file_away.check
def _(number: int) -> object:
    append("looked.txt", "again")
    done = Path("filed.txt").exists() and str(number) in Path("filed.txt").read_text()
    return sf.happened(number) if done else sf.not_happened()


@sf.workflow
def check_writes() -> int:
    return file_away(1)


# --- what is no mistake, and should be known ----------------------------------------------------------------------------


@sf.effect
def ring(number: int) -> int:
    return number


@ring.check
def _(number: int) -> object:
    return sf.happened(Path("nowhere.txt").read_text())


@sf.workflow
def check_never_answers() -> int:
    return ring(1)


@sf.effect(on_crash="retry")
def write_elsewhere(path: str) -> str:
    Path(path).write_text("x")
    return "written"


@sf.workflow
def far_away(path: str) -> str:
    return write_elsewhere(path)


@sf.effect(on_crash="fail")
def charge_first_bank() -> str:
    append("first.txt", "charged")
    return "first"


@sf.effect(on_crash="retry")
def charge_second_bank() -> str:
    Path("second.txt").write_text("charged")
    return "second"


@sf.workflow
def fails_and_goes_on() -> str:
    try:
        charge_first_bank()
    except sf.StepFailed:
        charge_second_bank()
    return "charged"


@sf.workflow
def agreeing() -> bool:
    return bool(sf.approve("1?"))


# --- a failure by declaration that the workflow does not survive --------------------------------------------------------


@sf.workflow
def failure_ends_the_process() -> str:
    try:
        return once("a")
    except sf.StepFailed:
        os._exit(3)


@sf.workflow
def failure_waits_for_ever() -> str:
    try:
        return once("a")
    except sf.StepFailed:
        while True:
            time.sleep(0.01)


@sf.workflow
def failure_is_not_met() -> str:
    visit(1)
    return once("a" if _pages else "something else")


# --- children, and segments that wait -----------------------------------------------------------------------------------


@sf.effect
def hand_over(number: int) -> int:
    append("handed.txt", str(number))
    return number


@sf.workflow
def asking_child(number: int) -> str:
    return f"{hand_over(number)} {sf.ask('how many?', type=int)} {sf.wait_event('go')}"


@sf.workflow
def parent() -> str:
    return str(sf.child(asking_child, "child", 5))


@sf.workflow
def waiting_twice(segment: int = 1) -> str:
    came = sf.wait_event("go")
    if segment == 1:
        sf.continue_as_new(2)
    return str(came)


# --- an effect that acts and then says that it did not ------------------------------------------------------------------


class CardDeclined(Exception):
    """The bank says no."""


@sf.effect(not_done=CardDeclined)
def charge_then_decline(card: str) -> str:
    append("bank.txt", card)
    raise CardDeclined(card)


@sf.effect(not_done=CardDeclined)
def decline_then_charge(card: str) -> str:
    if not has("cards.txt", card):
        raise CardDeclined(card)
    append("bank.txt", card)
    return card


@sf.workflow
def declined_after_charging() -> str:
    try:
        return charge_then_decline("4242")
    except CardDeclined:
        return "declined"


@sf.workflow
def declined_before_charging() -> str:
    try:
        return decline_then_charge("4242")
    except CardDeclined:
        return "declined"


@sf.effect(not_done=KeyError)
def charge_and_read(card: str) -> str:
    append("bank.txt", card)
    return {"status": "ok"}["receipt"]


@sf.workflow
def cannot_read_the_answer() -> str:
    try:
        return charge_and_read("4242")
    except KeyError:
        return "not charged"


@sf.effect
def charge_and_regret(card: str) -> str:
    append("bank.txt", card)
    raise sf.NotDone("the answer is odd")


@sf.workflow
def says_not_done_itself() -> str:
    try:
        return charge_and_regret("4242")
    except sf.NotDone:
        return "not charged"


@sf.effect(not_done=Exception)
def charge_whatever(card: str) -> str:
    append("bank.txt", card)
    return card


@sf.workflow
def any_exception_is_proof() -> str:
    return charge_whatever("4242")


@sf.workflow
def one_is_right_and_one_is_not() -> str:
    try:
        return decline_then_charge("4242")
    except CardDeclined:
        return charge_whatever("4343")


@sf.effect(not_done=TimeoutError)
def charge_in_time(card: str) -> str:
    append("bank.txt", card)
    return card


@sf.workflow
def time_out_is_proof() -> str:
    with sf.saga():
        reserve("1a")
        return charge_in_time("4242")


@sf.effect(not_done=(ConnectionError, ValueError))
def charge_if_valid(card: str) -> str:
    append("bank.txt", card)
    return card


@sf.workflow
def broad_names_are_no_proof() -> str:
    return charge_if_valid("4242")


@sf.effect(not_done=CardDeclined)
def charge_and_convert(card: str) -> str:
    try:
        append("bank.txt", card)
        append("receipts.txt", card)
    except OSError as error:
        raise CardDeclined(card) from error
    return card


@sf.workflow
def converts_what_went_wrong() -> str:
    return charge_and_convert("4242")


@sf.effect(not_done=CardDeclined)
def charge_or_take_back(card: str) -> str:
    try:
        append("bank.txt", card)
        append("receipts.txt", card)
    except OSError as error:
        Path("bank.txt").unlink()
        raise CardDeclined(card) from error
    return card


@sf.workflow
def takes_back_what_went_wrong() -> str:
    return charge_or_take_back("4242")


@aio.effect(not_done=Exception)
async def charge_whatever_async(card: str) -> str:
    append("bank.txt", card)
    return card


@aio.workflow
async def any_exception_is_proof_async() -> str:
    return await charge_whatever_async("4242")


@sf.effect(not_done=Exception)
def look_up_again(card: str) -> str:
    Path("seen.txt").write_text(card)
    return card


@sf.workflow
def nothing_changes_by_it() -> str:
    """The second one finds the file as it leaves it: whoever says of it that nothing was done is right."""
    Path("seen.txt").write_text("4242")
    return look_up_again("4242")


# --- an effect that lands after its check was believed -------------------------------------------------------------------


def start(line: str) -> None:
    program = f"open('mailed.txt', 'a').write({line!r} + '\\n')"
    subprocess.run([sys.executable, "-S", "-c", program], check=True)


def mailed(line: str) -> object:
    return sf.happened(line) if has("mailed.txt", line) else sf.not_happened()


@sf.effect(in_flight="0s")
def mail_by_program(line: str) -> str:
    start(line)
    return line


@sf.effect(in_flight="1ms")
def mail_by_hasty_program(line: str) -> str:
    start(line)
    return line


@sf.effect(in_flight="30s")
def mail_by_bounded_program(line: str) -> str:
    start(line)
    return line


@sf.effect(timeout="30s", in_flight="0s")
def mail_in_time(line: str) -> str:
    start(line)
    return line


@sf.effect(in_flight="0s")
def mail_by_ourselves(line: str) -> str:
    append("mailed.txt", line)
    return line


for _mail in (mail_by_program, mail_by_hasty_program, mail_by_bounded_program, mail_in_time, mail_by_ourselves):
    _mail.check(mailed)


@sf.workflow
def program_outlives() -> str:
    return mail_by_program("ada")


@sf.workflow
def program_takes_longer() -> str:
    return mail_by_hasty_program("ada")


@sf.workflow
def program_is_waited_for() -> str:
    return mail_by_bounded_program("ada")


@sf.workflow
def program_has_its_time() -> str:
    return mail_in_time("ada")


@sf.workflow
def dies_with_its_process() -> str:
    return mail_by_ourselves("ada")


@sf.effect(in_flight="0s")
def sms_at_once(to: str) -> str:
    ledger.note(f"sms {to}")
    return to


@sf.effect(in_flight="30s")
def sms_in_a_while(to: str) -> str:
    ledger.note(f"sms {to}")
    return to


@sms_at_once.check
@sms_in_a_while.check
def _(to: str) -> object:
    return sf.happened(to) if f"sms {to}" in ledger.lines else sf.not_happened()


@sf.workflow
def texts_at_once() -> str:
    return sms_at_once("ada")


@sf.workflow
def texts_in_a_while() -> str:
    return sms_in_a_while("ada")


def ask_bank(words: str) -> str:
    request = urllib.request.Request(os.environ["BANK"], data=words.encode() or None)
    with urllib.request.urlopen(request) as answer:
        return str(answer.read().decode())


@sf.effect(in_flight="0s")
def wire_at_once(words: str) -> str:
    ask_bank(words)
    return words


@sf.effect(in_flight="30s")
def wire_in_a_while(words: str) -> str:
    ask_bank(words)
    return words


@wire_at_once.check
@wire_in_a_while.check
def _(words: str) -> object:
    return sf.happened(words) if words in ask_bank("").split() else sf.not_happened()


@sf.workflow
def wires_at_once() -> str:
    return wire_at_once("ten")


@sf.workflow
def wires_in_a_while() -> str:
    return wire_in_a_while("ten")


@sf.effect
def wire_and_read(words: str) -> str:
    ask_bank(words)
    return ask_bank("")


@sf.effect(not_done=())
def wire_and_read_carefully(words: str) -> str:
    ask_bank(words)
    return ask_bank("")


@sf.workflow
def two_requests() -> str:
    """That the second one was not sent does not say that nothing was done."""
    return wire_and_read("ten")


@sf.workflow
def two_requests_and_says_so() -> str:
    return wire_and_read_carefully("ten")


# --- code between calls that does not bear to run twice in one process ---------------------------------------------------

_begun: set[str] = set()
_todo = ["a", "b"]
_turn = threading.Lock()
_names = ("a", "b")


@sf.workflow
def remembers_that_it_began() -> str:
    if "it" in _begun:
        raise RuntimeError("begun already")
    _begun.add("it")
    return send("ada", "1") + send("bob", "2")


@sf.workflow
def uses_up_a_list() -> int:
    count = 0
    while _todo:
        count += len(send(_todo.pop(), "hello"))
    return count


@sf.workflow
def keeps_its_turn() -> str:
    _turn.acquire()
    return send("ada", "1") + send("bob", "2")


@sf.workflow
def takes_its_turn() -> int:
    """As the others, and bears to be run again."""
    todo = list(_names)
    with _turn:
        return sum(len(send(name, "hello")) for name in todo)


# --- somebody else's change that is overwritten --------------------------------------------------------------------------


@sf.effect(touches=[witness.file("page.txt")])
def rewrite_page(text: str) -> str:
    Path("page.txt").write_text(text)
    return text


@rewrite_page.check
def _(text: str) -> object:
    return sf.happened(text) if Path("page.txt").read_text() == text else sf.not_happened()


@sf.effect(touches=[witness.file("page.txt")], on_crash="retry")
def rewrite_page_again(text: str) -> str:
    Path("page.txt").write_text(text)
    return text


@sf.effect(touches=[witness.file("page.txt")], approve=True, on_crash="retry")
def rewrite_page_if_allowed(text: str) -> str:
    Path("page.txt").write_text(text)
    return text


@sf.workflow(watch=[witness.file("page.txt")], on_drift="accept")
def accepts_what_it_overwrites() -> str:
    return rewrite_page("new") if sf.approve("rewrite?") else "left"


@sf.workflow(watch=[witness.file("page.txt")])
def stops_before_it_overwrites() -> str:
    return rewrite_page("new") if sf.approve("rewrite?") else "left"


@sf.workflow
def runs_again_whatever_it_finds() -> str:
    return rewrite_page_again("new")


@sf.workflow
def asks_again_before_it_overwrites() -> str:
    return rewrite_page_if_allowed("new")


@sf.workflow(watch=[witness.file("page.txt")], on_drift="warn")
def warns_of_what_it_overwrites() -> str:
    return rewrite_page("new") if sf.approve("rewrite?") else "left"
