"""Checkpoints in a bucket: fenced by the bucket's own comparison, and nothing lost is taken for nothing."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

import surefoot as sf
from surefoot.errors import StoreUnavailable
from surefoot.store.bucket import Bucket, place

BIG = {"text": "".join(f"{n} é " for n in range(300_000))}


class Killed(BaseException):
    """The process is gone."""


class Watched:
    """A bucket's client that counts requests, and may be cut off before or after one of them."""

    def __init__(self, store, *, at=-1, after=False, error=None):
        self.store, self.at, self.after, self.error = store, at, after, error
        self.asked = []

    def __getattr__(self, name):
        whole = getattr(self.store, name)

        def ask(*args, **kwargs):
            self.asked.append(name)
            hit = len(self.asked) - 1 == self.at
            if hit and not self.after:
                raise self.error or Killed
            answer = whole(*args, **kwargs)
            if hit:
                raise self.error or Killed
            return answer

        return ask


def watch(checkpoint, **how):
    """From its next request on. The probe was made before."""
    shelf = checkpoint._shelf(create=True)
    shelf._bucket.require_conditions()
    shelf._bucket._store = Watched(getattr(shelf._bucket._store, "store", shelf._bucket._store), **how)
    return shelf._bucket._store


def at(bucket):
    return sf.Checkpoint("nightly/7", store=bucket)


def test_what_is_saved_comes_back(bucket):
    one = at(bucket)
    assert one.load() is None

    for n in range(8):
        one.save({"n": n})
    one.save(BIG)

    assert at(bucket).load() == BIG
    found = at(bucket).generations()
    assert [each.valid for each in found] == [True] * len(found)
    assert found[-1].number == 9
    assert 3 <= len(found) <= 6


def test_a_save_is_two_puts_and_one_get(bucket):
    one = at(bucket)
    for n in range(3):
        one.save({"n": n})
    seen = watch(one)

    one.save({"n": 3})

    assert [name for name in seen.asked if name != "delete"] == ["put", "get", "put"]


def test_stale_writer_is_fenced(bucket):
    one, other = at(bucket), at(bucket)
    one.save({"by": "one"})
    other.load()
    one.save({"by": "one again"})

    with pytest.raises(sf.Fenced):
        other.save({"by": "other"})
    assert at(bucket).load() == {"by": "one again"}
    other.load()
    other.save({"by": "other"})
    with pytest.raises(sf.Fenced):
        one.save({"by": "one, late"})
    assert at(bucket).load() == {"by": "other"}


def test_racing_writers_count_what_they_were_told(bucket):
    """Four processes add one each time that they are told that they saved."""
    at(bucket).save({"n": 0})

    def add(_):
        told = 0
        for _ in range(4):
            mine = at(bucket)
            state = mine.load()
            try:
                mine.save({"n": state["n"] + 1})
            except sf.Fenced:
                continue
            told += 1
        return told

    with ThreadPoolExecutor(4) as racers:
        told = sum(racers.map(add, range(4)))

    assert told >= 4
    assert at(bucket).load() == {"n": told}


@pytest.mark.parametrize("state", [{"n": 1}, BIG], ids=["small", "large"])
def test_killed_before_and_after_every_request(bucket, state):
    """Either the old state counts or the new one, and the next writer goes on."""
    for after in (False, True):
        for point in range(20):
            url = bucket.replace("?", f"/{point}{after}{len(state)}?")
            first = sf.Checkpoint("c", store=url)
            first.save({"n": 0})
            first.load()
            watch(first, at=point, after=after)
            try:
                first.save(state)
            except Killed:
                pass
            else:
                assert point > 2
                break
            again = sf.Checkpoint("c", store=url)
            assert again.load() in ({"n": 0}, state)
            again.save({"n": 2})
            assert sf.Checkpoint("c", store=url).load() == {"n": 2}


def test_first_save_that_was_killed_is_nothing_and_not_damage(bucket):
    for point in range(20):
        url = bucket.replace("?", f"/first{point}?")
        one = sf.Checkpoint("c", store=url)
        watch(one, at=point)
        try:
            one.save({"n": 1})
        except Killed:
            pass
        else:
            break
        again = sf.Checkpoint("c", store=url)
        assert again.load() in (None, {"n": 1})
        again.save({"n": 2})
    assert point > 3


def test_lost_answers_are_settled(bucket):
    """The bucket did it, and the connection broke: it is not done twice, and not told as failed."""
    for point in range(3):
        url = bucket.replace("?", f"/lost{point}?")
        one = sf.Checkpoint("c", store=url)
        one.save({"n": 0})
        watch(one, at=point, after=True, error=OSError("reset"))

        one.save({"n": 1})
        one.save({"n": 2})

        assert sf.Checkpoint("c", store=url).load() == {"n": 2}


def test_generation_that_a_lifecycle_rule_deleted_is_a_loud_fallback(bucket, caplog):
    one = at(bucket)
    for n in range(3):
        one.save({"n": n})
    plain = Bucket(place(bucket))
    (newest,) = [key for key in plain.names() if "/g/000000000000000003-" in key]
    plain.delete(newest)

    assert at(bucket).load() == {"n": 1}
    assert "fell back from generation 3 to 2" in caplog.text


def test_changed_byte_is_a_loud_fallback(bucket, caplog):
    one = at(bucket)
    for n in range(3):
        one.save({"n": n})
    plain = Bucket(place(bucket))
    (newest,) = [key for key in plain.names() if "/g/000000000000000003-" in key]
    held = plain.get(newest)
    plain.replace(newest, held.data.replace(b'"n":2', b'"n":9'), held.tag)

    assert at(bucket).load() == {"n": 1}
    assert "its seal does not hold" in caplog.text


def test_note_that_is_gone_is_not_nothing(bucket):
    """Else a loop would start afresh, and do everything again."""
    at(bucket).save({"n": 1})
    plain = Bucket(place(bucket))
    (note,) = [key for key in plain.names() if key.endswith("/newest")]
    plain.delete(note)

    with pytest.raises(sf.CorruptCheckpoint):
        at(bucket).load()
    with pytest.raises((sf.CorruptCheckpoint, sf.Fenced)):
        at(bucket).save({"n": 2})


def test_bucket_that_cannot_be_asked_is_not_nothing():
    with pytest.raises(StoreUnavailable):
        sf.Checkpoint("c", store="s3://journal/x?endpoint=http://127.0.0.1:9").load()


def test_bucket_that_ignores_conditions_gets_nothing(rclone):
    with pytest.raises(sf.StoreNotDurable):
        sf.Checkpoint("c", store=rclone).save({"n": 1})


def test_bucket_is_no_store_of_runs(bucket):
    @sf.workflow
    def one() -> None:
        """Nothing."""

    with pytest.raises(sf.UsageError, match="can hold checkpoints"):
        one.using(store=bucket).run("r")
