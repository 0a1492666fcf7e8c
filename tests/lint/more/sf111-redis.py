# expect: SF111
def prepare(r):
    r.config_set("appendfsync", "no")
