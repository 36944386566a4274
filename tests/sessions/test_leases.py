"""Leases, clause by clause (LEASE). Two real processes contend in test_processes."""

import fcntl
import os
import re
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from localagent.sessions import leases
from localagent.sessions.clock import never
from localagent.sessions.disk import Step
from localagent.sessions.errors import Cancelled, Held, Unsafe
from localagent.sessions.leases import Lease
from tests.sessions.kit import SECOND, House, StillClock, failing, watching


@pytest.fixture(scope="module")
def dead_pid() -> int:
    """The pid of a process that has existed and does not any more."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def take(house: House, target: str = "s.writer", still: StillClock | None = None) -> Lease:
    return leases.take(house.root.sessions, target, (still or StillClock()).clock)


def put(
    house: House, content: bytes, target: str = "s.writer", age: float = 0, still: StillClock | None = None
) -> Path:
    """A lock file as somebody else would have left it ``age`` seconds ago."""
    path = house.lock(target)
    path.write_bytes(content)
    mtime = (still or StillClock()).wall - int(age * SECOND)
    os.utime(path, ns=(mtime, mtime))
    return path


def test_a_lease_file(house: House) -> None:
    """LEASE-01, LEASE-03, ROOT-07."""
    before = os.umask(0)
    try:
        lease = take(house, still=StillClock(123))
    finally:
        os.umask(before)
    path = house.sessions / ".s.writer.lock"
    pid = os.getpid()
    assert path.read_bytes() == f"pid={pid}\ntoken={pid}-123\nkernel=flock\n".encode()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert lease.renew(SECOND)
    with path.open() as other, pytest.raises(BlockingIOError):
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    lease.release()
    assert not lease.held
    assert house.names() == set()
    lease.release()  # once is enough


def test_the_descriptor_is_not_inherited(house: House) -> None:
    lease = take(house)
    assert lease._descriptor is not None
    assert not os.get_inheritable(lease._descriptor)
    lease.release()


def test_a_held_lease_is_tried_once(house: House) -> None:
    """LEASE-02."""
    lease = take(house)
    with pytest.raises(Held):
        take(house)
    lease.release()
    take(house).release()


# LEASE-05, row by row


def test_a_link_a_fifo_and_a_directory_are_unsafe(house: House, tmp_path: Path) -> None:
    path = house.lock("s.writer")
    outside = tmp_path / "outside"
    outside.write_text("pid=1\n")
    path.symlink_to(outside)
    with pytest.raises(Unsafe):
        take(house)
    path.unlink()
    path.symlink_to(tmp_path / "nothing")
    with pytest.raises(Unsafe):
        take(house)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(Unsafe):
        take(house)
    path.unlink()
    path.mkdir()
    with pytest.raises(Unsafe):
        take(house)
    assert path.is_dir()
    assert outside.read_text() == "pid=1\n"


@pytest.mark.parametrize(("size", "verdict"), [(4095, None), (4096, None), (4097, Unsafe)])
def test_more_than_4096_bytes_are_unsafe(
    house: House, dead_pid: int, size: int, verdict: type[Exception] | None
) -> None:
    head = f"pid={dead_pid}\n".encode()
    path = put(house, head + b"x" * (size - len(head)))
    if verdict is None:
        take(house).release()
        return
    with pytest.raises(verdict):
        take(house)
    assert len(path.read_bytes()) == size


def test_a_free_kernel_lock_proves_that_the_holder_is_gone_whatever_the_pid(house: House) -> None:
    for pid in (os.getpid(), 1, 0):
        put(house, f"pid={pid}\ntoken={pid}-1\nkernel=flock\n".encode())
        take(house).release()


def test_a_held_kernel_lock_holds_whatever_the_pid(house: House, dead_pid: int) -> None:
    path = put(house, f"pid={dead_pid}\ntoken={dead_pid}-1\nkernel=flock\n".encode(), age=1e6)
    with path.open() as holder:
        fcntl.flock(holder, fcntl.LOCK_EX)
        with pytest.raises(Held):
            take(house)
    take(house).release()


def test_without_a_kernel_line_a_dead_pid_is_stale_at_once_and_a_living_one_never(house: House, dead_pid: int) -> None:
    put(house, f"pid={dead_pid}\ntoken={dead_pid}-1\n".encode())
    take(house).release()
    for pid in (os.getpid(), 1):
        put(house, f"pid={pid}\n".encode(), age=1e6)
        with pytest.raises(Held):
            take(house)


def test_a_pid_that_may_not_be_signalled_exists(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_pid: int, _signal: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "kill", refuse)
    put(house, b"pid=4242\n", age=1e6)
    with pytest.raises(Held):
        take(house)


def test_a_pid_that_no_process_can_have_is_dead(house: House) -> None:
    put(house, b"pid=99999999999999999\n")
    take(house).release()


@pytest.mark.parametrize(
    "content", [b"", b"garbage\n", b"pid=\n", b"pid=-1\n", b"pid=0\n", b"pid=x1\n", b"\xff\x00", b" pid=1\n"]
)
@pytest.mark.parametrize(("age", "stale"), [(4.999999999, False), (5, True), (5.1, True), (-3600, False)])
def test_without_a_usable_pid_the_age_decides(house: House, content: bytes, age: float, stale: bool) -> None:
    put(house, content, age=age)
    if stale:
        take(house).release()
    else:
        with pytest.raises(Held):
            take(house)


def test_where_the_file_system_has_no_flock_the_pid_rows_decide(
    house: House, dead_pid: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LEASE-08."""

    def refuse(_file: int, _operation: int) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", refuse)
    lease = take(house)
    assert b"kernel" not in house.lock("s.writer").read_bytes()
    with pytest.raises(Held):
        take(house)
    lease.release()
    put(house, f"pid={dead_pid}\nkernel=flock\n".encode())
    take(house).release()


