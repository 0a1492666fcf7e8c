# expect: none
def go(items):
    done = set()
    for i in items:
        done.add(i)
        upload_file(i)
