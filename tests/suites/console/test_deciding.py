"""What people do here, in a real browser: with keys alone, with a thumb, without a script; and when things move under the hand."""

from __future__ import annotations

import json

import pytest

from tests import console_stores
from tests.suites.console.conftest import PHONE


def answers(served, run):
    return [one for one in served.entries(run) if one["kind"] == "AnswerGiven"]


def test_an_approval_is_read_and_given_with_keys_alone(visit, practice):
    page = visit(practice).open("/")

    for _ in range(40):
        if "deploy-keys" in page.url:
            break
        with page.expect_navigation():
            page.keyboard.press("j")
    assert "deploy-keys" in page.url
    assert "fix: time zone of the nightly brief" in page.locator("#detail").inner_text()
    page.keyboard.press("a")  # It opens something, or goes to the button: it records nothing by itself.
    assert answers(practice, "deploy-keys") == []
    page.locator("#note").focus()
    page.keyboard.type("looked at the diff")
    page.keyboard.press("Control+Enter")
    page.wait_for_url("**recorded=*")

    (given,) = answers(practice, "deploy-keys")
    assert (given["value"], given["by"], given["note"], given["address"]) == (
        True,
        "ann",
        "looked at the diff",
        "approve#1",
    )
    assert str(given["via"]).startswith("console")
    assert len(str(given["shown"])) > 12
    assert "Recorded in deploy-keys" in page.locator("#said-here").inner_text()


def test_the_same_with_a_thumb_on_a_phone(visit, practice):
    page = visit(practice, viewport=PHONE, has_touch=True, is_mobile=True).open("/")

    page.locator(".item", has_text="deploy-touch").tap()
    page.wait_for_load_state("load")
    bar = page.locator(".sheetbar")
    assert bar.bounding_box()["height"] >= 50
    assert not page.locator(".tabbar").is_visible()
    bar.get_by_role("link", name="Approve").tap()
    sheet = page.get_by_role("dialog")
    assert "roll_out#2" in sheet.inner_text()
    assert answers(practice, "deploy-touch") == []
    sheet.get_by_label("Note").fill("from the train")
    sheet.get_by_role("button", name="Approve").tap()
    page.wait_for_url("**recorded=*")

    (given,) = answers(practice, "deploy-touch")
    assert (given["value"], given["note"]) == (True, "from the train")


def test_the_same_without_a_script(visit, practice):
    page = visit(practice, java_script_enabled=False).open("/")

    page.locator(".item", has_text="deploy-plain").click()
    page.get_by_label("Note").fill("no script")
    page.get_by_role("button", name="Deny").click()

    (given,) = answers(practice, "deploy-plain")
    assert (given["value"], given["note"]) == (False, "no script")


def test_a_typed_answer_is_refused_with_its_field_and_keeps_the_rest(visit, practice):
    page = visit(practice).open("/?run=restock-assam")

    page.get_by_label("supplier").select_option(label="Gschwendner")
    page.get_by_label("kilos").fill("twelve")
    page.get_by_label("note (may stay empty)").fill("Darjeeling is fine, too")
    page.get_by_role("button", name="Answer").click()
    page.wait_for_load_state("load")

    assert "Nothing was recorded" in page.locator("#detail").inner_text()
    assert page.locator(".field.bad label").inner_text().startswith("kilos")
    assert page.get_by_label("note (may stay empty)").input_value() == "Darjeeling is fine, too"
    assert answers(practice, "restock-assam") == []
    console_stores.drive(practice.folder, ("publish", "new-meanwhile", "a title", "a text"))
    page.locator("#list .item", has_text="new-meanwhile").wait_for()
    assert page.get_by_label("note (may stay empty)").input_value() == "Darjeeling is fine, too"
    page.get_by_label("kilos").fill("12")
    page.get_by_role("button", name="Answer").click()
    page.wait_for_url("**recorded=*")
    (given,) = answers(practice, "restock-assam")
    assert given["value"] == {
        "supplier": "Gschwendner",
        "kilos": 12,
        "express": False,
        "note": "Darjeeling is fine, too",
    }


