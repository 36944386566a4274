"""What listing and discovery share: which names are sessions, what of a file is watched, how a history is read.

Everything here looks and nothing more: no lease is taken, judged or removed, nothing is written (EXT-DISC-88 to
EXT-DISC-92, LEASE-09). A history is read line by line with the strictness of an open (REC-04 to REC-06), and only what
an entry shows is kept of it. What opening alone finds out, a history's projection and its scope, is not asked for
(LIST-40, LIST-41).
"""

import os
from collections.abc import Iterable, Iterator
from typing import Final, Literal, NamedTuple

from localagent.protocol.codes import Code
from localagent.protocol.ids import is_session_id
from localagent.protocol.limits import LIMITS

from . import files
from .errors import StoreError

_SUFFIX: Final = ".jsonl"
_LOCK: Final = ".lock"

Omission = Literal["sessions_omitted_invalid"]
OMITTED: Final[tuple[Omission, ...]] = ("sessions_omitted_invalid",)
"""The notice that something unsafe, unreadable or malformed was left out (LIST-35)."""


class Attachment(NamedTuple):
    """Which session this child has attached, and by which attach: opening it again is another attachment (LIST-57)."""

    session_id: str | None = None
    number: int = 0


Signature = tuple[int, ...]
"""All that is watched of a directory entry: mode, inode, device, links, owner, group, length, mtime and ctime in ns."""


def signature(found: os.stat_result) -> Signature:
    """Take the signature out of what ``stat`` said (LIST-57, EXT-DISC-67)."""
    return (*found[:7], found.st_mtime_ns, found.st_ctime_ns)


def entry_signature(name: str, found: os.stat_result) -> Signature:
    """The same for the directory entry ``name``: of a lock, length and times do not count (LEASE-09, EXT-DISC-68)."""
    return tuple(found[:6]) if name.endswith(_LOCK) else signature(found)


def stale(why: str) -> StoreError:
    """The refusal of whoever looked at a store while it changed (LIST-39, EXT-DISC-69)."""
    return StoreError(Code.STALE_REVISION, why)


def session_of(name: str) -> str | None:
    """Return the id of the session that the file ``name`` holds; None for every other name (LIST-24, ROOT-13).

    Raises StoreError(``discovery_unavailable``) for a ``.jsonl`` name whose stem is no session id (LIST-37, ROOT-11).
    """
    if not name.endswith(_SUFFIX):
        return None
    session_id = name.removesuffix(_SUFFIX)
    if not is_session_id(session_id):
        raise StoreError(Code.DISCOVERY_UNAVAILABLE, "a primary file with an invalid name")
    return session_id


def file_of(session_id: str) -> str:
    """The name of a session's file (REC-01)."""
    return session_id + _SUFFIX


def locks_of(session_id: str) -> tuple[str, str, str]:
    """The names of a session's writer, active and append lease (LEASE-01)."""
    return f".{session_id}.writer.lock", f".{session_id}.active.lock", f".{session_id}.jsonl.lock"


def is_any_there(names: Iterable[str], directory: int) -> bool:
    """Tell whether any of ``names`` stands in the open ``directory``, a link itself included."""
    return any(os.access(name, os.F_OK, dir_fd=directory, follow_symlinks=False) for name in names)


class Reader:
    """One history, held open and read forward in bounded reads (LIST-25, EXT-DISC-27).

    ``lines`` gives the lines that became complete with the last :meth:`fill`, without LF; what was not taken when the
    next comes is lost. A last line without LF is complete when everything was read (REC-04). Beside them at most one
    record is held (EXT-DISC-30).
    """

    __slots__ = ("_begun", "_begun_bytes", "_descriptor", "_length", "_position", "lines", "seen")

    def __init__(self, session_id: str, directory: int) -> None:
        """Open the session safely in the open ``directory``.

        Only what is known to be a regular file is to be opened: opening a FIFO or a device may already do something.
        Raises Unsafe (REC-02), OSError, or StoreError(``stale_revision``) when it is gone by now.
        """
        try:
            self._descriptor, found = files.open_trusted(file_of(session_id), directory)
        except FileNotFoundError:
            raise stale("a session vanished") from None
        self.seen = signature(found)
        """What the open file is; it must stay that."""
        self.lines: Iterator[bytes] = iter(())
        self._length = found.st_size
        self._position = 0
        self._begun: list[bytes] = []
        self._begun_bytes = 0

    @property
    def rest(self) -> int:
        """The bytes that are still to be read."""
        return self._length - self._position

    def fill(self, most: int) -> bytes:
        """Read the next bytes, ``most`` at most, and return them.

        Raises OSError, StoreError(``discovery_record_bytes``) for a record of more than 8 MiB, LF included (EXT-OP-16),
        or StoreError(``stale_revision``) for a file that became shorter.
        """
        block = os.pread(self._descriptor, min(most, self.rest), self._position)
        if not block:
            raise stale("a session became shorter")
        self._position += len(block)
        first, *more = block.split(b"\n")
        self._begun.append(first)
        self._begun_bytes += len(first)
        if self._begun_bytes + bool(more) > LIMITS.discover.record_bytes:
            raise StoreError(Code.DISCOVERY_RECORD_BYTES, "a record of more than 8 MiB")
        if more:
            more.insert(0, self._take())
            self._begun.append(more.pop())
            self._begun_bytes = len(self._begun[0])
        if not self.rest and self._begun_bytes:
            more.append(self._take())
        self.lines = iter(more)
        return block

    def _take(self) -> bytes:
        line = b"".join(self._begun)
        self._begun, self._begun_bytes = [], 0
        return line

    def require_unchanged(self) -> None:
        """Raise StoreError(``stale_revision``) unless the open file is still what was opened. Raises OSError."""
        if signature(os.fstat(self._descriptor)) != self.seen:
            raise stale("a session changed")

    def close(self) -> None:
        """Let the file go."""
        os.close(self._descriptor)
