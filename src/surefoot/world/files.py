"""Files, by content.

`file()` reports a missing file as absent; `files()` does not list it. Links are followed, and their target
is part of the observation. A folder is no file. A surefoot store is never observed as a file: it changes with every
entry of the run that watches it.
"""

from __future__ import annotations

from os import PathLike

from surefoot.core.entry import ABSENT
from surefoot.errors import UsageError
from surefoot.world.base import Look, NotObservable, Pulse, Ready, Witness
from surefoot.world.globs import expand, has_magic
from surefoot.world.hashes import DIRECTORY, of_file, of_files
from surefoot.world.paths import as_written, file_part, is_temporary, shown
from surefoot.world.stores import refuse_store, refuse_stores


def file(path: str | PathLike[str], *, name: str | None = None) -> Witness:
    """One file: its content, whether it is there, where it leads if it is a link. Its value is the hash, or None."""
    written = as_written(path)
    told = shown(written)

    def look(pulse: Pulse) -> Look:
        refuse_store(written)
        seen = of_file(written, pulse)
        if seen == DIRECTORY:
            raise NotObservable(f"{told} is a directory; watch what is in it with files({told}/**)")
        return Look({file_part(written): seen}, None if seen == ABSENT else seen)

    return Ready(name, f"file({told})", look, look="file", path=told)


def files(glob: str | PathLike[str], *, name: str | None = None) -> Witness:
    """All files that match, each a part of its own. The value is a dict path -> hash.

    `*` does not match names that start with a dot; `**` stands for any number of folders.
    """
    pattern = as_written(glob)
    if str(glob).endswith("/") or pattern == ".":
        raise UsageError(f"files({glob!s:.200}): this names a folder. For all files in it write {pattern}/**")
    told = shown(pattern)

    def look(pulse: Pulse) -> Look:
        paths = [path for path in expand(pattern, pulse) if not is_temporary(path)]
        refuse_stores(paths)
        seen = of_files(paths, pulse)
        if not has_magic(pattern) and DIRECTORY in seen.values():
            raise NotObservable(f"{told} is a directory; for all files in it write {pattern}/**")
        there = [path for path in sorted(seen) if seen[path] not in (ABSENT, DIRECTORY)]
        return Look({file_part(path): seen[path] for path in there}, {shown(path): seen[path] for path in there})

    return Ready(name, f"files({told})", look, look="files", glob=told)
