"""The ready-made effects keep what they promise when they are killed, refused, or cut off half-way (R07)."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import http.server
import os
import signal
import socket
import sqlite3
import stat
import threading
from pathlib import Path

import pytest

import surefoot as sf
from surefoot import effects, witness
from surefoot.engine.effects import files as ready_files
from tests.refactoring import kill_and_resume_refactor, kill_before_calls

# -- files ------------------------------------------------------------------------------------------


def temporaries(folder="."):
    return [path for path in Path(folder).rglob("*") if path.name.endswith(".surefoot-tmp")]


@sf.workflow(watch=[witness.files("*.txt")])
def write_one(path, content):
    return effects.write_file(path, content)


def test_a_file_is_written_with_its_hash_and_its_permissions_kept():
    Path("a.txt").write_text("old")
    os.chmod("a.txt", 0o750)

    assert write_one.run("r", "a.txt", "new") == hashlib.sha256(b"new").hexdigest()
    assert Path("a.txt").read_text() == "new"
    assert stat.S_IMODE(os.stat("a.txt").st_mode) == 0o750
    assert not temporaries()
    assert sf.get_run("r").drift() == []


def test_outside_a_run_they_are_plain_functions():
    assert effects.write_file("a.txt", b"\xff") == hashlib.sha256(b"\xff").hexdigest()
    assert effects.delete_file(Path("a.txt"))
    assert not effects.delete_file("a.txt")
    assert not temporaries()


def test_the_same_content_again_does_not_touch_the_file():
    Path("a.txt").write_text("same")
    before = os.stat("a.txt")

    effects.write_file("a.txt", "same")

    assert (os.stat("a.txt").st_ino, os.stat("a.txt").st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_a_link_stays_a_link_and_what_it_leads_to_is_written():
    Path("deep").mkdir()
    Path("deep/real.txt").write_text("old")
    os.symlink("deep/real.txt", "a.txt")

    effects.write_file("a.txt", "new")

    assert Path("a.txt").is_symlink()
    assert Path("deep/real.txt").read_text() == "new"


def test_killed_between_system_calls_nothing_is_lost_or_left(tmp_path):
    """Write, delete, and both undos. Every ninth call here, every one in `make proof`."""
    assert kill_before_calls(tmp_path, every=9) > 3


def test_a_refactor_of_twenty_files_killed_at_random_moments_sees_no_drift(tmp_path):
    """Eight kills here, two hundred in `make proof`."""
    tally = kill_and_resume_refactor(tmp_path, kills=8, seed=20261116)

    assert tally.kills == 8


def test_a_full_disk_leaves_the_old_file_and_nothing_else(monkeypatch):
    def full(descriptor, raw):
        os.write(descriptor, bytes(raw[:1]))
        raise OSError(28, "No space left on device")

    Path("a.txt").write_text("old")
    with monkeypatch.context() as patch:
        patch.setattr(ready_files, "_write_all", full)
        with pytest.raises(OSError, match="No space"):
            write_one.run("r", "a.txt", "new")

    assert Path("a.txt").read_text() == "old"
    assert not temporaries()


def test_undo_brings_back_what_was_there_and_leaves_foreign_changes_alone():
    Path("a.txt").write_text("old")
    os.chmod("a.txt", 0o600)

    @sf.workflow
    def wf(meddle):
        with sf.saga():
            effects.write_file("a.txt", "new")
            effects.write_file("b.txt", "fresh")
            if meddle:
                Path("a.txt").write_text("foreign")
            raise ValueError("no")

    with pytest.raises(ValueError):
        wf.run("r", False)
    assert (Path("a.txt").read_text(), Path("b.txt").exists()) == ("old", False)
    assert stat.S_IMODE(os.stat("a.txt").st_mode) == 0o600
    with pytest.raises(sf.Drifted, match=r"write_file.undo#2 was not executed"):
        wf.run("s", True)
    sf.get_run("s").accept_drift(by="ann")
    with pytest.raises(sf.Fatal, match="somebody has changed it"):
        wf.run("s", True)
    assert Path("a.txt").read_text() == "foreign"


def test_undo_by_name_and_of_a_deleted_link():
    os.symlink("nowhere", "a.txt")

    @sf.workflow
    def wf():
        assert effects.delete_file("a.txt")
        assert not os.path.lexists("a.txt")
        sf.undo(effects.delete_file)

    wf.run("r")
    assert os.readlink("a.txt") == "nowhere"


def test_what_was_too_large_to_keep_is_not_brought_back_in_part(monkeypatch):
    monkeypatch.setattr(ready_files, "KEPT_BYTES", 3)
    Path("a.txt").write_text("long")

    @sf.workflow
    def wf():
        effects.write_file("a.txt", "new")
        sf.undo()

    with pytest.raises(sf.Fatal, match="was not kept"):
        wf.run("r")
    assert Path("a.txt").read_text() == "new"


@pytest.mark.parametrize("path", ["", "a\0b", "~/a", b"a", 7, ".surefoot/runs.db", "folder"])
def test_what_cannot_be_a_file_is_refused_before_anything_is_recorded(path, kinds):
    Path("folder").mkdir()

    @sf.step
    def one():
        return 1

    @sf.workflow
    def wf():
        one()
        effects.write_file(path, "x")

    with pytest.raises(sf.UsageError):
        wf.run("r")
    assert "EffectIntended" not in kinds("r")


def test_a_missing_folder_is_a_failure_like_any_other():
    """It names the file that was to be written, not the one that is written beside it meanwhile."""
    with pytest.raises(FileNotFoundError, match=r"missing/a\.txt'$"):
        write_one.run("r", "missing/a.txt", "x")


def test_in_an_async_workflow_they_are_handed_to_a_thread():
    @sf.workflow
    async def wf():
        async def one(name):
            return await asyncio.to_thread(effects.write_file, name, name)

        import surefoot.aio as asf

        return await asf.gather(one("a.txt"), one("b.txt"))

    assert len(asyncio.run(wf.run("r"))) == 2
    assert Path("b.txt").read_text() == "b.txt"


def sent_back(change, at, meanwhile=lambda: None):
    """Runs `change`, goes back to `at`, and runs it again in a saga that fails: everything is undone."""
    mended = []

    @sf.workflow
    def wf():
        with sf.saga():
            change()
            if mended:
                raise ValueError("no")

    wf.run("r")
    sf.get_run("r").rewind(at)
    meanwhile()
    mended.append(1)
    with pytest.raises(ValueError):
        wf.run("r")


@pytest.mark.parametrize("at", ["write_file.before#1", "write_file#1"])
def test_undo_after_a_rewind_brings_back_what_was_there_before_the_first_attempt(at):
    """To read the file anew would find our own content, and bring back that."""
    Path("a.txt").write_text("old")
    Path("b.txt").write_text("gone")

    def change():
        effects.write_file("a.txt", "new")
        assert effects.delete_file("b.txt")

    sent_back(change, at)

    assert (Path("a.txt").read_text(), Path("b.txt").read_text()) == ("old", "gone")


def test_a_file_that_was_written_twice_goes_back_to_what_was_there_before_both():
    Path("a.txt").write_text("old")

    def change():
        effects.write_file(Path("a.txt"), "one")
        effects.write_file("a.txt", "two" * 1000)

    sent_back(change, "write_file.before#1")

    assert Path("a.txt").read_text() == "old"


def test_what_somebody_else_wrote_after_the_rewind_is_what_was_there_before():
    """Their content is not ours, so it is what an undo brings back."""
    Path("a.txt").write_text("old")

    sent_back(
        lambda: effects.write_file("a.txt", "new"),
        "write_file.before#1",
        meanwhile=lambda: Path("a.txt").write_text("theirs"),
    )

    assert Path("a.txt").read_text() == "theirs"


def test_what_was_too_large_to_keep_is_not_mistaken_for_our_own_content_after_a_rewind(monkeypatch):
    monkeypatch.setattr(ready_files, "KEPT_BYTES", 3)
    Path("a.txt").write_text("long")

    with pytest.raises(sf.Fatal, match="was not kept"):
        sent_back(lambda: effects.write_file("a.txt", "longer"), "write_file.before#1")
    assert Path("a.txt").read_text() == "longer"


def test_a_small_file_that_a_large_one_replaced_comes_back_after_a_rewind(monkeypatch):
    monkeypatch.setattr(ready_files, "KEPT_BYTES", 3)
    Path("a.txt").write_text("old")

    sent_back(lambda: effects.write_file("a.txt", "larger"), "write_file.before#1")

    assert Path("a.txt").read_text() == "old"


def test_another_path_under_the_same_name_has_its_own_past():
    """Sent back, the code writes another file: what was in the first one is no business of it."""
    name = ["a.txt"]
    Path("a.txt").write_text("old a")
    Path("b.txt").write_text("new")

    def elsewhere():
        name[0] = "b.txt"

    sent_back(lambda: effects.write_file(name[0], "new"), "write_file.before#1", elsewhere)

    assert (Path("a.txt").read_text(), Path("b.txt").read_text()) == ("new", "new")


# -- HTTP -------------------------------------------------------------------------------------------


class Server:
    """A server that notes every request and does what it is told: a list of answers, the last one for ever."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str, dict[str, str], bytes]] = []
        self.answers: list[tuple] = [(200, {}, b"fine")]
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                outer.requests.append((self.command, self.path, dict(self.headers), body))
                told = outer.answers.pop(0) if len(outer.answers) > 1 else outer.answers[0]
                if told == "cut":
                    self.connection.shutdown(socket.SHUT_RDWR)
                    return
                if isinstance(told, threading.Event):
                    told.wait(20)
                    return
                status, headers, content = told
                self.send_response(status)
                for name, value in {"Content-Length": str(len(content)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = do_PUT = do_DELETE = answer  # noqa: N815 - names of the base class

            def log_message(self, *_: object) -> None:
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        self.thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()

    def close(self) -> None:
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()


@pytest.fixture
def server(monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    made = Server()
    yield made
    made.close()


@sf.workflow
def post(url, options):
    return effects.http_request("POST", url, **options)


def test_a_request_carries_its_key_and_the_answer_is_recorded(server):
    server.answers = [(201, {"Content-Type": "application/json", "X-Request-Id": "7", "Set-Cookie": "s"}, b'{"id": 1}')]

    answer = post.run("r", server.url, {"json": {"a": 1}})

    assert (answer.status, answer.json(), answer.headers["x-request-id"]) == (201, {"id": 1}, "7")
    assert "set-cookie" not in answer.headers
    assert post.run("r", server.url, {"json": {"a": 1}}) == answer
    ((method, _, headers, body),) = server.requests
    assert (method, body, headers["Content-Type"]) == ("POST", b'{"a": 1}', "application/json")
    assert len(headers["Idempotency-Key"]) == 40


def test_outside_a_run_a_request_has_no_key(server):
    assert effects.http_request("get", server.url).body == b"fine"
    assert "Idempotency-Key" not in server.requests[0][2]


@pytest.mark.parametrize(
    "told", ["cut", (500, {}, b""), (502, {}, b""), (503, {}, b""), (302, {}, b""), (408, {}, b"")]
)
def test_an_answer_that_does_not_tell_is_in_doubt(server, told):
    """Never sent again by our own decision."""
    server.answers = [told]

    with pytest.raises(sf.InDoubt):
        post.run("r", server.url, {})
    with pytest.raises(sf.InDoubt):
        post.run("r", server.url, {})
    assert len(server.requests) == 1


def test_in_doubt_tells_which_request_got_which_answer(server):
    """Whoever is woken looks for that request at the other side; a Python literal does not help them."""

    @sf.workflow
    def secretly():
        effects.http_request("POST", sf.Secret(server.url + "?order=7"))

    server.answers = [(500, {}, b"out of \xe2\x82\xac\x1b[2J")] * 2

    with pytest.raises(sf.InDoubt) as open_url:
        post.run("r", server.url + "?order=7", {})
    with pytest.raises(sf.InDoubt) as secret_url:
        secretly.run("s")

    assert f"POST {server.url}?order=7: the server answered 500: out of €\\x1b[2J, which" in open_url.value.summary
    assert "POST 127.0.0.1 (the URL is secret): the server answered 500" in secret_url.value.summary
    assert "order=7" not in secret_url.value.summary


def test_no_answer_in_time_is_in_doubt(server):
    silent = threading.Event()
    server.answers = [silent]
    try:
        with pytest.raises(sf.InDoubt, match="no answer within"):
            post.run("r", server.url, {"timeout": 0.05})
    finally:
        silent.set()


@pytest.mark.parametrize("status", [400, 401, 404, 409, 422, 501])
def test_a_refusal_proves_that_nothing_happened(server, status):
    server.answers = [(status, {"Content-Type": "text/plain"}, b"because")]

    with pytest.raises(effects.HttpError, match="because") as first:
        post.run("r", server.url, {})
    assert first.value.status == status
    assert not isinstance(first.value, effects.HttpUnsure)
    with pytest.raises(effects.HttpError, match="because"):
        post.run("r", server.url, {})
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [429, 503])
def test_a_server_that_asks_to_wait_is_asked_again(server, status):
    server.answers = [(status, {"Retry-After": "0"}, b""), (200, {}, b"")]

    assert post.run("r", server.url, {}).status == 200
    assert len({headers["Idempotency-Key"] for _, _, headers, _ in server.requests}) == 1
    assert len(server.requests) == 2


def test_where_nobody_listens_nothing_was_sent():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        with pytest.raises(sf.NotDone, match="nothing was sent"):
            post.run("r", f"http://127.0.0.1:{taken.getsockname()[1]}", {})


def test_a_server_that_honours_the_key_gets_the_request_again_under_it(server):
    server.answers = ["cut", (409, {}, b"in progress"), (200, {}, b"")]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("surefoot.core.retry.Backoff.delay", lambda *_: 0.0)
        assert post.run("r", server.url, {"honours_key": True}).status == 200
    assert len(server.requests) == 3
    assert len({headers["Idempotency-Key"] for _, _, headers, _ in server.requests}) == 1


@pytest.mark.parametrize("known", [True, False])
def test_a_look_settles_what_is_in_doubt(server, known, sf_clock):
    """200: it happened. 404, also when its time is over: it did not, and the doubt ends as the failure it was."""
    server.answers = ["cut", *([(200, {"Content-Type": "text/plain"}, b"found")] if known else [(404, {}, b"")] * 2)]
    options = {"check_url": f"{server.url}/by-key/{{key}}", "headers": {"Authorization": "Bearer x"}}

    if known:
        assert post.run("r", server.url, options).body == "found"
    else:
        with pytest.raises(ConnectionError):
            post.run("r", server.url, options)
    sent, looked, *again = server.requests
    assert len(again) == (0 if known else 1)
    assert (looked[0], looked[1]) == ("GET", f"/by-key/{sent[2]['Idempotency-Key']}")
    assert looked[2]["Authorization"] == "Bearer x"


def test_a_look_that_tells_nothing_is_a_stop(server):
    server.answers = ["cut", (500, {}, b"")]

    with pytest.raises(sf.InDoubt, match="check_url answered 500"):
        post.run("r", server.url, {"check_url": server.url})


def test_what_gives_access_is_sent_and_never_recorded(server):
    @sf.workflow
    def wf():
        effects.http_request(
            "POST",
            sf.Secret(f"{server.url}/?token=geheim1"),
            headers={"Authorization": "geheim2", "X-Api-Key": "geheim3"},
        )

    wf.run("r")

    _, path, headers, _ = server.requests[0]
    assert (path, headers["Authorization"], headers["X-Api-Key"]) == ("/?token=geheim1", "geheim2", "geheim3")
    assert b"geheim" not in b"".join(path.read_bytes() for path in Path(".surefoot").iterdir() if path.is_file())


def test_a_long_answer_is_kept_in_part_and_says_so(server, monkeypatch):
    monkeypatch.setattr("surefoot.engine.effects.http.MOST_BYTES", 10)
    server.answers = [(200, {"Content-Type": "application/json"}, b"[1, 2, 3, 4, 5]")]

    answer = post.run("r", server.url, {})

    assert (answer.truncated, len(answer.body)) == (True, 10)
    with pytest.raises(ValueError, match="first 10 bytes"):
        answer.json()


def test_an_answer_that_breaks_off_is_not_taken_for_whole(server):
    """The status says that it was done. What came of the body is kept, and nobody reads it as all of it."""
    server.answers = [(200, {"Content-Type": "application/json", "Content-Length": "100"}, b"[1, 2]")]

    answer = post.run("r", server.url, {})

    assert (answer.status, answer.body, answer.truncated) == (200, "[1, 2]", True)
    with pytest.raises(ValueError, match="first 6 bytes"):
        answer.json()


def test_a_user_and_a_password_in_the_url_are_sent_and_never_recorded(server):
    """`urllib` takes them for a part of the host, and finds no such host."""

    @sf.workflow
    def wf():
        effects.http_request("POST", sf.Secret(server.url.replace("//", "//ann:geheim%40@")))

    wf.run("r")

    assert server.requests[0][2]["Authorization"] == f"Basic {base64.b64encode(b'ann:geheim@').decode()}"
    assert b"geheim" not in b"".join(path.read_bytes() for path in Path(".surefoot").iterdir() if path.is_file())


@pytest.mark.parametrize(
    "bad",
    [
        {"method": "PO ST"}, {"url": "file:///etc/passwd"}, {"url": "ftp://h/"}, {"url": "http://u:pw@h/"},
        {"url": "http://h/?token=x"}, {"headers": {"A": "x\r\nB: y"}}, {"headers": {"A B": "x"}}, {"headers": [1]},
        {"json": 1, "data": "x"}, {"json": object()}, {"data": 7}, {"idempotency_header": "a b"},
        {"honours_key": True, "idempotency_header": None}, {"timeout": "soon"}, {"check_url": "x"},
    ],
)  # fmt: skip
def test_a_request_that_cannot_be_sent_is_refused_before_anything_is_recorded(bad):
    given = {"method": "POST", "url": "http://127.0.0.1:1/", **bad}
    with pytest.raises(sf.UsageError):
        effects.http_request(given.pop("method"), given.pop("url"), **given)


# -- rows -------------------------------------------------------------------------------------------


@pytest.fixture
def shop():
    db = sqlite3.connect("shop.db")
    db.execute('CREATE TABLE "order" (id INTEGER PRIMARY KEY, "group" TEXT, note TEXT DEFAULT \'-\')')
    db.commit()
    yield lambda: db.execute('SELECT * FROM "order" ORDER BY id').fetchall()
    db.close()


def test_a_row_is_inserted_or_updated_by_its_key(shop):
    @sf.workflow
    def wf():
        effects.upsert("sqlite:///shop.db", "order", "id", {"id": 1, "group": "a"})
        effects.upsert("sqlite:///shop.db", "order", ["id"], {"id": 1, "group": "b'; DROP TABLE x"})
        effects.upsert("sqlite:///shop.db", "main.order", "id", {"id": 2})

    wf.run("r")
    assert shop() == [(1, "b'; DROP TABLE x", "-"), (2, None, "-")]


def test_killed_after_the_row_was_put_it_is_put_again(program, shop):
    program.write(
        """
        import os, signal
        import surefoot as sf
        from surefoot import effects
        from surefoot.engine.effects.databases.sqlite import SqliteWork

        real = SqliteWork.commit
        def commit(work):
            real(work)
            if os.environ.get("DIE"):
                os.kill(os.getpid(), signal.SIGKILL)
        SqliteWork.commit = commit

        @sf.workflow
        def wf():
            effects.upsert("sqlite:///shop.db", "order", "id", {"id": 1, "group": "a"})
            return "done"

        print(wf.run("r"))
        """
    )
    assert program.run(DIE="1").returncode == -signal.SIGKILL
    assert program.run().stdout == "done\n"
    assert shop() == [(1, "a", "-")]


def test_a_row_for_a_database_that_is_not_there_makes_none():
    """A slip in the path would leave an empty file, and blame the table."""

    @sf.workflow
    def wf():
        effects.upsert("sqlite:///slip.db", "order", "id", {"id": 1})

    with pytest.raises(FileNotFoundError, match=r"no such database: .*slip\.db"):
        wf.run("r")
    assert not Path("slip.db").exists()


def test_a_row_for_a_table_that_is_not_there_tells_which_database(shop):
    @sf.workflow
    def wf():
        effects.upsert("sqlite:///shop.db", "slip", "id", {"id": 1})

    with pytest.raises(sf.StepFailed, match=r"shop\.db: no such table: slip"):
        wf.run("r")


def test_a_password_in_the_url_is_not_recorded(monkeypatch):
    def broken(self, *, make):
        raise sf.NotDone("no server")

    monkeypatch.setattr("surefoot.engine.effects.databases.postgres.PostgresDatabase.begin", broken)

    @sf.workflow
    def wf():
        effects.upsert("postgresql://u:geheim@h/db", "t", "id", {"id": 1})

    with pytest.raises(sf.NotDone):
        wf.run("r")
    assert b"geheim" not in b"".join(path.read_bytes() for path in Path(".surefoot").iterdir() if path.is_file())


@pytest.mark.parametrize(
    ("table", "key", "row"),
    [
        ('t"; DROP TABLE t; --', "id", {"id": 1}), ("a.b.c", "id", {"id": 1}), ("", "id", {"id": 1}), (7, "id", {"id": 1}),
        ("t", 'i"d', {'i"d': 1}), ("t", "id", {}), ("t", "id", {"id": None}), ("t", "id", {"x": 1}), ("t", [], {"id": 1}),
        ("t", "id", {"id": 1, "x y": 2}), ("t", "id", {"id": 1, "x": [1]}), ("t", "id", [1]), ("t", ["id", "id"], {"id": 1}),
    ],
)  # fmt: skip
def test_names_that_are_no_plain_names_are_refused(table, key, row):
    """An identifier cannot be bound, so nothing but plain ones is let through."""
    with pytest.raises(sf.UsageError):
        effects.upsert("sqlite:///shop.db", table, key, row)


FOUND = """
import os, sys
import surefoot as sf, surefoot.effects as ready
from surefoot import witness
from surefoot.core.entry import EffectSettled
from surefoot.engine.drive import acts
from surefoot.engine.effects import files

def dies(*_):
    os._exit(9)

append = acts.append

def append_and_die(session, *entries):
    append(session, *entries)
    if isinstance(entries[-1], EffectSettled):
        dies()

if "in-doubt" in sys.argv:
    files._sync_folder = dies
if "found" in sys.argv:
    acts.append = append_and_die

@sf.workflow(watch=[witness.file("a.txt")])
def wf():
    ready.write_file("a.txt", "ours")
    ready.delete_file("a.txt")

try:
    wf.run("r")
except sf.Stopped as stop:
    print(type(stop).__name__)
"""


def test_how_a_file_was_left_is_on_record_with_the_word_of_the_check(program, tmp_path):
    """Killed between the two, the next process took what somebody else had written for what the effect had left."""
    program.write(FOUND)
    assert program.run("in-doubt").returncode == 9
    assert program.run("found").returncode == 9
    (tmp_path / "a.txt").write_text("theirs")

    again = program.run()

    assert again.stdout.strip() == "Drifted", again.stderr
    assert (tmp_path / "a.txt").read_text() == "theirs"
