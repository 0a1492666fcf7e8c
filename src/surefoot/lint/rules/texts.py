"""What each rule says: its sentence, its cure, its story, when it is quiet, a bad and a good example.

Everything people read of a rule is here, once: the command, SARIF and `docs/lint.md` are written from it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from textwrap import dedent
from typing import TYPE_CHECKING

from surefoot.lint.rule import Hit, Rule

if TYPE_CHECKING:
    from surefoot.lint.flow import Look

_WORDS = {
    "SF104": ("mtime", "ctime"),
    "SF105": ("default",),
    "SF106": ("except", "suppress"),
    "SF107": ("surefoot", "thread_id", "temporalio", "load", "resume", "restore", "recover"),
    "SF108": ("dempot", "DEMPOT", "oken", "edup", "equest", "nsert"),
    "SF110": ("except", "suppress"),
    "SF111": (
        "ynchronous",
        "YNCHRONOUS",
        "fsync",
        "FSYNC",
        "append",
        "sync=",
        "ournal_mode",
        "OURNAL_MODE",
        "UNLOGGED",
        "full_page",
        "innodb_flush",
        "WriteConcern",
    ),
    "SF112": ("retr", "Retr", "backoff", "except", "stamina", "tenacity"),
    "SF2": ("surefoot",),
    "SF3": ("surefoot",),
    "SF4": ("langgraph",),
    "SF5": ("temporalio", "dbos"),
}


def rule(code: str, find: Callable[[Look], Iterator[Hit]]) -> Rule:
    """The rule of a code, from the text below."""
    return Rule(code=code, find=find, words=_WORDS.get(code) or _WORDS.get(code[:3], ()), **_parsed(code))  # type: ignore[arg-type]


def _parsed(code: str) -> dict[str, str]:
    head, _, rest = _TEXTS[code].partition("\n")
    name, severity = head.split()
    found = {"name": name, "severity": severity, "preview": ""}
    parts = re.split(r"^(says|cure|why|quiet|preview|bad|good):", rest, flags=re.MULTILINE)
    for key, text in zip(parts[1::2], parts[2::2], strict=True):
        if key in ("bad", "good"):
            found[key] = dedent(text.strip("\n")).rstrip() + "\n"
        else:
            found[key] = " ".join(text.split())
    return found


_TEXTS = {
    "SF101": """done-before-effect error
says: marked as done before `{}`: a crash in between loses it for good
cure: The effect first, the mark last. Or an effect of surefoot: it is never forgotten and never done twice.
why: "Files A, B, C: done", says the state, and C was never written. The process died between the mark and the work.
    The next start skips what is marked, so nobody does C, and nobody hears of it. Nothing in 8.4 million lines of
    public code had this; the corpus of snippets proves the rule.
quiet: The effect or the work itself stands before the mark. Only logs, notices or clean-up follow. A second mark follows.
bad:
    def handle(queue, order):
        queue.mark_done(order.id)
        send_email(order.to, order.text)
good:
    def handle(queue, order):
        send_email(order.to, order.text)
        queue.mark_done(order.id)
""",
    "SF102": """coarse-checkpoint warning
says: one checkpoint for several effects such as `{}`: those since the last one are done again
cure: Save after each effect. Or a workflow of surefoot: each effect is on record by itself.
why: The checkpoint is three steps old, the process dies, and three mails are sent a second time. Saving every tenth
    time is fine for a calculation and wrong for a letter. Nothing in 8.4 million lines of public code had this; the
    corpus of snippets proves the rule.
quiet: Nothing in the loop changes the world. The module trains a model (torch, jax, keras). Each round saves.
bad:
    def send_all(letters, state):
        for i, letter in enumerate(letters):
            send_email(letter.to, letter.text)
            state["sent"] = i
            if i % 10 == 0:
                save_checkpoint(state)
good:
    def send_all(letters, state):
        for i, letter in enumerate(letters):
            send_email(letter.to, letter.text)
            state["sent"] = i
            save_checkpoint(state)
