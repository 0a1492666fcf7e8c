"""Further cases of changed code, by the sentences of what is promised; in every form, judged as the corpus is."""

from __future__ import annotations

from typing import Any

import pytest

from tests.change.corpus_more import effects, endings, mixed, rollbacks, steps
from tests.change.forms import CORPUS, FORMS, holds, load

JUDGE = load(CORPUS / "_case.py")
GROUPS: dict[str, list[dict[str, Any]]] = {
    "effects": effects.CASES,
    "steps": steps.CASES,
    "endings": endings.CASES,
    "mixed": mixed.CASES,
    "rollbacks": rollbacks.CASES,
}
MOST = FORMS[:3]
"""The fourth, async code in a worker, is what the corpus itself is for: it would cost a quarter more here."""
ONLY = {
    "ASYNC": ("async", "async worker"),
    "BLOCKING": ("blocking", "worker"),
    "DIRECT": ("blocking", "async"),
}
"""Of a case that does not exist in every form: which forms it has. Its value is the reason."""
CASES = [(group, case) for group, cases in GROUPS.items() for case in cases]


def forms_of(case: dict[str, Any]) -> tuple[str, ...]:
    """All three, unless the case says why not."""
    only = next((forms for word, forms in ONLY.items() if word in case), MOST)
    assert only is MOST or any(len(case.get(word, "")) > 20 for word in ONLY), "say why"
    return only


@pytest.mark.parametrize(
    ("case", "form"),
    [
        pytest.param(case, form, id=f"{group}: {case['TITLE']}, {form}")
        for group, case in CASES
        for form in forms_of(case)
    ],
)
def test_further_change_while_a_run_is_unfinished(case, form, warm, monkeypatch, capsys):
    assert holds(JUDGE, warm, case, form, monkeypatch), capsys.readouterr().out


def test_nothing_is_wanted_that_the_judge_does_not_look_at():
    """It passes over words that it does not know: a case could claim what nobody checks."""
    looked_at = {"said", "nothing", "outbox", "ran", "tells"}

    assert [
        case["TITLE"] for _, case in CASES if not set(case["WANT"]) <= looked_at or not any(case["WANT"].values())
    ] == []
    assert len({case["TITLE"] for _, case in CASES}) == len(CASES)
