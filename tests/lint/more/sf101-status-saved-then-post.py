# expect: SF101
import requests

def handle(job, store):
    job.status = "done"
    store.save(job)
    requests.post("https://shop.test/orders", json=job.order)
