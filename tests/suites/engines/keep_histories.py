"""Writes the histories that `test_loop.py` replays: run it before a release, and keep the old ones beside the new.

python tests/suites/engines/keep_histories.py RELEASE
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

import flows
from cluster import Cluster
from stage import Place, at

import surefoot as sf
from tests.ledger import ledger_process
from tests.working import wait_until

FOLDER = Path(__file__).with_name("histories")


def told(run: str) -> None:
    wait_until(lambda: sf.get_run(run).status in ("done", "failed", "cancelled", "waiting"), 120)


def main(release: str) -> None:
    folder = Path(tempfile.mkdtemp())
    cluster = Cluster(folder)
    cluster.start()
    with ledger_process() as ledger:
        os.environ["LEDGER"] = str(ledger)
        namespace = cluster.namespace()
        url = cluster.url(namespace, heartbeat="1s")
        with at(Place("Temporal", f"sqlite:///{folder}/runs.db", url, namespace)), sf.Worker():
            for name, start in {
                "plain": lambda: flows.plain.start("plain", 5),
                "failed": lambda: flows.breaks.start("failed", "it"),
                "nap": lambda: flows.naps.start("nap", 5, 12.0),
                "approved": lambda: flows.approved.start("approved", 5),
                "cancelled": lambda: flows.approved.start("cancelled", 5),
            }.items():
                start()
                told(name)
            sf.get_run("approved").answer("approve#1", True)
            cluster.run("workflow", "cancel", "-n", namespace, "-w", "cancelled")
            for name in ("plain", "failed", "nap", "approved", "cancelled"):
                cluster.ended(namespace, name)
                kept = cluster.json(namespace, "workflow", "show", "-w", name)
                (FOLDER / f"{release}-{name}.json").write_text(json.dumps(kept, indent=1) + "\n")
    cluster.kill()


if __name__ == "__main__":
    main(sys.argv[1])
