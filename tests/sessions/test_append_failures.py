"""What a failed append leaves (REC-32), and what a lost lease means for the next (LEASE-04)."""

import os

import pytest

from localagent.sessions.disk import Step
from localagent.sessions.errors import Cancelled, Outcome
from tests.sessions.kit import (
    FIRST,
    House,
    StillClock,
    begun,
    failing,
    refused,
    shown,
    turn,
    watching,
)

ERROR = OSError(5, "Input/output error")


# failures (REC-32)


@pytest.mark.parametrize("step", [Step.SESSION_WRITE, Step.SESSION_SYNC])
def test_a_failed_write_or_sync_is_rolled_back(house: House, step: Step) -> None:
    handle = begun(house)
    before = house.file(handle.session_id).read_bytes()
    revision = handle.revision
    with failing([step], ERROR) as log:
        assert refused(handle) is Outcome.ROLLED_BACK
    assert {(Step.SESSION_TRUNCATE, True), (Step.SESSION_SYNC_BACK, True)} <= set(log)
    assert house.file(handle.session_id).read_bytes() == before
    assert handle.revision == revision
    assert shown(handle) == FIRST  # nothing happened: the history is still served
    handle.append(turn(2))
    handle.refresh()
    assert len(shown(handle)) == 4


def test_half_a_write_is_taken_back(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    handle = begun(house)
    before = house.file(handle.session_id).read_bytes()
    original = os.write

    def half(descriptor: int, data: bytes) -> int:
        if b"prompt 2" not in bytes(data):
            if b"event_id" in bytes(data):
                raise OSError(28, "No space left on device")
            return original(descriptor, data)
        return original(descriptor, data[: bytes(data).index(b"prompt 2") + 8])

    monkeypatch.setattr(os, "write", half)
    assert refused(handle) is Outcome.ROLLED_BACK
    assert house.file(handle.session_id).read_bytes() == before


@pytest.mark.parametrize("step", [Step.SESSION_WRITE, Step.SESSION_SYNC, Step.SESSION_SYNC_DIRECTORY])
def test_a_failed_first_append_leaves_no_session(house: House, step: Step) -> None:
    """REC-01: the file appears with its first append, never earlier."""
    handle = house.store().create()
    with failing([step], ERROR):
        assert refused(handle) is Outcome.ROLLED_BACK
    assert not house.file(handle.session_id).exists()
    assert not handle.durable
    assert shown(handle) == []
    handle.append(turn(1))
    handle.refresh()
    assert (handle.durable, shown(handle)) == (True, FIRST)


def test_an_empty_file_that_cannot_be_removed_is_an_empty_session(house: House) -> None:
    handle = house.store().create()
    with failing([Step.SESSION_SYNC, Step.SESSION_REMOVE], ERROR):
        assert refused(handle) is Outcome.ROLLED_BACK
    assert house.file(handle.session_id).read_bytes() == b""
    handle.append(turn(1))
    handle.refresh()
    assert shown(handle) == FIRST


@pytest.mark.parametrize("step", [Step.SESSION_TRUNCATE, Step.SESSION_SYNC_BACK])
def test_a_failed_roll_back_is_uncertain_and_final(house: House, step: Step) -> None:
    store = house.store()
    handle = store.create()
    handle.append(turn(1))
    handle.refresh()
    with failing([Step.SESSION_SYNC, step], ERROR):
        assert refused(handle) is Outcome.UNCERTAIN
    assert handle.revision is None
    written = house.file(handle.session_id).read_bytes()
    assert refused(handle) is Outcome.REFUSED
    again = store.open(handle.session_id)  # a fresh exact open tells; this child does not append any more
    assert len(shown(again)) == (4 if step is Step.SESSION_TRUNCATE else 2)
    handle.release()
    assert refused(again) is Outcome.REFUSED
    again.release()
    once_more = store.open(handle.session_id)
    assert refused(once_more) is Outcome.REFUSED
    once_more.release()
    assert house.file(handle.session_id).read_bytes() == written
    other = house.store().open(handle.session_id)
    other.append(turn(3))
    other.release()


@pytest.mark.parametrize(
    "step",
    [
        *[step for step in Step if step.name.startswith("REPLACE")],
        Step.LEASE_CREATE,
        Step.LEASE_WRITE,
        Step.SESSION_CREATE,
    ],
)
def test_what_fails_before_the_write_refuses(house: House, step: Step) -> None:
    handle = house.store().create()
    with failing([step], ERROR):
        assert refused(handle) is Outcome.REFUSED
    assert not house.file(handle.session_id).exists()
    handle.append(turn(1))
    handle.refresh()
    assert shown(handle) == FIRST


def test_a_mark_that_cannot_be_set_is_no_failure(house: House) -> None:
    handle = begun(house)
    with failing([Step.SESSION_STAMP], ERROR):
        handle.append(turn(2))
    handle.refresh()
    assert len(shown(handle)) == 4


def test_no_space_left(house: House) -> None:
    """A limit of the kernel, not a hook: the file may not pass this size."""
    import resource

    handle = begun(house)
    before = house.file(handle.session_id).read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 100, hard))
    try:
        assert refused(handle) is Outcome.ROLLED_BACK
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert house.file(handle.session_id).read_bytes() == before


