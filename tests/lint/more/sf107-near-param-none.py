# expect: none
import uuid
import surefoot as sf

@sf.workflow
def go() -> int:
    return 1

def main(run_id=None):
    if run_id is None:
        run_id = uuid.uuid4().hex
    go.run(run_id)
