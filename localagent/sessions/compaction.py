"""Compaction: a session starts anew with a checkpoint, and its old bytes are set aside (REC-44 to REC-47).

Two steps, for the summary in between takes a provider's time: :func:`mark` notes the file and where it is to be cut,
:func:`replace` does it. The caller holds the append mutex and the append lease during each, and the other two leases
all the time. Until the last rename the old file is the truth, from then on the new one (REC-45). Nothing is renamed
that opening would refuse.
"""

import os
import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

from localagent.protocol.limits import LIMITS

from . import disk, files, lines, records
from .checkpoint import Tally
from .clock import CancelCheck
from .disk import Step
from .errors import BadRecord, CompactionFailed, Unsafe
from .facts import Facts
from .files import Identity
from .history import REVISION_BYTES, Cutter
from .paths import Root
from .projection import Projection

HISTORY: Final = ".history"
_SUFFIX: Final = ".jsonl"
_HEAD_BYTES: Final = 4096  # REC-44
_generation = re.compile(r"\A([1-9][0-9]{0,17})\.jsonl\Z").match
_unfinished_copy = re.compile(r"\A\.[0-9]+\.jsonl\.compact-tmp\Z").match
_unfinished_numbers = re.compile(r"\A[0-9]+-[0-9]+\Z").match


