# expect: SF102
def run(paths):
    done = load_done()
    for p in paths:
        if p in done:
            continue
        upload_file(p)
        done.add(p)
    save_done(done)
