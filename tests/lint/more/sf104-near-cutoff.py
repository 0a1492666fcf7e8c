# expect: none
import os, time

def clean(paths):
    cutoff = time.time() - 86400
    for p in paths:
        if os.path.getmtime(p) < cutoff:
            os.remove(p)
