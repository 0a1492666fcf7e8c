# expect: none
def run(rows, state):
    batch = []
    for row in rows:
        batch.append(row)
        if len(batch) >= 100:
            upload_batch(batch)
            save_state(state)
            batch = []
