"""Programs that are edited while their run is unfinished: both are texts, and a text says all there is to say.

`pay(1),look(2),put(3,2),scope(a,[hold(4)])` is a program: every call has a number of its own, by which the world tells
what was done, whatever the call is named or wherever it is moved; `put(3,2)` is told what `look(2)` gave. `async:` in
front makes it async code. `rename:pay>bill+box:3` are edits of it; with `!` behind, an edit comes with the declaration
that says what it is (`was=`, `noted=`, `sf.removed`, …). From both a module is written, as a person would write it.

Nothing in here knows the engine: what an edit may lead to is said by what it does to the text.
"""

from __future__ import annotations

import ast
import itertools
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final

ASYNC: Final = "async:"
EFFECTS: Final = {"pay": "once", "put": "keyed", "copy": "probed", "hold": "once"}
"""What a second execution of it would be: `once` is asked about after a crash, `keyed` is retried, `probed` looks."""
STEPS: Final = ("look", "read")
FORMS: Final = ("scope", "saga", "failing", "gather", "mapped", "child")
BRANCHING: Final = ("gather", "mapped")
FIRST_NEW: Final = 50
"""Calls that an edit puts in are numbered from here on."""
RERUN_LIMIT: Final = 10
"""More steps than this do not run again unasked."""
WORKFLOWS: Final = "# --- workflows"
"""Between the calls of a module and its workflows."""


class Unfit(Exception):
    """The edit does not fit the program."""


@dataclass(frozen=True)
class Node:
    """A call, or a form that holds blocks of them."""

    name: str
    n: int = 0
    about: int = 0
    """The number of the step whose answer it is told."""
    words: str = "a"
    label: str = ""
    was: str | None = None
    """What a scope was called, or how the items of a map were; empty: its calls were made around it."""
    blocks: tuple[Block, ...] = ()

    def __str__(self) -> str:
        inside = ",".join(f"[{text(block)}]" for block in self.blocks)
        if self.name == "scope":
            return f"scope({self.label},{inside})"
        if self.blocks:
            return f"{self.name}({inside})"
        return f"{self.name}({self.n}{f',{self.about}' if self.about else ''})"


Block = tuple[Node, ...]


@dataclass(frozen=True)
class Definition:
    """How a call is defined now."""

    name: str
    body: str
    """Its name in the old program: this is what it does."""
    kind: str
    options: tuple[str, ...] = ()
    currency: str = "EUR"
    parameter: str = "words"
    more: str = ""
    """A parameter that was added."""


@dataclass(frozen=True)
class Program:
    block: Block
    is_async: bool = False
    definitions: tuple[Definition, ...] = ()
    mode: str = "fast"
    """The value of the enum's one member."""
    removed: tuple[str, ...] = ()
    module: str = "app"
    """Where its calls are defined."""
    rekeyed: bool = False
    family: str = "part"
    """What the ids of children begin with."""
    comment: str = ""

    def definition(self, name: str) -> Definition:
        return next(one for one in self.definitions if one.name == name)

    def calls(self) -> list[Node]:
        return [node for node, _ in walked(self.block) if node.n]

    def effects(self) -> list[Node]:
        return [node for node in self.calls() if self.definition(node.name).kind == "effect"]

    def steps(self) -> list[Node]:
        return [node for node in self.calls() if self.definition(node.name).kind == "step"]


# --- as text ---------------------------------------------------------------------------------------------------------


def text(block: Block) -> str:
    return ",".join(map(str, block))


def parsed(program: str) -> Program:
    body = program.removeprefix(ASYNC)
    block = _block(ast.parse(f"[{body}]", mode="eval").body)
    names = dict.fromkeys(node.name for node, _ in walked(block) if node.n)
    made = tuple(Definition(name, name, "effect" if name in EFFECTS else "step") for name in names)
    return Program(block, body != program, made)


def _block(node: ast.expr) -> Block:
    if not isinstance(node, ast.List):
        raise TypeError(f"a block is written in brackets: {ast.unparse(node)}")
    return tuple(map(_node, node.elts))


def _node(node: ast.expr) -> Node:
    match node:
        case ast.Call(ast.Name("scope"), [ast.Name(label), block]):
            return Node("scope", label=label, blocks=(_block(block),))
        case ast.Call(ast.Name(name), blocks) if name in FORMS:
            return Node(name, blocks=tuple(map(_block, blocks)))
        case ast.Call(ast.Name(name), [ast.Constant(int(n)), *about]):
            return Node(name, n, _number(about[0]) if about else 0)
        case _:
            raise TypeError(f"no command: {ast.unparse(node)}")


def _number(node: ast.expr) -> int:
    if not isinstance(node, ast.Constant) or not isinstance(node.value, int):
        raise TypeError(f"no number: {ast.unparse(node)}")
    return node.value


