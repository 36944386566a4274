"""Whole stories: attaching, reading, selecting, and the revisions that go stale. Each reads as a transcript."""

import pytest

from .stories import play

STORIES = {
    "created, opened, created anew: the previous leases go with each success (SESS-14)": """
ready
> q1 session.create
    ! StartWorker 2 session
~ created s1
    < q1 ok
> q2 session.open
    ! StartWorker 3 session
~ refused session_busy
    < q2 session_busy
> q3 session.open
    ! StartWorker 4 session
~ opened s2
    < q3 ok
    ! ReleaseLeases previous
> q4 turn.start {"session_id": "s1"}
    < q4 stale_session
> q5 turn.start {"session_id": "s2"}
    < q5 ok
    ! StartWorker 5 turn
""",
    "a second request is busy, nothing is cancelled (SESS-06, SESS-08)": """
ready all
attach
>> q1 session.list | q2 session.create | q3 turn.start | q4 history.page | q5 model.refresh | q6 status
    < q2 busy
    < q3 busy
    < q4 busy
    < q5 busy
    < q6 ok
    ! StartWorker 3 session
~ listed
    < q1 ok
""",
    "cancelled, and stopped without a result (EXT-CANCEL-04)": """
ready all
attach
> q1 session.list
    ! StartWorker 3 session
> q2 operation.cancel {"request_id": "q9"}
    < q2 operation_missing
> q3 operation.cancel {"request_id": "q1"}
    < q3 ok
    ! CancelWorker 3
> q4 operation.cancel {"request_id": "q1"}
    < q4 ok
~ stopped-op
    < q1 operation_cancelled
> q5 operation.cancel {"request_id": "q1"}
    < q5 operation_missing
""",
    "cancelled, and left without a word": """
ready all
> q1 session.list
    ! StartWorker 2 session
> q2 operation.cancel
    < q2 ok
    ! CancelWorker 2
~ gone
    < q1 operation_cancelled
""",
    "cancelled, but the worker had finished: its result stands (SHUT-16)": """
ready all
> q1 session.create
    ! StartWorker 2 session
> q2 operation.cancel
    < q2 ok
    ! CancelWorker 2
~ created
    < q1 ok
> q3 turn.start
    < q3 ok
    ! StartWorker 3 turn
""",
    "a worker that stops unasked, says the wrong word or nothing is broken (D82)": """
ready all
attach
> q1 session.list
    ! StartWorker 3 session
~ stopped-op
    < q1 discovery_unavailable
> q2 session.create
    ! StartWorker 4 session
~ selected
    < q2 session_invalid
> q3 model.catalog
    ! StartWorker 5 session
~ completed
    < q3 catalog_unavailable
> q4 history.page
    ! StartWorker 6 session
~ gone
    < q4 session_invalid
> q5 model.refresh
    ! StartWorker 7 session
~ delta
~ undeliverable
~ started
    < q5 catalog_unavailable
~ gone
> q6 turn.start
    < q6 ok
    ! StartWorker 8 turn
~ appended
    * input.persisted
""",
    "a startup worker that says the wrong word, or nothing": """
> q1 initialize
    ! StartWorker 1 startup
~ delta
~ undeliverable
~ listed
    < q1 startup_failed
~ started
> q2 session.create
    < q2 startup_failed
""",
    "a live id is used again: both are answered (BASE-OP-42)": """
ready
> q1 session.create
    ! StartWorker 2 session
> q1 status
    < q1 duplicate_id
~ created
    < q1 ok
> q1 status
    < q1 duplicate_id
""",
    "a message of a finished or unknown job is ignored": """
ready
~1 started
~1 gone
~0 gone
~9 gone
~9 listed
~9 undeliverable
> q1 session.create
    ! StartWorker 2 session
~1 start-failed startup_failed
~3 created
~2 created
    < q1 ok
~2 created
~2 gone
""",
    "a listing goes on while nothing changes; a change is sticky (LIST-58, LIST-59)": """
ready
attach
> q1 session.list {"revision": "l1", "cursor": "k1"}
    < q1 stale_revision
> q2 session.list
    ! StartWorker 3 session
~ listed l1
    < q2 ok
> q3 session.list {"revision": "l0", "cursor": "k1"}
    < q3 stale_revision
> q4 session.list {"revision": "l1", "cursor": "k1"}
    ! StartWorker 4 session
~ refused stale_revision list CHANGED
    < q4 stale_revision
> q5 session.list {"revision": "l1", "cursor": "k1"}
    < q5 stale_revision
""",
    "a new attachment makes listing and history stale (LIST-57, HIST-44)": """
ready
attach
> q1 session.list
    ! StartWorker 3 session
~ listed l1
    < q1 ok
> q2 session.open
    ! StartWorker 4 session
~ opened
    < q2 ok
    ! ReleaseLeases previous
> q3 session.list {"revision": "l1", "cursor": "k1"}
    < q3 stale_revision
> q4 history.page {"revision": "h1"}
    < q4 stale_revision
> q5 history.page {"session_id": "s1", "revision": "h9"}
    < q5 stale_session
> q6 history.page {"revision": "h9"}
    ! StartWorker 5 session
~ read
    < q6 ok
""",
    "history goes on under the revision of run.finished (HIST-48, EVT-53)": """
ready
attach
executing
~ completed h3
~ gone
    * run.finished completed durable h3 -
> q1 history.page {"revision": "h1"}
    < q1 stale_revision
> q2 history.page {"revision": "h2"}
    < q2 stale_revision
> q3 history.page {"revision": "h3"}
    ! StartWorker 4 session
~ read
    < q3 ok
executing
~ failed
~ gone
    * run.finished failed durable - execution_failed
> q4 history.page {"revision": "h3"}
    < q4 stale_revision
""",
    "a selection is stored: lazy becomes durable, revisions are new (SEL-83, SEL-90)": """
ready
attach
> q1 selection.set
    < q1 stale_catalog
> q2 model.catalog
    ! StartWorker 3 session
~ cataloged c1
    < q2 ok
> q3 selection.set {"selection_revision": "sel0"}
    < q3 stale_selection
> q4 selection.set {"catalog_revision": "c0"}
    < q4 stale_catalog
> q5 selection.set
    ! StartWorker 4 session
~ selected h5
    < q5 ok
> q6 selection.set {"selection_revision": "sel-h1"}
    < q6 stale_selection
> q7 history.page {"revision": "h1"}
    < q7 stale_revision
> q8 history.page {"revision": "h5"}
    ! StartWorker 5 session
~ read
    < q8 ok
> q9 selection.set
    ! StartWorker 6 session
~ selected -
    < q9 ok
> q10 history.page {"revision": "h5"}
    < q10 stale_revision
""",
    "a selection that finds the catalog changed makes it stale (CAT-48)": """
ready all
attach
> q1 model.catalog
    ! StartWorker 3 session
~ cataloged c1
    < q1 ok
> q2 selection.set
    ! StartWorker 4 session
~ refused stale_catalog catalog CHANGED
    < q2 stale_catalog
> q3 selection.set {"catalog_revision": "c1"}
    < q3 stale_catalog
> q4 model.catalog {"revision": "c1", "cursor": "k1"}
    < q4 stale_catalog
""",
    "a refresh makes the catalog stale at once, and may bring a new one (EXT-REFRESH-41, -45)": """
ready all
attach
> q1 model.catalog
    ! StartWorker 3 session
~ cataloged c1
    < q1 ok
> q2 model.refresh
    ! StartWorker 4 session
~ refused catalog_unavailable
    < q2 catalog_unavailable
> q3 model.catalog {"revision": "c1", "cursor": "k1"}
    < q3 stale_catalog
> q4 selection.set {"catalog_revision": "c1"}
    < q4 stale_catalog
> q5 model.refresh
    ! StartWorker 5 session
~ refreshed c2
    < q5 ok
> q6 model.catalog.status {"revision": "c2", "cursor": "k1"}
    ! StartWorker 6 session
~ refused stale_catalog catalog CHANGED
    < q6 stale_catalog
> q7 model.catalog.status {"revision": "c2", "cursor": "k1"}
    < q7 stale_catalog
""",
    "a fresh request that failed drops what was there (BASE-OP-127)": """
ready all
> q1 model.catalog
    ! StartWorker 2 session
~ cataloged c1
    < q1 ok
> q2 model.catalog
    ! StartWorker 3 session
~ refused catalog_limit catalog DROPPED
    < q2 catalog_limit
> q3 model.catalog {"revision": "c1", "cursor": "k1"}
    < q3 stale_catalog
> q4 session.discover {"revision": "d0", "cursor": "k1"}
    ! StartWorker 4 session
~ refused stale_revision discover CHANGED
    < q4 stale_revision
""",
}


@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES)
def test_the_session_goes_as_told(story: str) -> None:
    assert play(story).finish() == 0
