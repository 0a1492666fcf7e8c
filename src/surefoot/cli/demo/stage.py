"""The play: start the agent, kill it, show the state, resume it to its end, and check every claim.

The agent is a child process started with the public command. The demo's statements come from three
places: exit codes, the journal (through `surefoot runs show --json`), and a ledger which the agent's own
calls write, unknown to surefoot. The demo waits for lines in that ledger, never for time to pass.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.syntax import Syntax
from rich.text import Text

import surefoot
from surefoot.cli import paint
from surefoot.cli.options import Settings
from surefoot.errors import Stopped
from surefoot.view import facts
from surefoot.view.facts import Facts

RUN = "refactor-42"
FILES = 16
CALLS_NEEDED = 1 + 2 * FILES + 1
"""Find the files; for each a model call and a write; the mail."""
KILL_AT_MODEL_CALL = 9
EXIT_NEEDS_A_PERSON = Stopped.exit_code
EDITED = "src/module_03.py"
EDIT = "# reviewed by Ada\n"
PATIENCE_SECONDS = 60
AGENT = Path(__file__).with_name("agent.py")
SOURCE = "import os\n\n\ndef where_{number}(a, b):\n    return os.path.join(a, b)\n"
START = ("run", "agent:refactor", "--id", RUN, "src", "use pathlib")


def play(folder: Path, settings: Settings, *, kept: bool) -> Facts:
    """The whole demo in that folder. Returns what was observed, and whether everything held."""
    stage = Stage(folder, paint.console(stderr=settings.json))
    started = time.monotonic()
    stage.set_up()
    recorded = stage.first_act_killed_in_the_middle()
    stage.second_act_drifted()
    stage.third_act_resumed_and_killed_in_an_effect(recorded)
    stage.fourth_act_in_doubt()
    stage.fifth_act_settled()
    seen = stage.curtain(time.monotonic() - started)
    if kept:
        stage.say(f"\neverything is still in {folder}; try: cd {shlex.quote(str(folder))} && surefoot runs tail {RUN}")
    return seen


class Stage:
    """The folder, the child processes, and what was observed so far."""

    def __init__(self, folder: Path, console: Console) -> None:
        self.folder = folder
        self.console = console
        self.held: list[tuple[bool, str]] = []
        self.exit_codes: list[int] = []

    # -- the acts -----------------------------------------------------------------------------------

    def set_up(self) -> None:
        shutil.copyfile(AGENT, self.folder / "agent.py")
        (self.folder / "src").mkdir()
        for number in range(1, FILES + 1):
            (self.folder / "src" / f"module_{number:02}.py").write_text(SOURCE.format(number=number))
        self.title("An agent that refactors files")
        self.say(f"All of it but two helpers that write the ledger; the file is {AGENT}\n")
        self.console.print(Syntax(_body(AGENT.read_text()), "python", background_color="default", word_wrap=True))

    def first_act_killed_in_the_middle(self) -> dict[str, int]:
        """Kill the agent while the model thinks about a file. Returns what it had recorded by then."""
        self.title(f"1. It runs, and is killed with SIGKILL at model call {KILL_AT_MODEL_CALL} of {FILES}")
        self.killed_when(lambda ledger: _count(ledger, "propose") >= KILL_AT_MODEL_CALL)
        self.title("2. What is left: the journal")
        self.surefoot("runs", "show", RUN, wide=True)
        page = self.page()
        recorded = _things_done(page)
        self.check(page["stands"] == "cut off", f"the journal says that the run was cut off ({page['stands']!r})")
        self.check(bool(recorded), f"{len(recorded)} calls were on record when the process died")
        return Counter(recorded)

    def second_act_drifted(self) -> None:
        self.title("3. While it is down, somebody edits a file that it had rewritten")
        self.say(f"{EDITED}: + {EDIT}")
        with (self.folder / EDITED).open("a") as file:
            file.write(EDIT)
        before = self.ledger()
        stopped = self.surefoot(*START)
        self.exit_codes.append(stopped.returncode)
        ran = len(self.ledger()) - len(before)
        drifted = stopped.returncode == EXIT_NEEDS_A_PERSON and "Drifted" in stopped.stderr
        self.check(drifted, f"it looked, and stopped before anything ran (exit code {stopped.returncode})")
        self.check(f"file:{EDITED}: changed" in stopped.stderr, f"it named what had changed: {EDITED}")
        self.check(ran == 0, f"calls made meanwhile: {ran}")
        self.title("4. A person says that the edit is all right")
        accepted = self.surefoot("accept", RUN, "--by", "demo", "--note", "a comment, it may stay")
        self.check(accepted.returncode == 0, f"the answer is recorded (exit code {accepted.returncode})")

    def third_act_resumed_and_killed_in_an_effect(self, recorded: dict[str, int]) -> None:
        self.title("5. The same command again: it goes on, and is killed after the mail went out")
        before = Counter(self.ledger())
        self.killed_when(lambda _: bool(self.lines("outbox.txt")))
        after = Counter(self.ledger())
        again = sorted(what for what in recorded if after[what] != before[what])
        cut_off = sorted(what for what in after if after[what] > 1)
        self.check(not again, f"of {len(recorded)} calls on record, {len(again)} ran again")
        self.check(
            len(cut_off) <= 1 and not set(cut_off) & set(recorded),
            f"{len(cut_off)} call was cut off by the first kill and ran again: {', '.join(cut_off) or 'none'}",
        )

    def fourth_act_in_doubt(self) -> None:
        self.title("6. The same command again: was the mail sent? surefoot knows that it does not know")
        code = self.surefoot(*START).returncode
        self.exit_codes.append(code)
        mails = len(self.lines("outbox.txt"))
        self.check(code == EXIT_NEEDS_A_PERSON, f"it stopped and asked (exit code {code}) instead of sending again")
        self.check(mails == 1, f"mails in the outbox: {mails}")

    def fifth_act_settled(self) -> None:
        self.title("7. A person looks into the outbox, sees the mail, and says so")
        self.say("".join(f"outbox.txt: {line}\n" for line in self.lines("outbox.txt")))
        settled = self.surefoot(
            "settle", RUN, "mail#1", "--happened", '"accepted"', "--by", "demo", "--note", "it is in the outbox"
        )
        self.check(settled.returncode == 0, f"the answer is recorded (exit code {settled.returncode})")
        self.title("8. The same command a last time")
        ended = self.surefoot(*START)
        self.exit_codes.append(ended.returncode)
        result = json.loads(ended.stdout) if ended.returncode == 0 else None
        self.check(ended.returncode == 0, f"the run is done (exit code {ended.returncode})")
        self.check(result == {"files": FILES, "mail": "accepted"}, f"its result: {json.dumps(result)}")

    def curtain(self, seconds: float) -> Facts:
        """The last look at the world: files, ledger, outbox."""
        self.title("9. A last look at the world")
        ledger = self.ledger()
        times = Counter(ledger)
        files = [path.read_text() for path in sorted((self.folder / "src").glob("*.py"))]
        refactored = sum("Path(a) / b" in text and "os.path" not in text for text in files)
        mails = len(self.lines("outbox.txt"))
        kills = self.exit_codes.count(-signal.SIGKILL)
        self.check(kills == 2, f"processes killed with SIGKILL: {kills}")
        self.check(refactored == FILES, f"files refactored: {refactored} of {len(files)}")
        stays = self.lines(EDITED)[-1:] == EDIT.splitlines()
        self.check(stays, f"the edit of {EDITED} is {'still there' if stays else 'gone'}")
        self.check(mails == 1 and times["mail ada@example.org"] == 1, f"mails sent: {mails}")
        twice = sum(count - 1 for what, count in times.items() if what.startswith("propose"))
        self.check(
            CALLS_NEEDED <= len(ledger) <= CALLS_NEEDED + 1,
            f"calls really made: {len(ledger)}, for {CALLS_NEEDED} that were needed ({twice} model call paid for twice)",
        )
        held = all(good for good, _ in self.held)
        count = sum(good for good, _ in self.held)
        words = "Everything held" if held else "NOT everything held"
        self.title(f"{words}: {count} of {len(self.held)} claims, in {seconds:.0f} s")
        return facts.demo(
            self.held,
            self.exit_codes,
            made=len(ledger),
            needed=CALLS_NEEDED,
            mails=mails,
            files=refactored,
            seconds=seconds,
        )

    # -- the agent as a child process -----------------------------------------------------------------

    def killed_when(self, is_time: Callable[[list[str]], bool]) -> None:
        """Start the agent and kill it as soon as the ledger has the line."""
        self.command(*START)
        child = subprocess.Popen(  # noqa: S603 - our own command
            [sys.executable, "-m", "surefoot", *START],
            cwd=self.folder, env=self.environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        try:
            self.watch(child, is_time)
        finally:
            child.kill()
            _, said = child.communicate()
        self.exit_codes.append(child.returncode)
        killed = child.returncode == -signal.SIGKILL
        if not killed:
            self.say(said)
        self.check(killed, f"process {child.pid} was killed with SIGKILL (exit status {child.returncode})")

    def watch(self, child: subprocess.Popen[str], is_time: Callable[[list[str]], bool]) -> None:
        """Show the ledger as it grows, until it is time."""
        pause = threading.Event()
        deadline = time.monotonic() + PATIENCE_SECONDS
        shown = len(self.ledger())
        while child.poll() is None and time.monotonic() < deadline:
            ledger = self.ledger()
            enough = is_time(ledger)
            if enough:
                child.kill()
            for line in ledger[shown:]:
                self.console.print(Text(f"  {line}", style="dim"))
            shown = len(ledger)
            if enough:
                self.console.print(Text(f"  SIGKILL to process {child.pid}", style="bold red"))
                return
            pause.wait(0.005)

    def surefoot(self, *words: str, wide: bool = False) -> subprocess.CompletedProcess[str]:
        """A command as a person would type it, with its output."""
        self.command(*words)
        ended = self.ran(*words)
        for line in (ended.stdout + ended.stderr).rstrip("\n").split("\n"):
            self.console.print(Text(f"  {line.rstrip()}"), no_wrap=wide, overflow="ellipsis" if wide else "fold")
        return ended

    def ran(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(  # noqa: S603 - our own command
            [sys.executable, "-m", "surefoot", *words],
            cwd=self.folder, env=self.environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=PATIENCE_SECONDS, check=False,
        )  # fmt: skip

    def environment(self) -> dict[str, str]:
        """This installation, and no settings from outside."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("SUREFOOT_")}
        here = str(Path(surefoot.__file__).resolve().parent.parent)
        path = os.pathsep.join(filter(None, [here, kept.get("PYTHONPATH")]))
        return kept | {"PYTHONPATH": path, "PYTHONIOENCODING": "utf-8", "NO_COLOR": "1"}

    # -- looking ----------------------------------------------------------------------------------------

    def page(self) -> dict[str, Any]:
        shown = self.ran("runs", "show", RUN, "--json")
        shown.check_returncode()
        found: dict[str, Any] = json.loads(shown.stdout)
        return found

    def ledger(self) -> list[str]:
        return self.lines("ledger.txt")

    def lines(self, name: str) -> list[str]:
        path = self.folder / name
        return path.read_text().splitlines() if path.exists() else []

    # -- telling ----------------------------------------------------------------------------------------

    def title(self, words: str) -> None:
        self.console.print()
        self.console.print(Text(words, style="bold cyan"))

    def command(self, *words: str) -> None:
        self.console.print(Text(f"$ surefoot {shlex.join(words)}", style="bold"), soft_wrap=True)

    def say(self, words: str) -> None:
        self.console.print(Text(words), soft_wrap=True)

    def check(self, good: bool, claim: str) -> None:
        self.held.append((good, claim))
        self.console.print(Text(f"  {'✓' if good else '✗'} {claim}", style="green" if good else "bold red"))


def _body(source: str) -> str:
    """The program without its first docstring and the helpers at its end."""
    start = source.index("@sf.step")
    return source[start : source.index("def happened")].rstrip()


def _count(ledger: list[str], what: str) -> int:
    return len({line for line in ledger if line.startswith(f"{what} ")})


def _things_done(page: dict[str, Any]) -> list[str]:
    """The recorded calls, in the words of the ledger: the name, and the main argument."""
    return [
        f"{call['address'].rpartition('/')[2].partition('#')[0]} {call['args'].get('path') or call['args']['folder']}"
        for call in page["calls"]
        if call["status"] == "done" and call["kind"] in ("step", "effect")
    ]
