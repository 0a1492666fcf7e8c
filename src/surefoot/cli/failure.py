"""How a failed workflow is shown: the lines of the user's own code, without surefoot's frames.

A failure comes back as a copy of the exception that user code raised, with its lines while they are known
(`engine/session/originals.py`): the workflow's first, then those of the call that raised.
"""

from __future__ import annotations

import os
import traceback
from pathlib import Path

from surefoot.view import text, trouble

_STANDARD_LIBRARY = Path(traceback.__file__).resolve().parent
_NOT_THEIRS = (
    str(Path(__file__).resolve().parent.parent) + os.sep,
    str(_STANDARD_LIBRARY / "asyncio") + os.sep,
    str(_STANDARD_LIBRARY / "importlib") + os.sep,
    "<frozen importlib",
)


def user_traceback(error: BaseException) -> list[str]:
    """The lines of a traceback that has only user code in it; none if no user code is known."""
    known = traceback.extract_tb(error.__traceback__)
    frames = [frame for frame in known if not frame.filename.startswith(_NOT_THEIRS)]
    before = _story_before(error)
    if not frames:
        return before
    told = [
        *before,
        "Traceback of your code:",
        *(line for frame in traceback.format_list(frames) for line in frame.rstrip("\n").split("\n")),
    ]
    notes = [str(note) for note in getattr(error, "__notes__", ())]
    return [text.visible(line) for line in (*told, *_last_lines(error), *notes)]


def _story_before(error: BaseException) -> list[str]:
    """The causes: `raise … from …`, or an exception raised while handling another."""
    earlier = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if earlier is None or earlier is error or type(earlier).__module__.startswith("surefoot.engine"):
        return []
    return [*user_traceback(earlier), "", "which led to:", ""]


def _last_lines(error: BaseException) -> list[str]:
    message = trouble.message_of(error)
    name = trouble.type_of(error)
    return (f"{name}: {message}" if message else name).split("\n")
