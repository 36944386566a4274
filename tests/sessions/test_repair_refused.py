"""What repair refuses and leaves alone, what interferes with it, and what fails under it (REC-56)."""

import os

import pytest

from localagent.protocol.codes import Code
from localagent.protocol.limits import LIMITS
from localagent.sessions import repair
from localagent.sessions.disk import Step
from tests.sessions.kit import House, failing, opening, refusal, watching
from tests.sessions.test_repair import REPAIR, records, salvaged, texts

ERROR = OSError(5, "Input/output error")


# what is refused


def test_a_held_lease_refuses(house: House) -> None:
    house.put_bytes("s", b"bad")
    for target in ("s.writer", "s.active", "s.jsonl"):
        house.lock(target).write_text(f"pid={os.getpid()}\n")
        before = house.names()
        assert refusal(lambda: repair.apply(house.root, "s")) is Code.SESSION_BUSY
        assert house.names() == before
        house.lock(target).unlink()
    house.lock("s.active").symlink_to("nowhere")
    assert refusal(lambda: repair.apply(house.root, "s")) is Code.SESSION_INVALID
    house.lock("s.active").unlink()
    for target in ("s.writer", "s.active", "s.jsonl"):
        house.lock(target).write_text(f"pid={os.getpid()}\nkernel=flock\n")  # of the dead: the lock is free
    repair.apply(house.root, "s")
    assert house.names() == {"s.jsonl", "event-id-sequence"}


def test_while_it_is_attached_here_it_is_busy_too(house: House) -> None:
    handle = house.store().open(house.put_bytes("s", b"").stem)
    house.file("s").write_bytes(b"bad")
    assert refusal(lambda: repair.apply(house.root, "s")) is Code.SESSION_BUSY
    handle.release()


def test_what_is_missing_or_unsafe_is_not_touched(house: House) -> None:
    for call in (repair.survey, repair.apply):
        assert refusal(lambda call=call: call(house.root, "s")) is Code.SESSION_MISSING  # type: ignore[misc]
        house.put_bytes("s", b"bad", 0o640)
        assert refusal(lambda call=call: call(house.root, "s")) is Code.SESSION_INVALID  # type: ignore[misc]
        house.file("s").unlink()
    assert house.names() == set()


def test_more_than_64_mib_is_not_read(house: House) -> None:
    with house.put_bytes("s", b"").open("r+b") as file:
        file.truncate(LIMITS.history_file_bytes + 1)
    assert refusal(lambda: repair.apply(house.root, "s")) is Code.HISTORY_LIMIT


def test_a_session_without_room_for_the_diagnostic(house: House) -> None:
    line = house.line("s", "x", {})
    house.put("s", *[line] * LIMITS.history_file_lines, b"bad")
    assert repair.survey(house.root, "s").impossible is not None
    assert refusal(lambda: repair.apply(house.root, "s")) is Code.SESSION_INVALID
    house.put("s", *[line] * (LIMITS.history_file_lines - 1), b"bad")
    assert repair.survey(house.root, "s").impossible is None


def test_a_session_under_the_name_of_another_is_left_alone(house: House) -> None:
    data = house.put("s", *[house.line("t", "user_input", {"text": "u"})] * 3).read_bytes()
    assert refusal(lambda: repair.apply(house.root, "s")) is Code.SESSION_INVALID
    assert house.file("s").read_bytes() == data
    house.put("s", house.line("t", "x", {}), house.line("u", "x", {}))
    repair.apply(house.root, "s")  # of several others: no copy of anything
    house.put("s", house.line("t", "x", {}), house.line("s", "user_input", {"text": "mine"}))
    repair.apply(house.root, "s")
    assert "mine" in texts(house)


def test_a_whole_record_that_is_refused_stays(house: House) -> None:
    """A newer writer may have meant something by it. The damage beside it is repaired all the same."""
    newer = house.line("s", "turn_status", {"status": "paused"})
    house.put("s", *records(house, "one"), newer)
    plan = repair.survey(house.root, "s")
    assert plan.damages == ()
    assert plan.outcome.fault is not None
    assert (plan.outcome.fault.code, plan.outcome.fault.line) == (Code.SESSION_INVALID, 2)
    house.put("s", *records(house, "one"), b"bad", newer)
    repair.apply(house.root, "s")
    assert newer in house.file("s").read_bytes()
    assert opening(house) is Code.SESSION_INVALID


# while somebody interferes


