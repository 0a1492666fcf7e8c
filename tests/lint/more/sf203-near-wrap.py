# expect: none
from openai import OpenAI
import surefoot as sf

client = sf.wrap(OpenAI())

@sf.workflow
def w(q: str) -> str:
    return client.chat.completions.create(model="m", messages=[]).choices[0].message.content
