"""Random programs from a grammar, held against a model: what nobody thought of when the flows were written by hand.

A program is a text, and the text is its name: `charge,failing([reserve,look]),anew,either([put],[wire])`. So a line that
failed once says all there is to say about it, whatever later becomes of the grammar. Commands are numbered in the order of
the text. What a program has to answer and to leave in the world is told by walking through it, not by running it: `Model`
knows nothing of the engine.
"""

from __future__ import annotations

import ast
import itertools
import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import surefoot as sf
from tests.crash import flows
from tests.crash.flows import FLOWS, Flow, finish, got, value_of
from tests.crash.stage import seen, stepped

ANY = "programs"
"""Stands for one program after the other, where a flow is asked for."""
ANEW = ",anew,"
SOLD_OUT = "sold out"
PARTS = {
    "charge": [0], "put": [0], "copy": [1, 2], "move": [1, 2], "reserve": [0], "fussy": [0], "lost": [0], "vague": [0],
    "deaf": [0], "wire": [0],
}  # fmt: skip
"""What each effect leaves in the world."""
UNDONE = ("move", "reserve")
"""Effects that a saga takes back."""
SIMPLE = (*PARTS, "look", "moody", "stumble", "now", "sleep", "ask", "approve", "event")
FORMS = {"saga": 1, "failing": 1, "scope": 1, "child": 1, "either": 2}
"""Commands that hold others, and how many blocks of them."""
MOST_COMMANDS, MOST_DEPTH = 10, 3
AMOUNT = 40


@dataclass(frozen=True)
class Command:
    name: str
    n: int
    blocks: tuple[Block, ...] = ()

    def __str__(self) -> str:
        return self.name + (f"({','.join(f'[{text(block)}]' for block in self.blocks)})" if self.blocks else "")


Block = tuple[Command, ...]


def text(block: Block) -> str:
    return ",".join(map(str, block))


def parsed(program: str, first: int = 1) -> Block:
    """The commands of one segment, numbered from `first` on."""
    return _block(ast.parse(f"[{program}]", mode="eval").body, itertools.count(first))


def _block(node: ast.expr, numbers: Iterator[int]) -> Block:
    if not isinstance(node, ast.List):
        raise TypeError(f"a block is written in brackets: {ast.unparse(node)}")
    return tuple(_command(one, numbers) for one in node.elts)


def _command(node: ast.expr, numbers: Iterator[int]) -> Command:
    match node:
        case ast.Name(name):
            return Command(name, next(numbers))
        case ast.Call(ast.Name(name), blocks):
            return Command(name, next(numbers), tuple(_block(block, numbers) for block in blocks))
        case _:
            raise TypeError(f"no command: {ast.unparse(node)}")


def size(block: Block) -> int:
    return sum(1 + sum(map(size, command.blocks)) for command in block)


# --- written at random -----------------------------------------------------------------------------------------------


def written(number: int, *, branching: bool = False) -> str:
    """The program of that number."""
    return _Writer(random.Random(f"program {number}"), {**FORMS, "branches": 2} if branching else FORMS).program()


class _Writer:
    def __init__(self, luck: random.Random, forms: dict[str, int]) -> None:
        self._luck = luck
        self._forms = forms
        self._left = luck.randint(2, MOST_COMMANDS)

    def program(self) -> str:
        segments = []
        while self._left > 0:
            segments.append(self._sequence(self._luck.choice((1, 4, 9, 9)), MOST_DEPTH))
        return ANEW.join(segments)

    def _sequence(self, most: int, depth: int) -> str:
        """At least one command, and no more than are left."""
        commands = [self._command(depth)]
        while self._left > 0 and len(commands) < most:
            commands.append(self._command(depth))
        return ",".join(commands)

    def _command(self, depth: int) -> str:
        self._left -= 1
        if depth == 0 or self._luck.random() < 0.7:
            return self._luck.choice(SIMPLE)
        form = self._luck.choice(sorted(self._forms))
        blocks = [f"[{self._sequence(self._luck.randint(1, 3), depth - 1)}]" for _ in range(self._forms[form])]
        return f"{form}({','.join(blocks)})"


# --- run by surefoot -------------------------------------------------------------------------------------------------


@sf.step
def stumble(n: int) -> None:
    stepped("stumble", n)
    raise ValueError(f"stumbled over {n}")


@sf.workflow
def programmed(program: str, first: int) -> list[Any]:
    """Segment after segment; the result is the last one's."""
    segment, _, rest = program.partition(ANEW)
    block = parsed(segment, first)
    answers = _play(block)
    if rest:
        sf.continue_as_new(rest, first + size(block))
    return answers


