"""Which workflow a run belongs to: its name, and the function that had that name when the run was created.

Two modules may each have a workflow called `process`; driving one's run with the other's code would be wrong, silently.
So `module:qualname` is recorded beside the name, and another function of that name is not mistaken for it, unless the
code declares it: `name=` on both, or `was=` on the present one.

A script that is started by hand is `__main__` to Python; here it counts as the module that its file would be when it is
imported, so that `python app.py` and `surefoot worker app` mean the same.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from msgspec import Struct

from surefoot.core.cure import Advice, Cures, Edit
from surefoot.core.entry import RunCreated

_STARTED: Final = ("__main__", "__mp_main__")
"""Names of the file that was started; the second is used in helper processes."""


class Identity(Struct, frozen=True):
    """A workflow as defined in the code at hand."""

    name: str
    origin: str = ""
    """`module:qualname`; empty: not known (a notebook, generated code)."""
    named: bool = False
    """Whether the name was given with `name=`."""
    was: tuple[str, ...] = ()
    """Its former names: `old`, or `old_module:old`."""

    @property
    def names(self) -> tuple[str, ...]:
        """Every name under which its runs may be on record."""
        called = (old.rpartition(":") for old in self.was)
        return tuple(
            dict.fromkeys(
                [self.name, *(each for _, colon, old in called for each in (old, _last(old) if colon else old))]
            )
        )

    def owns(self, created: RunCreated) -> bool:
        """Whether that run belongs to this workflow."""
        return self._is_same(created) or any(self._was(old, created) for old in self.was)

    def _is_same(self, created: RunCreated) -> bool:
        if created.workflow != self.name:
            return False
        if not created.module or not self.origin or _place(created.module) == _place(self.origin):
            return True
        if _module(created.module) == _module(self.origin):
            return created.named or self.named
        return created.named and self.named

    def _was(self, old: str, created: RunCreated) -> bool:
        module, colon, name = old.rpartition(":")
        recorded, _, qualname = created.module.partition(":")
        if name not in (created.workflow, qualname):
            return False
        if not recorded or (created.named and not colon):
            return True
        return recorded == (module if colon else _module(self.origin))


def origin_of(fn: Callable[..., Any]) -> str:
    """`module:qualname` of a function; empty if its module's name would differ in another process."""
    module = fn.__module__
    if module in _STARTED:
        module = _import_name(sys.modules.get(module))
    return f"{module}:{fn.__qualname__}" if module else ""


def loaded(module: str) -> list[ModuleType]:
    """The modules that have this name in `origin_of`: the one that was imported, and the file that was started."""
    started = [sys.modules[name] for name in _STARTED if name in sys.modules]
    imported = sys.modules.get(module)
    return [*(one for one in started if _import_name(one) == module), *([] if imported is None else [imported])]


def _import_name(started: Any) -> str:
    """The name of the started file if it were imported."""
    spec = getattr(started, "__spec__", None)
    if spec is not None and spec.name not in _STARTED:
        return str(spec.name)  # python -m package.module
    file = getattr(started, "__file__", None)
    if not isinstance(file, str):
        return ""
    path = Path(file).resolve()
    parts = [path.stem]
    folder = path.parent
    while (folder / "__init__.py").is_file():
        parts.insert(0, folder.name)
        folder = folder.parent
    return ".".join(parts) if all(part.isidentifier() for part in parts) else path.stem


def _last(qualname: str) -> str:
    """The name of a function, without its class."""
    return qualname.rpartition(".")[2]


def _place(origin: str) -> tuple[str, str]:
    """For a function inside another one, only its own name counts: the enclosing one makes it, and may be any."""
    module, _, qualname = origin.partition(":")
    return module, qualname.rpartition("<locals>.")[2]


def _module(origin: str) -> str:
    return origin.partition(":")[0]


def moved(created: RunCreated, mine: Identity) -> Cures:
    """What helps if a run of that name is recorded for another function."""
    where = created.module or created.workflow
    return (
        Edit("the same, moved or renamed?", f'@sf.workflow(was="{where}")', f"on {mine.name}"),
        Advice("another one?", "give each a name= of its own, and this task another run id"),
    )
