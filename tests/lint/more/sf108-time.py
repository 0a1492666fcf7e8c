# expect: SF108
import time, stripe
from temporalio import activity

@activity.defn
async def charge(c: str) -> str:
    return stripe.Charge.create(customer=c, idempotency_key=f"{c}-{time.time()}").id
