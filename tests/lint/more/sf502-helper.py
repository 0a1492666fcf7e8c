# expect: SF502
import subprocess
from dbos import DBOS

def sh(c):
    return subprocess.run(c)

@DBOS.workflow()
def w() -> None:
    sh(["make"])
