"""`surefoot runs show ID`: one run on one page."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from surefoot.cli import operators, output, paint
from surefoot.cli.options import Settings, told_app_option, verb
from surefoot.console import reads
from surefoot.view import facts, page, text
from surefoot.view.page import CallLine, CallPage, Page
from surefoot.view.standing import Asked
from surefoot.view.words import Help

if TYPE_CHECKING:
    from surefoot.engine.operate.handle import Run
    from surefoot.view.lanes import Bar

DETAILS_LINES, DETAILS_WIDTH = 60, 500
SHOWN_DIGITS = 12
HEADINGS = ("CALL", "KIND", "STATUS", "TRIES", "TOOK", "BY", "ARGUMENTS", "RESULT")


@click.command()
@click.argument("run_id", metavar="ID")
@click.argument("address", metavar="[ADDR]", required=False)
@told_app_option
@verb
def show(settings: Settings, run_id: str, address: str | None, app: str | None) -> None:
    """Show one run: how it stands, why it stopped, what helps, and every call it made.

    With ADDR, that call and no more, but all of it: its arguments and result in full, every attempt, who said what.
    """
    run = operators.open_run(settings, run_id)
    if address is not None:
        _show_call(settings, run, address)
        return
    seen = operators.page_of(settings, run, app)
    if settings.json:
        output.say_json(facts.run(seen, run.seen))
    else:
        draw(seen)


def _show_call(settings: Settings, run: Run, address: str) -> None:
    seen, told = reads.call_of(run, address)
    output.answer(settings, told, *_call_lines(seen, run.runtime.clock.now()))


def _call_lines(seen: CallPage, now: int) -> list[str]:
    line = seen.line
    told = [f"run {seen.run}, {line.kind} {line.address}: {line.status}"]
    found = [
        ("made by", seen.process),
        ("key", line.key),
        ("on crash", line.on_crash),
        ("said by", line.learned_by),
        ("cleared by", line.cleared_by),
        *((f"attempt {one.attempt}", _attempt(one)) for one in seen.attempts),
        ("arguments", line.raw_args),
        ("defaults", line.raw_defaults),
        ("result", line.raw_result),
        ("error", line.error),
    ]
    told += [f"  {name:<10} {content}" for name, content in found if content]
    told += [f"  {part}" for part in (question_lines(seen.asked, now) if seen.asked is not None else [])]
    return told


def _attempt(one: Bar) -> str:
    length = "" if one.open_end else f", {text.took(one.end - one.start)}"
    by = f", says {one.by}" if one.by else ""
    aside = ", set aside" if one.set_aside else ""
    error = f": {one.error}" if one.error else ""
    again = f"; again at {text.clock_time(one.until)}" if one.until and one.outcome == "retrying" else ""
    return f"{text.clock_time(one.start)}{length}: {one.outcome}{by}{aside}{error}{again}"


def draw(seen: Page) -> None:
    from rich.text import Text

    console = paint.console()

    def line(content: str = "", style: str = "") -> None:
        console.print(Text(text.visible(content), style=style), soft_wrap=True)

    now = time.time_ns() // 1000
    version = f" (version {seen.version})" if seen.version != 1 else ""
    line(f"run {seen.run}, workflow {seen.workflow}{version}", "bold")
    line(f"  status     {seen.headline}", paint.STYLES.get(seen.stands, ""))
    for name, content in _particulars(seen, now):
        line(f"  {name:<10} {content}")
    for reason in seen.reasons:
        line()
        for number, part in enumerate(text.visible_lines(f"{reason.type}: {reason.message}")):
            line(part if not number else f"  {part}", "bold red" if not number else "")
        if reason.asked is not None:
            for part in question_lines(reason.asked, now):
                line(f"  {part}")
        _cures(line, reason.cures)
    if seen.cures:
        line()
        _cures(line, seen.cures)
    if seen.calls:
        line()
        paint.draw(HEADINGS, [_row(call) for call in seen.calls], flexible=(6, 7), to=console)
        for number, process in enumerate(seen.processes, 1):
            line(f"  process {number}: {process}", "dim")


def question_lines(asked: Asked, now: int) -> list[str]:
    """Everything that an answer is bound to, for people: the whole question has to be shown before an answer."""
    found = [("question", part) for part in asked.question.split("\n")]
    found += [("details", part) for part in _laid_out(asked.details)]
    found += [("answer", f"must fit {text.shorten(asked.wanted, DETAILS_WIDTH)}")] if asked.wanted else []
    found += [("for", ", ".join(asked.by) or "anybody")]
    if asked.due:
        over = " (that is over: the next resume decides)" if asked.due <= now else ""
        found += [("until", text.clock_time(asked.due) + over)]
    found += [("shown as", asked.shown[:SHOWN_DIGITS])]
    told, before = [], ""
    for name, content in found:
        told.append(text.visible(f"{'' if name == before else name:<10} {content}"))
        before = name
    return told


def _laid_out(details: str) -> list[str]:
    import json

    if not details:
        return []
    lines = json.dumps(json.loads(details), ensure_ascii=False, indent=2).split("\n")
    if len(lines) <= DETAILS_LINES and max(map(len, lines)) <= DETAILS_WIDTH:
        return lines
    told = [text.shorten(line, DETAILS_WIDTH) for line in lines[:DETAILS_LINES]]
    return [*told, f"… that is not all of it: {len(details)} bytes, in full with --json"]


def _cures(line: Any, cures: tuple[Help, ...]) -> None:
    width = max((len(cure.when) for cure in cures), default=0)
    for cure in cures:
        line(f"  {cure.when:<{width}}   {cure.do}", "green")


def _particulars(seen: Page, now: int) -> list[tuple[str, str]]:
    driver = ""
    if seen.driver:
        driver = seen.driver + (", alive" if seen.driven else ", whose process is gone")
    found = [
        ("started", f"{text.clock_time(seen.created)}, {text.ago(seen.created, now)}"),
        ("last entry", f"{text.clock_time(seen.newest)}, {text.ago(seen.newest, now)}"),
        ("driven by", driver),
        ("segment", str(seen.segment) if seen.segment > 1 else ""),
        ("labels", ", ".join(f"{name}={value}" for name, value in seen.labels.items())),
        ("progress", seen.progress),
        ("cancel", f"asked by {seen.cancelled_by}" if seen.cancelled_by else ""),
        ("child of", seen.child_of),
        ("forked", f"from {seen.forked_from}" if seen.forked_from else ""),
        *(("sent back", rewind) for rewind in seen.rewinds),
        *(("TOO LATE", late) for late in seen.landed_late),
        *(("tried anew", retried) for retried in seen.retries),
        ("arguments", text.shorten(seen.args, page.VALUE_WIDTH)),
        ("defaults", text.shorten(seen.defaults, page.VALUE_WIDTH)),
        *((f"· {name}", text.shorten(value, page.VALUE_WIDTH)) for name, value in seen.published.items()),
        ("result", text.shorten(seen.result, page.VALUE_WIDTH)),
    ]
    return [(name, content) for name, content in found if content]


def _row(call: CallLine) -> tuple[str, ...]:
    return (
        call.address,
        call.kind,
        call.status,
        str(call.attempts),
        call.took,
        str(call.process or ""),
        call.args,
        call.result + _according_to(call),
    )


def _according_to(call: CallLine) -> str:
    """The source of the result; a call that was cleared and then ran has its own."""
    if call.learned_by:
        return f" (said by {_teller(call.learned_by)})"
    if call.cleared_by:
        then = f"; then run by process {call.process}" if call.process else "; then run"
        return f" ({_teller(call.cleared_by)} said: not happened{then})"
    return ""


def _teller(learned_by: str) -> str:
    return learned_by.removeprefix("person ")
