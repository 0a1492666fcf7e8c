# expect: SF108
import uuid, stripe
import surefoot as sf

@sf.effect
def refund(c: str) -> str:
    return stripe.Refund.create(charge=c, idempotency_key=f"r-{uuid.uuid4()}").id