@pytest.mark.parametrize("change", ["append", "replace", "remove", "lease"])
def test_what_changes_meanwhile_is_not_overwritten(house: House, change: str) -> None:
    path = house.put_bytes("s", b"bad")

    def interfere(step: Step, done: bool) -> None:
        if (step, done) != (Step.REPAIR_SYNC, True):
            return
        if change == "append":
            path.write_bytes(b"bad and more")
        elif change == "replace":
            path.unlink()
            house.put_bytes("s", b"bad")
        elif change == "remove":
            path.unlink()
        else:
            house.lock("s.writer").unlink()

    with watching(interfere):
        assert refusal(lambda: repair.apply(house.root, "s")) is Code.SESSION_INVALID
    assert (path.read_bytes() if path.exists() else None) in (b"bad", b"bad and more", None)
    assert house.names() <= {"s.jsonl", "event-id-sequence"}


STEPS = [step for step in Step if step.name.startswith(("SALVAGE", "REPAIR"))]


@pytest.mark.parametrize("step", STEPS)
def test_a_step_that_fails_leaves_the_session_whole(house: House, step: Step) -> None:
    data = house.put("s", *records(house, "one", "two"), b"bad").read_bytes()
    left = house.sessions / ".s.jsonl.repair.tmp"
    if step is Step.REPAIR_CLEAR:
        left.write_bytes(b"half")
        left.chmod(0o600)
    with failing([step], ERROR) as log:
        assert refusal(lambda: repair.apply(house.root, "s")) is Code.PERSISTENCE_FAILED
    assert (step, False) in log
    if step is not Step.REPAIR_CLEAR:
        assert house.names() == {"s.jsonl", "event-id-sequence"}
    if step is Step.REPAIR_SYNC_DIRECTORY:  # it was renamed before
        assert salvaged(house) == {"1.bytes": data}
    else:
        assert house.file("s").read_bytes() == data
    repair.apply(house.root, "s")
    assert house.names() == {"s.jsonl", "event-id-sequence"}
    assert texts(house) == ["one", "two", REPAIR.format(4)]
    assert salvaged(house) == {"1.bytes": data}


def test_the_order_of_a_repair(house: House) -> None:
    """The copy is durable and compared before anything happens to the session."""
    house.put_bytes("s", b"bad")
    with failing([], ERROR) as log:
        repair.apply(house.root, "s")
    assert [step for step, done in log if done and step in STEPS] == [
        *[Step.SALVAGE_DIRECTORY] * 4,  # two, each with a sync of the directory around it
        Step.SALVAGE_CREATE,
        Step.SALVAGE_WRITE,
        Step.SALVAGE_SYNC,
        Step.SALVAGE_RENAME,
        *[Step.SALVAGE_SYNC_DIRECTORY] * 3,
        Step.REPAIR_CREATE,
        Step.REPAIR_WRITE,
        Step.REPAIR_SYNC,
        Step.REPAIR_RENAME,
        Step.REPAIR_SYNC_DIRECTORY,
    ]


def test_a_copy_that_differs_ends_it(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    data = house.put_bytes("s", b"bad and worse").read_bytes()
    original = os.write

    def flip(descriptor: int, text: bytes) -> int:
        return original(descriptor, bytes(text).replace(b"worse", b"wotse"))

    monkeypatch.setattr(os, "write", flip)
    assert refusal(lambda: repair.apply(house.root, "s")) is Code.PERSISTENCE_FAILED
    monkeypatch.undo()
    assert house.file("s").read_bytes() == data
    assert salvaged(house) == {}


def test_what_stands_in_the_place_of_a_temporary_file(house: House) -> None:
    data = house.put_bytes("s", b"bad").read_bytes()
    temporary = house.sessions / ".s.jsonl.repair.tmp"
    temporary.symlink_to("s.jsonl")
    assert refusal(lambda: repair.apply(house.root, "s")) is Code.PERSISTENCE_FAILED
    assert (house.file("s").read_bytes(), temporary.is_symlink()) == (data, True)
    temporary.unlink()
    temporary.write_bytes(b"half")
    temporary.chmod(0o600)
    repair.apply(house.root, "s")
    assert house.names() == {"s.jsonl", "event-id-sequence"}


def test_event_ids_that_cannot_be_had(house: House) -> None:
    data = house.put_bytes("s", b"bad").read_bytes()
    (house.sessions / "event-id-sequence").write_bytes(b"7\n")
    assert refusal(lambda: repair.apply(house.root, "s")) is Code.PERSISTENCE_FAILED
    assert house.file("s").read_bytes() == data
    assert salvaged(house) == {}
