# expect: none
def bench_inserts(db):
    db.execute("PRAGMA synchronous=OFF")
