"""Real object stores from wheels, each a child of ours on free ports: moto, SeaweedFS, and rclone, which is refused."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

BUCKET = "journal"
KEYS = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "us-east-1"}
_SECONDS = 120


def free_ports(count: int) -> list[int]:
    """Below the range from which clients get theirs, and with room for a second port ten thousand above."""
    found: list[int] = []
    for port in range(20_000 + os.getpid() % 7_000, 45_000):
        with socket.socket() as one, socket.socket() as above:
            try:
                one.bind(("127.0.0.1", port))
                above.bind(("127.0.0.1", port + 10_000))
            except OSError:
                continue
        found.append(port)
        if len(found) == count:
            return found
    raise AssertionError("no free ports")


def program(name: str) -> str:
    """The command of a wheel, beside this Python."""
    found = shutil.which(name, path=str(Path(sys.executable).parent))
    assert found is not None, f"no {name}: make .venv-buckets/.ready"
    return found


@contextmanager
def _serving(command: list[str], folder: Path, url: str) -> Iterator[str]:
    with (folder / "log").open("ab") as log:
        # Without keys of its own a server takes those of anybody.
        env = {name: value for name, value in os.environ.items() if name not in KEYS}
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, env=env)
    try:
        _wait(process, url, folder / "log")
        yield url
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=30)


def _wait(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    """Until it answers anything at all."""
    end = time.monotonic() + _SECONDS
    while True:
        assert process.poll() is None, log.read_text()[-2000:]
        try:
            urllib.request.urlopen(url, timeout=5).close()
        except urllib.error.HTTPError:
            return
        except OSError:
            assert time.monotonic() < end, log.read_text()[-2000:]
        else:
            return


def made(endpoint: str, bucket: str = BUCKET) -> str:
    """The URL of the bucket, once a first object could be written."""
    end = time.monotonic() + _SECONDS
    while True:
        try:
            urllib.request.urlopen(urllib.request.Request(f"{endpoint}/{bucket}", method="PUT"), timeout=10).close()
        except urllib.error.HTTPError as error:
            if error.code == 409:
                return f"s3://{bucket}/shop?endpoint={endpoint}"
        except OSError:
            pass
        else:
            return f"s3://{bucket}/shop?endpoint={endpoint}"
        assert time.monotonic() < end


@contextmanager
def moto(folder: Path) -> Iterator[str]:
    (port,) = free_ports(1)
    url = f"http://127.0.0.1:{port}"
    with _serving([program("moto_server"), "-H", "127.0.0.1", "-p", str(port)], folder, url):
        yield made(url)


@contextmanager
def seaweed(folder: Path) -> Iterator[str]:
    master, volume, filer, s3 = free_ports(4)
    url = f"http://127.0.0.1:{s3}"
    command = [
        program("weed"), "server", "-s3", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", f"-dir={folder}",
        f"-master.port={master}", f"-volume.port={volume}", f"-filer.port={filer}", f"-s3.port={s3}",
        "-volume.max=8", "-master.volumeSizeLimitMB=64",
    ]  # fmt: skip
    with _serving(command, folder, url):
        yield made(url)


@contextmanager
def rclone(folder: Path) -> Iterator[str]:
    (port,) = free_ports(1)
    url = f"http://127.0.0.1:{port}"
    data = folder / "data"
    (data / BUCKET).mkdir(parents=True)
    command = [program("rclone"), "serve", "s3", "--addr", f"127.0.0.1:{port}", "--auth-key", "key,secret", str(data)]
    with _serving(command, folder, url):
        yield f"s3://{BUCKET}/shop?endpoint={url}"
