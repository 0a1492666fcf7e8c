"""The HTTP API, `/api/v1`: the objects that the command line prints with `--json`, byte for byte.

Who may only glance gets how runs stand, and no value of theirs.
"""

from __future__ import annotations

from surefoot.console.api import events, gets, jobs, openapi, words
from surefoot.console.principals import ADMIN, DECIDE, GLANCE, OPEN, VIEW
from surefoot.console.route import Route

ROUTES: tuple[Route, ...] = (
    Route("GET", "/api/v1/openapi.json", openapi.show, scope=OPEN),
    Route("GET", "/api/v1/inbox", gets.inbox, scope=VIEW),
    Route("GET", "/api/v1/runs", gets.runs, scope=VIEW),
    Route("GET", "/api/v1/runs/{run}", gets.run, scope=VIEW),
    Route("GET", "/api/v1/runs/{run}/calls", gets.calls, scope=VIEW),
    Route("GET", "/api/v1/runs/{run}/calls/{address}", gets.call, scope=VIEW),
    Route("GET", "/api/v1/runs/{run}/lanes", gets.lanes, scope=GLANCE),
    Route("GET", "/api/v1/runs/{run}/entries", gets.entries, scope=VIEW),
    Route("GET", "/api/v1/runs/{run}/values/{seq}/{field}", gets.value, scope=VIEW),
    Route("GET", "/api/v1/runs/{run}/at/{seq}", gets.at, scope=VIEW),
    Route("GET", "/api/v1/runs/{run}/world", gets.world, scope=VIEW),
    Route("POST", "/api/v1/runs/{run}/plan", words.plan, scope=VIEW),
    Route("POST", "/api/v1/runs/{run}/actions", words.say, scope=DECIDE),
    Route("GET", "/api/v1/diff", gets.diff, scope=VIEW),
    Route("GET", "/api/v1/workers", gets.workers, scope=GLANCE),
    Route("GET", "/api/v1/audit", gets.audit, scope=VIEW),
    Route("GET", "/api/v1/store", gets.store, scope=GLANCE),
    Route("POST", "/api/v1/store/verify", jobs.verify, scope=ADMIN),
    Route("POST", "/api/v1/store/doctor", jobs.doctor, scope=ADMIN),
    Route("GET", "/api/v1/jobs/{job}", jobs.show, scope=GLANCE),
    Route("GET", "/api/v1/events", events.stream, scope=GLANCE),
)
