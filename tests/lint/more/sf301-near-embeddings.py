# expect: none
import httpx
import surefoot as sf

@sf.step
def embed(t: str) -> list:
    return httpx.post("https://api.test/v1/embeddings", json={"input": t}).json()
