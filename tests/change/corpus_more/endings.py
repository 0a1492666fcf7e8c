"""Exceptions of effects, classes that changed, and runs that failed, were parked or timed out (CHANGE.md §4 to §6)."""

from tests.change.corpus_more.programs import MAIL, PAY, goes_on, old_code

RAISES = """
IMPORT
@sf.effect
def pay(order: str) -> str:
    out('pay')
    raise ERROR
@sf.workflow
def w():
    return pay("o1")
"""
FAILED = {"outbox": {"pay": 1}}


def raising(
    title: str, error: str, said: str, *, imports: str = "", decorated: str = "", **more: object
) -> dict[str, object]:
    """An effect acts and then raises; the same code is run again."""
    old = RAISES.replace("IMPORT", imports).replace("ERROR", error)
    if decorated:
        old = old.replace("@sf.effect\n", f"@sf.effect({decorated})\n")
    return {"TITLE": title, "OLD": old, "OLD_ENV": {}, "WANT": {"outbox": {"pay": 1}, "said": said, **more}}


STATUS = "class R: status_code = {status}"
HTTPX = {
    "httpx.py": "class HTTPError(Exception): ...\nclass HTTPStatusError(HTTPError):\n"
    "    def __init__(self, m, status):\n        super().__init__(m)\n"
    "        self.response = type('R', (), {'status_code': status})()\n"
}
AIOHTTP = {
    "aiohttp.py": "class ClientError(Exception): ...\nclass ClientConnectorError(ClientError): ...\n"
    "class ServerDisconnectedError(ClientError): ...\n"
}
BOTOCORE = {
    "botocore/__init__.py": "",
    "botocore/exceptions.py": "class BotoCoreError(Exception): ...\nclass ParamValidationError(BotoCoreError): ...\n"
    "class EndpointConnectionError(BotoCoreError): ...\n",
}
ANSWER = old_code("066")
SDK = "from dataclasses import dataclass\n@dataclass\nclass Answer:\n    text: str\n"
OWN = """
@dataclass
class Order:
    id: str
@sf.step
def read() -> Order: return Order("o1")
@sf.effect
def send(order: Order) -> str:
    out(f"sent {order.id}")
    return "ok"
@sf.workflow
def w():
    order = read()
    send(order)
    die("x")
    return order.id
"""
TRIES = """
@sf.effect(retries=3, not_done=LookupError, backoff=sf.Backoff(first="0.01s"))
def pay(order: str) -> str:
    ran("try")
    if len(open("ran.txt").readlines()) < 3: raise sf.NotDone("busy")
    out("pay")
    return "paid"
@sf.workflow
def w(): return pay("o1")
"""
SLOW = """
import asyncio
@sf.step
async def slow() -> int:
    await asyncio.sleep(0 if os.environ.get("QUICK") else 0.6)
    return 1
@sf.effect
async def note(x: str) -> str:
    out(x)
    return x
@sf.workflow
async def w():
    try:
        async with LIMIT: await slow()
        way = "in time"
    except TimeoutError: way = "late"
    await note(way)
    die("x")
    return way
"""
GROUP = """
import asyncio
@sf.step
async def fails() -> int: raise LookupError("no")
@sf.step
async def slow() -> int:
    await asyncio.sleep(0 if os.environ.get("QUICK") else 0.4)
    return 1
async def after():
    with sf.scope("a"):
        await slow()
        await note("behind")
async def failing():
    with sf.scope("b"): await fails()
@sf.effect
async def note(x: str) -> str:
    out(x)
    return x
@sf.workflow
async def w():
    way = "all"
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(after())
            group.create_task(failing())
    except* LookupError: way = "failed"
    with sf.scope("c"): await note(way)
    die("x")
    return way
"""
PARKED = """
@sf.step
def ask() -> str:
    ran("ask")
    if not os.path.exists("open"):
        open("open", "w").close()
        raise sf.Unavailable("the bank is closed", retry_after="0.05s")
    return "asked"
@sf.workflow
def w():
    asked = ask()
    die("x")
    return asked
"""
SAGA = old_code("096")
SEGMENTS = """
@sf.effect
def send(to: str) -> str:
    out(f"mail {to}")
    return "ok"
@sf.workflow
def w(n: int = 0):
    send(f"u{n}")
    if n < 2: sf.continue_as_new(n + 1)
    die("x")
    send("end")
    return n
"""

