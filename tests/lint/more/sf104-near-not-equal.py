# expect: none
import os

def changed(p, state):
    return os.path.getmtime(p) != state["mtimes"][p]