""",
    "SF103": """state-in-memory warning
says: what is done is only remembered in `{}`: gone with the process
cure: Keep it in `sf.Checkpoint`, or make the loop a workflow.
why: The dictionary knew which orders were paid. The process died, the new one starts with an empty dictionary, and
    every order is paid again. Nothing in 8.4 million lines of public code had this; the corpus of snippets proves the rule.
quiet: The name is local: it removes duplicates from one list. It is given to anything that saves. Nothing around it changes the world.
bad:
    completed_orders = {}

    def work(orders):
        for order in orders:
            if order.id not in completed_orders:
                charge_card(order.card, order.amount)
                completed_orders[order.id] = True
good:
    import surefoot as sf

    done = sf.Checkpoint("orders")

    def work(orders):
        completed = done.load() or []
        for order in orders:
            if order.id not in completed:
                charge_card(order.card, order.amount)
                completed.append(order.id)
                done.save(completed)
""",
    "SF104": """time-as-change warning
says: a change is inferred from the time-stamp `{}`: clocks jump, and copies keep old times
cure: Compare a hash of the content. In a workflow: `witness.file(path)`.
why: A file was restored from a backup. Its time is older than the last run, its content is new, and it is skipped for
    ever. A clock that was set back does the same to all files of an hour.
quiet: `==` and `!=`. Two files are compared. The age of a file against now. Words such as cache, reload, watch, ttl.
bad:
    import os

    def changed(path, state):
        return os.path.getmtime(path) > state["last_run"]
good:
    import hashlib

    def changed(path, state):
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest() != state["hashes"].get(path)
""",
    "SF105": """default-str error
says: `default={}`: what JSON does not know comes back as a text
cure: Store types exactly and refuse the rest, as surefoot does. Or give a function of your own that can be undone.
why: The deadline was saved as a datetime and loaded as a string. Every comparison after the crash is between a string
    and a datetime, or, worse, between two strings.
quiet: It is a log, a prompt, a response, a digest or a report. A function of your own is given.
bad:
    import json

    def save_state(db, run, state):
        db.put(run, json.dumps(state, default=str))
good:
    import json

    def save_state(db, run, state):
        db.put(run, json.dumps(state))
""",
    "SF106": """start-fresh error
says: an unreadable checkpoint becomes an empty one: the run starts afresh without a word
cure: FileNotFoundError: new. Anything else: raise, set it aside, or take an older copy. `sf.Checkpoint` does all of it.
why: The disk was full and the checkpoint was cut in half. The loader catches the error and returns an empty one, and
    four hours of charges are made again. Missing and unreadable are two answers.
quiet: Only `FileNotFoundError` is caught. It raises, exits, renames, or tries an older one. Words such as cache, config,
    settings. The text of a model.
bad:
    import json

    def load_checkpoint(path):
        try:
            with open(path) as file:
                return json.load(file)
        except Exception:
            return {}
good:
    import json

    def load_checkpoint(path):
        try:
            with open(path) as file:
                return json.load(file)
        except FileNotFoundError:
            return {}
""",
    "SF107": """id-anew error
says: the id `{}` is made anew at each attempt: nothing can be resumed under it
cure: Take an id of the business task: `refund-{order}`.
why: The nightly job died at three. Cron started it again, with a new id, and so from the beginning: starting with the
    same id is what resuming means.
quiet: Given or new (`args.id or uuid4()`). The id is returned, printed, logged or stored. A date without a time. Files
    of demonstrations.
preview: LangGraph's `thread_id`, and Temporal's `id=` in retries.
bad:
    import uuid
    import surefoot as sf

    @sf.workflow
    def refund(order: str) -> str:
        return order

    def main(order):
        return refund.run(str(uuid.uuid4()), order)
good:
    import surefoot as sf

    @sf.workflow
    def refund(order: str) -> str:
        return order

    def main(order):
        return refund.run(f"refund-{order}", order)
