"""What is looked at: rules, files, and the findings that somebody chose to live with.

Configuration comes from `[tool.surefoot.lint]` of the nearest pyproject.toml. An unknown key or code is an error: a
rule that is switched off by a spelling mistake in its name would stay on, or the other way round.
"""

from __future__ import annotations

import fnmatch
import io
import os
import re
import tokenize
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path, PurePosixPath

from surefoot.errors import UsageError
from surefoot.lint.names import listed
from surefoot.lint.rules import BY_CODE

META = {
    "SF001": "bad-ignore",
    "SF002": "idle-ignore",
    "SF003": "unreadable-file",
}
"""About the file itself."""
CODES = (*META, *BY_CODE)
ALWAYS_LEFT_OUT = listed(
    ".venv venv build dist .git node_modules __pycache__ .tox .nox .mypy_cache .ruff_cache site-packages .eggs"
)
DEMO = listed(
    "test tests bench benchmark benchmarks sample samples tutorial tutorials doc docs eval evals example "
    "examples demo demos notebooks cookbook cookbooks playground quickstart"
)
TESTS = {"tests/**": ("SF1", "SF4", "SF5")}
_KEYS = ("select", "ignore", "exclude", "demo", "effects", "reads", "harmless", "per-file-ignores", "preview")
_IGNORE = re.compile(r"#\s*surefoot:\s*ignore(?:\[([^\]]*)\])?(.*)$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Selection:
    """What to look for, and where."""

    root: Path
    select: tuple[str, ...] = ("SF",)
    ignore: tuple[str, ...] = ()
    preview: bool = False
    exclude: tuple[str, ...] = ()
    demo: tuple[str, ...] = ()
    effects: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    harmless: tuple[str, ...] = ()
    per_file: tuple[tuple[str, tuple[str, ...]], ...] = tuple(TESTS.items())

    def wants(self, code: str, path: str) -> bool:
        """Whether a rule is on for a file."""
        if not _is_named(code, self.select) or _is_named(code, self.ignore):
            return False
        return not any(matches(path, pattern) and _is_named(code, codes) for pattern, codes in self.per_file)

    def is_demo(self, path: str) -> bool:
        parts = PurePosixPath(path).parts
        name = parts[-1] if parts else ""
        return (
            any(part.lower() in DEMO for part in parts[:-1])
            or name.startswith(("test_", "conftest", "demo", "example"))
            or name.removesuffix(".py").endswith(("_test", "_demo", "_example"))
            or any(matches(path, pattern) for pattern in self.demo)
        )


def _is_named(code: str, prefixes: Iterable[str]) -> bool:
    return any(code.startswith(prefix) for prefix in prefixes)


def matches(path: str, pattern: str) -> bool:
    """`vendor/**` is everything below, `*.py` a name in any folder."""
    pattern = pattern.removeprefix("./").rstrip("/")
    if fnmatch.fnmatchcase(path, pattern) or fnmatch.fnmatchcase(path, f"{pattern}/*"):
        return True
    if pattern.endswith("/**") and (path == pattern[:-3] or path.startswith(pattern[:-2])):
        return True
    if pattern.startswith("**/"):
        return fnmatch.fnmatchcase(path, pattern[3:])
    return "/" not in pattern and fnmatch.fnmatchcase(path.rpartition("/")[2], pattern)


def checked(codes: Iterable[str], where: str) -> tuple[str, ...]:
    """Codes and beginnings of codes that exist; names are understood too."""
    names = {rule.name: code for code, rule in BY_CODE.items()} | {name: code for code, name in META.items()}
    found = []
    for one in (part.strip() for code in codes for part in code.split(",")):
        if not one:
            continue
        code = names.get(one, one)
        if not any(known.startswith(code) for known in CODES):
            close = get_close_matches(one.upper(), CODES, n=1, cutoff=0.3) or get_close_matches(one, names, n=1)
            raise UsageError(
                f"{where}: there is no rule {one!r}.{f' Did you mean {close[0]}?' if close else ''} All of them: surefoot lint --rules"
            )
        found.append(code)
    return tuple(found)


def configured(start: Path) -> Selection:
    """What the nearest pyproject.toml says; its folder is what paths are relative to."""
    here = Path(os.path.abspath(start))
    for folder in (here, *here.parents):
        file = folder / "pyproject.toml"
        if not file.is_file():
            continue
        try:
            table = tomllib.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise UsageError(f"{file} cannot be read: {error}") from error
        said = table.get("tool", {}).get("surefoot", {}).get("lint")
        if said is not None:
            return _from_table(folder, said)
    return Selection(here)


def _from_table(root: Path, said: object) -> Selection:
    where = "[tool.surefoot.lint]"
    if not isinstance(said, dict):
        raise UsageError(f"{where} in pyproject.toml is no table.")
    for key in said:
        if key not in _KEYS:
            close = get_close_matches(key, _KEYS, n=1)
            raise UsageError(
                f"{where}: there is no setting {key!r}.{f' Did you mean {close[0]!r}?' if close else ''} There are: {', '.join(_KEYS)}."
            )
    lists = {key: _texts(said[key], f"{where} {key}") for key in _KEYS[:7] if key in said}
    per_file: tuple[tuple[str, tuple[str, ...]], ...] = tuple(TESTS.items())
    if "per-file-ignores" in said:
        table = said["per-file-ignores"]
        if not isinstance(table, dict):
            raise UsageError(f'{where} per-file-ignores: write {{ "tests/**" = ["SF1"] }}.')
        per_file = tuple(
            (str(pattern), checked(_texts(codes, f"{where} per-file-ignores"), f"{where} per-file-ignores"))
            for pattern, codes in table.items()
        )
    return Selection(
        root,
        select=checked(lists.get("select", ("SF",)), f"{where} select"),
        ignore=checked(lists.get("ignore", ()), f"{where} ignore"),
        preview=said.get("preview") is True,
        exclude=lists.get("exclude", ()),
        demo=lists.get("demo", ()),
        effects=lists.get("effects", ()),
        reads=lists.get("reads", ()),
        harmless=lists.get("harmless", ()),
        per_file=per_file,
    )


def _texts(value: object, where: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise UsageError(f"{where}: write a list of texts.")
    return tuple(value)


def narrowed(selection: Selection, *, select: Sequence[str], ignore: Sequence[str], preview: bool) -> Selection:
    """The same with what the command line says."""
    if select:
        selection = replace(selection, select=checked(select, "--select"))
    if ignore:
        selection = replace(selection, ignore=(*selection.ignore, *checked(ignore, "--ignore")))
    return replace(selection, preview=selection.preview or preview)


# --- files -----------------------------------------------------------------------------------------


@dataclass(slots=True)
class Files:
    """The files to look at, and the folders that could not be read."""

    paths: list[Path] = field(default_factory=list)
    closed: list[Path] = field(default_factory=list)


def files(paths: Sequence[str], selection: Selection) -> Files:
    """Python files below the paths, in order, each once. What is named itself is never left out."""
    found, seen = Files(), set[Path]()
    for name in paths:
        path = Path(name)
        if not os.path.lexists(path):
            raise UsageError(f"{name}: there is no such file or folder.")
        for one in _below(path, selection, found) if path.is_dir() else [path]:
            key = Path(os.path.abspath(one))
            if key not in seen:
                seen.add(key)
                found.paths.append(one)
    return found


def _below(folder: Path, selection: Selection, found: Files) -> Iterator[Path]:
    if _left_out(folder, selection):
        selection = replace(selection, exclude=())  # Whoever names a folder wants to see it.

    def closed(error: OSError) -> None:
        found.closed.append(Path(error.filename))

    for where, folders, names in os.walk(folder, onerror=closed):
        here = Path(where)
        folders[:] = sorted(
            name
            for name in folders
            if name not in ALWAYS_LEFT_OUT and not name.startswith(".venv") and not _left_out(here / name, selection)
        )
        for name in sorted(names):
            if name.endswith((".py", ".pyi")) and not _left_out(here / name, selection):
                yield here / name


def _left_out(path: Path, selection: Selection) -> bool:
    return bool(selection.exclude) and any(
        matches(shown(path, selection.root), pattern) for pattern in selection.exclude
    )


def shown(path: Path, root: Path) -> str:
    """A path for people and programs: relative where it can be, with `/`."""
    absolute = os.path.abspath(path)
    relative = os.path.relpath(absolute, root)
    return PurePosixPath(Path(relative if not relative.startswith("..") else path)).as_posix()


# --- ignores ---------------------------------------------------------------------------------------


@dataclass(slots=True)
class Ignore:
    """`# surefoot: ignore[SF201] reason`."""

    line: int
    column: int
    codes: tuple[str, ...]
    reason: str
    wrong: str = ""
    used: set[str] = field(default_factory=set)


def ignores(text: str) -> list[Ignore]:
    """The ignores of a file, found in its comments and not in its texts."""
    if "surefoot:" not in text:
        return []
    found: list[Ignore] = []
    with suppress(tokenize.TokenError, SyntaxError):
        found.extend(
            _ignore(said, token.start[0], token.start[1] + said.start() + 1)
            for token in tokenize.generate_tokens(io.StringIO(text).readline)
            if token.type == tokenize.COMMENT and (said := _IGNORE.search(token.string))
        )
    return found


def _ignore(said: re.Match[str], line: int, column: int) -> Ignore:
    codes = tuple(part.strip() for part in (said[1] or "").split(",") if part.strip())
    reason = said[2].strip(" -–:#")
    unknown = [one for one in codes if one not in CODES]
    wrong = ""
    if not codes:
        wrong = "an ignore names its rules: # surefoot: ignore[SF201] why"
    elif unknown:
        close = get_close_matches(unknown[0], CODES, n=1, cutoff=0.3)
        wrong = f"an ignore of an unknown rule {unknown[0]}{f': {close[0]}?' if close else ''}"
    elif not reason:
        wrong = f"an ignore without a reason: # surefoot: ignore[{', '.join(codes)}] why"
    return Ignore(line, column, codes, reason, wrong)
