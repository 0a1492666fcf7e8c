"""What the real clients raise when a server refuses, is silent, says no, or hangs up, and what is made of it.

The table of `core/clients.py` goes by names. Whether the installed packages still raise these classes, in these places,
only they can tell. A word on the side of doubt costs a question; one on the other side, a second charge.
"""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Callable

import aiohttp
import anthropic
import botocore.config
import botocore.session
import httpx
import httpx2
import openai
import pytest
import requests
import stripe
import urllib3

import surefoot as sf

SECONDS = 0.4
FAILED, DOUBT = "failed", "in doubt"


def with_httpx(url: str) -> None:
    httpx.post(url, timeout=SECONDS, follow_redirects=True).raise_for_status().json()


def with_httpx2(url: str) -> None:
    httpx2.post(url, timeout=SECONDS, follow_redirects=True).raise_for_status().json()


def with_requests(url: str) -> None:
    response = requests.post(url, json={"a": 1}, timeout=SECONDS)
    response.raise_for_status()
    response.json()


def with_urllib3(url: str) -> None:
    with urllib3.PoolManager() as pool:
        response = pool.request("POST", url, timeout=SECONDS)
        if response.status >= 400:
            raise sf.HttpError(response.status, "no") if response.status < 500 else sf.HttpUnsure(response.status, "?")


def with_urllib(url: str) -> None:
    try:
        with urllib.request.urlopen(url, data=b"{}", timeout=SECONDS) as response:
            json.load(response)
    except urllib.error.HTTPError as error:
        error.close()
        raise


def with_aiohttp(url: str) -> None:
    async def post() -> None:
        limit = aiohttp.ClientTimeout(total=SECONDS)
        async with (
            aiohttp.ClientSession(timeout=limit, raise_for_status=True) as session,
            session.post(url) as response,
        ):
            await response.json()

    asyncio.run(post())


PLAIN: dict[str, Callable[[str], None]] = {
    "httpx": with_httpx,
    "httpx2": with_httpx2,
    "requests": with_requests,
    "urllib": with_urllib,
    "aiohttp": with_aiohttp,
}
EXPECTED = {
    "refused": FAILED, "402": FAILED, "404": FAILED, "422": FAILED, "429": FAILED,
    "408": DOUBT, "409": DOUBT, "500": DOUBT, "503": DOUBT,
    "silent": DOUBT, "cut": DOUBT, "half": DOUBT, "away": DOUBT, "to-404": DOUBT,
}  # fmt: skip


def outcome(call: Callable[[str], None], url: str) -> str:
    """What a run makes of an effect that uses the client like this."""

    @sf.effect
    def send(url: str) -> None:
        call(url)

    @sf.workflow
    def wf(url: str) -> None:
        send(url)

    try:
        wf.run("r", url)
    except sf.InDoubt:
        return DOUBT
    except Exception:
        return FAILED
    return "done"


def url_of(server, refused: int, how: str) -> str:
    return f"http://127.0.0.1:{refused}/x" if how == "refused" else f"http://127.0.0.1:{server.port}/{how}"


@pytest.mark.parametrize("how", EXPECTED)
@pytest.mark.parametrize("client", PLAIN)
def test_a_plain_client_fails_only_where_nothing_was_done(client, how, server, refused):
    """The same nine ways to go wrong, for each client that sends a request once."""
    assert outcome(PLAIN[client], url_of(server, refused, how)) == EXPECTED[how]


def with_aiohttp_that_connects(url: str) -> None:
    async def post() -> None:
        limit = aiohttp.ClientTimeout(sock_connect=SECONDS)
        async with aiohttp.ClientSession(timeout=limit) as session, session.post(url):
            pass

    asyncio.run(post())


CONNECTING = {"httpx": with_httpx, "requests": with_requests, "aiohttp": with_aiohttp_that_connects}


