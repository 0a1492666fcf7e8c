# expect: SF102
def move(rows, state):
    for row in rows:
        transfer_money(row.a, row.b)
        state.done.append(row.id)
        if len(state.done) % 20 == 0:
            state.save()
