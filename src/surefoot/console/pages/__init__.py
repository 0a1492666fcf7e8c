"""The pages: each is a function that looks and returns a `Page`. The table below says where they are, and who may see them."""

from __future__ import annotations

from surefoot.console.pages import audit, checkpoints, diff, drift, inbox, kit, run, runs, store, workers
from surefoot.console.principals import GLANCE, VIEW
from surefoot.console.route import Route

PAGES: tuple[Route, ...] = (
    Route("GET", "/", inbox.show, scope=GLANCE),
    Route("GET", "/runs", runs.show, scope=GLANCE),
    Route("GET", "/runs/{run}", run.show, scope=VIEW),
    Route("GET", "/runs/{run}/journal", run.journal, scope=VIEW),
    Route("GET", "/runs/{run}/world", run.world, scope=VIEW),
    Route("GET", "/runs/{run}/values", run.values, scope=VIEW),
    Route("GET", "/runs/{run}/people", run.people, scope=VIEW),
    Route("GET", "/runs/{run}/drift", drift.show, scope=VIEW),
    Route("GET", "/diff", diff.show, scope=VIEW),
    Route("GET", "/workers", workers.show, scope=GLANCE),
    Route("GET", "/checkpoints", checkpoints.show, scope=VIEW),
    Route("GET", "/checkpoints/{name}", checkpoints.one, scope=VIEW),
    Route("GET", "/audit", audit.show, scope=VIEW),
    Route("GET", "/store", store.show, scope=VIEW),
    Route("GET", "/_kit", kit.show, scope=VIEW),
)
