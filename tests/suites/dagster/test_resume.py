"""`surefoot.dagster.resume`, in a real Dagster: killed in the middle of an asset, stopped for a person, published once."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import dagster as dg
import pytest

import surefoot as sf
from surefoot.dagster import resume
from surefoot.store.open import close_all
from tests.working import wait_until


@pytest.fixture(autouse=True)
def _home(tmp_path, monkeypatch):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "dagster.yaml").write_text("telemetry:\n  enabled: false\n")
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("DAGSTER_DISABLE_TELEMETRY", "yes")
    monkeypatch.setenv("SUREFOOT_STORE", f"sqlite:///{tmp_path}/runs.db")
    yield
    close_all()


def materialized(**env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(Path(__file__).with_name("pages.py"))], check=False, capture_output=True, text=True,
        timeout=150, env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **env},
    )  # fmt: skip


def done() -> Counter[str]:
    return Counter(Path("done").read_text().splitlines())


@pytest.mark.timeout(400)
def test_an_asset_goes_on_where_it_was_killed_and_publishes_once():
    """Killed at page 3, stopped for an approval, approved: three processes, and no page but the third twice."""
    assert 9 == materialized(DIE_AT="3").returncode
    assert {f"page {n}": 1 for n in range(4)} == done()

    stopped = materialized()
    assert 1 == stopped.returncode, stopped.stderr
    assert "surefoot approve book-may" in stopped.stdout
    assert {"page 0": 1, "page 1": 1, "page 2": 1, "page 3": 2, "page 4": 1, "page 5": 1} == done()

    sf.get_run("book-may").answer("approve#1", True, by="ada")
    published = materialized()
    assert 0 == published.returncode, published.stderr
    assert "publish#1" in published.stdout
    assert (1, 7) == (done()["publish 15"], sum(1 for line in done() if line.startswith(("page", "publish"))))


@sf.workflow
def waits() -> str:
    return "yes" if sf.approve("go on?") else "no"


@pytest.mark.timeout(120)
def test_with_retry_in_dagster_asks_again_and_goes_on_with_the_same_run():
    """Without an id the run belongs to Dagster's root run and the op: each retry resumes it."""

    @dg.op
    def asking(context) -> str:
        return resume(context, waits, retry_in="200ms")

    @dg.job
    def job():
        asking()

    def answered() -> None:
        wait_until(lambda: [run for run in sf.runs() if run.status == "waiting"], 60)
        sf.runs()[0].answer("approve#1", True, by="ada")

    sf.Checkpoint("make the store").save(1)
    person = threading.Thread(target=answered)
    person.start()
    ended = job.execute_in_process()
    person.join()
    assert "yes" == ended.output_for_node("asking")
    assert 1 == len(sf.runs())
    assert sf.runs()[0].id == f"{ended.run_id}/asking"


def test_what_is_no_workflow_is_refused():
    @dg.op
    def wrong(context) -> None:
        resume(context, print)

    @dg.job
    def job():
        wrong()

    with pytest.raises(sf.UsageError, match="not a function decorated"):
        job.execute_in_process()
