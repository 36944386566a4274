"""Every step that changes the disk, by name: the fault points of this room.

All writing, syncing, renaming and removing of the store goes through these functions, each call naming its step.
``watch`` is told before and after; it is a constant of the running program, and tests replace it to kill the process
or to fail a step with an OSError. One table, then, for kill tests, fault tests and docs alike.
"""

import errno
import fcntl
import os
import stat
import sys
from collections.abc import Callable
from enum import Enum, unique


@unique
class Step(Enum):
    """The durable steps."""

    MAKE_DIRECTORY = "make a directory of the root"
    LEASE_CREATE = "create a lease file"
    LEASE_WRITE = "write a lease file"
    LEASE_RENEW = "set the mtime of a lease file"
    LEASE_REMOVE = "remove an own lease file"
    LEASE_RECOVER = "remove a stale lease file"
    REPLACE_CREATE = "create the temporary file"
    REPLACE_WRITE = "write the temporary file"
    REPLACE_SYNC = "sync the temporary file"
    REPLACE_RENAME = "rename the temporary file over the old one"
    REPLACE_SYNC_DIRECTORY = "sync the directory after the rename"
    SESSION_CREATE = "create a session file"
    SESSION_WRITE = "write a batch"
    SESSION_SYNC = "sync a batch"
    SESSION_SYNC_DIRECTORY = "sync the directory of a new session file"
    SESSION_STAMP = "set the mtime after a sync"
    SESSION_TRUNCATE = "roll back: cut the file to its old length"
    SESSION_SYNC_BACK = "roll back: sync"
    SESSION_REMOVE = "roll back: remove the file this append created"


def _unwatched(_step: Step, _done: bool) -> None:
    """Nobody watches."""


watch: Callable[[Step, bool], None] = _unwatched
"""Called with False before a step and with True after it."""


def create(step: Step, name: str, directory: int) -> int:
    """Create ``name``, which must not exist, and open it for reading and appending; 0600 whatever the umask (ROOT-07).

    Close-on-exec (PEP 446), no link followed (LEASE-03).
    """
    watch(step, False)
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_APPEND
    descriptor = os.open(name, flags, 0o600, dir_fd=directory)
    try:
        os.fchmod(descriptor, 0o600)
    except OSError:
        os.close(descriptor)
        raise
    watch(step, True)
    return descriptor


def write(step: Step, descriptor: int, data: bytes) -> None:
    """Write all of ``data``."""
    watch(step, False)
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
    watch(step, True)


def sync(step: Step, descriptor: int) -> None:
    """Bring the bytes of a file, and what is needed to read them back, to the disk itself (REC-30)."""
    watch(step, False)
    _flush(descriptor)
    watch(step, True)


def sync_directory(step: Step, directory: int) -> None:
    """Bring the entries of a directory to the disk."""
    watch(step, False)
    try:
        os.fsync(directory)
    except OSError as fault:
        if fault.errno != errno.EINVAL:  # some file systems sync directories by themselves and say so like this
            raise
    watch(step, True)


def truncate(step: Step, descriptor: int, length: int) -> None:
    """Cut a file to ``length``."""
    watch(step, False)
    os.ftruncate(descriptor, length)
    watch(step, True)


def rename(step: Step, old: str, new: str, directory: int) -> None:
    """Rename within a directory, replacing ``new``."""
    watch(step, False)
    os.rename(old, new, src_dir_fd=directory, dst_dir_fd=directory)
    watch(step, True)


def remove(step: Step, name: str, directory: int) -> None:
    """Unlink a file."""
    watch(step, False)
    os.unlink(name, dir_fd=directory)
    watch(step, True)


def touch(step: Step, descriptor: int, mtime_ns: int) -> None:
    """Set the times of an open file."""
    watch(step, False)
    os.utime(descriptor, ns=(mtime_ns, mtime_ns))
    watch(step, True)


def make_directory(step: Step, name: str, directory: int) -> bool:
    """Create a directory, 0700 whatever the umask (ROOT-07), and sync the one it stands in. False if it exists."""
    watch(step, False)
    try:
        os.mkdir(name, 0o700, dir_fd=directory)
    except FileExistsError:
        return False
    found = os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode
    if stat.S_IMODE(found) & 0o700 != 0o700:  # a umask that takes from the owner; mkdir alone cannot get past it
        os.chmod(name, 0o700, dir_fd=directory)
    sync_directory(step, directory)
    watch(step, True)
    return True


if sys.platform == "darwin":

    def _flush(descriptor: int) -> None:
        """fsync of macOS leaves data in the drive's cache; F_FULLFSYNC does not, where the file system knows it."""
        try:
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
        except OSError:
            os.fsync(descriptor)

else:

    def _flush(descriptor: int) -> None:
        os.fdatasync(descriptor)
