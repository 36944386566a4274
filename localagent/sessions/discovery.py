"""``session.discover``: a scan of all sessions of this workspace in bounded steps, however many there are (EXT-DISC).

A request is a step (EXT-OP-07): it goes on where the last one stopped and yields at the first bound it reaches. A scan
holds the verified directory, one iterator over it, one reader with what it has of one record, one sketch, and at most
one entry that found no room in the page before (EXT-DISC-30). Names are not kept: both passes over the directory add up
a signature of every entry, in any order, and the sums must agree (EXT-DISC-65 to EXT-DISC-67).
"""

import itertools
import os
from collections.abc import Callable
from typing import Final, Literal

from localagent.protocol.codes import Code
from localagent.protocol.limits import LIMITS
from localagent.protocol.measure import compact_bytes
from localagent.protocol.results import DiscoverPage, ListingEntry

from . import paths
from .clock import SYSTEM, CancelCheck, Clock, never
from .errors import BadRecord, Cancelled, StoreError, Unsafe
from .inventory import (
    OMITTED,
    Attachment,
    Reader,
    Signature,
    entry_signature,
    is_any_there,
    locks_of,
    session_of,
    signature,
    stale,
)
from .paths import Root
from .sketch import Elsewhere, Sketch, Workspace

Progress = Literal[
    "directory_work",
    "record_work",
    "byte_work",
    "inventory_validation",
    "deadline",
    "page_entries",
    "page_bytes",
    "complete",
]
"""Why a step ended (EXT-OP-05). ``history_work`` is left out: every way to stop inside a history has another name."""

_BOUNDS: Final = LIMITS.discover
_BATCH: Final = 32  # entries of the second pass, of which no file is read, between two looks at token and clock
_COMMA: Final = 1


class Discovery:
    """The one scan of a child, apart from its listing snapshot (EXT-DISC-25). Used by one worker at a time."""

    def __init__(self, root: Root, cwd: str, fresh: Callable[[], str], clock: Clock = SYSTEM) -> None:
        """Take a prepared root and the canonical ``cwd``. ``fresh`` makes revisions and cursors, 64 bytes at most."""
        self._root, self._workspace = root, Workspace(lambda recorded: paths.is_same_directory(recorded, cwd))
        self._fresh, self._clock = fresh, clock
        self._scan: _Scan | None = None
        self._revision = self._cursor = ""

    def page(
        self,
        revision: str | None,
        cursor: str | None,
        limit: int,
        attachment: Attachment,
        cancelled: CancelCheck = never,
    ) -> DiscoverPage:
        """Begin a scan, or go on with it: one step, at most ``limit`` entries in the order of the directory.

        Raises Cancelled or StoreError: ``discovery_unavailable``, ``discovery_record_bytes``, ``discovery_page_bytes``,
        or ``stale_revision`` for whatever changed, and for any pair but the one given out last (EXT-OP-10). Whatever it
        raises, the scan is lost and only a fresh one helps (EXT-DISC-44 to EXT-DISC-50, EXT-OP-11).
        """
        try:
            scan = self._begun(revision, cursor, attachment)
            progress = scan.step(limit, self._revision, attachment, _Step(self._clock, cancelled))
        except (OSError, Unsafe) as fault:
            self.abandon()
            raise StoreError(Code.DISCOVERY_UNAVAILABLE, str(fault)) from None
        except BaseException:
            self.abandon()
            raise
        page = self._page(scan, progress)
        if page.complete:
            self.abandon()
        return page

    def abandon(self) -> None:
        """Give the scan up, and all it holds open."""
        scan, self._scan = self._scan, None
        if scan is not None:
            scan.close()

    def _begun(self, revision: str | None, cursor: str | None, attachment: Attachment) -> "_Scan":
        if revision is None or cursor is None:
            self.abandon()
            self._revision = self._fresh()
            self._scan = _Scan(self._root, self._workspace, attachment)
        elif self._scan is None or (revision, cursor) != (self._revision, self._cursor):
            raise stale("not the cursor that was given out last")
        return self._scan

    def _page(self, scan: "_Scan", progress: Progress) -> DiscoverPage:
        complete = progress == "complete"
        self._cursor = self._fresh()
        return DiscoverPage(
            complete=complete,
            next_cursor=None if complete else self._cursor,
            notices=OMITTED if scan.omitted else (),
            progress=progress,
            recovery="none" if complete else "continue_cursor",
            revision=self._revision,
            sessions=tuple(scan.entries),
        )


