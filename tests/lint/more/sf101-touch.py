# expect: SF101
from pathlib import Path
import subprocess

def deploy(folder):
    (Path(folder) / "DONE").touch()
    subprocess.run(["kubectl", "apply", "-f", "x.yaml"], check=True)
