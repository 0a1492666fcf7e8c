"""What holds for every rule: its snippets, its own examples, its texts, its place on the page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from surefoot.lint import explain
from surefoot.lint.rules import ALL, BY_CODE

HERE = Path(__file__).parent
PAGE = HERE.parent.parent / "docs" / "lint.md"
SNIPPETS = sorted((*(HERE / "corpus").glob("*.py"), *(HERE / "more").glob("*.py")))
BLOCK = re.compile(r"^```python[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ON_PURPOSE = {"testing.md": {"SF301"}, "lint.md": {"SF106"}, "redis.md": {"SF203", "SF204"}}
"""Mistakes that a page shows to show what finds them; and a program that kills itself between two calls."""


def test_every_snippet_gives_the_codes_that_it_says(codes):
    """People switch off a rule that is wrong one time in five: a near miss counts as much as a bad one."""
    wrong = []
    for path in SNIPPETS:
        text = path.read_text()
        expected = set(text.partition("\n")[0].removeprefix("# expect:").split()) - {"none"}
        if (found := codes(text, path.name)) != expected:
            wrong.append(f"{path.parent.name}/{path.name}: expected {sorted(expected)}, found {sorted(found)}")

    assert len(SNIPPETS) >= 6 * len(ALL)
    assert not wrong, "\n".join(wrong)


def test_the_bad_example_of_a_rule_fires_it_alone_and_the_good_one_nothing(codes):
    """The page shows both. If the good one were bad, who would believe the rest?"""
    found = {rule.code: (codes(rule.bad), codes(rule.good)) for rule in ALL}

    assert found == {rule.code: ({rule.code}, set()) for rule in ALL}


def test_every_rule_has_a_code_and_a_name_of_its_own_and_there_are_35():
    """An ignore names a code, and people name the name."""
    assert len(ALL) == len(BY_CODE) == len({rule.name for rule in ALL}) == 35


@pytest.mark.parametrize("rule", ALL, ids=lambda rule: rule.code)
def test_a_rule_says_what_is_wrong_in_a_line_and_has_all_its_texts(rule):
    """The line is read in a terminal at night."""
    assert len(rule.message("…")) <= 100
    assert "\n" not in rule.says
    assert all((rule.cure, rule.why, rule.quiet, rule.bad, rule.good))
    assert rule.severity in ("error", "warning")


def test_a_rule_has_three_bad_and_three_near_snippets():
    """What a rule finds and what it must not find, in code that looks alike."""
    for rule in ALL:
        mine = [path for path in SNIPPETS if path.stem.startswith(rule.code.lower())]
        near = [path for path in mine if "-near-" in path.stem]

        assert len(mine) - len(near) >= 3, rule.code
        assert len(near) >= 3, rule.code


def test_the_page_of_the_rules_is_the_one_that_the_rules_give():
    """Every rule has its anchor, with the texts that the command prints."""
    page = PAGE.read_text()

    assert page.endswith(explain.rules_of_the_page())
    assert re.findall(r"^### (SF\d+)$", page, re.MULTILINE) == [rule.code for rule in ALL]


@pytest.mark.parametrize(
    "page", sorted((*PAGE.parent.glob("*.md"), PAGE.parent.parent / "README.md")), ids=lambda page: page.name
)
def test_our_own_pages_show_only_mistakes_that_are_meant(codes, page):
    """What people paste must pass our own rules."""
    shown = {code for text in BLOCK.findall(page.read_text()) for code in codes(text)}

    assert shown == ON_PURPOSE.get(page.name, set())
