# expect: none
def go(queue, job):
    try:
        send_email(job.to)
    finally:
        queue.task_done()
