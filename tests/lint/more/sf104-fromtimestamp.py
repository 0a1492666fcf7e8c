# expect: SF104
import os
from datetime import datetime

def todo(path, checkpoint):
    changed = datetime.fromtimestamp(os.path.getmtime(path))
    return changed > checkpoint.saved_at
