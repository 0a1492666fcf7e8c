"""For everybody: axe finds nothing on any page, light or dark; every pair of colours can be read; small and enlarged screens work."""

from __future__ import annotations

import re

import pytest
from axe_playwright_python.sync_playwright import Axe

from tests.console_stores import ROOT

PAGES = (
    "/", "/?run=invoices-2026-11-16", "/?run=deploy-v2.4", "/?run=restock-assam", "/?run=migrate-billing", "/?run=research-solar",
    "/?run=import-bank-77", "/runs", "/runs?view=need&q=workflow:deploy", "/runs/invoices-2026-11-16", "/runs/invoices-2026-11-16?view=calls",
    "/runs/invoices-2026-11-16?at=20", "/runs/invoices-2026-11-16?do=settle", "/runs/invoices-2026-11-16?do=rewind",
    "/runs/invoices-2026-11-16/journal", "/runs/refactor-pathlib/world", "/runs/invoices-2026-11-16/values", "/runs/invoices-2026-11-16/people",
    "/runs/refactor-pathlib/drift", "/runs/payroll-2026-10", "/diff?a=brief-2026-11-17&b=brief-2026-11-17-again", "/workers", "/checkpoints",
    "/checkpoints/crawler-state", "/audit", "/store", "/runs/no-such-run", "/?help=1",
)  # fmt: skip
CSS = (ROOT / "src/surefoot/console/static/console.css").read_text()
NEEDS = {
    "runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}
}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_violation_on_any_page(visit, shop, scheme):
    window, axe = visit(shop, color_scheme=scheme, bypass_csp=True), Axe()
    found = []

    for path in PAGES:
        page = window.open(path)
        result = axe.run(page, options=NEEDS)
        for one in result.response["violations"]:
            where = [node["html"][:140] for node in one["nodes"][:2]]
            found.append(f"{path}: {one['id']}: {one['help']}: {where}")
    window.noise.clear()  # The missing run is a 404, which a browser says aloud.

    assert found == []


@pytest.mark.parametrize("width", [320, 390, 760, 1000])
def test_no_page_is_wider_than_the_screen(visit, shop, width):
    window = visit(shop, viewport={"width": width, "height": 800})

    wide = []
    for path in PAGES[:-2]:
        page = window.open(path)
        over = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        wide += [f"{path}: {over}"] if over > 0 else []

    assert wide == []


def test_enlarged_twice_and_in_forced_colours_everything_is_there(visit, shop):
    window = visit(shop, viewport={"width": 640, "height": 500}, forced_colors="active")

    for path in ("/?run=invoices-2026-11-16", "/runs/invoices-2026-11-16"):
        page = window.open(path)
        assert page.get_by_role("heading", level=1).first.is_visible()
        assert page.locator("a:visible, button:visible").count() > 5


def tokens(block: str) -> dict[str, str]:
    return dict(re.findall(r"--([\w-]+):\s*(#[0-9a-f]{6})", block))


LIGHT = tokens(CSS.split("@media (prefers-color-scheme: dark)", 1)[0])
DARK = LIGHT | tokens(CSS.split("@media (prefers-color-scheme: dark)", 1)[1].split(":root[data-theme=dark]", 1)[0])
KINDS = ("doubt", "drift", "ask", "damage", "code", "held", "failed")
GROUNDS = ("bg", "surface", "sunken", "hover", "selected")
TEXT = [
    *((ink, ground) for ink in ("ink", "ink-2", "ink-3") for ground in GROUNDS),
    *((kind, ground) for kind in KINDS for ground in ("bg", "surface", "hover", f"{kind}-bg")),
    ("on-ink", "ink"), ("on-ink", "ink-hover"), ("link", "surface"), ("link", "bg"), ("link", "sunken"), ("on-effect", "effect"), ("ink", "step"),
    ("add", "add-bg"), ("del", "del-bg"), ("ink", "add-bg"), ("ink", "add-word"), ("ink", "del-word"), ("surface", "failed"),
]  # fmt: skip
SHAPES = [
    *((f"{kind}-fill", ground) for kind in KINDS for ground in ("bg", "surface", f"{kind}-bg")),
    ("focus", "bg"), ("focus", "surface"), ("effect", "surface"), ("edge", "surface"), ("edge", "bg"), ("step-line", "surface"), ("step-line", "hover"),
]  # fmt: skip


def contrast(a: str, b: str) -> float:
    def light(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        red, green, blue = (one / 12.92 if one <= 0.03928 else ((one + 0.055) / 1.055) ** 2.4 for one in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    high, low = sorted((light(a), light(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize(("name", "theme"), [("light", LIGHT), ("dark", DARK)])
def test_every_pair_of_colours_can_be_told_apart(name, theme):
    faint = [f"{a} on {b}: {contrast(theme[a], theme[b]):.2f}" for a, b in TEXT if contrast(theme[a], theme[b]) < 4.5]
    faint += [f"{a} on {b}: {contrast(theme[a], theme[b]):.2f}" for a, b in SHAPES if contrast(theme[a], theme[b]) < 3]

    assert faint == []


def test_both_ways_to_ask_for_dark_say_the_same():
    asked = CSS.split(":root[data-theme=dark]", 1)[1].split("\n}", 1)[0]

    assert tokens(asked) == {name: DARK[name] for name in tokens(asked)}
    assert len(tokens(asked)) > 40
