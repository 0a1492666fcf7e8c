"""Which lines have changed since a commit, asked of git. Whole files that git does not know count as changed."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from surefoot.errors import UsageError

_PLACE = re.compile(r"^@@ -\S+ \+(\d+)(?:,(\d+))? @@")


def changed_lines(ref: str, root: Path) -> dict[str, set[int]]:
    """By path, relative to a folder."""
    if ref.startswith("-"):
        raise UsageError(f"--diff {ref}: that is no commit.")
    found: dict[str, set[int]] = {}
    path = ""
    for line in _git(
        root, "diff", "--unified=0", "--no-color", "--no-ext-diff", "--relative", "--no-prefix", ref, "--"
    ).splitlines():
        if line.startswith("+++ "):
            path = line[4:].strip('"').rstrip("\t")
        elif (place := _PLACE.match(line)) is not None:
            first, count = int(place[1]), int(place[2] or 1)
            found.setdefault(path, set()).update(range(first, first + count))
    for new in _git(root, "ls-files", "--others", "--exclude-standard").splitlines():
        found[new] = set(range(1, 1_000_000))
    return found


def _git(root: Path, *words: str) -> str:
    try:
        command = ["git", "-c", "core.quotepath=off", *words]
        ended = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)  # noqa: S603 - git is asked
    except OSError as error:
        raise UsageError(f"--diff needs git: {error.strerror}") from error
    if ended.returncode:
        raise UsageError(f"--diff: git says: {ended.stderr.strip().splitlines()[0] if ended.stderr.strip() else 'no'}")
    return ended.stdout
