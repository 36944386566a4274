"""A turn's records on their way into the store.

``required`` records must be on disk before the turn goes on; if they cannot be, the turn fails (REC-33). ``optional``
ones are tried. The text of the answer is buffered: chunk records are cut at 4,096 bytes and wait for each other, 50 ms
at most, or for the next record of another kind, which they precede in the same append. They leave by ``later``, which
may return before they are on disk: the stream never waits for a sync.

An append that fails is never hidden: the turn is degraded from then on, the user is told, and one ``turn_status``
``incomplete`` is tried. What it held is lost to the history. Chunk records after that wait for the next record of
another kind, so that a dead disk costs an attempt for each of those, not for each chunk.
"""

import contextlib
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from localagent.protocol.codes import Code
from localagent.sessions.records import Draft
from localagent.text.cut import fit, utf8

from .provider import TurnFailure


class Receipt(Protocol):
    """Proof that a batch is on disk. Only the store makes one: :class:`localagent.sessions.journal.Receipt`."""

    @property
    def message_id(self) -> str:
        """The history entry that the first record of the batch becomes (EVT-13)."""
        ...

    @property
    def revision(self) -> str:
        """Names the history with the batch in it."""
        ...


class Handle(Protocol):
    """What a turn needs of its session: :class:`localagent.sessions.handle.Handle`, or a seam in a test."""

    def append(self, drafts: Sequence[Draft]) -> Receipt:
        """Append records durably, all or none. An exception means that nothing may be acknowledged (REC-32)."""
        ...

    def refresh(self) -> str:
        """Project what is stored now and return its fresh revision; an exception means that there is none."""
        ...


Later = Callable[[Sequence[Draft]], Callable[[], object]]
"""Begin an append. What comes back waits until it is done and raises what it failed with, like a future's ``result``.

Appends are done in the order in which they were begun, one at a time. Nothing else is appended meanwhile.
"""

CHUNK_BYTES: Final = 4096
BATCH_RECORDS: Final = 64
BATCH_MS: Final = 50.0
LOST: Final = "A part of this turn could not be stored; its history is incomplete."


def at_once(handle: Handle) -> Later:
    """Appends that are done when they return, for a caller without a thread to spare."""

    def append(drafts: Sequence[Draft]) -> Callable[[], object]:
        handle.append(drafts)
        return lambda: None

    return append


class Scribe:
    """Writes the records of one turn. ``failed`` is called, with a safe summary, for each append that failed."""

    def __init__(
        self, handle: Handle, failed: Callable[[str], None], clock: Callable[[], float], later: Later | None = None
    ) -> None:
        self._handle, self._failed, self._clock = handle, failed, clock
        self._later = later or at_once(handle)
        self._begun: list[Callable[[], object]] = []
        self._chunks: list[Draft] = []
        self._due: float | None = None
        self._text: list[str] = []
        self._bytes = 0
        self._cut_at = CHUNK_BYTES
        self._marked = False
        self.degraded = False

    # text

    def say(self, text: str) -> None:
        """Buffer a piece of the answer, cleaned and redacted."""
        self._text.append(text)
        self._bytes += utf8(text)
        if self._bytes >= self._cut_at:
            self._cut()
        if self._chunks:
            self.keep_time()

    def end_segment(self) -> None:
        """Cut what is buffered, for the segment ends here. A blank rest is dropped (store section 2.3)."""
        rest = "".join(self._text)
        if rest.strip():
            self._chunks.append(Draft("assistant_chunk", {"text": rest}))
        self._text, self._bytes, self._cut_at = [], 0, CHUNK_BYTES

    def keep_time(self, wait_ms: float = 0) -> None:
        """Let chunk records go when there are many, or when the oldest would be overdue ``wait_ms`` from now."""
        if not self._chunks or self.degraded:
            return
        now = self._clock()
        if self._due is None:
            self._due = now + BATCH_MS
        if len(self._chunks) >= BATCH_RECORDS or now + wait_ms >= self._due:
            batch = self._take()
            self._try(lambda: self._begun.append(self._later(batch)))

    def _cut(self) -> None:
        """Cut chunk records of at most 4,096 bytes, at white space: there a cut makes no secret, nor breaks a mark.

        No record is blank, and the last character that is not stays, so that no blank rest is ever lost behind it.
        """
        text, at, left = "".join(self._text), 0, self._bytes
        last = len(text.rstrip()) - 1
        while left >= CHUNK_BYTES:
            end = min(fit(text, at, CHUNK_BYTES), last)
            white = max(text.rfind(" ", at, end), text.rfind("\n", at, end)) + 1
            end = white if text[at:white].strip() else end
            part = text[at:end]
            if not part.strip():
                break
            self._chunks.append(Draft("assistant_chunk", {"text": part}))
            at, left = end, left - utf8(part)
        self._text, self._bytes = [text[at:]], left
        self._cut_at = CHUNK_BYTES if left < CHUNK_BYTES else left + CHUNK_BYTES

    # records

    def required(self, *drafts: Draft) -> Receipt:
        """Append records without which the turn cannot go on. Raises TurnFailure when that fails."""
        self._settle()
        batch = self._take(*drafts)
        try:
            return self._handle.append(batch)
        except Exception:
            self.degraded = True
            self._failed(LOST)
            raise TurnFailure(Code.PERSISTENCE_FAILED) from None

    def optional(self, *drafts: Draft) -> None:
        """Append records that the turn can do without."""
        self._settle()
        batch = self._take(*drafts)
        self._try(lambda: self._handle.append(batch))

    def close(self, draft: Draft) -> None:
        """Append the last record of the turn. If it claims an answer, an ``incomplete`` still owed qualifies it."""
        self._settle()
        owed = self.degraded and not self._marked and draft.kind != "turn_status"
        batch = self._take(draft, *([_incomplete("")] if owed else []))
        self._try(lambda: self._handle.append(batch), draft.payload.get("text", ""))

    def _take(self, *drafts: Draft) -> list[Draft]:
        batch, self._chunks, self._due = [*self._chunks, *drafts], [], None
        return batch

    def _settle(self) -> None:
        """End the segment, and wait for the appends that were begun; what failed comes out here."""
        self.end_segment()
        begun, self._begun = self._begun, []
        self._try(lambda: _wait_for(begun))

    def _try(self, append: Callable[[], object], answer: str = "") -> None:
        try:
            append()
        except Exception:
            self.degraded = True
            self._mark(answer)
            self._failed(LOST)

    def _mark(self, answer: str) -> None:
        """Try to mark the turn as incomplete, unless it is. ``answer`` is what the failed append would have stored."""
        if not self._marked:
            with contextlib.suppress(Exception):  # the user is told of the first failure, which is enough
                self._handle.append([_incomplete(answer)])
                self._marked = True


def _incomplete(answer: str) -> Draft:
    return Draft("turn_status", {"assistant_text": answer, "status": "incomplete"})


def _wait_for(begun: Sequence[Callable[[], object]]) -> None:
    """Wait for all of them, then raise what the first failure was."""
    faults = []
    for done in begun:
        try:
            done()
        except Exception as fault:
            faults.append(fault)
    if faults:
        raise faults[0]
