"""What gives a compaction up (REC-44): another file, what opening would refuse, lost leases, cancellation."""

import os
from typing import Any

import msgspec
import pytest

from localagent.protocol.codes import Code
from localagent.protocol.limits import LIMITS
from localagent.sessions import compaction, disk
from localagent.sessions.disk import Step
from localagent.sessions.errors import Cancelled, CompactionFailed
from localagent.sessions.handle import Handle
from localagent.sessions.records import Draft
from tests.sessions.compacting import (
    GIST,
    SECOND_TURN,
    STEPS,
    checkpoint,
    compacted,
    generations,
    given_up,
    live,
    temporaries,
)
from tests.sessions.kit import (
    FIRST,
    House,
    StillClock,
    answer,
    begun,
    refusal,
    shown,
    turn,
    user,
    watching,
)
from tests.sessions.test_checkpoint import SCOPE


def test_nothing_to_remove(house: House) -> None:
    handle = house.store().create()
    with pytest.raises(CompactionFailed):
        handle.mark()  # lazy
    handle.append(turn(1))
    for keep in (3, 4, 1000):
        with pytest.raises(CompactionFailed, match="no record"):
            handle.mark(keep)
    empty = house.store().open(house.put_bytes("s", b"").stem)
    with pytest.raises(CompactionFailed, match="no record"):
        empty.mark()


def changes(house: House, handle: Handle) -> dict[str, bytes]:
    before = live(house, handle)
    return {
        "other first bytes": before.replace(b"prompt 1", b"prompt 9"),
        "shorter": before[: before.rindex(b'{"event_id')],
        "a torn tail": before + b'{"torn',
    }


@pytest.mark.parametrize("how", ["other first bytes", "shorter", "a torn tail", "another inode", "gone"])
def test_a_file_that_was_changed(house: House, how: str) -> None:
    handle = begun(house)
    before, mark = live(house, handle), handle.mark()
    path = house.file(handle.session_id)
    if how in changes(house, handle):
        path.write_bytes(changes(house, handle)[how])
    else:
        path.rename(path.with_suffix(".old"))
        if how == "another inode":
            house.put_bytes(handle.session_id, before)
    after = path.read_bytes() if path.exists() else None
    given_up(handle, mark)
    assert (path.read_bytes() if path.exists() else None) == after
    assert generations(house, handle.session_id) == {}
    assert temporaries(house) == []


def test_a_file_that_lost_what_was_to_stay(house: House) -> None:
    """Shorter than it was noted, though all of its first bytes and the cut are there."""
    handle = house.store().create()
    handle.append([user("x" * 5000), answer("y")])
    mark = handle.mark(keep=1)
    os.truncate(house.file(handle.session_id), mark.cut)
    assert given_up(handle, mark) == "another file than was noted"


def test_a_cut_that_is_none_any_more(house: House) -> None:
    """Behind the bytes that were noted, where nobody but a foreign editor changes anything."""
    handle = house.store().create()
    handle.append([user("x" * 5000), answer("y")])
    mark = handle.mark(keep=1)
    after = live(house, handle)[: mark.cut - 1] + b" " + live(house, handle)[mark.cut :]
    house.file(handle.session_id).write_bytes(after)
    assert given_up(handle, mark) == "the cut is not between two records any more"
    assert live(house, handle) == after


@pytest.mark.parametrize("step", [Step.COMPACT_KEEP_WRITE, Step.COMPACT_SYNC])
def test_a_file_that_is_changed_meanwhile(house: House, step: Step) -> None:
    """By who does not ask for leases."""
    handle = begun(house)
    mark = handle.mark()

    def change(now: Step, done: bool) -> None:
        if now is step and not done:
            with house.file(handle.session_id).open("ab") as file:
                file.write(b"{}\n")

    with watching(change):
        assert given_up(handle, mark) == "the session was changed meanwhile"
    assert live(house, handle).endswith(b"{}\n")
    assert temporaries(house) == []


def test_a_file_that_becomes_shorter_while_it_is_copied(house: House) -> None:
    handle = begun(house)
    mark = handle.mark()

    def cut(now: Step, done: bool) -> None:
        if now is Step.COMPACT_KEEP_WRITE and not done:
            os.truncate(house.file(handle.session_id), 10)

    with watching(cut):
        assert given_up(handle, mark) == "the file became shorter"
    assert (generations(house, handle.session_id), temporaries(house)) == ({}, [])


@pytest.mark.parametrize(
    ("kind", "payload", "keep"),
    [
        ("compaction", {"summary": "older style", "schema_version": 1, "cutoff_event_count": 2}, 1),
        ("tool_result", {"call_id": "c"}, 1),
        ("tool_result", {"call_id": "c"}, 0),
        ("task_scope", SCOPE, 1),
    ],
)
def test_what_opening_would_refuse_is_not_written(house: House, kind: str, payload: Any, keep: int) -> None:
    """What stays must be readable; the records that go are only counted."""
    handle = house.store().create()
    handle.append([Draft("task_scope", SCOPE), *turn(1)])
    mark = handle.mark()
    with house.file(handle.session_id).open("ab") as file:
        file.write(house.line(handle.session_id, kind, payload) + b"\n")
    before = live(house, handle)
    given_up(handle, handle.mark(keep) if keep else mark)
    assert live(house, handle) == before
    assert generations(house, handle.session_id) == {}


