# expect: none
import uuid
import surefoot as sf
@sf.workflow
def go(n: int) -> int:
    return n
def submit(db, n):
    rid = str(uuid.uuid4())
    db.insert_run(rid, n)
    go.start(rid, n)
