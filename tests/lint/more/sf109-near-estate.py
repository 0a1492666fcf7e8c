# expect: none
def write_real_estate(path, rows):
    with open(path, "w") as f:
        f.write(rows)