def test_what_was_answered_by_another_meanwhile_is_shown_anew_and_the_note_is_kept(visit, practice):
    page = visit(practice).open("/?run=deploy-seen")

    page.get_by_label("Note").fill("my long note")
    practice.surefoot("deny", "deploy-seen", "--by", "ben")
    page.get_by_role("button", name="Approve").click()
    page.wait_for_load_state("load")

    assert [one["by"] for one in answers(practice, "deploy-seen")] == ["ben"]
    told = page.locator("body").inner_text()
    assert "Nothing was recorded" in told or "off the list" in told


def test_a_double_click_is_one_entry(visit, practice):
    page = visit(practice).open("/?run=deploy-double")

    page.get_by_role("button", name="Approve").dblclick()
    page.wait_for_url("**recorded=*")

    assert len(answers(practice, "deploy-double")) == 1


def test_an_effect_in_doubt_is_settled_with_what_was_found(visit, practice):
    page = visit(practice).open("/?run=invoices-1")

    detail = page.locator("#detail")
    assert "Nordlicht Druck KG" in detail.inner_text()
    page.get_by_label("It happened").check()
    page.get_by_label("What pay returned").fill('"tr_44120938"')
    page.get_by_label("How do you know?").fill("in the list of the bank, 14:54, same key")
    page.get_by_role("button", name="Record").click()
    page.wait_for_url("**recorded=*")

    (said,) = [one for one in practice.entries("invoices-1") if one["kind"] == "EffectSettled"]
    assert (said["happened"], said["value"], said["by"]) == (True, "tr_44120938", "ann")


def test_a_drift_that_changed_again_is_shown_again_and_then_accepted(visit, practice):
    page = visit(practice).open("/runs/refactor-1/drift")

    assert "content proven" in page.locator("body").inner_text()
    page.get_by_role("link", name="Accept").first.click()
    page.wait_for_load_state("load")
    (practice.folder / "src/io.py").write_text("# again\n")
    page.get_by_role("dialog").get_by_role("button", name="Accept").click()
    page.wait_for_load_state("load")
    assert not [one for one in practice.entries("refactor-1") if one["kind"] == "DriftAccepted"]
    page.goto(f"{practice.url}/runs/refactor-1/drift?do=accept")
    page.get_by_role("dialog").get_by_label("Why?").fill("edited by hand")
    page.get_by_role("dialog").get_by_role("button", name="Accept").click()
    page.wait_for_url("**recorded=*")
    assert [one["note"] for one in practice.entries("refactor-1") if one["kind"] == "DriftAccepted"] == [
        "edited by hand"
    ]


def test_seen_takes_an_item_off_and_the_audit_has_all_of_it(visit, practice):
    window = visit(practice)
    page = window.open("/?run=import-bank-77")

    page.get_by_role("button", name="Seen").click()
    page.wait_for_url("**recorded=*")
    assert "import-bank-77" not in page.locator("#list").inner_text()
    told = window.open("/audit").locator("table").inner_text()
    assert "ann" in told
    assert "import-bank-77" in told


@pytest.mark.parametrize("run", ["invoices-1"])
def test_a_rewind_says_what_it_means_before_it_is_recorded(visit, practice, run):
    page = visit(practice).open(f"/runs/{run}?do=rewind")

    dialog = page.get_by_role("dialog")
    page.get_by_label("Before", exact=True).select_option(index=0)
    page.wait_for_load_state("load")
    assert "in doubt" in dialog.locator(".ledger").inner_text()
    assert json.dumps("RunRewound") not in json.dumps(practice.entries(run))
    page.keyboard.press("Escape")
    page.wait_for_url(lambda url: "do=rewind" not in url)
    assert page.get_by_role("dialog").count() == 0
