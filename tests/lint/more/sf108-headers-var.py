# expect: SF108
import uuid, httpx, backoff

@backoff.on_exception(backoff.expo, httpx.HTTPError, max_tries=4)
async def pay(client, order):
    headers = {"Authorization": "x"}
    headers["Idempotency-Key"] = uuid.uuid4().hex
    return await client.post("/pay", json=order, headers=headers)
