"""What a server says: bounded in time and size, never from another host, and no password shown."""

from __future__ import annotations

import json
import traceback

import pytest

from surefoot import witness
from surefoot.core.entry import ABSENT
from surefoot.core.expectation import Unseen
from surefoot.errors import UsageError
from surefoot.world import web as world_web
from surefoot.world.base import NotObservable, Pulse
from surefoot.world.web import _NOWHERE, at_pointer


def why(one, seconds=10.0):
    seen = witness.observe_all([one], seconds=seconds)[one.name]
    assert isinstance(seen, Unseen), seen
    return seen.why


RFC = {"foo": ["bar", "baz"], "": 0, "a/b": 1, "c%d": 2, "e^f": 3, "i\\j": 5, 'k"l': 6, " ": 7, "m~n": 8, "0": {"-": 9}}


@pytest.mark.parametrize(
    ("pointer", "value"),
    [("", RFC), ("/foo", ["bar", "baz"]), ("/foo/0", "bar"), ("/", 0), ("/a~1b", 1), ("/c%d", 2), ("/e^f", 3), ("/i\\j", 5),
     ('/k"l', 6), ("/ ", 7), ("/m~0n", 8), ("/0/-", 9), ("/foo/-", _NOWHERE), ("/foo/01", _NOWHERE), ("/foo/2", _NOWHERE),
     ("/foo/0/x", _NOWHERE), ("/none", _NOWHERE), ("/foo/" + "9" * 5000, _NOWHERE), ("/foo/-1", _NOWHERE), ("/foo/٠", _NOWHERE)],
)  # fmt: skip
def test_pointer_as_in_rfc_6901(pointer, value):
    found = at_pointer(RFC, pointer)
    assert found is value or found == value


@pytest.mark.parametrize("pointer", ["a", "/a~", "/~2", "#/a", None, 3])
def test_pointers_that_are_none_are_refused_at_once(pointer):
    with pytest.raises(UsageError):
        witness.http_json("http://h/", pointer)


def test_value_and_parts(web):
    web.json("/v", '{"a": {"b": [1, 2.5, null, "x"]}}', ETag='"e1"')
    one = witness.http_json(f"{web.url}/v", "/a/b")

    assert one.value() == [1, 2.5, None, "x"]
    assert list(one.fingerprint()) == [f"http:{web.url}/v#/a/b"]
    assert one.name == f"http_json({web.url}/v, /a/b)"
    assert witness.http_json(f"{web.url}/v", "/none").fingerprint() == {f"http:{web.url}/v#/none": ABSENT}
    assert witness.http_header(f"{web.url}/v", "etag").value() == '"e1"'
    assert witness.http_header(f"{web.url}/v", "X-None").fingerprint() == {f"http:{web.url}/v:x-none": ABSENT}


def test_name_of_a_header_is_the_same_in_any_case(web):
    web.json("/v", "{}", ETag="x")
    assert (
        witness.http_header(f"{web.url}/v", "ETag").fingerprint()
        == witness.http_header(f"{web.url}/v", "etag").fingerprint()
    )


def test_redirect_on_the_same_host_is_followed(web):
    web.answers["/old"] = (302, {"Location": "/new"}, b"")
    web.json("/new", '{"v": 1}')
    assert witness.http_json(f"{web.url}/old", "/v").value() == 1


@pytest.mark.parametrize(
    "to", ["http://localhost:{port}/new", "http://127.0.0.1:1/", "file:///etc/passwd", "ftp://x/y", "//other/"]
)
def test_redirect_to_elsewhere_is_not_followed(web, to):
    """An answer from another host is not the one that was asked for."""
    web.json("/new", '{"v": 1}')
    web.answers["/old"] = (302, {"Location": to.format(port=web.url.rpartition(":")[2])}, b"")

    why(witness.http_json(f"{web.url}/old", "/v"))

    assert [path for path, _ in web.asked] == ["/old"]


def test_redirect_in_a_circle_ends(web):
    web.answers["/a"] = (302, {"Location": "/a"}, b"")
    why(witness.http_json(f"{web.url}/a", ""))
    assert len(web.asked) < 10


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"NaN", b'{"a": 1, "a": 2}', b"[" * 100_000, b"\xff\xfe", b'{"a": Infinity}', b"1" * 5000],
)
def test_answer_that_is_no_sound_json_is_not_observable(web, body):
    web.answers["/x"] = (200, {}, body)
    assert "no JSON" in why(witness.http_json(f"{web.url}/x", "/a"))


@pytest.mark.parametrize("status", [204, 400, 401, 404, 500, 503])
def test_other_answers_than_success_are_not_observable(web, status):
    web.answers["/x"] = (status, {}, b"")
    assert why(witness.http_json(f"{web.url}/x", "/a"))


def test_answer_that_is_too_large_is_refused(web, monkeypatch):
    monkeypatch.setattr(world_web, "MOST_BYTES", 1000)
    web.json("/x", json.dumps("x" * 2000))
    assert "larger than 1000 bytes" in why(witness.http_json(f"{web.url}/x", ""))


def test_body_is_not_read_for_a_header(web, monkeypatch):
    monkeypatch.setattr(world_web, "MOST_BYTES", 10)
    web.json("/x", "x" * 100_000, ETag="e")
    assert witness.http_header(f"{web.url}/x", "ETag").value() == "e"


def test_answer_that_breaks_off_is_not_taken_for_whole(web):
    web.answers["/x"] = (200, {"Content-Length": "100", "Connection": "close"}, b"12")
    web.answers["/x"] = lambda handler: (
        handler.send_response(200),
        handler.send_header("Content-Length", "100"),
        handler.end_headers(),
        handler.wfile.write(b"12"),
    )
    assert "breaks off" in why(witness.http_json(f"{web.url}/x", ""))


