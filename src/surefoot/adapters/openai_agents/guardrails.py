"""Guardrails: steps, so that a verdict stays what it was, whatever a model would say the second time.

As shipped, an input guardrail runs beside the first model call, and a tool may have run before it has spoken. After a
crash the recorded verdict would come first, and an effect on record would no longer be asked for. So inside of a run
input guardrails are heard before the agent begins.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from typing import Any

from agents import GuardrailFunctionOutput, InputGuardrail, OutputGuardrail, ToolGuardrailFunctionOutput

import surefoot.aio as sf
from surefoot.adapters.openai_agents import loops, tracing
from surefoot.adapters.records import Form, jsonable, result_of
from surefoot.engine.seams import in_run

CONVERSATION = Form(Any)


class DurableInputGuardrail(InputGuardrail[Any]):
    @property
    def run_in_parallel(self) -> bool:  # type: ignore[override]
        return bool(self.__dict__["run_in_parallel"]) and not in_run()


def recorded_input(guardrail: InputGuardrail[Any]) -> InputGuardrail[Any]:
    made = copy.copy(guardrail)
    made.__class__ = DurableInputGuardrail
    made.__dict__["guardrail_function"] = _verdict(guardrail, CONVERSATION.plain)
    made.name = guardrail.get_name()
    return made


def recorded_output(guardrail: OutputGuardrail[Any]) -> OutputGuardrail[Any]:
    made = copy.copy(guardrail)
    made.guardrail_function = _verdict(guardrail, jsonable)
    made.name = guardrail.get_name()
    return made


def _verdict(guardrail: Any, shown: Callable[[Any], Any]) -> Callable[..., Any]:
    fn, name = guardrail.guardrail_function, guardrail.get_name()

    @sf.step(name=f"guardrail_{name}", ignore="judge", on_change="keep")
    async def heard(given: Any, judge: Callable[[], Any]) -> Any:
        return await judge()

    async def guarded(context: Any, agent: Any, given: Any) -> GuardrailFunctionOutput:
        async def judged() -> Any:
            found = fn(context, agent, given)
            return await found if inspect.isawaitable(found) else found

        if not in_run():
            return await judged()  # type: ignore[no-any-return]

        loop = loops.of(context, agent.name)
        shared = loop.turn.shared

        async def judge() -> Any:
            with shared.watched(context.context, is_given=True) as watch:
                output = await judged()
                return watch.packed([output.tripwire_triggered, result_of(f"guardrail {name}", output.output_info)])

        with loop.entered(agent.name):
            recorded = await heard(shown(given), judge=judge)
        tracing.answered()
        triggered, info = shared.delivered(context.context, recorded, f"guardrail {name}")
        return GuardrailFunctionOutput(output_info=info, tripwire_triggered=triggered)

    return guarded


def recorded_of_tool(guardrail: Any, call: Callable[[Any, Any], Any]) -> Any:
    """A guardrail of a tool, before or after it. `call` runs it under the id of the tool call."""
    made = copy.copy(guardrail)
    fn, name = guardrail.guardrail_function, guardrail.get_name()

    @sf.step(name=f"guardrail_{name}", ignore="judge")
    async def heard(judge: Callable[[], Any]) -> Any:
        return await judge()

    async def guarded(data: Any) -> ToolGuardrailFunctionOutput:
        async def judged() -> Any:
            found = fn(data)
            return await found if inspect.isawaitable(found) else found

        if not in_run():
            return await judged()  # type: ignore[no-any-return]

        async def judge() -> Any:
            output = await judged()
            return [dict(output.behavior), result_of(f"guardrail {name}", output.output_info)]

        behavior, info = await call(data.context, lambda: heard(judge=judge))
        return ToolGuardrailFunctionOutput(output_info=info, behavior=behavior)

    made.guardrail_function = guarded
    made.name = name
    return made
