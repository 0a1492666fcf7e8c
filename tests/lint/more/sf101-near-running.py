# expect: none
def go(tracker, job):
    tracker.mark_started(job.id)
    send_email(job.to, job.text)
