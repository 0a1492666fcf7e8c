"""What the adapter leans on in LangGraph that is not public: names in a config, and how nodes are kept.

They are looked for when this is imported. Where one is gone nothing is wrapped: half a guard would be none.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

from surefoot.adapters import versions

RANGES: Final[dict[str, versions.Range]] = {"langgraph": ("1.2.20", "1.4"), "langgraph-checkpoint": ("4.3", "5")}
_missing: list[str] = []


def _found(module: str, name: str) -> Any:
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError):
        _missing.append(f"{module}.{name}")
        return None


_CONSTANTS: Final = "langgraph._internal._constants"
TASK_ID: Final = _found(_CONSTANTS, "CONFIG_KEY_TASK_ID")
DURABILITY: Final = _found(_CONSTANTS, "CONFIG_KEY_DURABILITY")
CHECKPOINT_MAP: Final = _found(_CONSTANTS, "CONFIG_KEY_CHECKPOINT_MAP")
CHECKPOINT_NS: Final = _found(_CONSTANTS, "CONFIG_KEY_CHECKPOINT_NS")
CHECKPOINTER: Final = _found(_CONSTANTS, "CONFIG_KEY_CHECKPOINTER")
SCRATCHPAD: Final = _found(_CONSTANTS, "CONFIG_KEY_SCRATCHPAD")
INTERRUPT: Final = _found(_CONSTANTS, "INTERRUPT")
DEFAULT_BOUND: Final = _found("langgraph.pregel._read", "DEFAULT_BOUND")
PregelNode: Final = _found("langgraph.pregel._read", "PregelNode")
if PregelNode is not None and not hasattr(PregelNode, "copy"):
    _missing.append("PregelNode.copy")

versions.require_names("langgraph", RANGES, _missing)
