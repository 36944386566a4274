"""Real processes: some that want one session, and one that is killed at each durable step of what it does."""

import os
import re
import signal
from collections.abc import Callable

import pytest

from localagent.protocol.codes import Code
from localagent.sessions import paths
from localagent.sessions.disk import Step
from tests.sessions.kit import FIRST, House, refusal, shown, turn
from tests.sessions.processes import Child, Nursery

Spawn = Callable[[], Child]
BOTH = [*FIRST, ("user", "prompt 2", False), ("assistant", "answer 2", False)]


# two processes


def test_two_processes_and_one_session(house: House, spawn: Spawn) -> None:
    one, two = spawn(), spawn()
    session_id = one.ask("create")
    assert two.ask(f"open {session_id}") == "session_missing"
    assert one.ask("append 1") == "receipt 1,2,3"
    assert two.ask(f"open {session_id}") == "session_busy"
    assert one.ask("renew") == "renewed"
    assert one.ask("release") == "released"
    assert two.ask(f"open {session_id}") == "opened"
    assert two.ask("append 2") == "receipt 401,402,403"  # a block of its own
    assert one.ask(f"open {session_id}") == "session_busy"
    two.kill()  # the kernel frees its locks at once
    assert one.ask(f"open {session_id}") == "opened"
    assert one.ask("release") == "released"
    handle = house.store().open(session_id)
    assert shown(handle) == BOTH
    handle.release()
    assert house.names() == {"event-id-sequence", f"{session_id}.jsonl"}


def test_through_a_linked_root_it_is_the_same_session(house: House, nursery: Nursery, spawn: Spawn) -> None:
    alias = house.base / "alias"
    alias.symlink_to(house.root.path)
    one = spawn()
    session_id = one.ask("create")
    one.ask("append 1")
    with nursery.child(paths.prepare(str(alias)).path, house.cwd) as two:
        assert two.ask(f"open {session_id}") == "session_busy"


def test_many_who_want_it_at_once(house: House, spawn: Spawn) -> None:
    """Four at a time, over no lease, a stale one, and stale ones with a stale guard: one wins, and never two."""
    house.put_bytes("s", b"")
    children = [spawn() for _ in range(4)]
    gone = f"pid={dead_pid(spawn)}\n"
    for number in range(60):
        if number % 3:
            house.lock("s.writer").write_text(gone)
            house.lock("s.active").write_text(gone + "kernel=flock\n")
        if number % 3 == 2:
            (house.sessions / "..s.writer.lock.recovery").write_text(gone)
        for each in children:
            each.tell("open s")
        answers = [each.hear() for each in children]
        assert answers.count("opened") == 1, answers
        assert answers.count("session_busy") == 3
        assert children[answers.index("opened")].ask("release") == "released"
        assert house.names() == {"s.jsonl"}


def test_ids_of_many_are_unique(house: House, spawn: Spawn) -> None:
    children = [spawn() for _ in range(3)]
    sessions = [each.ask("create") for each in children]
    for number in range(20):
        for each in children:
            each.tell(f"append {number}")
        for each in children:
            assert each.hear().startswith("receipt ")
    ids = [match for session in sessions for match in event_ids(house, session)]
    assert len(ids) == len(set(ids)) == 180


def event_ids(house: House, session_id: str) -> list[bytes]:
    return re.findall(rb'"event_id":"(\w+)"', house.file(session_id).read_bytes())


def dead_pid(spawn: Spawn) -> int:
    child = spawn()
    child.kill()
    return child.pid


# kill -9


def kill_at(child: Child, step: Step, moment: str, command: str) -> None:
    """Kill the child at a step of its command, and see that it has acknowledged nothing."""
    assert child.ask(f"stop {step.name} {moment}") == "will stop"
    child.tell(command)
    assert child.hear() == "at"
    assert child.kill() == ""


def reopened(house: House, session_id: str) -> list[tuple[str, str, bool]] | Code:
    """What the next child sees, at once, over the leases of the dead one; and then it goes on."""
    store = house.store()
    if not house.file(session_id).exists():
        return refusal(lambda: store.open(session_id))
    lock = house.lock(f"{session_id}.jsonl")
    if lock.exists() and lock.read_bytes() == b"":  # killed while making it: stale when it is 5 s old
        os.utime(lock, (1, 1))
    handle = store.open(session_id)
    seen = shown(handle)
    handle.append(turn(9))
    handle.refresh()
    assert shown(handle) == [*seen, ("user", "prompt 9", False), ("assistant", "answer 9", False)]
    handle.release()
    ids = event_ids(house, session_id)
    assert len(ids) == len(set(ids))
    return seen


WRITE = [Step.SESSION_WRITE, Step.SESSION_SYNC, Step.SESSION_STAMP]
REPLACE = [step for step in Step if step.name.startswith("REPLACE")]
LEASE = [Step.LEASE_CREATE, Step.LEASE_WRITE, Step.LEASE_REMOVE]
MOMENTS = ["before", "after"]