Way = tuple[str, ...]
"""From the outside in: what a call is in. Branches and scopes have names, sagas do not count."""


def walked(block: Block, way: Way = (), path: str = "") -> Iterator[tuple[Node, Way]]:
    """Every node in the order of the text, forms before what they hold, with the way that leads to it."""
    for index, node in enumerate(block):
        yield node, way
        for number, inside in enumerate(node.blocks):
            yield from walked(
                inside, _inside(node, number, way, f"{path}{index}.{number}."), f"{path}{index}.{number}."
            )


def _inside(node: Node, number: int, way: Way, place: str) -> Way:
    match node.name:
        case "scope":
            return (*way, f"scope {node.label}")
        case "mapped":
            return (*way, f"key {_first(node.blocks[number])}")
        case "gather":
            return (*way, f"gather {_first(node.blocks[0])} {number}")
        case "child":
            return (*way, f"child {_first(node.blocks[number])}")
        case _:
            return way


def _first(block: Block) -> int:
    """By which branches and children are known: the lowest number stays the lowest, whatever is put in or swapped."""
    return min((node.n for node, _ in walked(block) if node.n), default=0)


def ways(program: Program) -> dict[int, Way]:
    return {node.n: way for node, way in walked(program.block) if node.n}


def on_one_line(way: Way, other: Way) -> bool:
    """Whether one follows the other: none of them is in a branch that the other is not in. Scopes do not matter."""
    return way[: len(other)] == other or other[: len(way)] == way


# --- as a module -----------------------------------------------------------------------------------------------------


def source(program: Program) -> str:
    """The module, as a person would write it."""
    return _Author(program).module()


_WORLD: Final = {"effect": "acted", "step": "stepped", "plain": "touched"}
"""What the body of a call does."""


class _Author:
    def __init__(self, program: Program) -> None:
        self._program = program
        self._verbs = "asf" if program.is_async else "sf"
        self._async = "async " if program.is_async else ""
        self._await = "await " if program.is_async else ""
        self._numbers = itertools.count(1)
        self._children: list[str] = []

    def module(self) -> str:
        program = self._program
        lines = ["import enum, surefoot as sf, surefoot.aio as asf", ""]
        lines += ["class Mode(enum.Enum):", f"    FAST = {program.mode!r}", ""]
        lines += [f"sf.removed({name!r})" for name in program.removed]
        for definition in program.definitions:
            lines += self._defined(definition)
        body = ["", f"@{self._verbs}.workflow", f"{self._async}def main():"]
        body += [f"    # {program.comment}"] if program.comment else []
        body += self._block(program.block, "    ")
        return "\n".join([*lines, WORKFLOWS, *self._children, *body, ""])

    def _defined(self, it: Definition) -> list[str]:
        words = it.parameter
        kind = EFFECTS.get(it.body, "once")
        options = [*it.options, *(["on_crash='retry'"] if kind == "keyed" and it.kind == "effect" else [])]
        decorated = [f"@{self._verbs}.{it.kind}({', '.join(options)})"] if it.kind != "plain" else []
        mode = ", mode: Mode" if it.body == "put" else ""
        facts = f"words={words}, about=about, currency=currency{', mode=mode.value' if mode else ''}"
        lines = [
            *decorated,
            f"{self._async}def {it.name}(n, {words}, about{mode}, currency={it.currency!r}{it.more}):",
            f"    return {_WORLD[it.kind]}({it.body!r}, n, {facts})",
            "",
        ]
        if it.kind == "effect" and kind == "probed":
            lines += [
                f"@{it.name}.check",
                f"def {it.name}_looks(n, {words}, about, currency={it.currency!r}{it.more}):",
                "    return looked(n)",
                "",
            ]
        if it.kind == "effect" and it.body == "hold":
            lines += [
                f"@{it.name}.undo(on_crash='retry')",
                f"{self._async}def {it.name}_back(n, {words}, about, currency={it.currency!r}{it.more}, *, result):",
                f"    return undone({it.body!r}, n, words={words}, about=about, currency=currency)",
                "",
            ]
        return lines

    def _block(self, block: Block, margin: str) -> list[str]:
        lines, answers = [f"{margin}got = []"], "got"
        for node in block:
            lines += [margin + line for line in self._one(node)]
        return [*lines, f"{margin}return {answers}"]

    def _inline(self, block: Block) -> list[str]:
        """Inside of a `with`: what it gives goes into the same list."""
        return ["    " + line for node in block for line in self._one(node)] or ["    pass"]

    def _one(self, node: Node) -> list[str]:
        match node.name:
            case "scope":
                was = f", was={node.was!r}" if node.was is not None else ""
                return [f"with sf.scope({node.label!r}{was}):", *self._inline(node.blocks[0])]
            case "saga":
                return [f"{self._async}with {self._verbs}.saga():", *self._inline(node.blocks[0])]
            case "failing":
                return [
                    "try:",
                    f"    {self._async}with {self._verbs}.saga():",
                    *("    " + line for line in self._inline(node.blocks[0])),
                    "        raise ValueError('sold out')",
                    "except ValueError:",
                    "    got.append('sold out')",
                ]
            case "gather" | "mapped":
                return self._branches(node)
            case "child":
                return self._child(node)
            case _:
                return self._call(node)

    def _call(self, node: Node) -> list[str]:
        about = f"v{node.about}" if node.about else "None"
        definition = self._program.definition(node.name)
        mode = ", Mode.FAST" if definition.body == "put" else ""
        asked = f"{self._await}{node.name}({node.n}, {node.words!r}, {about}{mode})"
        return [
            f"asks({node.n}, {node.words!r}, {about})",
            f"v{node.n} = saw({node.n}, {node.words!r}, {about}, {asked})",
            f"got.append(v{node.n})",
        ]

    def _branches(self, node: Node) -> list[str]:
        lines, names = [], []
        for block in node.blocks:
            names.append(f"branch{next(self._numbers)}")
            lines += [f"{self._async}def {names[-1]}():", *self._block(block, "    ")]
        if node.name == "gather":
            was = f", was={node.was!r}" if node.was is not None else ""
            todo = ", ".join(f"{name}()" if self._program.is_async else name for name in names)
            return [*lines, f"got.append({self._await}{self._verbs}.gather({todo}{was}))"]
        keys = ", ".join(f"{name}: {_first(block)}" for name, block in zip(names, node.blocks, strict=True))
        key = "lambda one: f'k{keys[one]}'" if self._program.rekeyed else "lambda one: str(keys[one])"
        was = {None: "", "": ", was=''"}.get(node.was, ", was=lambda one: str(keys[one])")
        mapped = f"{self._verbs}.map(lambda one: one(), [{', '.join(names)}], key={key}{was})"
        return [*lines, f"keys = {{{keys}}}", f"got.append({self._await}{mapped})"]

    def _child(self, node: Node) -> list[str]:
        name = f"part{_first(node.blocks[0])}"
        written = ["", f"@{self._verbs}.workflow", f"{self._async}def {name}():"]
        inside = self._block(node.blocks[0], "    ")
        self._children += [*written, *inside]
        run = f"r.{self._program.family}{_first(node.blocks[0])}"
        return [f"got.append({self._await}{self._verbs}.child({name}, {run!r}))"]


