"""The API reference, written from the code: `python -m docsite.reference` writes docs/reference.md.

Every public name of `surefoot` is in one group, with its signature, its docstring, and an example in which it is used. The
examples are in docsite/reference/; they run with every other block of the docs. A name without a group is an error.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import surefoot
from surefoot import errors, face

ROOT = Path(__file__).resolve().parent.parent
GROUPS = Path(__file__).parent / "reference"
PAGE = ROOT / "docs" / "reference.md"
WIDTH = 100
GIVEN = {"Run", "RecordedCall", "JournalEntry", "ResumePlan", "Generation", "MapResult", "Decision"}
"""Classes whose objects one gets and never makes: how they are made is nobody's business."""
TOP = """# Reference

Every public name. This page is written from the code (`make reference`); its examples run in the tests.
`import surefoot as sf` is for blocking code. `import surefoot.aio as sf` is for `async` code: the same names, awaited where they wait.
Ready-made effects are in `surefoot.effects` ([effects](effects.md)), witnesses in `surefoot.witness` ([the world](world.md)), the kit
for tests in `surefoot.testing` ([testing](testing.md)), the commands in [operations](operations.md).
"""


class Incomplete(Exception):
    """The groups and the public names do not agree."""


@dataclass(frozen=True)
class Group:
    title: str
    names: tuple[str, ...]
    text: str


def groups() -> list[Group]:
    return [_group(path.read_text()) for path in sorted(GROUPS.glob("*.md"))]


def _group(text: str) -> Group:
    title, rest = text.removeprefix("## ").split("\n\nnames: ", 1)
    names, body = rest.split("\n\n", 1)
    return Group(title, tuple(names.split()), body.strip())


def public() -> set[str]:
    """Names that `surefoot` passes on, without its errors: these have a table of their own."""
    return set(face.__all__) - set(errors.__all__) | {"errors"}


def page() -> str:
    found = groups()
    _require_complete(found)
    return TOP + "".join(f"\n{part}\n" for group in found for part in _rendered(group))


def _require_complete(found: list[Group]) -> None:
    named = [name for group in found for name in group.names]
    if missing := sorted(public() ^ set(named)):
        raise Incomplete(f"in no group, or not public: {', '.join(missing)}")
    if unused := sorted(
        f"{group.title}: {name}" for group in found for name in group.names if not _is_used(name, group)
    ):
        raise Incomplete(f"not in the example of their group: {', '.join(unused)}")


def _is_used(name: str, group: Group) -> bool:
    return name == "errors" or bool(
        re.search(rf"\b{name}\b", "".join(re.findall(r"^```python.*?^```$", group.text, re.DOTALL | re.MULTILINE)))
    )


def _rendered(group: Group) -> Iterator[str]:
    yield f"## {group.title}\n\n{group.text}"
    for name in group.names:
        yield _errors() if name == "errors" else _entry(name, getattr(surefoot, name))


def _entry(name: str, thing: Any) -> str:
    words = _prose(inspect.getdoc(thing) or "")
    parts = [f"### sf.{name}", f"```text\n{signature(f'sf.{name}', thing)}\n```", words, _members(thing)]
    return "\n\n".join(part for part in parts if part)


def _members(thing: Any) -> str:
    """What an object of a class can do, a line each."""
    if not inspect.isclass(thing) or getattr(thing, "_is_protocol", False):
        return ""
    found = [(name, member) for name, member in vars(thing).items() if not name.startswith("_")]
    rows = [f"| `{_called(name, member)}` | {_sentence(member)} |" for name, member in found if inspect.getdoc(member)]
    if not rows or issubclass(thing, tuple | str):
        return ""
    return "| | |\n|---|---|\n" + "\n".join(rows)


def _called(name: str, member: Any) -> str:
    if not inspect.isfunction(member):
        return name
    return f"{name}({', '.join(list(_parameters(member))[1:])})".replace("|", "\\|")


def _sentence(member: Any) -> str:
    return " ".join((inspect.getdoc(member) or "").split("\n\n")[0].split()).replace("|", "\\|")


def signature(name: str, thing: Any) -> str:
    """As one would write the call; long ones have a line for each parameter."""
    if inspect.ismodule(thing) or getattr(thing, "_is_protocol", False) or thing.__name__ in GIVEN:
        return name
    parameters = list(_parameters(thing))
    line = f"{name}({', '.join(parameters)})"
    if len(line) <= WIDTH:
        return line
    return f"{name}(\n" + "".join(f"    {one},\n" for one in parameters) + ")"


def _parameters(thing: Any) -> Iterator[str]:
    """With the marks `/` and `*` where they stand."""
    marked = False
    found = list(inspect.signature(thing).parameters.values())
    for at, one in enumerate(found):
        if one.kind is one.KEYWORD_ONLY and not marked:
            marked = True
            yield "*"
        marked |= one.kind is one.VAR_POSITIONAL
        yield _written(one)
        if one.kind is one.POSITIONAL_ONLY and (at + 1 == len(found) or found[at + 1].kind is not one.POSITIONAL_ONLY):
            yield "/"


def _written(one: inspect.Parameter) -> str:
    """As in the code: annotations without module paths, defaults as a person writes them."""
    stars = {one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "")
    kind = "" if one.annotation is one.empty else inspect.formatannotation(one.annotation).strip("'")
    typed = f"{stars}{one.name}: {re.sub(r'(?:[a-z_]+[.])+(?=[A-Z])', '', kind)}" if kind else stars + one.name
    if one.default is one.empty:
        return typed
    default = json.dumps(one.default) if isinstance(one.default, str) else repr(one.default)
    return f"{typed} = {default}" if kind else f"{typed}={default}"


def _prose(docstring: str) -> str:
    """A docstring is plain Markdown here but for its indented examples."""
    return re.sub(
        r"(?:^(?: {4}.*)?\n)*^ {4}.*$",
        lambda block: f"```text\n{inspect.cleandoc(block[0])}\n```",
        docstring,
        flags=re.MULTILINE,
    )


def _errors() -> str:
    rows = [
        f"| [`{name}`](errors.md#{name.lower()}) | {kind.exit_code} | {_first_line(kind)} |"
        for name, kind in sorted(
            ((name, getattr(errors, name)) for name in errors.__all__), key=lambda one: (one[1].exit_code, one[0])
        )
    ]
    return "| error | exit code | what it says |\n|---|---|---|\n" + "\n".join(rows)


def _first_line(kind: type) -> str:
    return (inspect.getdoc(kind) or "").split("\n")[0].replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page())
    sys.stdout.write(f"wrote {PAGE.relative_to(ROOT)}\n")
