"""``session_path`` of a record: the main git worktree around a directory. Read, never run (REC-04)."""

import os
import stat
from typing import Final

_GIT_FILE_BYTES: Final = 4096


def main_worktree(cwd: str) -> str:
    """Return the main worktree that ``cwd`` belongs to, else ``cwd``.

    Nobody depends on it, so any doubt means ``cwd``.
    """
    top = cwd
    while True:
        git = os.path.join(top, ".git")
        try:
            found = os.stat(git)
        except OSError:
            found = None
        if found is not None and stat.S_ISDIR(found.st_mode):
            return top
        if found is not None and stat.S_ISREG(found.st_mode):
            return _linked(top, git) or cwd
        if os.path.dirname(top) == top:
            return cwd
        top = os.path.dirname(top)


def _linked(top: str, git: str) -> str | None:
    """Follow a ``.git`` file: a linked worktree names the common directory, a submodule is a main worktree itself."""
    try:
        directory = os.path.join(top, _first_line(git).removeprefix("gitdir: "))
        common = os.path.join(directory, "commondir")
        if not os.path.isfile(common):
            return top
        shared = os.path.realpath(os.path.join(directory, _first_line(common)), strict=True)
    except (OSError, ValueError):
        return None
    return os.path.dirname(shared) if os.path.basename(shared) == ".git" else None


def _first_line(path: str) -> str:
    with open(path, "rb") as file:
        return os.fsdecode(file.read(_GIT_FILE_BYTES).split(b"\n")[0])
