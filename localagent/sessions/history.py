"""A history that a client pages through: entries cut into parts, an immutable snapshot, its pages (HIST, D65). Pure."""

from collections.abc import Iterator
from typing import Final

from localagent.protocol.codes import Code
from localagent.protocol.limits import LIMITS
from localagent.protocol.measure import compact_bytes
from localagent.protocol.results import HistoryEntry, HistoryPage
from localagent.text.cut import fit, utf8

from .errors import StoreError
from .projection import Entry, Projected

REVISION_BYTES: Final = 32
"""Revisions have one length, so that a page has one overhead, and parts are cut the same in every revision."""
_INDEX_DIGITS: Final = 5
_MAY_GROW: Final = len(str(LIMITS.history_snapshot_parts)) + len("false") - len("0") - len("true")
"""How much longer a part can be than one that is alone: all are cut as if they had the greatest number."""
_COMMA: Final = 1
_BRACKETS: Final = 2


class Cutter:
    """Makes the histories of one session. Entries of closed turns are cut once, however many histories show them."""

    def __init__(self, session_id: str) -> None:
        self._session_id = session_id
        cursor = _cursor("r" * REVISION_BYTES, 0)
        self._overhead = _overhead(session_id, cursor)
        self._parts: list[HistoryEntry] = []
        self._sizes: list[int] = []
        self._bytes = 0
        self._done = 0  # settled entries that were cut

    def history(self, projected: Projected, revision: str) -> "History":
        """Return the history of ``projected`` under a fresh ``revision``.

        ``projected`` must continue the one before: that of the same records and more. Raises StoreError:
        ``history_limit`` above 8 MiB or 10,000 parts (BOUND-18, BOUND-19), ``content_limit`` for an entry that no
        cutting can place (HIST-20), which no text is.
        """
        while self._done < projected.count:
            self._require_room(len(self._parts), self._bytes)
            for part, size in self._cut(projected.settled[self._done]):
                self._parts.append(part)
                self._sizes.append(size)
                self._bytes += size
            self._done += 1
        cut_tail = [each for entry in projected.tail for each in self._cut(entry)]
        tail, sizes = [part for part, _ in cut_tail], [size for _, size in cut_tail]
        self._require_room(len(self._parts) + len(tail), self._bytes + sum(sizes))
        return History(self._session_id, revision, projected.complete, _Shared(self._parts, self._sizes, tail, sizes))

    def _require_room(self, parts: int, size: int) -> None:
        serialized = size + _BRACKETS + max(parts - 1, 0) * _COMMA  # as one JSON array
        if parts > LIMITS.history_snapshot_parts or serialized > LIMITS.history_snapshot_bytes:
            raise StoreError(Code.HISTORY_LIMIT, "more parts or bytes than a snapshot may have")

    def _cut(self, entry: Entry) -> Iterator[tuple[HistoryEntry, int]]:
        """Cut an entry into parts: as large as fits both the content chunk and a page of its own (HIST-29, D65).

        Yields each with its serialized size.
        """
        whole = _part(entry, 0, entry.text, last=True)
        size = compact_bytes(whole)
        room = LIMITS.history_page_bytes - self._overhead - size - _MAY_GROW
        if room >= 0 and utf8(entry.text) <= LIMITS.content_chunk_bytes:
            yield whole, size
            return
        pieces = cut(entry.text, LIMITS.content_chunk_bytes, room + _escaped(entry.text))
        for number, text in enumerate(pieces):
            part = _part(entry, number, text, last=number == len(pieces) - 1)
            yield part, compact_bytes(part)


def _part(entry: Entry, number: int, text: str, *, last: bool) -> HistoryEntry:
    return HistoryEntry(
        kind=entry.kind, last_part=last, message_id=entry.message_id, part=number, partial=entry.partial, text=text
    )