# --- written at random -----------------------------------------------------------------------------------------------


def written(seed: int) -> str:
    """The program of that number; every third is async."""
    luck = random.Random(f"edited {seed}")
    writer = _Writer(luck)
    program = writer.block(3, luck.randint(2, 6), ())
    if not any(name in program for name in EFFECTS):
        program += f",{luck.choice(sorted(EFFECTS))}({next(writer.numbers)})"
    return f"{ASYNC}{program}" if seed % 3 == 2 else program


class _Writer:
    def __init__(self, luck: random.Random) -> None:
        self._luck = luck
        self.numbers = itertools.count(1)
        self._labels = iter("abcdefgh")
        self._left = 10

    def block(self, depth: int, most: int, known: tuple[int, ...], *, alone: bool = False) -> str:
        commands, known_here = [], list(known)
        for _ in range(self._luck.randint(1 if depth < 3 else 2, most)):
            commands.append(self._command(depth, known_here, alone=alone))
            if self._left <= 0:
                break
        return ",".join(commands)

    def _command(self, depth: int, known: list[int], *, alone: bool) -> str:
        self._left -= 1
        if depth == 0 or self._luck.random() < 0.68:
            return self._call(known)
        forms = [form for form in FORMS if form != "child" or not alone]
        form = self._luck.choice(forms)
        count = self._luck.randint(2, 3) if form in BRANCHING else 1
        if form == "child":
            known = []
        blocks = [
            f"[{self.block(depth - 1, 3, tuple(known), alone=alone or form in ('child', *BRANCHING))}]"
            for _ in range(count)
        ]
        label = f"{next(self._labels)}," if form == "scope" else ""
        return f"{form}({label}{','.join(blocks)})"

    def _call(self, known: list[int]) -> str:
        luck, n = self._luck, next(self.numbers)
        if luck.random() < 0.45:
            name = luck.choice(STEPS)
            told = f"{name}({n},{luck.choice(known)})" if known and luck.random() < 0.25 else f"{name}({n})"
            known.append(n)
            return told
        name = luck.choice(sorted(EFFECTS))
        return f"{name}({n},{luck.choice(known)})" if known and luck.random() < 0.4 else f"{name}({n})"


