"""What the system says of a child and of the processes around it. Counts are None, or coarse, where it says less."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

PROC: Final = Path("/proc")


@dataclass(frozen=True, slots=True)
class Process:
    """A living process: its number, its parent's, its group's and its session's."""

    pid: int
    parent: int
    group: int
    session: int


class Started(Protocol):
    """A child of ours: what is asked of ``subprocess.Popen``."""

    pid: int

    def wait(self) -> int:
        """Wait for its end and reap it; its status, negative for a signal."""


Start = Callable[[Sequence[str], tuple[int, int, int], str, Mapping[str, str]], Started]
"""Starts a command as leader of a session: its words, standard streams, directory, environment. Raises ``OSError``."""


def start(argv: Sequence[str], streams: tuple[int, int, int], cwd: str, environ: Mapping[str, str]) -> Started:
    """Start a program."""
    stdin, stdout, stderr = streams
    return subprocess.Popen(
        argv, stdin=stdin, stdout=stdout, stderr=stderr, cwd=cwd, env=environ, start_new_session=True
    )


def wait(process: Started) -> int:
    """Wait for the end of a child, if possible without reaping it; its status, negative for a signal."""
    waitid = getattr(os, "waitid", None)
    if waitid is None:
        return process.wait()
    found = waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    return int(found.si_status) if found.si_code == os.CLD_EXITED else -int(found.si_status)


def living() -> Iterator[Process] | None:
    """All processes that have not ended; None where they cannot be listed."""
    return _living() if (PROC / "self/stat").exists() else None


def _living() -> Iterator[Process]:
    for entry in os.listdir(PROC):
        if not entry.isdigit():
            continue
        try:
            text = (PROC / entry / "stat").read_bytes()
        except OSError:  # it ended meanwhile
            continue
        state, parent, group, session = text.rpartition(b")")[2].split()[:4]  # its name may hold anything
        if state not in b"ZXx":
            yield Process(int(entry), int(parent), int(group), int(session))


def descendants(pid: int) -> int | None:
    """How many living processes stand below one."""
    found = living()
    if found is None:
        return None
    below: dict[int, list[int]] = {}
    for each in found:
        below.setdefault(each.parent, []).append(each.pid)
    count, front = 0, [pid]
    while front:
        children = below.get(front.pop(), [])
        count += len(children)
        front += children
    return count


def descriptors(pid: int) -> int | None:
    """How many descriptors a process has open."""
    try:
        return len(os.listdir(PROC / str(pid) / "fd"))
    except OSError:
        return None


def group(leader: int) -> int:
    """How many living processes belong to the group or session of a leader that has ended; elsewhere 1 for any."""
    found = living()
    if found is not None:
        return sum(leader in (each.group, each.session) and each.pid != leader for each in found)
    try:
        os.killpg(leader, 0)
    except (ProcessLookupError, PermissionError):  # none, or the zombie of the leader alone
        return 0
    return 1


def kill_group(leader: int) -> None:
    """Kill the group and the session of a leader that has ended but was not reaped."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)
    for each in living() or ():
        if each.session == leader and each.pid != leader:
            with contextlib.suppress(ProcessLookupError):
                os.kill(each.pid, signal.SIGKILL)