def test_compressed_answer_is_refused(web):
    """It was not asked for; and a small one could unfold without end."""
    web.answers["/x"] = (200, {"Content-Encoding": "gzip"}, b"\x1f\x8b")
    assert "compressed" in why(witness.http_json(f"{web.url}/x", ""))


def test_server_that_says_nothing_is_not_waited_for(web):
    web.answers["/x"] = lambda _: web.release.wait()
    assert why(witness.http_json(f"{web.url}/x", ""), seconds=0.3) == "no answer within 0.3 s"


def test_server_that_trickles_is_not_waited_for(web):
    """Every byte is an answer to the socket; to us only the whole is."""

    def trickle(handler):
        handler.send_response(200)
        handler.end_headers()
        while not web.release.wait(0.02):
            handler.wfile.write(b" ")

    web.answers["/x"] = trickle
    one = witness.http_json(f"{web.url}/x", "")
    assert why(one, seconds=0.3) == "no answer within 0.3 s"
    with pytest.raises(TimeoutError):
        one.look(Pulse(0.3))


def test_server_that_is_not_there(web):
    assert why(witness.http_json("http://127.0.0.1:1/", "")) == "connection refused"


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "ftp://h/x", "http://", "http:///x", "http://h:port/", "x", "", None, "http://h/a b", "http://ü/",
            "http://h/\n", "https://user:p/w@h/"],
)  # fmt: skip
def test_urls_that_are_none_are_refused_at_once(url):
    with pytest.raises(UsageError) as caught:
        witness.http_json(url, "")
    assert "p/w" not in str(caught.value)


@pytest.mark.parametrize("header", ["", "a b", "a:b", "a\n", None])
def test_headers_that_are_none_are_refused_at_once(header):
    with pytest.raises(UsageError):
        witness.http_header("http://h/", header)


# --- passwords --------------------------------------------------------------------------------------

SECRET = "hunter%402"
SECRET_URLS = [
    "http://user:{0}@127.0.0.1:{1}/x",
    "http://{0}@127.0.0.1:{1}/x",
    "http://127.0.0.1:{1}/x?api_key={0}&page=2",
    "http://127.0.0.1:{1}/x?X-Amz-Signature={0}",
    "http://127.0.0.1:{1}/x?accessToken={0}",
    "http://127.0.0.1:{1}/x?a=1&token={0}",
]


def forms(url):
    return [witness.http_json(url, "/v"), witness.http_header(url, "ETag")]


@pytest.mark.parametrize("url", SECRET_URLS)
@pytest.mark.parametrize("status", [200, 500])
def test_password_is_used_and_shown_nowhere(web, url, status, monkeypatch):
    """Names, parts and reasons are recorded and shown; a password must not be among them."""
    url = url.format(SECRET, web.url.rpartition(":")[2])
    monkeypatch.setattr(web, "answers", Anything(status))
    for one in forms(url):
        shown = [one.name, repr(one), repr(one.spec), repr(witness.observe_all([one]))]
        if status == 500:
            with pytest.raises(NotObservable) as caught:
                one.fingerprint()
            shown.append("".join(traceback.format_exception(caught.value)))
        assert one.spec == {}
        for text in shown:
            assert "hunter" not in text
    assert all("Authorization" in headers or "hunter" in path for path, headers in web.asked)


def test_password_in_the_words_of_a_failure_is_not_shown(monkeypatch):
    """Whoever raises may quote the URL, as it is or decoded."""

    def fails(url, *_, **__):
        raise ValueError(f"cannot open {url.given} with hunter@2")

    monkeypatch.setattr(world_web, "_get", fails)
    one = witness.http_json(f"http://u:{SECRET}@h/x", "")

    with pytest.raises(NotObservable) as caught:
        one.fingerprint()

    assert "hunter" not in why(one) + "".join(traceback.format_exception(caught.value))
    assert "cannot open http://u:***@h/x with ***" in why(one)


class Anything:
    def __init__(self, status):
        self.status = status

    def get(self, path, _):
        return (self.status, {"ETag": "e"}, b'{"v": 1}')


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://u:hunter2@h/db", "postgresql://u:***@h/db"),
        ("postgres://u:hunter2@h/db", "postgresql://u:***@h/db"),
        (
            "postgresql+psycopg://u:hunter2@h1,h2:5433/db?sslmode=require",
            "postgresql://u:***@h1,h2:5433/db?sslmode=require",
        ),
        ("postgresql:///db?user=u&password=hunter2", "postgresql:///db?user=u&password=***"),
        ("postgresql://h/db?sslpassword=hunter2", "postgresql://h/db?sslpassword=***"),
    ],
)
def test_password_of_a_database_is_hidden(url, shown):
    one = witness.db_schema(url)
    assert one.name == f"db_schema({shown})"
    assert one.spec == {}
    assert "hunter2" in one.url.given


def test_url_without_a_password_can_be_looked_at_again():
    assert witness.db_schema("postgresql://u@h/db").spec == {
        "look": "db_schema", "url": "postgresql://u@h/db", "tables": "null",
    }  # fmt: skip
    assert witness.http_json("https://h/keyboard?monkey=1&page=2", "/a").spec != {}


@pytest.mark.parametrize("password", ["p/hunter2", "p@x/hunter2", "p?hunter2", "hunter2#x", "hunter2 x"])
def test_password_that_is_not_written_properly_is_not_shown_either(password):
    """Where it cannot be told from the rest, the URL is refused without a word of it."""
    with pytest.raises(UsageError) as caught:
        witness.sql(f"postgresql://u:{password}@h/db", "SELECT 1")
    assert "hunter2" not in str(caught.value)
