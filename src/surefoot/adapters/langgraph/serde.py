"""State of LangGraph <-> bytes: plain tagged JSON of ours, and LangGraph's own serialiser for what that does not know.

What comes back is what was saved, or it is refused. Messages are stored as the fields that were set: then a later version
of LangChain can have more fields, and a reader without Python sees them. They come back through LangChain's own check, with
exactly the recorded fields. What our codec refuses is packed by LangGraph, only with types that it calls safe or that the
user has allowed, and only if it comes back the same. Nothing is ever pickled.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import langchain_core.messages as lc
from langchain_core.documents import Document
from langchain_core.tools import ToolException
from langgraph.checkpoint.base import WRITES_IDX_MAP
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.serde.types import ERROR, _DeltaSnapshot
from langgraph.types import Command, Interrupt, Overwrite, Send, TimeoutPolicy
from msgspec import Struct

from surefoot.engine import seams
from surefoot.engine.seams import dump, load
from surefoot.errors import SchemaMismatch, ValueRejected

_LEVELS: Final = 8
"""In at most so many levels of our own a value of the user's is put."""
_INSIDE: Final = "$" + "[0]" * _LEVELS


_CONTAINERS: Final = (dict, list)
_SCALARS: Final = frozenset((str, int, float, bool, type(None)))
_MOST_BYTES: Final = 64 * 1024 * 1024
"""So much of what was encoded is remembered."""


class Packed(Struct, frozen=True):
    """A value in the form of LangGraph's serialiser."""

    kind: str
    data: bytes


# --- what LangChain and LangGraph have -------------------------------------------------------------------------------


def _fields(model: Any) -> dict[str, Any]:
    """The fields that were set, or filled although nobody set them, and what else was given."""
    given = model.__pydantic_fields_set__
    found = {
        name: value for name, value in model.__dict__.items() if name in given or (value and type(value) in _CONTAINERS)
    }
    extra = model.__pydantic_extra__
    return {**found, **extra} if extra else found


def _revived(cls: Any, fields: dict[str, Any]) -> Any:
    """Checked by the class, and then exactly what was recorded: validators may rearrange, a checkpoint must not."""
    model = cls.model_validate(fields)
    known = cls.model_fields
    model.__dict__.update((name, value) for name, value in fields.items() if name in known)
    object.__setattr__(model, "__pydantic_fields_set__", set(fields))
    return model


def _taken_send(send: Any) -> list[Any]:
    limit = send.timeout
    policy = [] if limit is None else [[limit.run_timeout, limit.idle_timeout, limit.refresh_on]]
    return [send.node, send.arg, *policy]


def _made_send(parts: list[Any]) -> Send:
    if len(parts) == 2:
        return Send(*parts)
    run, idle, refresh = parts[2]
    return Send(parts[0], parts[1], timeout=TimeoutPolicy(run_timeout=run, idle_timeout=idle, refresh_on=refresh))


def _args(error: Any) -> list[Any]:
    return list(error.args)


def _taken_command(command: Any) -> dict[str, Any]:
    parts = {"graph": command.graph, "update": command.update, "resume": command.resume, "goto": command.goto}
    return {name: value for name, value in parts.items() if value is not None and value != ()}


def _taken_interrupt(interrupt: Any) -> dict[str, Any]:
    schema = interrupt.response_schema
    more = {"response_schema": schema} if isinstance(schema, dict) else {}
    return {"value": interrupt.value, "id": interrupt.id, **more}


_MODELS: Final[tuple[Any, ...]] = (
    lc.AIMessage, lc.AIMessageChunk, lc.ChatMessage, lc.ChatMessageChunk, lc.FunctionMessage, lc.FunctionMessageChunk,
    lc.HumanMessage, lc.HumanMessageChunk, lc.RemoveMessage, lc.SystemMessage, lc.SystemMessageChunk, lc.ToolMessage,
    lc.ToolMessageChunk, Document,
)  # fmt: skip
_names: Final[dict[type, str]] = {}
"""The models that are stored our way, and under which name."""


def _register() -> None:
    """A class that the user has registered by name stays as the user wants it."""
    for cls in _MODELS:
        if not seams.is_registered(cls):
            name = f"langchain.{cls.__name__}"
            seams.register(cls, name=name, encode=_fields, decode=partial(_revived, cls))
            _names[cls] = name
    seams.register(Packed, name="langgraph.Packed")
    seams.register(Command, name="langgraph.Command", encode=_taken_command, decode=lambda parts: Command(**parts))
    seams.register(
        ToolException, name="langchain.ToolException", encode=_args, decode=lambda args: ToolException(*args)
    )
    seams.register(Send, name="langgraph.Send", encode=_taken_send, decode=_made_send)
    seams.register(
        Interrupt, name="langgraph.Interrupt", encode=_taken_interrupt, decode=lambda parts: Interrupt(**parts)
    )
    seams.register(Overwrite, name="langgraph.Overwrite", encode=lambda found: found.value, decode=Overwrite)
    seams.register(
        _DeltaSnapshot, name="langgraph.DeltaSnapshot", encode=lambda found: found.value, decode=_DeltaSnapshot
    )


