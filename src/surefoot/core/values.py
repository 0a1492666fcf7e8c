"""Values <-> canonical tagged JSON that a person can read. What comes back is exactly what went in, or it is refused.

Plain data is plain JSON. Everything else is an object with one key that starts with `$`, a *tag*; a dict
of the user's whose keys start with `$` is itself tagged, so data can never be mistaken for a tag. Types are
compared exactly: a subclass of `str` is not a `str`, and unknown types are refused with their path.

Most values are plain, so the way in first only *looks* (`_is_plain`) and hands the value to msgspec
unchanged; the walk that rebuilds a value with tags runs only where it is needed. Decoding a value runs no
code that the value names: classes answer by registration (`registry.py`), exceptions from closed tables
(`failures.py`), and the few imports below are written here in full.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import sha256
from typing import Any, Final

import msgspec

from surefoot.core import failures, forms, secret_places
from surefoot.core.decoder import revive
from surefoot.core.encoder import Refused, Walk, describe_error
from surefoot.core.forms import (
    INT_HIGH,
    INT_LOW,
    MAX_CONTAINERS,
    MAX_DEPTH,
    TOO_DEEP,
    Secret,
    dump,
    dump_sorted,
    is_too_deep,
    load,
)
from surefoot.core.masking import Mask
from surefoot.core.registry import register, register_annotations, upcast
from surefoot.errors import JournalCorrupt, SchemaMismatch, ValueRejected

__all__ = ["Secret", "register", "register_annotations", "upcast"]
"""Defined in other modules, and used as a part of this one."""

_DOLLAR: Final = ord("$")
"""Looking for one byte by its number is six times as fast as looking for b"$"."""

# --- the way in ----------------------------------------------------------------------------------


def encode(value: object) -> bytes:
    """The stored form of a value. Dicts keep their order."""
    try:
        kind = type(value)
        if _is_plain(value if kind is dict or kind is list else [value], MAX_DEPTH):
            raw = dump(value)
            if (_DOLLAR not in raw or b'"$' not in raw) and len(raw) <= forms.MAX_BYTES:
                return raw
    except (UnicodeEncodeError, RuntimeError):
        pass  # lone surrogates are tagged; a change meanwhile, or hardly any stack left: the walk reports it
    return _finished(_tagged(value))


def encode_objects(objects: Sequence[tuple[str, dict[str, Any]]], *, within: int = 0) -> bytes | None:
    """The stored form of a list of objects of registered classes (of version 1), each given by its name and its fields.

    These are the bytes that `encode` makes of the list, without a walk over every value. None: a field is not plain, so
    that the walk is needed. `within`: in so many levels the bytes will be put.
    """
    try:
        if not _is_plain([fields for _, fields in objects], MAX_DEPTH - 2 - within):
            return None
        raw = dump([{"$type": named} for named in objects])
    except (UnicodeEncodeError, RuntimeError):
        return None  # as above
    return raw if raw.count(b'"$') == len(objects) and len(raw) <= forms.MAX_BYTES else None


def encode_args(bound: dict[str, object]) -> tuple[bytes, str]:
    """The stored form of a call's arguments, in order, and their digest, in which order does not count."""
    try:
        if _is_plain(bound, MAX_DEPTH):
            raw = dump(bound)
            if (_DOLLAR not in raw or b'"$' not in raw) and len(raw) <= forms.MAX_BYTES:
                return raw, sha256(dump_sorted(bound)).hexdigest()
    except (UnicodeEncodeError, RuntimeError):
        pass  # as above
    return _tagged_twice(bound)


def digest(value: object) -> str:
    """SHA-256 of the value's canonical form, in which the order of dicts does not count."""
    try:
        kind = type(value)
        if _is_plain(value if kind is dict or kind is list else [value], MAX_DEPTH):
            raw = dump_sorted(value)
            if (_DOLLAR not in raw or b'"$' not in raw) and len(raw) <= forms.MAX_BYTES:
                return sha256(raw).hexdigest()
    except (UnicodeEncodeError, RuntimeError):
        pass  # as above
    return _tagged_twice(value)[1]


def _is_plain(value: Any, room: int) -> int:
    """Whether a dict or list is plain JSON: exact types, finite floats, integers of 64 bits.

    This is the hot path; it only looks. Keys that start with `$` and lone surrogates are left to the
    caller, who sees them in the bytes. The answer is the number of dicts and lists met, or 0 for no.
    """
    if not room:
        return 0
    if type(value) is dict:
        for key in value:
            if type(key) is not str:
                return 0
        value = value.values()
    met = 1
    for item in value:
        kind = type(item)
        if kind is str or kind is bool or item is None:
            continue
        if kind is int:
            if INT_LOW <= item <= INT_HIGH:
                continue
        elif kind is float:
            if item - item == 0.0:  # false for NaN and the infinities, which JSON lacks
                continue
        elif kind is dict or kind is list:
            inside = _is_plain(item, room - 1)
            met += inside
            if inside and met <= MAX_CONTAINERS:
                continue
        return 0
    return met


def _finished(tree: Any) -> bytes:
    """The bytes of a tagged tree, within the limits."""
    try:
        raw = dump(tree)
    except UnicodeEncodeError as error:
        raise ValueRejected("$: a class or a time zone has a name with lone surrogates.", path="$") from error
    if len(raw) > forms.MAX_BYTES:
        raise ValueRejected(
            f"$: the value takes {len(raw)} bytes when stored; the limit is {forms.MAX_BYTES}. "
            "Store the data in a file or a table and pass its name.",
            path="$",
        )
    if is_too_deep(raw, tree):
        raise ValueRejected(f"$: {TOO_DEEP}", path="$")
    return raw