# --- edits -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Edited:
    """A program after its edits, and what they may lead to."""

    program: Program
    harmless: bool = True
    """Ordinary edits, or declared ones: the run must not be stranded."""
    anew: frozenset[int] = frozenset()
    """Steps that another name or place makes new ones: they may run again, and give something else."""
    dropped: frozenset[int] = frozenset()
    """Effects that a declaration takes out."""
    reworded: frozenset[int] = frozenset()
    shifted: frozenset[int] = frozenset()
    """Steps that were moved over an effect: in the place of one that was taken out they look like that one, reworded."""
    unclear: frozenset[int] = frozenset()
    """Reworded steps that are asked anew, though something was done because of them."""
    touched: frozenset[str] = field(default_factory=frozenset)
    """Names whose calls were put in, taken out or reworded: two such edits of one name can mean anything."""


def edited(program: Program, edits: str) -> Edited:
    """Several edits are one deploy."""
    made = Edited(program)
    for edit in filter(None, edits.split("+")):
        verb, _, rest = edit.rstrip("!").partition(":")
        made = EDITS[verb](made, rest, edit.endswith("!"))
    unclear = _unclear(made) | (_out_of_order(program, made.program) & made.reworded)
    return replace(made, unclear=unclear, harmless=made.harmless and not _used(made.program, set(unclear)))


def _unclear(made: Edited) -> frozenset[int]:
    """Reworded steps that are followed by an effect which is told something new: nobody can tell yet that it is the step
    on record, since the proof of that, an effect asked for with equal arguments, is not known yet. Such a step is asked
    anew.
    """
    calls = made.program.calls()
    effects = {node.n for node in made.program.effects() if node.n < FIRST_NEW}
    unknown = set(made.anew)
    for node in calls:
        if node.about in unknown:
            unknown.add(node.n)
    followed = ((node.n, (one.n for one in calls[at + 1 :] if one.n in effects)) for at, node in enumerate(calls))
    return frozenset(n for n, after in followed if n in made.reworded and next(after, 0) in unknown)


def _out_of_order(old: Program, new: Program) -> frozenset[int]:
    """Calls of one name and scope that stand in another order now: the record at the number of one is another's. If that
    one still has its arguments, a reworded call is a new one.
    """
    found: set[int] = set()
    for group in {(node.name, way) for node, way in walked(new.block) if node.n}:
        now = [node.n for node, way in walked(new.block) if (node.name, way) == group and node.n < FIRST_NEW]
        before = [node.n for node, _ in walked(old.block) if node.n in now]
        if [n for n in now if n in before] != before:
            found.update(now)
    return frozenset(found)


def declared(edits: str) -> str:
    """The same edits, each with its declaration."""
    return "+".join(edit.rstrip("!") + "!" for edit in edits.split("+"))


Edit = Callable[[Edited, str, bool], Edited]
EDITS: dict[str, Edit] = {}


def edit(make: Edit) -> Edit:
    EDITS[make.__name__.strip("_")] = make
    return make


def _redefined(program: Program, name: str, change: Callable[[Definition], Definition]) -> Program:
    made = tuple(change(one) if one.name == name else one for one in program.definitions)
    return replace(program, definitions=made)


def _with_options(program: Program, name: str, *options: str) -> Program:
    def change(it: Definition) -> Definition:
        kept = [old for old in it.options if old.split("=")[0] not in {new.split("=")[0] for new in options}]
        return replace(it, options=(*kept, *options))

    return _redefined(program, name, change)


def _rebuilt(block: Block, change: Callable[[Node], list[Node]]) -> Block:
    """Every node, from the inside out, replaced by what `change` makes of it."""
    made: list[Node] = []
    for node in block:
        inside = tuple(_rebuilt(one, change) for one in node.blocks)
        made += change(replace(node, blocks=inside))
    return tuple(made)


def _siblings(block: Block, change: Callable[[Block], Block]) -> Block:
    """Every block, from the inside out, replaced by what `change` makes of it."""
    return change(tuple(replace(node, blocks=tuple(_siblings(one, change) for one in node.blocks)) for node in block))


def _call(program: Program, n: int) -> Node:
    found = next((node for node in program.calls() if node.n == n), None)
    if found is None:
        raise Unfit(f"no call {n}")
    return found


def _has(made: Edited, name: str) -> Definition:
    found = next((one for one in made.program.definitions if one.name == name), None)
    if found is None:
        raise Unfit(f"nothing is called {name}")
    return found


def _touch(made: Edited, name: str) -> frozenset[str]:
    if name in made.touched:
        raise Unfit(f"calls of {name} were changed already")
    return made.touched | {name}


