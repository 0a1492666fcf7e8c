# expect: SF301
from slack_sdk import WebClient
import surefoot as sf
client = WebClient(token="x")
@sf.step
def tell(t: str) -> None:
    client.chat_postMessage(channel="#a", text=t)
