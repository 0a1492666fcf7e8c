# expect: SF303
import sqlite3
import surefoot as sf

@sf.effect(on_crash="retry")
def add(n: int) -> None:
    db = sqlite3.connect("x.db")
    db.execute("INSERT INTO t VALUES (?)", (n,))
    db.commit()
