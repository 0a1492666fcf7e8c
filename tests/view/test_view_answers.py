"""A model's answer is shown by what it says and asks for, not by the beginning of its JSON."""

from __future__ import annotations

import pytest

from surefoot.view import answers, timeline
from surefoot.view.answers import told

RESPONSE = {
    "output": [
        {"id": "m", "type": "message", "content": [{"type": "output_text", "text": "One moment.", "annotations": []}]},
        {"type": "function_call", "call_id": "c", "name": "charge", "arguments": "{}"},
        {"type": "function_call", "call_id": "d", "name": "mail", "arguments": "{}"},
    ],
    "usage": {"input_tokens": 812, "output_tokens": 31},
}
CHAT = {
    "choices": [
        {
            "message": {
                "role": "assistant",
                "content": "Hello",
                "tool_calls": [{"type": "function", "function": {"name": "f"}}],
            }
        }
    ],
    "usage": {"prompt_tokens": 3, "completion_tokens": 4},
}
MESSAGE = {
    "role": "assistant",
    "content": [{"type": "text", "text": "Hi"}, {"type": "tool_use", "name": "look"}],
    "usage": {},
}
PARTS = {
    "parts": [
        {"content": "hm", "part_kind": "thinking"},
        {"content": "Hi", "part_kind": "text"},
        {"tool_name": "look", "tool_call_id": "c", "part_kind": "tool-call"},
    ],
    "usage": {"input_tokens": 5, "output_tokens": 6},
    "kind": "response",
}


@pytest.mark.parametrize(
    ("value", "line"),
    [
        (RESPONSE, '"One moment."; asks for charge, mail; 812 + 31 tokens'),
        ({"type": "response.completed", "response": RESPONSE}, '"One moment."; asks for charge, mail; 812 + 31 tokens'),
        (CHAT, '"Hello"; asks for f; 3 + 4 tokens'),
        (MESSAGE, '"Hi"; asks for look'),
        (PARTS, '"Hi"; asks for look; 5 + 6 tokens'),
    ],
    ids=["responses", "stream", "chat", "messages", "pydantic_ai"],
)
def test_an_answer_of_each_api_is_told(value, line):
    assert told(value) == line


@pytest.mark.parametrize("value", [None, 3, "x", [], {}, {"output": 3}, {"output": [], "usage": {}}, {"choices": [None]},
                                   {"role": "assistant", "content": "x"}, {"output": ["x"], "usage": None},
                                   {"kind": "response", "parts": [3]}, {"kind": "response"}], ids=repr)  # fmt: skip
def test_anything_else_is_no_answer(value):
    """Recorded values are whatever users return: nothing in them may break a page."""
    assert told(value) == ""


def test_the_story_of_a_run_tells_it():
    assert timeline._value({"value": RESPONSE}) == answers.told(RESPONSE)
    assert timeline._value({"value": [1]}) == "[1]"


def test_a_recorded_value_that_is_none_stays_as_it_is():
    for recorded in ("", "[1]", '{"a": 1}', '{"$large": 5', '"x"'):
        assert answers.of_json(recorded) == recorded
