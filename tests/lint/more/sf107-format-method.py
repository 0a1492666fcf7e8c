# expect: SF107
import random
import surefoot as sf
@sf.workflow
def go() -> int:
    return 1
go.run("go-{}".format(random.randint(0, 9999)))
