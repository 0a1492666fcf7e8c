# expect: SF107
from datetime import datetime, timezone
import surefoot as sf
@sf.workflow
def go() -> int:
    return 1
def main():
    stamp = datetime.now(timezone.utc).isoformat()
    go.run("go-" + stamp)
