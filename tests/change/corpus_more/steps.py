"""Steps that were added, removed or reworded, and arguments of recorded calls (CHANGE.md §3)."""

from tests.change.corpus_more.programs import (
    AGENT,
    ALL_FOUR,
    ALL_THREE,
    CHAT,
    KEPT,
    MAIL,
    PAY,
    READ,
    STOPS,
    TOOL_CALLS,
    goes_on,
    old_code,
    stops,
)

EXTRA = "@sf.step\ndef extra(n: int = 0) -> int:\n    ran(f'extra {n}')\n    return n\n@sf.effect\n"
PLEASE = ("Read this: ", "Please read this: ")
READ_TWICE = {"read a": 2, "read b": 2, "read c": 2, "read d": 1}
READ_ONCE = {"read a": 1, "read b": 1, "read c": 1, "read d": 1}
ASK = old_code("107")
REPORT = {"fixed": 1, "report answer to A and answer to B": 1}
MANY = READ.replace('("a", "b", "c")', "map(str, range(12))")
LATE = """
@sf.step
def ask(q: str) -> str:
    ran(f"ask {q}")
    die("x")
    return f"answer to {q}"
@sf.workflow
def w(): return ask("A")
"""
NOTES = """
@sf.effect
def send(to: str, stamp: str) -> str:
    out(f"mail {to}")
    return "ok"
@sf.workflow
def w():
    send("a", STAMP)
    die("x")
    send("c", STAMP)
    return 2
"""
BOTH = {"mail a": 1, "mail c": 1}


def stamped(old: str, new: str, hint: str) -> dict[str, object]:
    return {
        "TITLE": f"an argument of an effect: {hint[:40]}",
        "OLD": NOTES.replace("STAMP", repr(old)),
        "EDIT": [(repr(old), repr(new))],
        "WANT": stops(hint),
    }


