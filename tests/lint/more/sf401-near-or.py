# expect: none
from langgraph.checkpoint.memory import InMemorySaver

def build(b, saver=None):
    return b.compile(checkpointer=saver or InMemorySaver())
