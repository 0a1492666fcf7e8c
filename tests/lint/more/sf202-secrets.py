# expect: SF202
from secrets import token_urlsafe
import surefoot as sf

@sf.workflow
def w() -> str:
    return token_urlsafe(8)
