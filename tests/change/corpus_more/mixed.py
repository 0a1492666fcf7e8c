"""Further changes, one after the other and several at once: names, colours of values, policies, companions."""

from tests.change.corpus_more.effects import TWO
from tests.change.corpus_more.endings import SAGA
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
from tests.change.corpus_more.steps import BOTH, NOTES


def passed(title: str, before: str, now: str, want: dict[str, object], kind: str = "dict") -> dict[str, object]:
    """The same effect, with an argument that is written in another way."""
    old = NOTES.replace("stamp: str", f"stamp: {kind}").replace("STAMP", before)
    return {"TITLE": title, "OLD": old, "EDIT": [(before, now)], "WANT": want}


EVENT = """
@sf.effect
def send(to: str) -> str:
    out(f"mail {to}")
    return "ok"
@sf.workflow
def w():
    send("a")
    if os.environ.get("DIE") == "x": sf.send_event(sf.run_id(), "go", 1)
    found = sf.wait_event("go", timeout="1h")
    send("b")
    die("x")
    return found
"""
ANOTHER_EVENT = ('wait_event("go", timeout="1h")', 'wait_event("start")')
SENT_ONCE = ('if os.environ.get("DIE") == "x": sf.send', "sf.send")
OPEN_WAIT = """
@sf.effect
def send(to: str) -> str:
    out(f"mail {to}")
    return "ok"
def wait():
    try: return sf.wait_event("go")
    finally: die("x")
@sf.workflow
def w():
    send("a")
    return wait()
"""
CASES = [
    {
        "TITLE": "event that was received renamed",
        "OLD": EVENT,
        "EDIT": [SENT_ONCE, ANOTHER_EVENT],
        "WANT": stops("recorded: waiting for event 'go'", "surefoot match r 'wait_event#1' --keep"),
    },
    {
        "TITLE": "event that was received renamed, and kept",
        "OLD": EVENT,
        "EDIT": [SENT_ONCE, ANOTHER_EVENT],
        "THEN": ["run", ["match", "r", "wait_event#1", "--keep"], "run"],
        "WANT": goes_on({"mail a": 1, "mail b": 1}, "DONE 1"),
    },
    {
        "TITLE": "event that was received renamed: a wait is kept, and nothing else can be said of it",
        "OLD": EVENT,
        "EDIT": [SENT_ONCE, ANOTHER_EVENT],
        "THEN": ["run", ["match", "r", "wait_event#1", "--rerun"], "run"],
        "WANT": stops("wait_event#1 hits no recorded step or effect"),
    },
    {
        "TITLE": "event that has not come renamed",
        "OLD": OPEN_WAIT,
        "EDIT": [
            ('wait_event("go")', 'wait_event("start")'),
            ("    return wait", '    sf.send_event(sf.run_id(), "start", 2)\n    return wait'),
        ],
        "WANT": goes_on({"mail a": 1}, "DONE 2"),
    },
    {
        "TITLE": "event that has not come renamed, and waited for by its new name",
        "OLD": OPEN_WAIT,
        "EDIT": [('wait_event("go")', 'wait_event("start")')],
        "WANT": {"nothing": True, "said": "STOP WaitingForAnswer", "tells": ["waiting for event 'start'"]},
    },
    passed("a dict with its keys in another order", '{"a": 1, "b": 2}', '{"b": 2, "a": 1}', goes_on(BOTH, "DONE 2")),
    passed("a set written in another order", '{"x", "y"}', '{"y", "x"}', goes_on(BOTH, "DONE 2"), "set"),
    passed("a whole number becomes a float", "{1: 1}", "{1: 1.0}", STOPS),
    passed("a list becomes a tuple", '["x"]', '("x",)', STOPS, "list"),
    passed("None becomes nothing", '{"a": None}', "{}", stops("stamp.a: null -> not there")),
    {
        "TITLE": "effect: parameter removed",
        "OLD": NOTES.replace("STAMP", '"one"'),
        "EDIT": [(", stamp: str", ""), (', "one"', "")],
        "WANT": stops('stamp: "one" -> not there'),
    },
    {
        "TITLE": "effect gets name= and another function name",
        "OLD": MAIL,
        "EDIT": [
            ("send(", "tell("),
            ("@sf.effect\ndef tell", '@sf.effect(name="send")\ndef tell'),
        ],
        "WANT": goes_on(ALL_THREE, "DONE 3"),
    },
    {
        "TITLE": "mapped effect renamed with was=, 3 at a time",
        "OLD": MAP,
        "EDIT": [("send", "notify"), ("@sf.effect\n", '@sf.effect(was="send")\n'), ("concurrency=1", "concurrency=3")],
        "WANT": goes_on(ALL_FIVE, "DONE 5"),
    },
    {
        "TITLE": "mapped effect renamed, a person matches all with stars",
        "OLD": MAP,
        "EDIT": [("send", "notify")],
        "THEN": ["run", ["match", "r", "*notify#*", "--is", "*send#*"], "run"],
        "WANT": goes_on(ALL_FIVE, "DONE 5"),
    },
    {
        "TITLE": "mapped effect renamed and moved into a scope, both declared",
        "OLD": MAP,
        "EDIT": [
            ("send", "notify"),
            ("@sf.effect\n", '@sf.effect(was="send")\n'),
            ('    notify(f"u{n}")\n', '    with sf.scope("mail", was=""): notify(f"u{n}")\n'),
        ],
        "WANT": goes_on(ALL_FIVE, "DONE 5"),
    },
    {
        "TITLE": "effect gets a check while it is in doubt: it happened",
        "OLD": PAY,
        "EDIT": [("@sf.workflow", '@pay.check\ndef _(order: str): return sf.happened("found")\n@sf.workflow')],
        "WANT": goes_on({"pay o1": 1}, 'DONE "found"'),
    },
    {
        "TITLE": "on_crash changed while in doubt: ask to fail",
        "OLD": PAY,
        "EDIT": [("@sf.effect\n", '@sf.effect(on_crash="fail")\n')],
        "WANT": {"nothing": True, "said": "FAILED"},
    },
    {
        "TITLE": "on_crash changed while in doubt: retry to ask",
        "OLD": PAY.replace("@sf.effect", '@sf.effect(on_crash="retry")'),
        "EDIT": [('@sf.effect(on_crash="retry")', "@sf.effect")],
        "WANT": {"nothing": True, "said": "STOP InDoubt"},
    },
    {
        "TITLE": "approve=True added: what was executed is not asked about, what follows is",
        "OLD": MAIL,
        "EDIT": [("@sf.effect\ndef send", "@sf.effect(approve=True)\ndef send")],
        "WANT": {"nothing": True, "said": "STOP WaitingForAnswer", "tells": ["send#2"]},
    },
    {
        "TITLE": "undo taken away while the run is unfinished",
        "OLD": SAGA,
        "EDIT": [('@book.undo\ndef _(x: str, result: str) -> None: out(f"unbook {x}")\n', "")],
        "WANT": goes_on({"book a": 1, "book b": 1}, 'DONE "undone"', tells=["book#1"]),
    },
    {
        "TITLE": "timeout= added to an effect while it is in doubt",
        "OLD": PAY,
        "EDIT": [("@sf.effect\n", '@sf.effect(timeout="5s")\n')],
        "WANT": {"nothing": True, "said": "STOP InDoubt"},
    },
    {
        "TITLE": "workflow gets a required parameter",
        "OLD": MAIL,
        "EDIT": [("def w():", "def w(n: int):")],
        "NEW_ENV": {"ARGS": "[1]"},
        "WANT": {"nothing": True, "said": "FAILED RunConflict"},
    },
    {
        "TITLE": "effect renamed twice in two deploys, each with was=",
        "OLD": AGENT,
        "EDIT": [("send", "notify"), ("@sf.effect\n", '@sf.effect(was=("tell", "send"))\n'), ("think(n)", "think(n)")],
        "WANT": goes_on(ALL_FOUR, "DONE 4"),
    },
    {
        "TITLE": "everything at once: renamed, moved, a step in front, a comment, another default",
        "OLD": MAIL,
        "EDIT": [
            ("send", "notify"),
            ("@sf.effect\ndef notify(to: str)", '@sf.effect(was="send")\ndef notify(to: str, cc: str = "none")'),
            ('    notify("a")\n', '    extra()  # first\n    with sf.scope("eu", was=""): notify("a")\n'),
            ("@sf.workflow", '@sf.step\ndef extra() -> int:\n    ran("extra")\n    return 1\n@sf.workflow'),
        ],
        "WANT": goes_on(ALL_THREE, "DONE 3", ran={"extra": 1}),
    },
    {
        "TITLE": "an effect in doubt in one branch stops nobody else",
        "OLD": TWO,
        "EDIT": [
            ("range(2)", "range(3)"),
            ('    if n == 0: return send("a")\n', '    if n != 1: return send("abc"[n])\n'),
        ],
        "WANT": {"said": "STOP InDoubt", "outbox": {"mail a": 1, "mail c": 1, "pay o": 1}},
    },
]