@pytest.fixture
def full():
    """A port where nobody accepts, and the queue is full: a connection is neither made nor refused."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener:
        waiting = [socket.socket() for _ in range(4)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(listener.getsockname())
        yield listener.getsockname()[1]
        for one in waiting:
            one.close()


@pytest.mark.parametrize("client", CONNECTING)
def test_a_time_out_while_connecting_has_sent_nothing(client, full):
    """The clients make it of a bare TimeoutError, which by itself would prove nothing."""
    assert outcome(CONNECTING[client], f"http://127.0.0.1:{full}/") == FAILED


@pytest.mark.parametrize("client", ["httpx", "requests"])
def test_a_time_out_while_connecting_says_nothing_of_the_request_before_it(client, server, full):
    """One host did not answer in time, and the next one could not be reached: the first may have done it."""

    def one_after_the_other(url: str) -> None:
        try:
            CONNECTING[client](url)
        except Exception:
            CONNECTING[client](f"http://127.0.0.1:{full}/")

    assert outcome(one_after_the_other, f"http://127.0.0.1:{server.port}/silent") == DOUBT


@pytest.mark.parametrize("how", ["refused", "silent", "cut", "half", "away"])
def test_urllib3_tries_by_itself_and_only_tries_that_were_not_sent_count_as_none(how, server, refused):
    """It connects four times by default; what matters is whether one of them got through."""
    assert outcome(with_urllib3, url_of(server, refused, how)) == (FAILED if how == "refused" else DOUBT)


def test_a_retry_that_is_not_sent_says_nothing_of_the_try_before(refused):
    """A PUT is cut off after it was sent, and the server goes down: the last word is "connection refused"."""
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]

    def once() -> None:
        connection, _ = listener.accept()
        connection.recv(65536)
        listener.close()
        connection.close()

    thread = threading.Thread(target=once)
    thread.start()
    session = requests.Session()
    retry = urllib3.Retry(total=2, backoff_factor=0)
    session.mount("http://", requests.adapters.HTTPAdapter(max_retries=retry))
    with session:
        found = outcome(
            lambda url: session.put(url, data=b"x", timeout=2).raise_for_status(), f"http://127.0.0.1:{port}/"
        )
    thread.join(10)

    assert found == DOUBT


def with_requests_that_retry(url: str) -> None:
    retry = urllib3.Retry(total=2, backoff_factor=0, status_forcelist=[503], allowed_methods=None)
    with requests.Session() as session:
        session.mount("http://", requests.adapters.HTTPAdapter(max_retries=retry))
        session.post(url, timeout=SECONDS).raise_for_status()


@pytest.mark.parametrize("how", ["cut-404", "503-422", "404"])
def test_a_refusal_of_requests_counts_only_if_it_answers_to_the_first_try_that_was_sent(how, server, refused):
    """The order was taken, and its answer lost. The adapter sent it again: "no such thing", "there is one already"."""
    expected = FAILED if how == "404" else DOUBT

    assert outcome(with_requests_that_retry, url_of(server, refused, how)) == expected


def test_tries_that_were_not_sent_take_nothing_from_a_refusal_of_requests(server, refused):
    """The adapter could not connect at first. That try reached nobody."""
    unsent = urllib3.exceptions.NewConnectionError(None, "refused")  # type: ignore[arg-type]
    tried = urllib3.util.retry.RequestHistory("POST", "/402", unsent, None, None)

    def post(url: str) -> None:
        response = requests.post(url, timeout=SECONDS)
        response.raw.retries = response.raw.retries.new(history=(tried,))
        response.raise_for_status()

    assert outcome(post, url_of(server, refused, "402")) == FAILED


def aiohttp_sending(method: str) -> Callable[[str], None]:
    def call(url: str) -> None:
        async def send() -> None:
            limit = aiohttp.ClientTimeout(total=SECONDS)
            async with aiohttp.ClientSession(timeout=limit) as session, session.request(method, url) as response:
                response.raise_for_status()

        asyncio.run(send())

    return call


@pytest.mark.parametrize("how", ["cut-404", "404"])
@pytest.mark.parametrize(
    ("method", "expected"), [("DELETE", DOUBT), ("put", DOUBT), ("POST", FAILED), ("patch", FAILED)]
)
def test_a_refusal_of_aiohttp_counts_only_for_what_it_sends_once(method, expected, how, server, refused):
    """It deleted, the connection was lost, and it sent the request again without a word: the answer is 404."""
    found = outcome(aiohttp_sending(method), url_of(server, refused, how))

    assert found == (DOUBT if how == "cut-404" else expected)
    assert len(server.requests) == (2 if (how, expected) == ("cut-404", DOUBT) else 1), "why one is not believed"


@pytest.mark.parametrize(("how", "expected"), [("refused", FAILED), ("402", FAILED), ("cut-404", DOUBT)])
def test_a_transport_of_httpx_with_retries_only_connects_again(how, expected, server, refused):
    """So a refusal stays one, and a request that was cut off is not sent twice behind our back."""

    def put(url: str) -> None:
        with httpx.Client(transport=httpx.HTTPTransport(retries=2), timeout=SECONDS) as client:
            client.put(url).raise_for_status()

    assert outcome(put, url_of(server, refused, how)) == expected
    assert len(server.requests) == (how != "refused")


async def _async_post(url: str) -> None:
    async with httpx.AsyncClient(timeout=SECONDS) as client:
        (await client.post(url)).raise_for_status()


@pytest.mark.parametrize("how", ["refused", "402", "silent", "cut"])
def test_the_same_holds_in_an_async_effect(how, server, refused):
    @sf.effect
    async def send(url: str) -> None:
        await _async_post(url)

    @sf.workflow
    async def wf(url: str) -> None:
        await send(url)

    async def go() -> None:
        await wf.run("r", url_of(server, refused, how))

    with pytest.raises(Exception) as raised:
        asyncio.run(go())
    assert (DOUBT if isinstance(raised.value, sf.InDoubt) else FAILED) == EXPECTED[how]


def test_a_host_with_two_addresses_where_nobody_listens_got_nothing(refused, monkeypatch):
    """anyio tells of both in a group; it is one request all the same."""
    both = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (f"127.0.0.{n}", refused)) for n in (1, 2)]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: both)
    causes = []

    def post(url: str) -> None:
        try:
            asyncio.run(_async_post(url))
        except httpx.ConnectError as error:
            causes.append(error.__context__.__context__.__cause__)
            raise

    assert outcome(post, f"http://two.invalid:{refused}/") == FAILED
    assert isinstance(causes[0], ExceptionGroup), "else this test shows nothing"


# -- clients that retry by themselves ---------------------------------------------------------------------


def with_openai(url: str) -> None:
    with openai.OpenAI(api_key="k", base_url=url, max_retries=1, timeout=SECONDS) as client:
        client.post("", body={}, cast_to=object)


def with_anthropic(url: str) -> None:
    with anthropic.Anthropic(api_key="k", base_url=url, max_retries=1, timeout=SECONDS) as client:
        client.post("", body={}, cast_to=object)


def with_botocore(url: str) -> None:
    config = botocore.config.Config(
        connect_timeout=SECONDS, read_timeout=SECONDS, retries={"total_max_attempts": 2, "mode": "standard"}
    )
    client = botocore.session.Session().create_client(
        "sqs", region_name="eu-central-1", endpoint_url=url, aws_access_key_id="a", aws_secret_access_key="b", config=config
    )  # fmt: skip
    try:
        client.send_message(QueueUrl=url, MessageBody="x")
    finally:
        client.close()


def with_stripe(url: str) -> None:
    client = stripe.StripeClient(
        "sk_test_x", base_addresses={"api": url}, max_network_retries=0,
        http_client=stripe.RequestsClient(timeout=SECONDS),
    )  # fmt: skip
    client.raw_request("post", "/v1/charges")


RETRYING: dict[str, Callable[[str], None]] = {
    "openai": with_openai,
    "anthropic": with_anthropic,
    "botocore": with_botocore,
}
AFTER_RETRIES = {
    "400": FAILED, "401": FAILED, "404": FAILED, "422": FAILED,
    "refused": DOUBT, "402": DOUBT, "409": DOUBT, "429": DOUBT, "500": DOUBT,
    "silent": DOUBT, "cut": DOUBT, "half": DOUBT, "500-404": DOUBT,
}  # fmt: skip


TELLING = [(client, how) for client in RETRYING for how in AFTER_RETRIES if (client, how) != ("botocore", "half")]
"""botocore takes the beginning of a good answer for the whole: there is no exception to be judged."""


@pytest.mark.parametrize(("client", "how"), TELLING)
def test_a_client_that_retries_is_believed_only_for_plain_refusals(client, how, server, refused, monkeypatch):
    """`429 Too Many Requests` may be the answer to a second try; the first one may have got through."""
    monkeypatch.setattr("time.sleep", lambda _: None)  # their own back-off

    assert outcome(RETRYING[client], url_of(server, refused, how)) == AFTER_RETRIES[how]


@pytest.mark.parametrize(("how", "expected"), [("refused", DOUBT), ("400", FAILED), ("402", FAILED), ("500", DOUBT)])
def test_stripe_says_when_a_card_was_declined(how, expected, refused, monkeypatch):
    """A declined card is the answer that people handle with `except`."""
    if how == "refused":
        assert outcome(with_stripe, f"http://127.0.0.1:{refused}") == expected
        return
    error = {
        "message": "no",
        "type": "card_error" if how == "402" else "invalid_request_error",
        "code": "card_declined",
    }
    made = stripe.StripeClient("sk_test_x")

    def answered(url: str) -> None:
        made._requestor._interpret_response(json.dumps({"error": error}), int(how), {}, "V1")

    assert outcome(answered, "x") == expected


def test_what_boto_refuses_to_send_was_not_sent():
    client = botocore.session.Session().create_client(
        "sqs", region_name="eu-central-1", endpoint_url="http://127.0.0.1:1", aws_access_key_id="a", aws_secret_access_key="b"
    )  # fmt: skip

    assert outcome(lambda url: client.send_message(QueueUrl=7, MessageBody=url), "x") == FAILED
    client.close()
