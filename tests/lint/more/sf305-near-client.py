# expect: none
import surefoot as sf
from app import Client

@sf.step
def f(client: Client, n: int) -> int:
    client.add(n)
    return n
