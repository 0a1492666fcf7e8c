"""Mail, gRPC and databases: who refuses, who is silent, who hangs up, and what a run makes of it."""

from __future__ import annotations

import smtplib
import socket
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import grpc
import psycopg
import pytest

import surefoot as sf

SECONDS = 0.5
FAILED, DOUBT = "failed", "in doubt"


def outcome(call: Callable[[], object], **options: object) -> str:
    @sf.effect(**options)
    def send() -> None:
        call()

    @sf.workflow
    def wf() -> None:
        send()

    try:
        wf.run("r")
    except sf.InDoubt:
        return DOUBT
    except Exception:
        return FAILED
    return "done"


# -- mail -------------------------------------------------------------------------------------------------


class Mailer:
    """Speaks SMTP as far as it is told: `answers` by command, `None` for silence, `CUT` to hang up."""

    CUT = "cut"

    def __init__(self, **answers: str | None) -> None:
        self._answers = {"HELLO": "220 here", "EHLO": "250 ok", "MAIL": "250 ok", "RCPT": "250 ok", "DATA": "354 go",
                         ".": "250 taken", "QUIT": "221 bye", "RSET": "250 ok", **answers}  # fmt: skip
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()
        self._connection: socket.socket | None = None

    def _serve(self) -> None:
        try:
            self._connection, _ = self._socket.accept()
            with self._connection.makefile("rw", newline="\r\n") as talk:
                self._say(talk, "HELLO")
                for line in talk:
                    word = line.split()[0].upper() if line.strip() else ""
                    if word in self._answers and self._say(talk, word):
                        return
        except (OSError, ValueError):
            return
        finally:
            if self._connection is not None and Mailer.CUT in self._answers.values():
                self._connection.close()

    def _say(self, talk, word: str) -> bool:
        said = self._answers[word]
        if said == Mailer.CUT:
            return True
        if said is not None:
            talk.write(said + "\r\n")
            talk.flush()
        return False

    def close(self) -> None:
        self._socket.close()
        if self._connection is not None:
            self._connection.close()
        self._thread.join(5)


def mail(port: int) -> None:
    server = smtplib.SMTP("127.0.0.1", port, timeout=SECONDS)
    try:
        server.sendmail("a@example.org", ["b@example.org"], "Subject: x\r\n\r\nGood morning")
    finally:
        server.close()


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ({"HELLO": "554 no"}, FAILED),
        ({"MAIL": "550 no"}, FAILED),
        ({"RCPT": "550 no such user"}, FAILED),
        ({".": "554 rejected"}, FAILED),
        ({".": "252 well"}, DOUBT),
        ({".": None}, DOUBT),
        ({".": "cut"}, DOUBT),
        ({"EHLO": "cut"}, DOUBT),
    ],
    ids=str,
)
def test_a_mail_that_was_refused_has_failed_and_one_that_nobody_confirmed_is_in_doubt(answers, expected):
    """The server hangs up after the last line of the mail: it may have taken it."""
    mailer = Mailer(**answers)

    try:
        assert outcome(lambda: mail(mailer.port)) == expected
    finally:
        mailer.close()


def test_a_mail_server_that_is_not_there_got_no_mail(refused):
    assert outcome(lambda: mail(refused)) == FAILED


# -- gRPC -------------------------------------------------------------------------------------------------


@pytest.fixture
def grpc_port():
    """A server whose method says no with the code that it is sent; `SILENT` waits until the test is over."""
    over = threading.Event()

    def say(request: bytes, context: grpc.ServicerContext) -> bytes:
        if request == b"SILENT":
            over.wait(20)
            return b""
        context.abort(grpc.StatusCode[request.decode()], "no")
        return b""

    handler = grpc.method_handlers_generic_handler("t.T", {"Say": grpc.unary_unary_rpc_method_handler(say)})
    server = grpc.server(ThreadPoolExecutor(2), handlers=[handler])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield port
    over.set()
    server.stop(0).wait(5)


def say(port: int, word: str) -> None:
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        channel.unary_unary("/t.T/Say")(word.encode(), timeout=2 if word != "SILENT" else SECONDS)


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("INVALID_ARGUMENT", FAILED),
        ("NOT_FOUND", FAILED),
        ("PERMISSION_DENIED", FAILED),
        ("ALREADY_EXISTS", DOUBT),
        ("ABORTED", DOUBT),
        ("UNAVAILABLE", DOUBT),
        ("INTERNAL", DOUBT),
        ("SILENT", DOUBT),
    ],
)
def test_a_code_of_grpc_is_a_refusal_only_if_the_library_itself_never_says_it(word, expected, grpc_port):
    """`UNAVAILABLE` is what a lost connection looks like, too."""
    assert outcome(lambda: say(grpc_port, word)) == expected


def test_a_grpc_server_that_is_not_there_looks_like_one_that_was_lost(refused):
    assert outcome(lambda: say(refused, "NOT_FOUND")) == DOUBT


# -- databases --------------------------------------------------------------------------------------------


def test_a_row_that_the_database_does_not_take_was_not_written():
    def insert() -> None:
        db = sqlite3.connect(":memory:")
        try:
            db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
            db.execute("INSERT INTO t VALUES (1)")
            db.execute("INSERT INTO t VALUES (1)")
        finally:
            db.close()

    assert outcome(insert) == FAILED


def test_several_rows_without_a_transaction_are_in_doubt_once_the_effect_says_that_it_makes_several_requests(tmp_path):
    """sqlite3 leaves no trace of `executemany` in what it raises, nor of autocommit: only the effect can tell."""
    path = tmp_path / "shop.db"

    def insert() -> None:
        db = sqlite3.connect(path, isolation_level=None)
        try:
            db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
            db.executemany("INSERT INTO t VALUES (?)", [(1,), (2,), (1,)])
        finally:
            db.close()

    assert outcome(insert, not_done=()) == DOUBT

    db = sqlite3.connect(path)
    assert db.execute("SELECT id FROM t").fetchall() == [(1,), (2,)], "why it says so"
    db.close()


def test_a_database_that_cannot_be_reached_may_be_one_that_was_lost(refused, server):
    """The same class says "no connection" and "the connection was lost at the commit"."""
    gone = f"host=127.0.0.1 port={refused} connect_timeout=2 dbname=x user=x sslmode=disable gssencmode=disable"
    cut = gone.replace(str(refused), str(server.port))

    assert outcome(lambda: psycopg.connect(gone)) == DOUBT
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(cut)
