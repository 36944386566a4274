"""What a compaction does (REC-44 to REC-47): what stands where before and after it."""

import json
import os
import stat
from pathlib import Path

import pytest

from localagent.protocol.codes import Code
from localagent.sessions import inspect
from localagent.sessions.compaction import Compacted
from localagent.sessions.records import Draft
from tests.sessions.compacting import (
    ERROR,
    GIST,
    PREFERENCES,
    SECOND_TURN,
    STEPS,
    checkpoint,
    compacted,
    generations,
    live,
)
from tests.sessions.kit import (
    House,
    answer,
    begun,
    failing,
    is_complete,
    refusal,
    shown,
    turn,
    user,
)
from tests.sessions.test_checkpoint import SCOPE, example
from tests.sessions.test_examples import EXAMPLES


def test_a_compaction(house: House) -> None:
    """The old bytes lie in the first generation; the session begins with the checkpoint, and goes on."""
    handle = begun(house)
    before, revision = live(house, handle), handle.revision
    mark = handle.mark()
    assert (mark.length, mark.head, mark.cut) == (len(before), before, len(before))
    done = handle.compact(checkpoint(mark))
    assert done == Compacted(f"sessions/.history/{handle.session_id}/1.jsonl", 3, 0)
    assert (Path(house.root.path) / done.generation).read_bytes() == before

    record = json.loads(live(house, handle))
    assert (record["event_type"], record["event_id"], record["cwd"]) == ("compaction", "4", house.cwd)
    assert record["payload"]["summary"] == "The gist."
    assert live(house, handle).endswith(b"}\n")
    assert handle.revision is None
    assert handle.refresh() != revision
    assert (shown(handle), is_complete(handle)) == ([GIST], True)
    assert revision is not None
    assert refusal(lambda: handle.page(revision, None)) is Code.STALE_REVISION

    receipt = handle.append(turn(2))
    assert (receipt.message_id, receipt.event_ids) == ("m2", ("5", "6", "7"))
    handle.refresh()
    assert shown(handle) == [GIST, *SECOND_TURN]
    other = house.reopened(handle)
    assert shown(other) == [GIST, *SECOND_TURN]
    other.release()
    assert house.names() == {f"{handle.session_id}.jsonl", "event-id-sequence", ".history"}


def test_every_byte_from_the_cut_on_stays(house: House) -> None:
    """Also what is appended while the summary is being written."""
    handle = begun(house)
    first = live(house, handle)
    handle.append(turn(2))
    mark = handle.mark(keep=3)
    assert mark.cut == len(first)
    assert mark.head == live(house, handle)[:4096]
    handle.append([user("steering")])
    whole = live(house, handle)
    done = handle.compact(checkpoint(mark))
    assert (done.removed, done.kept) == (3, 4)
    line, rest = live(house, handle).split(b"\n", 1)
    assert rest == whole[len(first) :]
    assert json.loads(line)["payload"]["aggregate"]["user_input_count"] == 1
    assert generations(house, handle.session_id) == {"1.jsonl": whole}
    handle.refresh()
    assert shown(handle)[:3] == [GIST, *SECOND_TURN]


def test_another_compaction(house: House) -> None:
    """Generations are numbered, never written again; numbers and facts are carried from one to the next."""
    handle = begun(house)
    handle.append([Draft("session_title", {"title": "Pruning plan"}), Draft("session_preferences", PREFERENCES)])
    old = [live(house, handle)]
    compacted(handle)
    for number in (2, 3):
        handle.append(turn(number))
        old.append(live(house, handle))
        assert compacted(handle, keep=1).generation.endswith(f"/{number}.jsonl")
    assert generations(house, handle.session_id) == {f"{n}.jsonl": text for n, text in enumerate(old, 1)}
    payload = json.loads(live(house, handle).split(b"\n")[0])["payload"]
    assert payload["aggregate"]["user_input_count"] == 3
    assert payload["aggregate"]["first_user_input_text"] == "prompt 1"
    assert payload["aggregate"]["latest_title"] == "Pruning plan"
    assert payload["session_preferences"] == PREFERENCES
    handle.refresh()
    assert handle.preferences is not None
    assert (handle.preferences.model, handle.preferences.requested_effort) == ("tiny-chat", "high")


def test_the_members_are_those_of_example_c(house: House) -> None:
    """REC-46 has no others, and their order is the contract's."""
    handle = begun(house)
    handle.append([Draft("session_preferences", PREFERENCES)])
    compacted(handle)
    payload = json.loads(live(house, handle))["payload"]
    theirs = example()
    assert list(payload) == sorted(payload) == sorted(theirs)
    for name, member in theirs.items():
        if isinstance(member, dict):
            assert payload[name].keys() == member.keys()
        assert type(payload[name]) is type(member)


