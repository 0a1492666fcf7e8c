# expect: none
import requests
import surefoot as sf

@sf.effect(on_crash="retry")
def rm(n: int) -> None:
    requests.delete(f"https://x.test/{n}")
