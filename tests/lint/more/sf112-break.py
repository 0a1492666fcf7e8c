# expect: SF112
import httpx

async def notify(client: httpx.AsyncClient, payload):
    attempt = 0
    while True:
        try:
            resp = await client.post("/sms/send", json=payload)
            break
        except httpx.HTTPError:
            attempt += 1
            if attempt > 3:
                raise