def _used(program: Program, numbers: set[int]) -> bool:
    return any(node.about in numbers for node in program.calls())


def _in_branches(program: Program) -> set[int]:
    """Calls in branches, where nobody can tell in which order they are made."""
    return {n for n, way in ways(program).items() if any(part.startswith(("gather", "key")) for part in way)}


@edit
def comment(made: Edited, rest: str, declared: bool) -> Edited:
    """Comments, types, pure code."""
    return replace(made, program=replace(made.program, comment="as before"))


@edit
def rename(made: Edited, rest: str, declared: bool) -> Edited:
    """`rename:pay>bill`. A step that is renamed runs again; harmless, unless somebody is told what it gives."""
    old, new = rest.split(">")
    it, program = _has(made, old), made.program
    if any(one.name == new for one in program.definitions):
        raise Unfit(f"something is called {new} already")
    touched = _touch(made, old)
    calls = {node.n for node in program.calls() if node.name == old}
    program = replace(
        _redefined(program, old, lambda one: replace(one, name=new)),
        block=_rebuilt(program.block, lambda node: [replace(node, name=new) if node.name == old else node]),
    )
    if declared:
        program = _with_options(program, new, f"was={old!r}")
    elif it.kind == "step":
        harmless = made.harmless and not _used(program, calls)
        return replace(made, program=program, anew=made.anew | calls, harmless=harmless, touched=touched | {new})
    return replace(made, program=program, harmless=made.harmless and declared, touched=touched | {new})


@edit
def relabel(made: Edited, rest: str, declared: bool) -> Edited:
    """`relabel:a>z`: another label of a scope."""
    old, new = rest.split(">")
    if not any(node.label == old and node.was is None for node, _ in walked(made.program.block)):
        raise Unfit(f"no scope {old}")

    def change(node: Node) -> list[Node]:
        return [replace(node, label=new, was=old if declared else None) if node.label == old else node]

    inside = {node.n for node, way in walked(made.program.block) if node.n and f"scope {old}" in way}
    return _moved(made, _rebuilt(made.program.block, change), inside, declared)


def _moved(made: Edited, block: Block, calls: set[int], declared: bool) -> Edited:
    """Calls that are in another place now."""
    if declared:
        return replace(made, program=replace(made.program, block=block))
    steps = {node.n for node in made.program.steps()} & calls
    effects = calls - steps
    harmless = made.harmless and not effects and not _used(made.program, steps)
    return replace(made, program=replace(made.program, block=block), anew=made.anew | steps, harmless=harmless)


def _run_of(block: Block, first: int, last: int) -> tuple[int, int] | None:
    """Where in this block the calls from `first` to `last` stand, one behind the other."""
    places = {node.n: index for index, node in enumerate(block) if node.n}
    if first in places and last in places and places[first] <= places[last]:
        return places[first], places[last] + 1
    return None


@edit
def box(made: Edited, rest: str, declared: bool) -> Edited:
    """`box:3` or `box:3-5`: calls that follow each other are moved into a scope of their own."""
    first, _, last = rest.partition("-")
    numbers = int(first), int(last or first)
    found = False

    def change(block: Block) -> Block:
        nonlocal found
        where = _run_of(block, *numbers)
        if where is None:
            return block
        found = True
        scope = Node("scope", label=f"box{first}", was="" if declared else None, blocks=(block[slice(*where)],))
        return (*block[: where[0]], scope, *block[where[1] :])

    before = made.program.block
    block = _siblings(before, change)
    if not found or f"box{first}" in {node.label for node, _ in walked(before)}:
        raise Unfit(f"no such calls: {rest}")
    inside = {node.n for node, way in walked(block) if node.n and f"scope box{first}" in way}
    if declared and _forms_inside(block, f"scope box{first}"):
        raise Unfit("only calls")
    return _moved(made, block, inside, declared)


def _forms_inside(block: Block, part: str) -> bool:
    return any(node.blocks and part in way for node, way in walked(block))


@edit
def unbox(made: Edited, rest: str, declared: bool) -> Edited:
    """`unbox:a`: a scope is taken away. There is no declaration for it. A child run in it counts as an effect."""
    within = [node for node, way in walked(made.program.block) if f"scope {rest}" in way]
    inside = {node.n for node in within if node.n}
    block = _rebuilt(made.program.block, lambda node: list(node.blocks[0]) if node.label == rest else [node])
    if block == made.program.block:
        raise Unfit(f"no scope {rest}")
    moved = _moved(made, block, inside, declared=False)
    return replace(moved, harmless=moved.harmless and not any(node.name == "child" for node in within))


