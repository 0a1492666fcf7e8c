# expect: none
def go(t, job, db):
    charge_card(job.card)
    t.mark_paid(job.id)
    db.execute("INSERT INTO audit_log VALUES (?)", (job.id,))
