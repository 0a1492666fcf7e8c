"""Go through a hundred pages in a plain loop, and save the whole state after each: no workflow, no decorator.

    python examples/checkpoint.py                     a hundred pages
    python examples/checkpoint.py --pages 100000      more of them: press Ctrl-C, or kill -9 it
    python examples/checkpoint.py --pages 100000      run it again: it goes on with the page it was at

The generations are plain files here; look with `jq .state checkpoint-files/pages/*.json`.
"""

from __future__ import annotations

import argparse

import surefoot as sf

ckpt = sf.Checkpoint("pages", schema=2, store="file:checkpoint-files")


@ckpt.migration(1)  # states of schema 1 were a bare number
def _(state: int) -> dict[str, int]:
    return {"page": state, "words": 0}


def main() -> None:
    parser = argparse.ArgumentParser(description="Read pages; kill it and run it again.")
    parser.add_argument("--pages", type=int, default=100)
    pages: int = parser.parse_args().pages

    state = ckpt.load() or {"page": 0, "words": 0}
    while state["page"] < pages:
        state["page"] += 1
        state["words"] += len(f"what page {state['page']} says".split())
        ckpt.save(state)
        print(f"page {state['page']}", flush=True)
    print(f"{state['words']} words on {state['page']} pages")


if __name__ == "__main__":
    main()
