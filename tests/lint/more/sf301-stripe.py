# expect: SF301
import stripe
import surefoot as sf

@sf.step(retries=2)
def charge(c: str) -> str:
    return stripe.PaymentIntent.create(customer=c).id
