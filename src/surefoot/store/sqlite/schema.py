"""The tables of a SQLite store."""

from __future__ import annotations

from typing import Final

FORMAT: Final = 1
APPLICATION_ID: Final = 0x53464A31  # "SFJ1", for file(1)

ENTRY: Final = ("pos", "run", "seq", "epoch", "at", "kind", "schema", "codec", "key", "body", "seal")
COLUMNS: Final = {
    "meta": ("key", "value"),
    "entries": ENTRY,
    "heads": ("n", "run", "seq", "seal"),
    "parts": ("n", "id", "kind", "codec", "size", "body"),
    "quarantine": ("n", *ENTRY),
    "runs": (
        "run", "workflow", "status", "queue", "labels", "created", "seq", "checksum", "wake", "worker", "reason",
        "need", "address", "brief", "until", "since",
        "marks", "n",
    ),
}  # fmt: skip
"""The tables that are worth keeping when a database is damaged. Rows are found by the first column."""

SAID: Final = "2317172420110579840 >> kind & 1"
"""Whether an entry is one of `core.entry.SAID`: a bit for each kind, for ever, as the index is made with these. A list after
`IN` says the same, and costs every ordinary entry 2 µs.
"""

SCHEMA: Final = {
    "meta": "CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID",
    "entries": (
        "CREATE TABLE entries (pos INTEGER PRIMARY KEY, run TEXT NOT NULL, seq INTEGER NOT NULL, "
        "epoch INTEGER NOT NULL, at INTEGER NOT NULL, kind INTEGER NOT NULL, schema INTEGER NOT NULL, "
        "codec INTEGER NOT NULL, key INTEGER NOT NULL, body BLOB NOT NULL, seal BLOB NOT NULL, UNIQUE (run, seq))"
    ),
    "heads": (
        "CREATE TABLE heads (n INTEGER PRIMARY KEY, run TEXT NOT NULL UNIQUE, seq INTEGER NOT NULL, seal BLOB NOT NULL)"
    ),
    "parts": (
        "CREATE TABLE parts (n INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, kind INTEGER NOT NULL, "
        "codec INTEGER NOT NULL, size INTEGER NOT NULL, body BLOB NOT NULL)"
    ),
    "quarantine": (
        "CREATE TABLE quarantine (n INTEGER PRIMARY KEY, pos, run, seq, epoch, at, kind, schema, codec, key, body, "
        "seal)"
    ),
    "runs": (
        "CREATE TABLE runs (run TEXT PRIMARY KEY, workflow TEXT, status TEXT, queue TEXT, labels TEXT, "
        "created INTEGER, seq INTEGER, checksum INTEGER, wake INTEGER, worker TEXT, reason TEXT, need TEXT, "
        "address TEXT, brief TEXT, until INTEGER, since INTEGER, marks TEXT, n INTEGER, held INTEGER) "
        "WITHOUT ROWID"
    ),
    "journal": (
        "CREATE VIEW journal AS SELECT pos, run, seq, epoch, "
        "strftime('%Y-%m-%dT%H:%M:%fZ', at / 1e6, 'unixepoch') AS at, "
        "kind, CAST(body AS TEXT) AS body, lower(hex(seal)) AS seal FROM entries"
    ),
    "starts": "CREATE TABLE starts (queue TEXT, at INTEGER, run TEXT, PRIMARY KEY (queue, at, run)) WITHOUT ROWID",
    # A worker that searches for work reads only possible runs, and of each queue only the first few.
    "runs_by_wake": "CREATE INDEX runs_by_wake ON runs (workflow, queue, wake) WHERE wake IS NOT NULL",
    "runs_by_worker": "CREATE INDEX runs_by_worker ON runs (worker, queue) WHERE worker > ''",
    # Lists for people: what waits for a person, and the rest by each filter. `n` is the place in the list.
    "runs_by_need": "CREATE INDEX runs_by_need ON runs (need, n) WHERE need > ''",
    "runs_in_need": "CREATE INDEX runs_in_need ON runs (n) WHERE need > ''",
    "runs_by_status": "CREATE INDEX runs_by_status ON runs (status, n)",
    "runs_by_workflow": "CREATE INDEX runs_by_workflow ON runs (workflow, n)",
    "runs_by_queue": "CREATE INDEX runs_by_queue ON runs (queue, n) WHERE queue > ''",
    "run_labels": (
        "CREATE TABLE run_labels (name TEXT, value TEXT, n INTEGER, run TEXT, PRIMARY KEY (name, value, n, run)) "
        "WITHOUT ROWID"
    ),
    # What people did, and what fell back: an audit. An ordinary entry is not in it.
    "entries_said": f"CREATE INDEX entries_said ON entries (pos) WHERE {SAID}",
    "runs_by_held": "CREATE INDEX runs_by_held ON runs (held, queue) WHERE held IS NOT NULL",
}
