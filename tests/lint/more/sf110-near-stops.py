# expect: none
def loop(items, store):
    for i in items:
        handle(i)
        try:
            store.save_progress(i)
        except OSError:
            break
