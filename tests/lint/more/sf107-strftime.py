# expect: SF107
import time
import surefoot as sf

@sf.workflow
def nightly() -> int:
    return 1

def main():
    nightly.using(store="sqlite:///x.db").run("n-" + time.strftime("%Y%m%d%H%M%S"))
