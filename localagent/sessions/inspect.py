"""What stands in a store, looked at from outside: nothing is written, no lease is taken (`localagent sessions`).

A session is read as opening reads it, so that :class:`Examined` says what a client in the session's own directory would
see, or why it would be refused. Unlike opening, reading goes on to say where and what is wrong.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from localagent.protocol.codes import Code
from localagent.protocol.ids import is_session_id
from localagent.protocol.limits import LIMITS
from localagent.text.redact import display

from . import damage, eventids, files, leases, lines, ownership, paths, records
from .clock import SYSTEM, Clock
from .errors import BadRecord, StoreError, Unsafe
from .facts import Facts
from .history import REVISION_BYTES, Cutter
from .leases import Standing
from .paths import Root
from .projection import Projected, Projection

SUFFIX: Final = ".jsonl"
_REVISION: Final = "-" * REVISION_BYTES  # nobody will ask for its pages
_quoted = re.compile(r"""(?<=value|field) (['"`]).*\1(?= - at `|$)""", re.DOTALL)
_lock_name = re.compile(r"\A\.(?P<target>.+)\.lock\Z").match
_recovery_name = re.compile(r"\A\.\..+\.lock\.recovery\Z").match
_temporary_name = re.compile(r"\A\..+(?:\.tmp|\.jsonl\.compact-[0-9-]+)\Z").match
_derived_name = re.compile(r"\A[A-Za-z0-9_-]{1,64}\.(?:metadata\.json|psm\..+)\Z").match  # ROOT-04
_FOLDERS: Final = frozenset({".history", "subagents"})


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a client is refused: the code, and what is wrong for people, without content of the session.

    ``line`` counts from 1. ``repairable``: the line is no record, which is what :mod:`.repair` is for (REC-56).
    """

    code: Code
    what: str
    line: int | None = None
    repairable: bool = False


MISSING: Final = Fault(Code.SESSION_MISSING, "there is no such session")


@dataclass(frozen=True, slots=True)
class Strange:
    """A name in ``sessions/`` that needs a word. ``code``: what a client is refused with because of it, if it is."""

    name: str
    what: str
    code: Code | None = None


@dataclass(frozen=True, slots=True)
class Examined:
    """What is to be known of one session.

    ``fault``: why its content cannot be opened, from its own directory. ``busy``: a writer or active lease is held, so
    that opening answers ``session_busy`` first. ``entries`` counts history entries; None, as ``complete``, when there
    is a fault. ``updated``: the greatest timestamp, nanoseconds since 1970. ``cwds``: the recorded directories.
    ``length``: bytes of the file, ``records`` those that were read, each None and 0 when it could not be opened.
    """

    session_id: str
    fault: Fault | None
    busy: bool
    length: int | None
    records: int
    entries: int | None
    complete: bool | None
    notices: tuple[str, ...]
    title: str | None
    updated: int | None
    cwds: tuple[str, ...]

    @property
    def code(self) -> Code | None:
        """What opening would answer now, in the order of BASE-OP-06; None: it would succeed."""
        if self.busy and (self.fault is None or self.fault.code is not Code.SESSION_MISSING):
            return Code.SESSION_BUSY
        return self.fault.code if self.fault else None


class Reading:
    """The records of one session, as far as they can be read; ``fault`` says why not further.

    ``instants`` holds the time of each record, nanoseconds since 1970. ``unfinished``: the fault is a last line
    without its end, as it looks while somebody writes it.
    """

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        self.facts = Facts()
        self.instants: list[int] = []
        self.fault: Fault | None = None
        self.length: int | None = None
        self.unfinished = False
        self.projected: Projected | None = None
        """The history of what was read; None when there is none."""
        self._projection = Projection()

    def take(self, source: Iterator[bytes], ends: bool) -> None:
        """Read lines without their line ends; ``ends`` tells whether the last one had it. Call it once."""
        for number, line in enumerate(source, 1):
            if number > LIMITS.history_file_lines:
                self.fault = Fault(Code.HISTORY_LIMIT, f"more than {LIMITS.history_file_lines:,} lines", number)
                return
            try:
                record = records.parse(line, self.session_id)
            except BadRecord:
                self.unfinished = not ends and next(source, None) is None
                self.fault = self._bad_line(line, number)
                break
            try:
                self._projection.add(record)
                self.facts.add(record)
            except BadRecord as fault:
                self.fault = Fault(Code.SESSION_INVALID, f"{record.kind}: {_without_content(str(fault))}", number)
                return  # the projection is of no use any more
            self.instants.append(record.instant)
        try:
            self.projected = self._projection.snapshot()
            Cutter(self.session_id).history(self.projected, _REVISION)
        except StoreError as fault:
            self.projected = None
            if self.fault is None:
                self.fault = Fault(fault.code, "more history than a client may be shown")

    def _bad_line(self, line: bytes, number: int) -> Fault:
        what = damage.describe(line, self.session_id)
        if self.unfinished:
            what = f"the last record is torn after {len(line):,} bytes ({what})"
        return Fault(Code.SESSION_INVALID, what, number, repairable=True)


def _without_content(why: str) -> str:
    """The words of a BadRecord without the member that a decoder quotes; names of required ones are no content."""
    return why if "missing required field" in why else display(_quoted.sub("", why))


def locate(path: str) -> Root | None:
    """Return the root at ``path``, or None when no sessions are there.

    Raises StoreError(``configuration_invalid``) when ``sessions/`` is not ours alone (ROOT-05) or cannot be read.
    """
    try:
        root = Root(paths.canonical(path))
        with root.sessions():
            return root
    except FileNotFoundError:
        return None
    except Unsafe as fault:
        raise StoreError(Code.CONFIGURATION_INVALID, f"sessions/: {fault}") from None
    except OSError as fault:
        raise StoreError(Code.CONFIGURATION_INVALID, f"sessions/: {fault.strerror}") from None


def session_ids(root: Root) -> list[str]:
    """Return the ids of all primary sessions, in the order of ``session.list``. Raises Unsafe or OSError."""
    with root.sessions() as directory:
        names = os.listdir(directory)
    return sorted(name[: -len(SUFFIX)] for name in names if _is_session(name))


def _is_session(name: str) -> bool:
    return name.endswith(SUFFIX) and is_session_id(name[: -len(SUFFIX)])


def read(root: Root, session_id: str, most: int | None = None) -> Reading:
    """Read a session, or its first ``most`` records."""
    reading = Reading(session_id)
    try:
        with root.sessions() as directory:
            descriptor = files.open_private(session_id + SUFFIX, directory)
    except FileNotFoundError:
        reading.fault = MISSING
        return reading
    except (Unsafe, OSError) as fault:
        reading.fault = Fault(Code.SESSION_INVALID, str(fault))
        return reading
    try:
        reading.length = length = os.fstat(descriptor).st_size
        if length > LIMITS.history_file_bytes:
            reading.fault = Fault(Code.HISTORY_LIMIT, f"a file of {length:,} bytes, more than 64 MiB")
            return reading
        ends = length == 0 or os.pread(descriptor, 1, length - 1) == b"\n"
        source = lines.split(lines.blocks(descriptor, length))
        reading.take(source if most is None else (line for line, _ in zip(source, range(most), strict=False)), ends)
    except OSError as fault:
        reading.fault = Fault(Code.SESSION_INVALID, f"it cannot be read: {fault.strerror}")
    finally:
        os.close(descriptor)
    return reading


def examine(root: Root, session_id: str, clock: Clock = SYSTEM) -> Examined:
    """Say what a client would see of a session, or why it is refused."""
    busy, unsafe = leased(root, session_id, clock)
    return examined(read(root, session_id), busy, unsafe)


def examined(reading: Reading, busy: bool = False, unsafe: Fault | None = None) -> Examined:
    """Sum up what was read. ``unsafe`` is what its leases are refused for."""
    fault = reading.fault
    if busy and reading.unfinished:
        fault = None
    elif fault is None or fault.code is not Code.SESSION_MISSING:
        fault = unsafe or fault or _workspace(reading.facts)
    projected = reading.projected if fault is None else None
    return Examined(
        session_id=reading.session_id,
        fault=fault,
        busy=busy,
        length=reading.length,
        records=len(reading.instants),
        entries=None if projected is None else projected.count + len(projected.tail),
        complete=None if projected is None else projected.complete,
        notices=("cwd_unverified",) if fault is None and not reading.facts.cwds else (),
        title=reading.facts.title,
        updated=reading.facts.newest,
        cwds=tuple(sorted(reading.facts.cwds)),
    )


def leased(root: Root, session_id: str, clock: Clock = SYSTEM) -> tuple[bool, Fault | None]:
    """Whether who opens finds a lease held, or unsafe; they are tried in this order (LEASE-02)."""
    try:
        with root.sessions() as directory:
            for role in ownership.ROLES:
                name = f".{session_id}.{role}.lock"
                standing, why = leases.judge(name, directory, clock) or (None, "")
                if standing is Standing.HELD:
                    return True, None
                if standing is Standing.UNSAFE:
                    return False, Fault(Code.SESSION_INVALID, f"{name}: {why}")
    except (OSError, Unsafe) as fault:
        return False, Fault(Code.SESSION_INVALID, str(fault))
    return False, None


def _workspace(facts: Facts) -> Fault | None:
    """Whether there is one directory that every recorded one names (REC-63)."""
    found = set()
    for recorded in facts.cwds:
        try:
            if not os.path.isabs(recorded):
                return Fault(Code.CWD_MISMATCH, "a recorded directory is not absolute")
            found.add(paths.canonical(recorded))
        except (OSError, ValueError):
            return Fault(Code.CWD_MISMATCH, "a recorded directory is gone")
    if not all(map(os.path.isdir, found)):
        return Fault(Code.CWD_MISMATCH, "a recorded directory is gone")
    return Fault(Code.CWD_MISMATCH, f"recorded in {len(found)} directories") if len(found) > 1 else None


def strangers(root: Root, clock: Clock = SYSTEM) -> list[Strange]:
    """Look at every name in ``sessions/`` that is no session. Raises Unsafe or OSError."""
    with root.sessions() as directory:
        found = [_stranger(name, directory, clock) for name in sorted(os.listdir(directory))]
    return [each for each in found if each is not None]


def _stranger(name: str, directory: int, clock: Clock) -> Strange | None:
    if _is_session(name) or name in _FOLDERS or _derived_name(name):
        return None
    if name == eventids.SEQUENCE:
        return _sequence(directory)
    if name.endswith(SUFFIX):
        return Strange(name, "no session id: every listing is refused (ROOT-11)", Code.DISCOVERY_UNAVAILABLE)
    if _lock_name(name) or _recovery_name(name):
        standing, why = leases.judge(name, directory, clock) or (Standing.HELD, "")
        if standing is Standing.HELD:
            return None
        what = f"a stale lease: {why}; who needs it next removes it"
        return Strange(name, what if standing is Standing.STALE else f"an unsafe lease: {why}")
    if _temporary_name(name):
        return Strange(name, "left over from a write that was cut off; not needed")
    return Strange(name, "unknown; left alone")


def _sequence(directory: int) -> Strange | None:
    try:
        eventids.end(directory)
    except (Unsafe, OSError) as fault:
        return Strange(eventids.SEQUENCE, f"no record can be appended: {fault}", Code.PERSISTENCE_FAILED)
    return None


def printable(text: str) -> str:
    """Make a name or path fit to be shown on one line: no controls, no secrets, what is no UTF-8 spelt out."""
    return display(text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace"))
