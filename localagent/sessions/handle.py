"""An attached session: what may be done with it once its leases are ours."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any, Literal

from localagent.protocol.codes import Code
from localagent.protocol.results import HistoryPage

from . import compaction, leases, paths, records
from .clock import CancelCheck, Clock, never, proceed
from .compaction import Checkpoint, Compacted, Mark
from .errors import AppendFailed, BadRecord, Cancelled, CompactionFailed, Held, Outcome, StoreError, Unsafe
from .eventids import EventIds
from .facts import Facts, Preferences
from .history import Cutter, History
from .journal import Batch, Journal, Receipt
from .ownership import Ownership
from .paths import Root
from .projection import Projection
from .records import Draft, Pen, Record
from .scope import TaskScope


@dataclass(frozen=True, slots=True)
class Desk:
    """What all handles of one child share. ``fresh`` makes revisions."""

    root: Root
    cwd: str
    session_path: str
    clock: Clock
    ids: EventIds
    fresh: Callable[[], str]


class _Reading:
    """All that the records of a session say, as far as they were read or written."""

    def __init__(self, session_id: str) -> None:
        self.projection = Projection()
        self.facts = Facts()
        self.cutter = Cutter(session_id)

    def add(self, record: Record) -> None:
        self.projection.add(record)
        self.facts.add(record)


class Handle:
    """One attached session. Its methods are called by one worker at a time; leases are renewed through the store."""

    def __init__(self, desk: Desk, ownership: Ownership, let_go: Callable[[Ownership], None]) -> None:
        """Made by :class:`.store.Store` alone, which then calls :meth:`refresh`."""
        self.session_id = ownership.session_id
        self.notices: tuple[Literal["cwd_unverified"], ...] = ()
        """What opening has to say about it: ``cwd_unverified``, or nothing (REC-63)."""
        self.preferences: Preferences | None = None
        """The saved selection, as of the last refresh (REC-64)."""
        self.scope: TaskScope | None = None
        """The ceiling on the tools of later turns, as of the last refresh (REC-12)."""
        self._desk, self._ownership, self._let_go = desk, ownership, let_go
        self._journal = Journal(desk.root, self.session_id, desk.clock)
        self._pen = Pen(self.session_id, desk.cwd, desk.session_path)
        self._reading: _Reading | None = None
        self._history: History | None = None
        self._released = False

    @property
    def durable(self) -> bool:
        """Whether the session has a file; a lazy handle has none yet (SESS-19, SESS-24)."""
        return self._ownership.stored

    @property
    def revision(self) -> str | None:
        """The revision that pages are served for; None when only a refresh, or opening again, gives one (EVT-53)."""
        return self._history.revision if self._history is not None else None

    # history

    def refresh(self, cancelled: CancelCheck = never) -> str:
        """Project what is stored now and return the fresh revision (HIST-44, HIST-48).

        What this child has appended extends the last projection; the file is read anew only if it is not what this
        child has left. Raises Cancelled, or StoreError in the order of BASE-OP-06: ``session_missing``,
        ``session_invalid``, ``history_limit`` (also ``content_limit``), ``cwd_mismatch``; then there is no revision.
        """
        self._history = None
        if self._reading is not None and not self._journal.unchanged(cancelled):
            self._reading = None
        reading = self._reading or self._read(cancelled)
        history = reading.cutter.history(reading.projection.snapshot(), self._desk.fresh())
        if self._reading is None:
            self._verify_workspace(reading.facts, cancelled)
            self._reading = reading
        self.preferences, self.scope = reading.facts.preferences, reading.facts.scope
        self._history = history
        return history.revision

    def page(self, revision: str, cursor: str | None, cancelled: CancelCheck = never) -> HistoryPage:
        """Return a page of the history that ``revision`` denotes (HIST-04).

        Raises Cancelled or StoreError(``stale_revision``): for a revision that is not the current one, a cursor that
        was never given out, and a file that was changed, for good then (HIST-46, BASE-OP-124).
        """
        history = self._history
        if history is None or history.revision != revision:
            raise StoreError(Code.STALE_REVISION, "not the current revision")
        if not self._journal.unchanged(cancelled):
            self._history = None
            raise StoreError(Code.STALE_REVISION, "the file was changed")
        return history.page(cursor)

    def _read(self, cancelled: CancelCheck) -> _Reading:
        reading = _Reading(self.session_id)
        try:
            with closing(self._journal.read(cancelled)) as stored:
                for record in stored:
                    reading.add(record)
            self._ownership.stored = True
        except FileNotFoundError:
            if self._ownership.stored:
                raise StoreError(Code.SESSION_MISSING, "the file is gone") from None
        except (BadRecord, Unsafe, OSError) as fault:
            raise StoreError(Code.SESSION_INVALID, str(fault)) from None
        return reading

    def _verify_workspace(self, facts: Facts, cancelled: CancelCheck) -> None:
        """Compare every recorded directory with ours (REC-63, SESS-55 to SESS-58)."""
        for recorded in facts.cwds:
            proceed(cancelled)
            if not paths.is_same_directory(recorded, self._desk.cwd):
                raise StoreError(Code.CWD_MISMATCH, "recorded elsewhere")
        self.notices = ("cwd_unverified",) if self.durable and not facts.cwds else ()

    # appending

    def append(self, drafts: Sequence[Draft], cancelled: CancelCheck = never) -> Receipt:
        """Append records, all or none, and return when they are on the disk (REC-30, REC-31).

        Raises AppendFailed, whose ``outcome`` says what is on the disk, or Cancelled while nothing was written.
        The current revision is stale afterwards, unless nothing was written.
        """
        try:
            return self._append(drafts, cancelled)
        except AppendFailed as fault:
            self._reading = None
            if fault.outcome is Outcome.UNCERTAIN:
                self._history = None
                self._ownership.spoilt = True
            raise
        except (Held, Unsafe, BadRecord, OSError) as fault:
            self._reading = None
            raise AppendFailed(Outcome.REFUSED, str(fault)) from None
        except Cancelled:
            self._reading = None
            raise

    def _append(self, drafts: Sequence[Draft], cancelled: CancelCheck) -> Receipt:
        if self._released or self._ownership.spoilt:
            raise AppendFailed(Outcome.REFUSED, "not ours to write")
        batch = self._batch(drafts, cancelled)
        ownership = self._ownership
        with self._appending(cancelled):
            try:
                receipt, continuous = self._journal.append(batch, ownership.stored, ownership.stands_in)
            except AppendFailed:
                raise
            except BaseException:  # nobody foresaw it, so nobody knows what is on the disk
                ownership.spoilt = True
                raise
            ownership.stored = True
        self._history = None
        if not continuous:
            self._reading = None
        return receipt

    def _batch(self, drafts: Sequence[Draft], cancelled: CancelCheck) -> Batch:
        """Serialise, and add to the projection what readers will see: a record they would refuse is not written.

        So the projection runs ahead of the file; a failure drops it, and then the file speaks.
        """
        if not drafts:
            raise ValueError("an empty batch")
        payloads = [self._pen.payload(draft) for draft in drafts]
        event_ids = self._desk.ids.take(len(drafts), cancelled)
        now = self._desk.clock.wall()
        lines = [
            self._pen.line(draft, payload, event_id, now)
            for draft, payload, event_id in zip(drafts, payloads, event_ids, strict=True)
        ]
        add = self._reading.add if self._reading is not None else Projection().add
        for line in lines:
            add(records.parse(line[:-1], self.session_id))
        return Batch(b"".join(lines), tuple(event_ids), self._desk.fresh())

    @contextmanager
    def _appending(self, cancelled: CancelCheck) -> Iterator[None]:
        """Hold the append mutex and the append lease (REC-30). Raises Held, Unsafe, OSError or Cancelled."""
        desk = self._desk
        append_lease = leases.waiting(desk.root.sessions, f"{self.session_id}.jsonl", desk.clock, cancelled)
        with self._ownership.appending, append_lease:
            yield

    # compaction

    def mark(self, keep: int = 0, cancelled: CancelCheck = never) -> Mark:
        """Note the file as it is, before a summary of it is asked for; the last ``keep`` records are to stay (REC-44).

        What is appended until :meth:`compact` stays as well. Raises Cancelled, or CompactionFailed: also when there
        would be no record to remove.
        """
        with self._compacting(cancelled):
            return compaction.mark(self._desk.root, self.session_id, keep, cancelled)

    def compact(self, checkpoint: Checkpoint, cancelled: CancelCheck = never) -> Compacted:
        """Put a checkpoint in the place of the records before the mark, whose bytes go to ``.history/`` (REC-44).

        Afterwards there is no revision until the next refresh, which reads the new file, and appends go on there.
        Raises CompactionFailed, whose ``replaced`` says which file stands, or Cancelled: the old one.
        """
        try:
            with self._compacting(cancelled):
                done = compaction.replace(
                    self._desk.root,
                    self.session_id,
                    checkpoint,
                    self._desk.session_path,
                    self._checkpoint_line(cancelled),
                    self._ownership.stands_in,
                    cancelled,
                )
        except CompactionFailed as fault:
            if fault.replaced:
                self._start_anew()
                self._ownership.spoilt = True
            raise
        self._start_anew()
        return done

    @contextmanager
    def _compacting(self, cancelled: CancelCheck) -> Iterator[None]:
        """Hold what :meth:`_appending` holds. Raises CompactionFailed for whatever else goes wrong, and Cancelled."""
        if self._released or self._ownership.spoilt:
            raise CompactionFailed("not ours to write")
        try:
            with self._appending(cancelled):
                yield
        except (Held, Unsafe, BadRecord, StoreError, OSError) as fault:
            raise CompactionFailed(str(fault)) from None

    def _checkpoint_line(self, cancelled: CancelCheck) -> Callable[[Mapping[str, Any]], bytes]:
        def line(payload: Mapping[str, Any]) -> bytes:
            draft = Draft("compaction", payload)
            event_id = self._desk.ids.take(1, cancelled)[0]
            return self._pen.line(draft, self._pen.payload(draft), event_id, self._desk.clock.wall())

        return line

    def _start_anew(self) -> None:
        """Forget what was read and written: another file stands in its place."""
        self._journal = Journal(self._desk.root, self.session_id, self._desk.clock)
        self._history = self._reading = None

    def release(self) -> None:
        """Let the session go. Its leases go with the last handle that shares them (LEASE-07)."""
        if not self._released:
            self._released = True
            self._history = self._reading = None
            self._let_go(self._ownership)
