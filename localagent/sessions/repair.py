"""Offline repair: a session is replaced by its good lines, after all of its bytes were set aside (REC-56).

:func:`plan` says what would be done, and needs nothing but the bytes; :func:`survey` reads them and takes no lease;
:func:`apply` does it under all three leases of the session. Whenever it is cut off, the session is the damaged file or
the repaired one, whole; there is a verified copy of the damaged file before it is replaced, and another repair goes on
from there.

What is damaged is a line that is no record. A whole record stays, even one that a reader refuses: it may be of a newer
writer. Neither is a file touched that is a whole session under another's name.
"""

import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Final

import msgspec

from localagent.protocol.codes import Code
from localagent.protocol.limits import LIMITS

from . import damage, disk, files, instants, leases, lines
from .clock import SYSTEM, Clock, never
from .disk import Step
from .errors import Held, StoreError, Unsafe
from .eventids import EventIds
from .files import Identity
from .inspect import SUFFIX, Examined, Reading, examined
from .ownership import Ownership
from .paths import Root

SALVAGE: Final = "salvage"
_CWD_CHARACTERS: Final = 4096  # no directory has a longer name
_DIAGNOSTIC_BYTES: Final = 512 + 2 * 6 * _CWD_CHARACTERS  # room that is kept for it: two paths, escaped
_generation = re.compile(r"\A([1-9][0-9]{0,17})\.bytes\Z").match


@dataclass(frozen=True, slots=True)
class Damage:
    """One line that is no record. ``line`` counts from 1; ``aside``: bytes that do not stay; ``kept``: records that do.

    ``what`` is for people and holds nothing of the content.
    """

    line: int
    what: str
    aside: int
    kept: int


@dataclass(frozen=True, slots=True)
class Plan:
    """What repair makes of a session of ``length`` bytes and ``lines`` lines.

    ``good``: the lines that stay, byte for byte and each with its line end. ``outcome``: what a client then sees, which
    may still be a refusal. ``impossible``: why nothing can be done about the damage.
    """

    session_id: str
    length: int
    lines: int
    damages: tuple[Damage, ...]
    good: bytes
    outcome: Examined
    impossible: str | None

    @property
    def aside(self) -> int:
        """Bytes that do not stay in the session."""
        return sum(each.aside for each in self.damages)


@dataclass(frozen=True, slots=True)
class Repaired:
    """What was done. ``salvage``: the file below the root that holds all bytes as they were; None: nothing was done."""

    plan: Plan
    salvage: str | None


def plan(session_id: str, data: bytes) -> Plan:
    """Say what repair makes of the bytes of a session."""
    good: list[bytes] = []
    damages: list[Damage] = []
    owners: set[str | None] = set()
    number = 0
    for number, line in enumerate(_raw_lines(data), 1):
        if damage.is_record(line, session_id):
            good.append(line if line.endswith(b"\n") else line + b"\n")
            continue
        content = line.removesuffix(b"\n").removesuffix(b"\r")
        found = damage.complete_records(content, session_id)
        good += [content[start:end] + b"\n" for start, end in found]
        ends = int(line.endswith(b"\n"))
        kept = sum(end - start for start, end in found) + (ends if found else 0)  # the line end goes with the last one
        damages.append(Damage(number, _what(content, session_id, not ends), len(line) - kept, len(found)))
        owners.add(None if good else damage.owner(content))
    text = b"".join(good)
    reading = Reading(session_id)
    reading.length = len(text)
    reading.take(lines.split(iter((text,))), ends=True)
    return Plan(session_id, len(data), number, tuple(damages), text, examined(reading), _impossible(text, owners))


def _raw_lines(data: bytes) -> Iterator[bytes]:
    """Cut bytes into lines that keep their line ends."""
    start = 0
    while start < len(data):
        end = data.find(b"\n", start) + 1 or len(data)
        yield data[start:end]
        start = end


