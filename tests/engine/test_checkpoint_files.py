"""Checkpoints as plain files: readable with jq, and whatever happens to a file is noticed or changes nothing."""

from __future__ import annotations

import errno
import json
import logging
import os
import random
import shutil
import stat
import zlib
from pathlib import Path

import pytest

import surefoot as sf
from surefoot.store import generation_files, generation_pages
from surefoot.store.generation_files import file_name, folder_of
from surefoot.store.generation_pages import INLINE

NAME = "nightly-42"
FLIPS = 400


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "files"


@pytest.fixture
def checkpoint(folder):
    def make(name=NAME, **options):
        return sf.Checkpoint(name, store=folder.as_uri(), **options)

    return make


def state(n):
    return {"n": n, "words": [f"word {k}" for k in range(20)]}


@pytest.fixture
def filled(folder, checkpoint):
    """Three generations. The folder they are in."""
    ckpt = checkpoint()
    ckpt.load()
    for n in (1, 2, 3):
        ckpt.save(state(n))
    return folder / NAME


def big(n):
    return {"n": n, "text": [f"{k} is a number of some length, {n}" for k in range(INLINE // 30)]}


# --- what it looks like ------------------------------------------------------------------------------


def test_one_readable_file_per_generation_and_nothing_else_ends_in_json(filled, folder):
    """People want to look with jq, and scripts want to glob."""
    assert sorted(path.name for path in folder.rglob("*.json")) == ["1.json", "2.json", "3.json"]
    page = json.loads((filled / "3.json").read_text())
    assert page["state"] == state(3)
    assert (page["name"], page["generation"], page["schema"], page["pid"]) == (NAME, 3, 1, os.getpid())
    assert page["previous"] == json.loads((filled / "2.json").read_text())["seal"]


def test_files_are_for_this_user_alone(filled, folder):
    """A state may hold anything."""
    modes = {stat.S_IMODE(path.stat().st_mode) for path in folder.rglob("*") if path.is_file()}
    folders = {stat.S_IMODE(path.stat().st_mode) for path in [folder, *folder.rglob("*")] if path.is_dir()}

    assert (modes, folders) == ({0o600}, {0o700})


def test_no_two_names_share_a_folder_and_none_leads_elsewhere():
    names = ["a", "a.json", "a%2Ejson", "..", ".", "../a", "/etc", "a/b", "a%2Fb", "ä", "%C3%A4", "x" * 200, "ä" * 200]
    names += ["ä" * 199 + "b", "blobs", ".hidden", "A b"]
    found = [file_name(name) for name in names]

    assert len(set(found)) == len(names)
    assert all("/" not in name and not name.startswith(".") and len(name) <= 200 for name in found)
    assert not any(name.lower().endswith(".json") for name in found)


@pytest.mark.parametrize("url", ["file:", "file:///", "file://host/dir", "file:///a?b", "file:///a#b", "file:///a%00"])
def test_a_url_that_names_no_folder_is_refused(url):
    with pytest.raises(sf.UsageError, match=r"file:///absolute"):
        sf.Checkpoint("a", store=url).load()


def test_a_url_is_absolute_as_everywhere_or_relative_without_slashes(tmp_path):
    assert folder_of((tmp_path / "a b").as_uri()) == str(tmp_path / "a b")
    assert folder_of("file:sub/dir") == str(tmp_path / "sub" / "dir")


# --- large states ------------------------------------------------------------------------------------


def test_a_large_state_is_a_blob_beside_the_generations(folder, checkpoint):
    ckpt = checkpoint()
    ckpt.load()

    ckpt.save(big(1))

    page = json.loads((folder / NAME / "1.json").read_text())
    assert "state" not in page
    packed = (folder / NAME / "blobs" / page["blob"]["sha256"]).read_bytes()
    assert json.loads(zlib.decompress(packed)) == big(1)
    assert checkpoint().load() == big(1)


def test_blobs_go_with_their_generations_and_equal_states_share_one(folder, checkpoint):
    ckpt = checkpoint()
    ckpt.load()
    for n in (1, 1, 2, 3, 4, 5, 6, 7):
        ckpt.save(big(n))

    found = ckpt.generations()

    assert len(os.listdir(folder / NAME / "blobs")) == len({one.number for one in found}) < 7
    assert all(one.valid for one in found)


@pytest.mark.parametrize("damage", ["flip", "truncate", "delete", "bomb", "other", "longer"])
def test_a_damaged_blob_is_a_fallback(folder, checkpoint, caplog, damage):
    ckpt = checkpoint()
    ckpt.load()
    ckpt.save({"n": 1})
    ckpt.save(big(2))
    (blob,) = (folder / NAME / "blobs").iterdir()
    raw = blob.read_bytes()
    match damage:
        case "flip":
            blob.write_bytes(raw[:5000] + bytes([raw[5000] ^ 1]) + raw[5001:])
        case "truncate":
            blob.write_bytes(raw[:-1])
        case "delete":
            blob.unlink()
        case "bomb":
            blob.write_bytes(zlib.compress(bytes(200_000_000)))
        case "other":
            blob.write_bytes(zlib.compress(zlib.decompress(raw).replace(b'"n":2', b'"n":9', 1)))
        case "longer":
            blob.write_bytes(raw + b"\0")

    assert checkpoint().load() == {"n": 1}

    assert "fell back from generation 2 to 1: generation 2 is damaged" in caplog.text


def test_a_damaged_blob_is_written_again_with_the_same_state(folder, checkpoint):
    ckpt = checkpoint()
    ckpt.load()
    ckpt.save(big(1))
    (blob,) = (folder / NAME / "blobs").iterdir()
    blob.write_bytes(b"")

    ckpt.save(big(1))

    assert [one.valid for one in ckpt.generations()] == [True, True]


def test_an_unknown_codec_is_said_and_not_stepped_over(folder, checkpoint, monkeypatch):
    """R15: the state is there and whole; only this version cannot read it."""
    ckpt = checkpoint()
    ckpt.load()
    ckpt.save({"n": 1})
    ckpt.save(big(2))
    _reseal(folder / NAME, 2, b'"codec":"zlib"', b'"codec":"zstd"')

    with pytest.raises(sf.CodecMissing, match="zstd"):
        checkpoint().load()


def test_a_file_of_a_newer_format_is_said_and_not_stepped_over(filled, checkpoint):
    _reseal(filled, 3, b"checkpoint/1", b"checkpoint/2")
    ckpt = checkpoint()

    with pytest.raises(sf.SchemaMismatch, match="format 2"):
        ckpt.load()
    with pytest.raises(sf.SchemaMismatch):
        ckpt.save({})


def _reseal(folder, number, old, new):
    """As another version would have written it: page and note."""
    path = folder / f"{number}.json"
    shelf = generation_files.FileShelf(str(folder.parent), NAME)
    raw = path.read_bytes()
    assert old in raw
    body = raw[: -generation_pages.TAIL_BYTES].replace(old, new)
    path.write_bytes(body + b',"seal":"%s"}\n' % shelf._pages._seal(body).encode())
    (folder / "newest").unlink()


# --- damage ------------------------------------------------------------------------------------------


def outcome(make, caplog):
    """The state, what was said, or the refusal."""
    caplog.clear()
    with caplog.at_level(logging.WARNING, "surefoot"):
        try:
            found = make().load()
        except sf.SurefootError as error:
            return type(error).__name__, ""
    return found, caplog.text


def judged(make, caplog, where):
    """Detected, or identical: nothing else may come out."""
    found, said = outcome(make, caplog)
    if found == state(3):
        return "identical"
    assert found in (state(2), "CorruptCheckpoint"), f"{where}: silently {found!r}"
    assert said or found == "CorruptCheckpoint", f"{where}: {found!r} without a word"
    return "detected"


def test_every_flipped_bit_is_noticed_or_changes_nothing(filled, checkpoint, caplog):
    """0 silent differences, 0 silent fresh starts; in the newest page every flip is noticed."""
    dice = random.Random(7)
    counts = {"3.json": 0, "2.json": 0, "newest": 0, "lock": 0}
    for name in counts:
        path = filled / name
        raw = path.read_bytes()
        bits = range(len(raw) * 8)
        for bit in dice.sample(bits, min(FLIPS, len(bits))):
            path.write_bytes(raw[: bit // 8] + bytes([raw[bit // 8] ^ 1 << bit % 8]) + raw[bit // 8 + 1 :])
            counts[name] += judged(checkpoint, caplog, f"{name} bit {bit}") == "detected"
        path.write_bytes(raw)

    assert counts["3.json"] == FLIPS
    assert outcome(checkpoint, caplog) == (state(3), "")


def test_every_truncation_is_noticed_or_changes_nothing(filled, checkpoint, caplog):
    for name in ("3.json", "newest"):
        raw = (filled / name).read_bytes()
        for length in [*range(0, len(raw), 50), len(raw) - 1]:
            (filled / name).write_bytes(raw[:length])
            verdict = judged(checkpoint, caplog, f"{name} cut to {length}")
            assert verdict == "detected" or name == "newest"
        (filled / name).write_bytes(raw)


def test_a_truncated_page_falls_back_with_the_message(filled, checkpoint, caplog):
    """The story of the issue: the newest is cut off, the one before is used, and it says so."""
    raw = (filled / "3.json").read_bytes()
    (filled / "3.json").write_bytes(raw[: len(raw) // 2])

    assert checkpoint().load() == state(2)

    assert (
        f"checkpoint {NAME}: fell back from generation 3 to 2: generation 3 is damaged: it does not end" in caplog.text
    )


@pytest.mark.parametrize("name", ["3.json", "newest"])
def test_zeroes_are_noticed(filled, checkpoint, caplog, name):
    path = filled / name
    path.write_bytes(bytes(path.stat().st_size))

    found, said = outcome(checkpoint, caplog)

    assert said
    assert found == (state(2) if name == "3.json" else state(3))


def test_a_file_of_another_name_is_noticed(filled, checkpoint, caplog):
    other = checkpoint("other")
    other.load()
    for n in (7, 8, 9):
        other.save(state(n))
    theirs = filled.parent / "other" / "3.json"
    mine = (filled / "3.json").read_bytes()
    shutil.copy(theirs, filled / "3.json")
    theirs.write_bytes(mine)

    assert checkpoint().load() == state(2)
    assert checkpoint("other").load() == state(8)


def test_generations_that_changed_places_are_noticed(filled, checkpoint, caplog):
    one, two = (filled / "2.json").read_bytes(), (filled / "3.json").read_bytes()
    (filled / "2.json").write_bytes(two)
    (filled / "3.json").write_bytes(one)

    assert outcome(checkpoint, caplog)[0] == state(1)


def test_a_page_of_another_folder_with_the_same_name_is_noticed(filled, checkpoint, caplog, tmp_path):
    """Sealed, of this name, with this number: but not the one that was saved here."""
    other = sf.Checkpoint(NAME, store=(tmp_path / "elsewhere").as_uri())
    other.load()
    for n in (7, 8, 9, 10):
        other.save(state(n))
    for name in ("3.json", "4.json"):
        shutil.copy(tmp_path / "elsewhere" / NAME / name, filled / name)

    found, said = outcome(checkpoint, caplog)

    assert found == state(2)
    assert "fell back from generation 4 to 2" in said


def test_a_deleted_newest_page_is_noticed(filled, checkpoint, caplog):
    (filled / "3.json").unlink()

    found, said = outcome(checkpoint, caplog)

    assert found == state(2)
    assert "fell back from generation 3 to 2: generation 3 is missing" in said


def test_a_deleted_note_is_told_and_made_anew(filled, checkpoint, caplog):
    (filled / "newest").unlink()
    ckpt = checkpoint()

    assert ckpt.load() == state(3)
    assert "whether a newer generation was lost cannot be told" in caplog.text

    assert ckpt.save(state(4)) == 4
    assert outcome(checkpoint, caplog) == (state(4), "")


def test_pages_deleted_but_for_the_note_are_not_never_saved(filled, checkpoint):
    for path in filled.glob("*.json"):
        path.unlink()

    with pytest.raises(sf.CorruptCheckpoint):
        checkpoint().load()
    with pytest.raises(sf.CorruptCheckpoint):
        checkpoint().save({})


def test_only_what_was_set_aside_being_left_is_not_never_saved(filled, checkpoint):
    (filled / "3.json").write_bytes(b"")
    ckpt = checkpoint()
    ckpt.load()
    ckpt.save(state(4))
    for path in [*filled.glob("*.json"), filled / "newest"]:
        path.unlink()

    with pytest.raises(sf.CorruptCheckpoint):
        checkpoint().load()


@pytest.mark.parametrize("what", ["link", "pipe", "folder", "huge"])
def test_what_is_no_file_is_not_read(filled, checkpoint, caplog, what):
    """A link could lead anywhere; a pipe would hang us; a huge file would eat the memory."""
    path = filled / "3.json"
    path.rename(filled / "moved")
    match what:
        case "link":
            path.symlink_to(filled / "moved")
        case "pipe":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case "huge":
            with path.open("wb") as file:
                file.truncate(10 * 2**30)
    ckpt = checkpoint()

    assert ckpt.load() == state(2)
    assert "fell back from generation 3 to 2" in caplog.text
    assert ckpt.save(state(4)) == 4
    assert outcome(checkpoint, caplog) == (state(4), "")


def test_a_link_in_place_of_the_folder_is_refused(folder, checkpoint, tmp_path):
    (tmp_path / "target").mkdir()
    folder.mkdir()
    (folder / NAME).symlink_to(tmp_path / "target")

    for verb in (checkpoint().load, lambda: checkpoint().save({})):
        with pytest.raises(sf.StoreUnavailable):
            verb()
    assert list((tmp_path / "target").iterdir()) == []


def test_a_file_in_place_of_the_folder_is_refused_and_not_nothing(folder, checkpoint):
    folder.write_text("mine")

    with pytest.raises(sf.StoreUnavailable):
        checkpoint().load()
    assert folder.read_text() == "mine"


def test_a_generation_that_died_before_its_note_is_used(filled, checkpoint, caplog, monkeypatch):
    """Whole and in its place: not to use it would repeat work."""
    ckpt = checkpoint()
    ckpt.load()
    put = generation_files._put_file

    def dies(name, content, folder):
        if name == "newest":
            raise KeyboardInterrupt
        put(name, content, folder)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(generation_files, "_put_file", dies)
        ckpt.save(state(4))

    assert outcome(checkpoint, caplog) == (state(4), "")
    assert ckpt.save(state(5)) == 5


def test_what_a_killed_process_left_half_written_is_removed(filled, checkpoint):
    (filled / ".tmp-0123").write_text("half")
    (filled / "blobs").mkdir()
    (filled / "blobs" / ".tmp-4567").write_text("half")
    ckpt = checkpoint()

    assert ckpt.load() == state(3)
    ckpt.save(state(4))

    assert list(filled.rglob(".tmp-*")) == []


def test_a_full_disk_is_said_and_changes_nothing(filled, checkpoint, monkeypatch):
    ckpt = checkpoint()
    ckpt.load()
    fsync = os.fsync

    def full(fd):
        if stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(28, "No space left on device")
        fsync(fd)

    with monkeypatch.context() as patch, pytest.raises(sf.StoreFull):
        patch.setattr(os, "fsync", full)
        ckpt.save(state(4))

    assert list(filled.rglob(".tmp-*")) == []
    assert checkpoint().load() == state(3)
    assert ckpt.save(state(4)) == 4


def test_a_lock_that_is_held_for_ever_is_said(filled, checkpoint, monkeypatch):
    import fcntl

    monkeypatch.setattr(generation_files, "_PATIENCE_SECONDS", 0.05)
    with (filled / "lock").open() as other:
        fcntl.flock(other, fcntl.LOCK_EX)

        with pytest.raises(sf.StoreUnavailable, match="another process"):
            checkpoint().load()

    assert checkpoint().load() == state(3)


def test_runs_are_still_refused_in_a_folder(folder):
    with pytest.raises(sf.UsageError, match="checkpoints, not runs"):
        sf.get_run("a", store=Path(folder).as_uri())


@pytest.mark.parametrize(
    "body",
    [b"1 a b c\n", b"9" * 6000 + b" " + b"a" * 64 + b"\n", "\u00e9 x\n".encode(), b"0 " + b"a" * 64 + b"\n", b""],
    ids=["fields", "digits", "text", "zero", "empty"],
)
def test_a_note_of_another_shape_is_damaged_however_its_checksum_fits(filled, folder, checkpoint, caplog, body):
    """Anybody can make the checksum. It must not be a way to crash whoever loads or looks."""
    from surefoot.store.inspection import look

    shelf = generation_files.FileShelf(str(folder), NAME)
    (filled / "newest").write_bytes(body + b"check " + shelf._pages._note_check(body))

    with caplog.at_level(logging.WARNING, "surefoot"):
        assert checkpoint().load() == state(3)

    assert "the note of the newest generation is damaged" in caplog.text
    (seen,) = look(str(folder), lambda _: None).checkpoints
    assert seen.why == "the note of the newest generation is damaged"


def test_a_generation_nested_without_end_is_damaged_however_its_seal_fits(filled, folder, checkpoint, caplog):
    """As above: a crash is no answer."""
    shelf = generation_files.FileShelf(str(folder), NAME)
    page = json.loads((filled / "3.json").read_text())
    text = json.dumps({key: value for key, value in page.items() if key not in ("state", "seal")})
    body = text[:-1].replace('": ', '":').replace(", ", ",").encode() + b',"state":' + b"[" * 100_000 + b"]" * 100_000
    (filled / "3.json").write_bytes(body + f',"seal":"{shelf._pages._seal(body)}"}}\n'.encode())
    (filled / "newest").unlink()

    with caplog.at_level(logging.WARNING, "surefoot"):
        assert checkpoint().load() == state(2)

    assert "its seal holds, but it cannot be read" in caplog.text


def test_read_error_is_no_damage(monkeypatch, tmp_path):
    """What the disk does not give now may be sound: it is not stepped back from, nor set aside by the next save."""
    saved = sf.Checkpoint("nightly", store="file:shelf")
    for n in range(3):
        saved.save({"n": n})
    real = generation_files._read_file

    def failing(name, folder, most):
        if name == "3.json":
            raise OSError(errno.EIO, "Input/output error")
        return real(name, folder, most)

    with monkeypatch.context() as disk:
        disk.setattr(generation_files, "_read_file", failing)
        with pytest.raises(sf.StoreUnavailable, match="Input/output error"):
            saved.load()
        with pytest.raises(sf.StoreUnavailable, match="Input/output error"):
            saved.save({"n": 3})

    assert sf.Checkpoint("nightly", store="file:shelf").load() == {"n": 2}
    assert sorted(path.name for path in (tmp_path / "shelf" / "nightly").glob("*.json")) == [
        "1.json",
        "2.json",
        "3.json",
    ]
