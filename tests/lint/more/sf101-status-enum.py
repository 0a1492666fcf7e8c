# expect: SF101
def go(repo, job):
    repo.update_status(job.id, Status.COMPLETED)
    publish_post(job.post)
