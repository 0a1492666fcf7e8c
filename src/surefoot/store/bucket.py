"""Objects in a bucket: created once or replaced under a comparison, and never overwritten blindly.

A store that ignores conditions would let two writers win at once, so each bucket is probed before it is used, and refused
if it does. A lost answer is settled by looking: our own bytes are our own success. ETags are handed back as they came, and
never judged; what proves a content is a SHA-256 of ours. "It is not there" and "it cannot be asked" are different answers.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from msgspec import Struct

from surefoot.errors import StoreNotDurable, StoreUnavailable, UsageError

if TYPE_CHECKING:
    from obstore.store import ObjectStore

T = TypeVar("T")

SCHEMES: Final = ("s3", "gs", "az")
FORMS: Final = "s3://bucket/prefix, gs://bucket/prefix or az://container/prefix"
_OPTIONS: Final = {"endpoint", "region", "virtual_host"}
_TRIES: Final = 3
_RACERS: Final = 8
_SECONDS: Final = "30s"
_probed: Final[set[str]] = set()
_probing = threading.Lock()


class Place(Struct, frozen=True):
    """A URL of a bucket, taken apart. Credentials come from the environment, never from the URL."""

    scheme: str
    bucket: str
    prefix: str
    options: tuple[tuple[str, str], ...]

    def url(self, key: str = "") -> str:
        path = "/".join(filter(None, (self.prefix, key)))
        query = f"?{urlencode(self.options)}" if self.options else ""
        return f"{self.scheme}://{self.bucket}/{quote(path)}{query}"


class Held(Struct, frozen=True):
    """An object as it is now."""

    data: bytes
    tag: str


def is_bucket(url: str) -> bool:
    return url.partition(":")[0].lower() in SCHEMES


def place(url: str) -> Place:
    """`UsageError`, if the URL is none of a bucket."""
    parts = urlsplit(url)
    if parts.scheme not in SCHEMES or not parts.hostname or parts.username or parts.password or parts.fragment:
        hint = " Credentials come from the environment." if parts.username or parts.password else ""
        raise UsageError(
            f"{parts.scheme}://{parts.hostname or ''}… is no URL of a bucket. The forms are {FORMS}.{hint}"
        )
    options = tuple(parse_qsl(parts.query))
    unknown = {name for name, _ in options} - _OPTIONS
    if unknown:
        raise UsageError(f"{', '.join(sorted(unknown))}: a bucket's URL may have {', '.join(sorted(_OPTIONS))}.")
    return Place(parts.scheme, parts.netloc, unquote(parts.path).strip("/"), options)


class Bucket:
    """The objects under a prefix of a bucket."""

    def __init__(self, at: Place) -> None:
        self.place = at
        self.url = at.url()
        self._store = _opened(at)

    def get(self, key: str) -> Held | None:
        """None only if the bucket says that there is none."""
        from obstore.exceptions import NotFoundError

        def ask() -> Held:
            found = self._store.get(self._path(key))
            return Held(bytes(found.bytes()), _tag(found.meta))

        try:
            return self._again(ask, key)
        except (NotFoundError, FileNotFoundError):
            return None

    def create(self, key: str, data: bytes) -> str:
        """The tag of the object, if it is there now with these bytes because of us. Empty: one was there before."""
        return self._put(key, data, "create")

    def replace(self, key: str, data: bytes, tag: str) -> str:
        """The same in the place of the version with that tag. Empty: there is another version, and nothing was written."""
        return self._put(key, data, {"e_tag": tag})

    def _put(self, key: str, data: bytes, mode: Any) -> str:
        from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError

        lost: BaseException | None = None
        for _ in range(_TRIES):
            try:
                done = self._store.put(self._path(key), data, mode=mode, use_multipart=False)
                return _tag(done) or self._held(key, data)
            except (AlreadyExistsError, PreconditionError):
                # Ours, if an answer was lost before: the condition no longer holds because we met it.
                return self._held(key, data) if lost is not None else ""
            except (BaseError, OSError) as error:
                if _is_final(error):
                    raise self._failed(error, key) from error
                lost = error
        found = self._held(key, data)
        if not found:
            raise self._failed(lost, key) from lost
        return found

    def _held(self, key: str, data: bytes) -> str:
        """The tag of the object, if it has these bytes."""
        held = self.get(key)
        return held.tag if held is not None and held.data == data else ""

    def names(self, prefix: str = "") -> list[str]:
        """The keys that begin so, in order."""
        root = f"{self.place.prefix}/" if self.place.prefix else ""

        def ask() -> list[str]:
            pages = self._store.list(self._path(prefix) if prefix else root or None)
            return sorted(one["path"].removeprefix(root) for page in pages for one in page)

        return self._again(ask, prefix)

    def delete(self, key: str) -> None:
        self._again(lambda: self._store.delete(self._path(key)), key)

    def _path(self, key: str) -> str:
        return "/".join(filter(None, (self.place.prefix, key)))

    def _again(self, ask: Callable[[], T], key: str) -> T:
        """For requests that may be made twice."""
        from obstore.exceptions import BaseError, NotFoundError

        for last in (*[False] * (_TRIES - 1), True):
            try:
                return ask()
            except (NotFoundError, FileNotFoundError):
                raise
            except (BaseError, OSError) as error:
                if last or _is_final(error):
                    raise self._failed(error, key) from error
        raise AssertionError(key)

    def _failed(self, error: BaseException | None, key: str) -> StoreUnavailable:
        first = str(error).strip().splitlines()[0][:300] if str(error).strip() else type(error).__name__
        return StoreUnavailable(f"{self.place.url(key)}: the bucket cannot be asked: {first}")

    # --- the probe -------------------------------------------------------------------------------------

    def require_conditions(self) -> None:
        """Refuse a bucket that ignores conditions. Once per process and place: some twenty requests."""
        with _probing:
            if self.url not in _probed:
                flaws = self.probe()
                if flaws:
                    raise StoreNotDurable(f"{self.url} does not keep what surefoot relies on: {'; '.join(flaws)}.")
                _probed.add(self.url)

    def probe(self) -> list[str]:
        """What is wrong with how the bucket keeps conditions."""
        key = f"probe/{secrets.token_hex(8)}"
        raced = f"{key}-race"
        try:
            return [*self._probe_one(key), *self._probe_race(raced)]
        finally:
            for one in (key, raced):
                self.delete(one)

    def _probe_one(self, key: str) -> list[str]:
        flaws = []
        if not self.create(key, b"one"):
            flaws.append("a new object is refused")
        if self.create(key, b"two"):
            flaws.append("an object that is there is written over (If-None-Match is ignored)")
        held = self.get(key)
        if held is None or held.data != b"one":
            flaws.append("what was written does not come back")
        if held is None or not held.tag:
            return [*flaws, "it gives no ETag"]
        if self.replace(key, b"three", '"00000000000000000000000000000000"'):
            flaws.append("an object is replaced under a wrong ETag (If-Match is ignored)")
        elif not self.replace(key, b"four", held.tag):
            flaws.append("an object is not replaced under its own ETag")
        if key not in self.names("probe/"):
            flaws.append("an object that was written is not listed")
        return flaws

    def _probe_race(self, key: str) -> list[str]:
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(_RACERS) as racers:
            won = sum(map(bool, racers.map(lambda number: self.create(key, b"%d" % number), range(_RACERS))))
        return [] if won == 1 else [f"{won} of {_RACERS} that created one object at once were told that they did"]


def open_bucket(url: str) -> Bucket:
    """A bucket that was found to keep conditions."""
    bucket = Bucket(place(url))
    bucket.require_conditions()
    return bucket


def object_at(url: str) -> tuple[Bucket, str]:
    """The bucket and the key of one object's URL, to be read."""
    at = place(url)
    return Bucket(Place(at.scheme, at.bucket, "", at.options)), at.prefix


