"""``session.list``: one bounded snapshot of the sessions of this workspace, served in pages (LIST).

A scan goes over the directory, reads every history in the order of its id, and goes over the directory again: what is
not as it was makes the scan stale. Each page is a scan of its own, compared with the first by a fingerprint over file
identities, the bytes that were read, leases, the attachment and the entries (LIST-56, LIST-57). A bound that is passed
ends the scan without a page (LIST-84, LIST-85).

A history of another workspace is read up to the record that says so, as in a discovery (EXT-DISC-55): what else is in
it does not matter here, and is watched by the file's identity alone.
"""

import hashlib
import os
import stat
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from localagent.protocol.codes import Code
from localagent.protocol.limits import LIMITS
from localagent.protocol.measure import compact_bytes
from localagent.protocol.results import ListingEntry, ListingPage

from . import files, paths
from .clock import SYSTEM, CancelCheck, Clock, never, proceed
from .errors import BadRecord, StoreError, Unsafe
from .inventory import OMITTED, Attachment, Reader, Signature, locks_of, session_of, signature, stale
from .lines import BLOCK
from .paths import Root
from .sketch import Elsewhere, Sketch, Workspace

_COMMA: Final = 1
_INDEX_DIGITS: Final = 3


class Listing:
    """The one listing snapshot of a child (LIST-55). Used by one worker at a time."""

    def __init__(self, root: Root, cwd: str, fresh: Callable[[], str], clock: Clock = SYSTEM) -> None:
        """Take a prepared root and the canonical ``cwd``. ``fresh`` makes revisions, of 60 bytes at most."""
        self._root, self._workspace = root, Workspace(lambda recorded: paths.is_same_directory(recorded, cwd))
        self._fresh, self._clock = fresh, clock
        self._snapshot: _Snapshot | None = None

    @property
    def revision(self) -> str | None:
        """The revision that pages are served for; None when only a fresh listing gives one."""
        return self._snapshot.revision if self._snapshot is not None else None

    def page(
        self,
        revision: str | None,
        cursor: str | None,
        limit: int,
        attachment: Attachment,
        cancelled: CancelCheck = never,
    ) -> ListingPage:
        """Return a page of at most ``limit`` entries: the first of a fresh snapshot, or that at ``cursor``.

        Raises Cancelled or StoreError. Fresh: ``discovery_limit``, ``discovery_unavailable``, ``stale_revision`` when
        the store changed meanwhile; each drops the snapshot before (BASE-OP-127). Continuation: ``stale_revision``
        alone; for good when anything is not as it was (LIST-59, BASE-OP-187), while a foreign revision or a cursor
        that was never given out leaves the snapshot as it is (BASE-OP-126), and so does a cancellation.
        """
        if revision is None or cursor is None:
            self._snapshot = None
            found = self._scan(attachment, cancelled)
            snapshot = _Snapshot(self._fresh(), found)
            page = snapshot.page(0, limit)
            self._snapshot = snapshot
            return page
        known = self._snapshot
        if known is None or known.revision != revision:
            raise stale("not the current revision")
        start = known.start(cursor)
        try:
            if self._scan(attachment, cancelled).fingerprint != known.found.fingerprint:
                raise stale("the store changed")
        except StoreError as fault:
            self._snapshot = None
            raise stale(str(fault)) from None
        return known.page(start, limit)

    def _scan(self, attachment: Attachment, cancelled: CancelCheck) -> "_Found":
        self._workspace.forget()
        try:
            return _Scan(self._root, self._workspace, attachment, _Meter(self._clock, cancelled)).run()
        except (OSError, Unsafe) as fault:
            raise StoreError(Code.DISCOVERY_UNAVAILABLE, str(fault)) from None


class _Found(NamedTuple):
    """What a scan found: at most 256 entries by ascending id, and whether anything was omitted as invalid."""

    entries: tuple[ListingEntry, ...]
    omitted: bool
    fingerprint: bytes


