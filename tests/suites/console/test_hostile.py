"""Text from runs is text: nothing that a run says becomes an element, an attribute, a request, a dialog or a command."""

from __future__ import annotations

import json
import shlex
import subprocess

import pytest

from tests import console_stores
from tests.suites.console.conftest import Served, serving

CORES = (
    "<img src=x onerror=alert({n})>", "<script>alert({n})</script>", "<svg onload=alert({n})>", '"><script>alert({n})</script>',
    "'><img src=x onerror=alert({n})>", "javascript:alert({n})", "data:text/html,<script>alert({n})</script>", "{{{{ 7*{n} }}}}", "{{% set x = {n} %}}",
    "</textarea><script>alert({n})</script>", "</title><script>alert({n})</script>", "</style><script>alert({n})</script>",
    "<iframe srcdoc='<script>alert({n})</script>'>", "<a href=javascript:alert({n})>x</a>", "<form action=//evil.example/{n}><button>x</button>",
    "<meta http-equiv=refresh content='0;url=//evil.example/{n}'>", "<link rel=stylesheet href=//evil.example/{n}.css>",
    "<base href=//evil.example/{n}/>", "' onmouseover='alert({n})' x='", '" autofocus onfocus="alert({n})" x="',
)  # fmt: skip
WRAPS = (
    "{}",
    "a{}b",
    "{}\u202e",
    "\u200b{}",
    "{}\x1b[31m",
    "x\n{}",
    "{} &lt;b&gt;",
    "&#60;{}",
    "%3Cscript%3E{}",
    "{}" + "\u00e9\U0001f600",
)
PAYLOADS = [
    wrap.format(core.format(n=number))
    for number, (wrap, core) in enumerate((wrap, core) for wrap in WRAPS for core in CORES)
]
_EVERYWHERE = """
import sys, json, pathlib
import surefoot as sf
from surefoot.witness import observe

@sf.workflow(name='say <b onclick=alert(1)>')
def say(first, second, third):
    with sf.scope(second):
        seen(first, third)
    sf.publish(third[:200] or 'x', first)
    sf.progress(1, 2, second)
    if sf.approve(first, details={second[:100] or 'k': third, 'list': [first, {second: third}]}):
        raise ValueError(third)
    sf.wait_event(second)

@sf.step
def seen(one, two):
    return {'one': one, two: one}

payloads = json.load(open('payloads.json'))
for n in range(0, len(payloads), 4):
    first, second, third, fourth = payloads[n:n + 4]
    run = f'{n:03d}' + ''.join(c for c in fourth if c.isprintable())[:180]
    try:
        say.using(labels={'x': third[:60]}).run(run, first, second, third)
    except sf.WaitingForAnswer:
        pass
    handle = sf.get_run(run)
    if n % 3 == 0:
        handle.answer('approve#1', n % 2 == 0, by=fourth[:60], note=second)
        try:
            handle.resume()
        except (sf.SurefootError, ValueError):
            pass
"""


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    (folder / "payloads.json").write_text(json.dumps(PAYLOADS))
    said = console_stores.python(folder, _EVERYWHERE)
    assert "Traceback" not in said, said
    with serving(folder) as served:
        yield served


def runs_of(served: Served) -> list[str]:
    return list(
        json.loads(
            console_stores.python(
                served.folder, "import json, surefoot as sf; print(json.dumps([one.id for one in sf.runs(limit=500)]))"
            )
        )
    )


BORN = """() => {
  const found = [];
  for (const node of document.querySelectorAll('*')) {
    for (const one of node.getAttributeNames()) if (one.startsWith('on') || one === 'style' || one === 'srcdoc') found.push(`${node.nodeName} ${one}`);
    for (const one of ['href', 'src', 'action']) { const to = node.getAttribute(one); if (to && !to.startsWith('/') && !to.startsWith('#')) found.push(`${node.nodeName} ${one}=${to.slice(0, 60)}`); }
    if (['IMG', 'IFRAME', 'OBJECT', 'EMBED', 'BASE', 'STYLE'].includes(node.nodeName)) found.push(node.nodeName);
    if (node.nodeName === 'SCRIPT' && !node.src) found.push('inline script');
    if (node.nodeName === 'META' && node.httpEquiv) found.push('meta refresh');
  }
  return [...found, document.querySelectorAll('script').length === 1 ? '' : 'scripts', document.title.includes('surefoot') ? '' : 'title'].filter(Boolean);
}"""


def test_there_are_two_hundred_of_them():
    assert len(set(PAYLOADS)) == 200


@pytest.mark.timeout(600)
def test_nothing_is_born_from_what_runs_say(visit, hostile):
    """Whatever a page asks elsewhere, says aloud or reports against its policy fails in `visit`."""
    window = visit(hostile)
    found, seen = [], ""
    from urllib.parse import quote

    runs = runs_of(hostile)
    paths = ["/", "/runs", "/audit", "/workers", "/store"]
    for number, run in enumerate(runs):
        here = f"/runs/{quote(run, safe='')}"
        paths += (
            [here, f"{here}/values", f"/?run={quote(run, safe='')}"]
            if number % 2
            else [here, f"{here}/journal", f"{here}/people", f"{here}?do=rewind"]
        )
    for path in paths:
        page = window.open(path)
        found += [f"{path}: {one}" for one in page.evaluate(BORN)]
        seen += page.evaluate("document.body.textContent")

    assert found == []
    assert len(runs) == 50
    for number, payload in enumerate(PAYLOADS):
        core = CORES[number % len(CORES)].format(n=number)
        assert core in seen, payload


def test_a_script_of_the_page_cannot_make_markup_of_text(visit, hostile):
    window = visit(hostile)
    page = window.open("/runs")

    said = page.evaluate(
        "() => { try { document.body.innerHTML = '<b>x</b>'; return 'made'; } catch (error) { return error.name; } }"
    )

    assert said == "TypeError"
    assert "TrustedHTML" in window.noise.pop()


def test_commands_on_the_page_give_the_id_back(visit, hostile):
    from urllib.parse import quote

    window = visit(hostile)
    for run in runs_of(hostile)[:12]:
        page = window.open(f"/runs/{quote(run, safe='')}?do=rewind")
        for command in page.locator(".cli code").all():
            line = command.get_attribute("data-text") or ""
            words = (
                subprocess.run(["sh", "-c", f"printf '%s\\0' {line}"], capture_output=True, check=True)
                .stdout.decode()
                .split("\0")
            )
            assert run in words
            assert shlex.split(line) == words[:-1]
