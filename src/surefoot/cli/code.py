"""Code named by a person: `app:workflow`, `--app module`, and the arguments of a run.

Modules are imported because somebody named them on the command line or in SUREFOOT_APP, never because stored
data says so. The current folder is on the import path, as with `python -m`.
"""

from __future__ import annotations

import datetime as dt
import importlib
import inspect
import json
import os
import re
import sys
import typing
from collections.abc import Sequence
from decimal import Decimal
from functools import partial
from pathlib import Path
from types import ModuleType, NoneType, UnionType
from typing import Any, Final, Union
from uuid import UUID

import msgspec

from surefoot.cli import failure, output
from surefoot.errors import UsageError

_NUMBERS: Final = (int, float, bool)
_TEXTS: Final = (str, Path, Decimal, UUID, dt.date, dt.datetime, dt.time, dt.timedelta)
_KEYWORD = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)


def load_module(name: str) -> ModuleType:
    """Import a module the person named; everything that can go wrong says what to do about it."""
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)
    if not name or not all(part.isidentifier() for part in name.split(".")):
        raise UsageError(
            f"{name!r} is not the name of a module. Write app:workflow, without .py and without slashes.{_meant(name)}"
        )
    from surefoot.engine.process.config import settings

    settings.loading = name
    try:
        return importlib.import_module(name)
    except UsageError:
        raise
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise UsageError(
                f"there is no module {name!r} in {here} or on the import path. "
                f"Run the command in the folder that holds it, or add that folder to PYTHONPATH.{_meant(name)}"
            ) from None
        raise _broken(name, error) from error
    except SystemExit as error:
        output.tell(*failure.user_traceback(error))
        raise UsageError(
            f"module {name!r} cannot be imported: it ends the program, with sys.exit({error.code!r}). "
            'Put what is only for a start by hand under `if __name__ == "__main__":`.'
        ) from error
    except Exception as error:
        raise _broken(name, error) from error
    finally:
        settings.loading = ""


def _meant(name: str) -> str:
    """A file's name is what most people try first."""
    module = name.removeprefix("./").removesuffix(".py").replace("/", ".")
    found = module != name and all(part.isidentifier() for part in module.split("."))
    return f" Did you mean {module}?" if found else ""


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
    from surefoot.engine.declare.registry import Definition

    return isinstance(getattr(found, "definition", None), Definition)


def _known_in(module: ModuleType) -> str:
    names = sorted(name for name, found in vars(module).items() if is_workflow(found))
    return f" Workflows there: {', '.join(names)}." if names else " There is no workflow in that module."


def load_app(app: str | None) -> None:
    """Import the module that a resume needs."""
    if app is not None:
        load_module(app.partition(":")[0])


# --- arguments -------------------------------------------------------------------------------------


def arguments(workflow: Any, words: Sequence[str]) -> tuple[list[Any], dict[str, Any]]:
    """What the workflow is called with; refused, if it would not take it, before a run exists that could only fail.

    An argument is JSON if it parses as JSON, else a string; keywords are written name=value. Where the parameter says
    that it is a number, a date and the like, the word is read as one.
    """
    args, kwargs = _told_apart(words)
    signature = inspect.signature(workflow.definition.fn)
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        raise UsageError(
            f"{workflow.name} does not take these arguments: {error}. It is {workflow.name}{signature}."
        ) from None
    hints = _hints(workflow.definition.fn)
    for name, given in bound.arguments.items():
        as_meant = partial(_as_meant, workflow.name, name, hints.get(name))
        match signature.parameters[name].kind:
            case inspect.Parameter.VAR_POSITIONAL:
                bound.arguments[name] = tuple(map(as_meant, given))
            case inspect.Parameter.VAR_KEYWORD:
                bound.arguments[name] = {key: as_meant(word) for key, word in given.items()}
            case _:
                bound.arguments[name] = as_meant(given)
    return list(bound.args), bound.kwargs


def _told_apart(words: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    args: list[str] = []
    kwargs: dict[str, str] = {}
    for word in words:
        keyword = None if parse_word(word)[0] else _KEYWORD.fullmatch(word)
        if keyword is None:
            if kwargs:
                raise UsageError(f"argument {word!r} stands after name=value: put it before, or give it a name.")
            args.append(word)
        elif keyword[1] in kwargs:
            raise UsageError(f"argument {keyword[1]} is given twice.")
        else:
            kwargs[keyword[1]] = keyword[2]
    return args, kwargs


def _hints(fn: Any) -> dict[str, Any]:
    try:
        return typing.get_type_hints(fn)
    except Exception:  # noqa: BLE001 - annotations may name anything, also what is not there at run time
        return {}


def _as_meant(workflow: str, name: str, hint: Any, word: str) -> Any:
    is_json, value = parse_word(word)
    options = typing.get_args(hint) if isinstance(hint, UnionType) or typing.get_origin(hint) is Union else (hint,)
    if value is None and is_json and NoneType in options:
        return None
    wanted = [option for option in options if option is not NoneType]
    if len(wanted) != 1 or wanted[0] not in (*_NUMBERS, *_TEXTS):
        return value  # No type, or one that has no words of its own: plain data, as it was written.
    (plain,) = wanted
    # What is written like a number may be a name, and the digits of a Decimal count.
    given = value if plain in _NUMBERS or isinstance(value, str) else word
    try:
        return Path(given) if plain is Path else msgspec.convert(given, plain, strict=False)
    except msgspec.ValidationError as error:
        raise UsageError(f"{workflow} does not take {word!r} as {name}, which is {plain.__name__}: {error}.") from None


def parse_word(word: str) -> tuple[bool, Any]:
    """Whether the word is JSON, and what it means."""
    try:
        return True, json.loads(word, parse_constant=_no_constant)
    except (json.JSONDecodeError, _NotJson):
        return False, word
    except (RecursionError, ValueError) as error:
        raise UsageError(f"argument {word[:40]!r}… is JSON that cannot be read: {error}") from None


class _NotJson(Exception):
    """NaN and Infinity are Python's, not JSON's: as arguments they are words like any other."""


def _no_constant(name: str) -> Any:
    raise _NotJson(name)