@edit
def together(made: Edited, rest: str, declared: bool) -> Edited:
    """`together:3,4`: two calls side by side instead of one after the other."""
    one, other = map(int, rest.split("-"))
    if _call(made.program, other).about == one or _in_branches(made.program) & {one, other}:
        raise Unfit("one needs the other")
    if _used(made.program, {one, other}):
        raise Unfit("its answer is needed")
    found = False

    def change(block: Block) -> Block:
        nonlocal found
        where = _run_of(block, one, other)
        if where is None or where[1] - where[0] != 2:
            return block
        found = True
        pair = block[slice(*where)]
        gather = Node("gather", was="" if declared else None, blocks=((pair[0],), (pair[1],)))
        return (*block[: where[0]], gather, *block[where[1] :])

    block = _siblings(made.program.block, change)
    if not found:
        raise Unfit(f"not side by side: {rest}")
    if any(node.name == "gather" for node, _ in walked(made.program.block)):
        raise Unfit("branches are numbered: another one in front changes the names of those that follow")
    return _moved(made, block, {one, other}, declared)


@edit
def apart(made: Edited, rest: str, declared: bool) -> Edited:
    """`apart:3`: the branches that begin with call 3 are made one after the other. There is no declaration for it."""
    n, inside = int(rest), set[int]()

    def change(node: Node) -> list[Node]:
        if inside or node.name not in BRANCHING or _first(node.blocks[0]) != n:
            return [node]
        inside.update(one.n for one, _ in walked(node.blocks[0] + sum(node.blocks[1:], ())) if one.n)
        return [one for block in node.blocks for one in block]

    block = _rebuilt(made.program.block, change)
    if not inside:
        raise Unfit(f"no branches begin with {n}")
    return _moved(made, block, inside, declared=False)


@edit
def rekey(made: Edited, rest: str, declared: bool) -> Edited:
    """Another key function for every `sf.map`."""
    inside = {n for n, way in ways(made.program).items() if any(part.startswith("key") for part in way)}
    if not inside or made.program.rekeyed:
        raise Unfit("nothing is mapped")

    def change(node: Node) -> list[Node]:
        return [replace(node, was="old" if declared else None) if node.name == "mapped" else node]

    made = _moved(made, _rebuilt(made.program.block, change), inside, declared)
    return replace(made, program=replace(made.program, rekeyed=True))


@edit
def swap(made: Edited, rest: str, declared: bool) -> Edited:
    """`swap:3-4`: two commands that follow each other change places. Steps and mapped items are known by what they are."""
    one, other = map(int, rest.split("-"))
    found: list[Node] = []

    def change(block: Block) -> Block:
        at = next((index for index, node in enumerate(block) if _first((node,)) == one), None)
        if at is None or at + 1 >= len(block) or _first((block[at + 1],)) != other:
            return block
        first, second = block[at], block[at + 1]
        numbers = {node.n for node, _ in walked((first,)) if node.n}
        if any(node.about in numbers for node, _ in walked((second,))):
            raise Unfit("one needs the other")
        found.extend(node for node, _ in walked((first, second)))
        return (*block[:at], second, first, *block[at + 2 :])

    block = _siblings(made.program.block, change)
    if not found:
        raise Unfit(f"not side by side: {rest}")
    steps = {node.n for node in found if node.name in STEPS}
    only_steps = len(steps) == len(found)
    shifted = made.shifted if only_steps else made.shifted | steps
    program = replace(made.program, block=block)
    return replace(made, program=program, harmless=made.harmless and only_steps, shifted=shifted)


@edit
def turn(made: Edited, rest: str, declared: bool) -> Edited:
    """`turn:3`: the branches that begin with call 3, in the other order. Mapped items have keys; gathered ones do not."""
    n, kinds = int(rest), []

    def change(node: Node) -> list[Node]:
        if kinds or node.name not in BRANCHING or _first(node.blocks[0]) != n:
            return [node]
        kinds.append(node)
        return [replace(node, blocks=node.blocks[::-1])]

    block = _rebuilt(made.program.block, change)
    if not kinds:
        raise Unfit(f"no branches begin with {n}")
    if kinds[0].name == "mapped":
        # Undos are numbered in the order of the branches: half-way through them that order is asked about.
        undoes = any(node.name == "failing" for node, _ in walked(made.program.block))
        return replace(made, program=replace(made.program, block=block), harmless=made.harmless and not undoes)
    inside = {node.n for node, _ in walked(kinds[0].blocks[0] + sum(kinds[0].blocks[1:], ())) if node.n}
    return _moved(made, block, inside, declared=False)


