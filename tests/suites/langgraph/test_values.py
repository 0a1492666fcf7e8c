"""What is saved comes back as it was, or is refused: messages, values of the user's, what LangGraph itself puts there."""

from __future__ import annotations

import copy
import dataclasses
import datetime as dt
import subprocess
import sys
import textwrap
import uuid
from pathlib import Path

import apsw
import langchain_core.messages as lc
import pytest
from langchain_core.documents import Document
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.types import Interrupt, Overwrite, Send, TimeoutPolicy

import surefoot as sf
from surefoot.adapters.langgraph import serde
from surefoot.core import values
from surefoot.langgraph import Saver
from surefoot.store.open import close_all

CONFIG = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}


def saved(saver, **channels):
    checkpoint = empty_checkpoint() | {"channel_values": channels}
    saver.put(CONFIG, checkpoint, {"source": "loop", "step": 1, "parents": {}}, {})
    return Saver(store=saver._threads._url, serde=saver.serde).get_tuple(CONFIG).checkpoint["channel_values"]


@pytest.fixture
def saver(sqlite):
    return Saver(store=sqlite)


def called():
    return lc.AIMessage(
        content=[{"type": "text", "text": "hm"}],
        tool_calls=[{"name": "pay", "args": {"cents": 5, "exact": 1.0, "sure": True}, "id": "c1", "type": "tool_call"}],
        usage_metadata={"input_tokens": 3, "output_tokens": 2, "total_tokens": 5},
        response_metadata={"model": "m"},
        id="a",
    )


