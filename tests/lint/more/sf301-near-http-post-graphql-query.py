# expect: none
import httpx
import surefoot as sf
@sf.step
def issues(repo: str) -> list:
    return httpx.post("https://api.test/graphql", json={"query": "{ issues }"}).json()
