"""Pydantic AI: `from surefoot.pydantic_ai import Durable`, `Agent(..., capabilities=[Durable()])`, and `agent.run(...)` in a workflow."""

from surefoot.adapters.pydantic_ai.capability import Durable

__all__ = ["Durable"]
