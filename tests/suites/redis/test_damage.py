"""Damage in a store in Redis: what is altered is found, and stepped back from loudly. Checkpoints, fallback, prune, verify."""

from __future__ import annotations

import inspect

import pytest

import surefoot as sf
from surefoot.cli.main import main
from surefoot.errors import JournalCorrupt
from surefoot.store.open import close_all, open_store
from surefoot.store.redis.address import read_address
from tests.engine import test_checkpoint as checkpoints
from tests.redis import Server

LARGE = ["a large value, " * 10 + str(n) for n in range(200)]

for _name, _one in vars(checkpoints).items():
    if _name.startswith("test_") and "place" in inspect.signature(_one).parameters:
        globals()[_name] = _one


class RedisPlace(checkpoints.Place):
    def __init__(self, server: Server, url: str) -> None:
        self.url = url
        self._server = server
        self._key = f"{read_address(url).prefix}j:{checkpoints.JOURNAL}"

    def leave(self) -> None:
        close_all()

    def truncate(self, number: int) -> None:
        for at, stored in enumerate(self._server.ask("LRANGE", self._key, 0, -1)):
            if int.from_bytes(stored[48:56], "big") == number:
                self._server.ask("LSET", self._key, at, stored[: 72 + 40])

    def quarantined(self) -> list[int]:
        return [record.epoch for record in open_store(self.url, create=False).quarantined(checkpoints.JOURNAL)]


@pytest.fixture
def place(server: Server, url: str) -> RedisPlace:
    return RedisPlace(server, url)


@pytest.fixture
def shell(capsys):
    def run(*words: str) -> tuple[int, str]:
        code = main(list(words))
        close_all()
        captured = capsys.readouterr()
        return code, captured.out + captured.err

    return run


@sf.step
def draft(n: int) -> list[str]:
    return [*LARGE, str(n)]


@sf.effect
def send(text: list[str]) -> str:
    return f"sent {text[-1]}"


@sf.workflow
def notify(count: int) -> list[str]:
    sent = [send(draft(n)) for n in range(count)]
    sf.ask("Was it right?", type=bool)
    return sent


@pytest.fixture
def stopped(store: str) -> str:
    with pytest.raises(sf.WaitingForAnswer):
        notify.run("t", 3)
    close_all()
    return store


def flip(server: Server, store: str, seq: int) -> None:
    """One bit in the body of a record."""
    key = f"{read_address(store).prefix}j:t"
    stored = bytearray(server.ask("LINDEX", key, seq - 1))
    stored[72 + 20] ^= 1
    server.ask("LSET", key, seq - 1, bytes(stored))


def test_run_stops_is_answered_and_ends(stopped, shell):
    """The same user code runs on `redis://…`."""
    assert "WaitingForAnswer" in shell("runs", "show", "t")[1]
    assert shell("verify")[0] == 0

    sf.get_run("t").answer("ask#1", True)
    assert notify.run("t", 3) == ["sent 0", "sent 1", "sent 2"]


def test_flipped_bit_is_found_and_the_run_falls_back(stopped, server, shell):
    flip(server, stopped, 5)

    code, said = shell("verify")
    assert code == 4, said
    code, said = shell("repair", "t", "--yes")
    assert code == 0, said
    assert shell("verify")[0] == 0


def test_record_that_is_too_short_to_be_one_is_damage_and_not_nothing(stopped, server):
    server.ask("LSET", f"{read_address(stopped).prefix}j:t", 2, b"short")

    with pytest.raises(JournalCorrupt, match="too few"):
        open_store(stopped, create=False).read("t")


def test_pruning_gives_back_the_parts(stopped, server, shell):
    sf.get_run("t").answer("ask#1", True)
    notify.run("t", 3)
    close_all()

    code, said = shell("prune", "--older-than", "0s", "--yes")

    assert code == 0, said
    assert server.ask("HLEN", f"{read_address(stopped).prefix}parts") == 0
    assert open_store(stopped, create=False).read("t").head.seq == 1
    assert len(open_store(stopped, create=False).scan(0, 100)) == 1


def test_heads_that_are_gone_are_adopted_with_what_is_left(stopped, server, shell):
    """Eviction took the one key that names all journals. A person accepts what is left; nothing is repeated."""
    server.ask("DEL", f"{read_address(stopped).prefix}heads")
    assert shell("runs")[0] == 4

    code, said = shell("adopt", "--reason", "evicted", "--yes")

    assert code == 0, said
    assert shell("verify")[0] == 0
    with pytest.raises((sf.InDoubt, sf.WaitingForAnswer)):
        notify.run("t", 3)
