# expect: none
import openai
import surefoot as sf

client = openai.OpenAI()

@sf.step
def ask(q: str) -> str:
    return client.responses.create(model="m", input=q).output_text