def _play(block: Block) -> list[Any]:
    return [_PERFORM.get(command.name, _call)(command) for command in block]


def _call(command: Command) -> Any:
    return got(getattr(flows, command.name), command.n)


def _look(command: Command) -> int:
    return int(got(flows.look, command.n)["n"])


def _stumble(command: Command) -> str:
    try:
        return str(stumble(command.n))
    except ValueError as error:
        return str(error)


def _now(command: Command) -> int:
    sf.random(), sf.uuid4()
    moment = sf.now().isoformat()
    answer = _look(command)
    seen(sf.run_id(), "now", command.n, moment)  # only here: it is on record with the first thing that follows it
    return answer


def _event(command: Command) -> str:
    return str(sf.wait_event(f"event-{command.n}")["name"])


def _failing(command: Command) -> str:
    try:
        with sf.saga():
            _play(command.blocks[0])
            raise ValueError(SOLD_OUT)
    except ValueError as error:
        return str(error)


def _saga(command: Command) -> list[Any]:
    with sf.saga():
        return _play(command.blocks[0])


def _scope(command: Command) -> list[Any]:
    with sf.scope(f"part {command.n}"):
        return _play(command.blocks[0])


def _child(command: Command) -> list[Any]:
    (block,) = command.blocks
    return list(sf.child(programmed, _child_id(sf.run_id(), command), text(block), block[0].n))


def _child_id(run: str, command: Command) -> str:
    return f"{run}.{command.n}"


def _either(command: Command) -> list[Any]:
    return _play(command.blocks[_look(command) % 2])


def _branches(command: Command) -> list[Any]:
    return list(sf.gather(*(partial(_play, block) for block in command.blocks)))


_PERFORM: dict[str, Callable[[Command], Any]] = {
    "look": _look,
    "wire": lambda command: got(flows.wire, command.n, AMOUNT),
    "stumble": _stumble,
    "now": _now,
    "sleep": lambda _: sf.sleep("40m"),
    "ask": lambda _: sf.ask("How much?", type=int),
    "approve": lambda command: bool(sf.approve("Go on?", details={"n": command.n})),
    "event": _event,
    "failing": _failing,
    "saga": _saga,
    "scope": _scope,
    "child": _child,
    "either": _either,
    "branches": _branches,
}


# --- told by the model -----------------------------------------------------------------------------------------------


class Model:
    """What a program answers, and what it leaves in the world."""

    def __init__(self) -> None:
        self.world: dict[str, list[int]] = {}

    def run(self, program: str, run: str, first: int = 1) -> list[Any]:
        answers: list[Any] = []
        for segment in program.split(ANEW):
            block = parsed(segment, first)
            answers = self._play(block, run)
            first += size(block)
        return answers

    def _play(self, block: Block, run: str) -> list[Any]:
        return [self._one(command, run) for command in block]

    def _one(self, command: Command, run: str) -> Any:
        name, n = command.name, command.n
        match name:
            case "look" | "now":
                return n
            case "stumble":
                return f"stumbled over {n}"
            case "sleep":
                return None
            case "ask":
                return AMOUNT
            case "approve":
                return True
            case "event":
                return f"event-{n}"
            case "failing":
                before = set(self.world)
                self._play(command.blocks[0], run)
                for thing in [thing for thing in self.world if thing not in before and _is_undone(thing, run)]:
                    del self.world[thing]
                return SOLD_OUT
            case "saga" | "scope":
                return self._play(command.blocks[0], run)
            case "either":
                return self._play(command.blocks[n % 2], run)
            case "child":
                return self._play(command.blocks[0], _child_id(run, command))
            case "branches":
                return [self._play(block, run) for block in command.blocks]
            case _:
                if name in PARTS:
                    self.world[f"{run} {name} {n}"] = PARTS[name]
                return value_of(name, n, AMOUNT)


def _is_undone(thing: str, run: str) -> bool:
    """What a child did is the child's."""
    whose, name, _ = thing.split()
    return whose == run and name in UNDONE


# --- as a flow -------------------------------------------------------------------------------------------------------


def flow_of(name: str) -> Flow:
    """The flow of that name, or the program that the name is."""
    return FLOWS.get(name) or _flow(name)


@lru_cache(maxsize=64)
def _flow(program: str) -> Flow:
    model = Model()
    answers = json.loads(json.dumps({"r": model.run(program, "r")}))
    return Flow(
        program,
        lambda: {"r": finish(lambda: programmed.run("r", program, 1), "r")},
        threads="branches" in program,
        told=(answers, dict(sorted(model.world.items()))),
    )