@edit
def insert(made: Edited, rest: str, declared: bool) -> Edited:
    """`insert:extra@3`: a call in front of call 3. A step, by a name that is there or a new one; or an effect."""
    name, _, where = rest.partition("@")
    n = _free_number(made.program)
    found = False

    def change(block: Block) -> Block:
        nonlocal found
        at = next((index for index, node in enumerate(block) if node.n == int(where)), None)
        if at is None:
            return block
        found = True
        return (*block[:at], Node(name, n), *block[at:])

    block = _siblings(made.program.block, change)
    if not found:
        raise Unfit(f"no call {where}")
    return _put_in(made, block, name, declared)


@edit
def append(made: Edited, rest: str, declared: bool) -> Edited:
    """`append:extra`: a call behind everything. Harmless also if it is an effect."""
    block = (*made.program.block, Node(rest, _free_number(made.program)))
    harmless = made.harmless
    return replace(_put_in(made, block, rest, declared=False), harmless=harmless)


def _free_number(program: Program) -> int:
    """Of a new call. No other new one has it, also where calls were taken out in between."""
    used = {node.n for node in program.calls()}
    return next(n for n in itertools.count(FIRST_NEW + len(program.calls())) if n not in used)


def _put_in(made: Edited, block: Block, name: str, declared: bool) -> Edited:
    touched, program = _touch(made, name), replace(made.program, block=block)
    known = next((one for one in program.definitions if one.name == name), None)
    if known is None:
        kind = "step" if name.startswith("fresh") else "effect"
        known = Definition(name, "look" if kind == "step" else "pay", kind)
        program = replace(program, definitions=(*program.definitions, known))
        if declared and kind == "effect":
            program = _with_options(program, name, "was=None")
    elif declared and known.kind == "effect":
        raise Unfit("a further call of an effect cannot be declared new")
    harmless = made.harmless and (known.kind == "step" or declared)
    return replace(made, program=program, harmless=harmless, touched=touched)


@edit
def delete(made: Edited, rest: str, declared: bool) -> Edited:
    """`delete:3`. Of an effect, the declaration says so, if it was the only call of it."""
    node, program = _call(made.program, int(rest)), made.program
    others = [one for one in program.calls() if one.name == node.name and one.n != node.n]
    is_effect = program.definition(node.name).kind == "effect"
    if len(program.calls()) < 2 or _used(program, {node.n}) or _is_alone(program.block, node.n):
        raise Unfit("it is needed")
    if declared and is_effect and others:
        raise Unfit("sf.removed names all calls of an effect")
    touched = _touch(made, node.name)
    program = replace(program, block=_rebuilt(program.block, lambda one: [] if one.n == node.n else [one]))
    dropped = made.dropped
    if declared and is_effect:
        body = program.definition(node.name)
        program = replace(
            program,
            removed=(*program.removed, body.name),
            definitions=tuple(one for one in program.definitions if one != body),
        )
        dropped |= {node.n}
    harmless = made.harmless and (declared or not is_effect)
    return replace(made, program=program, dropped=dropped, harmless=harmless, touched=touched)


def _is_alone(block: Block, n: int) -> bool:
    """Whether nothing would be left of the block that it is in, or a branch would be known by another call."""
    return any(_first(inside) == n for node, _ in walked(block) for inside in node.blocks)


@edit
def reword(made: Edited, rest: str, declared: bool) -> Edited:
    """`reword:3`: another argument. Steps are asked anew or kept; an effect stops, unless it is not compared."""
    node, program = _call(made.program, int(rest)), made.program
    is_effect = program.definition(node.name).kind == "effect"
    touched = _touch(made, node.name)
    program = replace(
        program,
        block=_rebuilt(program.block, lambda one: [replace(one, words="b") if one.n == node.n else one]),
    )
    if declared:
        program = _with_options(program, node.name, f"noted=({program.definition(node.name).parameter!r},)")
    harmless = made.harmless and (declared or not is_effect)
    return replace(made, program=program, harmless=harmless, touched=touched, reworded=made.reworded | {node.n})


@edit
def rewordall(made: Edited, rest: str, declared: bool) -> Edited:
    """`rewordall:look`: the prompt of all its calls. More of them than a person wants to pay for unasked are a stop."""
    if _has(made, rest).kind != "step":
        raise Unfit("no step")
    calls = frozenset(node.n for node in made.program.calls() if node.name == rest)
    program = replace(
        made.program,
        block=_rebuilt(made.program.block, lambda one: [replace(one, words="b") if one.n in calls else one]),
    )
    if declared:
        program = _with_options(program, rest, f"noted=({program.definition(rest).parameter!r},)")
    harmless = made.harmless and (declared or len(calls) <= RERUN_LIMIT)
    touched = _touch(made, rest)
    return replace(made, program=program, harmless=harmless, touched=touched, reworded=made.reworded | calls)


@edit
def default(made: Edited, rest: str, declared: bool) -> Edited:
    """`default:pay`: what was executed was executed; a retry repeats the request."""
    _has(made, rest)
    return replace(made, program=_redefined(made.program, rest, lambda one: replace(one, currency="USD")))


