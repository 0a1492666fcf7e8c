# expect: SF111
import peewee
db = peewee.SqliteDatabase("state.db", pragmas={"journal_mode": "wal", "synchronous": 0})
