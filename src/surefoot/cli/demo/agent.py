"""A refactoring agent that may die at any moment. This is the whole program; nothing else knows about crashes.

    surefoot run agent:refactor --id refactor-42 src "use pathlib"

It rewrites every file of a folder and then mails the reviewer. The model is scripted: no network, no keys.
Whatever really happens is also written to ledger.txt, which surefoot knows nothing of: it is how one can
check afterwards that nothing happened twice.
"""

import os
import time
from pathlib import Path

import surefoot as sf
from surefoot import witness


@sf.step  # Safe to repeat: a read, a computation, a model call. Its answer is recorded, so it is paid for once.
def find(folder: str) -> list[str]:
    happened(f"find {folder}")
    return sorted(str(path) for path in Path(folder).glob("*.py"))


@sf.step
def propose(path: str, rule: str) -> str:
    happened(f"propose {path}")
    time.sleep(0.15)  # The model thinks.
    old = Path(path).read_text()
    return old.replace("import os\n", "from pathlib import Path\n").replace("os.path.join(a, b)", "Path(a) / b")


def its_file(path: str, _text: str) -> witness.Witness:
    return witness.file(path)


# Changes the world, but writing the same text again does no harm. It touches a file: before the run goes on, that is
# looked at, and if somebody else has changed it meanwhile, a person is asked.
@sf.effect(on_crash="retry", touches=[its_file])
def write(path: str, text: str) -> int:
    happened(f"write {path}")
    return Path(path).write_text(text)


@sf.effect  # Changes the world, and twice would be wrong. If it is cut off, a person is asked.
def mail(reviewer: str, text: str) -> str:
    happened(f"mail {reviewer}")
    append("outbox.txt", f"To: {reviewer}: {text}")  # The mail is out ...
    time.sleep(10)  # ... and the mail server takes its time to say so.
    return "accepted"


@sf.workflow
def refactor(folder: str, rule: str) -> dict[str, object]:
    paths = find(folder)
    for done, path in enumerate(paths, 1):
        with sf.scope(path):  # Calls are named after their file: [src/a.py]/write#1
            write(path, propose(path, rule))
        sf.progress(done, len(paths))
    receipt = mail("ada@example.org", f"{len(paths)} files now {rule}")
    return {"files": len(paths), "mail": receipt}


def happened(what: str) -> None:
    append("ledger.txt", what)


def append(name: str, line: str) -> None:
    """One line, at once, as the operating system's log would have it."""
    file = os.open(name, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(file, f"{line}\n".encode())
    os.close(file)
