# expect: SF109
import pickle

class Agent:
    def save(self):
        with open(self.checkpoint_path, "wb") as f:
            pickle.dump(self.data, f)
