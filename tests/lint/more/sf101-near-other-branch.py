# expect: none
def go(tracker, job):
    if job.skip:
        tracker.mark_done(job.id)
        return
    send_email(job.to, job.text)
    tracker.mark_done(job.id)
