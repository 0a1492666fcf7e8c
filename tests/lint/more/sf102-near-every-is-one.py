# expect: none
def move(rows, ckpt):
    for i, row in enumerate(rows):
        transfer_money(row.a, row.b)
        ckpt.save(i)
