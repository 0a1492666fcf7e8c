# expect: SF106
import json
from dataclasses import dataclass, field
@dataclass
class Progress:
    done: list = field(default_factory=list)
    @classmethod
    def load(cls, path):
        try:
            with open(path) as f:
                return cls(**json.load(f))
        except Exception:
            return cls()