def holds_the_batch(step: Step, moment: str) -> bool:
    return step in (Step.SESSION_SYNC, Step.SESSION_SYNC_DIRECTORY, Step.SESSION_STAMP) or (
        (step, moment) == (Step.SESSION_WRITE, "after")
    )


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("step", [Step.SESSION_CREATE, *WRITE, Step.SESSION_SYNC_DIRECTORY, *REPLACE, *LEASE])
def test_killed_in_the_first_append(house: House, spawn: Spawn, step: Step, moment: str) -> None:
    """All of the batch or nothing; and no receipt before the last sync."""
    child = spawn()
    session_id = child.ask("create")
    kill_at(child, step, moment, "append 1")
    seen = reopened(house, session_id)
    if holds_the_batch(step, moment):
        assert seen == FIRST
    elif (step, moment) in ((Step.SESSION_CREATE, "after"), (Step.SESSION_WRITE, "before")):
        assert seen == []
    else:
        assert seen is Code.SESSION_MISSING


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("step", [*WRITE, *LEASE])
def test_killed_in_a_later_append(house: House, spawn: Spawn, step: Step, moment: str) -> None:
    child = spawn()
    session_id = child.ask("create")
    assert child.ask("append 1") == "receipt 1,2,3"
    kill_at(child, step, moment, "append 2")
    written = holds_the_batch(step, moment) or step is Step.LEASE_REMOVE
    assert reopened(house, session_id) == (BOTH if written else FIRST)


def test_killed_right_after_the_receipt(house: House, spawn: Spawn) -> None:
    child = spawn()
    session_id = child.ask("create")
    assert child.ask("append 1") == "receipt 1,2,3"
    child.kill()
    assert reopened(house, session_id) == FIRST


def test_killed_in_the_middle_of_a_write(house: House, spawn: Spawn) -> None:
    """A torn tail is told from a record: the session is refused, and no byte of it is touched."""
    child = spawn()
    session_id = child.ask("create")
    child.ask("append 1")
    child.kill()
    path = house.file(session_id)
    torn = path.read_bytes() + path.read_bytes()[:300]
    path.write_bytes(torn)
    assert refusal(lambda: house.store().open(session_id)) is Code.SESSION_INVALID
    assert path.read_bytes() == torn


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("step", [*REPLACE, Step.LEASE_REMOVE])
def test_killed_while_ids_are_reserved_none_is_used_twice(house: House, spawn: Spawn, step: Step, moment: str) -> None:
    one, two = spawn(), spawn()
    session_id = one.ask("create")
    assert one.ask("append 1") == "receipt 1,2,3"
    one.kill()
    assert two.ask(f"open {session_id}") == "opened"
    kill_at(two, step, moment, "append 2")
    assert reopened(house, session_id) == FIRST
    moved = step in (Step.REPLACE_SYNC_DIRECTORY, Step.LEASE_REMOVE) or (step, moment) == (Step.REPLACE_RENAME, "after")
    assert (house.sessions / "event-id-sequence").read_bytes() == (b"3072" if moved else b"2048")


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("step", [Step.LEASE_CREATE, Step.LEASE_WRITE])
def test_killed_while_attaching(house: House, spawn: Spawn, step: Step, moment: str) -> None:
    """An empty lease may be one in the making: it is stale when it is 5 s old, one that was written at once."""
    house.put_bytes("s", b"")
    kill_at(spawn(), step, moment, "open s")
    lock = house.lock("s.writer")
    if lock.exists() and lock.read_bytes() == b"":
        assert refusal(lambda: house.store().open("s")) is Code.SESSION_BUSY
        old = lock.stat().st_mtime - 5
        os.utime(lock, (old, old))
    house.store().open("s").release()
    assert house.names() == {"s.jsonl"}


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("step", [Step.LEASE_RECOVER, Step.LEASE_REMOVE])
def test_killed_while_recovering(house: House, spawn: Spawn, step: Step, moment: str) -> None:
    """A guard that its holder left behind is as stale as any lease."""
    house.put_bytes("s", b"")
    house.lock("s.writer").write_text(f"pid={dead_pid(spawn)}\n")
    kill_at(spawn(), step, moment, "open s")
    house.store().open("s").release()
    assert house.names() <= {"s.jsonl", "..s.writer.lock.recovery"}


def test_a_stopped_holder_keeps_his_session(house: House, spawn: Spawn) -> None:
    """A process that does not renew for ever so long is still the holder: the kernel says so (LEASE-05)."""
    child = spawn()
    session_id = child.ask("create")
    child.ask("append 1")
    child.signal(signal.SIGSTOP)
    for role in ("writer", "active"):
        os.utime(house.lock(f"{session_id}.{role}"), (1, 1))
    assert refusal(lambda: house.store().open(session_id)) is Code.SESSION_BUSY
    child.signal(signal.SIGCONT)
    assert child.ask("append 2").startswith("receipt")
