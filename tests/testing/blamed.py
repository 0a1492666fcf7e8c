"""Small workflows of which something is easily blamed that has done nothing; and some that end before anything is killed."""

from __future__ import annotations

import functools
import os
import sqlite3
import subprocess
import sys
import tempfile
import threading
import uuid
from pathlib import Path

import surefoot as sf
from tests.testing.mistakes import append, has, ledger, once, visit


@sf.effect
def put(name: str) -> str:
    Path(name).write_text(name)
    return name


@put.check
def _(name: str) -> object:
    return sf.happened(name) if Path(name).exists() else sf.not_happened()


# --- a truthful check, and something else that is wrong --------------------------------------------


@sf.workflow
def logs_by_itself() -> str:
    append("progress.txt", "begins")
    return put("a")


@sf.workflow
def logs_by_a_program() -> str:
    subprocess.run([sys.executable, "-S", "-c", "open('progress.txt', 'a').write('begins\\n')"], check=True)
    return put("a")


@sf.workflow
def logs_by_a_thread() -> str:
    thread = threading.Thread(target=append, args=("progress.txt", "begins"))
    thread.start()
    thread.join()
    return put("a")


@sf.workflow
def keeps_a_log() -> str:
    """As `logging` does with a file that is opened at the start: each process writes its own lines."""
    append("app.log", f"begins in process {os.getpid()}")
    return put("a")


@sf.step
def mails_by_a_step(to: str) -> str:
    append("mail.log", to)
    return to


@sf.workflow
def mailing_by_a_step() -> str:
    return mails_by_a_step("ada")


@sf.workflow
def keeps_figures() -> str:
    append("figures.csv", "begins")
    return put("a")


_number = 0


@sf.step
def next_number() -> int:
    global _number  # noqa: PLW0603 - the mistake
    _number += 1
    return _number


@sf.workflow
def numbers() -> None:
    put(str(next_number()))
    put(str(next_number()))


_script = iter(["write", "write", "done"])


@sf.step
def ask_model(_turn: int) -> str:
    return next(_script)


@sf.effect
def act(number: int) -> int:
    append("acts.txt", str(number))
    return number


@act.check
def _(number: int) -> object:
    return sf.happened(number) if has("acts.txt", str(number)) else sf.not_happened()


@sf.workflow
def scripted() -> int:
    turn = 0
    while ask_model(turn) != "done":
        act(turn)
        turn += 1
    return turn


@sf.workflow
def same_file_as_its_effect() -> int:
    append("acts.txt", "begins")
    return act(1)


# --- branches that run side by side ----------------------------------------------------------------


@sf.effect
def note_line(line: str) -> str:
    append("notes.txt", line)
    return line


@sf.effect(on_crash="retry")
def note_row(line: str) -> str:
    db = sqlite3.connect("notes.db")
    with db:
        db.execute("CREATE TABLE IF NOT EXISTS notes (id INTEGER PRIMARY KEY AUTOINCREMENT, name UNIQUE, line)")
        db.execute("INSERT OR IGNORE INTO notes (name, line) VALUES (?, ?)", [sf.key(), line])
    db.close()
    return line


@sf.workflow
def in_turns(turns: str, what: str) -> list[str]:
    """Two branches; each time the other one is the first."""
    append(turns, "one more")
    first = len(Path(turns).read_text().splitlines()) % 2
    done = threading.Event()

    def branch(number: int) -> str:
        if number != first:
            done.wait()
        try:
            return note_line(str(number)) if what == "lines" else note_row(str(number))
        finally:
            done.set()

    return list(sf.gather(lambda: branch(0), lambda: branch(1)))


@sf.workflow
def in_another_order(turns: str) -> None:
    """The same, and nothing runs side by side."""
    append(turns, "one more")
    Path("both.txt").write_text("a\nb\n" if len(Path(turns).read_text().splitlines()) % 2 else "b\na\n")
    visit(1)


# --- children --------------------------------------------------------------------------------------


@sf.workflow
def logging_child() -> str:
    append("progress.txt", "begins")
    return put("a")


@sf.workflow
def parent_of_logging_child() -> str:
    return str(sf.child(logging_child, "child"))


@sf.workflow
def sound_child() -> str:
    return put("a")


@sf.workflow
def parent_of_sound_child() -> str:
    return str(sf.child(sound_child, "child"))


@sf.workflow
def child_with_another_name_each_time() -> str:
    sf.child(sound_child, f"child-{uuid.uuid4()}")
    return "done"


