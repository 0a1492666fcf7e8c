"""A marker that is missing proves something only in the database in which it would have to be."""

from __future__ import annotations

import os

import pytest

import surefoot as sf
from surefoot.core.urls import parse
from surefoot.engine.effects.databases.opening import database_of
from surefoot.engine.effects.databases.postgres import server_place

HERE = "sqlite:///app.db"


class World:
    """What was done, wherever: the database of the effect, or somewhere without one."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.mood: list[type[BaseException]] = []

    def act(self, where: str) -> str:
        self.done.append(where)
        if self.mood:
            raise self.mood.pop()
        return where


@pytest.fixture
def world() -> World:
    return World()


def plain(world: World, **options):
    @sf.effect(**options)
    def pay() -> str:
        return world.act("by hand")

    return flow(pay)


def marked(world: World, url: str):
    @sf.transaction(url)
    def pay(db) -> str:
        return world.act(url)

    return flow(pay)


def flow(pay):
    @sf.workflow
    def wf() -> str:
        return pay()

    return wf


def cut_off(world: World, wf) -> None:
    world.mood.append(KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        wf.run("r")


def test_effect_that_becomes_a_transaction_while_in_doubt_is_asked_about(world):
    """It left no marker when it happened: that there is none tells nothing."""
    cut_off(world, plain(world))

    with pytest.raises(sf.InDoubt, match="not on record that it ran as a transaction"):
        marked(world, HERE).run("r")

    assert world.done == ["by hand"]


def test_transaction_whose_database_changes_while_in_doubt_is_asked_about(world):
    cut_off(world, marked(world, HERE))

    with pytest.raises(sf.InDoubt, match=r"other\.db has no marker of it, but it ran as a transaction in .*app\.db"):
        marked(world, "sqlite:///other.db").run("r")

    assert world.done == [HERE]


def test_relative_url_is_another_database_in_another_folder(world, tmp_path, monkeypatch):
    monkeypatch.setenv("SUREFOOT_STORE", f"sqlite:////{tmp_path}/runs.db")
    wf = marked(world, HERE)
    cut_off(world, wf)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")

    with pytest.raises(sf.InDoubt, match="it ran as a transaction in"):
        wf.run("r")


def test_same_database_by_another_way_is_the_same_place(world, tmp_path):
    """Absolute or relative, through a link, or by an engine: no question, for the marker is where it has to be."""
    import sqlalchemy

    cut_off(world, marked(world, HERE))
    os.symlink("app.db", "link.db")
    engine = sqlalchemy.create_engine(f"sqlite:////{tmp_path}/app.db")

    places = {database_of(url).place() for url in (HERE, f"sqlite:////{tmp_path}/app.db", "sqlite:///link.db", engine)}

    assert len(places) == 1
    assert marked(world, f"sqlite:////{tmp_path}/app.db").run("r").startswith("sqlite:")
    engine.dispose()


def test_marker_that_is_there_is_believed_wherever_it_is(world):
    """A database that was moved with its markers: no marker is put down by anybody else."""
    wf = marked(world, HERE)
    assert wf.run("r") == HERE
    sf.get_run("r").rewind("pay#1")
    os.rename("app.db", "moved.db")

    assert marked(world, "sqlite:///moved.db").run("r") == HERE
    assert world.done == [HERE]


def test_place_of_a_server_has_no_password_and_is_the_same_however_it_is_connected_to():
    with_all = parse("postgresql://ann:geheim@Host/shop?sslmode=require&connect_timeout=3", ("postgresql",))
    plainly = parse("postgres://ann@host:5432/shop", ("postgresql", "postgres"))

    assert server_place(with_all) == server_place(plainly) == "postgresql://ann@host:5432/shop"
    other = parse("postgresql://ann@host/shop?options=-csearch_path%3Deu", ("postgresql",))
    assert server_place(other) != server_place(plainly)


def test_intent_says_where_and_a_plain_effect_does_not(world):
    marked(world, HERE).run("r")
    plain(world).run("s")

    assert intent("r")["marked"].endswith("/app.db")
    assert "marked" not in intent("s")


def intent(run: str) -> dict:
    return next(entry.data for entry in sf.get_run(run).entries() if entry.kind == "EffectIntended")
