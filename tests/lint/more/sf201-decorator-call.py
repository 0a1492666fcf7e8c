# expect: SF201
from time import time as now
import surefoot as s

def body():
    return now()

w = s.workflow(body)
