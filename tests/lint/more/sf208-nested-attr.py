# expect: SF208
import surefoot as sf
class State:
    def __init__(self):
        self.n = 0
STATE = State()
@sf.workflow
def w() -> None:
    STATE.n += 1
