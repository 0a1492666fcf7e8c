# expect: SF401
from langgraph.graph import StateGraph

def run(graph, x):
    return graph.invoke(x, durability="exit")
