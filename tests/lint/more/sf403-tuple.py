# expect: SF403
import langgraph.types as t

def node(state):
    try:
        x = t.interrupt("?")
    except (ValueError, Exception) as e:
        x = str(e)
    return {"x": x}
