"""surefoot: long-running agent workflows that survive crashes. Never silently twice, never silently wrong.

`import surefoot as sf` for blocking code, `import surefoot.aio as sf` for async code: the same words.

The names are in `face.py`, which loads the engine. It is imported with the first name that is asked for: a command that
only looks at a store does without it.
"""

from typing import TYPE_CHECKING, Any

from surefoot import errors

if TYPE_CHECKING:
    from surefoot.common_face import *  # noqa: F403 - for type checkers and editors
    from surefoot.errors import *  # noqa: F403 - the same
    from surefoot.face import *  # noqa: F403 - the same
    from surefoot.face import __all__ as __all__

__version__ = "0.1.0"


def _in_words(data: Any, store: str) -> str:
    from surefoot.view import words

    return words.told(data, store)


errors.in_words = _in_words


if not TYPE_CHECKING:  # A checker would take any name for one of ours.

    def __getattr__(name: str) -> Any:
        if name == "__all__" or not name.startswith("_"):
            from importlib import import_module

            face = import_module("surefoot.face")
            names = {each: getattr(face, each) for each in ("__all__", *face.__all__)}
            if name in names:
                globals().update(names)
                return names[name]
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__getattr__("__all__")})
