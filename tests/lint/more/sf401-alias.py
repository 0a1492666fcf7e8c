# expect: SF401
from langgraph.checkpoint.memory import MemorySaver as MS

checkpointer = MS()
