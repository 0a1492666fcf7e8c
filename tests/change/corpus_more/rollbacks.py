"""Two deploys one after the other, the second of which may put things back (CHANGE.md §2 and §3).

The old code dies at `x`, what the first deploy brings dies at `y`, and what the second one brings goes on.
"""

from textwrap import indent

from tests.change.corpus_more.programs import ALL_FIVE, CHAT, goes_on

VERSION = """
def version():
    n = int(open("version").read()) + 1 if os.path.exists("version") else 1
    with open("version", "w") as f: f.write(str(n))
    return n
VERSION = version()
if VERSION > 2: os.environ.pop("DIE", None)
"""
"""How often the code was loaded by now."""
SENDS = """
@sf.effect
def send(to: str) -> str:
    out(f"mail {to}")
    return "ok"
@sf.workflow
def w():
    for n in range(5):
        send(f"u{n}")
        if n == 1: die("x")
        if n == 3: die("y")
    return 5
"""
SENT = {f"mail u{n}": 1 for n in range(4)}
NOTIFIES = SENDS.replace("send", "notify").replace("@sf.effect", '@sf.effect(was="send")')
AUDITS = SENDS.replace("    for n", '    audit("s")\n    for n').replace(
    "@sf.workflow", '@sf.effect(was=None)\ndef audit(x: str) -> str:\n    out(f"audit {x}")\n    return x\n@sf.workflow'
)
SCOPED = SENDS.replace("        send(", '        with sf.scope("eu", was=""): send(')
ASKS = (
    CHAT.replace("range(4)", "range(5)")
    .replace('        if turn == 2: die("x")\n', '        if turn == 2: die("x")\n        if turn == 4: die("y")\n')
    .replace('return f"say {len(messages)}"', 'return f"say {len(messages)} {os.getpid()}"')
    .replace('out(f"tool {text}")', 'out(f"tool {text.split()[1]}")')
)
"""It dies twice between an answer and its tool, which is where a deploy lets go of an agent. Asked again, it says
something else.
"""
TOOLS = {f"tool {n}": 1 for n in (2, 4, 6, 8, 10)}
GOOD, BETTER = ASKS.replace("a clerk", "a good clerk"), ASKS.replace("a clerk", "a better clerk")
COUNTS = GOOD.replace("        answer = ", "        count(turn)\n        answer = ").replace(
    "@sf.workflow", "@sf.step\ndef count(n: int) -> int: return n\n@sf.workflow"
)


def deploys(title: str, first: str, second: str, want: dict[str, object], old: str = SENDS) -> dict[str, object]:
    versions = (f"if VERSION == 2:\n{indent(first, '    ')}", f"else:\n{indent(second, '    ')}")
    return {
        "TITLE": title,
        "OLD": VERSION + old,
        "NEW": VERSION + "".join(versions),
        "NEW_ENV": {"DIE": "y"},
        "THEN": ["run", "run"],
        "WANT": want,
    }


def stands(*tells: str, **more: int) -> dict[str, object]:
    return {"said": "STOP CodeChanged", "outbox": {**SENT, **more}, "tells": list(tells)}


CASES = [
    deploys("renamed with was=, and the old name again", NOTIFIES, SENDS, stands('@sf.effect(was="notify") on send')),
    deploys(
        "renamed with was=, and the old name again with was=",
        NOTIFIES,
        SENDS.replace("@sf.effect", '@sf.effect(was="notify")'),
        goes_on(ALL_FIVE, "DONE 5"),
    ),
    deploys(
        "renamed with was=, and was= dropped too early", NOTIFIES, SENDS.replace("send", "notify"), stands("send#1")
    ),
    deploys(
        "a new effect in front, and taken out again",
        AUDITS,
        SENDS,
        stands("surefoot match r 'audit#1' --keep", **{"audit s": 1}),
    ),
    deploys(
        "a new effect in front, and taken out with sf.removed",
        AUDITS,
        f'\nsf.removed("audit")\n{SENDS}',
        goes_on({"audit s": 1, **ALL_FIVE}, "DONE 5"),
    ),
    deploys(
        "a new effect in front, and was=None dropped",
        AUDITS,
        AUDITS.replace("(was=None)", ""),
        goes_on({"audit s": 1, **ALL_FIVE}, "DONE 5"),
    ),
    deploys("moved into a scope with was=, and out again", SCOPED, SENDS, stands("[eu]/send#3")),
    deploys("moved into a scope with was=, and left there", SCOPED, SCOPED, goes_on(ALL_FIVE, "DONE 5")),
    deploys("agent: prompt reworded twice", GOOD, BETTER, goes_on(TOOLS, "DONE 12"), ASKS),
    deploys("agent: prompt reworded, and back", GOOD, ASKS, goes_on(TOOLS, "DONE 12"), ASKS),
    deploys(
        "agent: prompt reworded, then again with noted=",
        GOOD,
        BETTER.replace("@sf.step", '@sf.step(noted="messages")'),
        goes_on(TOOLS, "DONE 12"),
        ASKS,
    ),
    deploys("agent: prompt reworded and a step added, and both back", COUNTS, ASKS, goes_on(TOOLS, "DONE 12"), ASKS),
]
