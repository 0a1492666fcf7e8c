# expect: none
def open_state(db):
    """Never PRAGMA synchronous=OFF here."""
    return db