def test_a_session_as_example_c(house: House) -> None:
    """What another child sees of a turn that goes on after it, and of the next."""
    handle = house.store().create()
    handle.append([user("Plan the pruning"), Draft("session_title", {"title": "Pruning plan"})])
    handle.append([Draft("session_preferences", PREFERENCES)])
    handle.compact(checkpoint(handle.mark(), "Rows 1 to 4 are pruned; row 5 waits for frost."))
    handle.append([Draft("user_input", {"origin": "automatic_compaction", "text": "Go on."})])
    handle.append([answer("Row 5 is next.")])
    handle.append([user("And row 6?"), answer("Row 6 needs no cut.")])
    other = house.reopened(handle)
    assert (shown(other), is_complete(other)) == EXAMPLES["orchard-90b"]
    assert other.preferences is not None
    assert other.preferences.requested_effort == "high"
    assert inspect.examine(house.root, handle.session_id).title == "Pruning plan"
    other.release()


def test_a_scope_still_caps(house: House) -> None:
    """REC-12, REC-46: through two compactions, with what was clarified meanwhile."""
    handle = house.store().create()
    handle.append([Draft("task_scope", SCOPE), Draft("user_input", {"text": "a", "task_scope_version": 1})])
    handle.append([Draft("user_input", {"text": "more", "origin": "steering"}), answer("yes")])
    for _ in range(2):
        compacted(handle, keep=1)
        handle.refresh()
        assert handle.scope is not None
        assert (handle.scope.ceiling.inspection, handle.scope.clarifications) == (True, ["more"])
        handle.append([Draft("user_input", {"text": "b", "task_scope_version": 1}), answer("yes")])
    other = house.reopened(handle)
    assert other.scope == handle.scope
    other.release()


@pytest.mark.parametrize("grown", [False, True])
def test_a_last_record_without_its_lf(house: House, grown: bool) -> None:
    """REC-34: the append that follows begins with the LF, which goes with the record that it ends."""
    path = house.put_bytes("s", house.line("s", "user_input", {"text": "a"}))
    handle = house.store().open("s")
    mark = handle.mark()
    if grown:
        handle.append([answer("b")])
    whole = path.read_bytes()
    handle.compact(checkpoint(mark))
    assert path.read_bytes().split(b"\n", 1)[1] == (whole.split(b"\n")[1] + b"\n" if grown else b"")
    assert generations(house, "s") == {"1.jsonl": whole}
    handle.append([user("c")])
    handle.refresh()
    told = [text for _, text, _ in shown(handle)]
    assert told == ["The gist.", *(["b"] if grown else []), "c", "Turn interrupted"]


def test_a_tail_without_its_lf_stays_so(house: House) -> None:
    records = [house.line("s", "user_input", {"text": text}) for text in "ab"]
    path = house.put_bytes("s", b"\r\n".join(records))
    handle = house.store().open("s")
    compacted(handle, keep=1)
    assert path.read_bytes().split(b"\n", 1)[1] == records[1]
    handle.append([answer("c")])
    handle.refresh()
    assert [text for _, text, _ in shown(handle)][-2:] == ["b", "c"]


def test_a_large_session_in_bounded_reads(house: House) -> None:
    handle = house.store().create()
    for number in range(20):
        handle.append([user(f"{number} " + "x" * 30_000), answer("y" * 30_000)])
    whole = live(house, handle)
    mark = handle.mark(keep=7)
    assert whole[mark.cut :].count(b"\n") == 7
    assert mark.head == whole[:4096]
    handle.compact(checkpoint(mark))
    assert live(house, handle).split(b"\n", 1)[1] == whole[mark.cut :]
    assert generations(house, handle.session_id) == {"1.jsonl": whole}


def test_modes_whatever_the_umask(house: House) -> None:
    """ROOT-04, ROOT-07."""
    handle = begun(house)
    before = os.umask(0o777)
    try:
        compacted(handle)
    finally:
        os.umask(before)
    folder = house.sessions / ".history"
    for path in (folder, folder / handle.session_id):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    for path in (folder / handle.session_id / "1.jsonl", house.file(handle.session_id)):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_steps_in_order(house: House) -> None:
    """REC-44: nothing of the session is written before its copy is durable, the rename comes after every sync."""
    handle = begun(house)
    mark = handle.mark()
    with failing([], ERROR) as log:
        handle.compact(checkpoint(mark))
    done = [step.name.removeprefix("COMPACT_") for step, over in log if over and step in STEPS]
    folder = ["DIRECTORY", "DIRECTORY"]  # made, and the one above it synced
    copy = ["KEEP_CREATE", "KEEP_WRITE", "KEEP_SYNC", "KEEP_RENAME", *["KEEP_SYNC_DIRECTORY"] * 3]
    assert done == [*folder, *folder, *copy, "CREATE", "WRITE", "SYNC", "RENAME", "SYNC_DIRECTORY"]
