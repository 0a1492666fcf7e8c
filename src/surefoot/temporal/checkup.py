"""What `surefoot doctor` says of a cluster: whether it can be reached, and whether it shows and keeps what it should."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from surefoot.engine.process import config
from surefoot.errors import UsageError
from surefoot.store.findings import Finding, bad, ok, warn
from surefoot.temporal import names

if TYPE_CHECKING:
    from temporalio.client import Client

    from surefoot.temporal.engine import Temporal

WHAT: Final = "engine"
SECONDS: Final = 10.0
SHORT_DAYS: Final = 1.0


def findings(engine: Temporal) -> list[Finding]:
    """Never raises: that the cluster is away is a finding, too."""
    where = f"{engine.address.target}, namespace {engine.address.namespace}"
    try:
        found = engine.line.call(_looked, SECONDS)
    except UsageError as error:
        return [bad(WHAT, str(error), "install the extra")]
    except Exception as error:  # noqa: BLE001 - whatever it is, the cluster is not to be had
        return [bad(WHAT, f"Temporal at {where} does not answer: {error!r}", "see SUREFOOT_ENGINE and TEMPORAL_*")]
    return [ok(WHAT, f"Temporal at {where}"), *found, *_store_findings(engine)]


async def _looked(client: Client) -> list[Finding]:
    from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest, GetSystemInfoRequest

    from surefoot.temporal.server import missing_attributes

    system = await client.workflow_service.get_system_info(GetSystemInfoRequest())
    described = await client.workflow_service.describe_namespace(DescribeNamespaceRequest(namespace=client.namespace))
    found = [ok(WHAT, f"server {system.server_version}")]
    days = described.config.workflow_execution_retention_ttl.ToTimedelta().total_seconds() / 86400
    kept = f"what has ended is shown in Temporal for {days:g} days; a run that was terminated is left alone as long"
    short = "cancel a run in surefoot to end it for good; or a longer retention of the namespace"
    found.append(ok(WHAT, kept) if days > SHORT_DAYS else warn(WHAT, kept, short))
    if missing := await missing_attributes(client):
        told = f"search attributes are missing: {', '.join(missing)}; runs are driven, and lists in Temporal do not show how they stand"
        return [*found, warn(WHAT, told, attributes_command(client.namespace, missing))]
    return [*found, ok(WHAT, f"search attributes {', '.join(names.ATTRIBUTES)}")]


def attributes_command(namespace: str, missing: list[str]) -> str:
    """The command that makes them."""
    made = " ".join(f"--name {name} --type Keyword" for name in missing)
    return f"temporal operator search-attribute create -n {namespace} {made}"


def _store_findings(engine: Temporal) -> list[Finding]:
    if not config.is_store_named():
        return [bad(WHAT, "SUREFOOT_STORE is not set: workers refuse to guess the store", "set it, for every worker")]
    if config.store_url().startswith("sqlite:"):
        return [warn(WHAT, "the journal is a SQLite file", "right only if all workers are on this host")]
    return []