def _tagged_twice(value: object) -> tuple[bytes, str]:
    walk = Walk()
    tree = _tagged(value, walk)
    raw = _finished(tree)
    if walk.ordered:
        tree = _tagged(value, Walk(for_digest=True))
    return raw, sha256(dump_sorted(tree)).hexdigest()


def _tagged(value: object, walk: Walk | None = None) -> Any:
    try:
        return (walk or Walk()).tag(value, MAX_DEPTH)
    except Refused as refused:
        raise refused.as_rejection() from refused.__cause__
    except RecursionError:
        raise ValueRejected("$: nested too deep for what is left of the call stack.", path="$") from None
    except MemoryError:
        raise
    except Exception as error:  # attributes and properties of user classes, or another thread changed a dict
        why = f"{type(error).__name__} was raised while it was taken apart"
        raise ValueRejected(f"$: {why}.", path="$") from error


# --- exceptions ----------------------------------------------------------------------------------


def encode_error(exc: BaseException, mask: Mask | None = None) -> bytes:
    """The stored form of a failure. There is one for every exception. `mask`: it contains no secret."""
    walk = Walk(lenient=True)
    try:
        tree = walk.tag(exc, MAX_DEPTH)
        return _finished(_masked(tree, mask) if mask else tree)
    except Exception:  # noqa: BLE001 - attributes and notes are user code; the failure is recorded all the same
        brief = describe_error(Walk(), exc, briefly=True)
        return dump(mask.failure(brief) if mask else brief)


def masked(raw: msgspec.Raw, mask: Mask) -> msgspec.Raw:
    """A stored value that only people read, without the known secrets."""
    return msgspec.Raw(dump(mask.failure(load(bytes(raw))))) if mask else raw


def _masked(tree: Any, mask: Mask) -> Any:
    """The masked failure still comes back. One that depends on its exact text does not: it is described."""
    masked = mask.failure(tree)
    revive(load(dump(masked)))
    return masked


def decode_error(raw: bytes | msgspec.Raw) -> Exception:
    """The exception of a recorded failure: itself where that was proved, else `StepFailed`."""
    error = decode(raw)
    if not isinstance(error, Exception):
        raise _corrupt("it is no failure")
    return error


def error_summary(raw: bytes | msgspec.Raw) -> tuple[str, str]:
    """Type and message of a recorded failure, without reviving it."""
    try:
        tree = load(raw)
        return failures.summary(tree["$error"], revive)
    except Exception as error:
        raise _corrupt("it is no failure") from error


# --- the way out ---------------------------------------------------------------------------------


def decode(raw: bytes | msgspec.Raw) -> object:
    """The value of a stored form: a fresh object, of exactly the types that went in."""
    data = raw if type(raw) is bytes else bytes(raw)
    try:
        tree = load(data)
        canonical = dump(tree) == data
        if not canonical:
            _refuse_duplicates(data)
        if len(data) > 2 * MAX_DEPTH:
            _refuse_size(data, tree)
        if canonical and (_DOLLAR not in data or b'"$' not in data):
            return tree
        return revive(tree)
    except (JournalCorrupt, SchemaMismatch, MemoryError):
        raise
    except RecursionError:
        if not _nests_too_deep(data):
            raise  # it is the caller's stack that is exhausted, not the value that is bad
        raise _corrupt(f"it is nested more than {MAX_DEPTH} levels deep") from None
    except Exception as error:
        raise _corrupt(f"{type(error).__name__}: {str(error)[:200]}") from error


def again(raw: bytes | msgspec.Raw) -> Any:
    """A fresh object of a stored form that we have just made ourselves: it is not checked for damage."""
    data = raw if type(raw) is bytes else bytes(raw)
    try:
        tree = load(data)
        return tree if _DOLLAR not in data or b'"$' not in data else revive(tree)
    except Exception:  # noqa: BLE001 - whatever it is, it gets its name there
        return decode(data)


def with_secrets(raw: bytes | msgspec.Raw, now: object) -> Any:
    """A fresh object of a stored form, with the secrets that the value at hand has in the same places; else `NoPlace`."""
    secrets: list[Secret[Any]] = []
    try:
        tree = _tagged(now, Walk(secrets=secrets))
    except ValueRejected as error:
        raise secret_places.NoPlace from error
    return revive(secret_places.filled(load(bytes(raw)), tree, secrets))


def _refuse_size(data: bytes, tree: Any) -> None:
    if len(data) > forms.MAX_BYTES:
        raise _corrupt(f"it takes {len(data)} bytes; the limit is {forms.MAX_BYTES}")
    if is_too_deep(data, tree):
        raise _corrupt(f"it is nested more than {MAX_DEPTH} levels deep")


def _corrupt(why: str) -> JournalCorrupt:
    return JournalCorrupt(f"a recorded value cannot be read: {why}.")


def _nests_too_deep(raw: bytes) -> bool:
    """Whether the brackets of a JSON text go too deep, counted without recursion."""
    depth = 0
    for token in re.finditer(rb'"(?:[^"\\]|\\.)*"|[\[{\]}]', raw, re.DOTALL):
        if token[0] in (b"[", b"{"):
            depth += 1
            if depth > MAX_DEPTH:
                return True
        elif token[0] in (b"]", b"}"):
            depth -= 1
    return False


def _refuse_duplicates(data: bytes) -> None:
    """Bytes that are not canonical may still be unambiguous. A key given twice is not."""
    import json  # bytes of other writers are rare

    def pairs(found: list[tuple[str, Any]]) -> None:
        if len({key for key, _ in found}) != len(found):
            raise _corrupt("a key is given twice")

    json.loads(data, object_pairs_hook=pairs)
