# expect: none
from langgraph.checkpoint.sqlite import SqliteSaver

def build(b):
    return SqliteSaver.from_conn_string("x.db")
