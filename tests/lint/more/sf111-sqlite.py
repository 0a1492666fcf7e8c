# expect: SF111
import sqlite3

class Store:
    def open(self):
        self.db = sqlite3.connect(self.path)
        self.db.executescript("PRAGMA journal_mode=WAL; PRAGMA synchronous = 0;")
