# expect: none
def complete(view, job):
    job.mark_done()
    return view.render(job)
