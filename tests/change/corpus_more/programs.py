"""The old code of most cases: small programs that are killed half-way."""

AGENT = """
@sf.step
def think(n: int) -> str:
    ran(f"think {n}")
    return f"u{n}"
@sf.effect
def send(to: str) -> str:
    out(f"mail {to}")
    return "ok"
@sf.workflow
def w():
    for n in range(4):
        send(think(n))
        if n == 1: die("x")
    return 4
"""
ALL_FOUR = {"mail u0": 1, "mail u1": 1, "mail u2": 1, "mail u3": 1}
MAIL = """
@sf.effect
def send(to: str) -> str:
    out(f"mail {to}")
    return "ok"
@sf.effect
def book(x: str) -> str:
    out(f"book {x}")
    return "ok"
@sf.workflow
def w():
    send("a")
    book("b")
    die("x")
    send("c")
    return 3
"""
ALL_THREE = {"mail a": 1, "book b": 1, "mail c": 1}
MAP = """
@sf.effect
def send(to: str) -> str:
    out(f"mail {to}")
    return "ok"
def handle(n):
    send(f"u{n}")
    if n == 2: die("x")
    return n
@sf.workflow
def w():
    return len(sf.map(handle, range(5), key=str, concurrency=1))
"""
ALL_FIVE = {**ALL_FOUR, "mail u4": 1}
PAY = """
@sf.effect
def pay(order: str) -> str:
    out(f"pay {order}")
    die("x")
    return "paid"
@sf.workflow
def w():
    return pay("o1")
"""
READ = """
PROMPT = "Read this: "
@sf.step
def read(doc: str, prompt: str) -> str:
    ran(f"read {doc}")
    return f"{doc} read"
@sf.workflow
def w():
    found = [read(doc, PROMPT + doc) for doc in ("a", "b", "c")]
    die("x")
    return len(found + [read("d", PROMPT + "d")])
"""
CHAT = """
PROMPT = "You are a clerk."
MODEL = "m-1"
TOOLS = ["mail"]
@sf.step
def call_model(messages: list, model: str, tools: list) -> str:
    ran(f"model {len(messages)}")
    return f"say {len(messages)}"
@sf.effect
def tool(text: str) -> str:
    out(f"tool {text}")
    return f"did {text}"
@sf.workflow
def w():
    messages = [{"role": "system", "content": PROMPT}, {"role": "user", "content": "do it"}]
    for turn in range(4):
        answer = call_model(messages, MODEL, TOOLS)
        messages = messages + [{"role": "assistant", "content": answer}]
        if turn == 2: die("x")
        messages = messages + [{"role": "tool", "content": tool(answer)}]
    return len(messages)
"""
TOOL_CALLS = {"tool say 2": 1, "tool say 4": 1, "tool say 6": 1, "tool say 8": 1}
KEPT = {"model 2": 1, "model 4": 1, "model 6": 1, "model 8": 1}
STOPS = {"nothing": True, "said": "STOP CodeChanged"}


def goes_on(outbox: dict[str, int], said: str, **more: object) -> dict[str, object]:
    return {"outbox": outbox, "said": said, **more}


def stops(*tells: str) -> dict[str, object]:
    return {**STOPS, "tells": list(tells)}
