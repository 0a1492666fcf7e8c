"""Which versions of a framework an adapter was tested with. Any other is refused before anything is wrapped.

Frameworks change what they do inside within minor versions. An adapter that half fits would lose what it is there to keep.
To try another version all the same, set SUREFOOT_UNTESTED=1: `make newest` does, and runs the suites.
"""

from __future__ import annotations

import importlib.metadata
import logging
import os
import re
from collections.abc import Mapping, Sequence
from typing import Final

from surefoot.errors import UsageError

log = logging.getLogger("surefoot")
UNTESTED: Final = "SUREFOOT_UNTESTED"
Range = tuple[str, str]
"""From this version on, and below that one."""

_NUMBERS: Final = re.compile(r"\d+")


def require(extra: str, packages: Mapping[str, Range]) -> None:
    """Refuse, unless each package is there in a tested version. `pyproject.toml` has the same ranges."""
    for package, (low, high) in packages.items():
        found = installed(package)
        if found is None:
            raise UsageError(f"surefoot[{extra}] needs {package}, which is not installed. {_install(extra)}")
        if numbers(low) <= numbers(found) < numbers(high):
            continue
        if os.environ.get(UNTESTED):
            log.warning(
                "%s %s was not tested with surefoot[%s]: from %s on and below %s was", package, found, extra, low, high
            )
        else:
            raise UsageError(
                f"surefoot[{extra}] was tested with {package} from {low} on and below {high}; {found} is installed, and "
                f"nothing was wrapped. {_install(extra)}"
            )


def require_names(extra: str, packages: Mapping[str, Range], missing: Sequence[str]) -> None:
    """Refuse, if names that an adapter leans on are not there: private ones may go within the tested range."""
    if missing:
        found = ", ".join(f"{package} {installed(package)}" for package in packages)
        raise UsageError(
            f"surefoot[{extra}] needs {', '.join(missing)}, which {found} no longer has, to record what it does; nothing was "
            f"wrapped. {_install(extra)}"
        )


def installed(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def numbers(version: str) -> tuple[int, ...]:
    """The release of a version; what follows it (`rc1`, `.post2`) does not count."""
    release = re.match(r"[0-9.]*", version)
    return tuple(int(number) for number in _NUMBERS.findall(release[0] if release else ""))


def _install(extra: str) -> str:
    return f"Install what fits: pip install 'surefoot[{extra}]'"
