# expect: SF301
import subprocess
import surefoot as sf

@sf.step
def commit(m: str) -> None:
    subprocess.run(["git", "commit", "-m", m], check=True)
