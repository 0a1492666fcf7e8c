"""Code named by a person: `app:workflow`, `--app module`, and the arguments of a run.

Modules are imported because somebody named them on the command line or in SUREFOOT_APP, never because stored
data says so. The current folder is on the import path, as with `python -m`.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from surefoot.cli import failure, output
from surefoot.errors import UsageError

_KEYWORD = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)


def load_module(name: str) -> ModuleType:
    """Import a module the person named; everything that can go wrong says what to do about it."""
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)
    if not name or not all(part.isidentifier() for part in name.split(".")):
        raise UsageError(f"{name!r} is not the name of a module. Write app:workflow, without .py and without slashes.")
    from surefoot.engine.config import settings

    settings.loading = name
    try:
        return importlib.import_module(name)
    except UsageError:
        raise
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise UsageError(
                f"there is no module {name!r} in {here} or on the import path. "
                "Run the command in the folder that holds it, or add that folder to PYTHONPATH."
            ) from None
        raise _broken(name, error) from error
    except Exception as error:
        raise _broken(name, error) from error
    finally:
        settings.loading = ""


def _broken(name: str, error: Exception) -> UsageError:
    output.tell(*failure.user_traceback(error))
    told = str(error).rstrip(".")
    return UsageError(f"module {name!r} cannot be imported: {type(error).__name__}: {told}. Mend it and try again.")


def load_workflow(target: str) -> Any:
    """The workflow behind `app:workflow`."""
    module_name, colon, path = target.partition(":")
    module = load_module(module_name)
    if not colon or not path:
        raise UsageError(f"{target!r} names no workflow. Write {module_name}:WORKFLOW.{_known_in(module)}")
    found: Any = module
    for part in path.split("."):
        found = getattr(found, part, None)
        if found is None:
            raise UsageError(f"module {module_name!r} has no {path!r}.{_known_in(module)}")
    if not is_workflow(found):
        raise UsageError(f"{target} is not a workflow: decorate it with @sf.workflow.{_known_in(module)}")
    return found


def is_workflow(found: object) -> bool:
    from surefoot.engine.registry import Definition

    return isinstance(getattr(found, "definition", None), Definition)


def _known_in(module: ModuleType) -> str:
    names = sorted(name for name, found in vars(module).items() if is_workflow(found))
    return f" Workflows there: {', '.join(names)}." if names else " There is no workflow in that module."


def load_app(app: str | None) -> None:
    """Import the module that a resume needs."""
    if app is not None:
        load_module(app.partition(":")[0])


# --- arguments -------------------------------------------------------------------------------------


def parse_arguments(words: Sequence[str]) -> tuple[list[Any], dict[str, Any]]:
    """An argument is JSON if it parses as JSON, else a string; keywords are written name=value."""
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for word in words:
        parsed, value = parse_word(word)
        keyword = None if parsed else _KEYWORD.fullmatch(word)
        if keyword is None:
            if kwargs:
                raise UsageError(f"argument {word!r} stands after name=value: put it before, or give it a name.")
            args.append(value)
        elif keyword[1] in kwargs:
            raise UsageError(f"argument {keyword[1]} is given twice.")
        else:
            kwargs[keyword[1]] = parse_word(keyword[2])[1]
    return args, kwargs


def parse_word(word: str) -> tuple[bool, Any]:
    """Whether the word is JSON, and what it means."""
    try:
        return True, json.loads(word, parse_constant=_no_constant)
    except json.JSONDecodeError:
        return False, word
    except _NotJson:
        return False, word
    except (RecursionError, ValueError) as error:
        raise UsageError(f"argument {word[:40]!r}… is JSON that cannot be read: {error}") from None


class _NotJson(Exception):
    """NaN and Infinity are Python's, not JSON's: as arguments they are words like any other."""


def _no_constant(name: str) -> Any:
    raise _NotJson(name)


def require_fitting(workflow: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
    """Refuse arguments the workflow does not take, before a run exists that could only fail."""
    import inspect

    signature = inspect.signature(workflow.definition.fn)
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        raise UsageError(
            f"{workflow.name} does not take these arguments: {error}. It is {workflow.name}{signature}."
        ) from None
