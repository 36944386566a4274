"""A compaction on a disk that fails (REC-45), what others left, and any order of things: no record is lost."""

import json
import resource
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from localagent.sessions.disk import Step
from localagent.sessions.errors import AppendFailed, CompactionFailed
from tests.sessions.compacting import (
    ERROR,
    FAILING,
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
    begun,
    failing,
    shown,
    turn,
)


@pytest.mark.parametrize("step", FAILING)
def test_an_error_at_each_step(house: House, step: Step) -> None:
    """Up to the last rename the old file stands and goes on; after it the new one, and this child appends no more."""
    handle = begun(house)
    before, mark = live(house, handle), handle.mark()
    with failing([step], ERROR), pytest.raises(CompactionFailed) as caught:
        handle.compact(checkpoint(mark))
    replaced = step is Step.COMPACT_SYNC_DIRECTORY
    assert caught.value.replaced is replaced
    assert temporaries(house) == []
    copied = list(STEPS).index(step) > STEPS.index(Step.COMPACT_KEEP_RENAME)
    assert generations(house, handle.session_id) == ({"1.jsonl": before} if copied else {})
    if replaced:
        assert handle.revision is None
        handle.refresh()
        assert shown(handle) == [GIST]
        with pytest.raises(AppendFailed):
            handle.append(turn(2))
        with pytest.raises(CompactionFailed, match="not ours"):
            handle.mark()
        handle = house.reopened(handle)
        handle.append(turn(2))
    else:
        assert live(house, handle) == before
        assert shown(handle) == FIRST  # nothing happened: the history is still served
        handle.append(turn(2))
        handle.refresh()
        assert shown(handle) == [*FIRST, *SECOND_TURN]
        compacted(handle, keep=3)
    handle.refresh()
    assert shown(handle) == [GIST, *SECOND_TURN]
    assert generations(house, handle.session_id)["1.jsonl"] == before or not copied


def test_a_temporary_file_that_cannot_be_removed_waits_for_the_next(house: House) -> None:
    handle = begun(house)
    with failing([Step.COMPACT_KEEP_SYNC, Step.COMPACT_CLEAR], ERROR), pytest.raises(CompactionFailed):
        compacted(handle)
    assert temporaries(house) == [".1.jsonl.compact-tmp"]
    with failing([Step.COMPACT_CLEAR], ERROR), pytest.raises(CompactionFailed):
        compacted(handle)
    compacted(handle)
    assert temporaries(house) == []
    assert list(generations(house, handle.session_id)) == ["1.jsonl"]


def test_what_others_left_behind(house: House) -> None:
    """Temporary files of this session go, whoever made them; nothing else does (ROOT-13)."""
    handle = begun(house)
    own = house.sessions / ".history" / handle.session_id
    own.mkdir(mode=0o700, parents=True)
    own.parent.chmod(0o700)
    left = [house.sessions / f".{handle.session_id}.jsonl.compact-77-3", own / ".4.jsonl.compact-tmp"]
    stay = [
        house.sessions / ".other.jsonl.compact-77-3",
        house.sessions / f".{handle.session_id}.jsonl.compact-77-x",
        own / ".x.jsonl.compact-tmp",
        own / "04.jsonl",
        own / "notes",
        own / "4.jsonl",
    ]
    for path in (*left, *stay):
        path.write_bytes(b"old")
        path.chmod(0o600)
    link = house.sessions / f".{handle.session_id}.jsonl.compact-78-3"
    link.symlink_to(house.file(handle.session_id))
    assert compacted(handle).generation.endswith("/5.jsonl")
    assert not any(path.exists() for path in left)
    assert all(path.read_bytes() == b"old" for path in stay)
    assert link.is_symlink()


@pytest.mark.parametrize("what", ["link", "file", "loose", "linked id"])
def test_a_folder_that_is_not_ours_alone(house: House, what: str) -> None:
    """ROOT-12: nothing is followed, nothing is written there."""
    handle = begun(house)
    before, history, elsewhere = live(house, handle), house.sessions / ".history", house.base / "elsewhere"
    elsewhere.mkdir()
    if what == "link":
        history.symlink_to(elsewhere)
    elif what == "file":
        history.write_bytes(b"")
    else:
        history.mkdir()
        history.chmod(0o750 if what == "loose" else 0o700)
        if what == "linked id":
            (history / handle.session_id).symlink_to(elsewhere)
    given_up(handle, handle.mark())
    assert live(house, handle) == before
    assert list(elsewhere.iterdir()) == []


def test_no_space_left(house: House) -> None:
    """A limit of the kernel, not a hook: the copy fits, the new file with its long summary does not."""
    handle = begun(house)
    before, mark = live(house, handle), handle.mark()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 4000, hard))
    try:
        given_up(handle, mark, "x" * 8000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (live(house, handle), temporaries(house)) == (before, [])


# any order of things


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.one_of(st.just("append"), st.just("open"), st.integers(0, 4), st.sampled_from(FAILING)), max_size=9))
def test_no_record_is_ever_lost(tmp_path_factory: pytest.TempPathFactory, actions: list[Any]) -> None:
    """Every record stands in the session or in a generation; prompts are counted once."""
    house = House(tmp_path_factory.mktemp("compact"))
    handle = house.store().create()
    appended: list[bytes] = []
    kept: list[bytes] = []
    for number, action in enumerate(["append", *actions]):
        if action == "append":
            size = len(live(house, handle)) if handle.durable else 0
            handle.append(turn(number))
            lines = live(house, handle)[size:].splitlines()
            appended += lines
            kept += lines
        elif action == "open":
            handle = house.reopened(handle)
        else:
            keep = action if isinstance(action, int) else 1
            try:
                with failing([] if isinstance(action, int) else [action], ERROR):
                    compacted(handle, keep)
            except CompactionFailed as fault:
                if fault.replaced:
                    handle = house.reopened(handle)
                elif isinstance(action, int):
                    assert len(kept) <= keep
            first = live(house, handle).split(b"\n")[0]
            if first != kept[0]:
                kept = [first, *(kept[-keep:] if keep else [])]
    assert live(house, handle).splitlines() == kept
    stored = set(kept).union(*(text.splitlines() for text in generations(house, handle.session_id).values()))
    assert set(appended) <= stored
    payload = json.loads(kept[0])["payload"]
    prompts = sum(b'"user_input"' in line for line in appended)
    counted = payload["aggregate"]["user_input_count"] if "aggregate" in payload else 0
    assert counted + sum(b'"user_input"' in line for line in kept[1:]) + ("text" in payload) == prompts
    handle.refresh()
    assert shown(handle) == shown(house.reopened(handle))
