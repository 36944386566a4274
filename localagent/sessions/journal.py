"""The file of one session: read whole, appended to durably, watched for changes (REC-30 to REC-36, HIST-45).

A journal knows the file as it last saw it: its identity, its lines, and at need the SHA-256 of its bytes, kept up with
each append. The identity is compared before anything is built on it. Time stamps are only as fine as the kernel's clock
tick, so a file that was touched a moment ago might be touched again without showing it. Two things close that gap.
After an append we set an mtime of our own, to the nanosecond, which no later write leaves standing. After reading a
file that somebody has just touched, the bytes themselves are compared until that moment has passed. Where neither
helps, because the file system takes no such mtime, the file counts as changed and is read anew.
"""

import hashlib
import os
from collections.abc import Callable, Generator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final, final

from localagent.protocol.codes import Code
from localagent.protocol.limits import LIMITS

from . import disk, files, lines, records
from .clock import CancelCheck, Clock, never
from .disk import Step
from .errors import AppendFailed, BadRecord, Outcome, StoreError, Unsafe
from .files import Identity
from .paths import Root

_TICK_NS: Final = 20_000_000  # longer than the clock tick of any kernel
_SEAL: Final = object()


@final
class Receipt:
    """Proof that a batch is on the disk (REC-31). Only :meth:`Journal.append` makes one, after its last sync.

    How that is kept: the constructor asks for a seal that this module does not export, a type checker refuses
    subclasses, and a test reads the sources for uses of the seal. ``input.persisted`` is built from a receipt and from
    nothing else (EVT-11).
    """

    __slots__ = ("event_ids", "message_id", "revision", "session_id")

    def __init__(self, seal: object, session_id: str, batch: "Batch", message_id: str) -> None:
        if seal is not _SEAL:
            raise TypeError("only an append makes a receipt")
        self.session_id = session_id
        self.event_ids = batch.event_ids
        self.message_id = message_id
        """The history entry that the first record becomes, if it becomes one (EVT-13)."""
        self.revision = batch.revision
        """Names the history as it is now. No page is served for it: a run goes on, then has a newer one (D64)."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Serialised records, to be appended together or not at all."""

    text: bytes
    event_ids: tuple[str, ...]
    revision: str


@dataclass(frozen=True, slots=True)
class _Known:
    """The file as it was last seen: ``count`` lines. ``seen`` tells whether they were read, or only counted.

    ``distinct``: whoever changes the file from now on changes the identity. The digest is for when that is not so.
    """

    identity: Identity
    count: int
    seen: bool
    digest: lines.Digest | None
    distinct: bool


@dataclass(frozen=True, slots=True)
class _Target:
    """A file opened for one append. ``created_in`` is the directory, if this append has created it.

    ``continuous``: it is as it was last seen, so that what was read of it and the batch will be all of it.
    """

    descriptor: int
    created_in: int | None
    known: _Known
    continuous: bool


