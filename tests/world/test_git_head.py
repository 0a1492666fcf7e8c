"""Git's HEAD, read from its files: as git itself would say, without git."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from surefoot import witness
from surefoot.core.entry import ABSENT
from surefoot.core.expectation import Unseen

ONE, TWO = "1" * 40, "2" * 40
SHA256 = "3" * 64


@pytest.fixture
def repo():
    git = Path("repo/.git")
    (git / "refs/heads/feature").mkdir(parents=True)
    (git / "objects").mkdir()
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    (git / "refs/heads/main").write_text(f"{ONE}\n")
    return git


def head(path="repo"):
    return witness.git_head(path).value()


def why(path="repo"):
    seen = witness.observe_all([witness.git_head(path, name="head")])["head"]
    assert isinstance(seen, Unseen), seen
    return seen.why


def test_part_is_named_after_the_repository_and_its_hash_is_the_commit(repo):
    assert witness.git_head("./repo").fingerprint() == {"git:repo:HEAD": ONE}
    assert witness.git_head("repo").name == "git_head(repo)"
    assert witness.git_head().name == "git_head(.)"


def test_loose_branch_wins_over_packed(repo):
    """A new commit is written loose; the packed one is older."""
    (repo / "packed-refs").write_text(f"{TWO} refs/heads/main\n")
    assert head() == ONE


def test_packed_branch_is_found(repo):
    (repo / "refs/heads/main").unlink()
    (repo / "packed-refs").write_text(
        f"# pack-refs with: peeled fully-peeled sorted \n{TWO} refs/heads/mainly\n{ONE} refs/heads/main\n^{TWO}\n"
    )
    assert head() == ONE


def test_branch_in_folders_and_sha256_repositories(repo):
    (repo / "HEAD").write_text("ref: refs/heads/feature/x\n")
    (repo / "refs/heads/feature/x").write_text(f"{SHA256}\n")
    assert head() == SHA256


def test_branch_that_is_a_folder_has_no_commit(repo):
    (repo / "HEAD").write_text("ref: refs/heads/feature\n")
    assert witness.git_head("repo").fingerprint() == {"git:repo:HEAD": ABSENT}
    assert head() is None


def test_linked_worktree_has_its_own_head_and_the_branches_of_the_repository(repo):
    own = repo / "worktrees/wt"
    own.mkdir(parents=True)
    (own / "HEAD").write_text("ref: refs/heads/side\n")
    (own / "commondir").write_text("../..\n")
    (repo / "refs/heads/side").write_text(f"{TWO}\n")
    Path("wt").mkdir()
    Path("wt/.git").write_text(f"gitdir: {own.resolve()}\n")
    Path("wt2").mkdir()
    Path("wt2/.git").write_text("gitdir: ../repo/.git/worktrees/wt\n")

    assert [head("wt"), head("wt2"), head("repo")] == [TWO, TWO, ONE]


def test_bare_repository(repo):
    shutil.move("repo/.git", "bare.git")
    assert head("bare.git") == ONE


@pytest.mark.parametrize(
    "text",
    ["", "nonsense", "ref: refs/heads/../../../secret", "ref: /etc/passwd", "ref: refs/heads/a\\b", "ref: ", ONE[:-1],
     f"{ONE} {TWO}", "ref: refs/heads/.hidden", "ref: refs//x", "x" * 5000],
)  # fmt: skip
def test_head_that_makes_no_sense_is_not_observable(repo, text):
    """Its text becomes a path: it is checked like anybody's."""
    Path("secret").write_text(TWO)
    (repo / "HEAD").write_text(text)
    seen = witness.observe_all([witness.git_head("repo")])["git_head(repo)"]
    assert isinstance(seen, Unseen)


def test_emptied_branch_is_damage_not_a_branch_without_a_commit(repo):
    """A power cut leaves such files; git refuses them too."""
    (repo / "refs/heads/main").write_text("")
    assert "damaged" in why()


def test_branches_that_name_each_other_end(repo):
    (repo / "refs/heads/main").write_text("ref: refs/heads/other\n")
    (repo / "refs/heads/other").write_text("ref: refs/heads/main\n")
    assert "names another" in why()


def test_reftable_is_said_so_with_a_way_out(repo):
    (repo / "HEAD").write_text("ref: refs/heads/.invalid\n")
    assert "observe()" in why()


def test_no_repository_is_not_observable():
    """Nor is it looked for in the folders above: that might be another one."""
    Path("sub").mkdir()
    assert "no git repository in sub" in why("sub")
    assert "no git repository in nowhere" in why("nowhere")


@pytest.mark.processes
def test_real_git_agrees(tmp_path, monkeypatch):
    """Where git is installed, it is asked; the other tests are enough where it is not."""
    if shutil.which("git") is None:
        return
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)

    def git(*arguments, cwd="real"):
        return subprocess.run(
            ["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments],
            cwd=cwd, check=True, capture_output=True, text=True,
            env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
        ).stdout.strip()  # fmt: skip

    Path("real").mkdir()
    git("init", "-q")
    assert head("real") is None
    git("commit", "-q", "--allow-empty", "-m", "one")
    assert head("real") == git("rev-parse", "HEAD")
    git("pack-refs", "--all")
    assert head("real") == git("rev-parse", "HEAD")
    git("worktree", "add", "-q", "-b", "side", "../linked")
    git("commit", "-q", "--allow-empty", "-m", "two", cwd="linked")
    assert head("linked") == git("rev-parse", "HEAD", cwd="linked") != head("real")
    git("checkout", "-q", "--detach", "side")
    assert head("real") == git("rev-parse", "HEAD") == head("linked")
