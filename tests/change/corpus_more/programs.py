"""The old code of most cases: small programs that are killed half-way, as the corpus has them."""

from tests.change.forms import CORPUS, load


def old_code(number: str) -> str:
    (path,) = CORPUS.glob(f"{number}_*.py")
    return str(load(path).CASE["OLD"])


AGENT = old_code("004")
ALL_FOUR = {"mail u0": 1, "mail u1": 1, "mail u2": 1, "mail u3": 1}
MAIL = old_code("008")
ALL_THREE = {"mail a": 1, "book b": 1, "mail c": 1}
MAP = old_code("014")
ALL_FIVE = {**ALL_FOUR, "mail u4": 1}
PAY = old_code("040")
READ = old_code("048")
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