class _Snapshot:
    """The entries that a revision denotes, and the cursors that were given out for it."""

    def __init__(self, revision: str, found: _Found) -> None:
        self.revision, self.found = revision, found
        self._sizes = [compact_bytes(entry) for entry in found.entries]
        self._starts: set[int] = set()

    def start(self, cursor: str) -> int:
        """Where the page at ``cursor`` begins. Raises StoreError(``stale_revision``) for one never given out."""
        for start in self._starts:
            if cursor == self._cursor(start):
                return start
        raise stale("a cursor that was never given out")

    def page(self, start: int, limit: int) -> ListingPage:
        """The page from ``start``. Raises StoreError(``discovery_limit``) if not even one entry fits (BASE-OP-186)."""
        end = self._end(start, limit)
        page = self._page(start, end)
        if page.next_cursor is not None:
            self._starts.add(end)
        return page

    def _end(self, start: int, limit: int) -> int:
        """Where the page from ``start`` ends: ``limit`` entries further, or earlier for want of bytes (D77)."""
        last = min(start + min(limit, LIMITS.discovery_page_entries), len(self.found.entries))
        size = compact_bytes(self._page(start, start))
        for end in range(start, last):
            size += self._sizes[end] + _COMMA  # one comma more than there are
            if size - _COMMA > LIMITS.discovery_page_bytes:
                if end == start:
                    raise StoreError(Code.DISCOVERY_LIMIT, "an entry that fits no page")
                return end
        return last

    def _page(self, start: int, end: int) -> ListingPage:
        following = None if end == len(self.found.entries) else self._cursor(end)
        return ListingPage(
            complete=following is None,
            next_cursor=following,
            notices=OMITTED if self.found.omitted else (),
            revision=self.revision,
            sessions=self.found.entries[start:end],
        )

    def _cursor(self, start: int) -> str:
        return f"{self.revision}.{start:0{_INDEX_DIGITS}d}"


class _Meter:
    """The work of one scan against its bounds (LIST-72 to LIST-78). Whatever passes one is ``discovery_limit``."""

    def __init__(self, clock: Clock, cancelled: CancelCheck) -> None:
        self._steady, self._cancelled = clock.steady, cancelled
        self._deadline = clock.steady() + LIMITS.discovery_scan_ms / 1000
        self._bytes = self._lines = 0
        self._file_bytes = self._file_lines = 0

    def proceed(self) -> None:
        """Between files, entries and reads. Raises Cancelled, or StoreError when 2,000 ms have passed (LIST-81)."""
        proceed(self._cancelled)
        if self._steady() > self._deadline:
            raise _limit("time")

    def begin_file(self) -> None:
        """The next history."""
        self._file_bytes = self._file_lines = 0

    def room(self) -> int:
        """How many bytes may be read of this history now, one at least; asked while there are some to be read."""
        file, scan = LIMITS.discovery_session_bytes - self._file_bytes, LIMITS.discovery_scan_bytes - self._bytes
        if file <= 0 or scan <= 0:
            raise _limit("bytes")
        return min(file, scan)

    def read(self, count: int) -> None:
        """So many bytes were read."""
        self._file_bytes += count
        self._bytes += count

    def lines_left(self) -> int:
        """How many lines more may be looked at of this history."""
        file, scan = LIMITS.discovery_session_lines - self._file_lines, LIMITS.discovery_scan_lines - self._lines
        return min(file, scan)

    def looked_at(self, lines: int) -> None:
        """So many lines were looked at."""
        self._file_lines += lines
        self._lines += lines

    def charge_file(self) -> None:
        """A read failed, and nobody knows what it took: this history counts as read in full (LIST-79)."""
        self._bytes += LIMITS.discovery_session_bytes - self._file_bytes
        self._lines += LIMITS.discovery_session_lines - self._file_lines
        if self._bytes > LIMITS.discovery_scan_bytes or self._lines > LIMITS.discovery_scan_lines:
            raise _limit("work on what cannot be read")


def _limit(what: str) -> StoreError:
    return StoreError(Code.DISCOVERY_LIMIT, f"too much: {what}")


