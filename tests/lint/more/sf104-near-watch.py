# expect: none
import os
class Reloader:
    def changed(self, path):
        return os.path.getmtime(path) > self.last_mtime
