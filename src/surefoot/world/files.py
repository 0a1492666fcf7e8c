"""Files, by content.

`file()` says of a missing file that it is absent; `files()` does not list it. Links are followed, and where they lead
is part of what is seen. A folder is no file. A surefoot store is never looked at as a file: it changes with every entry
of the run that would be watching it.
"""

from __future__ import annotations

from os import PathLike

from surefoot.core.entry import ABSENT
from surefoot.errors import UsageError
from surefoot.world.base import Look, NotObservable, Pulse, Specified, Witness
from surefoot.world.globs import expand, has_magic
from surefoot.world.hashes import DIRECTORY, of_file, of_files
from surefoot.world.paths import as_written, file_part, is_temporary, shown
from surefoot.world.stores import refuse_store, refuse_stores


class FileWitness(Specified):
    def __init__(self, path: str, name: str | None) -> None:
        self.path = path
        super().__init__(name, f"file({shown(path)})", look="file", path=shown(path))

    def look(self, pulse: Pulse) -> Look:
        refuse_store(self.path)
        seen = of_file(self.path, pulse)
        if seen == DIRECTORY:
            raise NotObservable(
                f"{shown(self.path)} is a directory; watch what is in it with files({shown(self.path)}/**)"
            )
        return Look({file_part(self.path): seen}, None if seen == ABSENT else seen)


class FilesWitness(Specified):
    def __init__(self, pattern: str, name: str | None) -> None:
        self.pattern = pattern
        super().__init__(name, f"files({shown(pattern)})", look="files", glob=shown(pattern))

    def look(self, pulse: Pulse) -> Look:
        paths = [path for path in expand(self.pattern, pulse) if not is_temporary(path)]
        refuse_stores(paths)
        seen = of_files(paths, pulse)
        if not has_magic(self.pattern) and DIRECTORY in seen.values():
            raise NotObservable(f"{shown(self.pattern)} is a directory; for all files in it write {self.pattern}/**")
        files = {path: text for path, text in seen.items() if text not in (ABSENT, DIRECTORY)}
        return Look(
            {file_part(path): files[path] for path in sorted(files)},
            {shown(path): files[path] for path in sorted(files)},
        )


def file(path: str | PathLike[str], *, name: str | None = None) -> Witness:
    """One file: its content, whether it is there, where it leads if it is a link. Its value is the hash, or None."""
    return FileWitness(as_written(path), name)


def files(glob: str | PathLike[str], *, name: str | None = None) -> Witness:
    """All files that match, each a part of its own. The value is a dict path -> hash.

    `*` does not match names that start with a dot; `**` stands for any number of folders.
    """
    pattern = as_written(glob)
    if str(glob).endswith("/") or pattern == ".":
        raise UsageError(f"files({glob!s:.200}): this names a folder. For all files in it write {pattern}/**")
    return FilesWitness(pattern, name)
