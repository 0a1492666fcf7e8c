# expect: none
import sqlite3
import surefoot as sf

@sf.effect
def add(n: int) -> None:
    sqlite3.connect("x").execute("INSERT INTO t VALUES (1)")

@add.check
def _(n: int):
    row = sqlite3.connect("x").execute("SELECT 1 FROM t WHERE n = ?", (n,)).fetchone()
    return sf.happened(None) if row else sf.not_happened()
