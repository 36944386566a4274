"""Creating, opening, reopening, cancelling: what is served, what is left alone (SESS, LEASE-02)."""

import fcntl
import os
import threading
import time

import pytest

from localagent.protocol.codes import Code
from localagent.protocol.ids import is_id, is_uuid
from localagent.sessions import lines
from localagent.sessions.disk import Step
from localagent.sessions.errors import Cancelled
from localagent.sessions.ownership import Ownership
from tests.sessions.kit import FIRST, House, StillClock, begun, is_complete, opening, refusal, shown, turn, watching

# creating


def test_create(house: House) -> None:
    """SESS-16 to SESS-22, LEASE-02, REC-01."""
    handle = house.store().create()
    assert is_uuid(handle.session_id)
    assert handle.session_id == handle.session_id.lower()
    assert (handle.durable, handle.notices, handle.preferences) == (False, (), None)
    assert handle.revision is not None
    assert is_id(handle.revision)
    assert house.names() == {f".{handle.session_id}.writer.lock", f".{handle.session_id}.active.lock"}
    assert (shown(handle), is_complete(handle)) == ([], True)
    handle.release()
    assert house.names() == set()


def test_create_where_nothing_can_be_written(house: House) -> None:
    """D79."""
    house.sessions.chmod(0o750)
    assert refusal(house.store().create) is Code.SESSION_INVALID
    house.sessions.rmdir()
    assert refusal(house.store().create) is Code.SESSION_INVALID


# ids (SESS-31, SESS-45)