@edit
def param(made: Edited, rest: str, declared: bool) -> Edited:
    """`param:pay`: a new parameter with a default."""
    if _has(made, rest).more:
        raise Unfit("it has it already")
    return replace(made, program=_redefined(made.program, rest, lambda one: replace(one, more=", tax=0")))


@edit
def reparam(made: Edited, rest: str, declared: bool) -> Edited:
    """`reparam:pay`: a parameter gets another name."""
    if any(option.startswith("noted") for option in _has(made, rest).options):
        raise Unfit("it is named in noted=")
    touched = _touch(made, rest)
    program = _redefined(made.program, rest, lambda one: replace(one, parameter="phrase"))
    return replace(made, program=program, touched=touched)


@edit
def rechild(made: Edited, rest: str, declared: bool) -> Edited:
    """Other ids for children: those that were begun would be begun again."""
    if not any(node.name == "child" for node, _ in walked(made.program.block)):
        raise Unfit("no children")
    return replace(made, program=replace(made.program, family="kid"), harmless=False)


@edit
def enum(made: Edited, rest: str, declared: bool) -> Edited:
    """Another value for the enum's member: a request in doubt would be another one."""
    if not any(one.body == "put" for one in made.program.definitions):
        raise Unfit("nobody uses it")
    return replace(made, program=replace(made.program, mode="FAST"), harmless=False)


@edit
def module(made: Edited, rest: str, declared: bool) -> Edited:
    """The calls are defined in another module."""
    return replace(made, program=replace(made.program, module="elsewhere"))


@edit
def plain(made: Edited, rest: str, declared: bool) -> Edited:
    """`plain:pay`: its decorator is taken away."""
    if _has(made, rest).kind != "effect" or made.program.is_async:
        raise Unfit("no effect")
    program = _redefined(made.program, rest, lambda one: replace(one, kind="plain", options=()))
    return replace(made, program=program, harmless=False, touched=_touch(made, rest))


@edit
def demote(made: Edited, rest: str, declared: bool) -> Edited:
    """`demote:pay`: an effect becomes a step."""
    if _has(made, rest).kind != "effect":
        raise Unfit("no effect")
    program = _redefined(made.program, rest, lambda one: replace(one, kind="step", options=()))
    return replace(made, program=program, harmless=False, touched=_touch(made, rest))


def drawn(program: Program, luck: random.Random) -> str:
    """One to three edits that fit the program, some with their declaration."""
    count, found = luck.choice((1, 1, 1, 2, 2, 3)), list[str]()
    for _ in range(40):
        if len(found) == count:
            break
        one = _guess(program, luck) + luck.choice(("", "", "!"))
        try:
            edited(program, "+".join([*found, one]))
        except Unfit:
            continue
        found.append(one)
    return "+".join(found) or "comment:"


def _guess(program: Program, luck: random.Random) -> str:
    calls = [node.n for node in program.calls()]
    names = [one.name for one in program.definitions]
    firsts = [_first((node,)) for node, _ in walked(program.block)]
    labels = [node.label for node, _ in walked(program.block) if node.label] or ["a"]
    branches = [_first(node.blocks[0]) for node, _ in walked(program.block) if node.name in BRANCHING] or [0]
    n, name, at = luck.choice(calls), luck.choice(names), luck.randrange(len(firsts))
    follower = firsts[at + 1] if at + 1 < len(firsts) else firsts[at]
    effects = [one for one in names if one in EFFECTS] or names
    return luck.choice(
        (
            "comment:",
            f"rename:{name}>other_{name}",
            f"rename:{luck.choice(effects)}>bill",
            f"relabel:{luck.choice(labels)}>z",
            f"box:{n}",
            f"box:{firsts[at]}-{follower}",
            f"unbox:{luck.choice(labels)}",
            f"together:{firsts[at]}-{follower}",
            f"apart:{luck.choice(branches)}",
            f"turn:{luck.choice(branches)}",
            "rekey:",
            f"swap:{firsts[at]}-{follower}",
            f"insert:extra@{n}",
            f"insert:fresh@{n}",
            f"insert:{name}@{n}",
            f"append:{luck.choice(('extra', name))}",
            f"delete:{n}",
            f"delete:{luck.choice(calls)}",
            f"reword:{n}",
            f"reword:{luck.choice(calls)}",
            f"rewordall:{name}",
            f"default:{luck.choice(effects)}",
            f"param:{name}",
            f"reparam:{name}",
            "enum:",
            "rechild:",
            "module:",
            f"plain:{luck.choice(effects)}",
            f"demote:{luck.choice(effects)}",
        )
    )
