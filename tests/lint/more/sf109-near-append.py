# expect: none
def save_progress(path, item):
    with open(path, "a") as f:
        f.write(item + "\n")
