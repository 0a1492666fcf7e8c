# expect: none
import datetime
import surefoot as sf

@sf.workflow
def go() -> int:
    return 1

go.run(f"daily-{datetime.date.today()}")
