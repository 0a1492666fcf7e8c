"""From files to findings: read, look, leave out what was chosen to be lived with. Many files in several processes.

The order of the findings follows from the files alone, whatever the number of processes. A file that cannot be read
or parsed is a finding, never an error: the others are looked at.
"""

from __future__ import annotations

import gc
import os
import re
import tokenize
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from surefoot.lint.finding import Finding
from surefoot.lint.flow import Look
from surefoot.lint.module import Module, Settings
from surefoot.lint.rule import Hit, Rule
from surefoot.lint.rules import ALL
from surefoot.lint.selection import Ignore, Selection, ignores, shown

TOGETHER = 200
"""More files than this are shared among processes."""
_CHUNK = 40
_OWN = re.compile(
    r"checkpoint|ckpt|state|progress|snapshot|cursor|watermark|resume|done|complete|finish|processed|sent|paid|ship|deliver|handled"
    r"|success|charged|publish|upload|refund|mtime|ctime|synchronous|fsync|durab|retry|retri|backoff|attempt|tries|uuid|thread_id"
    r"|idempot|append(?:fsync|only)|sync=|journal_mode|UNLOGGED|ack\(|touch\(|[Tt]oken|dedup",
    re.IGNORECASE,
)
"""What a file must have for a rule of SF1. The others are only parsed."""


@dataclass(slots=True)
class Seen:
    """What was seen in one file, or in many."""

    findings: list[Finding] = field(default_factory=list)
    frames: dict[tuple[str, int], tuple[tuple[int, str], ...]] = field(default_factory=dict)
    """The lines to show with a finding, by path and line."""
    files: int = 0
    unreadable: int = 0
    lines: int = 0

    def add(self, other: Seen) -> None:
        self.findings += other.findings
        self.frames |= other.frames
        self.files += other.files
        self.unreadable += other.unreadable
        self.lines += other.lines


def look_at(paths: Sequence[Path], selection: Selection, *, processes: int | None = None) -> Seen:
    """Look at all files; the findings in the order of the files and of their lines."""
    wanted = processes if processes is not None else (min(os.cpu_count() or 1, 8) if len(paths) > TOGETHER else 1)
    seen = Seen()
    chunks = [paths[at : at + _CHUNK] for at in range(0, len(paths), _CHUNK)]
    if wanted < 2 or len(chunks) < 2:
        for chunk in chunks:
            seen.add(_chunk(chunk, selection))
        return seen
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    with ProcessPoolExecutor(min(wanted, len(chunks)), mp_context=get_context("spawn")) as pool:
        for part in pool.map(_chunk, chunks, [selection] * len(chunks)):
            seen.add(part)
    return seen


def _chunk(paths: Sequence[Path], selection: Selection) -> Seen:
    collecting = gc.isenabled()
    gc.disable()  # A tree of a file is no garbage while it is looked at; searching it takes a fifth of the time.
    seen = Seen()
    try:
        for path in paths:
            seen.add(look_at_file(path, selection))
            gc.collect() if seen.files % 20 == 0 else None
    finally:
        if collecting:
            gc.enable()
    return seen


def look_at_file(path: Path, selection: Selection) -> Seen:
    name = shown(path, selection.root)
    try:
        text = _read(path)
    except (OSError, UnicodeError, SyntaxError, LookupError) as error:
        return _unreadable(name, 1, 1, f"this file cannot be read: {_why(error)}", selection)
    return look_at_text(name, text, selection)


def _read(path: Path) -> str:
    """The text as Python reads it: in the encoding that the file names."""
    with tokenize.open(path) as file:
        return file.read()


def _why(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error).partition("\n")[0]


def _unreadable(name: str, line: int, column: int, message: str, selection: Selection) -> Seen:
    found = [Finding(name, line, column, "SF003", line, message)] if selection.wants("SF003", name) else []
    return Seen(found, {}, 1, 1)


