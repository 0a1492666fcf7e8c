"""Sinks that take time: they are tried within bounds, away from the run, and their failure is nobody's trouble."""

from __future__ import annotations

import json
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

import surefoot as sf
from surefoot.engine.process import alerts
from surefoot.store.open import close_all

HOSTILE = "\x1b[31mred\u202e"


@sf.workflow
def waiting():
    sf.approve(f"Go {HOSTILE}?")


@pytest.fixture
def configured():
    def use(*sinks):
        sf.configure(alerts=sinks)

    yield use
    sf.configure(alerts=[])


@pytest.fixture
def server():
    """A web hook on this machine that answers as it is told, one answer after the other."""

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self.heard.append({"type": self.headers["Content-Type"], **json.loads(body)})
            self.paths.append(self.path)
            status = self.answers.pop(0) if self.answers else 200
            self.send_response(status)
            if status == 302:
                self.send_header("Location", "/elsewhere")
            self.end_headers()

        def do_GET(self):
            self.paths.append(f"GET {self.path}")
            self.send_response(200)
            self.end_headers()

        def log_message(self, *args):
            pass

    Hook.answers, Hook.heard, Hook.paths = [], [], []
    listening = HTTPServer(("127.0.0.1", 0), Hook)
    thread = threading.Thread(target=listening.serve_forever, args=(0.01,))
    thread.start()
    Hook.url = f"http://127.0.0.1:{listening.server_port}/hook/secret"
    yield Hook
    listening.shutdown()
    thread.join()
    listening.server_close()


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(alerts, "FIRST_PAUSE", 0.01)


def stop(run="r"):
    with pytest.raises(sf.WaitingForAnswer):
        waiting.run(run)


def test_a_webhook_gets_text_run_and_kind_as_json(server, configured):
    hook = sf.alerts.webhook(server.url)
    configured(hook)

    stop()

    assert hook.finish(30)
    [told] = server.heard
    assert (told["type"], told["run"], told["kind"]) == ("application/json", "r", "WaitingForAnswer")
    assert "waiting for an answer: Go \\x1b[31mred\\u202e?" in told["text"]
    assert "surefoot approve r" in told["text"]


def test_a_webhook_that_is_down_for_a_moment_is_tried_again(server, configured, impatient):
    server.answers[:] = [503, 429]
    hook = sf.alerts.webhook(server.url)
    configured(hook)

    stop()

    assert hook.finish(30)
    assert len(server.heard) == 3


@pytest.mark.parametrize("status", [400, 404, 302])
def test_a_webhook_that_says_no_is_not_asked_again_and_its_secret_path_is_not_logged(
    server, configured, caplog, status
):
    """A redirection would turn the alert into a GET that says nothing."""
    server.answers[:] = [status]
    hook = sf.alerts.webhook(server.url)
    configured(hook)

    stop()

    assert hook.finish(30)
    assert server.paths == ["/hook/secret"]
    assert f"the server answered {status}" in caplog.text
    assert "secret" not in caplog.text


def test_a_webhook_that_is_never_there_is_given_up_and_the_run_did_not_wait(configured, caplog, impatient):
    hook = sf.alerts.webhook("http://127.0.0.1:1/hook/secret")
    configured(hook)

    stop()

    assert hook.finish(30)
    assert "webhook at 127.0.0.1:1: an alert could not be delivered" in caplog.text
    assert "secret" not in caplog.text


def test_the_run_does_not_wait_for_a_webhook_that_hangs(configured):
    """The other side accepts the connection and says nothing."""
    import socket

    silent = socket.create_server(("127.0.0.1", 0))
    try:
        hook = sf.alerts.webhook(f"http://127.0.0.1:{silent.getsockname()[1]}/", timeout=1)
        configured(hook)
        started = time.monotonic()
        for number in range(5):
            stop(f"r{number}")
        assert time.monotonic() - started < 1
    finally:
        silent.close()
    assert hook.finish(30)


