"""The OpenAI Agents SDK. Its loop is plain code and is replayed; model calls are steps, tools are steps or effects."""

from surefoot.adapters import versions

EXTRA = "openai-agents"
PACKAGES = {"openai-agents": ("0.24", "0.26")}
versions.require(EXTRA, PACKAGES)