def test_a_lock_that_cannot_be_opened_is_unsafe(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put(house, b"pid=1\n")
    original = os.open

    def refuse(name: str, flags: int, *rest: Any, **more: Any) -> int:
        if name == path.name and not flags & os.O_CREAT:
            raise PermissionError(13, "Permission denied")
        return original(name, flags, *rest, **more)

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(Unsafe):
        take(house)


def test_a_lock_that_may_only_be_read_is_judged(house: House, dead_pid: int, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put(house, f"pid={os.getpid()}\n".encode())
    original = os.open

    def refuse(name: str, flags: int, *rest: Any, **more: Any) -> int:
        if name == path.name and flags & os.O_RDWR and not flags & os.O_CREAT:
            raise PermissionError(13, "Permission denied")
        return original(name, flags, *rest, **more)

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(Held):
        take(house)
    put(house, f"pid={dead_pid}\n".encode())
    take(house).release()


# LEASE-06


def test_recovery_works_under_a_guard(house: House, dead_pid: int) -> None:
    put(house, f"pid={dead_pid}\n".encode())
    guards: list[bytes] = []

    def look(step: Step, done: bool) -> None:
        if step is Step.LEASE_RECOVER and not done:
            guards.append((house.sessions / "..s.writer.lock.recovery").read_bytes())

    with watching(look):
        lease = take(house)
    assert len(guards) == 1
    assert re.match(rb"pid=%d\n" % os.getpid(), guards[0])
    assert house.names() == {".s.writer.lock"}
    lease.release()


def test_a_held_guard_means_somebody_else_recovers(house: House, dead_pid: int) -> None:
    put(house, f"pid={dead_pid}\n".encode())
    guard = put(house, f"pid={os.getpid()}\n".encode())
    guard = guard.rename(house.sessions / "..s.writer.lock.recovery")
    put(house, f"pid={dead_pid}\n".encode())
    with pytest.raises(Held):
        take(house)
    assert house.lock("s.writer").exists()
    guard.write_text(f"pid={dead_pid}\n")  # a guard is judged as any lease
    take(house).release()
    assert house.names() == set()


def test_a_stale_lock_that_was_replaced_meanwhile_is_not_removed(house: House, dead_pid: int) -> None:
    """LEASE-06: device, inode and content are still those judged."""
    put(house, f"pid={dead_pid}\n".encode())

    def replace_it(step: Step, done: bool) -> None:
        if step is Step.LEASE_CREATE and done and (house.sessions / "..s.writer.lock.recovery").exists():
            house.lock("s.writer").unlink(missing_ok=True)
            house.lock("s.writer").write_text(f"pid={os.getppid()}\n")

    with watching(replace_it), pytest.raises(Held):
        take(house)
    assert house.lock("s.writer").read_text() == f"pid={os.getppid()}\n"
    assert house.names() == {".s.writer.lock"}


def test_two_of_us_cannot_both_remove_one_stale_lock(house: House, dead_pid: int) -> None:
    path = put(house, f"pid={dead_pid}\n".encode())
    with path.open() as other:  # the other has judged it, and is on his way to unlink it
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(Held):
            take(house)


def test_a_holder_who_was_held_up_does_not_believe_in_a_lease_that_was_taken_away(house: House) -> None:
    """Between creating the file and locking it, five seconds pass, and somebody finds the empty file stale."""

    def steal(step: Step, done: bool) -> None:
        if step is Step.LEASE_CREATE and done:
            house.lock("s.writer").unlink()
            house.lock("s.writer").write_text(f"pid={os.getppid()}\n")

    with watching(steal), pytest.raises(Held):
        take(house)
    assert house.lock("s.writer").read_text() == f"pid={os.getppid()}\n"


def test_a_lock_file_that_cannot_be_written_is_not_left_behind(house: House) -> None:
    with failing([Step.LEASE_WRITE], OSError(28, "No space left on device")), pytest.raises(OSError, match="space"):
        take(house)
    assert house.names() == set()


# LEASE-04, LEASE-07


def test_renewal_sets_the_mtime_of_a_lease_that_is_still_ours(house: House) -> None:
    lease = take(house)
    assert lease.renew(5 * SECOND)
    assert house.lock("s.writer").stat().st_mtime_ns == 5 * SECOND
    lease.release()
    assert not lease.renew(6 * SECOND)


def lose_by_removal(path: Path) -> None:
    path.unlink()


def lose_by_replacement(path: Path) -> None:
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content)


def lose_by_content(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"x")


def lose_with_the_folder(path: Path) -> None:
    path.parent.rename(path.parent.with_name("old"))


@pytest.mark.parametrize("lose", [lose_by_removal, lose_by_replacement, lose_by_content, lose_with_the_folder])
def test_a_lost_lease_is_lost_for_good_and_not_unlinked(house: House, lose) -> None:  # type: ignore[no-untyped-def]
    lease = take(house)
    path = house.lock("s.writer")
    lose(path)
    left = path.read_bytes() if path.exists() else None
    assert not lease.renew(5 * SECOND)
    assert not lease.held
    lease.release()
    assert (path.read_bytes() if path.exists() else None) == left


def test_a_folder_that_cannot_be_looked_into_proves_nothing(house: House) -> None:
    lease = take(house)
    house.sessions.chmod(0o755)
    assert lease.renew(5 * SECOND)
    assert house.lock("s.writer").stat().st_mtime_ns != 5 * SECOND
    house.sessions.chmod(0o700)
    assert lease.renew(5 * SECOND)
    lease.release()


# waiting (LEASE-02)


def test_waiting_tries_every_10_ms_up_to_30_s(house: House) -> None:
    still = StillClock()
    lease = take(house, still=still)
    with pytest.raises(Held), leases.waiting(house.root.sessions, "s.writer", still.clock, never):
        pass
    assert set(still.slept) == {0.01}
    assert 30 <= sum(still.slept) < 30.02
    lease.release()
    with leases.waiting(house.root.sessions, "s.writer", still.clock, never):
        assert house.lock("s.writer").exists()
    assert house.names() == set()


def test_waiting_can_be_cancelled(house: House) -> None:
    lease = take(house)
    with pytest.raises(Cancelled), leases.waiting(house.root.sessions, "s.writer", StillClock().clock, lambda: True):
        pass
    lease.release()


def test_an_unsafe_lock_is_not_waited_for(house: House) -> None:
    house.lock("s.writer").mkdir()
    still = StillClock()
    with pytest.raises(Unsafe), leases.waiting(house.root.sessions, "s.writer", still.clock, never):
        pass
    assert still.slept == []