def test_a_command_gets_the_text_on_its_standard_input_and_no_shell_reads_it(configured, tmp_path):
    keep = "import os, sys; open(sys.argv[1], 'w').write(os.environ['SUREFOOT_ALERT_RUN'] + os.environ['SUREFOOT_ALERT_KIND'] + sys.stdin.read())"
    program = sf.alerts.command([sys.executable, "-c", keep, "$(touch evil) `x`; out"])
    configured(program)

    stop("run $(touch evil)")

    assert program.finish(30)
    assert not (tmp_path / "evil").exists()
    told = (tmp_path / "$(touch evil) `x`; out").read_text()
    assert told.startswith("run $(touch evil)WaitingForAnswerWaitingForAnswer: run run $(touch evil), approve#1")
    assert "\x1b" not in told


@pytest.mark.parametrize(
    ("code", "timeout", "why"),
    [
        ("import sys; sys.exit(7)", 30, "exit code 7"),
        ("import threading; threading.Event().wait()", 0.5, "did not end within 0.5 s"),
    ],
)
def test_a_command_that_fails_or_hangs_is_logged_and_ended(configured, caplog, code, timeout, why):
    program = sf.alerts.command([sys.executable, "-c", code], timeout=timeout)
    configured(program)

    stop()

    assert program.finish(30)
    assert why in caplog.text


def test_what_is_on_its_way_gets_a_moment_when_the_process_ends(program, server):
    """A cron job meets a stop and ends at once; the alert is the whole point of it."""
    server.answers[:] = [503]
    program.write(f"""
        import surefoot as sf
        sf.configure(alerts=[sf.alerts.webhook({server.url!r})])

        @sf.workflow
        def wf():
            sf.approve("Go?")

        try:
            wf.run("r")
        except sf.WaitingForAnswer:
            pass
    """)

    ended = program.run()

    assert (ended.returncode, len(server.heard)) == (0, 2)


def test_a_fork_delivers_its_own_alerts_and_not_its_parents(configured):
    delivered = []
    sink = alerts.Background("test", delivered.append, attempts=1)
    sink(alerts.Alert("of the parent"))
    assert sink.finish(30)
    sink._pid += 1  # as in a forked child: another process, and no thread

    sink(alerts.Alert("of the child"))

    assert sink.finish(30)
    assert delivered == ["of the parent", "of the child"]


def test_alerts_that_nobody_takes_do_not_fill_the_memory(monkeypatch, caplog):
    monkeypatch.setattr(alerts, "KEPT", 2)
    gate = threading.Event()
    sink = alerts.Background("test", lambda _: gate.wait(30), attempts=1)

    for number in range(5):
        sink(alerts.Alert(f"number {number}"))
    gate.set()

    assert sink.finish(30)
    assert "an alert was dropped" in caplog.text


def test_the_log_is_a_sink_too(configured, caplog):
    configured(sf.alerts.log())

    stop()

    assert any(record.name == "surefoot.alerts" for record in caplog.records)


@pytest.mark.parametrize(
    "make",
    [
        lambda: sf.alerts.command("rm -rf /"),
        lambda: sf.alerts.command([]),
        lambda: sf.alerts.command([1]),
        lambda: sf.alerts.command(["there-is-no-such-program"]),
        lambda: sf.alerts.command(["true"], timeout=0),
        lambda: sf.alerts.webhook("file:///etc/passwd"),
        lambda: sf.alerts.webhook("http://"),
        lambda: sf.alerts.webhook("http://host/", timeout=-1),
    ],
)
def test_a_sink_that_could_not_work_is_refused_when_it_is_made(make):
    with pytest.raises(sf.UsageError):
        make()


# --- what else is told -----------------------------------------------------------------------------------------


