# expect: none
import uuid, stripe
def charge(c):
    key = str(uuid.uuid4())
    return stripe.Charge.create(customer=c, idempotency_key=key)
