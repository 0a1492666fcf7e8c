# expect: SF101
import requests

def pay(db, invoice):
    db.execute("UPDATE invoices SET status = 'paid' WHERE id = ?", (invoice.id,))
    db.commit()
    requests.post("https://bank.test/pay", json={"id": invoice.id})