def test_a_foreign_line_gives_it_up(house: House) -> None:
    handle = begun(house)
    path = house.file(handle.session_id)
    path.write_bytes(b"{}\n" + path.read_bytes())
    before = live(house, handle)
    given_up(handle, handle.mark())
    assert (live(house, handle), generations(house, handle.session_id)) == (before, {})


@pytest.mark.parametrize("summary", ["", " \n\u2003", "x" * (8 * 1024 * 1024)])
def test_a_summary_that_cannot_be_written(house: House, summary: str) -> None:
    handle = begun(house)
    before = live(house, handle)
    given_up(handle, handle.mark(), summary)
    assert (live(house, handle), generations(house, handle.session_id)) == (before, {})
    assert shown(handle) == FIRST  # the history is still served


def test_a_history_that_nobody_could_be_shown(house: House) -> None:
    """A small removed part, a large summary: beyond 8 MiB of text in all."""
    handle = begun(house)
    handle.append([user("x" * 4_150_000)])
    handle.append([answer("y" * 4_150_000)])
    handle.refresh()
    before = live(house, handle)
    assert "history_limit" in given_up(handle, handle.mark(keep=2), "z" * 200_000)
    assert live(house, handle) == before
    assert len(shown(handle)) == 4


@pytest.mark.parametrize(
    ("cap", "fits"),
    [("history_file_bytes", False), ("history_file_lines", False), ("history_file_lines", True)],
)
def test_caps_hold_for_the_new_file(house: House, monkeypatch: pytest.MonkeyPatch, cap: str, fits: bool) -> None:
    """REC-36; the caps are lowered here. The checkpoint is longer than the record it replaces."""
    handle = begun(house)
    before, mark = live(house, handle), handle.mark(keep=2)
    most = {"history_file_bytes": len(before) + 200, "history_file_lines": 3 if fits else 2}[cap]
    monkeypatch.setattr(compaction, "LIMITS", msgspec.structs.replace(LIMITS, **{cap: most}))
    if fits:
        assert handle.compact(checkpoint(mark)).kept == 2
    else:
        assert "64 MiB or 100,000" in given_up(handle, mark)
        assert (live(house, handle), temporaries(house)) == (before, [])


# leases and cancellation


@pytest.mark.parametrize("role", ["writer", "active"])
@pytest.mark.parametrize("late", [False, True])
def test_a_lost_lease_gives_it_up(house: House, role: str, late: bool) -> None:
    handle = begun(house)
    before, mark = live(house, handle), handle.mark()
    lock = house.lock(f"{handle.session_id}.{role}")

    def lose(now: Step, done: bool) -> None:
        if now is Step.COMPACT_SYNC and done:
            lock.unlink()

    if not late:
        lock.unlink()
    with watching(lose if late else disk.watch):
        given_up(handle, mark)
    assert generations(house, handle.session_id) == ({"1.jsonl": before} if late else {})
    assert (live(house, handle), temporaries(house)) == (before, [])


def test_it_waits_for_the_append_lease(house: House) -> None:
    still = StillClock()
    handle = house.store(still.clock).create()
    handle.append(turn(1))
    mark = handle.mark()
    lock = house.lock(f"{handle.session_id}.jsonl")
    lock.write_text(f"pid={os.getpid()}\n")
    given_up(handle, mark)
    assert 30 <= still.steady < 30.02
    with pytest.raises(CompactionFailed):
        handle.mark()
    with pytest.raises(Cancelled):
        handle.compact(checkpoint(mark), lambda: True)
    lock.unlink()
    handle.compact(checkpoint(mark))


def test_the_append_lease_is_held_all_the_time(house: House) -> None:
    handle = begun(house)
    lock = house.lock(f"{handle.session_id}.jsonl")
    seen: list[bool] = []
    with watching(lambda step, _: seen.append(lock.exists()) if step in STEPS else None):
        compacted(handle)
    assert len(seen) > 20
    assert all(seen)
    assert not lock.exists()


def test_cancelled_between_any_two_reads(house: House) -> None:
    """The old file stands, and nothing is left but perhaps a generation, whole."""
    handle = begun(house)
    handle.append([user("x" * 100_000)])
    before, mark = live(house, handle), handle.mark(keep=1)
    for times in range(100):
        asked: list[None] = []

        def cancelled(asked: list[None] = asked, times: int = times) -> bool:
            asked.append(None)
            return len(asked) > times

        try:
            handle.compact(checkpoint(mark), cancelled)
            break
        except Cancelled:
            assert live(house, handle) == before
            assert temporaries(house) == []
            assert set(generations(house, handle.session_id).values()) <= {before}
    assert times > 5
    handle.refresh()
    assert [kind for kind, _, _ in shown(handle)] == ["compaction", "user", "diagnostic"]


def test_a_released_handle_compacts_no_more(house: House) -> None:
    handle = begun(house)
    mark = handle.mark()
    handle.release()
    given_up(handle, mark)
    with pytest.raises(CompactionFailed):
        handle.mark()


def test_the_other_handle_of_the_same_child_is_stale(house: House) -> None:
    """BASE-OP-97: the session opened anew by the child that has it; both then see the new file, only after a look."""
    store = house.store()
    one = store.create()
    one.append(turn(1))
    one.refresh()
    two = store.open(one.session_id)
    compacted(two)
    revision = one.revision
    assert revision is not None
    assert refusal(lambda: one.page(revision, None)) is Code.STALE_REVISION
    one.refresh()
    two.refresh()
    assert shown(one) == shown(two) == [GIST]
    one.append(turn(2))
    one.release()
    two.refresh()
    assert shown(two) == [GIST, *SECOND_TURN]
