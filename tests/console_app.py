"""The workflows of `console_stores.py`: what a small shop has its agents do. Each dies, waits or drifts where it is told to."""

from __future__ import annotations

import hashlib
import os
import signal
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import surefoot as sf
from surefoot.witness import env, files

DIES_AT = os.environ.get("DIES_AT", "")
"""The call at which the process kills itself: `pay inv-2041.pdf`."""
CODE = os.environ.get("CODE", "1")
"""Which version of the code this is."""
PACE = float(os.environ.get("PACE", "0.03"))
AT_ONCE = int(os.environ.get("AT_ONCE", "3"))
"""How many invoices are paid side by side. One: a process that dies leaves one payment in doubt, and no other."""
INVOICES = ("inv-2039.pdf", "inv-2040.pdf", "inv-2041.pdf", "inv-2042.pdf", "inv-2043.pdf")
VENDORS = ("Papier Union", "Fastmail Pty Ltd", "Nordlicht Druck KG", "Stadtwerke Kiel", "Ronnefeldt")


def _work(times: float = 1.0) -> None:
    """Model calls and banks take their time: without it there is nothing to see in a picture."""
    threading.Event().wait(PACE * times)


def _dies(at: str) -> None:
    if at == DIES_AT:
        Path(os.environ["DEATH_NOTE"]).touch()
        os.kill(os.getpid(), signal.SIGKILL)


def _tried(name: str) -> int:
    """How often this was tried, over all processes: the world is a file."""
    note = Path(f"tried-{hashlib.sha256(name.encode()).hexdigest()[:8]}")
    note.write_text(note.read_text() + "." if note.exists() else ".")
    return len(note.read_text())


# --- paying invoices ---------------------------------------------------------------------------------


@sf.step
def list_inbox() -> list[str]:
    _work(4)
    return list(INVOICES)


@sf.step(retries=3, backoff=sf.Backoff(first="200ms", jitter=False))
def extract(pdf: str) -> dict[str, object]:
    _work(3 + INVOICES.index(pdf) * 1.5)
    if pdf == "inv-2040.pdf" and _tried(pdf) < 3:
        raise TimeoutError("the model took too long")
    number = INVOICES.index(pdf)
    return {
        "vendor": VENDORS[number],
        "cents": (184000, 4250, 248000, 61220, 35900)[number],
        "iban": "DE02 1203 0000 0000 2020 51",
    }


@sf.step
def match_order(vendor: str, cents: int) -> dict[str, object]:
    _work(2)
    return {"order": f"PO-0{cents % 900 + 100}", "vendor": vendor, "matches": True}


@sf.effect
def pay(vendor: str, cents: int, iban: str) -> str:
    _work(3)
    _dies(f"pay {vendor}")
    return f"tr_{int(hashlib.sha256(vendor.encode()).hexdigest()[:8], 16) % 10**8:08d}"


@sf.effect
def notify(paid: list[str]) -> str:
    return f"mail-{len(paid)}"


def _one(pdf: str) -> str:
    found = extract(pdf)
    match_order(str(found["vendor"]), int(str(found["cents"])))
    return pay(str(found["vendor"]), int(str(found["cents"])), str(found["iban"]))


@sf.workflow
def pay_invoices() -> str:
    paid = sf.map(_one, list_inbox(), key=lambda pdf: pdf, concurrency=AT_ONCE)
    return notify([str(one) for one in paid])


# --- questions ---------------------------------------------------------------------------------------


@dataclass
class Order:
    supplier: Literal["Gschwendner", "Paper & Tea", "Ronnefeldt"]
    kilos: int
    express: bool
    note: str = ""


@sf.step
def stock(item: str) -> dict[str, object]:
    return {"item": item, "kilos": 3, "sold_last_week": 11}


@sf.effect
def place_order(supplier: str, kilos: int) -> str:
    return f"order-{supplier[:2]}-{kilos}"


@sf.workflow
def restock(item: str) -> str:
    found = stock(item)
    order = sf.ask(
        f"{item}: 3 kg left, 11 kg sold last week. What shall we order?", type=Order, details=found, timeout="23h"
    )
    return place_order(order.supplier, order.kilos)


@sf.step
def run_tests(ref: str) -> str:
    return "1482 passed, 0 failed"


@sf.effect
def roll_out(ref: str, where: str) -> str:
    return f"{ref} on {where}"


@sf.workflow
def deploy(ref: str) -> str:
    tests = run_tests(ref)
    roll_out(ref, "staging")
    details = {
        "ref": ref, "commit": "9f3c1ab", "tests": tests,
        "migrations": [
            "ALTER TABLE invoice ADD COLUMN iban_checked_at timestamptz",
            "CREATE INDEX CONCURRENTLY invoice_by_vendor ON invoice (vendor_id)",
        ],
        "notes": f"### {ref}\n- invoices: IBAN check before payment\n- mail: retry on 421\n- fix: time zone of the nightly brief\n",
        "cost_estimate_eur": 0,
    }  # fmt: skip
    if not sf.approve(f"Deploy {ref} to production?", details=details, by=["release", "ann", "ben"], timeout="41h"):
        return "denied"
    return roll_out(ref, "production")


