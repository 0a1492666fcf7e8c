# expect: none
def add(db, row):
    for attempt in range(3):
        try:
            db.execute("INSERT INTO o VALUES (?) ON CONFLICT DO NOTHING", (row,))
            return
        except ConnectionError:
            continue
