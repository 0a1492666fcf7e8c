# expect: none
import surefoot as sf
@sf.step
def f(machine) -> None:
    machine.sleep(3)
