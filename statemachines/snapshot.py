"""Snapshot revisions: history, listing, discovery scan and catalog, one machine each with the same table.

A snapshot is what a revision names. ``paging`` has pages to come, ``complete`` has given its last; ``stale`` is
sticky: only a new revision (a fresh request, an attach, a finished run) leads out of it, and that is another
snapshot under the same name. A snapshot that is ``none`` or ``stale`` serves nothing: admission refuses continuations
of it. Fingerprints, cursors and page contents are data; which fact a worker found (unchanged, changed, dropped) is
the input.

Snapshots influence no other machine: no coupling leads out of them.
"""

from enum import unique

from statemachines.rows import MachineSpec, Name, Row, rows, stay


@unique
class SnapshotState(Name):
    """States of a snapshot."""

    NONE = "none"
    PAGING = "paging"
    COMPLETE = "complete"
    STALE = "stale"


@unique
class SnapshotInput(Name):
    """Inputs of a snapshot."""

    WORKER_REVISED = "new revision, nothing paged yet"
    WORKER_FRESH_PAGE = "fresh snapshot, more to come"
    WORKER_FRESH_LAST = "fresh snapshot, all of it"
    WORKER_PAGE = "page, more to come"
    WORKER_LAST_PAGE = "last page"
    WORKER_CHANGED = "change detected"
    WORKER_DROPPED = "fresh request failed"
    JOINT_STALE = "made stale from outside"


S, I = SnapshotState, SnapshotInput  # noqa: E741

CURRENT = (S.PAGING, S.COMPLETE)
GONE = (S.NONE, S.STALE)

_PAGES = (I.WORKER_PAGE, I.WORKER_LAST_PAGE, I.WORKER_CHANGED)
_FRESH = (I.WORKER_FRESH_PAGE, I.WORKER_FRESH_LAST)

_ROWS = (
    *rows(GONE, I.WORKER_REVISED, S.PAGING, by="HIST-44 HIST-47 HIST-48"),
    *rows(S, I.WORKER_FRESH_PAGE, S.PAGING, by="LIST-61 CAT-49 EXT-DISC-46"),
    *rows(S, I.WORKER_FRESH_LAST, S.COMPLETE, by="LIST-61 CAT-49 EXT-DISC-72"),
    *stay(CURRENT, I.WORKER_PAGE, by="HIST-04 LIST-56 CAT-45"),
    *rows(CURRENT, I.WORKER_LAST_PAGE, S.COMPLETE, by="HIST-13 LIST-86 CAT-37"),
    *stay(GONE, I.WORKER_PAGE, by="HIST-46 LIST-59 CAT-47"),
    *stay(GONE, I.WORKER_LAST_PAGE, by="HIST-46 LIST-59 CAT-47"),
    *rows(CURRENT, I.WORKER_CHANGED, S.STALE, by="HIST-45 LIST-58 CAT-46"),
    *stay(GONE, I.WORKER_CHANGED, by="HIST-46 LIST-59 CAT-47"),
    *rows(CURRENT, I.WORKER_DROPPED, S.STALE, by="BASE-OP-127 EXT-DISC-49"),
    *stay(GONE, I.WORKER_DROPPED, by="BASE-OP-127"),
    *rows(CURRENT, I.JOINT_STALE, S.STALE, by="HIST-48 LIST-57 EXT-REFRESH-41"),
    *stay(GONE, I.JOINT_STALE, by="HIST-46 LIST-59"),
)


_REPLACED = rows(CURRENT, I.WORKER_REVISED, S.PAGING, by="EXT-REFRESH-45 CAT-49")
"""A refresh may report its revision late, over a newer snapshot; a history is always stale before it is revised."""


def _spec(name: str, title: str, *inputs: SnapshotInput, more: tuple[Row, ...] = ()) -> MachineSpec:
    return MachineSpec(
        name=name,
        title=title,
        states=tuple(S),
        inputs=inputs,
        initial=S.NONE,
        finals=frozenset(),
        theory=__doc__ or "",
        rows=(*(each for each in _ROWS if each.input in inputs), *more),
    )


HISTORY = _spec("history", "History snapshot", I.WORKER_REVISED, *_PAGES, I.JOINT_STALE)
LIST = _spec("list", "Listing snapshot", *_FRESH, *_PAGES, I.WORKER_DROPPED, I.JOINT_STALE)
DISCOVER = _spec("discover", "Discovery scan", *_FRESH, *_PAGES, I.WORKER_DROPPED, I.JOINT_STALE)
CATALOG = _spec(
    "catalog", "Catalog snapshot", I.WORKER_REVISED, *_FRESH, *_PAGES, I.WORKER_DROPPED, I.JOINT_STALE, more=_REPLACED
)
SNAPSHOTS = (HISTORY, LIST, DISCOVER, CATALOG)