def _what(content: bytes, session_id: str, last: bool) -> str:
    what = damage.describe(content, session_id)
    return f"the last record is torn ({what})" if last else what


def _impossible(text: bytes, owners: set[str | None]) -> str | None:
    if not text and len(owners) == 1 and None not in owners:
        return "every line is a record of one other session: this is a copy of it, or its file was renamed"
    if len(text) + _DIAGNOSTIC_BYTES > LIMITS.history_file_bytes or text.count(b"\n") >= LIMITS.history_file_lines:
        return "what is good of it leaves no room for the record that repair adds"
    return None


def survey(root: Root, session_id: str) -> Plan:
    """Read a session and say what :func:`apply` would do now. Takes no lease, writes nothing.

    Raises StoreError: ``session_missing``, ``session_invalid`` for a file that is not ours alone (REC-02),
    ``history_limit`` above 64 MiB.
    """
    data, _ = _read(root, session_id)
    return plan(session_id, data)


def apply(root: Root, session_id: str, clock: Clock = SYSTEM) -> Repaired:
    """Repair a session, if it is damaged.

    Raises StoreError: as :func:`survey`, ``session_busy`` while a lease is held, ``session_invalid`` for an unsafe
    lease, for damage that cannot be repaired and a file that changed meanwhile; then the session is as it was. Also
    ``persistence_failed`` when the disk refuses; then it is as it was or, if the last sync failed, repaired.
    """
    _read(root, session_id)  # refused before there is a lock beside it
    try:
        with _leased(root, session_id, clock) as ownership:
            data, identity = _read(root, session_id)
            made = plan(session_id, data)
            if not made.damages:
                return Repaired(made, None)
            if made.impossible is not None:
                raise StoreError(Code.SESSION_INVALID, made.impossible)
            text = made.good + _diagnostic(made, EventIds(root, clock).take(1, never)[0], clock)
            salvage = _set_aside(root, session_id, data)
            _replace(root, session_id, text, identity, ownership)
            return Repaired(made, salvage)
    except (OSError, Unsafe, Held) as fault:  # the lease of the event ids, if one is held
        raise StoreError(Code.PERSISTENCE_FAILED, str(fault)) from None


def _read(root: Root, session_id: str) -> tuple[bytes, Identity]:
    try:
        with root.sessions() as directory:
            descriptor = files.open_private(session_id + SUFFIX, directory)
        try:
            identity = Identity.of(os.fstat(descriptor))
            if identity.length > LIMITS.history_file_bytes:
                raise StoreError(Code.HISTORY_LIMIT, "a file of more than 64 MiB")
            return b"".join(lines.blocks(descriptor, identity.length)), identity
        finally:
            os.close(descriptor)
    except FileNotFoundError:
        raise StoreError(Code.SESSION_MISSING, "there is no such session") from None
    except (Unsafe, OSError) as fault:
        raise StoreError(Code.SESSION_INVALID, str(fault)) from None


@contextmanager
def _leased(root: Root, session_id: str, clock: Clock) -> Iterator[Ownership]:
    """Hold writer, active and append lease, none of them waited for. Raises OSError or StoreError."""
    with ExitStack() as held:
        try:
            ownership = Ownership(root, session_id, clock, stored=True, spoilt=False)
            held.callback(ownership.release)
            held.callback(leases.take(root.sessions, session_id + SUFFIX, clock).release)
        except Held as fault:
            raise StoreError(Code.SESSION_BUSY, str(fault)) from None
        except Unsafe as fault:
            raise StoreError(Code.SESSION_INVALID, str(fault)) from None
        yield ownership


