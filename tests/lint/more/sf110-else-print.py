# expect: SF110
def step(s, saver):
    try:
        saver.save_snapshot(s)
    except Exception as e:
        print(e)
    return s + 1
