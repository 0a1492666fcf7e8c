"""URLs of places to look at, as user code gives them.

No password is stored anywhere. So a witness whose URL has one has no spec: only the code that knows the password can
look again.
"""

from __future__ import annotations

from collections.abc import Collection

from surefoot.core.urls import Url, parse
from surefoot.world.base import text_argument


def parsed(url: object, schemes: Collection[str]) -> Url:
    return parse(text_argument("url", url), schemes)
