"""A row of the run list as plain values, as databases keep it: labels as JSON, marks as one text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import asdict

from surefoot.store.contract import IndexRow

FIELDS: Final = IndexRow.__struct_fields__

_labels_of: Final = msgspec.json.Decoder(dict[str, str]).decode


def to_values(row: IndexRow) -> dict[str, Any]:
    """By field, in the order of `FIELDS`."""
    return asdict(row) | {"labels": msgspec.json.encode(row.labels).decode(), "marks": ",".join(row.marks)}


def from_values(values: Sequence[Any]) -> IndexRow | None:
    """The row with these values, in the order of `FIELDS`; None: they are no row."""
    fields = dict(zip(FIELDS, values, strict=True))
    try:
        marks = tuple(filter(None, fields["marks"].split(",")))
        return IndexRow(**fields | {"labels": _labels_of(fields["labels"]), "marks": marks})
    except (msgspec.MsgspecError, TypeError, ValueError, AttributeError):
        return None
