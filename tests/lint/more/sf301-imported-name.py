# expect: SF301
from app.mail import send_email
import surefoot as sf

@sf.step
def tell(to: str) -> None:
    send_email(to, "x")
