# expect: none
from langgraph.checkpoint.memory import InMemorySaver

def build(b, saver=InMemorySaver()):
    return b.compile(checkpointer=saver)
