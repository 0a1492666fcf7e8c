"""Names, origins, sites, bodies: what has to be right before anything is looked at, and what every answer carries."""

from __future__ import annotations

from itertools import product

from surefoot.console.gate import CSP, MOST_BYTES
from tests.console.conftest import BASE, entries

WRONG_HOSTS = [
    "evil.example", "127.0.0.1", "127.0.0.1:4748", "127.0.0.1:04747", "127.0.0.1:4747.", "localhost.:4747", "localhost",
    "localhost.evil:4747", "127.0.0.1.evil:4747", "evil@127.0.0.1:4747", "127.0.0.1:4747@evil", "0.0.0.0:4747",
    "[::]:4747", "[::ffff:127.0.0.1]:4747", "127.1:4747", "2130706433:4747", "0x7f000001:4747", "", " ",
    "127.0.0.1:4747, evil", "127.0.0.1:4747/evil", "127.0.0.1:4747#", "127.0.0.1\t:4747", "xn--localhost:4747",
    "127.0.0.1:4747:4747", "::1:4747", "[::1]", "localtest.me:4747", "127.0.0.2:4747",
]  # fmt: skip
GOOD_HOSTS = ["127.0.0.1:4747", "localhost:4747", "LOCALHOST:4747", "[::1]:4747"]
WRONG_ORIGINS = [
    "null", "http://evil.example", "http://127.0.0.1:4748", "http://127.0.0.1", "http://localhost:4747", "ftp://127.0.0.1:4747",
    "http://127.0.0.1:4747/", "http://127.0.0.1:4747.evil", "file://", "chrome-extension://abc", "http://evil@127.0.0.1:4747",
    "http://127.0.0.1:4747 http://evil", "",
]  # fmt: skip
KINDS = [
    "text/plain", "multipart/form-data; boundary=x", "application/json-patch+json", "", "text/json",
    "application/x-www-form-urlencoded2", "application/octet-stream", "text/html",
]  # fmt: skip


def test_a_name_that_leads_here_is_not_enough(ann):
    """DNS rebinding: a page of evil.example asks a console on this machine under its own name."""
    for host in WRONG_HOSTS:
        found = ann.get("/api/v1/inbox", headers={"Host": host})
        assert found.status_code == 421, host
        assert "pay#1" not in found.text, host


def test_its_own_names_are_known(ann):
    for host in GOOD_HOSTS:
        assert ann.get("/api/v1/inbox", headers={"Host": host}).status_code == 200, host


def test_other_names_are_listed_by_the_operator(consoles, browse):
    who = browse(at=consoles(hosts=("ops.example:8443",)))

    assert who.get("/api/v1/inbox", headers={"Host": "OPS.example:8443"}).status_code == 200
    assert who.get("/api/v1/inbox", headers={"Host": "ops.example"}).status_code == 421


async def asked(console, headers, method="GET", path="/api/v1/inbox", body=b""):
    """A request as it came, header by header."""
    sent = []

    async def receive():
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message):
        sent.append(message)

    scope = {
        "type": "http", "method": method, "path": path, "raw_path": path.encode(), "query_string": b"", "root_path": "",
        "scheme": "http", "server": ("127.0.0.1", 4747), "client": ("127.0.0.1", 1), "headers": headers, "http_version": "1.1",
    }  # fmt: skip
    await console(scope, receive, send)
    return sent[0]["status"]


def test_a_header_that_is_there_twice_decides_nothing(console):
    import asyncio

    twice = [(b"host", b"127.0.0.1:4747"), (b"host", b"evil")]
    none: list = []
    absolute = [(b"host", b"127.0.0.1:4747")]

    assert asyncio.run(asked(console, twice)) == 400
    assert asyncio.run(asked(console, none)) == 421
    assert asyncio.run(asked(console, absolute, path="http://evil/api/v1/inbox")) == 400


