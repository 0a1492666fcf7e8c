"""`surefoot inbox`: one list of everything that waits for a person, and a word that empties it."""

from __future__ import annotations

import json


def test_lists_what_has_to_be_decided_and_what_is_to_be_known(cli, runs):
    shown = cli("inbox")

    lines = shown.out.splitlines()
    assert shown.code == 0
    assert [line.split()[0] for line in lines] == ["WHAT", "in", "event", "failed"]
    assert "Did charge#1 happen?" in lines[1]
    assert "waiting-1" in lines[2]
    assert "\x1b" not in shown.out
    assert "done-1" not in shown.out


def test_items_are_objects_for_programs(cli, runs):
    found = cli("inbox", "--json").json

    assert found["next"] == ""
    assert [(item["kind"], item["decide"], item["run"]) for item in found["items"]] == [
        ("in_doubt", True, "stopped-1"), ("event", True, "waiting-1"), ("failed", False, "failed-1"),
    ]  # fmt: skip
    first = found["items"][0]
    assert set(first) == {
        "kind", "decide", "run", "workflow", "address", "title", "since", "until", "by", "actions", "href",
    }  # fmt: skip
    assert (first["address"], first["until"], first["href"]) == ("charge#1", None, "/runs/stopped-1")
    assert first["actions"] == ["settle", "rewind", "cancel"]


def test_seen_takes_it_off_the_list_of_everybody(cli, runs):
    said = cli("inbox", "--seen", "failed-1", "--by", "ann", "--note", "known", "--json")

    assert said.json == {"seen": [{"run": "failed-1", "about": ["failed"]}], "by": "ann", "note": "known"}
    assert [item["run"] for item in cli("inbox", "--json").json["items"]] == ["stopped-1", "waiting-1"]
    assert "seen" in cli("runs", "tail", "failed-1").out


def test_what_has_to_be_decided_is_not_seen_away(cli, runs):
    said = cli("inbox", "--seen", "stopped-1")

    assert said.code == 2
    assert "nothing of it is only to be known" in said.err


def test_one_kind_and_page_by_page(cli, runs):
    only = cli("inbox", "--kind", "event", "--json").json["items"]
    first = cli("inbox", "--limit", "2", "--json").json
    second = cli("inbox", "--limit", "2", "--cursor", first["next"], "--json").json

    assert [item["run"] for item in only] == ["waiting-1"]
    assert [item["run"] for item in first["items"]] == ["stopped-1", "waiting-1"]
    assert [item["run"] for item in second["items"]] == ["failed-1"]
    assert json.loads(first["next"])[0] == "decide"
    assert "there is more: --cursor '[" in cli("inbox", "--limit", "1").err


def test_empty_is_said(cli, runs):
    assert "nobody waits for you" in cli("inbox", "--kind", "drift").err
