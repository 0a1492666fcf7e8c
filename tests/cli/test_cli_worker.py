"""`surefoot worker`: it serves until it is told to stop, and says what it leaves behind."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import urllib.request

import pytest

import surefoot as sf
from tests.working import wait_until


def queue(folder, *calls):
    """Runs of the app, queued by a process that knows its code."""
    modules = ", ".join(path.stem for path in folder.glob("*.py"))
    lines = [f"import asyncio, {modules}", *calls]
    subprocess.run([sys.executable, "-W", "error", "-c", "; ".join(lines)], cwd=folder, check=True)


def told(worker, words):
    """Read what it says until that is said."""
    said = ""
    while words not in said:
        line = worker.stderr.readline()
        assert line, f"it ended without saying {words!r}:\n{said}"
        said += line
    return said


def ended(worker):
    """Exit code, standard output, and the rest of what it said."""
    out, err = worker.communicate(timeout=30)
    return worker.returncode, out, err


def status(run):
    return sf.get_run(run).status


# --- serving ---------------------------------------------------------------------------------------------


def test_it_drives_what_is_queued_until_it_is_told_to_stop(app, child):
    """Systemd sends SIGTERM: an orderly end is exit code 0, or every deployment looks like a failure."""
    queue(app, "app.echo.start('e', 1)", "app.failing.start('f', 'luck')")
    worker = child.start("worker", "app", "--json", "--concurrency", "3")
    said = told(worker, "concurrency")
    wait_until(lambda: (status("e"), status("f")) == ("done", "failed"))

    worker.send_signal(signal.SIGTERM)
    code, out, err = ended(worker)

    assert code == 0
    assert sf.get_run("e").result() == [[1], {}]
    assert re.search(r"worker \w+ \(pid \d+\) on sqlite:///\.surefoot/runs\.db\n", said)
    assert re.search(r"workflows +acting, echo, failing, .*\n +queues +all\n +concurrency +3\n", said)
    assert "SIGTERM: taking up nothing more.\n" in err
    assert err.endswith("worker: stopped. Runs taken up: 1 done, 1 failed.\n")
    assert '"ended": {\n    "done": 1,\n    "failed": 1\n  },\n  "unfinished": []' in out


def test_only_the_queues_that_are_named_are_served(app, child):
    queue(
        app, "app.echo.using(queue='mail').start('m')", "app.echo.using(queue='slow').start('s')", "app.echo.start('n')"
    )
    worker = child.start("worker", "app", "--queue", "mail", "--queue", "")
    assert "queues       mail, (none)" in told(worker, "concurrency")

    wait_until(lambda: (status("m"), status("n")) == ("done", "done"))
    worker.send_signal(signal.SIGINT)

    assert ended(worker)[0] == 0
    assert status("s") == "queued"


def test_a_store_that_it_creates_is_announced(child):
    """A typo in a URL must not look like a store without work."""
    worker = child.start("worker", "app", "--store", "sqlite:///typo.db")

    assert "created store" in told(worker, "concurrency")
    worker.send_signal(signal.SIGTERM)
    assert ended(worker)[0] == 0


# --- stopping --------------------------------------------------------------------------------------------


def test_a_call_in_flight_is_finished_and_recorded(app, child):
    queue(app, "app.sitting.start('s')")
    worker = child.start("worker", "app")
    child.wait_until_it_sits()

    worker.send_signal(signal.SIGTERM)
    told(worker, "1 run may finish the call in flight, within 30 s")
    child.let_go()

    code, out, _ = ended(worker)
    assert (code, out) == (0, "")
    assert "StepDone" in [entry.kind for entry in sf.get_run("s").entries()]


STUCK = """
import asyncio, app
import surefoot.aio as sf

@sf.workflow
async def stuck() -> str:
    return await asyncio.to_thread(app.act)
