"""Leases: lock files that say who may write, and that a crash cannot leave behind for good (LEASE).

A lease is a file ``.<target>.lock`` with the pid of its holder, as the published backend writes and judges it, and
beside that an exclusive ``flock`` on the same open file, which the kernel frees with the process (LEASE-03). The lock
on the file is the truth; the line ``kernel=flock`` says that it may be asked.

Two of us who find the same stale lease are kept apart by that lock as well: who would remove a lease locks the file he
judged first, and keeps it locked until the name is gone. The guard file of LEASE-06 keeps us apart from the others.
"""

import fcntl
import os
import re
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from enum import Enum, unique
from typing import Final

from . import disk, files
from .clock import CancelCheck, Clock, proceed
from .disk import Step
from .errors import Held, Unsafe

Place = Callable[[], AbstractContextManager[int]]
"""Opens the directory a lease stands in, and verifies it."""

_CONTENT_BYTES: Final = 4096
_BLANK_AGE_NS: Final = 5_000_000_000  # LEASE-05: how long a lease without a usable pid is taken for one being written
_WAIT_S: Final = 30.0  # LEASE-02
_RETRY_S: Final = 0.01
_KERNEL: Final = b"kernel=flock"
_pid_line = re.compile(rb"^pid=([0-9]{1,18})$", re.MULTILINE).search


@unique
class Standing(Enum):
    """What LEASE-05 makes of a lock file."""

    HELD = "held"
    STALE = "stale"
    UNSAFE = "unsafe"


def judge(name: str, directory: int, clock: Clock) -> tuple[Standing, str] | None:
    """Judge the lock file ``name`` by LEASE-05, for who only wants to know: its standing, and why; None without one.

    Nothing is changed, taken or kept. Where the kernel is asked, a shared lock is held for an instant.
    """
    try:
        with _look(name, directory, os.O_RDONLY) as found:
            if found is None:
                return None
            found.require_stale(clock, fcntl.LOCK_SH)
    except Held as fault:
        return Standing.HELD, str(fault)
    except Unsafe as fault:
        return Standing.UNSAFE, str(fault)
    return Standing.STALE, "its holder is gone"


class Lease:
    """A lease that is ours, until it is released or found to be lost. May be renewed and released by any thread."""

    def __init__(self, place: Place, name: str, descriptor: int, content: bytes) -> None:
        self._place, self._name, self._content = place, name, content
        self._descriptor: int | None = descriptor
        found = os.fstat(descriptor)
        self._file = (found.st_dev, found.st_ino)
        self._mutex = threading.Lock()
        self.held = True

    def renew(self, now_ns: int) -> bool:
        """Set the mtime to ``now_ns``, if the lease is still ours; otherwise it is lost, for good (LEASE-04).

        Returns whether it is held. A directory that cannot be looked into proves nothing: then nothing is renewed.
        """
        with self._mutex:
            if self.held and self._descriptor is not None:
                with suppress(OSError, Unsafe):
                    self.held = self._is_own()
                    if self.held:
                        disk.touch(Step.LEASE_RENEW, self._descriptor, now_ns)
            return self.held

    def stands_in(self, directory: int) -> bool:
        """Tell whether the lease is held and its file still stands in the open ``directory``; if not, it is lost."""
        with self._mutex:
            self.held = self.held and self._stands_in(directory)
            return self.held

    def release(self) -> None:
        """Remove the file if it is unchanged, then close it, which frees the kernel's lock (LEASE-07)."""
        with self._mutex:
            if self._descriptor is None:
                return
            self.held = False
            try:
                with suppress(OSError, Unsafe), self._place() as directory:
                    if self._stands_in(directory) and self._unchanged():
                        disk.remove(Step.LEASE_REMOVE, self._name, directory)
            finally:
                os.close(self._descriptor)
                self._descriptor = None

    def _is_own(self) -> bool:
        try:
            with self._place() as directory:
                return self._stands_in(directory) and self._unchanged()
        except (FileNotFoundError, NotADirectoryError):  # moved away, and the lease with it
            return False

    def _stands_in(self, directory: int) -> bool:
        found = files.status(self._name, directory)
        return found is not None and (found.st_dev, found.st_ino) == self._file

    def _unchanged(self) -> bool:
        assert self._descriptor is not None
        return os.pread(self._descriptor, _CONTENT_BYTES + 1, 0) == self._content


def take(place: Place, target: str, clock: Clock) -> Lease:
    """Take the lease on ``target``, once and without waiting, over a stale one if need be (LEASE-02, LEASE-06).

    Raises Held, Unsafe (a lock that nobody should touch), or OSError.
    """
    name = f".{target}.lock"
    with place() as directory:
        lease = _create(place, name, directory, clock)
        if lease is None:
            _remove_stale(place, name, directory, clock, guarded=True)
            lease = _create(place, name, directory, clock)
        if lease is None:
            raise Held(name)
        return lease


@contextmanager
def waiting(place: Place, target: str, clock: Clock, cancelled: CancelCheck) -> Iterator[None]:
    """Hold the lease on ``target``, waiting for it up to 30 s (LEASE-02). Raises as :func:`take`, and Cancelled."""
    deadline = clock.steady() + _WAIT_S
    while True:
        try:
            lease = take(place, target, clock)
            break
        except Held:
            if clock.steady() >= deadline:
                raise
        proceed(cancelled)
        clock.sleep(_RETRY_S)
    try:
        yield
    finally:
        lease.release()


