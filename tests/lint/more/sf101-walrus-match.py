# expect: SF101
def go(tracker, job):
    match job.kind:
        case "mail":
            tracker.mark_sent(job.id)
            send_mail(job.to, job.text)
