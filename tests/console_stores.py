"""One real store with everything at once that can wait for a person: what the console's tests and pictures look at.

Nothing in it is made up: processes were killed, the world was changed, a stored page was overwritten. Call `make(folder)`; it
runs in the folder, which is also the world of the workflows. `python -m tests.console_stores FOLDER` makes one to look at.
"""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STORE = "sqlite:///runs.db"
HOSTILE_RUN = "<b>xss-1"
HOSTILE_TITLE = "<img src=x onerror=alert(1)> \u202etxt.exe"
SOURCES = {
    "src/cli.py": "import os\n\n\ndef main() -> int:\n    return 0\n",
    "src/io.py": "import os\n\n\ndef read(path: str) -> str:\n    return (ROOT / path).read_text()\n\n\ndef exists(path: str) -> bool:\n    return (ROOT / path).exists()\n",
    "src/log.py": "import os\n\n\ndef log(line: str) -> None:\n    print(line)\n",
    "src/store.py": "import os\n\n\ndef save(path: str) -> None: ...\n",
}
_DRIVE = """
import sys, json
import surefoot as sf
from tests import console_app as app
for line in json.loads(sys.argv[1]):
    name, run, *args = line
    workflow = getattr(app, name)
    try:
        workflow.run(run, *args)
    except (sf.Stopped, sf.SurefootError, ValueError, RuntimeError) as error:
        print(run, type(error).__name__)
"""
_QUEUE = """
import sys, json
import surefoot as sf
from tests import console_app as app
for name, run, options, *args in json.loads(sys.argv[1]):
    getattr(app, name).using(**options).start(run, *args)
"""


def environment(**more: str) -> dict[str, str]:
    told = {
        "SUREFOOT_STORE": STORE, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}", "PYTHONUNBUFFERED": "1",
        "PYTHON_TARGET": "3.11", "DEATH_NOTE": "died",
    }  # fmt: skip
    return {**os.environ, **told, **more}


def python(folder: Path, code: str, *args: str, **more: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, *args],
        cwd=folder,
        env=environment(**more),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.stdout + done.stderr


def drive(folder: Path, *lines: tuple[object, ...], **more: str) -> str:
    return python(folder, _DRIVE, json.dumps(lines), **more)


def make(folder: Path) -> str:
    """The URL of its store, as seen from the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for path, text in SOURCES.items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(text)
    with ThreadPoolExecutor() as side_by_side:
        for done in [side_by_side.submit(one, folder) for one in (_paid, _killed, _waiting, _ended, _drifted)]:
            done.result()
    _damaged(folder)
    return STORE


def _paid(folder: Path) -> None:
    """In doubt, after several processes."""
    drive(folder, ("pay_invoices", "invoices-2026-11-15"), PACE="0.005")
    drive(folder, ("pay_invoices", "invoices-2026-11-16"), DIES_AT="pay Nordlicht Druck KG", PACE="0.06")
    drive(folder, ("pay_invoices", "invoices-2026-11-16"), PACE="0.06")


def _killed(folder: Path) -> None:
    """Killed, and nobody went on; under other code; again and again."""
    drive(folder, ("migrate", "migrate-billing", "invoice"), DIES_AT="migrate")
    drive(folder, ("migrate", "migrate-billing", "invoice"), CODE="2")
    drive(folder, ("nightly_brief", "brief-2026-11-18", "2026-11-18"), DIES_AT="read_page 2")
    python(folder, _QUEUE, json.dumps([("screenshot", "shot-landing-page", {"queue": "shots"}, "https://example.com")]))
    for _ in range(6):
        (folder / "died").unlink(missing_ok=True)
        python(folder, _TAKE, DIES_AT="render")
        if not (folder / "died").exists():
            break


_TAKE = """
import threading, surefoot as sf, surefoot.core.readiness as readiness
readiness.LONGEST_BACK_OFF = 0
from tests import console_app as app
run = sf.get_run("shot-landing-page")
with sf.Worker(workflows=[app.screenshot], queue="shots"):
    while run.status not in ("stopped", "done"):
        threading.Event().wait(0.02)
