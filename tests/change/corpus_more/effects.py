"""Effects that were renamed, moved, added, removed or wrapped while a run is unfinished (CHANGE.md §2)."""

from tests.change.corpus_more.programs import (
    AGENT,
    ALL_FIVE,
    ALL_FOUR,
    ALL_THREE,
    MAIL,
    MAP,
    PAY,
    STOPS,
    goes_on,
    stops,
)

AUDIT = '@sf.effect\ndef audit(x: str) -> str:\n    out(f"audit {x}")\n    return x\n'
SENDS = """
@sf.effect
def send(to: str) -> str:
    out(f"mail {to}")
    return "ok"
@sf.workflow
def w():
    send("a")
    send("b")
    die("x")
    send("c")
    return 3
"""
TOOLS = """
def send(to: str) -> str:
    out(f"mail {to}")
    return "ok"
@sf.workflow
def w():
    tools = {"mail": sf.effect(name="tool:send")(send)}
    tools["mail"]("a")
    tools["mail"]("b")
    die("x")
    tools["mail"]("c")
    return 3
"""
CHILD = """
@sf.workflow
def part(x: str) -> str:
    ran(f"part {x}")
    return x
@sf.effect
def send(to: str) -> str:
    out(f"mail {to}")
    return "ok"
@sf.workflow
def w():
    a = sf.child(part, "c-1", "a")
    send(a)
    die("x")
    send("z")
    return a
"""
PARTS = """
@sf.effect
def send(to: str) -> str:
    out(f"mail {to}")
    return "ok"
@sf.workflow
def part(x: str) -> str:
    send(x)
    die("x")
    return x
@sf.workflow
def w():
    a = sf.child(part, "c-1", "a")
    send("z")
    return a
"""
RENAMED_PART = [("def part", "def piece"), ("child(part", "child(piece")]
RENAMED_PART_WAS = [("@sf.workflow\ndef part", '@sf.workflow(was="part")\ndef part'), *RENAMED_PART]
IN_ITS_PARENT = "a child run that is killed within its parent: a worker queues it as a run of its own"
GATHER = MAIL.replace('    send("a")\n    book("b")\n', '    sf.gather(lambda: send("a"), lambda: book("b"))\n')
SCOPED = MAIL.replace('    send("a")\n', '    with sf.scope("eu"): send("a")\n')
SAME_KEY = """if os.path.exists("key"): out("pay under the same key" if open("key").read() == sf.key() else "another key")
    else:
        with open("key", "w") as f: f.write(sf.key())
        out("pay under a first key")"""
TWO = """
@sf.effect
def send(to: str) -> str:
    out(f"mail {to}")
    return "ok"
@sf.effect
def pay(order: str) -> str:
    out(f"pay {order}")
    die("x")
    return "paid"
@sf.workflow
def part(x: str) -> str:
    out(f"part {x}")
    die("x")
    return x
def handle(n):
    if n == 0: return send("a")
    return pay("o")
@sf.workflow
def w():
    return len(sf.map(handle, range(2), key=str, concurrency=1))
"""
"""The first branch comes to its end; the second is killed in its effect."""
REFUSED = """
@sf.effect
def book(x: str) -> str:
    out(f"book {x}")
    return x
@sf.effect
def pay(order: str) -> str:
    if not os.path.exists("open"): raise sf.NotDone("closed")
    out(f"pay {order}")
    return order
@sf.workflow
def w():
    book("b")
    try: pay("o1")
    except sf.NotDone: pass
    die("x")
    return 1
"""
NAMED_ALIKE = """
@sf.effect(name="pay")
def _pay(order: str) -> str:
    out(f"pay {order}")
    return order
@sf.workflow
def pay(order: str) -> str:
    return _pay(order)
@sf.workflow
def w():
    pay("o1")
    die("x")
    pay("o2")
    return 2
"""
METHOD = """
class Bank:
    @sf.effect(ignore="self")
    def pay(self, order: str) -> str:
        out(f"pay {order}")
        return "paid"
    @staticmethod
    @sf.effect
    def book(order: str) -> str:
        out(f"book {order}")
        return "booked"
@sf.workflow
def w():
    Bank().pay("o1")
    Bank.book("o1")
    die("x")
    return 2
"""
ELSEWHERE = """
import surefoot as sf
class Bank:
    @sf.effect(ignore="self", name="charge")
    def pay(self, order: str) -> str:
        with open("outbox.txt", "a") as f: f.write("pay " + order + "\\n")
        return "paid"
"""
THERE = 'import bank\n@sf.workflow\ndef w():\n    bank.Bank().pay("o1")\n    die("x")\n    return 1\n'
INSIDE = """
@sf.workflow
def w():
    n = 1
    @sf.effect(name="charge")
    def pay(order: str, count: int = n) -> str:
        out(f"pay {order}")
        return order * n
    @sf.effect
    def book(order: str) -> str:
        out(f"book {order}")
        return order
    pay("o1")
    book("o1")
    die("x")
    return 2
"""
MADE_OF = MAIL.replace("@sf.effect\ndef send(", "def _send(").replace(
    "@sf.workflow", 'send = sf.effect(name="send")(_send)\n@sf.workflow'
)
BLOCKING_METHODS = "methods are not translated into async ones"
HIDDEN_RENAME = [
    ('return send("a")', 'return (extra(), tell("a"))'),
    ("@sf.effect\ndef send", "@sf.step\ndef extra() -> int: return 1\n@sf.effect\ndef tell"),
]
"""Behind a new step, so that only the drive can find it."""

