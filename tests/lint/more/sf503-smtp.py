# expect: SF503
import smtplib
from temporalio import activity

@activity.defn(name="mail")
async def mail(to: str) -> None:
    with smtplib.SMTP("x") as s:
        s.sendmail("a", to, "b")
