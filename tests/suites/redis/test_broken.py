"""Stores that are broken on purpose: each is caught, by the shipped suite or by what is told of a server that forgets.

What is left out of a script here is what the store must never lose.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from hashlib import sha1
from pathlib import Path

import pytest

from surefoot.errors import JournalRegressed, SurefootError
from surefoot.store.contract import Head
from surefoot.store.redis import scripts
from surefoot.store.redis.address import read_address
from surefoot.store.redis.store import RedisStore
from surefoot.testing.conformance import StoreContract, Writer
from tests.redis import Server

SCRIPTS = ("APPEND_ONE", "APPEND", "REWRITE", "READ", "LOOK")


@pytest.fixture
def broken(monkeypatch, url) -> Callable[[str, str], RedisStore]:
    """Opens a store whose scripts have this instead of that."""

    def open_(old: str, new: str, *names: str) -> RedisStore:
        changed = 0
        for name in names or SCRIPTS:
            script = getattr(scripts, name)
            text = script.text.replace(old.encode(), new.encode())
            changed += text != script.text
            monkeypatch.setattr(scripts, name, scripts.Script(text, sha1(text).hexdigest().encode()))
        assert changed, f"no script has {old!r}"
        return RedisStore.open(read_address(url), create=True)

    return open_


@pytest.fixture
def prefix(url: str) -> str:
    return read_address(url).prefix


def filled(store: RedisStore) -> Iterator[Writer]:
    for n in range(3):
        writer = Writer(store, f"run-{n}")
        store.append([writer.append(b"1")])
        store.append([writer.append(b"2")])
        yield writer


def heads_are_lost(server: Server, prefix: str, store: RedisStore) -> None:
    """Whether a run whose head is gone is said to be unknown."""
    tuple(filled(store))
    server.ask("HDEL", f"{prefix}heads", "run-1")
    server.ask("DEL", f"{prefix}j:run-1")
    with pytest.raises(JournalRegressed):
        store.read("run-1")


def records_are_lost(server: Server, prefix: str, store: RedisStore) -> None:
    writers = tuple(filled(store))
    server.ask("LTRIM", f"{prefix}j:run-1", 0, 0)
    with pytest.raises(JournalRegressed):
        store.read("run-1")
    with pytest.raises(JournalRegressed):
        store.append([writers[1].append(b"3")])


def past_is_another(server: Server, prefix: str, store: RedisStore) -> None:
    """The server went back by one record, in good order."""
    writers = tuple(filled(store))
    head = writers[2].records(b"x")[0]
    assert head.seq == 3
    stored = store.read("run-2").records
    server.ask("LTRIM", f"{prefix}j:run-2", 0, 0)
    raw = server.ask("HGET", f"{prefix}heads", "run-2")
    server.ask("HSET", f"{prefix}heads", "run-2", (1).to_bytes(8, "big") + stored[0].seal + raw[40:])
    pos = int(server.ask("HGET", f"{prefix}meta", "pos"))
    server.ask("HSET", f"{prefix}meta", "pos", pos - 1)
    server.ask("SETRANGE", f"{prefix}trail:0", (pos - 1) * 24, bytes(24))
    with pytest.raises(JournalRegressed):
        store.read("run-2")
    with pytest.raises(JournalRegressed):
        store.append([Writer(store, "run-2", head=Head(1, stored[0].seal)).append(b"again")])


STORIES = {
    "no HLEN": (heads_are_lost, "call('HLEN', HEADS) ~= tonumber(meta[2])", "false"),
    "no LLEN": (records_are_lost, "call('LLEN', journal) ~= length(head)", "false"),
    "no LLEN at append": (records_are_lost, "call('LLEN', P .. 'j:' .. run) ~= length(head)", "false"),
    "no mark": (past_is_another, "pos > 0 and not known(pos, seal)", "false"),
}


@pytest.mark.parametrize("story", {name: story for name, (story, _, _) in STORIES.items()}.values())
def test_whole_store_passes_the_story(server, prefix, opened, story):
    story(server, prefix, opened())


@pytest.mark.parametrize("name", STORIES)
def test_store_without_a_proof_is_caught_by_its_story(server, prefix, broken, name):
    story, old, new = STORIES[name]

    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        story(server, prefix, broken(old, new))


def caught(store: RedisStore, *names: str) -> bool:
    """Whether one of these tests of the shipped suite fails."""
    for name in names:
        try:
            getattr(StoreContract(), name)(store)
        except (AssertionError, SurefootError):
            return True
    return False


CONTRACT = {
    "head without its records": (
        "call('RPUSH', journal, eight(pos) .. record)", "", ("test_run_continues_behind_its_head",),
    ),
    "head not compared": (
        "(wish.head and string.sub(wish.head, 1, 40) or '') ~= expected", "false", ("test_innocent_runs_of_a_batch_go_through",),
    ),
    "only the position compared": (
        "string.sub(head, 1, 40) or '') ~= expected",
        "string.sub(head, 1, 8) or '') ~= string.sub(expected, 1, 8)",
        ("test_other_seal_at_the_same_position_conflicts",),
    ),
    "positions that go back": (
        "call('HSET', META, 'pos', digits(pos))", "call('HSET', META, 'pos', '0')",
        ("test_positions_of_the_store_never_go_back",),
    ),
    "row written in spite of a conflict": (
        "answer[#answer + 1] = i\n", "index(run, wish.lists, wish.row, 1); answer[#answer + 1] = i\n",
        ("test_conflicting_run_leaves_no_index_row",),
    ),
    "parts deleted whatever was appended": (
        "tonumber(call('HGET', META, 'pos')) > upto", "false",
        ("test_discard_is_refused_if_anything_was_appended_meanwhile",),
    ),
    "deletions not counted": (
        "swept ~= '' and call('HGET', META, 'swept') ~= swept", "false",
        ("test_what_was_discarded_is_stored_again_when_it_is_needed_again",),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CONTRACT)
def test_broken_store_is_caught_by_the_shipped_suite(broken, opened, server, name):
    old, new, tests = CONTRACT[name]
    assert not caught(opened(server.fresh()), *tests)

    assert caught(broken(old, new), *tests)


def test_scripts_of_a_broken_store_are_not_those_of_the_store(tmp_path: Path):
    """What this file changes is undone behind every test."""
    text = scripts.READ.text.decode()

    assert "call('LLEN', journal) ~= length(head)" in text