@dataclass(frozen=True, slots=True)
class Mark:
    """The file before its summary was asked for: ``head`` is its first 4096 bytes, ``cut`` where what stays begins."""

    device: int
    inode: int
    length: int
    head: bytes
    cut: int


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A summary of the records before the mark. ``provider`` and ``model`` have written it.

    ``usage``: the tokens that took, with the members of ``assistant_output``; None when nobody knows.
    """

    mark: Mark
    summary: str
    provider: str
    model: str
    usage: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True)
class Compacted:
    """What was done. ``generation``: the file below the root with the old bytes; ``removed``, ``kept``: records."""

    generation: str
    removed: int
    kept: int


def mark(root: Root, session_id: str, keep: int, cancelled: CancelCheck) -> Mark:
    """Note a session file that is to lose all but its last ``keep`` records.

    Raises CompactionFailed when nothing would be removed, Unsafe, OSError, Cancelled.
    """
    with root.sessions() as directory:
        live, found = files.open_trusted(session_id + _SUFFIX, directory)
    try:
        cut = _cut(live, found.st_size, keep, cancelled)
        if cut == 0:
            raise CompactionFailed("there is no record to remove")
        return Mark(found.st_dev, found.st_ino, found.st_size, os.pread(live, _HEAD_BYTES, 0)[: found.st_size], cut)
    finally:
        os.close(live)


def _cut(live: int, length: int, keep: int, cancelled: CancelCheck) -> int:
    """Where the last ``keep`` lines begin; 0 if there are not more than that."""
    begins = deque([0], maxlen=keep + 1)  # of the last lines, and of the one after them
    position = 0
    for block in lines.blocks(live, length, cancelled):
        at = block.find(b"\n")
        while at >= 0:
            begins.append(position + at + 1)
            at = block.find(b"\n", at + 1)
        position += len(block)
    if begins[-1] != length:  # the last line lacks its LF
        begins.append(length)
    return begins[0] if len(begins) > keep else 0


def replace(
    root: Root,
    session_id: str,
    checkpoint: Checkpoint,
    session_path: str,
    line: Callable[[Mapping[str, Any]], bytes],
    owned: Callable[[int], bool],
    cancelled: CancelCheck,
) -> Compacted:
    """Start the session anew. ``line`` writes the record of a payload, LF included.

    ``owned`` is asked about the open directory, before the file is looked at and right before it is replaced: do the
    other leases still stand there?
    Raises CompactionFailed, Unsafe, OSError, BadRecord for records that no reader takes, StoreError(``history_limit``)
    when the new file would be refused for it, Cancelled. Unless a CompactionFailed says ``replaced``, the old file
    stands.
    """
    name = session_id + _SUFFIX
    with root.sessions() as directory:
        if not owned(directory):
            raise CompactionFailed("a lease was lost")
        live, found = files.open_trusted(name, directory)
        try:
            identity = Identity.of(found)
            cut = _verified_cut(live, identity, checkpoint.mark)
            first, removed, kept = _rewritten(live, identity.length, cut, session_id, checkpoint, session_path, line,
                                              cancelled)  # fmt: skip
            generation = _set_aside(live, identity.length, directory, session_id, cancelled)
            _sweep(directory, f".{name}.compact-", _unfinished_numbers)
            temporary = f".{name}.compact-{os.getpid()}-{generation}"
            with _created(Step.COMPACT_CREATE, temporary, directory) as descriptor:
                rest = lines.blocks(live, identity.length, cancelled, cut)
                disk.write_all(Step.COMPACT_WRITE, descriptor, chain((first,), rest))
                disk.sync(Step.COMPACT_SYNC, descriptor)
                now = files.status(name, directory)
                if now is None or Identity.of(now) != identity or not owned(directory):
                    raise CompactionFailed("the session was changed meanwhile")
                disk.rename(Step.COMPACT_RENAME, temporary, name, directory)
            try:
                disk.sync_directory(Step.COMPACT_SYNC_DIRECTORY, directory)
            except OSError as fault:
                raise CompactionFailed(str(fault), replaced=True) from None
        finally:
            os.close(live)
    return Compacted(f"sessions/{HISTORY}/{session_id}/{generation}{_SUFFIX}", removed, kept)


def _verified_cut(live: int, identity: Identity, noted: Mark) -> int:
    """Where to cut, in the file that was noted and may have grown. Raises CompactionFailed for any other (REC-44)."""
    same = (identity.device, identity.inode) == (noted.device, noted.inode) and identity.length >= noted.length
    if not same or os.pread(live, len(noted.head), 0) != noted.head:
        raise CompactionFailed("another file than was noted")
    around = os.pread(live, 2, noted.cut - 1)
    if around.startswith(b"\n") or noted.cut == identity.length:
        return noted.cut
    if noted.cut == noted.length and around.endswith(b"\n"):  # an append gave the last record its LF (REC-34)
        return noted.cut + 1
    raise CompactionFailed("the cut is not between two records any more")


def _rewritten(
    live: int,
    length: int,
    cut: int,
    session_id: str,
    checkpoint: Checkpoint,
    session_path: str,
    line: Callable[[Mapping[str, Any]], bytes],
    cancelled: CancelCheck,
) -> tuple[bytes, int, int]:
    """The first line of the new file, and how many records are removed and kept.

    The new file is read as opening reads it, before it exists.
    """
    tally = Tally()
    for text in lines.split(lines.blocks(live, cut, cancelled)):
        tally.add(records.parse(text, session_id))
    tally.spend(checkpoint.usage)
    first = line(tally.payload(checkpoint.summary, checkpoint.provider, checkpoint.model, session_path))

    projection, facts, kept = Projection(), Facts(), 0
    rest = lines.split(lines.blocks(live, length, cancelled, cut))
    for kept, text in enumerate(chain((first[:-1],), rest)):
        record = records.parse(text, session_id)
        if kept and record.kind == "compaction":  # its cutoff counts lines that will not be there (REC-13)
            raise BadRecord("a compaction among the records that are to stay")
        projection.add(record)
        facts.add(record)
    Cutter(session_id).history(projection.snapshot(), "-" * REVISION_BYTES)
    if len(first) + length - cut > LIMITS.history_file_bytes or kept + 1 > LIMITS.history_file_lines:
        raise CompactionFailed("the new file would pass 64 MiB or 100,000 lines")  # REC-36
    return first, tally.count, kept


def _set_aside(live: int, length: int, directory: int, session_id: str, cancelled: CancelCheck) -> int:
    """Copy the whole file to the next generation, and return its number. One that is there is never written again."""
    with (
        files.private_folder(Step.COMPACT_DIRECTORY, HISTORY, directory) as history,
        files.private_folder(Step.COMPACT_DIRECTORY, session_id, history) as own,
    ):
        _sweep(own, "", _unfinished_copy)
        number = max((int(match[1]) for name in os.listdir(own) if (match := _generation(name))), default=0) + 1
        temporary = f".{number}{_SUFFIX}.compact-tmp"
        with _created(Step.COMPACT_KEEP_CREATE, temporary, own) as copy:
            disk.write_all(Step.COMPACT_KEEP_WRITE, copy, lines.blocks(live, length, cancelled))
            disk.sync(Step.COMPACT_KEEP_SYNC, copy)
            if os.fstat(copy).st_size != length:
                raise CompactionFailed("the file became shorter")
            disk.rename(Step.COMPACT_KEEP_RENAME, temporary, f"{number}{_SUFFIX}", own)
        for each in (own, history, directory):  # a compaction that was cut off may have made the upper ones
            disk.sync_directory(Step.COMPACT_KEEP_SYNC_DIRECTORY, each)
    return number


@contextmanager
def _created(step: Step, name: str, directory: int) -> Iterator[int]:
    """Create a temporary file; gone if what is done with it fails, renamed otherwise."""
    descriptor = disk.create(step, name, directory)
    try:
        yield descriptor
    except BaseException:
        with suppress(OSError):
            disk.remove(Step.COMPACT_CLEAR, name, directory)
        raise
    finally:
        with suppress(OSError):  # what it might say comes after the sync, and too late
            os.close(descriptor)


def _sweep(directory: int, prefix: str, unfinished: Callable[[str], object]) -> None:
    """Remove the temporary files of compactions that were cut off: who holds the append lease makes the only one."""
    for name in os.listdir(directory):
        if name.startswith(prefix) and unfinished(name[len(prefix) :]):
            found = files.status(name, directory)
            with suppress(Unsafe):  # not one of ours
                if found is not None:
                    files.require_trusted(found)
                    disk.remove(Step.COMPACT_CLEAR, name, directory)
