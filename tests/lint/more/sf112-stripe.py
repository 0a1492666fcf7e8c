# expect: SF112
import stripe, backoff

@backoff.on_exception(backoff.expo, stripe.error.APIConnectionError)
def refund(ch):
    stripe.Refund.create(charge=ch)
