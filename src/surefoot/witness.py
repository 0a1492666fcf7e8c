"""Witnesses: what a run relies on outside, kept as fingerprints and looked at again before the run goes on.

    from surefoot import witness

    @sf.workflow(watch=[witness.files("src/*.py"), witness.git_head("."), witness.db_schema("sqlite:///app.db")])

Every constructor takes `name=`; without it a witness is called as it is written: `files(src/*.py)`.
"""

from surefoot.world.base import Look, NotObservable, Pulse, Witness
from surefoot.world.databases import db_schema, sql
from surefoot.world.files import file, files
from surefoot.world.git import git_head
from surefoot.world.named import env, model, observe, package
from surefoot.world.observation import observe_all
from surefoot.world.specs import from_spec
from surefoot.world.web import http_header, http_json

__all__ = [
    "Look", "NotObservable", "Pulse", "Witness", "db_schema", "env", "file", "files", "from_spec", "git_head",
    "http_header", "http_json", "model", "observe", "observe_all", "package", "sql",
]  # fmt: skip
