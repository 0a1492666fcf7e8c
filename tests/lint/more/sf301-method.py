# expect: SF301
import smtplib
import surefoot as sf

class Mailer:
    @sf.step(ignore=("self",))
    def tell(self, to: str) -> None:
        s = smtplib.SMTP("x")
        s.sendmail("a", to, "b")
