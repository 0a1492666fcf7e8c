# expect: none
import surefoot as sf

@sf.workflow
def w(session: dict, client: dict) -> str:
    return session.get("a", "") + client.get("b", "")
