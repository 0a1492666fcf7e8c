"""Read a thousand documents, twenty at a time, and keep the good ones when some are broken.

    python examples/documents.py                       1,000 documents, about two seconds
    python examples/documents.py --documents 5000      more of them: press Ctrl-C, or kill -9 it
    python examples/documents.py --documents 5000      run it again: it goes on where it was

The other examples block; this one is `async`. The words are the same: `import surefoot.aio as sf`.
`on_error="collect"` lets one broken document be one broken document, not the end of the night.
"""

from __future__ import annotations

import argparse
import asyncio

import surefoot.aio as sf

SLOW_SECONDS = 0.02
TRACE = False


@sf.step
async def extract(name: str) -> dict[str, str | int]:
    """Stand-in for fetching a document and asking a model what it says. Every 97th cannot be read."""
    await asyncio.sleep(SLOW_SECONDS)
    if TRACE:
        print(f"read {name}", flush=True)
    number = int(name.removeprefix("document-"))
    if number % 97 == 0:
        raise ValueError(f"{name} is not a PDF")
    return {"name": name, "pages": number % 7 + 1}


@sf.workflow
async def digest(documents: int) -> dict[str, int]:
    """All documents, in branches named by their names; results come back in order."""
    names = [f"document-{n}" for n in range(1, documents + 1)]
    found = await sf.map(extract, names, key=str, concurrency=20, on_error="collect")
    return {"read": len(found.ok), "unreadable": len(found.failed)}


async def main() -> None:
    global TRACE  # noqa: PLW0603 - whether to print is no argument of the workflow
    parser = argparse.ArgumentParser(description="Read many documents; kill it and run it again.")
    parser.add_argument("--id", default=None, help="the run's id: the same id is the same run")
    parser.add_argument("--documents", type=int, default=1000)
    parser.add_argument("--trace", action="store_true", help="print a line for every document really read")
    options = parser.parse_args()
    TRACE = options.trace

    run_id = options.id or f"documents-{options.documents}"
    counts = await digest.run(run_id, options.documents)
    print(f"run {run_id}: {counts['read']} documents read, {counts['unreadable']} unreadable")


if __name__ == "__main__":
    asyncio.run(main())
