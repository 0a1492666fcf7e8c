"""The current commit of a git repository, read from its files: git itself is not needed and no code of it runs.

HEAD names a branch, and the branch's commit is in a file of its own or in `packed-refs`; in a linked worktree HEAD
is its own and the branches are those of the main repository.
"""

from __future__ import annotations

import os
import re
import stat
from os import PathLike
from typing import Final

from surefoot.core.entry import ABSENT
from surefoot.world.base import Look, NotObservable, Pulse, Ready, Witness
from surefoot.world.paths import as_written, shown

_COMMIT: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_REF: Final = re.compile(r"refs/[^\0-\x20\x7f~^:?*\[\\]+")
_OWN: Final = ("refs/bisect/", "refs/worktree/", "refs/rewritten/")
"""Refs that every worktree has for itself."""
_SMALL: Final = 4096
_PACKED: Final = 256 * 1024 * 1024
_CHAIN: Final = 5


def git_head(repo: str | PathLike[str] = ".", *, name: str | None = None) -> Witness:
    """The commit that HEAD of the repository in this folder stands for. Its value is the commit's id.

    A repository without a commit has none: absent, and None. Changes that are not committed are a matter of `files()`.
    """
    folder = as_written(repo)
    told = shown(folder)

    def look(_: Pulse) -> Look:
        commit = head(folder)
        return Look({f"git:{told}:HEAD": commit or ABSENT}, commit)

    return Ready(name, f"git_head({told})", look, look="git_head", repo=told)


def head(repo: str) -> str | None:
    folder = _git_folder(repo)
    common = _common_folder(folder)
    text = _line(f"{folder}/HEAD")
    for _ in range(_CHAIN):
        if text is None or _COMMIT.fullmatch(text):
            return text
        ref = _ref_in(text, folder)
        home = folder if ref.startswith(_OWN) else common
        text = _line(f"{home}/{ref}") or _packed(f"{common}/packed-refs", ref)
    raise NotObservable(f"{shown(folder)}/HEAD: one branch names another more than {_CHAIN} times")


def _ref_in(text: str, folder: str) -> str:
    ref = text.removeprefix("ref:").strip()
    if ref == "refs/heads/.invalid":
        raise NotObservable(
            f"{shown(folder)} keeps its branches in a reftable, which is not read here. Watch it with observe() and "
            "`git rev-parse HEAD`"
        )
    # The name becomes a path.
    if (
        not text.startswith("ref:")
        or not _REF.fullmatch(ref)
        or any(piece[:1] in ("", ".") for piece in ref.split("/"))
    ):
        raise NotObservable(f"{shown(folder)}/HEAD does not name a commit or a branch")
    return ref


def _git_folder(repo: str) -> str:
    place = f"{repo}/.git"
    if os.path.isdir(place):
        folder = place
    elif os.path.isfile(place):
        text = _line(place) or ""
        if not text.startswith("gitdir: "):
            raise NotObservable(f"{shown(place)} does not say where the repository is")
        folder = os.path.join(repo, text.removeprefix("gitdir: "))
    else:
        folder = repo  # perhaps a bare one
    if not os.path.isfile(f"{folder}/HEAD") or not os.path.isdir(f"{_common_folder(folder)}/objects"):
        raise NotObservable(f"there is no git repository in {shown(repo)}; name its top folder")
    return folder


def _common_folder(folder: str) -> str:
    text = _line(f"{folder}/commondir")
    return os.path.join(folder, text) if text else folder


def _line(path: str) -> str | None:
    """The first line of a small file; None if there is no such file."""
    text = _read(path, _SMALL)
    if text is None:
        return None
    line = text.split("\n", 1)[0].strip()
    if not line:
        raise NotObservable(f"{shown(path)} is empty: the repository is damaged")
    return line


def _packed(path: str, ref: str) -> str | None:
    for line in (_read(path, _PACKED) or "").splitlines():
        commit, _, name = line.partition(" ")
        if name == ref and _COMMIT.fullmatch(commit):
            return commit
    return None


def _read(path: str, limit: int) -> str | None:
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return None  # a folder: `refs/heads/a` is one where there is a branch `a/b`
        with open(path, "rb") as opened:
            raw = opened.read(limit + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    if len(raw) > limit:
        raise NotObservable(f"{shown(path)} is larger than {limit} bytes")
    return os.fsdecode(raw)
