# expect: none
def load_state(states, name):
    try:
        return states[name]
    except KeyError:
        return {}