""",
    "SF108": """key-anew error
says: a new idempotency key `{}` for each attempt protects from nothing
cure: `sf.key()` in an effect, or a key made of the order.
why: The charge went through and the answer was lost. The second attempt sends another key, so the bank sees another
    charge.
quiet: The making of the key is not itself repeated: made before the loop, or once per call of a client.
bad:
    import uuid
    import stripe
    from tenacity import retry

    @retry
    def charge(customer, amount):
        return stripe.Charge.create(customer=customer, amount=amount, idempotency_key=str(uuid.uuid4()))
good:
    import stripe
    from tenacity import retry

    @retry
    def charge(order, customer, amount):
        return stripe.Charge.create(customer=customer, amount=amount, idempotency_key=f"charge-{order}")
""",
    "SF109": """torn-write warning
says: `{}` is written in place: a crash in the middle leaves half a checkpoint where the whole one was
cure: A temporary file, fsync, `os.replace`. Or `effects.write_file`, or `sf.Checkpoint`.
why: Opening a file for writing empties it at once. Whoever dies between that and the last byte has neither the old
    checkpoint nor the new one.
quiet: A rename, an atomic helper or a temporary file in the function. Append mode. Neither path nor function speaks of state.
bad:
    import json

    def save_progress(path, done):
        with open(path, "w") as file:
            json.dump(sorted(done), file)