@pytest.mark.parametrize(
    "session_id", ["", ".", "..", "../x", "a/b", "/etc/passwd", "a\0", "a.b", "x" * 65, "\u00e9", "a\n", " a"]
)
def test_an_id_outside_the_grammar_is_refused_before_the_disk_is_touched(
    house: House, session_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = house.store()
    monkeypatch.delattr(os, "open")
    assert refusal(lambda: store.open(session_id)) is Code.INVALID_PARAMS


@pytest.mark.parametrize("length", [1, 63, 64])
def test_the_longest_id(house: House, length: int) -> None:
    house.put_bytes("A" * length, b"")
    house.store().open("A" * length).release()


def test_exactly_that_id_or_none(house: House) -> None:
    house.put_bytes("abc", b"")
    for near in ("ab", "abcd", "abc-"):
        assert opening(house, near) is Code.SESSION_MISSING


# what is there


def test_an_empty_file_is_a_durable_session(house: House) -> None:
    """REC-03, SESS-34, BASE-OP-100."""
    house.put_bytes("s", b"")
    handle = house.store().open("s")
    assert (handle.durable, handle.notices) == (True, ("cwd_unverified",))
    assert (shown(handle), is_complete(handle)) == ([], True)
    handle.append(turn(1))
    handle.refresh()
    assert (shown(handle), handle.notices) == (FIRST, ("cwd_unverified",))
    handle.release()
    assert house.store().open("s").notices == ()


def test_a_missing_session_leaves_no_lock(house: House) -> None:
    assert opening(house) is Code.SESSION_MISSING
    assert house.names() == set()


# reopening what is attached (BASE-OP-97, BASE-OP-98, SESS-23, SESS-44)


def test_a_lazy_handle_reopens_in_its_own_child_alone(house: House) -> None:
    store = house.store()
    lazy = store.create()
    assert opening(house, lazy.session_id) is Code.SESSION_MISSING
    again = store.open(lazy.session_id)
    assert (again.durable, again.notices, again.session_id) == (False, (), lazy.session_id)
    assert again.revision != lazy.revision
    lazy.release()
    assert len(house.names()) == 2  # the leases go with the last handle
    again.append(turn(1))
    again.release()
    assert house.names() == {"event-id-sequence", f"{lazy.session_id}.jsonl"}


def test_a_released_lazy_handle_is_missing(house: House) -> None:
    store = house.store()
    lazy = store.create()
    lazy.release()
    assert refusal(lambda: store.open(lazy.session_id)) is Code.SESSION_MISSING


def test_the_attached_session_reopens_with_what_is_there_now(house: House) -> None:
    store = house.store()
    handle = store.create()
    handle.append(turn(1))
    handle.refresh()
    again = store.open(handle.session_id)
    assert (again.durable, shown(again)) == (True, FIRST)
    assert again.revision != handle.revision
    assert shown(handle) == FIRST  # as it was, until it is released
    with house.file(handle.session_id).open("ab") as file:
        file.write(b"torn")
    assert refusal(lambda: store.open(handle.session_id)) is Code.SESSION_INVALID
    house.file(handle.session_id).unlink()
    assert refusal(lambda: store.open(handle.session_id)) is Code.SESSION_MISSING  # SESS-35
    handle.release()
    again.release()
    assert house.names() == {"event-id-sequence"}


def test_a_session_passes_from_handle_to_handle(house: House) -> None:
    store = house.store()
    handle = store.create()
    for number in range(4):
        again = store.open(handle.session_id)
        handle.release()
        handle = again
        handle.append(turn(number))
    handle.release()
    assert house.names() == {"event-id-sequence", f"{handle.session_id}.jsonl"}


def test_an_ownership_that_is_over_is_not_shared(house: House) -> None:
    ownership = Ownership(house.root, "s", StillClock().clock, stored=False, spoilt=False)
    assert ownership.share()
    assert not ownership.release()
    assert ownership.release()
    assert not ownership.share()


def test_a_file_that_goes_while_it_is_opened_is_missing(house: House) -> None:
    path = house.put_bytes("s", b"")

    def remove(step: Step, done: bool) -> None:
        path.unlink(missing_ok=True)

    with watching(remove):
        assert refusal(lambda: house.store().open("s")) is Code.SESSION_MISSING
    assert house.names() == set()


def test_releasing_twice_does_not_release_for_another(house: House) -> None:
    store = house.store()
    one = store.create()
    two = store.open(one.session_id)
    one.release()
    one.release()
    two.append(turn(1))
    two.refresh()
    assert shown(two) == FIRST


def test_another_child_finds_it_busy(house: House) -> None:
    handle = begun(house)
    assert opening(house, handle.session_id) is Code.SESSION_BUSY
    handle.release()
    other = house.store().open(handle.session_id)
    assert shown(other) == FIRST
    other.release()


def test_two_sessions_of_one_child(house: House) -> None:
    store = house.store()
    one, two = store.create(), store.create()
    one.append(turn(1))
    two.append(turn(2))
    store.renew(3)
    one.release()
    two.append(turn(3))
    two.refresh()
    assert len(shown(two)) == 4


def test_leases_are_renewed_from_another_thread(house: House) -> None:
    """The loop renews while a worker attaches, appends and releases; neither sees the other's half-done work."""
    store = house.store()
    over = threading.Event()

    def renew() -> None:
        while not over.is_set():
            store.renew(time.time_ns())

    renewing = threading.Thread(target=renew)
    renewing.start()
    try:
        for number in range(100):
            handle = store.create()
            handle.append(turn(number))
            again = store.open(handle.session_id)
            handle.release()
            again.append(turn(number))
            again.release()
    finally:
        over.set()
        renewing.join()
    assert not [name for name in house.names() if name.endswith(".lock")]


# cancelling


class After:
    """A token that is set once it has been asked ``count`` times."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __call__(self) -> bool:
        self.count -= 1
        return self.count < 0


def test_cancelled_at_every_question_nothing_is_left(house: House) -> None:
    spellings = [house.cwd + "/." * number for number in range(3)]
    house.put("s", *[house.line("s", "session_usage", {}, cwd=cwd) for cwd in spellings * 300])
    store = house.store()
    blocks = -(-house.file("s").stat().st_size // lines.BLOCK)
    asked = 0
    while True:
        token = After(asked)
        try:
            store.open("s", token).release()
            break
        except Cancelled:
            assert house.names() == {"s.jsonl"}
            asked += 1
    assert asked == 1 + blocks + len(spellings)  # between bounded steps, and only there
    with pytest.raises(Cancelled):
        store.create(After(0))
    assert house.names() == {"s.jsonl"}


def test_a_cancelled_page_and_refresh(house: House) -> None:
    store = house.store(StillClock(0).clock)  # at no time has the tick of a change passed: bytes are compared
    house.put("s", house.line("s", "user_input", {"text": "u"}))
    handle = store.open("s")
    revision = handle.revision
    assert revision is not None
    with pytest.raises(Cancelled):
        handle.page(revision, None, After(0))
    assert len(handle.page(revision, None).entries) == 2  # a cancelled page spoils nothing
    with pytest.raises(Cancelled):
        handle.refresh(After(0))
    assert handle.revision is None
    assert handle.refresh() != revision


def test_descriptors_do_not_leak(house: House) -> None:
    house.put("s", b"bad")
    store = house.store()
    before = os.listdir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else []
    for _ in range(50):
        refusal(lambda: store.open("s"))
        refusal(lambda: store.open("missing"))
        handle = store.create()
        handle.append(turn(1))
        handle.refresh()
        handle.release()
    assert len(os.listdir("/proc/self/fd") if before else []) == len(before)


def test_the_kernel_lock_lives_as_long_as_the_handle(house: House) -> None:
    handle = house.store().create()
    lock = house.lock(f"{handle.session_id}.writer")
    with lock.open() as other, pytest.raises(BlockingIOError):
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    handle.release()
