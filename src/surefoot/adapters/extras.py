"""Which frameworks are there, and whether their versions are ones that the tests have seen."""

from __future__ import annotations

import re
from importlib import metadata

from surefoot.errors import UsageError


def require(package: str, extra: str, *, least: str, below: str) -> None:
    """Refuse to work with a framework that is missing, or that nobody has tried this with: never half-wrapped."""
    pip = f"pip install 'surefoot[{extra}]'"
    try:
        found = metadata.version(package)
    except metadata.PackageNotFoundError:
        raise UsageError(f"{package} is not installed: {pip}") from None
    if not numbers(least) <= numbers(found) < numbers(below):
        raise UsageError(
            f"{package} {found} is installed, and this version of surefoot was tested with {least} or newer, below {below}: {pip}"
        )


def numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


def require_names(package: str, missing: list[str], *, least: str, below: str) -> None:
    """What a room leans on in a framework, and does not find there any more."""
    if missing:
        raise UsageError(
            f"{package} {metadata.version(package)} no longer has {', '.join(missing)}, which surefoot needs to record what it "
            f"does. Tested with {least} or newer, below {below}."
        )