good:
    import json
    import os

    def save_progress(path, done):
        with open(f"{path}.new", "w") as file:
            json.dump(sorted(done), file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(f"{path}.new", path)
""",
    "SF110": """save-error-swallowed warning
says: the checkpoint could not be saved, and the work goes on as if it had been
cure: Raise, or stop the work.
why: The disk has been full since noon. The work went on, and every save failed without a word. The crash comes in the
    evening and takes the afternoon with it.
quiet: It raises, ends the loop, or saves elsewhere.
bad:
    def remember(progress, number):
        try:
            progress.save_progress(number)
        except OSError as error:
            print("disk full?", error)
good:
    def remember(progress, number):
        try:
            progress.save_progress(number)
        except OSError as error:
            print("disk full?", error)
            raise
""",
    "SF111": """durability-off warning
says: durability is switched off (`{}`): what was acknowledged can be lost with the power
cure: `synchronous=FULL`, `synchronous_commit=on`. For speed: write more in one transaction.
why: The database said "committed", and the mail was sent. Then the power went, and with it the last second of commits.
    The database does not know of the mail, so it is sent again.
quiet: Cache, bench or scratch in the name of the function. A database in memory.
bad:
    import sqlite3

    def open_state(path):
        db = sqlite3.connect(path)
        db.execute("PRAGMA synchronous=OFF")
        return db
good:
    import sqlite3

    def open_state(path):
        db = sqlite3.connect(path)
        db.execute("PRAGMA synchronous=FULL")
        return db
""",
    "SF112": """retry-without-key error
says: `{}` is retried without an idempotency key: an answer that was lost means a second one is sent
cure: Send a key that is the same in every attempt. Or do not retry what may have arrived.
why: The mail was accepted, then the connection broke. The retry sends a second mail: a time-out says nothing about what
    happened at the other side.
quiet: Reads, model calls, searches. Any word of idempotency or `ON CONFLICT` in the function.
bad:
    import requests

    def send_invoice(customer, pdf):
        for attempt in range(3):
            try:
                return requests.post("https://mail.test/invoices", files={"pdf": pdf})
            except requests.ConnectionError:
                continue
good:
    import requests

    def send_invoice(customer, number, pdf):
        for attempt in range(3):
            try:
                headers = {"Idempotency-Key": f"invoice-{number}"}
                return requests.post("https://mail.test/invoices", files={"pdf": pdf}, headers=headers)
            except requests.ConnectionError:
                continue
""",
    "SF201": """clock error
says: `{}` gives another time at each replay: `sf.now()`
cure: `sf.now()` is recorded. A duration is measured inside of a step.
why: The code between calls runs again at every resume. After midnight it asks for the report of another day, which is
    another call than the recorded one, and the run stops.
quiet: The value only goes to a logger or to `print`. A parameter or variable happens to be called `time`.
bad:
    from datetime import datetime
    import surefoot as sf

    @sf.step
    def report(day: str) -> str:
        return day

    @sf.workflow
    def daily() -> str:
        return report(datetime.now().isoformat())
good:
    import surefoot as sf

    @sf.step
    def report(day: str) -> str:
        return day

    @sf.workflow
    def daily() -> str:
        return report(sf.now().isoformat())
""",
    "SF202": """chance error
says: `{}` gives another value at each replay: `sf.uuid4()`, `sf.random()`, or a step
cure: `sf.uuid4()` and `sf.random()` are recorded. `random.Random(seed)` and `uuid5` give the same again.
why: The first process shuffled the list one way, the next one another way. Every call after it is another call than the
    recorded one. `hash` of a text is another in each process, and so is `id`.
quiet: `random.Random(seed)`, `uuid5`. The value only goes to a logger.
bad:
    import random
    import surefoot as sf

    @sf.step
    def visit(url: str) -> str:
        return url

    @sf.workflow
    def crawl(urls: list[str]) -> str:
        return visit(random.choice(urls))
good:
    import surefoot as sf

    @sf.step
    def visit(url: str) -> str:
        return url

    @sf.workflow
    def crawl(urls: list[str]) -> str:
        return visit(urls[int(sf.random() * len(urls))])
""",
    "SF203": """read-outside-step error
says: `{}` reads what may be another next time: read it in a step
cure: Move the read into a step: its result is recorded. Or give the value as an argument.
why: The settings file was edited while the run waited for an answer. The replay reads the new one and asks for calls
    that were never made.
quiet: Read when the module is imported. Pure arithmetic with paths.
bad:
    import os
    import surefoot as sf

    @sf.step
    def ask(model: str) -> str:
        return model

    @sf.workflow
    def talk() -> str:
        return ask(os.environ["MODEL"])
good:
    import os
    import surefoot as sf

    @sf.step
    def model() -> str:
        return os.environ["MODEL"]

    @sf.step
    def ask(model: str) -> str:
        return model

    @sf.workflow
    def talk() -> str:
        return ask(model())
""",
    "SF204": """change-outside-effect error
says: `{}` changes the world at every replay: `@sf.effect`, or `surefoot.effects`
cure: Put it into a function with `@sf.effect`, or use the ready-made ones of `surefoot.effects`.
why: What stands between the calls of a workflow is not recorded. It is done again at every resume: a line is appended
    three times, a tag is pushed three times.
quiet: `io.StringIO`. The helper is only called from effects.
bad:
    from pathlib import Path
    import surefoot as sf

    @sf.step
    def propose(path: str) -> str:
        return path

    @sf.workflow
    def tidy(path: str) -> None:
        Path(path).write_text(propose(path))
good:
    from pathlib import Path
    import surefoot as sf

    @sf.step
    def propose(path: str) -> str:
        return path

    @sf.effect
    def write(path: str, text: str) -> None:
        Path(path).write_text(text)

    @sf.workflow
    def tidy(path: str) -> None:
        write(path, propose(path))
""",
    "SF205": """plain-sleep error
says: `{}` sleeps again from the start at every replay: `sf.sleep()`
cure: `sf.sleep("1h")`: the deadline is recorded, and the process may end while it waits.
why: The run was to wait for an hour. It is killed after 50 minutes, and waits for an hour again. A run with twenty such
    waits never ends.
quiet: Inside of a step or effect.
bad:
    import time
    import surefoot as sf

    @sf.step
    def look() -> bool:
        return True

    @sf.workflow
    def wait() -> None:
        while not look():
            time.sleep(60)
good:
    import surefoot as sf

    @sf.step
    def look() -> bool:
        return True

    @sf.workflow
    def wait() -> None:
        while not look():
            sf.sleep("1m")
""",
    "SF206": """foreign-concurrency error
says: `{}` numbers calls by luck: `sf.gather`, `sf.map`
cure: `sf.gather` and `sf.map` give each branch a scope of its own.
why: Two calls of one step that run side by side are told apart by their order. With a plain gather the order is that of
    the moment, and the replay answers one call with the result of the other. surefoot refuses this when it runs.
quiet: Inside of a step. `asyncio.to_thread`, which is awaited.
bad:
    import asyncio
    import surefoot.aio as sf

    @sf.step
    async def ask(question: str) -> str:
        return question

    @sf.workflow
    async def both(a: str, b: str) -> list[str]:
        return await asyncio.gather(ask(a), ask(b))
good:
    import surefoot.aio as sf

    @sf.step
    async def ask(question: str) -> str:
        return question

    @sf.workflow
    async def both(a: str, b: str) -> list[str]:
        return await sf.gather(ask(a), ask(b))
""",
    "SF207": """foreign-timeout error
says: `{}` ends differently at each replay: `timeout=` of the call, or `sf.timeout`
cure: `@sf.step(timeout="30s")`; in async code also `async with sf.timeout(...)`, which is recorded.
why: The first time the call took eleven seconds and was cut off. In the replay its answer is there at once, nothing is
    cut off, and the code goes another way.
quiet: Inside of a step.
bad:
    import asyncio
    import surefoot.aio as sf

    @sf.step
    async def book(number: int) -> str:
        return "ok"

    @sf.workflow
    async def trip(number: int) -> str:
        async with asyncio.timeout(10):
            return await book(number)
good:
    import surefoot.aio as sf

    @sf.step(timeout="10s")
    async def book(number: int) -> str:
        return "ok"

    @sf.workflow
    async def trip(number: int) -> str:
        return await book(number)
""",
    "SF208": """outside-memory error
says: the global `{}` is empty after a crash: use arguments and results
cure: Keep it in a local variable: the replay builds it again from recorded results.
why: The list held the conversation so far. After the crash the module is imported anew and the list is empty, or, in a
    worker, it still holds the conversation of another run.
quiet: It is only read. A local shadows it.
bad:
    import surefoot as sf

    HISTORY = []

    @sf.step
    def ask(history: list) -> str:
        return "x"

    @sf.workflow
    def chat(turns: int) -> None:
        for _ in range(turns):
            HISTORY.append(ask(HISTORY))
good:
    import surefoot as sf

    @sf.step
    def ask(history: list) -> str:
        return "x"

    @sf.workflow
    def chat(turns: int) -> None:
        history = []
        for _ in range(turns):
            history.append(ask(history))
""",
    "SF209": """unordered error
says: the order of `{}` is another in each process: `sorted(...)`, or `key=` of `sf.map`
cure: `sorted(...)`. With `sf.map(..., key=...)` the order does not matter.
why: Texts have another hash in each process, so a set of paths has another order after the crash. The third call is for
    another file than the recorded third call.
quiet: No step or effect in the loop. Only `in`.
bad:
    import surefoot as sf

    @sf.step
    def look(path: str) -> None: ...

    @sf.workflow
    def tidy(paths: list[str]) -> None:
        for path in set(paths):
            look(path)
good:
    import surefoot as sf

    @sf.step
    def look(path: str) -> None: ...

    @sf.workflow
    def tidy(paths: list[str]) -> None:
        for path in sorted(set(paths)):
            look(path)
""",
    "SF210": """stop-swallowed error
says: `{}` catches the stop of the run and goes on past it: `except Exception`
cure: `except Exception`: stops are BaseExceptions and pass it. Or raise again.
why: A run that needs a person stops by raising. This handler takes the stop for a failure of the tool and goes on, past
    the very question that was asked.
quiet: It raises again. Nothing of the run is inside.
bad:
    import surefoot as sf

    @sf.step
    def ask(question: str) -> str:
        return question

    @sf.workflow
    def agent(question: str) -> str:
        try:
            return ask(question)
        except BaseException:
            return ""
good:
    import surefoot as sf

    @sf.step
    def ask(question: str) -> str:
        return question

    @sf.workflow
    def agent(question: str) -> str:
        try:
            return ask(question)
        except Exception:
            return ""
""",
    "SF211": """wrong-colour error
says: {}: `surefoot.aio` and `await` in async code, `surefoot` in blocking code
cure: `import surefoot.aio as sf` and `await sf.sleep(...)`, `async with sf.saga()` in async workflows; `import surefoot as sf` in blocking ones.
why: A blocking wait in an async workflow holds up all runs of the process. A wait that is not awaited does not wait:
    the approval is asked for and nobody looks at the answer.
quiet: Words that both share: `now`, `random`, `uuid4`, `key`, `scope`, `progress`, `publish`, `patched`, `continue_as_new`.
bad:
    import surefoot.aio as sf

    @sf.step
    async def look() -> bool:
        return True

    @sf.workflow
    async def wait() -> bool:
        sf.sleep("1h")
        return await look()
good:
    import surefoot.aio as sf

    @sf.step
    async def look() -> bool:
        return True

    @sf.workflow
    async def wait() -> bool:
        await sf.sleep("1h")
        return await look()
""",
    "SF301": """effect-as-step error
says: a step that changes the world with `{}` is done again after a crash: `@sf.effect`
cure: Declare it with `@sf.effect`. What only looks stays a step.
why: A "step" that sends a mail sends it again: a step may be executed again after a crash, because nothing is lost by it.
    `surefoot crashtest` finds this by killing; here it is seen at the desk.
quiet: Programs that only read (`git log`, `ls`). POST to models, search and embeddings. Files in a temporary folder that
    the step made itself.
bad:
    import surefoot as sf

    @sf.step
    def mail(to: str, text: str) -> None:
        with open("outbox.txt", "a") as outbox:
            outbox.write(f"{to}: {text}")
good:
    import surefoot as sf

    @sf.effect
    def mail(to: str, text: str) -> None:
        with open("outbox.txt", "a") as outbox:
            outbox.write(f"{to}: {text}")
""",
    "SF302": """wait-in-step error
says: `{}` inside a step is refused when it runs: call it from the workflow
cure: Call the effect, or wait, in the workflow. A step may call steps.
why: A step may be executed again at any time, and with it what it called. An effect in it would have no place of its own
    in the journal, and a wait would be forgotten.
quiet: A step in a step.
bad:
    import surefoot as sf

    @sf.effect
    def send(to: str) -> None: ...

    @sf.step
    def tell_all(names: list[str]) -> None:
        for name in names:
            send(name)
good:
    import surefoot as sf

    @sf.effect
    def send(to: str) -> None: ...

    @sf.workflow
    def tell_all(names: list[str]) -> None:
        for name in names:
            send(name)
""",
    "SF303": """retry-without-sf-key error
says: `{}` with on_crash="retry" and without `sf.key()` is done twice, and the other side cannot tell
cure: Send `sf.key()` with it. Or leave `on_crash` out: then a person is asked, or a check.
why: `on_crash="retry"` says that to do it twice is harmless. It is, if the other side knows the key. Without one the bank
    gets two payments that look like two payments.
quiet: PUT, DELETE, whole files, upserts.
bad:
    import requests
    import surefoot as sf

    @sf.effect(on_crash="retry")
    def pay(order: str) -> str:
        return requests.post("https://bank.test/pay", json={"order": order}).text
good:
    import requests
    import surefoot as sf

    @sf.effect(on_crash="retry")
    def pay(order: str) -> str:
        return requests.post("https://bank.test/pay", json={"order": order}, headers={"Idempotency-Key": sf.key()}).text
""",
    "SF304": """check-that-changes error
says: a check only looks, and `{}` changes: it may be called at any time
cure: Let the check return what it saw, and let the effect or its undo change things.
why: A check is asked whether an effect happened: after a crash, at a rehearsal, when a person wonders. A check that
    tidies up deletes what it was to find.
quiet: Undo functions may change.
bad:
    from pathlib import Path
    import surefoot as sf

    @sf.effect
    def write(path: str) -> None:
        Path(path).write_text("x")

    @write.check
    def _(path: str):
        Path(path).unlink(missing_ok=True)
        return sf.not_happened()
good:
    from pathlib import Path
    import surefoot as sf

    @sf.effect
    def write(path: str) -> None:
        Path(path).write_text("x")

    @write.check
    def _(path: str):
        return sf.happened(None) if Path(path).exists() else sf.not_happened()
""",
    "SF305": """step-changes-argument warning
says: the step changes its argument `{}`, which is a copy: return it
cure: Return the changed value, and use what the step returned.
why: After a crash the step is not executed again; its recorded result is returned. What it did to its argument is not
    part of the result, so the list is longer in the first run and shorter in the resumed one.
quiet: The argument is returned, bound to a copy first, or named in `ignore=`.
bad:
    import surefoot as sf

    @sf.step
    def add(history: list, message: str) -> None:
        history.append(message)
good:
    import surefoot as sf

    @sf.step
    def add(history: list, message: str) -> list:
        return [*history, message]
""",
    "SF306": """saga-without-undo warning
says: `{}` is called in a saga and has no undo: it stays done when the rest fails
cure: Give it an `@NAME.undo`, or call it after the saga.
why: The flight is booked, the hotel is full, and the saga takes back what it can. The flight has no undo: it stays booked,
    and somebody has to notice.
quiet: The undo is in the same module. Effects of other modules are not judged.
bad:
    import surefoot as sf

    @sf.effect
    def book(number: int) -> str:
        return "b"

    @sf.workflow
    def trip(number: int) -> None:
        with sf.saga():
            book(number)
good:
    import surefoot as sf

    @sf.effect
    def book(number: int) -> str:
        return "b"

    @book.undo
    def _(number: int, result: str) -> None: ...

    @sf.workflow
    def trip(number: int) -> None:
        with sf.saga():
            book(number)
""",
    "SF401": """memory-saver warning
says: `{}` keeps checkpoints in this process only: take a durable saver
cure: `from surefoot.langgraph import Saver`, or a saver for SQLite or PostgreSQL.
why: The graph has checkpoints, says the code. They are in a dictionary: a new deploy, and every conversation that waited
    for a person is gone.
quiet: Demonstrations. A durable saver in the same module. The default of a parameter. Inside Temporal. Once per module.
bad:
    from langgraph.checkpoint.memory import MemorySaver

    def build(builder):
        return builder.compile(checkpointer=MemorySaver())
good:
    from surefoot.langgraph import Saver

    def build(builder):
        return builder.compile(checkpointer=Saver())
""",
    "SF402": """effect-before-interrupt error
says: `{}` before `interrupt()` is done again on resume: put it after, or into a node of its own
cure: Put it after the interrupt, or into a node of its own. Or `guard(graph)` of `surefoot.langgraph`.
why: LangGraph resumes a node by running it again from its top. The ticket that was opened before the question is opened
    a second time when the answer comes. Nothing in 8.4 million lines of public code had this; the corpus of snippets
    proves the rule.
quiet: Another branch. Reads. Model calls.
bad:
    import requests
    from langgraph.types import interrupt

    def approve(state):
        requests.post("https://desk.test/tickets", json={"title": state["title"]})
        return {"answer": interrupt("go on?")}
good:
    import requests
    from langgraph.types import interrupt

    def approve(state):
        answer = interrupt("go on?")
        requests.post("https://desk.test/tickets", json={"title": state["title"]})
        return {"answer": answer}
""",
    "SF403": """interrupt-swallowed error
says: `interrupt()` works by raising, and `{}` swallows it
cure: Catch the exceptions you mean, or let `GraphInterrupt` through. Best: no `try` around `interrupt()`.
why: The node asks a person, the handler takes the question for an error, and the graph goes on with an error text
    instead of an answer. Nothing in 8.4 million lines of public code had this; the corpus of snippets proves the rule.
quiet: Named exceptions. `GraphInterrupt` is let through. Raised again.
bad:
    from langgraph.types import interrupt

    def review(state):
        try:
            return {"answer": interrupt(state["draft"])}
        except Exception as error:
            return {"error": str(error)}
good:
    from langgraph.types import interrupt

    def review(state):
        answer = interrupt(state["draft"])
        try:
            return {"answer": int(answer)}
        except ValueError as error:
            return {"error": str(error)}
""",
    "SF501": """not-the-same-again error
says: `{}` is not the same at a replay: `workflow.now/uuid4/random/wait`, `DBOS.sleep`, or a step
cure: Temporal: `workflow.now()`, `workflow.uuid4()`, `workflow.random()`, `workflow.wait()`, `workflow.as_completed()`. DBOS: `DBOS.sleep`, a step.
why: The workflow is replayed from its history. If it asks for another thing than the first time, Temporal refuses to go
    on, in production, weeks after the deploy.
quiet: Queries and helpers that only they call. `sandbox_unrestricted`. `asyncio.sleep` and `gather` in Temporal. Only logged.
bad:
    import time
    from temporalio import workflow

    @workflow.defn
    class Slow:
        @workflow.run
        async def run(self) -> None:
            time.sleep(10)
good:
    import asyncio
    from temporalio import workflow

    @workflow.defn
    class Slow:
        @workflow.run
        async def run(self) -> None:
            await asyncio.sleep(10)
""",
    "SF502": """world-in-workflow error
says: `{}` reads or changes the world at every replay: an activity, a step
cure: Move it into an activity (Temporal) or a step (DBOS).
why: Workflow code runs again from its beginning whenever a worker takes it up. A file that is read there is another file
    the next time, and an order that is placed there is placed again. Nothing in 8.4 million lines of public code had this; the corpus of snippets proves the rule.
quiet: Functions with a decorator called step, task, activity or transaction.
bad:
    from temporalio import workflow

    @workflow.defn
    class Load:
        @workflow.run
        async def run(self, path: str) -> str:
            with open(path) as file:
                return file.read()
good:
    from temporalio import activity, workflow

    @activity.defn
    def read(path: str) -> str:
        with open(path) as file:
            return file.read()

    @workflow.defn
    class Load:
        @workflow.run
        async def run(self, path: str) -> str:
            return await workflow.execute_activity(read, path)
""",
    "SF503": """activity-without-key warning
says: `{}` is retried by the engine and sends without a key: take one from `activity.info()`
cure: Temporal: a key of `activity.info().workflow_id` and `activity_id`. DBOS: `DBOS.workflow_id` and `DBOS.step_id`.
why: An activity is retried for ever unless told otherwise. If the worker dies after the charge and before it reports, the
    charge is made again, by design. Nothing in 8.4 million lines of public code had this; the corpus of snippets proves
    the rule.
quiet: Reads. Model calls. PUT. Steps of DBOS without `retries_allowed`.
bad:
    import requests
    from temporalio import activity

    @activity.defn
    def transfer(amount: int) -> str:
        return requests.post("https://bank.test/transfers", json={"amount": amount}).text
good:
    import requests
    from temporalio import activity

    @activity.defn
    def transfer(amount: int) -> str:
        key = f"{activity.info().workflow_id}-{activity.info().activity_id}"
        return requests.post("https://bank.test/transfers", json={"amount": amount}, headers={"Idempotency-Key": key}).text
""",
}
