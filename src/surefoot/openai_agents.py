"""The OpenAI Agents SDK: `from surefoot.openai_agents import durable`, and `Runner.run(durable(agent), ...)` in a workflow."""

from surefoot.adapters.openai_agents.agents import durable

__all__ = ["durable"]
