"""What a type checker knows of the names of surefoot: classes are classes, and what is no name is an error."""

from typing import assert_type

import surefoot as sf
from surefoot import aio


def recover(error: Exception) -> str:
    if isinstance(error, sf.StepFailed):
        assert_type(error, sf.StepFailed)
        return error.message
    if isinstance(error, aio.Drifted):
        return str(error)
    sf.no_such_name  # type: ignore[attr-defined]  # noqa: B018 - the name is what is looked at
    return ""