"""


def _waiting(folder: Path) -> None:
    drive(
        folder,
        ("deploy", "deploy-v2.4", "v2.4"),
        ("restock", "restock-assam", "Assam"),
        ("publish", HOSTILE_RUN, HOSTILE_TITLE, "<script>alert(1)</script>, javascript:alert(1)"),
        ("research", "research-solar", "solar"),
    )
    queue = [("greet", f"welcome-{name}", {"delay": "2d", "queue": "mail"}, name) for name in ("ann", "bob", "cyd")]
    python(
        folder,
        _QUEUE,
        json.dumps(
            [*queue, ("nightly_brief", "brief-2026-11-20", {"delay": "8h", "labels": {"team": "news"}}, "2026-11-20")]
        ),
    )


def _ended(folder: Path) -> None:
    drive(
        folder,
        ("import_csv", "import-bank-77", "bank.csv"),
        ("trip", "trip-ada-22", "ada"),
        *(("nightly_brief", f"brief-2026-11-{day}", f"2026-11-{day}") for day in (14, 15, 16, 17)),
        PACE="0.002",
    )
    python(
        folder,
        "import surefoot as sf\nfrom tests import console_app\nsf.get_run('brief-2026-11-17').fork('brief-2026-11-17-again', at='read_page#3', by='ann', note='another source')\nsf.get_run('brief-2026-11-17-again').resume()\nsf.Checkpoint('crawler-state', schema=1).save({'seen': 120, 'queue': ['a', 'b']})\nc = sf.Checkpoint('crawler-state', schema=1)\nc.load()\nfor n in (140, 181, 203): c.save({'seen': n, 'queue': ['a', 'b', 'c'][: n % 3 + 1], 'cursor': f'page-{n}'})",
    )


def _drifted(folder: Path) -> None:
    drive(folder, ("refactor", "refactor-pathlib", "pathlib"), DIES_AT="refactor 3")
    changed = folder / "src/io.py"
    changed.write_text(
        changed.read_text().replace(
            "    return (ROOT / path).read_text()",
            '    # Windows: the default encoding is not UTF-8\n    return (ROOT / path).read_text(encoding="utf-8")',
        )
    )
    (folder / "src/paths.py").write_text("from pathlib import Path\n\nROOT = Path(__file__).parent\n")
    drive(folder, ("refactor", "refactor-pathlib", "pathlib"), PYTHON_TARGET="3.12")


def _damaged(folder: Path) -> None:
    """One byte of an entry is another: its seal does not hold. Of one run people decide, the other one has fallen back."""
    drive(folder, ("payroll", "payroll-2026-10", "2026-10"), ("research", "research-heat-pumps", "heat pumps"))
    with sqlite3.connect(folder / "runs.db") as store:
        for run, seq in (("payroll-2026-10", 9), ("research-heat-pumps", 15)):
            store.execute("UPDATE entries SET body = zeroblob(length(body)) WHERE run = ? AND seq = ?", (run, seq))
    store.close()
    drive(folder, ("research", "research-heat-pumps", "heat pumps"))


# --- to practise on ----------------------------------------------------------------------------------


def practice(folder: Path) -> None:
    """A few of each kind about which tests decide something."""
    folder.mkdir(parents=True, exist_ok=True)
    for path, text in SOURCES.items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(text)
    drive(
        folder,
        *(("deploy", f"deploy-{name}", "v2.4") for name in ("keys", "touch", "plain", "seen", "double", "still")),
        ("restock", "restock-assam", "Assam"),
        ("import_csv", "import-bank-77", "bank.csv"),
    )
    drive(folder, ("pay_invoices", "invoices-1"), DIES_AT="pay Nordlicht Druck KG", PACE="0.01", AT_ONCE="1")
    drive(folder, ("refactor", "refactor-1", "pathlib"), DIES_AT="refactor 3", PYTHON_TARGET="3.12")
    changed = folder / "src/io.py"
    changed.write_text(changed.read_text() + "# by hand\n")
    drive(folder, ("refactor", "refactor-1", "pathlib"), PYTHON_TARGET="3.12")


if __name__ == "__main__":
    make(Path(sys.argv[1]))
