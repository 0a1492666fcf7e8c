# expect: none
import subprocess
import surefoot as sf

@sf.step
def st(repo: str) -> str:
    return subprocess.check_output(["git", "-C", repo, "status", "--porcelain"], text=True)
