"""Importing surefoot is cheap: it loads nothing that only some programs need."""

from __future__ import annotations

import subprocess
import sys

HEAVY = ("asyncio", "apsw", "rich", "click", "numpy", "pydantic", "attr", "socket", "http", "concurrent.futures")


def loaded_by(code: str) -> set[str]:
    shown = f"{code}; import sys; print(*sorted(sys.modules))"
    return set(subprocess.run([sys.executable, "-c", shown], capture_output=True, text=True, check=True).stdout.split())


def test_importing_surefoot_loads_no_server_no_driver_and_nothing_optional():
    assert not loaded_by("import surefoot").intersection(HEAVY)


def test_only_async_code_loads_asyncio():
    """Decorating a coroutine function needs it; blocking programs never do."""
    assert "asyncio" in loaded_by("import surefoot.aio")
