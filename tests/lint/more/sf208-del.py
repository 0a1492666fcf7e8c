# expect: SF208
import surefoot as sf

PENDING = {"a": 1}

@sf.workflow
def w(k: str) -> None:
    del PENDING[k]
