# expect: SF204
import smtplib
import surefoot as sf

def mail(to):
    with smtplib.SMTP("x") as s:
        s.send_message(to)

@sf.workflow
def w(to: str) -> None:
    mail(to)