"""


def test_the_process_ends_though_a_call_does_not(app, child):
    """A supervisor would have to use SIGKILL. Python by itself waits for ever for threads that async code hands work to."""
    (app / "stuck.py").write_text(STUCK)
    queue(app, "asyncio.run(stuck.stuck.start('a'))")
    worker = child.start("worker", "stuck", "--grace", "200ms", "--json")
    child.wait_until_it_sits()

    worker.send_signal(signal.SIGTERM)

    code, out, err = ended(worker)
    assert code == 1
    assert "Cut off: a. Steps that were under way run again; effects that were are in doubt" in err
    assert '"unfinished": [\n    "a"\n  ]' in out
    assert not sf.get_run("a").is_driven()
    assert [past.address for past in sf.get_run("a").state().in_doubt()] == ["act#1"]


def test_a_second_signal_ends_it_at_once_and_it_says_what_is_lost(app, child):
    queue(app, "app.sitting.start('s')")
    worker = child.start("worker", "app")
    child.wait_until_it_sits()

    worker.send_signal(signal.SIGTERM)
    told(worker, "taking up nothing more")
    worker.send_signal(signal.SIGTERM)

    code, _, err = ended(worker)
    assert code == 128 + signal.SIGTERM
    assert "told twice to stop. Cut off: s." in err


# --- refusing --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ((), "Missing argument 'APP'"),
        (("nothing",), "no module 'nothing'"),
        (("json:loads",), "Write json."),
        (("json", "--concurrency", "0"), "not in the range"),
        (("json", "--grace", "soon"), "not a duration"),
        (("json", "--metrics", "here"), "--metrics here: write HOST:PORT"),
        (("json", "--metrics", "70000"), "write HOST:PORT"),
    ],
)
def test_wrong_use_is_said_and_nothing_is_created(cli, own_folder, words, why):
    refused = cli("worker", *words)

    assert (refused.code, refused.out) == (2, "")
    assert why in refused.err
    assert list(own_folder.iterdir()) == []


def test_a_module_without_workflows_is_refused(shell):
    """It would serve nothing, for ever, and look healthy."""
    refused = shell("worker", "json")

    assert refused.code == 2
    assert "no workflow in module 'json'" in refused.err


def test_a_store_that_is_older_than_it_once_was_is_exit_code_4(shell, app):
    """A restart does not help: a supervisor can be told not to try."""
    shell("run", "app:echo", "--id", "1")
    older = (app / ".surefoot/runs.db").read_bytes()
    shell("run", "app:echo", "--id", "2")
    (app / ".surefoot/runs.db").write_bytes(older)

    refused = shell("worker", "app")

    assert refused.code == 4
    assert refused.err.startswith("JournalRegressed: ")


def test_a_store_that_is_not_available_at_the_start_is_exit_code_1(shell, app):
    """So that a supervisor starts it again later."""
    assert shell("worker", "app", "--store", "sqlite:///app.py/runs.db").code == 1


# --- metrics ---------------------------------------------------------------------------------------------


def test_its_numbers_are_served_to_prometheus_on_loopback(app, child):
    queue(app, "app.echo.start('e', 1)")
    worker = child.start("worker", "app", "--metrics", "0")
    [url] = re.findall(r"metrics on (http://127\.0\.0\.1:\d+/metrics)\n", told(worker, "concurrency"))
    wait_until(lambda: status("e") == "done")

    with urllib.request.urlopen(url, timeout=10) as answer:
        body = answer.read().decode()

    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert 'surefoot_runs{status="done",reason=""} 1\n' in body
    assert 'surefoot_runs_ended_total{how="done"} 1\n' in body
    assert "surefoot_store_up 1\n" in body


def test_a_port_that_is_taken_is_wrong_use(shell):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]

        refused = shell("worker", "app", "--metrics", f"127.0.0.1:{port}")

    assert refused.code == 2
    assert f"metrics cannot be served on 127.0.0.1:{port}: Address already in use" in refused.err
