# expect: none
import os, uuid
import surefoot as sf

@sf.workflow
def go() -> int:
    return 1

go.run(os.environ.get("RUN_ID", str(uuid.uuid4())))