def _opened(at: Place) -> ObjectStore:
    try:
        from obstore.store import AzureStore, GCSStore, S3Store
    except ImportError as error:
        raise UsageError(f"{at.scheme}:// needs a package: pip install 'surefoot[s3]'") from error
    options = dict(at.options)
    endpoint = options.get("endpoint", "")
    client: Any = {"timeout": _SECONDS, "allow_http": endpoint.startswith("http://")}
    retry: Any = {"max_retries": 0}  # A conditional write that is sent twice has to be settled by looking.
    config: dict[str, Any] = {"endpoint": endpoint} if endpoint else {}
    if at.scheme == "gs":
        return GCSStore(at.bucket, client_options=client, retry_config=retry)
    if at.scheme == "az":
        return AzureStore(at.bucket, config=config or None, client_options=client, retry_config=retry)
    if "region" in options:
        config["region"] = options["region"]
    if options.get("virtual_host") in ("1", "true", "yes"):
        config["virtual_hosted_style_request"] = True
    return S3Store(at.bucket, config=config, client_options=client, retry_config=retry)


def _tag(meta: Any) -> str:
    return str(meta.get("e_tag") or "")


def _is_final(error: BaseException) -> bool:
    """Whether asking again cannot help."""
    from obstore.exceptions import PermissionDeniedError, UnauthenticatedError

    return isinstance(error, PermissionDeniedError | UnauthenticatedError | PermissionError)
