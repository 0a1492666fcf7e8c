"""LangGraph's own suite for checkpointers, on every store."""

from __future__ import annotations

import asyncio

import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.conformance.capabilities import BASE_CAPABILITIES, EXTENDED_CAPABILITIES
from langgraph.checkpoint.conformance.report import ProgressCallbacks

from surefoot.langgraph import Saver


class Blocking(Saver):
    """The suite calls async methods only; here each of them is the blocking one."""

    async def aget_tuple(self, config):
        return self.get_tuple(config)

    async def alist(self, config, **options):
        for found in self.list(config, **options):
            yield found

    async def aput(self, *args):
        return self.put(*args)

    async def aput_writes(self, *args, **options):
        return self.put_writes(*args, **options)

    async def adelete_thread(self, *args):
        return self.delete_thread(*args)

    async def adelete_for_runs(self, *args):
        return self.delete_for_runs(*args)

    async def acopy_thread(self, *args):
        return self.copy_thread(*args)

    async def aprune(self, *args, **options):
        return self.prune(*args, **options)


@pytest.mark.parametrize("kind", [Saver, Blocking])
def test_every_base_and_extended_test_of_langgraph_passes(url, kind):
    """58 of 58 and 23 of 23: a graph cannot tell it from a saver of LangGraph's."""

    @checkpointer_test(name="surefoot")
    async def saver():
        yield kind(store=url)

    failed = []
    watch = ProgressCallbacks(on_test_result=lambda _, name, ok, why: ok or failed.append((name, why)))
    report = asyncio.run(validate(saver, progress=watch))

    assert failed == []
    passed = {name: result.tests_passed for name, result in report.results.items()}
    assert sum(passed[each.value] for each in BASE_CAPABILITIES) == 58
    assert sum(passed[each.value] for each in EXTENDED_CAPABILITIES) == 23


def test_no_method_of_a_checkpointer_is_left_as_it_was():
    """One that LangGraph adds raises NotImplementedError in the middle of a run."""
    left = [
        name
        for name in vars(BaseCheckpointSaver)
        if not name.startswith("_") and getattr(Saver, name) is getattr(BaseCheckpointSaver, name)
    ]

    assert sorted(left) == ["aget", "config_specs", "get", "serde", "with_allowlist"]
