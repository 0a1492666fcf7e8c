# expect: SF104
import os

class Sync:
    def needs(self, path):
        mtime = os.stat(path).st_mtime
        if mtime <= self.last_run:
            return False
        return True
