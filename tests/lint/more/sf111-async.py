# expect: SF111
class Pool:
    async def setup(self, conn):
        await conn.execute("SET synchronous_commit = 'off'")
