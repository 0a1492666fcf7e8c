# expect: SF201
from datetime import datetime, timedelta
import surefoot as sf
@sf.effect
def remind(at: str) -> None: ...
@sf.workflow
def w() -> None:
    at = datetime.now() + timedelta(days=1)
    remind(at=at.isoformat())
