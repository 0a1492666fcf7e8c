r"""Templates to HTML. Text from runs is text: nothing of it can become an element, an attribute or a link.

This is the only file that makes `Markup`. Whatever a template prints is escaped, and characters that cannot be seen are shown
as escapes, unless a filter says otherwise:

    {{ x }}            one line, safe anywhere; a control character shows as \x1b
    {{ x|boxed }}      the same for content of an element: each escape in a box of its own
    {{ x|lines }}      several lines, for <pre>: the same, newlines kept
    {{ x|exact }}      the very characters, for values of hidden fields and text areas
"""

from __future__ import annotations

import hashlib
import json
import re
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from surefoot.core.visible import pieces, visible
from surefoot.view import text

_BOX = Markup('<span class="escape">{}</span>')


def boxed(value: object) -> Markup:
    """Each character that cannot be seen in a box of its own, so that no text can pose as an escape."""
    if isinstance(value, Markup):
        return value
    return Markup("").join(_BOX.format(one) if is_escape else one for one, is_escape in pieces(str(value)))


def lines(value: object) -> Markup:
    return Markup("\n").join(boxed(line) for line in str(value).split("\n"))


def exact(value: object) -> Markup:
    return escape(str(value))


def bare(value: object) -> str:
    """A text that is written as JSON, without its quotes; anything else as it is."""
    written = str(value)
    try:
        found = json.loads(written)
    except ValueError:
        return written
    return found if isinstance(found, str) else written


def digest(value: object) -> str:
    """An `id` for an element that is about something with any name."""
    return hashlib.sha256(str(value).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def since(micros: int, now: int) -> str:
    """How long ago, in one unit: lists have no room for two."""
    seconds = max((now - micros) // 1_000_000, 0)
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit} ago"
    return f"{seconds} s ago" if seconds else "now"


def icon(name: str, css: str = "", label: str = "") -> Markup:
    """One of `static/icons.svg`, drawn where it stands. Without a label it is decoration, and a screen reader passes it by."""
    told = Markup('role="img" aria-label="{}"').format(label) if label else Markup('aria-hidden="true"')
    return Markup('<svg viewBox="0 0 16 16" class="{}" {}>{}</svg>').format(css, told, _icons()[name])


@cache
def _icons() -> dict[str, Markup]:
    sheet = files("surefoot.console").joinpath("static", "icons.svg").read_text()
    return {name: Markup(drawn) for name, drawn in re.findall(r'<symbol id="([a-z]+)"[^>]*>(.*?)</symbol>', sheet)}  # noqa: S704 - a file of ours


def _finalize(value: Any) -> Any:
    if isinstance(value, str) and not isinstance(value, Markup):
        return visible(value)
    return value


def render(template: str, **values: Any) -> str:
    return environment().get_template(template).render(**values)


@cache
def environment() -> Environment:
    made = Environment(
        loader=PackageLoader("surefoot.console"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"boxed": boxed, "lines": lines, "exact": exact, "bare": bare, "digest": digest}
    made.globals |= {
        "static": static_name,
        "icon": icon,
        "since": since,
        "ago": text.ago,
        "clock_time": text.clock_time,
        "moment": text.moment,
        "took": text.took,
    }
    return made


# --- static files ------------------------------------------------------------------------------------


@cache
def statics() -> dict[str, tuple[str, bytes]]:
    """By hashed name: the file's own name and its content. A name never means another content."""
    found = {}
    for one in files("surefoot.console").joinpath("static").iterdir():
        if one.is_file() and not one.name.startswith("."):
            content = one.read_bytes()
            stem, _, kind = one.name.rpartition(".")
            found[f"{stem}.{hashlib.sha256(content).hexdigest()[:16]}.{kind}"] = one.name, content
    return found


def static_name(name: str) -> str:
    """`console.css` to `console.0123456789abcdef.css`: a path segment below `/static`."""
    for hashed, (own, _) in statics().items():
        if own == name:
            return hashed
    raise KeyError(f"static/{name} does not exist")
