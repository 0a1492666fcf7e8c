"""Whether an exception comes from a guard clause: raised by the effect's own code before it could have done anything.

A convenience, and never wrong. Byte code that is not known here, a value that is not plain data, a name that is not a
plain built-in: each means "no guard". The reasoning is a closed world. The parameters that were read are plain data,
and only plain built-ins and exception classes are called. So whatever the code computed is plain data again, and no
operator, attribute or method of it can run other code. Making an exception runs none either: its class has no
`__init__` of its own. Values are stored in local variables only.
"""

from __future__ import annotations

import builtins
import dis
import inspect
from datetime import date, timedelta
from decimal import Decimal
from types import CodeType, FrameType, FunctionType, TracebackType
from typing import Any, Final


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_FIXED: Final = frozenset({str, bytes, int, float, complex, bool, type(None), Decimal, date, timedelta})
_MOST: Final = 10_000
"""The most values that are read to see whether an argument is plain data."""
_BUILTINS: Final = frozenset(
    id(getattr(builtins, name))
    for name in _words(
        "abs all any bool bytes chr complex dict divmod enumerate float frozenset int isinstance len list max min ord "
        "range repr reversed round set sorted str sum tuple type zip"
    )
)
_METHODS: Final = frozenset(
    name
    for cls in (str, bytes, int, float, tuple, frozenset, Decimal, date, timedelta)
    for name in dir(cls)
    if not name.startswith("_")
) | _words("get keys values items")
"""They change nothing in place."""
_MARKS: Final = _words(
    "__module__ __doc__ __qualname__ __dict__ __weakref__ __annotations__ __annotate__ __annotate_func__ "
    "__annotations_cache__ __firstlineno__ __static_attributes__ __slots__"
)
"""What an exception class may define, besides names that plain data does not have. Not `__init__`, nor how it is shown:
making one, or putting one into a text, would run unchecked code."""
_LOADS: Final = _words(
    "LOAD_FAST LOAD_FAST_CHECK LOAD_FAST_BORROW LOAD_FAST_LOAD_FAST LOAD_FAST_BORROW_LOAD_FAST_BORROW"
)
_PLAIN_CODE: Final = _words(
    # The names in Python 3.11 to 3.14. A name that is missing is unknown, and so no guard.
    "RESUME RETURN_GENERATOR NOP CACHE EXTENDED_ARG PRECALL PUSH_NULL KW_NAMES NOT_TAKEN COPY SWAP POP_TOP TO_BOOL "
    "COPY_FREE_VARS MAKE_CELL LOAD_CONST LOAD_CONST_IMMORTAL LOAD_SMALL_INT LOAD_ASSERTION_ERROR LOAD_COMMON_CONSTANT "
    "CALL CALL_KW COMPARE_OP CONTAINS_OP IS_OP UNARY_NOT UNARY_NEGATIVE UNARY_INVERT BINARY_SUBSCR BINARY_SLICE "
    "BUILD_SLICE BUILD_STRING BUILD_TUPLE BUILD_LIST BUILD_SET BUILD_MAP BUILD_CONST_KEY_MAP LIST_EXTEND FORMAT_VALUE "
    "FORMAT_SIMPLE FORMAT_WITH_SPEC CONVERT_VALUE RAISE_VARARGS RETURN_VALUE RETURN_CONST JUMP_FORWARD JUMP_BACKWARD "
    "POP_JUMP_IF_TRUE POP_JUMP_IF_FALSE POP_JUMP_IF_NONE POP_JUMP_IF_NOT_NONE POP_JUMP_FORWARD_IF_TRUE "
    "POP_JUMP_FORWARD_IF_FALSE POP_JUMP_FORWARD_IF_NONE POP_JUMP_FORWARD_IF_NOT_NONE POP_JUMP_BACKWARD_IF_TRUE "
    "POP_JUMP_BACKWARD_IF_FALSE POP_JUMP_BACKWARD_IF_NONE POP_JUMP_BACKWARD_IF_NOT_NONE JUMP_IF_TRUE_OR_POP "
    "JUMP_IF_FALSE_OR_POP GET_ITER FOR_ITER END_FOR POP_ITER"
)


