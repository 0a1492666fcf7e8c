# expect: SF301
from pathlib import Path
import surefoot as sf

def _save(p, t):
    Path(p).write_text(t)

save = sf.step(_save)