def test_what_nobody_foresaw_is_uncertain(house: House) -> None:
    handle = begun(house)

    def burst(step: Step, done: bool) -> None:
        if step is Step.SESSION_SYNC:
            raise MemoryError

    with watching(burst), pytest.raises(MemoryError):
        handle.append(turn(2))
    assert refused(handle) is Outcome.REFUSED
    assert len(shown(house.reopened(handle))) == 4


# leases (LEASE-04, REC-30)


@pytest.mark.parametrize("role", ["writer", "active"])
@pytest.mark.parametrize("noticed", ["by the append", "by the renewal"])
def test_a_lost_lease_ends_appending(house: House, role: str, noticed: str) -> None:
    store = house.store()
    handle = store.create()
    handle.append(turn(1))
    house.lock(f"{handle.session_id}.{role}").unlink()
    if noticed == "by the renewal":
        store.renew(1)
    before = house.file(handle.session_id).read_bytes()
    assert refused(handle) is Outcome.REFUSED
    house.lock(f"{handle.session_id}.{role}").write_text("pid=1\n")
    assert refused(handle) is Outcome.REFUSED
    assert house.file(handle.session_id).read_bytes() == before
    handle.release()
    lock = house.lock(f"{handle.session_id}.{role}")
    assert lock.exists()  # somebody else's by now
    lock.unlink()
    again = store.open(handle.session_id)  # to be read; this child has lost its word
    assert refused(again) is Outcome.REFUSED
    again.release()


def test_a_renewal_touches_both_leases(house: House) -> None:
    store = house.store()
    handle = store.create()
    store.renew(7_000_000_000)
    for role in ("writer", "active"):
        assert house.lock(f"{handle.session_id}.{role}").stat().st_mtime == 7
    handle.append(turn(1))


def test_an_append_waits_for_the_append_lease(house: House) -> None:
    still = StillClock()
    handle = house.store(still.clock).create()
    handle.append(turn(1))
    lock = house.lock(f"{handle.session_id}.jsonl")
    lock.write_text(f"pid={os.getpid()}\n")
    assert refused(handle) is Outcome.REFUSED
    assert 30 <= still.steady < 30.02
    with pytest.raises(Cancelled):
        handle.append(turn(2), lambda: True)
    lock.unlink()
    handle.append(turn(2))
    handle.refresh()
    assert len(shown(handle)) == 4


def test_a_released_handle_appends_no_more(house: House) -> None:
    handle = begun(house)
    handle.release()
    handle.release()
    assert refused(handle) is Outcome.REFUSED
