"""The stories of the console, told in pictures: made by this run, of a real store, and kept in docs/pictures/console.

A picture is made anew each time; it is written only where `PICTURES` asks for it, so that a test run changes no file.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image, ImageDraw

from tests import console_stores
from tests.suites.console.conftest import PHONE, PICTURES, serving

KEEPS = bool(os.environ.get("PICTURES"))
STORIES = {
    "inbox": ("/?run=invoices-2026-11-16", {}),
    "inbox-dark": ("/?run=invoices-2026-11-16", {"color_scheme": "dark"}),
    "inbox-phone": ("/", {"viewport": PHONE}),
    "approve": ("/?run=deploy-v2.4", {}),
    "approve-phone": ("/?run=deploy-v2.4", {"viewport": PHONE}),
    "approve-sheet-phone": ("/?run=deploy-v2.4&do=approve", {"viewport": PHONE}),
    "question": ("/?run=restock-assam", {}),
    "hostile": ("/?run=%3Cb%3Exss-1", {}),
    "changed-code": ("/?run=migrate-billing", {}),
    "quarantined": ("/?run=shot-landing-page", {}),
    "runs": ("/runs", {}),
    "run": ("/runs/invoices-2026-11-16", {}),
    "run-dark": ("/runs/invoices-2026-11-16", {"color_scheme": "dark"}),
    "run-phone": ("/runs/invoices-2026-11-16", {"viewport": PHONE}),
    "run-past": ("/runs/invoices-2026-11-16?at=22", {}),
    "settle": ("/runs/invoices-2026-11-16?do=settle", {}),
    "rewind": ("/runs/invoices-2026-11-16?do=rewind", {}),
    "drift": ("/runs/refactor-pathlib/drift", {}),
    "damaged": ("/runs/payroll-2026-10", {}),
    "workers": ("/workers", {}),
    "checkpoint": ("/checkpoints/crawler-state", {}),
    "audit": ("/audit", {}),
    "store": ("/store", {}),
    "diff": ("/diff?a=brief-2026-11-17&b=brief-2026-11-17-again&all=1", {}),
}


def small(png: bytes) -> bytes:
    """With a palette: a page of ink on paper needs few colours, and the few that are loud must stay."""
    kept = io.BytesIO()
    Image.open(io.BytesIO(png)).convert("RGB").quantize(
        255, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE
    ).save(kept, "PNG", optimize=True)
    return kept.getvalue()


def keep(name: str, content: bytes) -> None:
    if KEEPS:
        PICTURES.mkdir(parents=True, exist_ok=True)
        (PICTURES / name).write_bytes(content)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", STORIES)
def test_a_picture_of(visit, shop, name):
    path, options = STORIES[name]
    page = visit(shop, **options).open(path)

    assert page.locator("h1").first.inner_text()
    keep(f"{name}.png", small(page.screenshot()))


@pytest.mark.timeout(600)
def test_a_picture_of_an_answer_that_is_refused_with_its_field(visit, shop):
    page = visit(shop).open("/?run=restock-assam")

    page.get_by_label("supplier").select_option(label="Gschwendner")
    page.get_by_label("kilos").fill("twelve")
    page.get_by_role("button", name="Answer").click()
    page.locator(".field.bad").wait_for()

    keep("question-refused.png", small(page.screenshot()))


@pytest.mark.timeout(600)
def test_a_picture_of_a_store_that_is_read_only_and_of_one_that_is_empty(visit, shop, tmp_path):
    with serving(shop.folder, "--read-only") as looked_at:
        page = visit(looked_at).open("/?run=deploy-v2.4")
        assert page.get_by_role("button", name="Approve").count() == 0
        keep("read-only.png", small(page.screenshot()))
        page.close()
    console_stores.drive(tmp_path, ("nightly_brief", "brief-1", "2026-11-18"))
    with serving(tmp_path) as calm:
        page = visit(calm).open("/")
        assert "Nobody waits for you" in page.locator("main").inner_text()
        keep("inbox-empty.png", small(page.screenshot()))
        page.close()


@pytest.mark.timeout(600)
def test_a_picture_of_a_refused_store(visit, shop, tmp_path):
    """An older copy is put in its place: what was recorded since is gone, and the console says so and nothing else."""
    console_stores.drive(tmp_path, ("nightly_brief", "brief-1", "2026-11-18"))
    older = tmp_path / "older.db"
    shutil.copy(tmp_path / "runs.db", older)
    console_stores.drive(tmp_path, ("nightly_brief", "brief-2", "2026-11-19"))
    for left in ("runs.db-wal", "runs.db-shm"):
        (tmp_path / left).unlink(missing_ok=True)
    shutil.copy(older, tmp_path / "runs.db")
    with serving(tmp_path) as refused:
        window = visit(refused)
        page = window.open("/store")
        assert "refused" in page.locator("h1").inner_text()
        keep("refused.png", small(page.screenshot()))
        page.close()


@pytest.mark.timeout(600)
def test_the_whole_story_moves(visit, tmp_path):
    """`kill -9`, the item appears, it is settled, the worker goes on: all of it by itself, on one screen that nobody reloads."""
    env = console_stores.environment(PACE="0.15", PYTHON_TARGET="3.12", AT_ONCE="1")
    console_stores.drive(tmp_path, ("nightly_brief", "brief-2026-11-17", "2026-11-17"), PACE="0.01")
    begin = [
        sys.executable,
        "-W",
        "ignore",
        "-c",
        console_stores._QUEUE,
        '[["pay_invoices", "invoices-2026-11-18", {"queue": "pay"}]]',
    ]
    worker = [sys.executable, "-m", "surefoot", "worker", "tests.console_app", "--store", console_stores.STORE]
    frames: list[tuple[Image.Image, int]] = []

    with serving(tmp_path) as served:
        page = visit(served, viewport={"width": 1360, "height": 800}).open("/")

        def shoot(words: str, milliseconds: int) -> None:
            frames.append((captioned(Image.open(io.BytesIO(page.screenshot())), words), milliseconds))

        shoot("Nobody waits for you.", 1800)
        subprocess.run(begin, cwd=tmp_path, env=env, check=True)
        first = subprocess.Popen(
            worker,
            cwd=tmp_path,
            env={**env, "DIES_AT": "pay Nordlicht Druck KG"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        assert first.wait(timeout=180) == -signal.SIGKILL
        page.locator(".item", has_text="Did pay happen?").wait_for(timeout=180_000)
        shoot("kill -9 in the middle of a payment. The item appears by itself.", 2600)
        page.locator(".item", has_text="Did pay happen?").click()
        page.get_by_label("It happened").wait_for()
        shoot("Which payment, under which key, when. And what each answer would lead to.", 3400)
        page.get_by_label("It happened").check()
        page.get_by_label("What pay returned").fill('"tr_44120938"')
        page.get_by_label("How do you know?").fill("In the list of the bank, same key")
        page.get_by_role("button", name="Record").scroll_into_view_if_needed()
        shoot("Somebody looks at the bank, and says what is there.", 2600)
        page.get_by_role("button", name="Record").click()
        page.wait_for_url("**recorded=*", timeout=120_000)
        shoot("It is on record, with a name. A worker takes the run up.", 2600)
        second = subprocess.Popen(worker, cwd=tmp_path, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            page.goto(f"{served.url}/runs/invoices-2026-11-18")
            page.locator("#verdict .lede", has_text=re.compile("^Done")).wait_for(timeout=180_000)
            shoot("It goes on where it was. Nothing was paid twice.", 4200)
        finally:
            page.close()
            second.terminate()
            second.wait(timeout=60)

    moving = io.BytesIO()
    images = [image.quantize(128, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE) for image, _ in frames]
    images[0].save(
        moving,
        "GIF",
        save_all=True,
        append_images=images[1:],
        duration=[time for _, time in frames],
        loop=0,
        optimize=True,
    )
    assert len(frames) == 6
    assert len(moving.getvalue()) <= 600_000
    keep("story.gif", moving.getvalue())


def captioned(image: Image.Image, words: str) -> Image.Image:
    """With a line below that says what happens."""
    from PIL import ImageFont

    found = Image.new("RGB", (image.width, image.height + 44), "#1d1b18")
    found.paste(image.convert("RGB"), (0, 0))
    faces = [
        Path(one)
        for one in (
            "/usr/share/fonts/opentype/inter/Inter-Medium.otf",
            "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf",
        )
    ]
    face = next((str(one) for one in faces if one.exists()), None)
    font = ImageFont.truetype(face, 17) if face else ImageFont.load_default(17)
    ImageDraw.Draw(found).text((24, image.height + 11), words, fill="#ffffff", font=font)
    return found
