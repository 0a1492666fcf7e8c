# expect: SF304
import sqlite3
import surefoot as sf

@sf.effect
def add(n: int) -> None:
    sqlite3.connect("x").execute("INSERT INTO t VALUES (1)")

@add.check
def look(n: int):
    db = sqlite3.connect("x")
    db.execute("DELETE FROM t WHERE n = ?", (n,))
    return sf.not_happened()
