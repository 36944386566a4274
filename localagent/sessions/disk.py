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
from collections.abc import Callable, Iterable
from enum import Enum, unique


@unique
class Step(Enum):
    """The durable steps: what is done, and what stands on the disk if the process dies there, before or after it."""

    MAKE_DIRECTORY = "make a directory of the root", "the root with fewer directories; the next start makes the rest"
    LEASE_CREATE = "create a lease file", "an empty lease, taken for one in the making until it is 5 s old"
    LEASE_WRITE = "write a lease file", "an empty lease, or one whose lock the kernel has freed: stale at once"
    LEASE_RENEW = "set the mtime of a lease file", "a lease whose lock the kernel has freed: stale at once"
    LEASE_REMOVE = "remove an own lease file", "a lease whose lock the kernel has freed: stale at once; or none"
    LEASE_RECOVER = "remove a stale lease file", "perhaps the stale lease, and its guard, which is stale as well"
    REPLACE_CREATE = "create the temporary file", "the old file; perhaps an empty temporary one"
    REPLACE_WRITE = "write the temporary file", "the old file, and a temporary one"
    REPLACE_SYNC = "sync the temporary file", "the old file, and a temporary one"
    REPLACE_RENAME = "rename the temporary file over the old one", "the old file and a temporary one, or the new file"
    REPLACE_SYNC_DIRECTORY = "sync the directory after the rename", "the new file, or after a power cut the old one"
    SESSION_CREATE = "create a session file", "no session, or an empty one"
    SESSION_WRITE = "write a batch", "the old records, or also the batch, or a torn tail: refused, and repaired offline"
    SESSION_SYNC = "sync a batch", "the batch, not acknowledged; after a power cut all of it, a part, or nothing"
    SESSION_SYNC_DIRECTORY = "sync the directory of a new session file", "the session; after a power cut perhaps none"
    SESSION_STAMP = "set the mtime after a sync", "the batch, durable and not yet acknowledged"
    SESSION_TRUNCATE = "roll back: cut the file to its old length", "what the failed write left, or the old records"
    SESSION_SYNC_BACK = "roll back: sync", "the old records; after a power cut perhaps what the failed write left"
    SESSION_REMOVE = "roll back: remove the file this append created", "an empty session, or none"
    SALVAGE_DIRECTORY = "repair: make a directory below salvage/", "the damaged session; perhaps an empty directory"
    SALVAGE_CREATE = "repair: create the temporary copy", "the damaged session; perhaps an empty temporary copy"
    SALVAGE_WRITE = "repair: copy the damaged session", "the damaged session; a temporary copy, whole or not"
    SALVAGE_SYNC = "repair: sync the copy", "the damaged session and a temporary copy"
    SALVAGE_RENAME = "repair: give the verified copy its number", "the damaged session and a copy, numbered or not"
    SALVAGE_SYNC_DIRECTORY = "repair: sync the directories of the copy", "the damaged session and its numbered copy"
    REPAIR_CLEAR = "repair: remove the temporary file of a repair that was cut off", "as before that file was made"
    REPAIR_CREATE = "repair: create the new session file", "the damaged session and its copy; an empty temporary file"
    REPAIR_WRITE = "repair: write the new session file", "the damaged session and its copy; a temporary file"
    REPAIR_SYNC = "repair: sync the new session file", "the damaged session and its copy; a temporary file"
    REPAIR_RENAME = "repair: rename it over the damaged session", "the damaged or the repaired session; the copy"
    REPAIR_SYNC_DIRECTORY = "repair: sync the directory", "the repaired session, or after a power cut the damaged one"
    COMPACT_CLEAR = "compaction: remove a temporary file of one that was cut off", "as before that file was made"
    COMPACT_DIRECTORY = "compaction: make a directory below .history/", "the old session; perhaps an empty directory"
    COMPACT_KEEP_CREATE = "compaction: create the temporary copy", "the old session; perhaps an empty temporary copy"
    COMPACT_KEEP_WRITE = "compaction: copy the old session", "the old session; a temporary copy, whole or not"
    COMPACT_KEEP_SYNC = "compaction: sync the copy", "the old session and a temporary copy"
    COMPACT_KEEP_RENAME = "compaction: make the copy a generation", "the old session and a copy, numbered or not"
    COMPACT_KEEP_SYNC_DIRECTORY = "compaction: sync the directories of the copy", "the old session and its generation"
    COMPACT_CREATE = "compaction: create the new session file", "the old session and its generation; a temporary file"
    COMPACT_WRITE = "compaction: write the new session file", "the old session and its generation; a temporary file"
    COMPACT_SYNC = "compaction: sync the new session file", "the old session and its generation; a temporary file"
    COMPACT_RENAME = "compaction: rename it over the old session", "the old or the new session; the generation"
    COMPACT_SYNC_DIRECTORY = "compaction: sync the directory", "the new session, or after a power cut the old one"

    def __init__(self, what: str, leaves: str) -> None:
        self.what, self.leaves = what, leaves


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
    write_all(step, descriptor, (data,))


def write_all(step: Step, descriptor: int, pieces: Iterable[bytes]) -> None:
    """Write pieces one after the other, as one step. Raises what the source of them raises, too."""
    watch(step, False)
    for piece in pieces:
        rest = memoryview(piece)
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