def _create(place: Place, name: str, directory: int, clock: Clock) -> Lease | None:
    """Create a lease file, lock it, fill it (LEASE-03). None if there is one, or if ours was taken for a stale one."""
    try:
        descriptor = disk.create(Step.LEASE_CREATE, name, directory)
    except FileExistsError:
        return None
    lease = None
    try:
        locked = _lock(descriptor)
        # Refused by a lock on a file we have just made: we were held up for so long that somebody found the empty file
        # stale and is removing it. What we wrote now would only keep him from it.
        if locked is not False:
            content = _content(clock, locked is True)
            disk.write(Step.LEASE_WRITE, descriptor, content)
            written = Lease(place, name, descriptor, content)
            lease = written if written.stands_in(directory) else None
    except OSError:  # no space, most likely; nothing of ours shall look like a lease in the making
        with suppress(OSError):
            os.unlink(name, dir_fd=directory)
        raise
    finally:
        if lease is None:
            os.close(descriptor)
    return lease


def _content(clock: Clock, locked: bool) -> bytes:
    pid = os.getpid()
    return f"pid={pid}\ntoken={pid}-{clock.wall()}\n".encode() + (_KERNEL + b"\n" if locked else b"")


class _Found:
    """A lock file of somebody, open, as it was when it was judged."""

    def __init__(self, descriptor: int, found: os.stat_result) -> None:
        self.descriptor = descriptor
        self.file = (found.st_dev, found.st_ino)
        self.mtime_ns = found.st_mtime_ns
        self.content = os.pread(descriptor, _CONTENT_BYTES + 1, 0)

    def require_stale(self, clock: Clock, mode: int = fcntl.LOCK_EX) -> None:
        """Judge by LEASE-05, and lock the file of a stale one in ``mode``. Raises Held or Unsafe."""
        if len(self.content) > _CONTENT_BYTES:
            raise Unsafe("a lock file of more than 4096 bytes")
        if _KERNEL in self.content.split(b"\n"):
            locked = _lock(self.descriptor, mode)
            if locked is not None:
                if not locked:
                    raise Held("the kernel says so")
                return
        pid = _pid_line(self.content)
        if pid is None or int(pid[1]) == 0:  # 0 would ask for our own group
            if clock.wall() - self.mtime_ns < _BLANK_AGE_NS:
                raise Held("a lock file that may be in the making")
        elif _exists(int(pid[1])):
            raise Held("its process exists")
        if _lock(self.descriptor, mode) is False:
            raise Held("somebody else is about to remove it")

    def stands_in(self, directory: int, name: str) -> bool:
        """Tell whether it is still what was judged (LEASE-06)."""
        found = files.status(name, directory)
        same = found is not None and (found.st_dev, found.st_ino) == self.file
        return same and os.pread(self.descriptor, _CONTENT_BYTES + 1, 0) == self.content


@contextmanager
def _look(name: str, directory: int, access: int = os.O_RDWR) -> Iterator[_Found | None]:
    """Open a lock file to judge it; None when there is none. Raises Unsafe for what is no plain file of ours."""
    found = files.status(name, directory)
    if found is None:
        yield None
        return
    if not stat.S_ISREG(found.st_mode):
        raise Unsafe("a lock that is not a regular file")
    try:
        descriptor = _open(name, directory, access)
    except FileNotFoundError:
        yield None
        return
    except OSError as fault:
        raise Unsafe(f"a lock that cannot be opened: {fault.strerror}") from None
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise Unsafe("a lock that is not a regular file")
        yield _Found(descriptor, found)
    finally:
        os.close(descriptor)


def _open(name: str, directory: int, access: int) -> int:
    """Open for writing if we may: over a network, what is open for reading alone cannot be locked."""
    flags = os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        return os.open(name, flags | access, dir_fd=directory)
    except PermissionError:
        return os.open(name, flags | os.O_RDONLY, dir_fd=directory)


def _remove_stale(place: Place, name: str, directory: int, clock: Clock, *, guarded: bool) -> None:
    """Remove a lock file that LEASE-05 finds stale, under a guard (LEASE-06). Raises Held or Unsafe."""
    with _look(name, directory) as found:
        if found is None:
            return
        found.require_stale(clock)
        guard = _guard(place, name, directory, clock) if guarded else None
        try:
            if found.stands_in(directory, name):
                disk.remove(Step.LEASE_RECOVER, name, directory)
        finally:
            if guard is not None:
                guard.release()


def _guard(place: Place, name: str, directory: int, clock: Clock) -> Lease:
    """Take the guard of a removal: a lease itself, and when stale removed without another guard."""
    recovery = f".{name}.recovery"
    guard = _create(place, recovery, directory, clock)
    if guard is None:
        _remove_stale(place, recovery, directory, clock, guarded=False)
        guard = _create(place, recovery, directory, clock)
    if guard is None:
        raise Held(recovery)
    return guard


def _lock(descriptor: int, mode: int = fcntl.LOCK_EX) -> bool | None:
    """Try to take the kernel's lock: True taken, False somebody has it, None the file system has none (LEASE-08)."""
    try:
        fcntl.flock(descriptor, mode | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except PermissionError:  # somebody else's, but there
        return True
    except (ProcessLookupError, OverflowError):
        return False
    return True
