# expect: SF401
from langgraph.checkpoint.sqlite import SqliteSaver

def build(b):
    with SqliteSaver.from_conn_string(":memory:") as s:
        return b.compile(checkpointer=s)
