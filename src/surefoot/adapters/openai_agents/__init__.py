"""The OpenAI Agents SDK. Its loop is plain code and is replayed; model calls are steps, tools are steps or effects."""

from surefoot.adapters import extras

LEAST, BELOW = "0.24", "0.26"
extras.require("openai-agents", "openai-agents", least=LEAST, below=BELOW)