def test_another_origin_changes_nothing(ann):
    before, seen = entries(), ann.seen()
    said = {"do": "settle", "address": "pay#1", "failed": True, "seen": seen}
    fields = {"address": "pay#1", "how": "failed", "seen": f"{seen['seq']}.{seen['seal']}"}

    for origin in WRONG_ORIGINS:
        form = ann.send("/runs/r/settle", headers={"Origin": origin}, **fields)
        json = ann.post("/api/v1/runs/r/actions", said, Origin=origin)
        assert (form.status_code, json.status_code) == (403, 403), origin
    assert entries() == before
    assert ann.send("/runs/r/settle", **fields).status_code == 303


def test_without_an_origin_only_a_bearer_token_changes_anything(ann, console):
    token = console.tokens.add("bot", "decide")
    said = {"do": "settle", "address": "pay#1", "not_happened": True, "seen": ann.seen()}

    assert ann.http.post("/api/v1/runs/r/actions", json=said).status_code == 403
    ann.http.cookies.clear()
    bearer = {"Authorization": f"Bearer {token}"}
    assert ann.http.post("/api/v1/runs/r/actions", json=said, headers=bearer).status_code == 200
    assert sf_by() == "bot"


def sf_by():
    import surefoot as sf

    return sf.get_run("r").entries()[-1].data["by"]


def test_a_page_of_another_site_gets_nothing(ann):
    """Also one on another port of this machine: cookies do not tell ports apart."""
    modes = [("no-cors", "image"), ("cors", "empty"), ("navigate", "iframe"), ("no-cors", "script")]
    for site, (mode, dest) in product(["cross-site", "same-site", "Cross-Site", "other"], modes):
        headers = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode, "Sec-Fetch-Dest": dest}
        assert ann.get("/api/v1/inbox", headers=headers).status_code == 403
        post = ann.send("/runs/r/settle", headers={"Sec-Fetch-Site": site}, address="pay#1", how="failed")
        assert post.status_code == 403


def test_a_link_in_a_mail_leads_here_by_a_click_of_our_own(ann):
    headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    found = ann.get("/runs/r", headers=headers)

    assert found.status_code == 200
    assert 'href=""' in found.text
    assert "pay#1" not in found.text


def test_only_a_form_or_json_is_read(ann):
    for kind in KINDS:
        headers = {"Origin": BASE, **({"Content-Type": kind} if kind else {})}
        assert ann.http.post("/runs/r/settle", content=b"token=x", headers=headers).status_code == 415, kind


def test_a_body_that_is_too_large_is_not_read(ann):
    headers = {"Origin": BASE, "Content-Type": "application/json"}
    large = b"x" * (MOST_BYTES + 1)

    def parts():
        yield large[: MOST_BYTES // 2]
        yield large[MOST_BYTES // 2 :]

    assert ann.http.post("/api/v1/runs/r/actions", content=large, headers=headers).status_code == 413
    assert ann.http.post("/api/v1/runs/r/actions", content=parts(), headers=headers).status_code == 413


def test_every_answer_carries_the_headers(browse):
    paths = ["/", "/api/v1/inbox", "/nix", "/sign-in", "/static/nix", "/api/v1/openapi.json"]
    for who, path in product((browse(), browse(None)), paths):
        found = who.get(path)
        assert found.headers["content-security-policy"] == CSP
        assert found.headers["x-content-type-options"] == "nosniff"
        assert found.headers["referrer-policy"] == "same-origin"
        assert found.headers["cache-control"] == "no-store"
        assert found.headers["cross-origin-opener-policy"] == "same-origin"
        assert found.headers["cross-origin-resource-policy"] == "same-origin"
        assert "access-control-allow-origin" not in found.headers


def test_static_files_may_be_kept_for_ever(browse):
    from surefoot.console.markup import static_name

    found = browse(None).get(f"/static/{static_name('console.css')}")

    assert "immutable" in found.headers["cache-control"]
    assert found.headers["content-type"].startswith("text/css")
    assert found.headers["content-security-policy"] == CSP


def test_a_look_changes_nothing(ann):
    """GET never decides: whatever follows links may follow ours."""
    before = entries()
    for path in ("/runs/r/settle?address=pay%231&how=failed", "/runs/r/cancel", "/api/v1/runs/r/actions?do=cancel"):
        assert ann.get(path).status_code in (404, 405)
    assert entries() == before
