# expect: SF204
import surefoot as sf
@sf.workflow
def w(x: str) -> None:
    print(x, file=open("out.txt", "w"))
