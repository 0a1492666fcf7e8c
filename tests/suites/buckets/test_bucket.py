"""One object at a time: created once, replaced under a comparison, and a bucket that ignores that is refused."""

from __future__ import annotations

import pytest

import surefoot as sf
from surefoot.errors import StoreUnavailable, UsageError
from surefoot.store.bucket import Bucket, open_bucket, place


def test_bucket_that_keeps_conditions_passes_the_probe(bucket):
    assert Bucket(place(bucket)).probe() == []


def test_conditions_are_kept_by_both_for_one_request_after_the_other(either):
    assert Bucket(place(either))._probe_one("probe/one") == []


def test_bucket_that_ignores_conditions_is_refused(rclone):
    """Two writers would both be told that they won."""
    with pytest.raises(sf.StoreNotDurable, match=r"If-None-Match is ignored.*If-Match is ignored"):
        open_bucket(rclone)


def test_object_is_created_once_and_replaced_under_its_tag(either):
    one = Bucket(place(either))

    assert one.create("a/1", b"x")
    assert not one.create("a/1", b"y")
    held = one.get("a/1")
    assert held.data == b"x"
    assert one.replace("a/1", b"z", held.tag)
    assert not one.replace("a/1", b"w", held.tag)
    assert one.get("a/1").data == b"z"
    assert one.names("a/") == ["a/1"]
    one.delete("a/1")
    assert one.get("a/1") is None
    assert one.names() == []


def test_bucket_that_does_not_answer_is_not_empty():
    """ "It cannot be asked" is never "there is nothing"."""
    nowhere = "s3://journal/x?endpoint=http://127.0.0.1:9"

    for ask in (lambda one: one.get("a"), lambda one: one.names(), lambda one: one.create("a", b"x")):
        with pytest.raises(StoreUnavailable, match="cannot be asked"):
            ask(Bucket(place(nowhere)))


def test_lost_answer_is_settled_by_looking(either, monkeypatch):
    """The object was written, and the connection broke before the answer came."""
    one = Bucket(place(either))

    class Cut:
        def __init__(self, store):
            self.store, self.left = store, 1

        def __getattr__(self, name):
            return getattr(self.store, name)

        def put(self, *args, **kwargs):
            self.store.put(*args, **kwargs)
            if self.left:
                self.left -= 1
                raise OSError("the connection was reset")

    one._store = Cut(one._store)
    assert one.create("b", b"x")
    held = one.get("b")
    one._store.left = 1
    assert one.replace("b", b"y", held.tag)
    one._store.left = 1
    assert not one.create("b", b"z")
    assert one.get("b").data == b"y"


@pytest.mark.parametrize(
    "url", ["s3://", "s3://key:secret@bucket/x", "s3://bucket/x?password=1", "http://bucket/x", "s3://bucket/#x"]
)
def test_wrong_urls_are_refused_and_no_password_is_repeated(url):
    with pytest.raises(UsageError) as refused:
        place(url)
    assert "secret" not in str(refused.value)
