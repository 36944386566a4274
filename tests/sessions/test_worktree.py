"""``session_path``: the main worktree around a directory, whatever git has left there (REC-04)."""

import os
import subprocess
from pathlib import Path

import pytest

from localagent.sessions.worktree import main_worktree


def test_without_git_it_is_the_directory_itself(tmp_path: Path) -> None:
    assert main_worktree(str(tmp_path)) == str(tmp_path)
    assert main_worktree("/") == "/"


def test_inside_a_main_worktree(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "a" / "b").mkdir(parents=True)
    assert main_worktree(str(tmp_path / "a" / "b")) == str(tmp_path)


def test_a_linked_worktree_as_git_makes_it(tmp_path: Path) -> None:
    main, linked = tmp_path / "main", tmp_path / "linked"
    git = ["git", "-c", "user.name=n", "-c", "user.email=e@example.org", "-C", str(main)]
    try:
        main.mkdir()
        subprocess.run([*git, "init", "-q"], check=True)
    except FileNotFoundError:
        pytest.skip("no git here")
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "m"], check=True)
    subprocess.run([*git, "worktree", "add", "-q", str(linked)], check=True)
    assert main_worktree(str(linked)) == str(main)


def test_a_submodule_is_a_main_worktree(tmp_path: Path) -> None:
    (tmp_path / ".git" / "modules" / "m").mkdir(parents=True)
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / ".git").write_text("gitdir: ../.git/modules/m\n")
    assert main_worktree(str(tmp_path / "m")) == str(tmp_path / "m")


def test_a_worktree_of_a_bare_repository_has_no_main_one(tmp_path: Path) -> None:
    bare, linked = tmp_path / "bare", tmp_path / "linked"
    (bare / "worktrees" / "l").mkdir(parents=True)
    (bare / "worktrees" / "l" / "commondir").write_text("../..\n")
    linked.mkdir()
    (linked / ".git").write_text(f"gitdir: {bare}/worktrees/l\n")
    assert main_worktree(str(linked)) == str(linked)


@pytest.mark.parametrize("content", [b"", b"garbage", b"gitdir: \x00", b"gitdir: /nowhere", b"\xff" * 5_000])
def test_a_strange_git_file_never_matters(tmp_path: Path, content: bytes) -> None:
    (tmp_path / ".git").write_bytes(content)
    assert main_worktree(str(tmp_path)) == str(tmp_path)


def test_a_commondir_that_leads_nowhere(tmp_path: Path) -> None:
    (tmp_path / "g").mkdir()
    (tmp_path / "g" / "commondir").write_text("../gone\n")
    (tmp_path / ".git").write_text("gitdir: g\n")
    assert main_worktree(str(tmp_path)) == str(tmp_path)


def test_a_fifo_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".git")
    (tmp_path / "a").mkdir()
    os.mkfifo(tmp_path / "commondir")
    (tmp_path / "a" / ".git").write_text("gitdir: ..\n")
    assert main_worktree(str(tmp_path / "a")) == str(tmp_path / "a")
    assert main_worktree(str(tmp_path)) == str(tmp_path)
