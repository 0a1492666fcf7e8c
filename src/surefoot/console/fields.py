"""A form for what a question asks for: from its JSON Schema to fields, and from what was sent back to JSON.

What a field cannot hold is asked for as JSON. Whether an answer fits is not decided here: the verb that records it does that, and
names the place. A form that lacks something gives JSON that lacks it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from surefoot.errors import UsageError

VALUE: Final = "value"
_DEEPEST: Final = 6
_KINDS: Final = {"string": "text", "integer": "integer", "number": "number", "boolean": "bool"}
_FORMATS: Final = {"date": "date", "date-time": "datetime", "time": "time"}
_MOST_ITEMS: Final = 200


class Field(Struct, frozen=True):
    name: str
    """Of its input: `value.address.street`, `value.tags.0`."""
    kind: str
    """text, number, integer, bool, date, datetime, time, choice, group, list, union, null or json."""
    label: str
    required: bool = True
    """An optional one that is left empty is left out."""
    options: tuple[str, ...] = ()
    """Of a choice: each as JSON."""
    children: tuple[Field, ...] = ()
    """Of a group its fields; of a list its items; of a union the chosen variant alone."""
    variants: tuple[str, ...] = ()
    """Of a union: what can be chosen, by its number. The input is named `NAME@`."""
    chosen: int = 0
    description: str = ""
    value: str = ""
    """As it was sent, or the default."""
    bounds: tuple[tuple[str, Any], ...] = ()
    """`minimum`, `maximum`, `minLength`, `maxLength`, as the schema has them."""


def of(schema: Mapping[str, Any], sent: Mapping[str, str] | None = None, name: str = VALUE) -> Field:
    """The fields for this schema, with what was sent already."""
    return _field(schema, schema, sent or {}, name, "", required=True, depth=0)


def _field(
    schema: Mapping[str, Any], root: Mapping[str, Any], sent: Mapping[str, str], name: str, label: str, *,
    required: bool, depth: int,
) -> Field:  # fmt: skip
    wanted = _resolved(schema, root)
    label = label or str(wanted.get("title", ""))
    about: dict[str, Any] = {
        "label": label, "required": required, "description": str(wanted.get("description", "")),
        "bounds": tuple((word, wanted[word]) for word in ("minimum", "maximum", "minLength", "maxLength") if word in wanted),
        "value": sent.get(name, _as_text(wanted["default"]) if "default" in wanted else ""),
    }  # fmt: skip
    kind = wanted.get("type")
    if depth > _DEEPEST:
        return Field(name, "json", **about)
    if "enum" in wanted or "const" in wanted:
        choices = wanted.get("enum", [wanted.get("const")])
        return Field(name, "choice", options=tuple(json.dumps(one, ensure_ascii=False) for one in choices), **about)
    if "anyOf" in wanted:
        return _union(wanted["anyOf"], root, sent, name, about, depth)
    if kind == "object" and wanted.get("properties"):
        needed = wanted.get("required", ())
        return Field(name, "group", children=tuple(
            _field(inner, root, sent, f"{name}.{own}", own, required=own in needed, depth=depth + 1)
            for own, inner in wanted["properties"].items()
        ), **about)  # fmt: skip
    if kind == "array" and isinstance(wanted.get("items"), dict) and "prefixItems" not in wanted:
        many = _many(sent, name, int(wanted.get("minItems", 0)))
        return Field(name, "list", children=tuple(
            _field(wanted["items"], root, sent, f"{name}.{place}", str(place + 1), required=True, depth=depth + 1)
            for place in range(many)
        ), **about)  # fmt: skip
    if kind == "null":
        return Field(name, "null", **about)
    if kind == "string":
        return Field(name, _FORMATS.get(str(wanted.get("format", "")), "text"), **about)
    return Field(name, _KINDS.get(str(kind), "json"), **about)


def _union(
    variants: list[Mapping[str, Any]], root: Mapping[str, Any], sent: Mapping[str, str], name: str,
    about: dict[str, Any], depth: int,
) -> Field:  # fmt: skip
    given = sent.get(f"{name}@", "0")
    chosen = min(int(given), len(variants) - 1) if given.isdecimal() else 0
    names = tuple(_named(_resolved(one, root), place) for place, one in enumerate(variants))
    inner = _field(variants[chosen], root, sent, name, str(about["label"]), required=True, depth=depth + 1)
    return Field(name, "union", children=(inner,), variants=names, chosen=chosen, **about)


def _named(schema: Mapping[str, Any], place: int) -> str:
    return str(schema.get("title") or {"null": "nothing"}.get(str(schema.get("type")), schema.get("type")) or place + 1)


def _resolved(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    for _ in range(_DEEPEST):
        if "$ref" not in schema:
            break
        found = root.get("$defs", {}).get(str(schema["$ref"]).rpartition("/")[2])
        if not isinstance(found, dict):
            return {}
        schema = {**found, **{word: schema[word] for word in schema if word != "$ref"}}
    return schema


def _many(sent: Mapping[str, str], name: str, least: int) -> int:
    """How many items a list has: what was sent, and one more or fewer if a button said so."""
    begins = f"{name}."
    places = [found.removeprefix(begins).partition(".")[0].rstrip("@") for found in sent if found.startswith(begins)]
    many = max((int(one) + 1 for one in places if one.isdecimal() and len(one) < 4), default=least)
    return min(many + (sent.get("add") == name), _MOST_ITEMS)


def without(sent: Mapping[str, str], item: str) -> dict[str, str]:
    """What was sent, without one item of a list; those behind it move up."""
    name, _, given = item.rpartition(".")
    if not given.isdecimal():
        return dict(sent)
    gone, found = int(given), {}
    for key, value in sent.items():
        if key.startswith(f"{name}."):
            place, *rest = key.removeprefix(f"{name}.").split(".", 1)
            number, variant = place.rstrip("@"), "@" * place.endswith("@")
            if number.isdecimal() and int(number) == gone:
                continue
            if number.isdecimal() and int(number) > gone:
                key = ".".join([f"{name}.{int(number) - 1}{variant}", *rest])  # noqa: PLW2901 - it moved up
        found[key] = value
    return found


# --- back to JSON --------------------------------------------------------------------------------------


def read(field: Field, sent: Mapping[str, str]) -> Any:
    """The JSON that was entered."""
    match field.kind:
        case "group":
            return {_own(one): read(one, sent) for one in field.children if not _left_out(one, sent)}
        case "list":
            return [read(one, sent) for one in field.children]
        case "union":
            return read(field.children[0], sent)
        case "null":
            return None
        case "bool":
            return sent.get(field.name, "") in ("true", "on", "yes")
        case "choice" | "json":
            return parsed(sent.get(field.name, ""), field.label or field.name)
        case "integer" | "number":
            return _number(sent.get(field.name, ""))
        case "datetime":
            return _moment(sent.get(field.name, ""))
        case _:
            return sent.get(field.name, "").replace("\r\n", "\n")


def _own(field: Field) -> str:
    return field.label


def _left_out(field: Field, sent: Mapping[str, str]) -> bool:
    if field.required or field.kind == "bool":
        return False
    begins = (f"{field.name}.", f"{field.name}@")
    return not sent.get(field.name) and not any(value for name, value in sent.items() if name.startswith(begins))


def parsed(text: str, what: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        raise UsageError(f"{what}: {text[:40]!r} is not JSON. A text needs its quotes.") from None


def _number(text: str) -> Any:
    """What is no number stays a text: the verb refuses it and names the place."""
    try:
        found = json.loads(text)
    except ValueError:
        return text
    return found if type(found) in (int, float) and math.isfinite(found) else text


def _moment(text: str) -> str:
    """A browser leaves out the seconds."""
    return f"{text}:00" if len(text) == len("2026-01-31T09:30") else text


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
