"""docs/redis.md: what it shows is run as it stands there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.postgres import free_port
from tests.redis import VALKEY, binary

pytestmark = pytest.mark.timeout(240)  # many processes: a busy machine is no failure

PAGE = Path(__file__).parents[3] / "docs" / "redis.md"


def test_story_of_the_page_goes_as_it_says(tmp_path):
    """The server forgets three payments. Nothing is repeated, and the run goes on when they are back."""
    text = PAGE.read_text()
    (code,) = re.findall(r"^```python no-run file=shop.py\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    (shell,) = re.findall(r"^```bash\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    (tmp_path / "shop.py").write_text(code)
    tools = str(Path(binary(VALKEY)).parent)
    env = {**os.environ, "PATH": os.pathsep.join([str(Path(sys.executable).parent), tools, os.environ["PATH"]])}

    told = subprocess.run(
        ["bash", "-c", shell.replace("6390", str(free_port()))],
        cwd=tmp_path, env=env, capture_output=True, text=True, timeout=200, check=False,
    )  # fmt: skip

    lines = [line for line in told.stdout.splitlines() if re.fullmatch(r"\d|paid \d", line)]
    assert lines == [*"012345", "paid 7", *"01234567"], told.stdout + told.stderr
    assert told.stderr.count("older than it once was") >= 2