# --- checks that say happened before anything has --------------------------------------------------


@sf.effect
def charge_in_memory(order: str) -> str:
    return f"paid {order}"


@charge_in_memory.check
def _(order: str) -> object:
    return sf.happened(f"paid {order}")


@sf.workflow
def believes_what_no_world_shows() -> str:
    return charge_in_memory("o-1")


@sf.effect
def hold(seat: str) -> str:
    append("held.txt", seat)
    return seat


@hold.undo
def _(seat: str, result: str) -> None:
    append("freed.txt", seat)


@hold.undo.check
def _(seat: str, result: str) -> object:
    return sf.happened(None)


@sf.workflow
def believes_that_it_is_undone() -> str:
    try:
        with sf.saga():
            hold("1a")
            raise ValueError("no second seat")
    except ValueError:
        return "undone"


@sf.workflow
def is_so_already() -> list[str]:
    return [put("a"), put("a")]


# --- what raises when it is repeated ---------------------------------------------------------------


@sf.step
def make_folder(name: str) -> str:
    os.mkdir(name)
    return name


@sf.workflow
def step_raises_when_repeated() -> str:
    return make_folder("made")


@sf.step
def remove(name: str) -> bool:
    there = Path(name).exists()
    Path(name).unlink(missing_ok=True)
    return there


@sf.workflow
def step_finds_it_done() -> bool:
    put("a")
    return remove("a")


@sf.workflow
def own_lines_raise_when_repeated() -> str:
    put("a")
    os.rename("a", "b")
    visit(1)
    return "done"


# --- luck ------------------------------------------------------------------------------------------


@sf.effect(on_crash="retry")
def stamp(times: str, late: int, early: int) -> None:
    """As a coarse clock: another content from one execution on."""
    append(times, "one more")
    count = len(Path(times).read_text().splitlines())
    Path("stamp.txt").write_text("later" if late <= count < early else "now")


@sf.workflow
def stamped(times: str, late: int, early: int) -> None:
    stamp(times, late, early)


# --- what a call leaves behind that was cut off ----------------------------------------------------


def replace(name: str) -> str:
    descriptor, draft = tempfile.mkstemp(dir=".")
    with os.fdopen(descriptor, "w") as file:
        file.write(name)
    os.replace(draft, name)
    return name


@sf.effect(on_crash="retry")
def replace_again(name: str) -> str:
    return replace(name)


@sf.effect
def replace_and_look(name: str) -> str:
    return replace(name)


@replace_and_look.check
def _(name: str) -> object:
    return sf.happened(name) if Path(name).exists() else sf.not_happened()


@sf.workflow
def leaves_a_draft() -> str:
    return replace_again("a")


@sf.workflow
def leaves_a_draft_beside_its_check() -> str:
    return replace_and_look("a")


@sf.step
def use_a_folder() -> int:
    with tempfile.TemporaryDirectory(dir=".") as folder:
        Path(folder, "x").write_text("1")
        return len(os.listdir(folder))


@sf.workflow
def leaves_a_folder() -> int:
    return use_a_folder()


# --- more ------------------------------------------------------------------------------------------


@functools.cache
def token() -> str:
    append("tokens.txt", "one more")
    return "token"


@sf.step
def use_token(page: int) -> str:
    return f"{token()} {page}"


@sf.workflow
def token_in_memory() -> list[str]:
    return [use_token(1), use_token(2)]


_ready = threading.Event()


@sf.step
def prepare() -> None:
    _ready.set()


@sf.workflow
def waits_for_the_process_before() -> str:
    prepare()
    _ready.wait()
    return put("a")


@sf.effect
def note_in_ledger(line: str) -> str:
    ledger.note(line)
    return line


@sf.workflow
def noting() -> str:
    return note_in_ledger("mail ada")


# --- nothing to explore ----------------------------------------------------------------------------


@sf.workflow
def interrupts_itself() -> None:
    raise KeyboardInterrupt


@sf.workflow
def leaves() -> None:
    visit(1)
    sys.exit(3)


@sf.workflow
def failure_leaves() -> str:
    try:
        return once("a")
    except sf.StepFailed:
        sys.exit(3)


@sf.step
def fork_and_forget() -> int:
    pid = os.fork()
    if pid == 0:
        return 0
    os.waitpid(pid, 0)
    return 1


@sf.workflow
def comes_back_twice() -> int:
    return fork_and_forget()
