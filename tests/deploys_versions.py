"""An agent with tools, and fourteen deploys of a week: each is the code before with a small edit, as people make them.

Five of the edits leave out what surefoot wants to be told. A run that stops for one of them, at once or days later, says
so: by `stops` the team knows which edit it is about, and `cure` is how the stop words the question that they can answer. The
cure itself is taken from the stop.
"""

from __future__ import annotations

from dataclasses import dataclass

SDK = """
from dataclasses import dataclass

@dataclass
class Reply:
    tool: str
    text: str
"""
BASE = """
from dataclasses import dataclass

import surefoot as sf
from agentsdk import Reply
from tests import deploys_world as world

sf.configure(in_flight="0s")
SYSTEM = "You are a clerk."
MODEL = "model-1"
TOOLS = ["mail", "refund", "ticket"]


@dataclass
class Case:
    order: str
    cents: int


@sf.step
def look_up(order: str) -> Case:
    return Case(order, 100 + len(order))


@sf.step
def call_model(messages: list[dict[str, str]], model: str, tools: list[str]) -> Reply:
    return Reply(*world.answer(messages, model, tools))


@sf.effect
def note_start(order: str) -> str:
    return world.act("start", order)


@sf.effect
def send_mail(to: str, text: str) -> str:
    return world.act("mail", to, text)


@send_mail.check
def _(to, text):
    return world.found("mail")


@sf.effect(approve=True)
def refund(order: str, cents: int, currency: str = "EUR") -> str:
    return world.act("refund", order, cents, currency)


@sf.effect(on_crash="retry")
def file_ticket(order: str, text: str) -> str:
    return world.act("ticket", order, text, by_key=True)


def use(reply: Reply, case: Case) -> str:
    if reply.tool == "mail":
        return send_mail(case.order, reply.text)
    if reply.tool == "refund":
        return refund(case.order, case.cents)
    if reply.tool == "ticket":
        return file_ticket(case.order, reply.text)
    if reply.tool == "wait":
        return str(sf.wait_event("customer"))
    sf.sleep("18h")
    return "a night has passed"


@sf.workflow
def handle(order: str) -> str:
    case = look_up(order)
    note_start(order)
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": f"order {order} of {case.cents}"}]
    while True:
        reply = call_model(messages, MODEL, TOOLS)
        messages = [*messages, {"role": "assistant", "content": reply.text}]
        if reply.tool == "done":
            break
        messages = [*messages, {"role": "tool", "content": use(reply, case)}]
    send_mail(order, f"Dear customer, {order} is closed.")
    sf.wait_event("archived")
    return reply.text
"""


@dataclass(frozen=True)
class Deploy:
    what: str
    edits: tuple[tuple[str, str], ...] = ()
    sdk: tuple[tuple[str, str], ...] = ()
    stops: str = ""
    """A stop for this edit reads like this; empty: nothing may stop."""
    cure: str = ""
    rolling: bool = False
    """Old and new workers side by side."""


DEPLOYS = (
    Deploy("the prompt is reworded", (("You are a clerk.", "You are a careful clerk."),)),
    Deploy("another model", (('"model-1"', '"model-2"'),), rolling=True),
    Deploy(
        "an effect is renamed, with was=",
        (
            ("@sf.effect\ndef send_mail(", '@sf.effect(was="send_mail")\ndef notify('),
            ("@send_mail.check", "@notify.check"),
            ("return send_mail(case", "return notify(case"),
            ("    send_mail(order, f", "    notify(order, f"),
        ),
        rolling=True,
    ),
    Deploy(
        "a new step in front",
        (
            ("@sf.step\ndef look_up", "@sf.step\ndef classify(order: str) -> str:\n    return order[:1]\n\n\n@sf.step\ndef look_up"),
            ("    case = look_up(order)", "    classify(order)\n    case = look_up(order)"),
        ),
    ),
    Deploy("the SDK is upgraded", sdk=(("    text: str\n", "    text: str\n    tokens: int = 0\n"),), rolling=True),
    Deploy(
        "a new tool",
        (
            ('"ticket"]', '"ticket", "chat"]'),
            ("def use(", '@sf.effect\ndef post_chat(text: str) -> str:\n    return world.act("chat", text)\n\n\ndef use('),
            ('    if reply.tool == "wait"', '    if reply.tool == "chat":\n        return post_chat(reply.text)\n    if reply.tool == "wait"'),
        ),
    ),
    Deploy(
        "tools are called in a scope, with was=",
        stops=r"asks for the effect notify#1, .*not asked for (send_mail|notify)#",
        cure="the same, this run only?",
        edits=(
            (
                '        messages = [*messages, {"role": "tool", "content": use(reply, case)}]',
                """\
        with sf.scope("tools", was=""):
            said = use(reply, case)
        messages = [*messages, {"role": "tool", "content": said}]""",
            ),
        ),
    ),
    Deploy(
        "an effect is renamed, and was= forgotten",
        (("def file_ticket(", "def open_ticket("), ("return file_ticket(", "return open_ticket(")),
        stops=r"asks for the effect \S*open_ticket#.*not asked for .*file_ticket#", cure="the same, renamed?",
        rolling=True,
    ),
    Deploy(
        "a new effect in front of executed ones",
        (
            ("def use(", '@sf.effect\ndef audit(order: str) -> str:\n    return world.act("audit", order)\n\n\ndef use('),
            ("    classify(order)", "    audit(order)\n    classify(order)"),
        ),
        stops=r"asks for the effect audit#", cure="new?",
        rolling=True,
    ),
    Deploy("a default and a parameter's name", (('(order: str, cents: int, currency: str = "EUR")', '(order_id: str, cents: int, currency: str = "USD")'), ('act("refund", order,', 'act("refund", order_id,'))),
    Deploy(
        "a class of our own gets a field",
        (("    cents: int\n", "    cents: int\n    country: str\n"), ("Case(order, 100 + len(order))", 'Case(order, 100 + len(order), "DE")')),
        stops=r"has no field 'country'", cure="only new fields?",
    ),
    Deploy(
        "an effect is taken out",
        (("    note_start(order)\n", ""), ('@sf.effect\ndef note_start(order: str) -> str:\n    return world.act("start", order)\n\n\n', "")),
        stops=r"(has not asked|without asking) for .*note_start#", cure="gone for good?",
        rolling=True,
    ),
    Deploy("the workflow is renamed, with was=", (("@sf.workflow\ndef handle(", '@sf.workflow(was="handle")\ndef handle_case('),)),
    Deploy("the last mail is reworded", (("Dear customer", "Hello"),), stops=r"notify#\d+\b.*other arguments", cure="what was done stands?"),
)  # fmt: skip