_register()


# --- what was encoded before -----------------------------------------------------------------------------------------


_Known = tuple[Any, dict[str, Any], set[str], dict[str, Any] | None, bytes]
"""A message that was encoded: itself, and how its fields, those that were set, and extra ones were then; and its bytes."""


def _is_still(known: _Known, model: Any) -> bool:
    return (
        known[0] is model
        and known[1] == model.__dict__
        and known[2] == model.__pydantic_fields_set__
        and known[3] == model.__pydantic_extra__
    )


def _kept(fields: dict[str, Any]) -> dict[str, Any]:
    """A copy to compare with: values may be changed in place. Those that cannot be are shared: the same at a glance."""
    return {name: value if type(value) in _SCALARS else load(dump(value)) for name, value in fields.items()}


def _all_texts(raw: bytes) -> bool:
    return all(type(item) is str for item in load(raw))


class Memory:
    """What was encoded lately: a graph saves the same messages at every step, and a few new ones.

    A message is taken from here only if it is the same object with the same content, by value: messages can be changed
    in place. A list of texts is compared text by text.
    """

    def __init__(self) -> None:
        self._models: dict[int, _Known] = {}
        self._texts: dict[tuple[str, ...], tuple[list[str], bytes]] = {}
        self._bytes = 0

    def models(self, items: list[Any]) -> bytes | None:
        """A list of messages with plain fields. None: there is something else in it."""
        found = []
        remembered = self._models.get
        for item in items:
            known = remembered(id(item))
            if known is not None and _is_still(known, item):
                found.append(known[4])
            elif type(item) not in _names or (raw := self._model(item)) is None:
                return None
            else:
                found.append(raw)
        return b"[" + b",".join(found) + b"]"

    def _model(self, item: Any) -> bytes | None:
        raw = seams.encode_objects([(_names[type(item)], _fields(item))], within=_LEVELS)
        if raw is None:
            return None
        raw = raw[1:-1]
        extra = item.__pydantic_extra__
        known = (item, _kept(item.__dict__), set(item.__pydantic_fields_set__), extra and _kept(extra), raw)
        if _is_still(known, item):
            self._make_room(len(raw))
            self._models[id(item)] = known
        return raw

    def texts(self, slot: tuple[str, ...], items: list[Any]) -> bytes | None:
        """A list of texts that begins with those that it had before. None: it does not, or there is something else."""
        before, raw = self._texts.get(slot, ([], b"[]"))
        count = len(before)
        tail = items[count:]
        if items[:count] != before or not tail or not all(type(item) is str for item in tail):
            return None
        new = seams.encode(tail)
        if b'"$' in new and not _all_texts(new):
            return None  # one of them needed a tag
        raw = raw[:-1] + (b"," if count else b"") + new[1:]
        self._make_room(len(raw))
        self._texts[slot] = items[:], raw
        return raw

    def _make_room(self, size: int) -> None:
        self._bytes += size
        if self._bytes > _MOST_BYTES:
            self._models.clear()
            self._texts.clear()
            self._bytes = size


# --- checkpoints -----------------------------------------------------------------------------------------------------


def encode_checkpoint(
    checkpoint: Mapping[str, Any], packer: SerializerProtocol, memory: Memory, slot: tuple[str, ...]
) -> bytes:
    """A whole state. The values come first: they grow at their end, and what follows changes every time."""
    given = checkpoint["channel_values"]
    rest = {name: value for name, value in checkpoint.items() if name not in ("id", "channel_values")}
    if any(name.startswith("$") for name in given):  # as the key of a dict it has to be escaped
        told = {name: _storable(value, packer, name) for name, value in given.items()}
        return seams.encode({"channel_values": told, **rest})
    parts: list[bytes] = []
    for name, value in given.items():
        parts += [dump(name), b":", encode_value(value, packer, name, memory, (*slot, name)), b","]
    return b"".join([b'{"channel_values":{', *parts[:-1], b"},", seams.encode(rest)[1:]])


def decode_checkpoint(raw: bytes, id_: str, packer: SerializerProtocol) -> dict[str, Any]:
    found: Any = seams.decode(raw)
    unpacked = {name: _unpacked(value, packer, name) for name, value in found["channel_values"].items()}
    return {**found, "id": id_, "channel_values": unpacked}


def encode_meta(meta: Mapping[str, Any], packer: SerializerProtocol) -> bytes:
    try:
        return seams.encode(dict(meta))
    except ValueRejected:
        return seams.encode({name: _storable(value, packer, f"metadata {name}") for name, value in meta.items()})


def decode_meta(raw: bytes, packer: SerializerProtocol) -> dict[str, Any]:
    found: Any = seams.decode(raw)
    return {name: _unpacked(value, packer, f"metadata {name}") for name, value in found.items()}