class _Shared:
    """The parts of one history: a stretch of a list that only grows, and a tail of its own."""

    def __init__(
        self, parts: list[HistoryEntry], sizes: list[int], tail: list[HistoryEntry], tail_sizes: list[int]
    ) -> None:
        self._parts, self._sizes, self._tail, self._tail_sizes = parts, sizes, tail, tail_sizes
        self._count = len(parts)

    def __len__(self) -> int:
        return self._count + len(self._tail)

    def size(self, index: int) -> int:
        return self._sizes[index] if index < self._count else self._tail_sizes[index - self._count]

    def between(self, start: int, end: int) -> tuple[HistoryEntry, ...]:
        shared = self._parts[start : min(end, self._count)]
        own = self._tail[max(start - self._count, 0) : max(end - self._count, 0)]
        return (*shared, *own)


class History:
    """One unchanging bounded projection, which ``revision`` denotes (HIST-04)."""

    def __init__(self, session_id: str, revision: str, complete: bool, parts: _Shared) -> None:
        self.revision = revision
        self._session_id = session_id
        self._complete = complete
        self._parts = parts
        self._more = _overhead(session_id, _cursor(revision, 0))
        self._last = _overhead(session_id, None, complete)
        self._starts = {0}

    def page(self, cursor: str | None) -> HistoryPage:
        """Return the page at ``cursor``; the same one whenever it is asked for (BASE-OP-110).

        Raises StoreError(``stale_revision``) for a cursor that was never given out; the history stays as good as it
        was (BASE-OP-109).
        """
        start = 0 if cursor is None else self._start(cursor)
        end = self._end(start)
        following = None if end == len(self._parts) else _cursor(self.revision, end)
        if following is not None:
            self._starts.add(end)
        return HistoryPage(
            complete=following is None and self._complete,
            entries=self._parts.between(start, end),
            next_cursor=following,
            revision=self.revision,
            session_id=self._session_id,
        )

    def _start(self, cursor: str) -> int:
        digits = cursor[-_INDEX_DIGITS:]
        start = int(digits) if digits.isascii() and digits.isdecimal() else -1
        if start not in self._starts or start == 0 or cursor != _cursor(self.revision, start):
            raise StoreError(Code.STALE_REVISION, "a cursor that was never given out")
        return start

    def _end(self, start: int) -> int:
        """Where the page from ``start`` ends: full, but within its bounds (BOUND-16, BOUND-17, BASE-OP-120)."""
        size = 0
        for end in range(start, min(start + LIMITS.history_page_entries, len(self._parts))):
            size += self._parts.size(end) + (_COMMA if end > start else 0)
            last = end == len(self._parts) - 1
            if size + (self._last if last else self._more) > LIMITS.history_page_bytes:
                return end
        return min(start + LIMITS.history_page_entries, len(self._parts))


def cut(text: str, raw_bytes: int, escaped_bytes: int) -> list[str]:
    """Cut ``text`` between characters into pieces within both bounds, each as large as they allow; "" is one piece.

    ``escaped_bytes`` bounds a piece as JSON, quotes not counted. Raises StoreError(``content_limit``) when a character
    alone passes a bound.
    """
    pieces: list[str] = []
    begin = 0
    while begin < len(text) or not pieces:
        end = min(fit(text, begin, raw_bytes), fit(text, begin, escaped_bytes, _escaped))
        if end == begin and text:
            raise StoreError(Code.CONTENT_LIMIT, "a character that fits no part")
        pieces.append(text[begin:end])
        begin = end
    return pieces


def _escaped(text: str) -> int:
    return compact_bytes(text) - _BRACKETS


def _cursor(revision: str, start: int) -> str:
    return f"{revision}.{start:0{_INDEX_DIGITS}d}"


def _overhead(session_id: str, cursor: str | None, complete: bool = False) -> int:
    """The bytes of a page without its entries."""
    page = HistoryPage(
        complete=complete, entries=(), next_cursor=cursor, revision="r" * REVISION_BYTES, session_id=session_id
    )
    return compact_bytes(page)
