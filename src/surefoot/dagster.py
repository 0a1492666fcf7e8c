"""A run inside an op or an asset of Dagster: what was done is not done again when Dagster tries again.

Dagster stays what it is: it schedules, and shows. The run has an id that Dagster's retries and re-executions share, so
each of them resumes it. A stop is a failure that says what helps; no retry of Dagster's would.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from surefoot.core.timer import Duration, seconds
from surefoot.errors import Stopped, UsageError
from surefoot.face import get_run

try:
    from dagster import Failure, MetadataValue, RetryRequested
except ImportError as error:
    raise ImportError("surefoot.dagster needs Dagster: pip install 'surefoot[dagster]'") from error

LONGEST_CALLS: Final = 50
"""The most calls that are shown beside a result."""


def resume(
    context: Any, workflow: Any, *args: Any, id: str | None = None, retry_in: Duration | None = None, **kwargs: Any  # noqa: A002 - the user's word
) -> Any:  # fmt: skip
    """The result of the run. It is started by the first try, and resumed by all others.

    `id` is the id of the run; else it is made of Dagster's root run, the op and the partition, so that retries and
    re-executions of the same task go on with it. A stop fails the op at once, with what helps in its metadata; with
    `retry_in` Dagster tries again after that time.
    """
    if not hasattr(workflow, "definition"):
        raise UsageError(
            f"resume(context, workflow, …): {workflow!r:.100} is not a function decorated with @sf.workflow"
        )
    run_id = id or id_of(context)
    try:
        begun = workflow.run(run_id, *args, **kwargs)
        result = asyncio.run(begun) if workflow.definition.is_async else begun
    except Stopped as stop:
        if retry_in is not None:
            raise RetryRequested(max_retries=_MANY, seconds_to_wait=seconds(retry_in)) from stop
        raise Failure(stop.summary, metadata=_of_stop(run_id, stop), allow_retries=False) from stop
    context.add_output_metadata(_of_result(run_id))
    return result


_MANY: Final = 1_000_000


def id_of(context: Any) -> str:
    """The same for every try of a task: Dagster's root run, the op, and the partition if there is one."""
    run = context.run
    words = [run.root_run_id or run.run_id, str(context.op_handle)]
    return "/".join([*words, context.partition_key] if context.has_partition_key else words)


def _of_stop(run_id: str, stop: Stopped) -> dict[str, Any]:
    """What the page of the failure shows: the run, why it stands still, and the commands that help."""
    stops = stop.stops or (stop,)
    lines = [f"- {when} `{do}`" for each in stops for when, do in each.cures]
    return {
        "surefoot run": run_id,
        "stop": ", ".join(type(each).__name__ for each in stops),
        "what helps": MetadataValue.md("\n".join([*lines, "- then execute this again: it goes on where it stopped"])),
    }


def _of_result(run_id: str) -> dict[str, Any]:
    calls = get_run(run_id).steps()
    shown = "\n".join(f"- `{call.address}` {call.status}" for call in calls[:LONGEST_CALLS])
    return {"surefoot run": run_id, "calls": len(calls), "what it did": MetadataValue.md(shown)}
