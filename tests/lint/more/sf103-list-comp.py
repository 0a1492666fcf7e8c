# expect: SF103
SENT = []
async def remind(users, sms):
    for user in [u for u in users if u.id not in SENT]:
        await sms.send(user.phone, "hi")
        SENT.append(user.id)