def _overhead(revision: str) -> int:
    """The bytes of the largest page without entries."""
    return compact_bytes(
        DiscoverPage(
            complete=False,
            next_cursor="c" * LIMITS.id_bytes,
            notices=OMITTED,
            progress="inventory_validation",
            recovery="continue_cursor",
            revision=revision,
            sessions=(),
        )
    )


class _Step:
    """The work of one request, counted afresh (EXT-OP-07). Reached means that the bound is used up, not passed."""

    def __init__(self, clock: Clock, cancelled: CancelCheck) -> None:
        self._steady, self._cancelled = clock.steady, cancelled
        self._deadline = clock.steady() + _BOUNDS.step_ms / 1000
        self.entries = self.lines = self.bytes = 0
        self.late = False

    def proceed(self) -> None:
        """Between two units of work. Raises Cancelled. At least one is done, however late it is: scans end."""
        if self._cancelled():
            raise Cancelled
        self.late = self._steady() >= self._deadline


class _Scan:
    """The state of a scan between its steps."""

    def __init__(self, root: Root, workspace: Workspace, attachment: Attachment) -> None:
        """Open the directory and begin its first pass. Raises OSError or Unsafe."""
        self._root, self._workspace, self._attachment = root, workspace, attachment
        self.entries: list[ListingEntry] = []
        """The entries of this step's page."""
        self.omitted = False
        """Whether anything was left out as invalid so far (EXT-OP-19)."""
        self._waiting: ListingEntry | None = None
        self._reading: tuple[Reader, Sketch] | None = None
        self._validating = False
        self._expected = self._sum = 0
        self._size = 0
        with root.sessions() as directory:
            self._directory = os.dup(directory)
        try:
            self._identity = _identity(self._directory)
            self._names = os.scandir(self._directory)  # shares its place in the directory; a new one begins anew
        except BaseException:
            os.close(self._directory)
            raise

    def close(self) -> None:
        """Let go of everything."""
        self._drop_reader()
        self._names.close()
        os.close(self._directory)

    # one step

    def step(self, limit: int, revision: str, attachment: Attachment, step: _Step) -> Progress:
        """Work up to the first bound; the page is in ``entries``. Raises OSError, Unsafe, Cancelled, StoreError."""
        self._workspace.forget()
        self._require_unchanged(attachment)
        self.entries, self._size = [], _overhead(revision)
        if self._waiting is not None:
            self._put(self._waiting)
        room = min(limit, _BOUNDS.page_entries)
        progress = self._reached(room, step)
        while progress is None:
            if self._unit(step):
                progress = "complete"
                break
            step.proceed()
            progress = self._reached(room, step)
        self._require_unchanged(attachment)
        return progress

    def _reached(self, room: int, step: _Step) -> Progress | None:
        """The strongest bound that is reached (EXT-OP-06)."""
        if len(self.entries) >= room:
            return "page_entries"
        if step.bytes >= _BOUNDS.step_bytes:
            return "byte_work"
        if step.lines >= _BOUNDS.step_lines:
            return "record_work"
        if step.entries >= _BOUNDS.step_directory_entries:
            return "inventory_validation" if self._validating else "directory_work"
        if step.late:
            return "deadline"
        return "page_bytes" if self._waiting is not None else None

    def _unit(self, step: _Step) -> bool:
        """Do the next piece of work: one read and its lines, or one directory entry. True when all is done."""
        if self._reading is not None:
            self._read(*self._reading, step)
            return False
        if self._validating:
            return self._validate(step)
        entry = next(self._names, None)
        if entry is None:
            self._validating, self._expected, self._sum = True, self._sum, 0
            self._names = os.scandir(self._directory)
            return False
        step.entries += 1
        self._enumerated(entry)
        return False

    # the directory

    def _enumerated(self, entry: "os.DirEntry[str]") -> None:
        """Take an entry of the first pass, and begin to read the session that it may be."""
        session_id = session_of(entry.name)
        if session_id is not None and entry.is_file(follow_symlinks=False):
            try:
                self._reading = Reader(session_id, self._directory), Sketch(session_id, self._workspace)
            except Unsafe:
                pass
            else:
                self._add_up(entry.name, self._reading[0].seen)
                return
        self._add_up_unread(entry.name)
        self.omitted = self.omitted or session_id is not None

    def _validate(self, step: _Step) -> bool:
        """Take some entries of the second pass. True at its end, if it has found what the first one did."""
        most = min(_BATCH, _BOUNDS.step_directory_entries - step.entries)
        before = step.entries
        for entry in itertools.islice(self._names, most):
            step.entries += 1
            self._add_up_unread(entry.name)
        if step.entries - before == most:
            return False
        if self._sum != self._expected:
            raise stale("the inventory changed")
        return True

    def _add_up_unread(self, name: str) -> None:
        try:
            found = os.stat(name, dir_fd=self._directory, follow_symlinks=False)
        except FileNotFoundError:
            raise stale("an entry vanished") from None
        self._add_up(name, entry_signature(name, found))

    def _add_up(self, name: str, seen: Signature) -> None:
        """Add an entry to the sum of this pass: 64 bits each, by a key of this process."""
        self._sum += hash((name, seen))

    def _require_unchanged(self, attachment: Attachment) -> None:
        """Compare all that a step relies on, before it and after it (EXT-DISC-64). Raises also OSError, Unsafe."""
        if attachment != self._attachment:
            raise stale("another attachment")
        with self._root.sessions() as directory:
            if _identity(directory) != self._identity:
                raise stale("the directory changed")
        if self._reading is not None:
            self._reading[0].require_unchanged()

    # one history

    def _read(self, reader: Reader, sketch: Sketch, step: _Step) -> None:
        """Take the lines that are left, read once more and take those; at the end, make the entry."""
        try:
            if self._take_lines(reader, sketch, step):
                return
            if reader.rest:
                step.bytes += len(reader.fill(min(_BOUNDS.reader_bytes, _BOUNDS.step_bytes - step.bytes)))
                if self._take_lines(reader, sketch, step) or reader.rest:
                    return
            reader.require_unchanged()
        except (BadRecord, OSError):
            self.omitted = True
        except Elsewhere:
            pass  # the rest of it is not read (EXT-DISC-55)
        else:
            self._put(sketch.entry(self._busy(sketch.session_id)))
        self._drop_reader()

    @staticmethod
    def _take_lines(reader: Reader, sketch: Sketch, step: _Step) -> bool:
        """Take what was read. True when that reached the bound of lines, and some may be left for the next step."""
        left = _BOUNDS.step_lines - step.lines
        try:
            for line in reader.lines:
                left -= 1
                sketch.add(line)
                if not left:
                    return True
        finally:
            step.lines = _BOUNDS.step_lines - left
        return False

    def _drop_reader(self) -> None:
        reading, self._reading = self._reading, None
        if reading is not None:
            reading[0].close()

    def _busy(self, session_id: str) -> bool:
        """Tell whether a lease of somebody else is there, dead or alive (EXT-DISC-19, LEASE-09)."""
        if session_id == self._attachment.session_id:  # its leases are our own (EXT-DISC-20)
            return False
        return is_any_there(locks_of(session_id), self._directory)

    def _put(self, entry: ListingEntry) -> None:
        """Put an entry on the page, or let it wait for the next. Raises StoreError(``discovery_page_bytes``)."""
        size = self._size + compact_bytes(entry) + (_COMMA if self.entries else 0)
        if size <= _BOUNDS.page_bytes:
            self.entries.append(entry)
            self._size, self._waiting = size, None
        elif self.entries:
            self._waiting = entry
        else:
            raise StoreError(Code.DISCOVERY_PAGE_BYTES, "an entry that fits no page")


def _identity(directory: int) -> Signature:
    return signature(os.fstat(directory))