# --- what tasks wrote ------------------------------------------------------------------------------------------------

Write = tuple[int, str, Any]
"""Number within its task, channel and value."""


def encode_writes(writes: Sequence[tuple[str, Any]], packer: SerializerProtocol, memory: Memory) -> bytes:
    told = []
    for place, (channel, value) in enumerate(writes):
        number = WRITES_IDX_MAP.get(channel, place)
        # As LangGraph's serialiser does it: nobody can rely on getting an exception back.
        kept = repr(value) if channel == ERROR and isinstance(value, BaseException) else value
        told.append(
            b"[" + dump(number) + b"," + dump(channel) + b"," + encode_value(kept, packer, channel, memory) + b"]"
        )
    return b"[" + b",".join(told) + b"]"


def decode_writes(raw: bytes, packer: SerializerProtocol) -> list[Write]:
    found: Any = seams.decode(raw)
    return [(number, channel, _unpacked(value, packer, channel)) for number, channel, value in found]


# --- values ----------------------------------------------------------------------------------------------------------


def encode_value(
    value: Any, packer: SerializerProtocol, name: str, memory: Memory, slot: tuple[str, ...] = ()
) -> bytes:
    if not isinstance(packer, JsonPlusSerializer):  # somebody wants it in a form of their own: encrypted, perhaps
        return seams.encode(Packed(*packer.dumps_typed(value)))
    if type(value) is list and value:
        found = None
        if type(value[0]) in _names:
            found = memory.models(value)
        elif slot and type(value[0]) is str:
            found = memory.texts(slot, value)
        if found is not None:
            return found
    try:
        return _ours(value)
    except ValueRejected as error:
        return seams.encode(_packed(value, packer, name, error))


def as_stored(value: Any, packer: SerializerProtocol, name: str) -> Any:
    """What a run can record of a node's result: itself, or LangGraph's form of it."""
    if not isinstance(packer, JsonPlusSerializer):
        return Packed(*packer.dumps_typed(value))
    return _storable(value, packer, name)


def as_given(stored: Any, packer: SerializerProtocol, name: str) -> Any:
    return _unpacked(stored, packer, name)


def _ours(value: Any) -> bytes:
    """The form of our codec. It is encoded as deep as it will stand, so that depth is refused now, and not on loading."""
    nested = value
    for _ in range(_LEVELS):
        nested = [nested]
    return seams.encode(nested)[_LEVELS:-_LEVELS]


def _storable(value: Any, packer: SerializerProtocol, name: str) -> Any:
    try:
        _ours(value)
    except ValueRejected as error:
        return _packed(value, packer, name, error)
    else:
        return value


def _packed(value: Any, packer: SerializerProtocol, name: str, refused: ValueRejected) -> Packed:
    try:
        kind, data = packer.dumps_typed(value)
        back = packer.dumps_typed(packer.loads_typed((kind, data)))
    except Exception as error:
        raise _rejected(name, refused) from error
    if kind == "pickle" or (kind, bytes(data)) != (back[0], bytes(back[1])):
        raise _rejected(name, refused)
    return Packed(kind, bytes(data))


def _unpacked(value: Any, packer: SerializerProtocol, name: str) -> Any:
    if type(value) is not Packed:
        return value
    if value.kind == "pickle":
        raise SchemaMismatch(f"channel {name}: it was pickled, and pickles are never loaded.")
    found = packer.loads_typed((value.kind, value.data))
    if isinstance(packer, JsonPlusSerializer):
        kind, data = packer.dumps_typed(found)
        if (kind, bytes(data)) != (value.kind, value.data):
            raise SchemaMismatch(
                f"channel {name}: LangGraph's serialiser gives something else than what was saved: a class is gone, has "
                "changed, or is not allowed any more (JsonPlusSerializer(allowed_msgpack_modules=…))."
            )
    return found


def _rejected(name: str, refused: ValueRejected) -> ValueRejected:
    path = refused.path.removeprefix(_INSIDE)
    why = str(refused).replace(_INSIDE, "$", 1)
    return ValueRejected(
        f"channel {name}: {why} LangGraph's own serialiser would not give it back as it is, either.", path=f"${path}"
    )


def merged(writes: Iterable[tuple[str, str, Sequence[Write]]]) -> list[tuple[str, str, Any]]:
    """What counts of all writes to a checkpoint: (task, channel, value), in the order in which LangGraph applies them.

    For each task and number the first counts; writes of reserved channels alone take the place of earlier ones.
    """
    found: dict[tuple[str, int], tuple[tuple[str, str, int], str, Any]] = {}
    for task, path, many in writes:
        replaces = all(number < 0 for number, _, _ in many)
        for number, channel, value in many:
            if replaces or (task, number) not in found:
                found[task, number] = (path, task, number), channel, value
    return [(place[1], channel, value) for place, channel, value in sorted(found.values(), key=lambda one: one[0])]
