# expect: SF203
from openai import OpenAI
import surefoot as sf

client = OpenAI()

@sf.workflow
def w(q: str) -> str:
    return client.chat.completions.create(model="m", messages=[{"role": "user", "content": q}]).choices[0].message.content
