"""Ready-made effects that are safe to be killed in: files, HTTP requests, rows.

    from surefoot import effects

    effects.write_file("src/a.py", text)

Outside a run they are plain functions. They block; in an async workflow: `await asyncio.to_thread(effects.write_file, …)`.
"""

from surefoot.engine.effects.files import delete_file, write_file
from surefoot.engine.effects.http import HttpResponse, http_request
from surefoot.engine.effects.rows import upsert
from surefoot.errors import HttpError, HttpUnsure

__all__ = ["HttpError", "HttpResponse", "HttpUnsure", "delete_file", "http_request", "upsert", "write_file"]
