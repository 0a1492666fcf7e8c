"""An asset that is resumed: six pages, a word of a person, one publication. What it executes is in the file `done`."""

import os
import sys
from pathlib import Path

import dagster as dg

import surefoot as sf
from surefoot.dagster import resume


def note(line: str) -> None:
    with Path("done").open("a") as file:
        file.write(f"{line}\n")


@sf.step
def page(number: int) -> int:
    note(f"page {number}")
    if os.environ.get("DIE_AT") == str(number):
        os._exit(9)
    return number


@sf.effect
def publish(total: int) -> str:
    note(f"publish {total}")
    return f"edition {total}"


@sf.workflow
def book(pages: int) -> str:
    total = sum(page(n) for n in range(pages))
    return publish(total) if sf.approve(f"publish {pages} pages?") else "kept back"


@dg.asset(partitions_def=dg.StaticPartitionsDefinition(["may", "june"]))
def edition(context: dg.AssetExecutionContext) -> str:
    return str(resume(context, book, 6, id=f"book-{context.partition_key}"))


def told(what: object) -> None:
    sys.stdout.write(f"{what}\n")


def main() -> int:
    with dg.DagsterInstance.get() as instance:
        done = dg.materialize([edition], instance=instance, partition_key="may", raise_on_error=False)
        for event in done.all_events:
            if event.is_step_failure:
                failure = event.step_failure_data.user_failure_data
                told({name: str(value.value) for name, value in failure.metadata.items()} if failure else event)
            if event.is_successful_output:
                told({name: str(value.value) for name, value in event.step_output_data.metadata.items()})
        return 0 if done.success else 1


if __name__ == "__main__":
    sys.exit(main())
