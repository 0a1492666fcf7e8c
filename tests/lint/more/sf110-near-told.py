# expect: none
def save_checkpoint(store, s):
    try:
        store.save_state(s)
    except OSError:
        return False
    return True
