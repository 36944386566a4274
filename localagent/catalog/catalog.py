"""The one catalog snapshot of a child: ``model.catalog`` and ``model.catalog.status`` page it, selection is held to it.

Each page is a scan of its own, compared with the first by fingerprint; what differs, or cannot be scanned any more,
makes the snapshot stale for good (CAT-45 to CAT-48). Both methods continue each other's pages (EXT-STATUS-33,
EXT-OP-29); a cursor may be used again while its snapshot lives (BASE-OP-126).
"""

from collections.abc import Callable, Iterable
from typing import Final, TypeVar

from localagent.protocol.codes import Code
from localagent.protocol.limits import LIMITS
from localagent.protocol.measure import compact_bytes
from localagent.protocol.results import CatalogPage, CatalogStatusPage
from localagent.sessions.clock import SYSTEM, CancelCheck, Clock, never
from localagent.sessions.errors import StoreError
from localagent.sessions.paths import Root
from localagent.settings.snapshot import Provider

from .choices import Choices
from .scan import Found, Readiness, Seen, look

_COMMA: Final = 1
_INDEX_DIGITS: Final = 4

_P = TypeVar("_P", CatalogPage, CatalogStatusPage)
_Page = Callable[[int, int], CatalogPage | CatalogStatusPage]


class Catalog:
    """The snapshot, and the scans behind it. Used by one worker at a time."""

    def __init__(
        self,
        root: Root,
        providers: Iterable[Provider],
        readiness: Readiness,
        fresh: Callable[[], str],
        clock: Clock = SYSTEM,
    ) -> None:
        """Take a prepared root and the admitted providers. ``fresh`` makes revisions, of 59 bytes at most."""
        self._root, self._providers, self._readiness = root, tuple(providers), readiness
        self._fresh, self._clock = fresh, clock
        self._snapshot: _Snapshot | None = None
        self._found: Found | None = None
        """What was found last. The same bytes, with the same providers asked and ready, need not be judged again."""

    @property
    def revision(self) -> str | None:
        """The revision that pages and selections are held to; None when only a fresh catalog gives one."""
        return self._snapshot.revision if self._snapshot is not None else None

    @property
    def choices(self) -> Choices | None:
        """What the current revision denotes, as it was scanned last."""
        return self._snapshot.found.choices if self._snapshot is not None else None

    def page(
        self, revision: str | None, cursor: str | None, limit: int, selected: str | None, cancelled: CancelCheck = never
    ) -> CatalogPage:
        """``model.catalog``: at most ``limit`` choices, the first ones of a fresh snapshot or those at ``cursor``.

        ``selected`` is the provider of the current selection; it counts for a fresh snapshot alone (BASE-OP-141).
        Raises Cancelled or StoreError. Fresh: ``catalog_limit``, ``catalog_unavailable``; each drops the snapshot
        before, and so does a cancellation (BASE-OP-127). Continuation: ``stale_catalog`` alone; for good when anything
        is not as it was (CAT-46, CAT-47), while a foreign revision or a cursor that was never given out leaves the
        snapshot as it is, and so does a cancellation.
        """
        snapshot, start = self._at(revision, cursor, selected, cancelled)
        end = snapshot.end(start, limit, snapshot.catalog_page)
        return snapshot.given(end, snapshot.catalog_page(start, end))

    def status(
        self, revision: str | None, cursor: str | None, limit: int, selected: str | None, cancelled: CancelCheck = never
    ) -> CatalogStatusPage:
        """``model.catalog.status``: as :meth:`page`, with the same array of provider statuses on every page."""
        snapshot, start = self._at(revision, cursor, selected, cancelled)
        end = snapshot.end(start, limit, snapshot.status_page)
        return snapshot.given(end, snapshot.status_page(start, end))

    def verify(self, revision: str, cancelled: CancelCheck = never) -> Choices:
        """The guard of a selection: scan again, and return the choices of ``revision`` if nothing changed (SEL-58).

        Raises Cancelled, or StoreError(``stale_catalog``), for good when a change was found (CAT-47).
        """
        known = self._known(revision)
        self._compare(known, cancelled)
        return known.found.choices

    def abandon(self) -> None:
        """A refresh was admitted: no cursor and no guard given out before is good any more (EXT-REFRESH-41, -42)."""
        self._snapshot = None

    def renew(self, selected: str | None, cancelled: CancelCheck = never) -> str:
        """Replace the snapshot, and return its revision (EXT-REFRESH-44, EXT-REFRESH-45).

        Raises as a fresh :meth:`page` does.
        """
        return self._begin(selected, cancelled).revision

    def observe(self, selected: str | None, cancelled: CancelCheck = never) -> Choices:
        """One scan beside the snapshot, which it leaves as it is: for attachments and turns. Raises as a fresh page."""
        return self._look(selected, cancelled).judged(selected)

    def _at(
        self, revision: str | None, cursor: str | None, selected: str | None, cancelled: CancelCheck
    ) -> tuple["_Snapshot", int]:
        """The snapshot that a request is about, and where its page begins."""
        if revision is None or cursor is None:
            return self._begin(selected, cancelled), 0
        known = self._known(revision)
        start = known.start(cursor)
        self._compare(known, cancelled)
        return known, start

    def _begin(self, selected: str | None, cancelled: CancelCheck) -> "_Snapshot":
        self._snapshot = None
        seen = self._look(selected, cancelled)
        if self._found is None or self._found.fingerprint != seen.fingerprint:
            self._found = Found(seen.judged(selected), seen.fingerprint)
        self._snapshot = snapshot = _Snapshot(self._fresh(), self._found, selected)
        return snapshot

    def _known(self, revision: str) -> "_Snapshot":
        if self._snapshot is None or self._snapshot.revision != revision:
            raise _stale("not the current revision")
        return self._snapshot

    def _compare(self, known: "_Snapshot", cancelled: CancelCheck) -> None:
        """Scan for the selection of then: which one it is now is no change of caches or readiness (BASE-OP-141)."""
        try:
            if self._look(known.selected, cancelled).fingerprint != known.found.fingerprint:
                raise _stale("caches or readiness changed")
        except StoreError as fault:
            self._snapshot = None
            raise _stale(str(fault)) from None

    def _look(self, selected: str | None, cancelled: CancelCheck) -> Seen:
        return look(self._root, self._providers, selected, self._readiness, self._clock, cancelled)


