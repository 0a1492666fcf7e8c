# expect: none
from temporalio import workflow
from langgraph.checkpoint.memory import InMemorySaver

saver = InMemorySaver()
