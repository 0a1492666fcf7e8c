# expect: none
def open_state(db):
    db.execute("PRAGMA synchronous=NORMAL")