class _Inventory(NamedTuple):
    """The directory as one pass sees it: which it is, the session files, and the leases of sessions in it."""

    directory: tuple[int, ...]
    sessions: dict[str, Signature]
    leases: dict[str, tuple[bool, ...]]

    def busy(self, session_id: str) -> bool:
        """Tell whether a lease of somebody else is there, dead or alive (LIST-42, LIST-43)."""
        return any(self.leases.get(session_id, ()))


class _Scan:
    """One scan, from nothing to all of it."""

    def __init__(self, root: Root, workspace: Workspace, attachment: Attachment, meter: _Meter) -> None:
        self._root, self._workspace, self._attachment, self._meter = root, workspace, attachment, meter
        self._fingerprint = hashlib.sha256()
        self._entries: list[ListingEntry] = []
        self._omitted = False

    def run(self) -> _Found:
        """Scan. Raises OSError, Unsafe, Cancelled, StoreError."""
        inventory = self._inventory()
        with self._root.sessions() as directory:
            for session_id in sorted(inventory.sessions):
                self._meter.proceed()
                self._history(session_id, inventory, directory)
        if self._inventory() != inventory:
            raise stale("the inventory changed")
        self._note(self._attachment, inventory.directory, sorted(inventory.leases.items()), self._entries)
        return _Found(tuple(self._entries), self._omitted, self._fingerprint.digest())

    def _note(self, *facts: object) -> None:
        self._fingerprint.update(repr(facts).encode())

    def _inventory(self) -> _Inventory:
        """One pass: at most 4,096 iterations, whatever the names are (LIST-68 to LIST-70)."""
        sessions: dict[str, Signature] = {}
        names: set[str] = set()
        iterations = 0
        with self._root.sessions() as directory, os.scandir(directory) as entries:
            for entry in entries:
                iterations += 1
                if iterations > LIMITS.discovery_directory_entries:
                    raise _limit("directory entries")
                self._meter.proceed()
                session_id = session_of(entry.name)
                names.add(entry.name)
                if session_id is not None:
                    sessions[session_id] = _signature(entry.name, directory)
            mode, inode, device, _, owner, group = os.fstat(directory)[:6]
        leases = {
            session_id: present
            for session_id in sessions
            if session_id != self._attachment.session_id  # its leases are our own (LIST-44)
            if any(present := tuple(lock in names for lock in locks_of(session_id)))
        }
        return _Inventory((mode, inode, device, owner, group), sessions, leases)

    def _history(self, session_id: str, inventory: _Inventory, directory: int) -> None:
        """Read one history, and list it, omit it or pass it over."""
        seen = inventory.sessions[session_id]
        self._note(session_id, seen)
        self._meter.begin_file()
        sketch = Sketch(session_id, self._workspace)
        if not stat.S_ISREG(seen[stat.ST_MODE]):
            self._omitted = True
            return
        try:
            reader = Reader(session_id, directory)
        except Unsafe:
            self._omitted = True
            return
        try:
            if reader.seen != seen:
                raise stale("a session changed")
            self._read(reader, sketch)
        except BadRecord:
            self._omitted = True
        except OSError:
            self._meter.charge_file()
            self._omitted = True
        except Elsewhere:
            pass
        else:
            if len(self._entries) == LIMITS.discovery_sessions:
                raise _limit("sessions")
            self._entries.append(sketch.entry(inventory.busy(session_id)))
        finally:
            reader.close()

    def _read(self, reader: Reader, sketch: Sketch) -> None:
        content = hashlib.sha256()
        try:
            while reader.rest:
                self._meter.proceed()
                block = reader.fill(min(BLOCK, self._meter.room()))
                self._meter.read(len(block))
                content.update(block)
                self._add(reader.lines, sketch)
            reader.require_unchanged()
        finally:
            self._fingerprint.update(content.digest())

    def _add(self, lines: Iterable[bytes], sketch: Sketch) -> None:
        allowed = left = self._meter.lines_left()
        try:
            for line in lines:
                if not left:
                    raise _limit("lines")
                left -= 1
                sketch.add(line)
        finally:
            self._meter.looked_at(allowed - left)


def _signature(name: str, directory: int) -> Signature:
    found = files.status(name, directory)
    if found is None:
        raise stale("an entry vanished")
    return signature(found)