def _diagnostic(made: Plan, event_id: str, clock: Clock) -> bytes:
    """The record that says what was done.

    It is recorded where the others are, or nowhere: where repair happened to run is no workspace of the session.
    """
    cwds = made.outcome.cwds
    cwd = cwds[0] if len(cwds) == 1 and len(cwds[0]) <= _CWD_CHARACTERS else ""
    record = {
        "event_id": event_id,
        "event_type": "diagnostic",
        "timestamp": instants.spell(clock.wall()),
        "session_id": made.session_id,
        "cwd": cwd,
        "session_path": cwd or None,
        "payload": {
            "category": "repair",
            "level": "warning",
            "message": f"Repair set aside {made.aside} damaged bytes.",
        },
    }
    return msgspec.json.encode(record) + b"\n"


def _set_aside(root: Root, session_id: str, data: bytes) -> str:
    """Copy all bytes to ``salvage/<id>/<n>.bytes`` and compare them; a copy that is there already serves as well."""
    with (
        root.directory() as top,
        files.private_folder(Step.SALVAGE_DIRECTORY, SALVAGE, top) as salvage,
        files.private_folder(Step.SALVAGE_DIRECTORY, session_id, salvage) as own,
    ):
        numbers = [int(match[1]) for name in os.listdir(own) if (match := _generation(name))]
        newest = f"{max(numbers, default=0)}.bytes"
        if not numbers or not _holds(newest, own, data):
            newest = f"{max(numbers, default=0) + 1}.bytes"
            _copy(newest, own, data)
        for directory in (own, salvage, top):
            disk.sync_directory(Step.SALVAGE_SYNC_DIRECTORY, directory)
    return f"{SALVAGE}/{session_id}/{newest}"


def _copy(name: str, directory: int, data: bytes) -> None:
    temporary = f".{name}.tmp"
    with _created(Step.SALVAGE_CREATE, temporary, directory) as descriptor:
        disk.write(Step.SALVAGE_WRITE, descriptor, data)
        disk.sync(Step.SALVAGE_SYNC, descriptor)
        if not _holds(temporary, directory, data):
            raise Unsafe("the copy differs from the session")
        disk.rename(Step.SALVAGE_RENAME, temporary, name, directory)


def _replace(root: Root, session_id: str, text: bytes, identity: Identity, ownership: Ownership) -> None:
    """Put ``text`` in the place of the session file, if that is still what was read and the session still ours."""
    name = session_id + SUFFIX
    temporary = f".{name}.repair.tmp"
    with root.sessions() as directory:
        with _created(Step.REPAIR_CREATE, temporary, directory) as descriptor:
            disk.write(Step.REPAIR_WRITE, descriptor, text)
            disk.sync(Step.REPAIR_SYNC, descriptor)
            found = files.status(name, directory)
            if found is None or Identity.of(found) != identity or not ownership.stands_in(directory):
                raise StoreError(Code.SESSION_INVALID, "the session was changed meanwhile")
            disk.rename(Step.REPAIR_RENAME, temporary, name, directory)
        disk.sync_directory(Step.REPAIR_SYNC_DIRECTORY, directory)


@contextmanager
def _created(step: Step, name: str, directory: int) -> Iterator[int]:
    """Create a temporary file, in the place of one that a repair has left which was cut off; gone if this one fails."""
    found = files.status(name, directory)
    if found is not None:
        files.require_trusted(found)
        disk.remove(Step.REPAIR_CLEAR, name, directory)
    descriptor = disk.create(step, name, directory)
    try:
        yield descriptor
    except BaseException:
        with suppress(OSError):
            os.unlink(name, dir_fd=directory)
        raise
    finally:
        os.close(descriptor)


def _holds(name: str, directory: int, data: bytes) -> bool:
    """Tell whether a file has these bytes, by SHA-256 of what can be read of it."""
    digest = hashlib.sha256()
    try:
        descriptor = files.open_private(name, directory)
    except (Unsafe, OSError):
        return False
    try:
        for block in lines.blocks(descriptor, os.fstat(descriptor).st_size):
            digest.update(block)
    finally:
        os.close(descriptor)
    return digest.digest() == hashlib.sha256(data).digest()