CASES = [
    raising("httpx answers 402", "httpx.HTTPStatusError('no', 402)", "FAILED HTTPStatusError", imports="import httpx")
    | {"OLD_FILES": HTTPX},
    raising("httpx answers 409", "httpx.HTTPStatusError('no', 409)", "STOP InDoubt", imports="import httpx")
    | {"OLD_FILES": HTTPX},
    raising("httpx answers 500", "httpx.HTTPStatusError('no', 500)", "STOP InDoubt", imports="import httpx")
    | {"OLD_FILES": HTTPX},
    raising(
        "aiohttp could not connect",
        "aiohttp.ClientConnectorError()",
        "FAILED ClientConnectorError",
        imports="import aiohttp",
    )
    | {"OLD_FILES": AIOHTTP},
    raising("aiohttp was disconnected", "aiohttp.ServerDisconnectedError()", "STOP InDoubt", imports="import aiohttp")
    | {"OLD_FILES": AIOHTTP},
    raising(
        "botocore refuses a parameter",
        "be.ParamValidationError()",
        "FAILED ParamValidationError",
        imports="import botocore.exceptions as be",
    )
    | {"OLD_FILES": BOTOCORE},
    raising(
        "botocore could not connect, after tries of its own",
        "be.EndpointConnectionError()",
        "STOP InDoubt",
        imports="import botocore.exceptions as be",
    )
    | {"OLD_FILES": BOTOCORE},
    raising("the port is closed", "ConnectionRefusedError('no')", "FAILED ConnectionRefusedError"),
    raising("the connection was reset", "ConnectionResetError('cut')", "STOP InDoubt"),
    raising(
        "a database refuses a double",
        "sqlite3.IntegrityError('UNIQUE')",
        "FAILED IntegrityError",
        imports="import sqlite3",
    ),
    raising("an exception that not_done= names", "KeyError('id')", "FAILED KeyError", decorated="not_done=KeyError"),
    raising(
        "a subclass of what not_done= names", "KeyError('id')", "FAILED KeyError", decorated="not_done=LookupError"
    ),
    raising(
        "not_done=OSError does not cover what is known as unsure",
        "ConnectionResetError('cut')",
        "STOP InDoubt",
        decorated="not_done=OSError",
    ),
    raising(
        "not_done=Exception does not cover what is known as unsure",
        "TimeoutError('slow')",
        "STOP InDoubt",
        decorated="not_done=Exception",
    ),
    raising(
        "not_done=Exception covers any other",
        "RuntimeError('x')",
        "FAILED RuntimeError",
        decorated="not_done=Exception",
    ),
    raising(
        "not_done=TimeoutError names it itself",
        "TimeoutError('slow')",
        "FAILED TimeoutError",
        decorated="not_done=TimeoutError",
    ),
    raising("not_done=() believes nobody", "ConnectionRefusedError('no')", "STOP InDoubt", decorated="not_done=()"),
    raising("not_done=() believes sf.NotDone", "sf.NotDone('no')", "FAILED NotDone", decorated="not_done=()"),
    raising("sf.Fatal is a proof", "sf.Fatal('no')", "FAILED Fatal"),
    raising("a group is as bad as its worst", "ExceptionGroup('g', [sf.NotDone('a'), KeyError('b')])", "STOP InDoubt"),
    raising(
        "a group of proofs is one",
        "ExceptionGroup('g', [sf.NotDone('a'), sf.Fatal('b')])",
        "FAILED ExceptionGroup",
    ),
    raising(
        "a group tells nothing of those that got through",
        "ExceptionGroup('g', [sf.NotDone('a'), ConnectionRefusedError('b')])",
        "STOP InDoubt",
    ),
    raising("on_crash=fail fails what is in doubt", "KeyError('id')", "FAILED", decorated='on_crash="fail"'),
    raising(
        "a KeyError after the charge tells all the ways out",
        "KeyError('id')",
        "STOP InDoubt",
        tells=[
            "run r, pay#1:",
            "raised KeyError: 'id', which does not tell whether it happened",
            "--happened",
            "did not, try again?",
            "--not-happened",
            "did not, let it fail?",
            "--failed",
            "@sf.effect(not_done=KeyError) on pay, or raise sf.NotDone",
        ],
    ),
    raising("retry_on= on an effect is refused", "KeyError('id')", "", decorated="retry_on=KeyError")
    | {"WANT": {"outbox": {}, "tells": ["not_done="]}},
    raising("not_done= that is no exception class is refused", "KeyError('id')", "", decorated="not_done='KeyError'")
    | {"WANT": {"outbox": {}, "tells": ["not_done"]}},
    raising(
        "not_done= with something among them is refused", "KeyError('id')", "", decorated="not_done=(KeyError, 404)"
    )
    | {"WANT": {"outbox": {}, "tells": ["not_done"]}},
    {
        "TITLE": "not_done= added while an effect is in doubt",
        "OLD": RAISES.replace("IMPORT", "").replace("ERROR", "KeyError('id')"),
        "OLD_ENV": {},
        "EDIT": [("@sf.effect\n", "@sf.effect(not_done=KeyError)\n")],
        "WANT": {"outbox": {"pay": 1}, "said": "STOP InDoubt"},
    },
    {
        "TITLE": "settled as failed, and caught by a saga",
        "OLD": SAGA.replace('            raise LookupError("full")', '            pay("o")').replace(
            "@sf.workflow",
            "@sf.effect\ndef pay(o: str) -> str:\n    out('pay')\n    raise LookupError('lost')\n@sf.workflow",
        ),
        "OLD_ENV": {},
        "THEN": ["run", ["settle", "r", "pay#1", "--failed"], "run"],
        "WANT": goes_on({"book a": 1, "book b": 1, "pay": 1, "unbook b": 1, "unbook a": 1}, 'DONE "undone"'),
    },
    {
        "TITLE": "arguments that do not fit prove that nothing happened",
        "OLD": PAY.replace('pay("o1")', 'pay("o1", "o2")'),
        "OLD_ENV": {},
        "WANT": {"outbox": {}, "said": "FAILED TypeError"},
    },
    {
        "TITLE": "a class of the user's own is caught the first time, in the rehearsal and on replay",
        "OLD": """
class Slow(Exception): ...
@sf.effect(not_done=Slow)
def pay() -> str: raise Slow("down")
@sf.workflow
def w():
    try: pay()
    except Slow as error: ran(f"caught {error}")
    die("x")
    return "fallback"
""",
        "WANT": {"ran": {"caught Slow: down": 3}, "said": 'DONE "fallback"'},
    },
    {
        "TITLE": "installed class dropped a field",
        "OLD": ANSWER,
        "OLD_FILES": {"site-packages/acme_sdk.py": SDK + "    tokens: int = 0\n"},
        "NEW_FILES": {"site-packages/acme_sdk.py": SDK},
        "WANT": goes_on({"sent hi": 1}, 'DONE "hi"', tells=["acme_sdk.Answer"]),
    },
    {
        "TITLE": "own class gained a field, added=",
        "OLD": OWN,
        "EDIT": [
            ("    id: str\n", '    id: str\n    currency: str = "USD"\n'),
            ("@sf.step", 'sf.register(Order, version=2, added={"currency": "EUR"})\n@sf.step'),
            ("return order.id", "return order.currency"),
        ],
        "WANT": goes_on({"sent o1": 1}, 'DONE "EUR"'),
    },
    {
        "TITLE": "own class gained a field, told what helps",
        "OLD": OWN,
        "EDIT": [("    id: str\n", '    id: str\n    currency: str = "USD"\n')],
        "WANT": {
            "nothing": True,
            "said": "STOP SchemaMismatch",
            "tells": ["sf.upcast", "sf.register(Order, version=2, added={"],
        },
    },
    {
        "TITLE": "own class moved to another module",
        "OLD": OWN,
        "EDIT": [("@dataclass\nclass Order:\n    id: str\n", "from orders import Order\n")],
        "NEW_FILES": {"orders.py": "from dataclasses import dataclass\n@dataclass\nclass Order:\n    id: str\n"},
        "WANT": {"nothing": True},
    },
    {
        "TITLE": "workflow code had the bug, mended, retried: effects once",
        "OLD": MAIL.replace('    die("x")\n', '    {}["bug"]\n'),
        "OLD_ENV": {},
        "EDIT": [('    {}["bug"]\n', "")],
        "THEN": [["runs", "retry", "r", "--failed", "--yes"], "run"],
        "WANT": goes_on({"mail a": 1, "book b": 1, "mail c": 1}, "DONE 3"),
    },
    {
        "TITLE": "workflow code had the bug, mended, and an effect renamed",
        "OLD": MAIL.replace('    die("x")\n', '    {}["bug"]\n'),
        "OLD_ENV": {},
        "EDIT": [('    {}["bug"]\n', ""), ("send", "notify")],
        "THEN": [["runs", "retry", "r", "--failed", "--yes"], "run"],
        "WANT": {"nothing": True, "said": "STOP CodeChanged"},
    },
    {
        "TITLE": "on_failure=stop: a bug is a stop that runs retry opens",
        "OLD": MAIL.replace('    die("x")\n', '    {}["bug"]\n').replace(
            "@sf.workflow", '@sf.workflow(on_failure="stop")'
        ),
        "OLD_ENV": {},
        "EDIT": [('    {}["bug"]\n', "")],
        "THEN": [["runs", "retry", "r", "--failed", "--yes"], "run"],
        "WANT": goes_on({"mail a": 1, "book b": 1, "mail c": 1}, "DONE 3"),
    },
    {
        "TITLE": "an effect that failed is retried under its key",
        "OLD": MAIL.replace(
            '    out(f"book {x}")\n',
            '    ran(sf.key())\n    if not os.path.exists("fixed"): raise sf.NotDone("full")\n    out(f"book {x}")\n',
        ).replace('    die("x")\n', ""),
        "OLD_ENV": {},
        "NEW_FILES": {"fixed": ""},
        "THEN": [["runs", "retry", "r", "--at", "book#1", "--yes"], "run"],
        "WANT": goes_on({"mail a": 1, "book b": 1, "mail c": 1}, "DONE 3"),
    },
    {
        "TITLE": "parked, then what it needs is back",
        "OLD": PARKED,
        "WANT": {"ran": {"ask": 2}, "said": 'DONE "asked"'},
    },
    {
        "TITLE": "an effect is tried again while it proves that nothing was done",
        "OLD": TRIES,
        "OLD_ENV": {},
        "WANT": {"outbox": {"pay": 1}, "ran": {"try": 3}, "said": 'DONE "paid"'},
    },
    {
        "TITLE": "sf.timeout, an effect behind it, quicker on resume",
        "OLD": SLOW.replace("LIMIT", 'sf.timeout("0.2s")'),
        "NEW_ENV": {"QUICK": "1"},
        "WANT": goes_on({"late": 1}, 'DONE "late"'),
        "ASYNC": "sf.timeout is a block of async code",
    },
    {
        "TITLE": "asyncio.timeout, an effect behind it, quicker on resume",
        "OLD": SLOW.replace("LIMIT", "asyncio.timeout(0.2)"),
        "NEW_ENV": {"QUICK": "1"},
        "WANT": goes_on({"late": 1}, 'DONE "late"'),
        "ASYNC": "asyncio.timeout is a block of async code",
    },
    {
        "TITLE": "TaskGroup: a task failed and the other was cancelled, quicker on resume",
        "OLD": GROUP,
        "NEW_ENV": {"QUICK": "1"},
        "WANT": goes_on({"failed": 1}, 'DONE "failed"'),
        "ASYNC": "asyncio.TaskGroup is a block of async code",
    },
    {
        "TITLE": "saga: effect renamed without was=",
        "OLD": SAGA,
        "EDIT": [("book(", "reserve("), ("@book", "@reserve")],
        "WANT": {"nothing": True, "said": "STOP CodeChanged"},
    },
    {
        "TITLE": "saga: the undo does something else now",
        "OLD": SAGA,
        "EDIT": [("unbook {x}", "cancel {x}")],
        "WANT": goes_on({"book a": 1, "book b": 1, "cancel a": 1, "cancel b": 1}, 'DONE "undone"'),
    },
    {
        "TITLE": "saga: killed while undoing, then the effect renamed with was=",
        "OLD": SAGA.replace('            die("x")\n', "")
        .replace('out(f"unbook {x}")', 'out(f"unbook {x}"); (die("x") if x == "b" else None)')
        .replace("@book.undo", "@book.undo"),
        "EDIT": [
            ("def book(", "def reserve("),
            ("            book(", "            reserve("),
            ("@book", "@reserve"),
            ("@sf.effect\n", "@sf.effect(was='book')\n"),
        ],
        "WANT": {"nothing": True, "said": "STOP InDoubt"},
    },
    {
        "TITLE": "only the current segment counts",
        "OLD": SEGMENTS,
        "EDIT": [('    send("end")\n', '    send("END")\n')],
        "WANT": goes_on({"mail u0": 1, "mail u1": 1, "mail u2": 1, "mail END": 1}, "DONE 2"),
    },
    {
        "TITLE": "only the current segment counts, its effect renamed",
        "OLD": SEGMENTS,
        "EDIT": [("send", "tell")],
        "WANT": {"nothing": True, "said": "STOP CodeChanged", "tells": ["has not asked for send#1"]},
    },
    {
        "TITLE": "workflow moved to another module",
        "OLD": MAIL,
        "NEW": "from flows import w, die\n",
        "NEW_FILES": {
            "flows.py": "import os\nimport surefoot as sf\ndef die(x): ...\ndef out(line):\n    with open('outbox.txt', 'a') as f: f.write(line + '\\n')\n"
            + MAIL
        },
        "WANT": {"nothing": True, "said": "STOP CodeChanged", "tells": ['@sf.workflow(was="app:w")']},
    },
    {
        "TITLE": "workflow moved to another module, was=",
        "OLD": MAIL,
        "NEW": "from flows import w, die\n",
        "NEW_FILES": {
            "flows.py": "import os\nimport surefoot as sf\ndef die(x): ...\ndef out(line):\n    with open('outbox.txt', 'a') as f: f.write(line + '\\n')\n"
            + MAIL.replace("@sf.workflow", '@sf.workflow(was="app:w")')
        },
        "WANT": goes_on({"mail a": 1, "book b": 1, "mail c": 1}, "DONE 3"),
    },
]