class Journal:
    """One session's file."""

    def __init__(self, root: Root, session_id: str, clock: Clock) -> None:
        self.session_id = session_id
        self._name = f"{session_id}.jsonl"
        self._root, self._clock = root, clock
        self._known: _Known | None = None

    # reading

    def read(self, cancelled: CancelCheck) -> Generator[records.Record, None, None]:
        """Read the whole file.

        Raises FileNotFoundError, Unsafe, OSError, BadRecord, Cancelled, or StoreError(``history_limit``) beyond 64 MiB
        or 100,000 lines (REC-36). The file is known at the end, as it was at the beginning: a change meanwhile shows.
        """
        with self._root.sessions() as directory:
            descriptor = files.open_private(self._name, directory)
        try:
            now = self._clock.wall()
            identity = Identity.of(os.fstat(descriptor))
            if identity.length > LIMITS.history_file_bytes:
                raise StoreError(Code.HISTORY_LIMIT, "a file of more than 64 MiB")
            distinct = _has_passed(identity, now)
            digest = None if distinct else hashlib.sha256()
            blocks = lines.blocks(descriptor, identity.length, cancelled)
            number = 0
            for line in lines.split(blocks if digest is None else lines.hashed(blocks, digest)):
                number += 1
                if number > LIMITS.history_file_lines:
                    raise StoreError(Code.HISTORY_LIMIT, "more than 100,000 lines")
                yield records.parse(line, self.session_id)
            self._known = _Known(identity, number, True, digest, distinct)
        finally:
            os.close(descriptor)

    def unchanged(self, cancelled: CancelCheck = never) -> bool:
        """Tell whether the file is still what was last seen of it: the same bytes, or still none (HIST-45).

        Raises Cancelled. What cannot be looked at, or became unsafe, counts as changed.
        """
        known = self._known
        try:
            with self._root.sessions() as directory:
                found = files.status(self._name, directory)
                if known is None or found is None:
                    return known is None and found is None
                files.require_trusted(found)
                if Identity.of(found) != known.identity:
                    return False
                return known.distinct or self._same_bytes(known, directory, cancelled)
        except (OSError, Unsafe):
            return False

    def _same_bytes(self, known: _Known, directory: int, cancelled: CancelCheck) -> bool:
        now = self._clock.wall()
        digest = hashlib.sha256()
        descriptor = files.open_private(self._name, directory)
        try:
            for block in lines.blocks(descriptor, known.identity.length, cancelled):
                digest.update(block)
            same = Identity.of(os.fstat(descriptor)) == known.identity
        finally:
            os.close(descriptor)
        if known.digest is None or not same or digest.digest() != known.digest.digest():
            return False
        self._known = replace(known, distinct=_has_passed(known.identity, now))
        return True

    # appending

    def append(self, batch: Batch, exists: bool, permitted: Callable[[int], bool]) -> tuple[Receipt, bool]:
        """Append ``batch`` and sync it; the caller holds the append lease (REC-30).

        A file that ``exists`` must still be there: a session does not go on in a new one. ``permitted`` is asked about
        the open directory just before: do the other leases still stand there?
        Returns the receipt, and whether the file was before as it was last seen. Raises AppendFailed.
        """
        done = None
        try:
            with self._root.sessions() as directory:
                if not permitted(directory):
                    raise AppendFailed(Outcome.REFUSED, "a lease was lost")
                target = self._open(directory, exists)
                try:
                    done = self._append(batch, target)
                finally:
                    with suppress(OSError):  # what it might say comes after the sync, and too late
                        os.close(target.descriptor)
        except (OSError, Unsafe) as fault:
            if done is None:
                raise AppendFailed(Outcome.REFUSED, str(fault)) from None
        return done

    def _open(self, directory: int, exists: bool) -> _Target:
        """Open for appending: exclusive create first, else existing."""
        created = False
        if not exists:
            with suppress(FileExistsError):
                descriptor = disk.create(Step.SESSION_CREATE, self._name, directory)
                created = True
        if not created:
            descriptor = files.open_private(self._name, directory, os.O_RDWR | os.O_APPEND)
        try:
            known = self._known_at(Identity.of(os.fstat(descriptor)), descriptor, created)
        except BaseException:
            os.close(descriptor)
            raise
        return _Target(descriptor, directory if created else None, known, known.seen)

    def _known_at(self, identity: Identity, descriptor: int, created: bool) -> _Known:
        """What is known of the open file: all, if it is as it was last seen; else only how long it is."""
        if created:
            return _Known(identity, 0, True, hashlib.sha256(), False)
        if self._known is not None and self._known.identity == identity:
            return self._known
        if identity.length > LIMITS.history_file_bytes:
            raise Unsafe("the file has passed 64 MiB")
        return _Known(identity, lines.count(lines.blocks(descriptor, identity.length)), False, None, False)

    def _append(self, batch: Batch, target: _Target) -> tuple[Receipt, bool]:
        known = target.known
        text = self._joint(target) + batch.text
        number = known.count + len(batch.event_ids)
        if known.identity.length + len(text) > LIMITS.history_file_bytes or number > LIMITS.history_file_lines:
            self._undo_creation(target)
            raise AppendFailed(Outcome.REFUSED, "the file would pass 64 MiB or 100,000 lines")
        try:
            disk.write(Step.SESSION_WRITE, target.descriptor, text)
            disk.sync(Step.SESSION_SYNC, target.descriptor)
            if target.created_in is not None:
                disk.sync_directory(Step.SESSION_SYNC_DIRECTORY, target.created_in)
            identity, distinct = self._stamp(target.descriptor)
        except OSError as fault:
            self._roll_back(target)
            raise AppendFailed(Outcome.ROLLED_BACK, str(fault)) from None
        receipt = Receipt(_SEAL, self.session_id, batch, f"m{known.count + 1}")
        digest = None
        if known.digest is not None:
            digest = known.digest.copy()
            digest.update(text)
        self._known = _Known(identity, number, known.seen, digest, distinct)
        return receipt, target.continuous

    def _joint(self, target: _Target) -> bytes:
        """The LF that a last line lacks; a last line that is no record refuses the append (REC-34)."""
        length = target.known.identity.length
        if length == 0 or os.pread(target.descriptor, 1, length - 1) == b"\n":
            return b""
        try:
            records.parse(lines.last(target.descriptor, length), self.session_id)
        except BadRecord:
            raise AppendFailed(Outcome.REFUSED, "the last line is torn") from None
        return b"\n"

    def _stamp(self, descriptor: int) -> tuple[Identity, bool]:
        """Set an mtime that no later write leaves standing; return the identity, and whether that worked."""
        now = self._clock.wall()
        with suppress(OSError):
            disk.touch(Step.SESSION_STAMP, descriptor, now)
        identity = Identity.of(os.fstat(descriptor))
        return identity, identity.mtime_ns == now

    def _roll_back(self, target: _Target) -> None:
        """Take back what was written, or raise AppendFailed(UNCERTAIN) (REC-32)."""
        try:
            disk.truncate(Step.SESSION_TRUNCATE, target.descriptor, target.known.identity.length)
            disk.sync(Step.SESSION_SYNC_BACK, target.descriptor)
            identity, distinct = self._stamp(target.descriptor)
        except OSError as fault:
            raise AppendFailed(Outcome.UNCERTAIN, str(fault)) from None
        self._undo_creation(target)
        if target.continuous and target.created_in is None:  # the same bytes under another time stamp
            self._known = replace(target.known, identity=identity, distinct=distinct)

    def _undo_creation(self, target: _Target) -> None:
        """Remove the empty file that this append has created; where that fails, an empty session stays (REC-03)."""
        if target.created_in is not None:
            with suppress(OSError):
                disk.remove(Step.SESSION_REMOVE, self._name, target.created_in)


def _has_passed(identity: Identity, now: int) -> bool:
    """Tell whether the tick in which the file was last touched was over at ``now``."""
    return now - identity.ctime_ns > _TICK_NS
