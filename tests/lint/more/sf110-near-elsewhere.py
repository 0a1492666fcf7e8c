# expect: none
def step(store, backup, s):
    try:
        store.save_checkpoint(s)
    except OSError:
        backup.save_checkpoint(s)
