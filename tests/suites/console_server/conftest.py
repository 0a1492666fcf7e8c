"""The fixtures of `tests/console`: the same consoles, asked for more."""

from tests.console.conftest import ann, browse, console, consoles, stopped

__all__ = ["ann", "browse", "console", "consoles", "stopped"]
