# expect: none
from app.effects import send_email
import surefoot as sf

@sf.workflow
def w(p: str) -> None:
    send_email(p)
