"""Appending: the order of REC-30, receipts, the file, the tail, the caps (REC-30, REC-31, REC-34, REC-36)."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from localagent.protocol.codes import Code
from localagent.protocol.limits import LIMITS
from localagent.sessions import disk
from localagent.sessions.disk import Step
from localagent.sessions.errors import Outcome
from localagent.sessions.journal import Batch, Receipt
from localagent.sessions.records import Draft
from tests.sessions.kit import (
    FIRST,
    House,
    answer,
    begun,
    chunk,
    failing,
    refusal,
    refused,
    shown,
    turn,
    user,
    watching,
)

ERROR = OSError(5, "Input/output error")


# order (REC-30)


def test_the_order_of_a_first_append(house: House) -> None:
    handle = house.store().create()
    with failing([], ERROR) as log:
        handle.append([user("hi")])
    assert [step for step, done in log if done] == [
        Step.LEASE_CREATE,  # event ids
        Step.LEASE_WRITE,
        Step.REPLACE_CREATE,
        Step.REPLACE_WRITE,
        Step.REPLACE_SYNC,
        Step.REPLACE_RENAME,
        Step.REPLACE_SYNC_DIRECTORY,
        Step.LEASE_REMOVE,
        Step.LEASE_CREATE,  # append
        Step.LEASE_WRITE,
        Step.SESSION_CREATE,
        Step.SESSION_WRITE,
        Step.SESSION_SYNC,
        Step.SESSION_SYNC_DIRECTORY,
        Step.SESSION_STAMP,
        Step.LEASE_REMOVE,
    ]
    assert house.file(handle.session_id).stat().st_mode & 0o777 == 0o600


def test_the_order_of_a_later_append(house: House) -> None:
    handle = begun(house)
    locked: list[bool] = []

    def look(step: Step, done: bool) -> None:
        log.append((step, done))
        locked.append(house.lock(f"{handle.session_id}.jsonl").exists())

    log: list[tuple[Step, bool]] = []
    with watching(look):
        handle.append(turn(2))
    steps = [step for step, done in log if done]
    assert steps[2:-1] == [Step.SESSION_WRITE, Step.SESSION_SYNC, Step.SESSION_STAMP]
    assert all(locked[4:-1])
    assert house.names() >= {f".{handle.session_id}.writer.lock", f".{handle.session_id}.active.lock"}


def test_a_batch_is_one_write_and_one_sync(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    handle = begun(house)
    sizes: list[int] = []
    original = os.write

    def write(descriptor: int, data: bytes) -> int:
        sizes.append(len(data))
        return original(descriptor, data)

    monkeypatch.setattr(os, "write", write)
    handle.append([chunk(f"{number}") for number in range(64)])
    assert len(sizes) == 2  # the append lease, and all of the batch


def test_short_writes_are_continued(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    handle = begun(house)
    original = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: original(descriptor, data[:7]))
    handle.append(turn(2))
    handle.refresh()
    assert len(shown(handle)) == 4


def test_event_ids_are_unique_and_in_order(house: House) -> None:
    handle = begun(house)
    receipt = handle.append(turn(2))
    records = [json.loads(line) for line in house.file(handle.session_id).read_bytes().splitlines()]
    assert [record["event_id"] for record in records] == ["1", "2", "3", "4", "5", "6"]
    assert receipt.event_ids == ("4", "5", "6")


def test_an_empty_batch_is_our_mistake(house: House) -> None:
    with pytest.raises(ValueError, match="empty"):
        begun(house).append([])


# receipts (REC-31)


def test_a_receipt_comes_from_an_append_alone() -> None:
    batch = Batch(b"", ("1",), "r")
    for seal in (None, object(), "seal"):
        with pytest.raises(TypeError):
            Receipt(seal, "s", batch, "m1")


def test_the_seal_is_used_once_and_after_the_last_sync() -> None:
    """What the language cannot enforce, the sources show."""
    room = Path(disk.__file__).parent
    uses = [
        (path.name, line) for path in room.glob("*.py") for line in path.read_text().splitlines() if "_SEAL" in line
    ]
    assert [name for name, _ in uses] == ["journal.py"] * 3  # made, compared, used
    source = (room / "journal.py").read_text()
    assert source.index("disk.sync_directory(Step.SESSION_SYNC_DIRECTORY") < source.index("Receipt(_SEAL")
    assert not [path for path in room.parent.rglob("*.py") if path.parent != room and "_SEAL" in path.read_text()]


def test_a_receipt_names_the_entry_that_its_input_becomes(house: House) -> None:
    """EVT-13."""
    handle = begun(house)
    receipt = handle.append([user("second")])
    handle.append([answer("a")])
    revision = handle.refresh()
    entries = {entry.message_id: entry.text for entry in handle.page(revision, None).entries}
    assert entries[receipt.message_id] == "second"
    assert receipt.revision != revision
    assert refusal(lambda: handle.page(receipt.revision, None)) is Code.STALE_REVISION  # D64
    assert receipt.session_id == handle.session_id


# the file on the way


def be_a_fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path, 0o600)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda path: path.chmod(0o640),
        lambda path: os.link(path, path.with_name("second")),
        lambda path: (path.rename(path.with_name("moved")), path.symlink_to("moved")),
        be_a_fifo,
        lambda path: (path.unlink(), path.mkdir()),
        lambda path: path.parent.chmod(0o750),
    ],
)
def test_a_file_that_became_unsafe_is_not_written(house: House, spoil: Callable[[Path], object]) -> None:
    """REC-02, ROOT-05, ROOT-12."""
    handle = begun(house)
    path = house.file(handle.session_id)
    spoil(path)
    kept = [(each, each.read_bytes()) for each in (path, path.with_name("moved")) if each.is_file()]
    assert refused(handle) is Outcome.REFUSED
    assert [(each, each.read_bytes()) for each, _ in kept] == kept


def test_a_durable_session_does_not_go_on_in_a_new_file(house: House) -> None:
    handle = begun(house)
    house.file(handle.session_id).unlink()
    assert refused(handle) is Outcome.REFUSED
    assert not house.file(handle.session_id).exists()
    assert refusal(handle.refresh) is Code.SESSION_MISSING


def test_not_even_after_a_reading_that_failed(house: House) -> None:
    handle = begun(house)
    path = house.file(handle.session_id)
    path.write_bytes(b"torn")
    assert refusal(handle.refresh) is Code.SESSION_INVALID
    path.unlink()
    assert refused(handle) is Outcome.REFUSED
    assert not path.exists()


def test_what_another_program_appended_is_kept_and_read(house: House) -> None:
    """BASE-OP-123, BASE-OP-124."""
    handle = begun(house)
    path = house.file(handle.session_id)
    with path.open("ab") as file:
        file.write(house.line(handle.session_id, "diagnostic", {"message": "from outside"}) + b"\n")
    handle.append([user("prompt 2"), answer("answer 2")])
    handle.refresh()
    assert [text for _, text, _ in shown(handle)] == ["prompt 1", "answer 1", "from outside", "prompt 2", "answer 2"]
    handle.append(turn(3))
    handle.refresh()
    assert len(shown(handle)) == 7


# the tail (REC-34)


def test_a_last_line_that_lacks_only_its_lf_gets_it(house: House) -> None:
    last = house.line("s", "assistant_output", {"text": "a"})
    house.put_bytes("s", house.line("s", "user_input", {"text": "u"}) + b"\r\n" + last)
    handle = house.store().open("s")
    handle.append([user("v"), answer("w")])
    assert house.file("s").read_bytes().count(b"\n") == 4
    assert last + b"\n{" in house.file("s").read_bytes()
    handle.refresh()
    assert [text for _, text, _ in shown(handle)] == ["u", "a", "v", "w"]


def test_a_torn_tail_refuses_the_append_at_every_cut(house: House) -> None:
    """An append can never fuse with a torn tail."""
    handle = house.store().create()
    handle.append(turn(1))
    path = house.file(handle.session_id)
    whole = path.read_bytes()
    last = whole[:-1].rindex(b"\n") + 1
    for cut in range(last + 1, len(whole) - 1, 7):
        path.write_bytes(whole[:cut])
        assert refused(handle) is Outcome.REFUSED
        assert path.read_bytes() == whole[:cut]
    path.write_bytes(whole[:-1])
    handle.append(turn(2))
    assert path.read_bytes().startswith(whole)
    handle.refresh()
    assert len(shown(handle)) == 4


def test_a_long_torn_tail(house: House) -> None:
    handle = begun(house)
    with house.file(handle.session_id).open("ab") as file:
        file.write(b'{"' + b"x" * 200_000)
    assert refused(handle) is Outcome.REFUSED


# what readers would refuse is not written


RESULT = {"tool_name": "read", "success": True, "content": "", "metadata": {}}


@pytest.mark.parametrize(
    "drafts",
    [
        [Draft("user_input", {})],
        [Draft("tool_call", {"id": "c"})],
        [Draft("turn_status", {"status": "done"})],
        [Draft("rewind", {})],
        [Draft("tool_call", {"id": "c", "name": "bash"}), Draft("tool_result", {"call_id": "c", "result": RESULT})],
        [Draft("user_input", {"text": "u", "task_scope_version": 1})],
    ],
)
def test_a_record_that_would_spoil_the_session_is_refused(house: House, drafts: list[Draft]) -> None:
    handle = begun(house)
    before = house.file(handle.session_id).read_bytes()
    assert refused(handle, *drafts) is Outcome.REFUSED
    assert house.file(handle.session_id).read_bytes() == before
    handle.refresh()
    assert shown(handle) == FIRST


# caps (REC-36)


@pytest.mark.parametrize("spare", [1, 0, -1])
def test_an_append_does_not_take_the_file_past_64_mib(house: House, spare: int) -> None:
    handle = begun(house)
    path = house.file(handle.session_id)
    before = path.stat().st_size
    handle.append([chunk("x")])
    grown = path.stat().st_size
    with path.open("r+b") as file:  # a hole: the length counts, and nobody has to read it
        file.truncate(LIMITS.history_file_bytes - (grown - before) - spare)
        file.seek(-1, os.SEEK_END)
        file.write(b"\n")
    if spare < 0:
        length = path.stat().st_size
        assert refused(handle, chunk("x")) is Outcome.REFUSED
        assert path.stat().st_size == length
    else:
        handle.append([chunk("x")])
        assert path.stat().st_size == LIMITS.history_file_bytes - spare
        assert refusal(handle.refresh) is Code.SESSION_INVALID  # the hole is no record


@pytest.mark.parametrize("spare", [1, 0, -1])
def test_an_append_does_not_take_the_file_past_100000_lines(house: House, spare: int) -> None:
    handle = begun(house)
    path = house.file(handle.session_id)
    with path.open("ab") as file:  # lines that the store counts, and has no reason to read
        file.write(b"\n" * (LIMITS.history_file_lines - 3 - 2 - spare))
    length = path.stat().st_size
    if spare < 0:
        assert refused(handle, user("u"), answer("a")) is Outcome.REFUSED
        assert path.stat().st_size == length
        handle.append([user("u")])
    else:
        handle.append([user("u"), answer("a")])
    assert path.read_bytes().count(b"\n") == LIMITS.history_file_lines - max(spare, 0)
