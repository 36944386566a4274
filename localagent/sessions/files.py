"""Files and directories that the store trusts only after looking: opened by name in an open directory, then judged."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final, NamedTuple

from . import disk
from .clock import Clock
from .disk import Step
from .errors import Unsafe

_NO_SURPRISE: Final = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY  # no link, no waiting for a FIFO's other end

_EXHAUSTED: Final = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)  # what this process lacks says nothing about the file


class Identity(NamedTuple):
    """Which file it is, and whether it was touched: all that a change of content must change (HIST-45)."""

    device: int
    inode: int
    length: int
    mtime_ns: int
    ctime_ns: int

    @classmethod
    def of(cls, found: os.stat_result) -> "Identity":
        """Take the five out of what ``stat`` said."""
        return cls(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


@contextmanager
def opened(name: str, directory: int | None = None) -> Iterator[int]:
    """Open a directory, not a link to one. Raises OSError."""
    descriptor = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=directory)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def private_folder(step: Step, name: str, directory: int) -> Iterator[int]:
    """Make the directory ``name``, unless it is there, and open it. Raises OSError, or Unsafe if it is not private."""
    disk.make_directory(step, name, directory)
    with opened(name, directory) as descriptor:
        try:
            require_private(os.fstat(descriptor))
        except Unsafe as fault:
            raise Unsafe(f"{name}/: {fault}") from None
        yield descriptor


def require_private(found: os.stat_result) -> None:
    """Raise Unsafe unless the effective user owns it and nobody else has any permission (ROOT-05, REC-02)."""
    if found.st_uid != os.geteuid():
        raise Unsafe("another owner")
    if stat.S_IMODE(found.st_mode) & 0o077:
        raise Unsafe("permissions for group or others")


def require_trusted(found: os.stat_result) -> None:
    """Raise Unsafe unless it is a regular file with one link, and private (REC-02)."""
    if not stat.S_ISREG(found.st_mode):
        raise Unsafe("not a regular file")
    if found.st_nlink != 1:
        raise Unsafe("more than one link")
    require_private(found)


def status(name: str, directory: int) -> os.stat_result | None:
    """What stands under ``name``, a link itself included; None if nothing does."""
    try:
        return os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return None


def open_private(name: str, directory: int, flags: int = os.O_RDONLY) -> int:
    """Open a file as :func:`open_trusted` does; the descriptor alone."""
    return open_trusted(name, directory, flags)[0]


def open_trusted(name: str, directory: int, flags: int = os.O_RDONLY) -> tuple[int, os.stat_result]:
    """Open a file that passes REC-02: regular, one link, ours, closed to group and others, not reached by a link.

    Returns the descriptor and what ``fstat`` says of it. Raises FileNotFoundError when nothing stands there, OSError
    when this process or the system has no descriptor or memory left, and Unsafe for everything else.
    """
    try:
        descriptor = os.open(name, flags | _NO_SURPRISE, dir_fd=directory)
    except FileNotFoundError:
        raise
    except OSError as fault:
        if fault.errno in _EXHAUSTED:
            raise
        raise Unsafe(f"cannot be opened: {fault.strerror}") from None
    try:
        found = os.fstat(descriptor)
        require_trusted(found)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor, found


def replace(name: str, data: bytes, directory: int, clock: Clock) -> None:
    """Make ``data`` the whole content of ``name``: all of it or, whenever the power fails, the old file (ROOT-10)."""
    temporary = f".{name}.{os.getpid()}.{clock.wall()}.tmp"
    descriptor = disk.create(Step.REPLACE_CREATE, temporary, directory)
    try:
        try:
            disk.write(Step.REPLACE_WRITE, descriptor, data)
            disk.sync(Step.REPLACE_SYNC, descriptor)
        finally:
            os.close(descriptor)
        disk.rename(Step.REPLACE_RENAME, temporary, name, directory)
    except OSError:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=directory)
        raise
    disk.sync_directory(Step.REPLACE_SYNC_DIRECTORY, directory)