def look_at_text(name: str, text: str, selection: Selection) -> Seen:
    """The findings of one file."""
    seen = Seen(files=1, lines=text.count("\n") + 1)
    settings = Settings(selection.effects, selection.reads, selection.harmless, selection.is_demo(name))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # SyntaxWarning of somebody else's code
            if not _may_find(text):
                compile(text, name, "exec", 0x400, dont_inherit=True)
                found: list[Finding] = []
                lines: list[str] = []
            else:
                module = Module(name, text, settings=settings)
                lines = module.lines
                found = list(_found(module, selection))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", 1) or 1
        why = (
            error.msg
            if isinstance(error, SyntaxError)
            else "it is nested too deep"
            if isinstance(error, RecursionError | MemoryError)
            else str(error)
        )
        other = _unreadable(
            name, line, getattr(error, "offset", 1) or 1, f"this file cannot be parsed: {why}", selection
        )
        other.lines = seen.lines
        return other
    said = ignores(text)
    seen.findings = sorted([*_without_ignored(found, said, name, selection)])
    for one in seen.findings:
        seen.frames[(name, one.line)] = _frame(lines or text.split("\n"), one)
    return seen


def _may_find(text: str) -> bool:
    """Whether any rule has a word in a file. The others are only parsed."""
    return (
        "surefoot" in text
        or "langgraph" in text
        or "temporalio" in text
        or "dbos" in text
        or _OWN.search(text) is not None
        or ("except" in text and ("while " in text or "range(" in text))
    )


def _found(module: Module, selection: Selection) -> Iterator[Finding]:
    look = Look(module)
    seen: set[tuple[str, int, int]] = set()
    for rule in ALL:
        if not selection.wants(rule.code, module.path) or (
            rule.words and not any(word in module.text for word in rule.words)
        ):
            continue
        for hit in rule.find(look):
            if hit.preview and not selection.preview:
                continue
            one = _finding(module, rule, hit)
            key = (one.code, one.line, one.column)
            if key not in seen:
                seen.add(key)
                yield one


def _finding(module: Module, rule: Rule, hit: Hit) -> Finding:
    node = hit.node
    line = getattr(node, "lineno", 1)
    about = " ".join(hit.about.split())
    first = getattr(module.statement(node), "lineno", line) if node in module.parents else line
    return Finding(
        path=module.path,
        line=line,
        column=len(module.lines[line - 1].encode()[: getattr(node, "col_offset", 0)].decode(errors="ignore")) + 1,
        code=rule.code,
        end_line=getattr(node, "end_lineno", line) or line,
        message=rule.message(about if len(about) <= 60 else about[:57] + "..."),
        via=hit.via,
        preview=hit.preview,
        first_line=first,
    )


def _without_ignored(
    found: Iterable[Finding], said: list[Ignore], name: str, selection: Selection
) -> Iterator[Finding]:
    for one in found:
        ignore = next(
            (
                i
                for i in said
                if i.line in (one.line, one.first_line, one.end_line) and one.code in i.codes and not i.wrong
            ),
            None,
        )
        if ignore is None:
            yield one
        else:
            ignore.used.add(one.code)
    for ignore in said:
        if ignore.wrong:
            if selection.wants("SF001", name):
                yield Finding(name, ignore.line, ignore.column, "SF001", ignore.line, ignore.wrong)
            continue
        idle = [code for code in ignore.codes if code not in ignore.used and selection.wants(code, name)]
        if idle and selection.wants("SF002", name):
            yield Finding(
                name,
                ignore.line,
                ignore.column,
                "SF002",
                ignore.line,
                f"this ignore of {', '.join(idle)} ignores nothing: take it out",
            )


def _frame(lines: list[str], one: Finding) -> tuple[tuple[int, str], ...]:
    """The line of a finding and a little around it."""
    begin, end = max(1, one.line - 2), min(len(lines), max(one.line, min(one.end_line, one.line + 2)))
    return tuple((number, lines[number - 1]) for number in range(begin, end + 1))


def closed_folder(folder: Path, selection: Selection) -> Seen:
    """A folder that may not be read: what is in it was not looked at, and that is said."""
    seen = _unreadable(
        shown(folder, selection.root), 1, 1, "this folder cannot be read: nothing in it was looked at", selection
    )
    seen.files = 0
    return seen