def is_guard(error: BaseException, fn: Any, called_in: frozenset[str]) -> bool:
    """`fn` was called in a function of one of these modules, and this is what it raised."""
    code, frames = getattr(fn, "__code__", None), _frames(error)
    if not isinstance(fn, FunctionType) or not isinstance(code, CodeType) or not frames:
        return False
    last, passed = frames[-1], sum(one.tb_frame.f_code is code for one in frames)
    if last.tb_frame.f_code is code:
        # Passed twice: the function called itself, or raised the exception again. Its acts in between are unknown.
        alone = passed == 1 and not _is_caught(code, last.tb_lasti)
        return alone and all(_is_plain_step(one, last.tb_frame) for one in _up_to(code, last.tb_lasti))
    # The arguments did not fit: Python raised before it made a frame for the function.
    runs_when_called = not inspect.iscoroutinefunction(fn) or bool(code.co_flags & inspect.CO_COROUTINE)
    outside = last.tb_frame.f_globals.get("__name__") in called_in
    return type(error) is TypeError and outside and runs_when_called and not passed


def _frames(error: BaseException) -> list[TracebackType]:
    frames, trace = [], error.__traceback__
    while trace is not None:
        frames.append(trace)
        trace = trace.tb_next
    return frames


def _is_caught(code: CodeType, at: int) -> bool:
    """Whether code of the function may have run after the raise: `except` and `finally` leave no trace."""
    names = {one.offset: one.opname for one in dis.get_instructions(code)}
    table = getattr(dis.Bytecode(code), "exception_entries", None)
    if table is None:  # A Python with another table.
        return bool(code.co_exceptiontable)
    handlers = (names.get(one.target) for one in table if one.start <= at < one.end)
    # Python 3.12 puts a handler of its own around every coroutine, for a StopIteration.
    return any(name != "CALL_INTRINSIC_1" for name in handlers)


def _up_to(code: CodeType, last: int) -> list[dis.Instruction]:
    """All instructions that may have been executed: those before, and later ones, if they jump back."""
    steps = list(dis.get_instructions(code))
    back = [(one.offset, one.argval) for one in steps if one.opcode in dis.hasjrel + dis.hasjabs]
    while further := [source for source, target in back if source > last >= target]:
        last = max(further)
    return [one for one in steps if one.offset <= last]


def _is_plain_step(step: dis.Instruction, frame: FrameType) -> bool:
    code, names = frame.f_code, step.argval if isinstance(step.argval, tuple) else (step.argval,)
    stars = bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    given = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + stars]
    match step.opname:
        case name if name in _LOADS:
            return all(name not in given or is_plain(frame.f_locals.get(name, ...)) for name in names)
        case "STORE_FAST" | "STORE_FAST_STORE_FAST" | "STORE_FAST_LOAD_FAST":
            return not set(given) & set(names)  # Else the value that was read is no longer known.
        case "LOAD_GLOBAL":
            scope = frame.f_globals if step.argval in frame.f_globals else frame.f_builtins
            return _is_harmless(scope.get(step.argval, ...))
        case "LOAD_DEREF":
            return _is_harmless(frame.f_locals.get(step.argval, ...))
        case "LOAD_ATTR" | "LOAD_METHOD":
            return step.argval in _METHODS
        case "BINARY_OP":
            return not step.argrepr.endswith("=")  # In place: it may change what others see.
        case name:
            return name in _PLAIN_CODE


def _is_harmless(value: Any) -> bool:
    """A constant, a plain built-in, or an exception class."""
    if isinstance(value, type) and issubclass(value, BaseException):
        return type(value) is type and all(map(_is_simple, value.__mro__))
    return type(value) in _FIXED or id(value) in _BUILTINS


def _is_simple(cls: type) -> bool:
    """Whether no code of its class runs, not even to make one: no operators, and no names that plain data has too."""
    own = vars(cls).keys() if vars(builtins).get(cls.__name__) is not cls else ()
    return not any(name in _METHODS or (name[:2] == "__" and name not in _MARKS) for name in own)


def is_plain(value: Any) -> bool:
    """Data of Python's own types all through."""
    rest = [value]
    for seen, one in enumerate(rest):
        if type(one) is dict:
            rest += [*one.keys(), *one.values()]
        elif type(one) in (list, tuple, set, frozenset):
            rest += one
        elif type(one) not in _FIXED:
            return False
        if seen > _MOST or len(rest) > _MOST:
            return False
    return True


def is_raised_by_code(error: BaseException) -> bool:
    """Whether a `raise` statement raised it, not a signal between two instructions."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and dis.opname[trace.tb_frame.f_code.co_code[trace.tb_lasti]] == "RAISE_VARARGS"
