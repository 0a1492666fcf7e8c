"""Refactor fifty files with an agent that may die at any moment.

    python examples/refactor.py                 makes 50 small files in ./refactor-files and rewrites them
    python examples/refactor.py --slow 0.5      the same with a slower model: press Ctrl-C, or kill -9 it
    python examples/refactor.py --slow 0.5      run it again: it goes on where it was

A line is printed whenever something is really done. Count them over all your attempts: a model call that
was recorded is never paid for again. Afterwards: surefoot runs show refactor-1

The "model" is scripted: no network, no keys.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import surefoot as sf

SLOW_SECONDS = 0.05


def say(line: str) -> None:
    """Print in one piece: four branches speak at the same time."""
    print(line + "\n", end="", flush=True)


@sf.step
def read(path: str) -> str:
    """Reading changes nothing outside: a step."""
    return Path(path).read_text()


@sf.step(retries=2)
def propose(path: str, text: str, rule: str) -> str:
    """Stand-in for the model call. It costs time and money, so its answer is worth keeping."""
    time.sleep(SLOW_SECONDS)
    say(f"propose {path}: {rule}")
    return text.replace("import os\n", "from pathlib import Path\n").replace(
        'os.path.join(folder, "data")', 'Path(folder) / "data"'
    )


@sf.effect(on_crash="retry")
def write(path: str, text: str) -> int:
    """Changes the world: an effect. Writing the same text again does no harm, hence on_crash="retry"."""
    say(f"write {path}")
    return Path(path).write_text(text)


def refactor_file(path: str, rule: str) -> int:
    """One file, start to end. A plain function: only steps and effects are recorded."""
    return write(path, propose(path, read(path), rule))


@sf.workflow
def refactor(folder: str, count: int, rule: str) -> int:
    """Rewrite every file. Each has a scope of its own, named by its path, so the order does not matter."""
    paths = [str(Path(folder) / f"module_{n:02}.py") for n in range(count)]
    sizes = sf.map(lambda path: refactor_file(path, rule), paths, key=str, concurrency=4)
    return len(sizes)


def make_files(folder: Path, count: int) -> None:
    """The files to work on. Those that exist are left alone: a second start must not undo the first."""
    folder.mkdir(exist_ok=True)
    for n in range(count):
        path = folder / f"module_{n:02}.py"
        if not path.exists():
            path.write_text(f'import os\n\n\ndef where_{n}(folder):\n    return os.path.join(folder, "data")\n')


def main() -> None:
    global SLOW_SECONDS  # noqa: PLW0603 - how slow the stand-in is, is no argument of the workflow
    parser = argparse.ArgumentParser(description="Refactor files; kill it and run it again.")
    parser.add_argument("--id", default="refactor-1", help="the run's id: the same id is the same run")
    parser.add_argument("--files", type=int, default=50)
    parser.add_argument("--slow", type=float, default=SLOW_SECONDS, help="seconds per model call")
    options = parser.parse_args()
    SLOW_SECONDS = options.slow

    make_files(Path("refactor-files"), options.files)
    done = refactor.run(options.id, "refactor-files", options.files, rule="use pathlib")
    print(f"{done} files refactored by run {options.id}")


if __name__ == "__main__":
    main()
