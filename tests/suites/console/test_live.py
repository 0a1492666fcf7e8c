"""Pages follow the store by themselves, and leave alone what somebody has begun."""

from __future__ import annotations

from tests import console_stores


def test_an_answer_of_another_is_on_the_screen_at_once_and_a_written_note_stays(visit, practice):
    page = visit(practice).open("/?run=deploy-still")

    page.get_by_label("Note").fill("half a sent")
    page.get_by_label("Note").focus()
    rows = page.locator("#list .item").count()
    console_stores.drive(practice.folder, ("publish", "new-one", "a title", "a text"))
    page.locator("#list .item", has_text="new-one").wait_for()

    assert page.locator("#list .item").count() == rows + 1
    assert page.get_by_label("Note").input_value() == "half a sent"
    assert page.evaluate("document.activeElement.id") == "note"
    assert "new in the inbox" in page.locator("#said").inner_text()


def test_an_open_form_says_that_its_run_has_moved(visit, practice):
    page = visit(practice).open("/?run=new-two")
    console_stores.drive(practice.folder, ("publish", "new-two", "a title", "a text"))
    page.goto(f"{practice.url}/?run=new-two")

    page.get_by_label("Note").fill("mine")
    practice.surefoot("deny", "new-two", "--by", "ben")
    page.locator("form.is-stale").wait_for()

    assert "This has changed since you looked" in page.locator("#decide").inner_text()
    assert page.get_by_label("Note").input_value() == "mine"


def test_without_its_server_a_page_says_that_it_is_not_live(visit, practice, tmp_path):
    from tests.suites.console.conftest import serving

    with serving(practice.folder) as other:
        window = visit(other)
        page = window.open("/runs")
        page.locator(".live", has_text="live").wait_for()
    page.locator(".live[data-off]").wait_for(timeout=20_000)
    window.noise.clear()  # The browser says aloud that the server is gone.

    assert "not live since" in page.locator(".live").inner_text()