CASES = [
    {
        "TITLE": "effect renamed",
        "OLD": AGENT,
        "EDIT": [("send", "notify")],
        "WANT": stops(
            "run r: the code now asks for the effect notify#1, which is not on record, and has not asked for send#1, "
            "send#2, which were executed",
            "Renamed, moved, or new? Nothing was executed.",
            '@sf.effect(was="send") on notify',
            "@sf.effect(was=None) on notify",
            "if sf.patched(",
            "put the old code back and run r again",
        ),
    },
    {
        "TITLE": "effect renamed, all with the same arguments",
        "OLD": AGENT.replace("send(think(n))", 'send("ann")').replace(
            'out(f"mail {to}")', 'out(f"mail {to} {sf.key()}")'
        ),
        "EDIT": [("send", "notify")],
        "WANT": stops(
            "send#1, send#2, which were executed with the same arguments. Renamed, moved, or new? Nothing was"
        ),
    },
    {
        "TITLE": "effect renamed, was=",
        "OLD": AGENT,
        "EDIT": [("send", "notify"), ("@sf.effect\n", '@sf.effect(was="send")\n')],
        "WANT": goes_on(ALL_FOUR, "DONE 4"),
    },
    {
        "TITLE": "effect renamed, was=, one more call of it in front with other arguments",
        "OLD": MAIL,
        "EDIT": [
            ("send", "tell"),
            ("@sf.effect\ndef tell", '@sf.effect(was="send")\ndef tell'),
            ('    tell("a")\n', '    tell("z")\n    tell("a")\n'),
        ],
        "WANT": STOPS,
    },
    {
        "TITLE": "two effects swap their names",
        "OLD": MAIL,
        "EDIT": [
            ("send", "XX"),
            ("book", "send"),
            ("XX", "book"),
            ("@sf.effect\ndef book", '@sf.effect(was="send")\ndef book'),
            ("@sf.effect\ndef send", '@sf.effect(was="book")\ndef send'),
        ],
        "WANT": {"nothing": True, "tells": ["was= leads back to it (send -> book -> send)"]},
    },
    {
        "TITLE": "was= names an effect that is still in use",
        "OLD": MAIL,
        "EDIT": [("@sf.effect\ndef book", '@sf.effect(was="send")\ndef book')],
        "WANT": goes_on(ALL_THREE, "DONE 3"),
    },
    {
        "TITLE": "was= names an effect that is still in use, and takes its record",
        "OLD": MAIL,
        "EDIT": [
            (
                "@sf.effect\ndef book",
                '@sf.effect(was="send")\ndef tell(to: str) -> str: return "ok"\n@sf.effect\ndef book',
            ),
            ('    send("a")\n', '    tell("a")\n    send("a")\n'),
        ],
        "WANT": {
            "nothing": True,
            "said": "FAILED UsageError",
            "tells": ["tell says was='send', but the code still asks for send", "Nothing was executed"],
        },
        "WORKER": {"said": "FAILED TimeoutError run r is still queued"},
    },
    {
        "TITLE": "effect moved into a scope, was=",
        "OLD": MAIL,
        "EDIT": [
            ('    send("a")\n', '    with sf.scope("eu", was=""): send("a")\n'),
            ('    send("c")\n', '    book("c")\n'),
        ],
        "WANT": goes_on({"mail a": 1, "book b": 1, "book c": 1}, "DONE 3"),
    },
    {
        "TITLE": "effects moved into a scope with was=, and one behind it",
        "OLD": MAIL,
        "EDIT": [('    send("a")\n', '    with sf.scope("eu", was=""): send("a")\n')],
        "WANT": goes_on(ALL_THREE, "DONE 3"),
    },
    {
        "TITLE": "label of a scope changed, was=",
        "OLD": SCOPED,
        "EDIT": [('"eu"', '"europe", was="eu"')],
        "WANT": goes_on(ALL_THREE, "DONE 3"),
    },
    {
        "TITLE": "scope in a scope renamed, both with was=",
        "OLD": MAIL.replace('    send("a")\n', '    with sf.scope("eu"):\n        with sf.scope("de"): send("a")\n'),
        "EDIT": [('"eu"', '"europe", was="eu"'), ('"de"', '"germany", was="de"')],
        "WANT": goes_on(ALL_THREE, "DONE 3"),
    },
    {
        "TITLE": "effect renamed and its scope renamed, both with was=",
        "OLD": SCOPED,
        "EDIT": [
            ('"eu"', '"europe", was="eu"'),
            ("send", "notify"),
            ("@sf.effect\ndef notify", '@sf.effect(was="send")\ndef notify'),
        ],
        "WANT": goes_on(ALL_THREE, "DONE 3"),
    },
    {
        "TITLE": "two effects wrapped in sf.gather, was=",
        "OLD": MAIL,
        "EDIT": [('    send("a")\n    book("b")\n', '    sf.gather(lambda: send("a"), lambda: book("b"), was="")\n')],
        "WANT": goes_on(ALL_THREE, "DONE 3"),
    },
    {
        "TITLE": "branch added at the end of sf.gather",
        "OLD": GATHER,
        "EDIT": [('lambda: book("b")', 'lambda: book("b"), lambda: send("d")')],
        "WANT": goes_on({**ALL_THREE, "mail d": 1}, "DONE 3"),
    },
    {
        "TITLE": "key function of sf.map changed, was=",
        "OLD": MAP,
        "EDIT": [("key=str", 'key=lambda n: f"user-{n}", was=str')],
        "WANT": goes_on(ALL_FIVE, "DONE 5"),
    },
    {
        "TITLE": "loop becomes sf.map, was=",
        "OLD": MAP.replace(
            "    return len(sf.map(handle, range(5), key=str, concurrency=1))",
            "    return len([handle(n) for n in range(5)])",
        ),
        "EDIT": [("[handle(n) for n in range(5)]", 'sf.map(handle, range(5), key=str, concurrency=1, was="")')],
        "WANT": goes_on(ALL_FIVE, "DONE 5"),
    },
    {
        "TITLE": "sf.map becomes a loop",
        "OLD": MAP,
        "EDIT": [("sf.map(handle, range(5), key=str, concurrency=1)", "[handle(n) for n in range(5)]")],
        "WANT": STOPS,
    },
    {
        "TITLE": "effect added behind the others in every branch of sf.map",
        "OLD": MAP,
        "EDIT": [('    if n == 2: die("x")\n', '    audit(f"{n}")\n'), ("def handle", AUDIT + "def handle")],
        "WANT": goes_on({**ALL_FIVE, **{f"audit {n}": 1 for n in range(5)}}, "DONE 5"),
    },
    {
        "TITLE": "effect added in front of the others in every branch of sf.map",
        "OLD": MAP,
        "EDIT": [
            ('    send(f"u{n}")\n', '    audit(f"{n}")\n    send(f"u{n}")\n'),
            ("def handle", AUDIT + "def handle"),
        ],
        "WANT": STOPS,
    },
    {
        "TITLE": "effect moved to another branch, equal arguments",
        "OLD": GATHER,
        "EDIT": [
            ('lambda: send("a"), lambda: book("b")', 'lambda: book("b"), lambda: two()'),
            ("@sf.workflow\n", 'def two():\n    send("a")\n@sf.workflow\n'),
        ],
        "WANT": STOPS,
    },
    {
        "TITLE": "effect deleted, was the last one",
        "OLD": MAIL,
        "EDIT": [('    book("b")\n', ""), ('    send("c")\n', "")],
        "WANT": STOPS,
    },
    {
        "TITLE": "effect deleted, sf.removed, in a scope",
        "OLD": SCOPED.replace('"eu"): send("a")', '"eu"): book("b")').replace('    book("b")\n', '    send("a")\n', 1),
        "EDIT": [('    with sf.scope("eu"): book("b")\n', ""), ("@sf.workflow", 'sf.removed("book")\n@sf.workflow')],
        "WANT": {"said": "DONE 3", "tells": ["book"]},
    },
    {
        "TITLE": "new effect with the arguments of a removed one takes its place",
        "OLD": MAIL,
        "EDIT": [
            ('    book("b")\n', '    audit("b")\n'),
            ("@sf.workflow", 'sf.removed("book")\n' + AUDIT + "@sf.workflow"),
        ],
        "WANT": STOPS,
    },
    {
        "TITLE": "new effect with other arguments takes the place of a removed one",
        "OLD": MAIL,
        "EDIT": [
            ('    book("b")\n', '    audit("z")\n'),
            ("@sf.workflow", 'sf.removed("book")\n' + AUDIT + "@sf.workflow"),
        ],
        "WANT": goes_on({"mail a": 1, "book b": 1, "audit z": 1, "mail c": 1}, "DONE 3"),
    },
    {
        "TITLE": "sf.patched keeps the old way for the run",
        "OLD": MAIL,
        "EDIT": [
            ('    send("a")\n', '    if sf.patched("audit"): audit("s")\n    send("a")\n'),
            ("@sf.workflow", AUDIT + "@sf.workflow"),
        ],
        "WANT": goes_on(ALL_THREE, "DONE 3"),
    },
    {
        "TITLE": "sf.patched, and the new way behind it is a rename",
        "OLD": MAIL,
        "EDIT": [
            ('    send("a")\n', '    if sf.patched("x"): audit("a")\n    else: send("a")\n'),
            ("@sf.workflow", AUDIT + "@sf.workflow"),
        ],
        "WANT": goes_on(ALL_THREE, "DONE 3"),
    },
    {
        "TITLE": "effect added in front, declared new, killed and run again",
        "OLD": MAIL,
        "EDIT": [
            ('    send("a")\n', '    audit("s")\n    send("a")\n'),
            ("@sf.workflow", AUDIT.replace("@sf.effect", "@sf.effect(was=None)") + "@sf.workflow"),
            ('    send("c")\n', '    send("c")\n    die("y")\n'),
        ],
        "NEW_ENV": {"DIE": "y"},
        "THEN": ["run", ["runs"], "run"],
        "WANT": {"outbox": {"audit s": 1, **ALL_THREE}},
    },
    {
        "TITLE": "a person says that it is new",
        "OLD": MAIL,
        "EDIT": [('    send("a")\n', '    audit("s")\n    send("a")\n'), ("@sf.workflow", AUDIT + "@sf.workflow")],
        "THEN": ["run", ["match", "r", "audit#1", "--new"], "run"],
        "WANT": goes_on({"audit s": 1, **ALL_THREE}, "DONE 3"),
    },
    {
        "TITLE": "a person matches renamed effects with a star",
        "OLD": AGENT,
        "EDIT": [("send", "notify")],
        "THEN": ["run", ["match", "r", "notify#*", "--is", "send#*"], "run"],
        "WANT": goes_on(ALL_FOUR, "DONE 4"),
    },
    {
        "TITLE": "a person matches every run that stands there",
        "OLD": AGENT,
        "EDIT": [("send", "notify")],
        "THEN": ["run", ["match", "--all", "--workflow", "w", "notify#*", "--is", "send#*"], "run"],
        "WANT": goes_on(ALL_FOUR, "DONE 4", tells=["recorded for 1 run"]),
    },
    {
        "TITLE": "a person matches only the first of two",
        "OLD": AGENT,
        "EDIT": [("send", "notify")],
        "THEN": ["run", ["match", "r", "notify#1", "--is", "send#1"], "run"],
        "WANT": {**stops("notify#2"), "outbox": {"mail u0": 1, "mail u1": 1}},
    },
    {
        "TITLE": "a match that hits nothing is refused",
        "OLD": AGENT,
        "EDIT": [("send", "notify")],
        "THEN": ["run", ["match", "r", "notify#1", "--is", "mail#1"]],
        "WANT": {"nothing": True, "said": "EXIT 2", "tells": ["mail#1 hits no recorded step or effect"]},
    },
    {
        "TITLE": "step becomes an effect",
        "OLD": AGENT,
        "EDIT": [("@sf.step\n", "@sf.effect\n")],
        "WANT": stops("recorded as a step, and asked for as an effect now"),
    },
    {
        "TITLE": "plain code becomes an effect in front of executed ones",
        "OLD": AGENT,
        "EDIT": [
            ("    for n in range(4):\n", '    audit("s")\n    for n in range(4):\n'),
            ("@sf.workflow", AUDIT + "@sf.workflow"),
        ],
        "WANT": stops("was=None"),
    },
    {
        "TITLE": "effect becomes a child run",
        "OLD": MAIL,
        "EDIT": [
            ('    send("a")\n', '    sf.child(part, "c-1", "a")\n'),
            ("@sf.workflow\n", "@sf.workflow\ndef part(x: str) -> str:\n    return send(x)\n@sf.workflow\n"),
        ],
        "WANT": stops("the child run child#1"),
    },
    {
        "TITLE": "child run gets another id",
        "OLD": CHILD,
        "EDIT": [('"c-1"', '"c-2"')],
        "WANT": {**STOPS, "ran": {"part a": 1}},
    },
    {
        "TITLE": "child run gets other arguments",
        "OLD": CHILD,
        "EDIT": [('"c-1", "a"', '"c-1", "b"')],
        "WANT": {**STOPS, "ran": {"part a": 1}},
    },
    {
        "TITLE": "child run removed",
        "OLD": CHILD,
        "EDIT": [('sf.child(part, "c-1", "a")', '"a"')],
        "WANT": STOPS,
    },
    {
        "TITLE": "child run added in front",
        "OLD": CHILD,
        "EDIT": [("    a = sf", '    sf.child(part, "c-0", "o")\n    a = sf')],
        "WANT": {**STOPS, "ran": {"part a": 1}},
    },
    {
        "TITLE": "child run unchanged, code around it changed",
        "OLD": CHILD,
        "EDIT": [("    return a\n", '    return a + "!"\n')],
        "WANT": goes_on({"mail a": 1, "mail z": 1}, 'DONE "a!"', ran={"part a": 1}),
    },
    {
        "TITLE": "effect in doubt renamed, was=",
        "OLD": PAY,
        "EDIT": [("pay", "charge"), ('out(f"charge', 'out(f"pay'), ("@sf.effect\n", '@sf.effect(was="pay")\n')],
        "WANT": {"nothing": True, "said": "STOP InDoubt", "tells": ["pay#1"]},
    },
    {
        "TITLE": "effect in doubt renamed, was=, retried under its key",
        "OLD": PAY.replace("@sf.effect\n", '@sf.effect(on_crash="retry")\n').replace('out(f"pay {order}")', SAME_KEY),
        "EDIT": [
            ("def pay", "def charge"),
            ("return pay", "return charge"),
            ('"retry")', '"retry", was="pay")'),
            ("die(", "str("),
        ],
        "WANT": goes_on({"pay under a first key": 1, "pay under the same key": 1}, 'DONE "paid"'),
    },
    {
        "TITLE": "effect in doubt deleted",
        "OLD": PAY,
        "EDIT": [('    return pay("o1")', '    return "nothing"')],
        "WANT": {"nothing": True, "said": "STOP"},
    },
    {
        "TITLE": "an effect behind one in doubt that was deleted",
        "OLD": PAY,
        "EDIT": [('    return pay("o1")', '    return audit("o1")'), ("@sf.workflow", AUDIT + "@sf.workflow")],
        "WANT": stops("pay#1 is in doubt"),
    },
    {
        "TITLE": "decorator removed from an effect in doubt",
        "OLD": PAY,
        "EDIT": [("@sf.effect\ndef pay", "def pay")],
        "WANT": stops("a plain function now", "put @sf.effect back on pay"),
    },
    {
        "TITLE": "decorator removed from an effect that had failed: nothing was done, and a replay would do it",
        "OLD": REFUSED,
        "EDIT": [("@sf.effect\ndef pay", "def pay")],
        "NEW_FILES": {"open": ""},
        "WANT": stops("pay#1 was tried as an effect, and pay in", "a plain function now"),
    },
    {
        "TITLE": "decorator removed from an effect that a person said did not happen: nobody claims it was executed",
        "OLD": PAY,
        "EDIT": [("@sf.effect\ndef pay", "def pay")],
        "THEN": [["settle", "r", "pay#1", "--not-happened"], "run"],
        "WANT": stops("pay#1 was tried as an effect, and pay in", "a plain function now"),
    },
    {
        "TITLE": "effect becomes a workflow that is called as a function",
        "OLD": MAIL,
        "EDIT": [("@sf.effect\ndef send", "@sf.workflow\ndef send")],
        "WANT": stops("send#1 was executed as an effect, and send in", "is a workflow now"),
    },
    {
        "TITLE": "workflow of the name that an effect has by name=, which is renamed with was=",
        "OLD": NAMED_ALIKE,
        "EDIT": [('@sf.effect(name="pay")', '@sf.effect(name="charge", was="pay")')],
        "WANT": goes_on({"pay o1": 1, "pay o2": 1}, "DONE 2"),
    },
    {
        "TITLE": "workflow of the name that an effect has by name=, which is renamed",
        "OLD": NAMED_ALIKE,
        "EDIT": [('@sf.effect(name="pay")', '@sf.effect(name="charge")')],
        "WANT": stops("asks for the effect charge#1", '@sf.effect(was="pay") on charge'),
    },
    {
        "TITLE": "decorator removed, and sf.removed",
        "OLD": MAIL,
        "EDIT": [("@sf.effect\ndef book", "def book"), ("@sf.workflow", 'sf.removed("book")\n@sf.workflow')],
        "WANT": stops("a plain function now"),
    },
    {
        "TITLE": "renamed with was=, and the old name is a function that it calls",
        "OLD": SENDS,
        "EDIT": [
            ("send(", "notify("),
            ("@sf.effect\ndef notify(to: str) -> str:\n    out", "def send(to):\n    out"),
            (
                '    return "ok"\n',
                '    return "ok"\n@sf.effect(was="send")\ndef notify(to: str) -> str:\n    return send(to)\n',
            ),
        ],
        "WANT": {"said": "DONE 3", "outbox": {"mail a": 1, "mail b": 1, "mail c": 1}},
    },
    {
        "TITLE": "renamed with was=, and another module has a function of the old name",
        "OLD": "import lib\n" + SENDS,
        "OLD_FILES": {"lib.py": "def send(to):\n    return to\n"},
        "EDIT": [("send(", "notify("), ("@sf.effect\n", '@sf.effect(was="send")\n')],
        "WANT": {"said": "DONE 3", "outbox": {"mail a": 1, "mail b": 1, "mail c": 1}},
    },
    {
        "TITLE": "renamed, and another module has a function of the old name",
        "OLD": "import lib\n" + SENDS,
        "OLD_FILES": {"lib.py": "def send(to):\n    return to\n"},
        "EDIT": [("send(", "notify(")],
        "WANT": {
            "said": "STOP CodeChanged",
            "tells": ['@sf.effect(was="send") on notify'],
            "outbox": {"mail a": 1, "mail b": 1},
        },
    },
    {
        "TITLE": "effects that are made of plain functions while the workflow runs",
        "OLD": TOOLS,
        "EDIT": [("return 3", "return 4")],
        "WANT": {"said": "DONE 4", "outbox": {"mail a": 1, "mail b": 1, "mail c": 1}},
    },
    {
        "TITLE": "decorator removed from a method",
        "OLD": METHOD,
        "EDIT": [('    @sf.effect(ignore="self")\n', "")],
        "WANT": stops("Bank.pay in app is a plain function now", "put @sf.effect back on Bank.pay"),
        "BLOCKING": BLOCKING_METHODS,
    },
    {
        "TITLE": "decorator removed from a static method",
        "OLD": METHOD,
        "EDIT": [("    @sf.effect\n", "")],
        "WANT": stops("Bank.book in app is a plain function now"),
        "BLOCKING": BLOCKING_METHODS,
    },
    {
        "TITLE": "decorator removed from a method of another module, with a name of its own",
        "OLD": THERE,
        "OLD_FILES": {"bank.py": ELSEWHERE},
        "NEW_FILES": {"bank.py": ELSEWHERE.replace('    @sf.effect(ignore="self", name="charge")\n', "")},
        "WANT": stops("Bank.pay in bank is a plain function now", 'put @sf.effect(name="charge") back on Bank.pay'),
        "BLOCKING": BLOCKING_METHODS,
    },
    {
        "TITLE": "decorator with a name of its own removed",
        "OLD": PAY.replace("@sf.effect\n", '@sf.effect(name="charge")\n'),
        "EDIT": [('@sf.effect(name="charge")\n', "")],
        "WANT": stops("charge#1 was executed as an effect, and pay in app is a plain function now"),
    },
    {
        "TITLE": "decorator removed from a function inside the workflow",
        "OLD": INSIDE,
        "EDIT": [('    @sf.effect(name="charge")\n', "")],
        "WANT": stops("w.<locals>.pay in app is a plain function now"),
    },
    {
        "TITLE": "effects inside the workflow, as they were",
        "OLD": INSIDE,
        "WANT": goes_on({"pay o1": 1, "book o1": 1}, "DONE 2"),
    },
    {
        "TITLE": "effects inside the workflow that are made without a decorator, as they were",
        "OLD": INSIDE.replace('    @sf.effect(name="charge")\n', "").replace(
            "    pay(", '    pay = sf.effect(name="charge")(pay)\n    pay('
        ),
        "WANT": goes_on({"pay o1": 1, "book o1": 1}, "DONE 2"),
        "BLOCKING": "an effect that is made without a decorator is not translated",
    },
    {
        "TITLE": "an effect that is made of a function which stays plain",
        "OLD": MADE_OF,
        "WANT": goes_on(ALL_THREE, "DONE 3"),
        "BLOCKING": "an effect that is made without a decorator is not translated",
    },
    {
        "TITLE": "an effect that was a method moved out of it, and called by it",
        "OLD": METHOD,
        "EDIT": [
            (
                "class Bank",
                '@sf.effect\ndef pay(order: str) -> str:\n    out(f"pay {order}")\n    return "paid"\nclass Bank',
            ),
            ('    @sf.effect(ignore="self")\n', ""),
            ('        out(f"pay {order}")\n        return "paid"\n', "        return pay(order)\n"),
        ],
        "WANT": goes_on({"pay o1": 1, "book o1": 1}, "DONE 2"),
        "BLOCKING": BLOCKING_METHODS,
    },
    {
        "TITLE": "workflow of a child run that has not ended renamed, was=",
        "OLD": PARTS,
        "EDIT": RENAMED_PART_WAS,
        "WANT": goes_on({"mail a": 1, "mail z": 1}, 'DONE "a"'),
        "DIRECT": IN_ITS_PARENT,
    },
    {
        "TITLE": "workflow of a child run that has ended renamed, was=",
        "OLD": CHILD,
        "EDIT": RENAMED_PART_WAS,
        "WANT": goes_on({"mail a": 1, "mail z": 1}, 'DONE "a"', ran={"part a": 1}),
    },
    {
        "TITLE": "workflow of a child run that has not ended renamed",
        "OLD": PARTS,
        "EDIT": RENAMED_PART,
        "WANT": stops('@sf.workflow(was="part") on piece', "surefoot match r 'child#1' --new"),
        "DIRECT": IN_ITS_PARENT,
    },
    {
        "TITLE": "child run that has not ended asked for with other arguments, and kept",
        "OLD": PARTS,
        "EDIT": [('"c-1", "a"', '"c-1", "b"')],
        "THEN": ["run", ["match", "r", "child#1", "--keep"], "run"],
        "WANT": goes_on({"mail a": 1, "mail z": 1}, 'DONE "a"', tells=["surefoot match r 'child#1' --keep"]),
        "DIRECT": IN_ITS_PARENT,
    },
    {
        "TITLE": "child run that has not ended asked for by another id, and kept",
        "OLD": PARTS,
        "EDIT": [('"c-1", "a"', '"c-2", "a"')],
        "THEN": ["run", ["match", "r", "child#1", "--keep"], "run"],
        "WANT": goes_on({"mail a": 1, "mail z": 1}, 'DONE "a"'),
        "DIRECT": IN_ITS_PARENT,
    },
    {
        "TITLE": "effect wrapped by a decorator of the user's own, below ours",
        "OLD": MAIL,
        "EDIT": [
            ("@sf.effect\ndef send", "@sf.effect\n@loud\ndef send"),
            (
                "@sf.effect\n@loud",
                "import functools\ndef loud(fn):\n    @functools.wraps(fn)\n    def inner(*a, **k): return fn(*a, **k)\n    return inner\n@sf.effect\n@loud",
            ),
        ],
        "WANT": goes_on(ALL_THREE, "DONE 3"),
        "BLOCKING": "the decorator of its own is written for blocking functions",
    },
    {
        "TITLE": "effect wrapped in a saga",
        "OLD": MAIL,
        "EDIT": [('    send("a")\n', "    with sf.saga():\n        send('a')\n")],
        "WANT": goes_on(ALL_THREE, "DONE 3"),
    },
    {
        "TITLE": "effect gets an undo while the run is unfinished",
        "OLD": MAIL.replace(
            '    send("a")\n    book("b")\n    die("x")\n    send("c")\n    return 3\n',
            '    try:\n        with sf.saga():\n            book("b")\n            die("x")\n            raise LookupError\n    except LookupError: return "undone"\n',
        ),
        "EDIT": [("@sf.workflow", '@book.undo\ndef _(x: str, result: str) -> None: out(f"unbook {x}")\n@sf.workflow')],
        "WANT": goes_on({"book b": 1, "unbook b": 1}, 'DONE "undone"'),
    },
    {
        "TITLE": "new step hides the rest, and the effect behind it was renamed",
        "OLD": MAIL,
        "EDIT": [
            ("send", "notify"),
            ('    notify("a")\n', '    extra()\n    notify("a")\n'),
            ("@sf.workflow", '@sf.step\ndef extra() -> int:\n    ran("extra")\n    return 1\n@sf.workflow'),
        ],
        "WANT": {**STOPS, "ran": {"extra": 1}},
    },
    {
        "TITLE": "sf.sleep in front, and the effect behind it was renamed",
        "OLD": MAIL,
        "EDIT": [("send", "notify"), ('    notify("a")\n', '    sf.sleep("0.05s")\n    notify("a")\n')],
        "WANT": STOPS,
    },
    {
        "TITLE": "three at a time, one of them renamed by a condition",
        "OLD": MAP,
        "EDIT": [
            ("concurrency=1", "concurrency=3"),
            ('    send(f"u{n}")\n', '    if n == 0: audit("x")\n    else: send(f"u{n}")\n'),
            ("def handle", AUDIT + "def handle"),
        ],
        "WANT": STOPS,
    },
    {
        "TITLE": "only the last line changed, run twice",
        "OLD": AGENT,
        "EDIT": [("    return 4\n", "    return 5\n")],
        "THEN": ["run", "run"],
        "WANT": goes_on(ALL_FOUR, "DONE 5"),
    },
    {
        "TITLE": "a branch has found changed code: another does not retry its effect in doubt",
        "OLD": TWO,
        "EDIT": [*HIDDEN_RENAME, ("@sf.effect\ndef pay", '@sf.effect(on_crash="retry")\ndef pay')],
        "WANT": STOPS,
    },
    {
        "TITLE": "a branch has found changed code: another does not run what its check has not found",
        "OLD": TWO,
        "EDIT": [
            *HIDDEN_RENAME,
            (
                "@sf.workflow\ndef part",
                "@pay.check\ndef _(order: str): return sf.not_happened()\n@sf.workflow\ndef part",
            ),
            ("@sf.effect\ndef pay", '@sf.effect(in_flight="0s")\ndef pay'),
        ],
        "WANT": STOPS,
    },
    {
        "TITLE": "a branch has found changed code: another does not run what a person says did not happen",
        "OLD": TWO,
        "EDIT": HIDDEN_RENAME,
        "THEN": [["settle", "r", "[1]/pay#1", "--not-happened"], "run"],
        "WANT": STOPS,
    },
    {
        "TITLE": "a branch has found changed code: another does not begin what is declared new",
        "OLD": TWO,
        "EDIT": [
            *HIDDEN_RENAME,
            ('return pay("o")', 'return (audit("n"), pay("o"))'),
            ("@sf.workflow\ndef w", AUDIT.replace("@sf.effect", "@sf.effect(was=None)") + "@sf.workflow\ndef w"),
        ],
        "WANT": STOPS,
    },
    {
        "TITLE": "a branch has found changed code: another does not go on with its child",
        "DIRECT": "a worker takes the child up by itself: it is a run of its own",
        "OLD": TWO.replace('return pay("o")', 'return sf.child(part, "c", "o")'),
        "EDIT": HIDDEN_RENAME,
        "WANT": STOPS,
    },
    {
        "TITLE": "the branch that found changed code comes last: what is retried was begun before",
        "OLD": TWO,
        "EDIT": [
            *HIDDEN_RENAME,
            ("@sf.effect\ndef pay", '@sf.effect(on_crash="retry")\ndef pay'),
            ("range(2)", "(1, 0)"),
            ("die(", "str("),
        ],
        "MAY_REPEAT": True,
        "WANT": {"said": "STOP CodeChanged", "outbox": {"mail a": 1, "pay o": 2}},
    },
    {
        "TITLE": "a person matches a moved effect, and the same effect is called behind it",
        "OLD": SENDS,
        "EDIT": [('    send("a")\n', '    with sf.scope("eu"): send("a")\n')],
        "THEN": ["run", ["match", "r", "[eu]/send#1", "--is", "send#1"], "run"],
        "WANT": {"said": "DONE 3", "outbox": {"mail a": 1, "mail b": 1, "mail c": 1}},
    },
    {
        "TITLE": "a person says that a moved effect is the recorded one, which the code makes as before",
        "DIRECT": "a worker logs it, and tries again",
        "OLD": SENDS,
        "EDIT": [('    send("a")\n', '    with sf.scope("eu"): send("a")\n    send("a")\n')],
        "THEN": ["run", ["match", "r", "[eu]/send#1", "--is", "send#1"], "run"],
        "WANT": {"said": "FAILED UsageError", "outbox": {"mail a": 1, "mail b": 1}},
    },
    {
        "TITLE": "branches of sf.gather with one effect swapped, and matched",
        "OLD": SENDS.replace('    send("a")\n    send("b")\n', '    sf.gather(lambda: send("a"), lambda: send("b"))\n'),
        "EDIT": [('lambda: send("a"), lambda: send("b")', 'lambda: send("b"), lambda: send("a")')],
        "THEN": ["run", ["match", "r", "gather#1.0/send#1", "--is", "gather#1.1/send#1"], "run"],
        "WANT": {"said": "DONE 3", "outbox": {"mail a": 1, "mail b": 1, "mail c": 1}},
    },
]
