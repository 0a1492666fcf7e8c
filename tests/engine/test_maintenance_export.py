"""A run in one file: it proves itself, holds data only, and no change to it goes unnoticed."""

from __future__ import annotations

import json
import os
import random
import sqlite3
import stat
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import msgspec
import pytest

import surefoot as sf
from surefoot.core.parts import Part, Reference, expand
from surefoot.core.seal import GENESIS, Record, Sealer, from_record, references
from surefoot.engine.process import config
from surefoot.engine.upkeep import exports
from surefoot.engine.upkeep.exports import check_file, export, export_to
from surefoot.store.open import close_all

DB = Path(".surefoot/runs.db")


@sf.step
def read(n: int) -> str:
    return f"\x1b[31m {n} é " * (600 if n % 2 else 1)


@sf.workflow
def work(n: int) -> int:
    return sum(len(read(i)) for i in range(n))


def store():
    return config.runtime(create=False).store


@pytest.fixture
def exported(tmp_path):
    work.run("r", 6)
    export_to(store(), "r", "r.jsonl")
    return tmp_path / "r.jsonl"


def test_an_export_checks_without_the_store(exported, tmp_path):
    """Whoever gets the file can prove what the run did, years later, on another machine."""
    run = sf.get_run("r")
    close_all()
    for path in DB.parent.glob("runs.db*"):
        if path.is_file():
            path.unlink()

    found = check_file(str(exported))

    assert (found.run, found.whole, found.records, found.valid) == ("r", True, 9, 9)
    assert found.store == run.runtime.store.id.hex()
    assert found.parts > 0
    assert found.bytes == exported.stat().st_size


def test_an_export_holds_every_record_and_part_as_they_are_stored(exported):
    lines = [json.loads(line) for line in exported.read_text().splitlines()]
    records = [
        Record("r", *(one[name] for name in ("seq", "epoch", "at", "kind", "schema", "codec", "key")),
               one["body"].encode(), bytes.fromhex(one["seal"]))
        for one in (line["record"] for line in lines if "record" in line)
    ]  # fmt: skip
    parts = {
        bytes.fromhex(one["id"]): Part(
            bytes.fromhex(one["id"]),
            one["kind"],
            one["codec"],
            one["size"],
            __import__("base64").b64decode(one["body64"]),
        )
        for one in (line["part"] for line in lines if "part" in line)
    }

    assert records == store().read("r").records
    needed = [reference for record in records for reference in references(from_record(record))]
    assert needed
    for reference in needed:
        assert expand(reference, lambda ids: {name: parts[name] for name in ids}) == expand(reference, store().parts)


def test_an_export_is_private_ascii_and_can_act_on_no_terminal(exported):
    """People cat such files."""
    data = exported.read_bytes()

    assert all(byte == 10 or 32 <= byte < 127 for byte in data)
    assert stat.S_IMODE(exported.stat().st_mode) == 0o600
    assert [path.name for path in exported.parent.glob("r.jsonl*")] == ["r.jsonl"]


def test_every_flipped_bit_of_an_export_is_found(exported):
    """Sampled over the whole file; also where only the sum could tell."""
    whole = exported.read_bytes()
    luck = random.Random(7)
    for _ in range(400):
        at, bit = luck.randrange(len(whole)), luck.randrange(8)
        exported.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << bit]) + whole[at + 1 :])
        with pytest.raises((sf.JournalCorrupt, sf.UsageError)):
            check_file(str(exported))


def test_every_truncation_of_an_export_is_found(exported):
    """And so is anything behind its end."""
    whole = exported.read_bytes()
    exported.write_bytes(whole + b"{}\n")
    with pytest.raises(sf.JournalCorrupt, match="more behind its last line"):
        check_file(str(exported))
    for length in [0, *random.Random(7).sample(range(len(whole)), 150), len(whole) - 1]:
        exported.write_bytes(whole[:length])
        with pytest.raises((sf.JournalCorrupt, sf.UsageError)):
            check_file(str(exported))


