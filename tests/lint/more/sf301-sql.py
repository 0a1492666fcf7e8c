# expect: SF301
import psycopg
import surefoot as sf

@sf.step
def add(n: int) -> None:
    with psycopg.connect("x") as conn, conn.cursor() as cur:
        cur.execute("INSERT INTO t VALUES (%s)", (n,))
