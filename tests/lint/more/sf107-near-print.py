# expect: none
import uuid
import surefoot as sf

@sf.workflow
def go() -> int:
    return 1

rid = str(uuid.uuid4())
print("run", rid)
go.run(rid)
