# expect: none
def loop(queue):
    while True:
        job = queue.get()
        upload_result(job)
        queue.mark_done(job.id)
        send_metrics(job)
