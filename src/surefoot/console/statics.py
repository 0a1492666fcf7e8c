"""Static files by a name that has their hash: whoever has one may keep it for ever."""

from __future__ import annotations

from starlette.responses import PlainTextResponse, Response

from surefoot.console import markup
from surefoot.console.context import Request

TYPES = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml", "png": "image/png", "ico": "image/x-icon"}


async def show(request: Request) -> Response:
    known = markup.statics().get(request.ids["file"])
    if known is None:
        return PlainTextResponse("There is no such file.", 404)
    name, content = known
    kind = TYPES.get(name.rpartition(".")[2], "application/octet-stream")
    return Response(content, media_type=kind, headers={"Cache-Control": "public, max-age=31536000, immutable"})