def damaged(run):
    """Change one byte of the run's second entry, as a disk would."""
    import apsw

    close_all()
    database = apsw.Connection(".surefoot/runs.db")
    ((body,),) = database.execute("SELECT body FROM entries WHERE run = ? AND seq = 2", (run,)).fetchall()
    altered = bytes([*body[:9], body[9] ^ 4, *body[10:]])
    database.execute("UPDATE entries SET body = ? WHERE run = ? AND seq = 2", (altered, run))
    database.close()


def test_damage_is_told_whether_it_is_stepped_back_from_or_not(configured):
    heard = []
    configured(heard.append)
    stop()
    heard.clear()
    damaged("r")

    sf.configure(on_corruption="stop")
    try:
        with pytest.raises(sf.JournalCorrupt):
            waiting.run("r")
    finally:
        sf.configure(on_corruption="fallback")
    assert [(one.run, one.kind) for one in heard] == [("r", "JournalCorrupt")]
    heard.clear()

    stop()
    assert [(one.run, one.kind) for one in heard] == [("r", "fallback"), ("r", "WaitingForAnswer")]


def test_a_value_that_the_code_cannot_read_any_more_is_told(configured, monkeypatch):
    """It needs a person as surely as a stop does, though there is nothing to record."""
    from surefoot.core import registry

    class Thing:
        pass

    sf.register(Thing, name="alerts-thing", encode=lambda _: 1, decode=lambda _: Thing())
    crash = [True]

    @sf.step
    def make():
        return Thing()

    @sf.workflow
    def reading():
        make()
        if crash[0]:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reading.run("r")
    heard = []
    configured(heard.append)
    monkeypatch.delitem(registry._by_name, "alerts-thing")

    with pytest.raises(sf.SchemaMismatch):
        reading.run("r")
    assert [(one.run, one.kind) for one in heard] == [("r", "SchemaMismatch")]


def test_what_helps_names_the_store_where_it_is_not_the_default_one(configured):
    """An alert is read on another screen: pasted as it is, the command must find the run."""
    heard = []
    configured(heard.append)

    with pytest.raises(sf.WaitingForAnswer):
        waiting.using(store="sqlite:///elsewhere.db").run("r")
    with pytest.raises(sf.WaitingForAnswer):
        waiting.using(store="sqlite:///elsewhere.db", wait=0.01).run("r2")
    stop("r3")

    elsewhere, while_waiting, here = (one.splitlines()[1:] for one in heard)
    for cures in (elsewhere, while_waiting):
        assert cures
        assert all(line.endswith(" --store sqlite:///elsewhere.db") for line in cures)
    assert here
    assert not any("--store" in line for line in here)


def test_an_older_state_of_the_store_is_told_when_it_is_met_and_when_it_is_adopted(configured, tmp_path):
    from surefoot.cli.main import main

    stop("r1")
    close_all()
    older = (tmp_path / ".surefoot" / "runs.db").read_bytes()
    stop("r2")
    close_all()
    (tmp_path / ".surefoot" / "runs.db").write_bytes(older)
    heard = []
    configured(heard.append)

    with pytest.raises(sf.JournalRegressed):
        waiting.run("r1")
    assert main(["adopt", "--reason", "restored", "--by", "ann", "--yes"]) == 0

    assert [one.kind for one in heard] == ["JournalRegressed", "adopted"]
    assert "adopted by ann: restored" in heard[1]


def test_a_checkpoint_that_fell_back_is_told(configured, tmp_path):
    checkpoint = sf.Checkpoint("nightly", store=f"file://{tmp_path}/kept")
    checkpoint.save({"n": 1})
    checkpoint.save({"n": 2})
    newest = max((tmp_path / "kept" / "nightly").glob("*.json"))
    newest.write_text(newest.read_text().replace("2", "3", 1))
    heard = []
    configured(heard.append)

    assert sf.Checkpoint("nightly", store=f"file://{tmp_path}/kept").load() == {"n": 1}

    assert [one.kind for one in heard] == ["checkpoint"]
    assert "fell back" in heard[0]
