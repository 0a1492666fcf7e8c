# expect: SF106
import pickle

class Job:
    def _load_progress(self):
        try:
            with open(self.path, "rb") as f:
                self.progress = pickle.load(f)
        except (OSError, EOFError, pickle.UnpicklingError):
            self.progress = {}
