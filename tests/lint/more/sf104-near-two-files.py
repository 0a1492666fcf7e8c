# expect: none
import os

def outdated(src, out):
    return os.path.getmtime(src) > os.path.getmtime(out)
