# expect: SF102
import requests
def sync(contacts, progress):
    count = 0
    for c in contacts:
        requests.post("https://crm.test/contacts", json=c)
        count += 1
        if count % 50 != 0:
            continue
        progress.save(count)
