# expect: none
def go(t, job):
    r = run_job(job)
    t.mark_complete(job.id)
    notify_slack(f"{job.id} done")
    return r