def forged(path, change):
    """An export with other lines and a sum that fits them."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    lines = change(lines)
    body = b"".join(json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in lines[:-1])
    lines[-1]["end"]["sha256"] = sha256(body).hexdigest()
    lines[-1]["end"]["records"] = sum("record" in line for line in lines)
    lines[-1]["end"]["parts"] = sum("part" in line for line in lines)
    path.write_bytes(body + json.dumps(lines[-1]).encode() + b"\n")


@pytest.mark.parametrize(
    "change",
    [
        lambda lines: [*lines[:3], *lines[4:]],
        lambda lines: [*lines[:2], lines[3], lines[2], *lines[4:]],
        lambda lines: [*lines[:-2], lines[-1]],
        lambda lines: [line for line in lines if "record" not in line or line["record"]["seq"] < 9],
        lambda lines: [lines[0] | {"header": lines[0]["header"] | {"run": "another"}}, *lines[1:]],
        lambda lines: [lines[0] | {"header": lines[0]["header"] | {"store": "00" * 16}}, *lines[1:]],
        lambda lines: [lines[0] | {"header": lines[0]["header"] | {"head": None}}, *lines[1:]],
        lambda lines: [*lines[:-1], lines[1], lines[-1]],
    ],
    ids=["cut out", "swapped", "part gone", "tail gone", "other run", "other store", "no head", "added"],
)
def test_a_forged_sum_does_not_hide_what_was_changed(exported, change):
    """The sum is for accidents. Seals, chain, head and names of parts say the rest."""
    forged(exported, change)

    with pytest.raises(sf.JournalCorrupt):
        check_file(str(exported))


def test_a_file_that_is_no_export_is_refused_as_such(tmp_path):
    for number, content in enumerate(
        (b"", b"hello\n", b"{}\n", b'{"header":{}}\n', b"\x00" * 100, b"[" * 5000 + b"\n")
    ):
        path = tmp_path / f"{number}"
        path.write_bytes(content)
        with pytest.raises(sf.UsageError, match="is no export"):
            check_file(str(path))
    with pytest.raises(sf.NotFound):
        check_file(str(tmp_path / "nowhere"))


def test_an_export_of_a_newer_format_is_not_guessed_at(exported):
    forged(exported, lambda lines: [{"header": lines[0]["header"] | {"format": 2}}, *lines[1:]])

    with pytest.raises(sf.SchemaMismatch):
        check_file(str(exported))


def test_a_damaged_run_is_refused_unless_it_is_wanted(exported):
    """Evidence can be handed on, but never passes for a whole run."""
    close_all()
    with closing(sqlite3.connect(DB)) as connection, connection:
        connection.execute("UPDATE entries SET at = at + 1 WHERE run = 'r' AND seq = 5")
        connection.execute("UPDATE entries SET seal = 'text' WHERE run = 'r' AND seq = 7")
    with pytest.raises(sf.JournalCorrupt, match="entry 5 of 9"):
        export_to(store(), "r", "damaged.jsonl")
    assert not Path("damaged.jsonl").exists()

    made = export_to(store(), "r", "damaged.jsonl", damaged=True)

    assert (made.whole, made.valid, made.records) == (False, 4, 8)
    found = check_file("damaged.jsonl")
    assert (found.whole, found.valid, found.records) == (False, 4, 8)


def test_nothing_is_written_over(exported):
    before = exported.read_bytes()
    for target in ("r.jsonl", str(DB), f"{DB}-notes", f"{DB}-anchor"):
        with pytest.raises(sf.UsageError):
            export_to(store(), "r", target)
    assert exported.read_bytes() == before


def test_a_full_disk_leaves_nothing(exported):
    with pytest.raises(sf.StoreUnavailable):
        export_to(store(), "r", "/dev/full/x.jsonl")

    def full(_line):
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        export(store(), "r", full)


def test_an_unknown_run_is_not_found(exported):
    with pytest.raises(sf.NotFound):
        export_to(store(), "nobody", "x.jsonl")
    assert not Path("x.jsonl").exists()


def test_a_run_that_goes_on_meanwhile_is_exported_as_it_was(exported):
    """Up to the entry that was the last one when it began."""
    lines = []

    def write(line):
        if not lines:
            work.run("r2", 1)
        lines.append(line)

    export(store(), "r", write)

    assert b"".join(lines) == exported.read_bytes()


# --- files that are meant to hurt ---------------------------------------------------------------------------


def made(exported, bodies, *, whole=True, keep_parts=True):
    """An export whose seals all hold, of records with these bodies."""
    lines = [json.loads(line) for line in exported.read_text().splitlines()]
    header = lines[0]["header"] | {"whole": whole}
    sealer = Sealer(bytes.fromhex(header["store"]), "r")
    records = []
    for seq, (kind, body) in enumerate(bodies, 1):
        previous = records[-1].seal if records else GENESIS
        records.append(sealer.seal(seq=seq, epoch=0, at=1, kind=kind, body=body, previous=previous))
    fields = ("seq", "epoch", "at", "kind", "schema", "codec", "key")
    new = [
        {"record": {name: getattr(one, name) for name in fields} | {"body": one.body.decode(), "seal": one.seal.hex()}}
        for one in records
    ]
    header["head"] = {"seq": len(records), "seal": records[-1].seal.hex()}
    parts = [line for line in lines if "part" in line and keep_parts]
    end = {"end": lines[-1]["end"] | {"valid": len(records), "whole": whole}}
    forged(exported, lambda _: [{"header": header}, *new, *parts, end])


DEEP = b'{"workflow":"w","digest":"d","args":' + b"[" * 200_000 + b"]" * 200_000 + b"}"


def test_a_body_nested_without_end_is_damage_and_no_crash(exported):
    """Whoever can make a seal can seal anything."""
    made(exported, [(1, DEEP)])
    with pytest.raises(sf.JournalCorrupt, match="entry 1 holds, but its body cannot be read"):
        check_file(str(exported))

    made(exported, [(1, DEEP)], whole=False)
    assert check_file(str(exported)).valid == 0


def test_a_pipe_or_a_device_is_not_waited_for(tmp_path):
    """A check that never ends is no check."""
    pipe = tmp_path / "pipe.jsonl"
    os.mkfifo(pipe)
    for path in (pipe, tmp_path, Path("/dev/zero")):
        with pytest.raises(sf.UsageError, match="no plain file"):
            check_file(str(path))


def test_a_file_that_grows_is_checked_up_to_where_it_ended(exported, monkeypatch):
    """Somebody who keeps on writing must not keep us reading."""
    take = exports._Check._record

    def growing(self, *args, **kwargs):
        with exported.open("ab") as file:
            file.write(b'{"more":1}\n')
        take(self, *args, **kwargs)

    monkeypatch.setattr(exports._Check, "_record", growing)

    assert check_file(str(exported)).whole


@pytest.mark.parametrize("change", ["digest", "size", "order"])
def test_parts_that_do_not_make_the_recorded_value_are_found(exported, change):
    """Each part is what its name says, every seal holds; but the value would be another, or none."""
    records = store().read("r").records
    bodies = []
    for record in records:
        body = json.loads(record.body)
        for name, text in body.get("large", {}).items():
            found = Reference.decode(text)
            items = {
                "digest": {"digest": bytes(32)},
                "size": {"size": found.size + 1},
                "order": {"root": found.root * 2},
            }
            body["large"][name] = msgspec.structs.replace(found, **items[change]).encode()
        bodies.append((record.kind, json.dumps(body, separators=(",", ":")).encode()))
    assert any(b'"large"' in body for _, body in bodies)

    made(exported, bodies)
    with pytest.raises(sf.JournalCorrupt, match="is not what was recorded"):
        check_file(str(exported))

    first = next(seq for seq, (_, body) in enumerate(bodies, 1) if b'"large"' in body)
    made(exported, bodies, whole=False)
    assert check_file(str(exported)).valid == first - 1


def test_nothing_is_decoded_whose_seal_does_not_hold(exported, monkeypatch):
    """Also not when a damaged run is exported or checked: decoding is for what was found to be ours."""
    close_all()
    with closing(sqlite3.connect(DB)) as connection, connection:
        connection.execute("UPDATE entries SET at = at + 1 WHERE run = 'r' AND seq = 5")
    decoded = []

    def counted(record):
        decoded.append(record.seq)
        return from_record(record)

    monkeypatch.setattr(exports, "from_record", counted)
    export_to(store(), "r", "damaged.jsonl", damaged=True)
    assert decoded == [1, 2, 3, 4, 6, 7, 8, 9], "those beyond the gap hold on the seal before them"

    decoded.clear()
    check_file("damaged.jsonl")
    assert decoded == [1, 2, 3, 4]
