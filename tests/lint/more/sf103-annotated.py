# expect: SF103
from collections import defaultdict

already_sent: dict[str, bool] = {}

def remind(users, mailer):
    for u in users:
        if not already_sent.get(u.id):
            mailer.send(u.mail)
            already_sent[u.id] = True