class _Snapshot:
    """The choices that a revision denotes, and the cursors that were given out for it."""

    def __init__(self, revision: str, found: Found, selected: str | None) -> None:
        self.revision, self.found, self.selected = revision, found, selected
        self._sizes = found.choices.sizes
        self._starts: set[int] = set()

    def start(self, cursor: str) -> int:
        """Where the page at ``cursor`` begins. Raises StoreError(``stale_catalog``) for one never given out."""
        for start in self._starts:
            if cursor == self._cursor(start):
                return start
        raise _stale("a cursor that was never given out")

    def end(self, start: int, limit: int, page: _Page) -> int:
        """Where a page from ``start`` ends: ``limit`` choices further, or earlier for want of bytes (CAT-52, CAT-54).

        Raises StoreError(``catalog_limit``) if not even one fits, which safe names rule out.
        """
        last = min(start + min(limit, LIMITS.catalog_page_entries), len(self._sizes))
        size = compact_bytes(page(start, start))
        for end in range(start, last):
            size += self._sizes[end] + _COMMA  # one comma more than there are
            if size - _COMMA > LIMITS.catalog_page_bytes:
                if end == start:
                    raise StoreError(Code.CATALOG_LIMIT, "a choice that fits no page")
                return end
        return last

    def given(self, end: int, page: _P) -> _P:
        """Hand a page out: the cursor in it is good from now on."""
        if page.next_cursor is not None:
            self._starts.add(end)
        return page

    def catalog_page(self, start: int, end: int) -> CatalogPage:
        """The choices from ``start`` to ``end`` as ``model.catalog`` shows them."""
        following = self._following(end)
        return CatalogPage(
            choices=self.found.choices.offered[start:end],
            complete=following is None,
            next_cursor=following,
            notices=self.found.choices.notices,
            revision=self.revision,
        )

    def status_page(self, start: int, end: int) -> CatalogStatusPage:
        """The same as ``model.catalog.status`` shows them."""
        following = self._following(end)
        return CatalogStatusPage(
            choices=self.found.choices.offered[start:end],
            complete=following is None,
            next_cursor=following,
            notices=self.found.choices.notices,
            providers=self.found.choices.providers,
            revision=self.revision,
        )

    def _following(self, end: int) -> str | None:
        return None if end == len(self._sizes) else self._cursor(end)

    def _cursor(self, start: int) -> str:
        return f"{self.revision}.{start:0{_INDEX_DIGITS}d}"


def _stale(why: str) -> StoreError:
    return StoreError(Code.STALE_CATALOG, why)
