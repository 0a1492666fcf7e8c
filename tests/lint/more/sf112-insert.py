# expect: SF112
def add(db, row):
    for attempt in range(3):
        try:
            db.execute("INSERT INTO orders VALUES (?)", (row,))
            db.commit()
            return
        except ConnectionError:
            continue
