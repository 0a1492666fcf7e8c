# expect: none
import uuid
import surefoot as sf

@sf.workflow
def go() -> int:
    return 1

def submit():
    return go.start(str(uuid.uuid4()))
