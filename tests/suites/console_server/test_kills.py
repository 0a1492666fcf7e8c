"""The console is killed at every point of a POST: the entry is there once, or not at all; and never twice after a second click."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.timeout(280)
ROOT = Path(__file__).parents[3]
PROGRAM = '''
import json, os, signal, sys
from tests.console.conftest import BASE, Browser, paying

def killing(at):
    """Dies before, or right after, a number of calls of the store: between them nothing of it changes."""
    calls = [0]
    def wrap(store):
        class Dying:
            def __getattr__(self, name):
                found = getattr(store, name)
                if not callable(found):
                    return found
                def call(*given, **named):
                    if armed[0]:
                        point("before", name)
                    result = found(*given, **named)
                    if armed[0]:
                        point("after", name)
                    return result
                return call
        return Dying()
    def point(when, name):
        calls[0] += 1
        if calls[0] == at:
            sys.stdout.write(f"{when} {name}"), sys.stdout.flush()
            os.kill(os.getpid(), signal.SIGKILL)
    return wrap

armed = [False]

def once(at, said):
    import surefoot as sf
    from surefoot.console.application import Console
    from surefoot.console.options import Options
    from surefoot.console.principals import Principal
    from surefoot.store.open import wrapped
    with wrapped(killing(at)):
        who = Browser(Console(Options()), Principal("ann", "admin"))
        seen = json.loads(os.environ["SEEN"])
        armed[0] = True
        found = who.post("/api/v1/runs/r/actions", {**said, "seen": seen})
        armed[0] = False
    print(found.status_code)
    sys.stdout.flush()
    os._exit(0)

def main(said):
    import surefoot as sf
    try:
        paying.run("r", 5)
    except sf.InDoubt:
        pass
    seen = sf.get_run("r").seen
    os.environ["SEEN"] = json.dumps({"seq": seen.seq, "seal": seen.seal})
    sf.get_run("r")
    from surefoot.store.open import close_all
    close_all()
    told = []
    import shutil
    shutil.copytree(".surefoot", "pristine")
    at = 0
    while True:
        at += 1
        shutil.rmtree(".surefoot"); shutil.copytree("pristine", ".surefoot")
        for anchors in ():
            pass
        first, where = run(at, said)
        entries = count()
        second, _ = run(10**9, said)
        told.append([first, where, entries, second, count()])
        if first == 0:
            print(json.dumps(told))
            return

def run(at, said):
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(writing, 1)
        once(at, said)
    os.close(writing)
    with os.fdopen(reading) as stream:
        where = stream.read()
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), where

def count():
    """Read by another process: this one opens no store."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        import surefoot as sf
        kinds = [one.kind for one in sf.get_run("r").entries()]
        os.write(writing, json.dumps(kinds).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as stream:
        found = stream.read()
    os.waitpid(child, 0)
    return json.loads(found)

main(json.loads(sys.argv[1]))
'''
WORDS = [
    ({"do": "settle", "address": "pay#1", "not_happened": True}, "EffectSettled"),
    ({"do": "rewind", "at": "look#1"}, "RunRewound"),
    ({"do": "cancel"}, "CancelRequested"),
    ({"do": "event", "name": "n", "value": 1, "id": "1"}, "EventSent"),
]


@pytest.mark.parametrize(("said", "kind"), WORDS, ids=[one[0]["do"] for one in WORDS])
def test_killed_at_every_point_of_a_post(tmp_path, said, kind):
    env = {**os.environ, "PYTHONPATH": str(ROOT), "SUREFOOT_TOKENS": str(tmp_path / "tokens.json")}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(said)],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout.splitlines()[-1])

    assert len(told) > 6, told
    assert any(where == "before append" for _, where, *_ in told)
    assert any(where == "after append" for _, where, *_ in told)
    for code, where, kinds, second, after in told:
        assert kinds.count(kind) == (1 if where.startswith("after append") or kinds.count(kind) else 0), where
        assert kinds.count(kind) <= 1, where
        assert after.count(kind) == 1, (code, where, second)