@sf.workflow
def publish(title: str, text: str) -> str:
    if sf.approve(f"Publish {title}?", details={"title": title, "text": text}):
        return roll_out(title, "the shop")
    return "not published"


@sf.step
def read_page(number: int) -> str:
    _work(1)
    _dies(f"read_page {number}")
    return f"page {number}: heat pumps need about a third of the power" + "." * number


@sf.workflow
def research(topic: str, pages: int = 12) -> str:
    for number in range(pages):
        read_page(number)
        sf.progress(number + 1, pages, f"page {number}")
    budget = sf.wait_event("budget")
    return f"{topic}: {budget}"


# --- the world ---------------------------------------------------------------------------------------


@sf.step
def propose(path: str) -> str:
    _work()
    return Path(path).read_text().replace("import os\n", "from pathlib import Path\n")


@sf.effect(touches=[files("src/*.py")])
def write(path: str, text: str) -> str:
    Path(path).write_text(text)
    return hashlib.sha256(text.encode()).hexdigest()


@write.check
def _(path: str, text: str) -> object:
    return (
        sf.happened(hashlib.sha256(text.encode()).hexdigest()) if Path(path).read_text() == text else sf.not_happened()
    )


@sf.workflow(watch=[files("src/*.py"), env("PYTHON_TARGET")])
def refactor(rule: str) -> int:
    done = 0
    for path in sorted(str(one) for one in Path("src").glob("*.py")):
        text = propose(path)
        write(path, text)
        done += 1
        _dies(f"refactor {done}")
    return done


# --- code that has changed, and code that takes its process down --------------------------------------


@sf.effect(name="copy_rows")
def copy_rows(lo: int, hi: int) -> int:
    return hi - lo


@sf.effect(name="move_rows")
def move_rows(lo: int, hi: int) -> int:
    return hi - lo


@sf.workflow
def migrate(table: str) -> int:
    copied = copy_rows(0, 1000) if CODE == "1" else move_rows(0, 1000)
    _dies("migrate")
    return copied


@sf.step
def render(url: str) -> str:
    _dies("render")
    return f"{url}.png"


@sf.workflow
def screenshot(url: str) -> str:
    return render(url)


# --- what ends, and what waits by itself ---------------------------------------------------------------


@sf.step
def parse(row: int) -> int:
    if row == 2:
        raise ValueError("row 1,284: 'amount' is '12,50 €', expected a decimal number")
    return row


@sf.workflow
def import_csv(path: str) -> int:
    return sum(parse(row) for row in range(4))


@sf.effect
def send_mail(to: str, subject: str) -> str:
    return f"sent-{to}"


@sf.step
def gross(name: str) -> int:
    return 480000 + len(name) * 100


@sf.workflow(on_corruption="stop")
def payroll(month: str) -> int:
    total = 0
    for name in ("ann", "ben", "cyd", "dee"):
        total += gross(name)
        send_mail(f"{name}@example.com", f"Your payslip for {month}")
    sf.wait_event("bank file signed")
    return total


@sf.workflow
def greet(name: str) -> str:
    send_mail(f"{name}@example.com", "Welcome")
    sf.sleep("3d")
    return send_mail(f"{name}@example.com", "How is it going?")


@sf.workflow
def nightly_brief(day: str) -> str:
    for number in range(4):
        read_page(number)
    return f"brief of {day}"


@sf.workflow
def yearly(year: int) -> list[str]:
    """A run with children."""
    return [
        nightly_brief.using(id=f"brief-{year}-{quarter}").run(f"brief-{year}-{quarter}", f"{year}-{quarter}")
        for quarter in ("q1", "q2")
    ]


@sf.effect
def book_hotel(city: str) -> str:
    return f"hotel-{city}"


@book_hotel.undo
def _(city: str, result: str) -> None:
    raise ConnectionError("the hotel does not answer")


@sf.workflow
def trip(who: str) -> str:
    """It fails, and what it booked cannot be undone: somebody should know."""
    with sf.saga():
        book_hotel("Lisbon")
        raise sf.Fatal("no seat left on LH 454") if hasattr(sf, "Fatal") else RuntimeError("no seat left on LH 454")


@sf.workflow
def documents(count: int) -> int:
    """It is at work for as long as somebody looks."""
    for number in range(count):
        read_page(number)
        sf.progress(number + 1, count, f"doc-{number:04d}.pdf")
        time.sleep(PACE)
    return count
