# expect: SF112
import stamina, smtplib

@stamina.retry(on=OSError, attempts=3)
def mail(to, text):
    with smtplib.SMTP("mail") as s:
        s.sendmail("me", to, text)
