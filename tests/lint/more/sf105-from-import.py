# expect: SF105
from json import dumps

class Saver:
    def put(self, db, snapshot):
        db.put(b"k", dumps(snapshot, default=str).encode())