ANOTHER_ANSWER = CHAT.replace('return f"say {len(messages)}"', 'return f"say {len(messages)} {os.getpid()}"').replace(
    'out(f"tool {text}")', 'out(f"tool {text[:5]}")'
)
"""Asked again, the model would say something else."""
GUARDED = [
    ("You are a clerk.", "You are a careful clerk."),
    ("        if turn == 2: die", "        check(turn)\n        if turn == 2: die"),
    ("@sf.workflow", '@sf.step\ndef check(n: int) -> bool:\n    ran("check")\n    return True\n@sf.workflow'),
]
IN_A_LOOP = """
PROMPT = "Read this: "
@sf.step
def read(doc: str, prompt: str) -> str:
    ran(f"read {doc}")
    return f"{doc} read"
@sf.workflow
def w():
    for n in range(12):
        read(str(n), PROMPT + str(n))
    die("x")
    return 12
"""
ALL_TWELVE = {f"read {n}": 1 for n in range(12)}
WARMS_UP = ("@sf.workflow", '@sf.step\ndef warm_up(n: int = 0) -> int:\n    ran("warm up")\n    return n\n@sf.workflow')
CASES = [
    {
        "TITLE": "more reworded steps than the limit, behind a new step",
        "OLD": IN_A_LOOP,
        "EDIT": [PLEASE, WARMS_UP, ("    for n", "    warm_up()\n    for n")],
        "WANT": {"said": "STOP CodeChanged", "ran": {**ALL_TWELVE, "warm up": 1}, "tells": ["12 recorded steps"]},
    },
    {
        "TITLE": "more reworded steps than the limit, each behind a new step",
        "OLD": IN_A_LOOP,
        "EDIT": [PLEASE, WARMS_UP, ("        read(", "        warm_up(n)\n        read(")],
        "WANT": {"said": "STOP CodeChanged", "ran": {**ALL_TWELVE, "warm up": 1}, "tells": ["12 recorded steps"]},
    },
    {
        "TITLE": "more reworded steps than the limit, each behind a new step, a person has all run again",
        "OLD": IN_A_LOOP,
        "EDIT": [PLEASE, WARMS_UP, ("        read(", "        warm_up(n)\n        read(")],
        "THEN": ["run", ["match", "r", "*", "--rerun"], "run"],
        "WANT": {"said": "DONE 12", "ran": {**dict.fromkeys(ALL_TWELVE, 2), "warm up": 12}},
    },
    {
        "TITLE": "more reworded steps than the limit, each behind a new step, a person keeps all",
        "OLD": IN_A_LOOP,
        "EDIT": [PLEASE, WARMS_UP, ("        read(", "        warm_up(n)\n        read(")],
        "THEN": ["run", ["match", "r", "*", "--keep"], "run"],
        "WANT": {"said": "DONE 12", "ran": {**ALL_TWELVE, "warm up": 12}},
    },
    {
        "TITLE": "agent: prompt reworded, and a step added between the answers and the tools",
        "OLD": ANOTHER_ANSWER,
        "EDIT": GUARDED,
        "WANT": goes_on(TOOL_CALLS, "DONE 10", ran={**KEPT, "model 6": 2, "check": 4}),
    },
    {
        "TITLE": "agent: prompt reworded, and an effect that is new between the answers and the tools",
        "OLD": ANOTHER_ANSWER,
        "EDIT": [*GUARDED, ("@sf.step\ndef check", "@sf.effect(was=None)\ndef check")],
        "WANT": goes_on(TOOL_CALLS, "DONE 10", ran={**KEPT, "model 6": 2, "check": 4}),
    },
    {
        "TITLE": "step added in a loop",
        "OLD": AGENT,
        "EDIT": [("        send(think(n))\n", "        extra(n)\n        send(think(n))\n"), ("@sf.effect\n", EXTRA)],
        "WANT": goes_on(
            ALL_FOUR, "DONE 4", ran={**{f"think {n}": 1 for n in range(4)}, **{f"extra {n}": 1 for n in range(4)}}
        ),
    },
    {
        "TITLE": "step added between recorded calls",
        "OLD": MAIL,
        "EDIT": [
            ('    book("b")\n', '    extra()\n    book("b")\n'),
            ("@sf.workflow\n", EXTRA.replace("@sf.effect\n", "") + "@sf.workflow\n"),
        ],
        "WANT": goes_on(ALL_THREE, "DONE 3", ran={"extra 0": 1}),
    },
    {
        "TITLE": "step added whose result is looked into",
        "OLD": MAIL,
        "EDIT": [
            ('    book("b")\n', '    if extra(1) == 1: book("b")\n'),
            ("@sf.workflow\n", EXTRA.replace("@sf.effect\n", "") + "@sf.workflow\n"),
        ],
        "WANT": goes_on(ALL_THREE, "DONE 3", ran={"extra 1": 1}),
    },
    {
        "TITLE": "step renamed, was=",
        "OLD": AGENT,
        "EDIT": [
            ("think(n: int)", "plan_it(n: int)"),
            ("send(think(n))", "send(plan_it(n))"),
            ("@sf.step\n", '@sf.step(was="think")\n'),
        ],
        "WANT": goes_on(ALL_FOUR, "DONE 4", ran={f"think {n}": 1 for n in range(4)}),
    },
    {
        "TITLE": "step moved into a scope, was=",
        "OLD": ASK,
        "EDIT": [('    a = ask("A")\n', '    with sf.scope("s", was=""): a = ask("A")\n')],
        "WANT": goes_on(REPORT, 'DONE "answer to A"', ran={"ask A": 1, "ask B": 1}),
    },
    {
        "TITLE": "one of two calls of a step removed",
        "OLD": ASK,
        "EDIT": [('    a = ask("A")\n', '    a = "answer to A"\n')],
        "WANT": goes_on(REPORT, 'DONE "answer to A"', ran={"ask A": 1, "ask B": 1}),
    },
    {
        "TITLE": "calls of a step swapped and another one put in between",
        "OLD": ASK,
        "EDIT": [('    a = ask("A")\n    b = ask("B")\n', '    b = ask("B")\n    c = ask("C")\n    a = ask("A")\n')],
        "WANT": goes_on(REPORT, 'DONE "answer to A"', ran={"ask A": 1, "ask B": 1, "ask C": 1}),
    },
    {
        "TITLE": "a call put in front, and another one reworded",
        "OLD": ASK,
        "EDIT": [('    a = ask("A")\n', '    c = ask("C")\n    a = ask("A")\n'), ('ask("B")', 'ask("B2")')],
        "WANT": {"ran": {"ask A": 1, "ask B": 1, "ask C": 1, "ask B2": 1}, "said": 'DONE "answer to A"'},
    },
    {
        "TITLE": "agent: model changed, tools ran",
        "OLD": CHAT,
        "EDIT": [('"m-1"', '"m-2"')],
        "WANT": goes_on(
            TOOL_CALLS,
            "DONE 10",
            tells=['model: "m-1" -> "m-2"', "what they gave is kept (effects were executed after them)"],
        ),
    },
    {
        "TITLE": "agent: list of tools changed, tools ran",
        "OLD": CHAT,
        "EDIT": [('["mail"]', '["mail", "book"]')],
        "WANT": goes_on(TOOL_CALLS, "DONE 10", tells=['tools[1]: not there -> "book"']),
    },
    {
        "TITLE": "agent: prompt reworded, on_change=rerun",
        "OLD": CHAT,
        "EDIT": [("You are a clerk.", "You are a careful clerk."), ("@sf.step\n", '@sf.step(on_change="rerun")\n')],
        "WANT": {
            "said": "DONE 10",
            "outbox": TOOL_CALLS,
            "ran": {"model 2": 2, "model 4": 2, "model 6": 2, "model 8": 1},
        },
    },
    {
        "TITLE": "agent: prompt and model noted",
        "OLD": CHAT,
        "EDIT": [
            ("You are a clerk.", "You are a careful clerk."),
            ('"m-1"', '"m-2"'),
            ("@sf.step\n", '@sf.step(noted=("messages", "model"))\n'),
        ],
        "WANT": goes_on(TOOL_CALLS, "DONE 10", ran=KEPT),
    },
    {
        "TITLE": "agent: killed again after the prompt was reworded",
        "OLD": CHAT,
        "EDIT": [("You are a clerk.", "You are a careful clerk."), ("turn == 2", "turn == 3")],
        "NEW_ENV": {"DIE": "x"},
        "THEN": ["run", "run"],
        "WANT": {"outbox": {"tool say 2": 1, "tool say 4": 1, "tool say 6": 1}, "said": ""},
    },
    {
        "TITLE": "prompt reworded, on_change=stop",
        "OLD": READ,
        "EDIT": [PLEASE, ("@sf.step\n", '@sf.step(on_change="stop")\n')],
        "WANT": stops('prompt: "Read this: a" -> "Please read this: a"', "--keep", "--rerun"),
    },
    {
        "TITLE": "prompt reworded, sf.configure(on_change=stop)",
        "OLD": READ,
        "EDIT": [PLEASE, ("@sf.step\n", 'sf.configure(on_change="stop")\n@sf.step\n')],
        "WANT": STOPS,
    },
    {
        "TITLE": "prompt reworded, on_change=rerun",
        "OLD": READ,
        "EDIT": [PLEASE, ("@sf.step\n", '@sf.step(on_change="rerun")\n')],
        "WANT": {"ran": READ_TWICE, "said": "DONE 4"},
    },
    {
        "TITLE": "prompt reworded, on_change=stop, a person keeps",
        "OLD": READ,
        "EDIT": [PLEASE, ("@sf.step\n", '@sf.step(on_change="stop")\n')],
        "THEN": ["run", ["match", "r", "read#*", "--keep"], "run"],
        "WANT": {"ran": READ_ONCE, "said": "DONE 4"},
    },
    {
        "TITLE": "prompt reworded, on_change=stop, a person has it run again",
        "OLD": READ,
        "EDIT": [PLEASE, ("@sf.step\n", '@sf.step(on_change="stop")\n')],
        "THEN": ["run", ["match", "r", "read#*", "--rerun"], "run"],
        "WANT": {"ran": READ_TWICE, "said": "DONE 4"},
    },
    {
        "TITLE": "prompt reworded, the answer comes back different and the run is killed once more",
        "OLD": READ,
        "EDIT": [PLEASE, ('    die("x")\n', '    die("y")\n')],
        "NEW_ENV": {"DIE": "y"},
        "THEN": ["run", ["runs"], "run"],
        "WANT": {"ran": {"read a": 2, "read b": 2, "read c": 2}},
    },
    {
        "TITLE": "twelve reworded steps are too many",
        "OLD": MANY,
        "EDIT": [PLEASE],
        "WANT": stops(
            "run r: 12 recorded steps are asked for with other arguments and would run again (more than 10); the first is read#1: ",
            "surefoot match r '*' --rerun",
            "surefoot match r '*' --keep",
        ),
    },
    {
        "TITLE": "twelve reworded steps, rerun_limit=12",
        "OLD": MANY,
        "EDIT": [PLEASE, ("@sf.step\n", "sf.configure(rerun_limit=12)\n@sf.step\n")],
        "WANT": {"said": "DONE 13", "ran": {**{f"read {n}": 2 for n in range(12)}, "read d": 1}},
    },
    {
        "TITLE": "twelve reworded steps, a person has all run again",
        "OLD": MANY,
        "EDIT": [PLEASE],
        "THEN": ["run", ["match", "r", "*", "--rerun"], "run"],
        "WANT": {"said": "DONE 13", "ran": {**{f"read {n}": 2 for n in range(12)}, "read d": 1}},
    },
    {
        "TITLE": "twelve reworded steps, a person keeps all",
        "OLD": MANY,
        "EDIT": [PLEASE],
        "THEN": ["run", ["match", "r", "*", "--keep"], "run"],
        "WANT": {"said": "DONE 13", "ran": {**{f"read {n}": 1 for n in range(12)}, "read d": 1}},
    },
    {
        "TITLE": "a step that was cut off runs with the new arguments",
        "OLD": LATE,
        "EDIT": [('ask("A")', 'ask("B")'), ('    die("x")\n', "")],
        "WANT": {"said": 'DONE "answer to B"', "ran": {"ask A": 1, "ask B": 1}},
    },
    {
        "TITLE": "step reworded that was acted on, and the effect behind it follows the answer",
        "OLD": ASK.replace('send("fixed")', "send(a)"),
        "EDIT": [('ask("A")', 'ask("A2")')],
        "WANT": {"said": 'DONE "answer to A"', "ran": {"ask A": 1, "ask B": 1}},
    },
    {
        "TITLE": "the order 1 is not given to order 4",
        "OLD": """
@sf.step
def look(order: int) -> str:
    ran(f"look {order}")
    return f"order {order}"
@sf.workflow
def w():
    found = [look(n) for n in (1, 2, 3)]
    die("x")
    return found
""",
        "EDIT": [("(1, 2, 3)", "(4, 2, 3)")],
        "WANT": {
            "said": 'DONE ["order 4", "order 2", "order 3"]',
            "ran": {"look 1": 1, "look 2": 1, "look 3": 1, "look 4": 1},
        },
    },
    {
        "TITLE": "effect: argument changed",
        "OLD": MAIL,
        "EDIT": [('send("a")', 'send("A")')],
        "WANT": stops(
            "run r, send#1: asked for with other arguments than it was executed with:",
            'to: "a" -> "A"',
            "Nothing was executed.",
            "surefoot match r 'send#1' --keep",
            '@sf.effect(noted=("to",)) on send',
        ),
    },
    {
        "TITLE": "effect: argument changed, a person keeps",
        "OLD": MAIL,
        "EDIT": [('send("a")', 'send("A")')],
        "THEN": ["run", ["match", "r", "send#1", "--keep"], "run"],
        "WANT": goes_on(ALL_THREE, "DONE 3"),
    },
    {
        "TITLE": "effect: argument changed, a person wants it to run again",
        "OLD": MAIL,
        "EDIT": [('send("a")', 'send("A")')],
        "THEN": ["run", ["match", "r", "send#1", "--rerun"]],
        "WANT": {"nothing": True, "said": "EXIT 2", "tells": ["is an effect, and was executed"]},
    },
    {
        "TITLE": "effect: noted argument changed",
        "OLD": NOTES.replace("@sf.effect", '@sf.effect(noted="stamp")').replace("STAMP", '"one"'),
        "EDIT": [('"one"', '"two"')],
        "WANT": goes_on(BOTH, "DONE 2"),
    },
    {
        "TITLE": "effect: noted= added in the deploy that changes the argument",
        "OLD": NOTES.replace("STAMP", '"one"'),
        "EDIT": [('"one"', '"two"'), ("@sf.effect\n", '@sf.effect(noted=("stamp",))\n')],
        "WANT": goes_on(BOTH, "DONE 2"),
    },
    {
        "TITLE": "effect: ignore= added in the deploy that changes the argument",
        "OLD": NOTES.replace("STAMP", '"one"'),
        "EDIT": [('"one"', '"two"'), ("@sf.effect\n", '@sf.effect(ignore="stamp")\n')],
        "WANT": goes_on(BOTH, "DONE 2"),
    },
    {
        "TITLE": "effect: noted= names no parameter",
        "OLD": NOTES.replace("STAMP", '"one"'),
        "EDIT": [("@sf.effect\n", '@sf.effect(noted="prompt")\n')],
        "WANT": {"nothing": True, "tells": ["names no parameter"]},
    },
    {
        "TITLE": "effect: new required parameter",
        "OLD": MAIL,
        "EDIT": [
            ("def send(to: str)", "def send(to: str, cc: str)"),
            ('send("a")', 'send("a", "q")'),
            ('send("c")', 'send("c", "q")'),
        ],
        "WANT": stops('cc: not there -> "q"'),
    },
    {
        "TITLE": "effect: a default is passed expressly now",
        "OLD": MAIL.replace("def send(to: str)", 'def send(to: str, cc: str = "")'),
        "EDIT": [('send("a")', 'send("a", cc="")')],
        "WANT": STOPS,
    },
    {
        "TITLE": "effect: parameter renamed and its value changed",
        "OLD": AGENT,
        "EDIT": [
            ("def send(to: str)", "def send(recipient: str)"),
            ("{to}", "{recipient}"),
            ("send(think(n))", 'send(think(n) + "@x")'),
        ],
        "WANT": STOPS,
    },
    {
        "TITLE": "effect: parameter renamed and effect renamed with was=",
        "OLD": AGENT,
        "EDIT": [
            ("def send(to: str)", "def tell(recipient: str)"),
            ("{to}", "{recipient}"),
            ("send(think(n))", "tell(think(n))"),
            ("@sf.effect\n", '@sf.effect(was="send")\n'),
        ],
        "WANT": goes_on(ALL_FOUR, "DONE 4"),
    },
    {
        "TITLE": "effect: one letter in half a megabyte",
        "OLD": NOTES.replace("STAMP", '("rule " * 50_000 + "A" + " rule" * 50_000)'),
        "EDIT": [('"A"', '"B"')],
        "WANT": stops(
            'stamp: "…ule rule rule rule rule A rule rule rule rule rul…" -> "…ule rule rule rule rule B rule'
        ),
    },
    stamped("2024-05-01T10:00:00", "2024-05-02T11:30:00", "only stamp differs, and looks like a time: use sf.now()"),
    stamped(
        "0f8fad5b-d9cb-469f-a165-70867728950e",
        "7c9e6679-7425-40de-944b-e07fc1f90ae7",
        "only stamp differs, and looks random: make it with sf.uuid4() or in a step, or name it in noted=",
    ),
    {
        "TITLE": "effect: five places at most are shown",
        "OLD": NOTES.replace("stamp: str", "stamp: list").replace("STAMP", "list(range(9))"),
        "EDIT": [("list(range(9))", "list(range(10, 19))")],
        "WANT": stops("stamp[4]: 4 -> 14\n  Nothing was executed."),
    },
    {
        "TITLE": "effect in doubt, other arguments: settled first",
        "OLD": PAY,
        "EDIT": [('pay("o1")', 'pay("o2")')],
        "WANT": {"nothing": True, "said": "STOP"},
    },
    {
        "TITLE": "effect in doubt, settled as not happened, other arguments",
        "OLD": PAY,
        "EDIT": [('pay("o1")', 'pay("o2")')],
        "THEN": [["settle", "r", "pay#1", "--not-happened"], "run"],
        "WANT": goes_on({"pay o1": 1, "pay o2": 1}, 'DONE "paid"'),
    },
    {
        "TITLE": "effect in doubt, retried with the recorded arguments",
        "OLD": PAY.replace("@sf.effect", '@sf.effect(on_crash="retry")'),
        "EDIT": [('pay("o1")', 'pay("o2")'), ("die(", "str(")],
        "MAY_REPEAT": True,
        "WANT": {"nothing": True, "said": "STOP CodeChanged"},
    },
    {
        "TITLE": "workflow: default changed",
        "OLD": MAIL.replace("def w():", 'def w(to: str = "a"):').replace('send("a")', "send(to)"),
        "EDIT": [('"a"', '"A"')],
        "WANT": goes_on(ALL_THREE, "DONE 3"),
    },
    {
        "TITLE": "workflow: default changed, new effect with it",
        "OLD": MAIL.replace("def w():", 'def w(to: str = "a"):')
        .replace('send("c")', "send(to + 'c')")
        .replace('"a"', '"q"'),
        "EDIT": [('"q"', '"Q"')],
        "WANT": {"said": "STOP CodeChanged", "nothing": True},
    },
    {
        "TITLE": "workflow: parameter removed",
        "OLD": MAIL.replace("def w():", "def w(n: int):"),
        "OLD_ENV": {"DIE": "x", "ARGS": "[1]"},
        "NEW_ENV": {"ARGS": "[]"},
        "EDIT": [("def w(n: int):", "def w():")],
        "WANT": {"nothing": True},
    },
    {
        "TITLE": "sf.uuid4 added in front of executed effects",
        "OLD": MAIL,
        "EDIT": [('    send("a")\n', '    sf.uuid4()\n    send("a")\n')],
        "WANT": goes_on(ALL_THREE, "DONE 3"),
    },
    {
        "TITLE": "sf.now removed in front of executed effects",
        "OLD": MAIL.replace('    send("a")\n', '    sf.now()\n    send("a")\n'),
        "EDIT": [("    sf.now()\n", "")],
        "WANT": goes_on(ALL_THREE, "DONE 3"),
    },
    {
        "TITLE": "sf.sleep removed in front of executed effects",
        "OLD": MAIL.replace('    send("a")\n', '    sf.sleep("0.01s")\n    send("a")\n'),
        "EDIT": [('    sf.sleep("0.01s")\n', "")],
        "WANT": goes_on(ALL_THREE, "DONE 3"),
    },
    {
        "TITLE": "sf.approve removed after the yes",
        "OLD": MAIL.replace('    die("x")\n', '    sf.approve("ok?")\n    die("x")\n'),
        "EDIT": [('    sf.approve("ok?")\n', "")],
        "THEN": [["approve", "r"], "run"],
        "WANT": goes_on(ALL_THREE, "DONE 3"),
    },
]
