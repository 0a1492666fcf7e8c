"""What the API takes and gives, as OpenAPI 3.1: written from the route table and from types, never by hand."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import msgspec
from starlette.responses import Response

from surefoot.console import paths
from surefoot.console.api import shapes
from surefoot.console.principals import OPEN
from surefoot.console.route import Route
from surefoot.engine.operate.decisions import Action

if TYPE_CHECKING:
    from surefoot.console.context import Request

_RUN: Final = "/api/v1/runs/{run}"
ANSWERS: Final[dict[tuple[str, str], tuple[int, Any]]] = {
    ("GET", "/api/v1/inbox"): (200, shapes.Inbox),
    ("GET", "/api/v1/runs"): (200, shapes.Runs),
    ("GET", _RUN): (200, shapes.Run),
    ("GET", f"{_RUN}/calls"): (200, shapes.Calls),
    ("GET", f"{_RUN}/calls/{{address}}"): (200, shapes.WholeCall),
    ("GET", f"{_RUN}/lanes"): (200, shapes.Lanes),
    ("GET", f"{_RUN}/entries"): (200, shapes.Entries),
    ("GET", f"{_RUN}/values/{{seq}}/{{field}}"): (200, None),
    ("GET", f"{_RUN}/at/{{seq}}"): (200, shapes.Run),
    ("GET", f"{_RUN}/world"): (200, shapes.World),
    ("POST", f"{_RUN}/plan"): (200, shapes.Planned),
    ("POST", f"{_RUN}/actions"): (200, shapes.Recorded),
    ("GET", "/api/v1/diff"): (200, shapes.Diff),
    ("GET", "/api/v1/workers"): (200, shapes.Workers),
    ("GET", "/api/v1/audit"): (200, shapes.Audit),
    ("GET", "/api/v1/store"): (200, shapes.Store),
    ("POST", "/api/v1/store/verify"): (202, shapes.Begun),
    ("POST", "/api/v1/store/doctor"): (202, shapes.Begun),
    ("GET", "/api/v1/jobs/{job}"): (200, shapes.Job),
    ("GET", "/api/v1/events"): (200, None),
    ("GET", "/api/v1/openapi.json"): (200, None),
}
"""The status and the type of what is given. None: no JSON of ours."""
BODIES: Final = {("POST", f"{_RUN}/plan"): shapes.Supposing, ("POST", f"{_RUN}/actions"): Action}
QUERIES: Final[dict[str, tuple[str, ...]]] = {
    "/api/v1/inbox": ("kind", "cursor", "limit"),
    "/api/v1/runs": ("status", "workflow", "label", "need", "queue", "cursor", "limit"),
    f"{_RUN}/calls": ("after", "limit"),
    f"{_RUN}/lanes": ("from", "to"),
    f"{_RUN}/entries": ("after", "limit"),
    "/api/v1/diff": ("a", "b"),
    "/api/v1/audit": ("who", "verb", "before", "limit"),
    "/api/v1/events": ("run", "inbox"),
}
ERRORS: Final = (400, 401, 403, 404, 409, 413, 422, 500, 503, 507)
"""Of every route; what each means is in the docs."""


async def show(request: Request) -> Response:
    """Of the routes that this console has."""
    routes = tuple(route for route in request.console.table if paths.is_api(route.path))
    return Response(written(routes), media_type="application/json")


@cache
def written(routes: tuple[Route, ...]) -> bytes:
    return msgspec.json.format(msgspec.json.encode(document(routes)), indent=2) + b"\n"


def document(routes: tuple[Route, ...]) -> dict[str, Any]:
    import surefoot

    wanted = [shapes.Failure, *(one for _, one in ANSWERS.values() if one is not None), *BODIES.values(), shapes.Seen]
    found, components = msgspec.json.schema_components(wanted, ref_template="#/components/schemas/{name}")
    by_type = {str(one): schema for one, schema in zip(wanted, found, strict=True)}
    paths: dict[str, Any] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, by_type)
    return {
        "openapi": "3.1.0",
        "info": {"title": "surefoot", "version": surefoot.__version__},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }


def _operation(route: Route, by_type: dict[str, Any]) -> dict[str, Any]:
    key = (route.method, route.path)
    status, shape = ANSWERS[key]
    given: dict[str, Any] = {"description": "Done."}
    if shape is not None:
        given["content"] = {"application/json": {"schema": by_type[str(shape)]}}
    failure = {"application/json": {"schema": by_type[str(shapes.Failure)]}}
    told: dict[str, Any] = {
        "operationId": _named(route),
        "description": f"Scope: {route.scope}.",
        "parameters": [
            *({"name": one, "in": "path", "required": True, "schema": {"type": "string"}} for one in _ids(route.path)),
            *({"name": one, "in": "query", "schema": {"type": "string"}} for one in QUERIES.get(route.path, ())),
        ],
        "responses": {
            str(status): given,
            **{str(code): {"description": "Not done.", "content": failure} for code in ERRORS},
        },
    }
    if route.scope == OPEN:
        told["security"] = []
    if key in BODIES:
        told["requestBody"] = {"required": True, "content": {"application/json": {"schema": _body(key, by_type)}}}
        if route.path.endswith("/actions"):
            told["parameters"].append({"name": "Idempotency-Key", "in": "header", "schema": {"type": "string"}})
    return told


def _body(key: tuple[str, str], by_type: dict[str, Any]) -> dict[str, Any]:
    schema: dict[str, Any] = by_type[str(BODIES[key])]
    if not key[1].endswith("/actions"):
        return schema
    repair = {"type": "object", "properties": {"do": {"const": "repair"}}, "required": ["do"]}
    beside = {"note": {"type": "string"}, "seen": by_type[str(shapes.Seen)]}
    return {"allOf": [{"anyOf": [schema, repair]}, {"type": "object", "properties": beside}]}


def _ids(path: str) -> list[str]:
    return re.findall(r"{(\w+)}", path)


def _named(route: Route) -> str:
    words = [one.strip("{}") for one in route.path.removeprefix("/api/v1/").replace(".json", "").split("/")]
    return "_".join([route.method.lower(), *words])
