# expect: none
def run(rows, state):
    for i, row in enumerate(rows):
        send_email(row)
        save_state(state)
        if i % 10 == 0:
            save_snapshot(state)