MESSAGES = [
    lc.HumanMessage("hello"),
    lc.HumanMessage('é \ud83d\ude00 $5 "$6" \\', name="ann", id="h", metadata={"$": 1}),
    called(),
    lc.AIMessage("", additional_kwargs={"function_call": {"name": "f", "arguments": "{}"}}),
    lc.ToolMessage("paid", tool_call_id="c1", artifact=(1, {2, 3}), status="error"),
    lc.SystemMessage("be kind"),
    lc.RemoveMessage(id="gone"),
    lc.ChatMessage("x", role="other"),
    lc.AIMessageChunk(
        "part", tool_call_chunks=[{"name": "f", "args": "{", "id": "1", "index": 0, "type": "tool_call_chunk"}]
    ),
    Document("text", metadata={"page": 3}),
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_message_comes_back_with_the_fields_that_were_set(saver, message):
    """A field that nobody set must not be sent to a model as null the next time."""
    (found,) = saved(saver, messages=[message])["messages"]

    assert type(found) is type(message)
    assert found == message
    assert found.model_dump(exclude_unset=True) == message.model_dump(exclude_unset=True)
    assert found.__pydantic_extra__ == message.__pydantic_extra__


def test_all_messages_in_one_list_and_a_list_that_is_no_list_of_messages(saver):
    mixed = [*MESSAGES, "text", 7]

    assert saved(saver, messages=MESSAGES, mixed=mixed) == {"messages": MESSAGES, "mixed": mixed}


def test_what_was_put_into_a_default_by_hand_is_not_lost(saver):
    """pydantic does not count it as set."""
    message = lc.HumanMessage("hello")
    message.additional_kwargs["cache"] = True

    assert saved(saver, messages=[message])["messages"][0].additional_kwargs == {"cache": True}


def test_message_that_is_changed_in_place_is_saved_as_it_is_now(saver):
    """What was encoded before is remembered, by content: nodes may change the messages of their state."""
    messages = copy.deepcopy(MESSAGES)
    saved(saver, messages=messages)
    messages[0].content = "other"
    messages[2].tool_calls[0]["args"]["cents"] = 6
    messages[2].response_metadata["late"] = [1]
    messages[5].additional_kwargs["x"] = 1

    assert saved(saver, messages=messages)["messages"] == messages


def test_bytes_are_the_same_with_a_memory_and_without(saver):
    for channels in (
        MESSAGES[:3],
        MESSAGES[:6],
        ["a", "b"],
        ["a", "b", "$c", "d"],
        ["a", "b", "\ud800"],
        ["z"],
        [],
        ["z", 1],
    ):
        checkpoint = empty_checkpoint() | {"channel_values": {"c": channels}}
        found = serde.encode_checkpoint(checkpoint, saver.serde, saver._memory, ("t", ""))

        assert found == serde.encode_checkpoint(checkpoint, saver.serde, serde.Memory(), ())
        assert values.decode(found)["channel_values"]["c"] == channels


def test_journal_is_plain_json_that_anybody_can_read(saver):
    raw = serde.encode_checkpoint(
        empty_checkpoint() | {"channel_values": {"messages": [lc.HumanMessage("hi", id="h")]}},
        saver.serde,
        serde.Memory(),
        (),
    )

    assert raw.startswith(
        b'{"channel_values":{"messages":[{"$type":["langchain.HumanMessage",{"content":"hi","id":"h"}]}]},"v":'
    )


def test_plain_values_keep_their_types(saver):
    """msgpack makes lists of tuples, and text of bytes keys."""
    channels = {
        "tuple": (1, 2.5, None), "set": {1, 2}, "bytes": b"\x00", "int": 2**70, "keys": {1: "a", (2,): "b"},
        "when": dt.datetime(2026, 11, 18, tzinfo=dt.UTC), "id": uuid.uuid4(), "path": Path("a/b"), "$odd": {"$tuple": [1]},
    }  # fmt: skip

    found = saved(saver, **channels)

    assert found == channels
    assert {name: type(value) for name, value in found.items()} == {
        name: type(value) for name, value in channels.items()
    }


def test_what_langgraph_itself_saves_comes_back(saver):
    policy = TimeoutPolicy(run_timeout=5.0)
    channels = {
        "sends": [Send("node", {"x": 1}), Send("node", (1,), timeout=policy)],
        "snapshot": _DeltaSnapshot([lc.HumanMessage("x", id="h")]),
        "over": Overwrite([1]),
        "asked": (Interrupt(value={"q": 1}, id="i"),),
    }

    assert saved(saver, **channels) == channels


def test_writes_come_back_in_the_order_in_which_langgraph_applies_them(saver):
    config = saver.put(CONFIG, empty_checkpoint(), {"source": "loop", "step": 1, "parents": {}}, {})
    saver.put_writes(config, [("a", 1), ("b", 2)], "t2", "path/2")
    saver.put_writes(config, [("a", 3)], "t1", "path/1")
    saver.put_writes(config, [("a", "too late")], "t1", "path/1")
    saver.put_writes(config, [("__interrupt__", ("first",))], "t1", "path/1")
    saver.put_writes(config, [("__interrupt__", ("second",))], "t1", "path/1")
    saver.put_writes(config, [("__error__", ValueError("no"))], "t3", "path/3")

    assert saver.get_tuple(CONFIG).pending_writes == [
        ("t1", "__interrupt__", ("second",)), ("t1", "a", 3), ("t2", "a", 1), ("t2", "b", 2),
        ("t3", "__error__", "ValueError('no')"),
    ]  # fmt: skip


@dataclasses.dataclass
class Order:
    number: int


def test_class_that_nobody_registered_is_refused_with_the_line_that_helps(saver):
    """LangGraph would save it, and give back a dict one day."""
    with pytest.raises(sf.ValueRejected, match=r"channel order: .*sf\.register\(Order\)"):
        saved(saver, order=Order(1))
    assert saver.get_tuple(CONFIG) is None


def test_class_that_langgraph_was_allowed_comes_back_in_its_form(sqlite):
    saver = Saver(store=sqlite, serde=JsonPlusSerializer(allowed_msgpack_modules=[Order]))

    assert saved(saver, order=Order(1), orders=[Order(2), Order(3)]) == {
        "order": Order(1),
        "orders": [Order(2), Order(3)],
    }


def test_class_that_is_no_longer_allowed_is_no_dict(sqlite):
    saved(Saver(store=sqlite, serde=JsonPlusSerializer(allowed_msgpack_modules=[Order])), order=Order(1))

    with pytest.raises(sf.SchemaMismatch, match="something else than what was saved"):
        Saver(store=sqlite).get_tuple(CONFIG)


def test_serialiser_of_the_users_own_has_everything(sqlite, tmp_path):
    """Whoever encrypts would find the rest in plain text."""

    class Reversed:
        def encrypt(self, text):
            return "reversed", text[::-1]

        def decrypt(self, name, text):
            return text[::-1]

    saver = Saver(store=sqlite, serde=EncryptedSerializer(Reversed()))

    assert saved(saver, messages=[lc.HumanMessage("quite secret")])["messages"][0].content == "quite secret"
    assert b"quite secret" not in b"".join(path.read_bytes() for path in tmp_path.glob("threads.db*") if path.is_file())


@pytest.mark.parametrize("levels", [150, 190, 195, 220])
def test_value_that_nests_deep_can_be_loaded_if_it_could_be_saved(saver, levels):
    """Our codec has a limit, and it counts where the value stands in the checkpoint."""
    deep = []
    for _ in range(levels):
        deep = [deep]

    assert saved(saver, deep=deep)["deep"] == deep


@pytest.mark.parametrize("thread", ["a\x1fb", "a\x00", "a\nb", "\u202ex", "", "x" * 501])
def test_thread_id_that_cannot_be_shown_is_refused(saver, thread):
    """Nothing of it is read or written, and no other thread's journal can be meant."""
    config = {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}
    for attempt in (
        lambda: saver.get_tuple(config),
        lambda: list(saver.list(config)),
        lambda: saver.put(config, empty_checkpoint(), {}, {}),
        lambda: saver.put_writes(config, [("a", 1)], "t"),
        lambda: saver.delete_thread(thread),
        lambda: saver.copy_thread(thread, "x"),
    ):
        with pytest.raises(sf.UsageError, match="thread id"):
            attempt()
    assert saver._threads.names() == []


def test_config_without_a_thread_is_told_what_is_missing(saver):
    with pytest.raises(sf.UsageError, match="thread_id"):
        saver.get_tuple({"configurable": {}})


def test_number_and_uuid_are_threads_too(saver):
    number = uuid.uuid4()
    for thread in (7, number):
        saver.put({"configurable": {"thread_id": thread, "checkpoint_ns": ""}}, empty_checkpoint(), {}, {})

    assert saver._threads.names() == sorted(["7", str(number)])


def test_store_of_another_format_is_refused_and_stays_as_it_is(saver, sqlite):
    """It was written by a surefoot that knows more: `None` would start the chat over."""
    saved(saver, text="hello")
    close_all()
    path = sqlite.removeprefix("sqlite:///")
    connection = apsw.Connection(path)
    connection.execute("UPDATE meta SET value = 99 WHERE key = 'format'").fetchall()
    connection.close()

    for attempt in (
        lambda: Saver(store=sqlite).get_tuple(CONFIG),
        lambda: list(Saver(store=sqlite).list(CONFIG)),
        lambda: Saver(store=sqlite).put(CONFIG, empty_checkpoint(), {}, {}),
    ):
        with pytest.raises(sf.SchemaMismatch, match="newer"):
            attempt()


LATER = """
    import sys
    import langchain_core.messages as lc
    from langchain_core.messages import ai

    class AIMessage(ai.AIMessage):
        provider: str = "unknown"

    if sys.argv[1] == "later":
        lc.AIMessage = ai.AIMessage = AIMessage
    import surefoot as sf
    from langgraph.graph import END, START, MessagesState, StateGraph
    from langgraph.checkpoint.base import empty_checkpoint
    from surefoot.langgraph import Saver, guard
    sf.configure(store=sys.argv[2])

    @sf.step
    def ask(messages):
        print("model")
        more = {"provider": "them"} if sys.argv[1] == "later" else {}
        return lc.AIMessage("pay", id="a", tool_calls=[{"name": "pay", "args": {}, "id": "c"}], **more)

    @sf.effect
    def pay(message):
        print("pay")
        return "paid"

    def node(state):
        said = ask(state["messages"])
        paid = pay(said)
        if sys.argv[3] == "breaks":
            raise SystemExit
        return {"messages": [said, lc.ToolMessage(paid, tool_call_id="c", id="t")]}

    builder = StateGraph(MessagesState).add_node("node", node).add_edge(START, "node").add_edge("node", END)
    app = guard(builder.compile(checkpointer=Saver()))
    config = {"configurable": {"thread_id": "t"}}
    first = [lc.HumanMessage("hi", id="h"), lc.AIMessage("yes?", id="b")]
    given = {"messages": first} if sys.argv[3] == "breaks" else None
    _, before, said, _ = app.invoke(given, config, durability="sync")["messages"]
    print(sorted(before.model_fields_set), getattr(said, "provider", None), said.tool_calls[0]["name"])
"""


@pytest.mark.timeout(240)
@pytest.mark.parametrize(("before", "after"), [("now", "later"), ("later", "now")])
def test_upgrade_of_the_messages_between_crash_and_resume_repeats_nothing(tmp_path, before, after):
    """A new field of LangChain's messages: those that are on record are the same, for models, steps and effects."""
    url = f"sqlite:///{tmp_path}/threads.db"

    def process(*words):
        command = [sys.executable, "-c", textwrap.dedent(LATER), *words]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=200).stdout.splitlines()

    assert process(before, url, "breaks") == ["model", "pay"]

    provider = "them" if before == "later" else "unknown"
    assert process(after, url, "goes on") == [f"['content', 'id'] {provider} pay"]


def test_package_that_is_missing_is_named_with_the_command():
    code = """
        import importlib.metadata as m
        real = m.version
        def version(name):
            if name == "langgraph-checkpoint":
                raise m.PackageNotFoundError(name)
            return real(name)
        m.version = version
        import surefoot as sf
        try:
            import surefoot.langgraph
        except sf.UsageError as error:
            print(error)
    """
    out = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True
    ).stdout

    assert "needs langgraph-checkpoint, which is not installed" in out
    assert "pip install 'surefoot[langgraph]'" in out


def test_version_outside_of_the_tested_range_is_refused_before_anything_is_wrapped():
    code = """
        import importlib.metadata as m
        real = m.version
        m.version = lambda name: "1.9.0" if name == "langgraph" else real(name)
        import sys, surefoot as sf
        try:
            import surefoot.langgraph
        except sf.UsageError as error:
            print(error, "langgraph.checkpoint" in sys.modules)
    """
    out = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True
    ).stdout

    assert "1.9.0 is installed" in out
    assert "pip install 'surefoot[langgraph]'" in out
    assert out.strip().endswith("False")
