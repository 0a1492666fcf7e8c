"""Importing surefoot is cheap: it loads nothing that only some programs need."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("asyncio", "apsw", "rich", "click", "numpy", "pydantic", "attr", "socket", "http", "concurrent.futures")


def loaded_by(code: str) -> set[str]:
    shown = f"{code}; import sys; print(*sorted(sys.modules))"
    return set(subprocess.run([sys.executable, "-c", shown], capture_output=True, text=True, check=True).stdout.split())


def test_importing_surefoot_loads_no_server_no_driver_and_nothing_optional():
    assert not loaded_by("import surefoot; surefoot.step").intersection(HEAVY)


def test_importing_surefoot_loads_the_engine_with_the_first_name_that_is_asked_for():
    """A command that only looks at a store does without it."""
    assert not {name for name in loaded_by("import surefoot") if name.startswith(("surefoot.engine", "msgspec"))}
    assert "surefoot.engine.workflow" in loaded_by("import surefoot; surefoot.step")


def test_every_public_name_is_there_as_if_it_had_been_imported():
    """Star imports, `dir` and `help` know nothing of names that are looked up late."""
    import surefoot
    from surefoot import face

    star: dict[str, object] = {}
    exec("from surefoot import *", star)
    assert set(face.__all__) <= star.keys() & set(dir(surefoot))
    assert all(getattr(surefoot, name) is star[name] is getattr(face, name) for name in face.__all__)


def test_a_name_that_does_not_exist_is_told_like_in_any_module():
    import surefoot

    with pytest.raises(AttributeError, match="module 'surefoot' has no attribute 'stepp'"):
        surefoot.stepp  # noqa: B018 - it is looked up
    with pytest.raises(ImportError, match="cannot import name 'stepp' from 'surefoot'"):
        exec("from surefoot import stepp")


def test_only_async_code_loads_asyncio():
    """Decorating a coroutine function needs it; blocking programs never do."""
    assert "asyncio" in loaded_by("import surefoot.aio")
